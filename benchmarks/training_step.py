"""How long is a training step of `bert-toy` with 64,000 pieces, beside transformers on the same tokens?

Both take a whole step: forward, backward, clipping and a fused AdamW, on the same 32 x 128 tokens with 15 % selected.
Transformers runs as its own script does, in fp32 and with all logits, in bf16 autocast, and in bf16 with a C library
that keeps freed memory, as our training asks it to. Dropout is the published 0.1 for all, and again 0 for all, since we
pre-train without it by default. Each is a process of its own.
"""

import statistics
import sys
from collections.abc import Callable

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from benchmarks.measuring import contest, copy_rate, matrix_rate, serve, summary, write
from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device, choose_device
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.model import Dropout, ModelConfig, new_model, preset
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step

VOCABULARY, SEQUENCES, LENGTH, MASK_ID = 64_000, 32, 128, 4
ROUNDS = 5


def tokens() -> tuple[np.ndarray, np.ndarray]:
    """Token ids ``[sequences, length]``, and the sorted flat positions of the 15 % that are selected."""
    generator = np.random.default_rng(0)
    token_ids = generator.integers(5, VOCABULARY, (SEQUENCES, LENGTH))
    selected = generator.random((SEQUENCES, LENGTH)).argsort(1)[:, : round(0.15 * LENGTH)]
    return token_ids, np.sort((selected + np.arange(SEQUENCES)[:, None] * LENGTH).ravel())


def ours(device: Device, dropout: float) -> Callable[[], object]:
    """One of our steps."""
    token_ids, positions = tokens()
    seen = token_ids.ravel().copy()
    seen[positions] = MASK_ID
    starts = np.arange(SEQUENCES + 1) * LENGTH
    packed = PackedTokens.build(seen, np.zeros_like(seen), starts)
    batch = Batch(packed, torch.from_numpy(positions), torch.from_numpy(token_ids.ravel()[positions]), len(positions))
    encoder = preset("bert-toy", vocab_size=VOCABULARY, dropout=Dropout.everywhere(dropout))
    model = new_model(ModelConfig(encoder=encoder), seed=0).train()
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    objective = MaskedLanguageModel()
    return lambda: train_step(state, [batch], objective, device=device, learning_rate=1e-4, clip_norm=1.0, seed=0)


def theirs(*, bf16: bool, dropout: float) -> Callable[[], object]:
    """One of transformers' steps."""
    token_ids, positions = tokens()
    seen, labels = torch.from_numpy(token_ids.copy()), torch.full((SEQUENCES, LENGTH), -100)
    seen.view(-1)[positions] = MASK_ID
    labels.view(-1)[positions] = torch.from_numpy(token_ids.ravel()[positions])
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = BertForMaskedLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = model(input_ids=seen, attention_mask=torch.ones_like(seen), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def floor_seconds() -> float:
    """Matrix work at the machine's bf16 rate, and what the optimizer must move at its copy rate."""
    hidden, layers, intermediate, selected = 128, 4, 512, SEQUENCES * round(0.15 * LENGTH)
    num_tokens = SEQUENCES * LENGTH
    per_token = layers * (2 * hidden * (4 * hidden + 2 * intermediate) + 4 * LENGTH * hidden)
    head = selected * 2 * (hidden * hidden + hidden * VOCABULARY)
    parameters = VOCABULARY * (hidden + 1) + layers * (4 * hidden**2 + 2 * hidden * intermediate)
    # AdamW reads gradient, weight and both moments, and writes the last three, 4 bytes each.
    return 3 * (num_tokens * per_token + head) / matrix_rate(torch.bfloat16) + 7 * 4 * parameters / copy_rate()


OURS = "bertsmith"
PEERS = {
    "transformers fp32": {"bf16": False, "keeps_memory": False},
    "transformers bf16": {"bf16": True, "keeps_memory": False},
    "transformers bf16, memory kept": {"bf16": True, "keeps_memory": True},
}


def contestant(name: str, dropout: float) -> Callable[[], object]:
    """A step of ours or of a peer, and its process made ready."""
    settings = PEERS.get(name)
    if settings is None or settings["keeps_memory"]:
        keep_freed_memory()
    return ours(choose_device("cpu"), dropout) if settings is None else theirs(bf16=settings["bf16"], dropout=dropout)


def main() -> None:
    """Measure, print and write; or be a contestant, named as ``<name> <dropout>``."""
    if sys.argv[1:2] == ["--contestant"]:
        name, dropout = sys.argv[2].rsplit(" ", 1)
        serve(contestant(name, float(dropout)))
        return
    values: dict[str, object] = {
        "ours_precision": choose_device("cpu").precision,
        "floor_ms": round(1e3 * floor_seconds(), 1),
    }
    for dropout in (0.0, 0.1):
        names = [f"{name} {dropout}" for name in (OURS, *PEERS)]
        seconds = contest("training_step", names, rounds=ROUNDS)
        mine = statistics.median(seconds[names[0]])
        values[f"dropout {dropout}"] = {name: summary(times) for name, times in seconds.items()} | {
            f"times faster than {name}": round(statistics.median(seconds[name]) / mine, 2) for name in names[1:]
        }
    write("training_step", values)


if __name__ == "__main__":
    main()
