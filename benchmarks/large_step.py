"""Peak memory and time of one real training step of the largest published models.

    python -m benchmarks.large_step                        # bert-large and albert-xxlarge, one after the other
    python -m benchmarks.large_step bert-large             # one alone; the other's numbers stay in the file

A step is all of it: forward and backward through every layer with dropout, the loss over the vocabulary, clipping and
AdamW, on a few sequences of 128 tokens. Weights, gradients and the optimizer's averages are fp32; matrix products run
in the precision that the device's probe finds faster. Activations are made anew in the backward pass. The memory is
the highest that the process ever had resident.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import machine
from bertsmith.batches.batch import Batch
from bertsmith.engine.device import choose_device
from bertsmith.foundation.files import write_json
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model import Dropout, Encoder, HeadsConfig, ModelConfig, new_model, preset
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step

LIMIT_GIB = 24
LENGTH, MASK_ID = 128, 4
VOCABULARIES = {"bert-large": 30_522, "albert-xxlarge": 30_000}
PUBLISHED_DROPOUT = {"bert-large": 0.1, "albert-xxlarge": 0.0}
OUT = Path(__file__).parent.parent / "docs" / "soak" / "large_step.json"


def made_batch(vocabulary: int, sequences: int) -> Batch:
    """Random tokens, 15 % of which are to be found."""
    stream = random_stream(0, "large step")
    token_ids = stream.integers(5, vocabulary, sequences * LENGTH)
    positions = np.sort(stream.permutation(len(token_ids))[: round(0.15 * len(token_ids))])
    seen = token_ids.copy()
    seen[positions] = MASK_ID
    packed = PackedTokens.build(seen, np.zeros_like(seen), np.arange(sequences + 1) * LENGTH)
    return Batch(packed, torch.from_numpy(positions), torch.from_numpy(token_ids[positions]), len(positions))


def peak_gib() -> float:
    """The most memory that this process ever had resident."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak * (1 if sys.platform == "darwin" else 1024) / 2**30


def step_once(name: str, sequences: int) -> dict[str, Any]:
    """Take one step and tell what it took, in this process."""
    dropout = Dropout.everywhere(PUBLISHED_DROPOUT[name])
    encoder = preset(name, vocab_size=VOCABULARIES[name], dropout=dropout)
    model = new_model(ModelConfig(encoder=encoder, heads=HeadsConfig(pooler=True)), seed=0).train()
    if not isinstance(model.encoder, Encoder):
        raise TypeError(f"{name} must be an encoder of transformer layers. Received: {type(model.encoder).__name__}.")
    model.encoder.recompute_activations(True)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    device = choose_device("cpu")
    before = model.encoder.embeddings.token.weight[:100].clone()
    started_at = time.perf_counter()
    report = train_step(
        state,
        [made_batch(encoder.vocab_size, sequences)],
        MaskedLanguageModel(),
        device=device,
        learning_rate=1e-4,
        clip_norm=1.0,
        seed=0,
    )
    elapsed_seconds = time.perf_counter() - started_at
    if not report.updated or torch.equal(before, model.encoder.embeddings.token.weight[:100]):
        raise SystemExit(f"the step of {name} changed nothing")
    return {
        "model": name,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "sequences": sequences,
        "length": LENGTH,
        "precision": device.precision,
        "gradient_norm": round(report.gradient_norm, 4),
        "elapsed_seconds": round(elapsed_seconds, 1),
        "peak_gib": round(peak_gib(), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"which of {', '.join(VOCABULARIES)}; both where none is named")
    parser.add_argument("--sequences", type=int, default=4, help="sequences in the batch")
    parser.add_argument("--out", type=Path, default=OUT, help="where the numbers go")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.models or list(VOCABULARIES)
    if unknown := set(names) - set(VOCABULARIES):
        parser.error(f"models must be of: {', '.join(VOCABULARIES)}. Received: {', '.join(sorted(unknown))}.")
    if options.once:
        print(json.dumps(step_once(names[0], options.sequences)))
        return
    results: dict[str, Any] = {}
    if options.out.is_file():
        results = {one["model"]: one for one in json.loads(options.out.read_text(encoding="utf-8"))["results"]}
    for name in names:
        # Each in a process of its own, whose highest memory is the model's.
        command = [sys.executable, "-m", "benchmarks.large_step", name, "--once", "--sequences", str(options.sequences)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parent.parent)
        results[name] = json.loads(done.stdout) | {"machine": machine()}
        print(json.dumps(results[name], indent=2), flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(options.out, {"limit_gib": LIMIT_GIB, "results": list(results.values())})
    if any(results[name]["peak_gib"] > LIMIT_GIB for name in names):
        raise SystemExit(f"more than {LIMIT_GIB} GiB at the peak")


if __name__ == "__main__":
    main()
