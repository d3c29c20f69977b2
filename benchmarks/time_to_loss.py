"""How long until the loss that transformers' recipe reaches in one epoch?

    python -m benchmarks.time_to_loss peer  --corpus CORPUS --work DIR     # trains it: a quarter of an hour or more
    python -m benchmarks.time_to_loss ours  --corpus CORPUS --work DIR --steps N
    python -m benchmarks.time_to_loss turns --corpus CORPUS --work DIR     # steps of both in turn, and the JSON

CORPUS is a corpus that `bertsmith prepare` made, with a vocabulary of 64,000 pieces for the published comparison. The
peer is `BertForMaskedLM` of 4 layers of 128, trained as transformers' own example is: text cut into blocks of 128
tokens, dropout 0.1, 15 % masked by its collator, AdamW at 1e-3 that falls in a line, batches of 32 blocks, one epoch.
Ours is `bertsmith pretrain` on the same corpus with our defaults, whose model has as many layers of the same width, for
so many steps that its loss is no higher.

Both models are scored by `bertsmith evaluate` on the held-out part of the corpus: the same tokens, the same masks. The
loss of the peer does not depend on how fast it runs, so it may be trained in bf16 while other work goes on; what its
epoch takes is its number of steps times the median of its steps, measured in turn with ours. Ours counts everything
that the command does, the start of Python and the final validation too.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import bertsmith
from benchmarks.measuring import contest, serve, summary, write_part
from benchmarks.training_step import FP32, OURS, WORK, contestant
from bertsmith.corpus.corpus import Corpus
from bertsmith.model import PRESETS
from bertsmith.tokenization.tokenizer import Tokenizer

LENGTH, SEQUENCES, RATE = 128, 32, 1e-3
SIZES = PRESETS["bert-toy"]


def blocks(corpus: Corpus, tokenizer: Tokenizer) -> torch.Tensor:
    """The training text as transformers' example cuts it: documents in a row, each between its special tokens, and cut
    every `LENGTH` tokens; ``[blocks, LENGTH]``."""
    train = corpus.split("train")
    starts = train.sentence_starts[train.document_starts].tolist()
    framed = [
        np.r_[tokenizer.cls_id, train.tokens(start, end), tokenizer.sep_id] for start, end in itertools.pairwise(starts)
    ]
    flat = np.concatenate(framed).astype(np.int64)
    return torch.from_numpy(flat[: len(flat) // LENGTH * LENGTH].reshape(-1, LENGTH))


def train_peer(corpus: Corpus, work: Path) -> None:
    """Train the peer for an epoch, and write its folder and how many steps it took."""
    tokenizer = Tokenizer.from_folder(corpus.tokenizer_folder)
    texts = blocks(corpus, tokenizer)
    transformers.set_seed(0)
    config = transformers.BertConfig(vocab_size=tokenizer.vocab_size, pad_token_id=tokenizer.pad_id, **SIZES)
    model = transformers.BertForMaskedLM(config).train()
    collate = transformers.DataCollatorForLanguageModeling(
        transformers.AutoTokenizer.from_pretrained(corpus.tokenizer_folder), mlm_probability=0.15
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=True)
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0))
    steps = len(order) // SEQUENCES
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / steps)
        rows = texts[order[step * SEQUENCES : (step + 1) * SEQUENCES]]
        batch = collate([{"input_ids": row} for row in rows])
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step:,}/{steps:,}  loss {loss:.3f}", flush=True)
    model.save_pretrained(work / "peer")
    for file in corpus.tokenizer_folder.iterdir():
        (work / "peer" / file.name).write_bytes(file.read_bytes())
    (work / "peer.json").write_text(json.dumps({"steps": steps, "loss": score(work / "peer", corpus)}))


def score(model: Path, corpus: Corpus) -> float:
    """Loss on the held-out part."""
    return bertsmith.evaluate(model, corpus.folder, max_length=LENGTH, precision="fp32").metrics["loss"]


def train_ours(corpus: Corpus, work: Path, steps: int) -> None:
    """One whole command in a process of its own, as a person gives it."""
    out = work / "ours"
    command = [sys.executable, "-m", "bertsmith", "pretrain", str(corpus.folder), "--out", str(out), "--restart"]
    started_at = time.monotonic()
    subprocess.run([*command, "--steps", str(steps)], check=True)
    seconds = time.monotonic() - started_at
    loss = score(out / "model", corpus)
    (work / "ours.json").write_text(json.dumps({"steps": steps, "seconds": seconds, "loss": loss}))
    print(f"{steps} steps, {seconds:.1f} s, loss {loss:.3f}")


def main() -> None:
    """One of the three parts, or a contestant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("peer", "ours", "turns"))
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--contestant")
    args = parser.parse_args()
    if args.contestant:
        serve(contestant("bert-toy", 0.1, args.contestant))
        return
    corpus = Corpus.open(args.corpus)
    args.work.mkdir(parents=True, exist_ok=True)
    match args.part:
        case "peer":
            train_peer(corpus, args.work)
        case "ours":
            train_ours(corpus, args.work, args.steps)
        case _:
            write_part("time_to_loss", corpus.folder.name, compared(args.work))


def compared(work: Path) -> dict[str, Any]:
    """What the peer's epoch takes, beside what ours took to the same loss."""
    peer, ours = (json.loads((work / f"{who}.json").read_text(encoding="utf-8")) for who in ("peer", "ours"))
    found = contest("time_to_loss", (OURS, FP32), rounds=5, warmup=1)
    steps = [turn / WORK["bert-toy"].steps for turn in found[FP32]]
    epoch_seconds = peer["steps"] * statistics.median(steps)
    return {
        FP32: {**peer, "step": summary(steps), "seconds": epoch_seconds},
        OURS: ours,
        "times less": round(epoch_seconds / ours["seconds"], 1),
    }


if __name__ == "__main__":
    main()
