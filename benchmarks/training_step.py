"""How long is a training step, beside transformers on the same tokens?

    python -m benchmarks.training_step                  # all models
    python -m benchmarks.training_step bert-toy         # some; the others' figures stay in the file

Both take a whole step: forward, backward, clipping and a fused AdamW, on the same sequences of 128 tokens of which 15 %
are selected. Transformers runs as its own script does, with all logits: in fp32, in bf16 autocast, and in bf16 with a C
library that keeps freed memory, as our training asks it to. `bert-toy` is measured without dropout, which is how we
pre-train by default, and with the published 0.1; the others with what was published. Each contestant has a process of
its own.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.measuring import contest, serve, summary, write_part
from bertsmith.batches.batch import Batch
from bertsmith.engine.device import choose_device
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.engine.rates import measured_rates
from bertsmith.model import Dropout, EncoderConfig, ModelConfig, new_model, preset
from bertsmith.model.build import meta_model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.planning.floor import work_of_step
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step

LENGTH, MASK_ID, SELECTED = 128, 4, round(0.15 * 128)


@dataclass(frozen=True)
class Work:
    """What a step is made of, and how it is measured."""

    vocabulary: int
    sequences: int
    dropouts: tuple[float, ...]
    peers: tuple[str, ...]
    steps: int
    """Steps a turn: small models are as fast as they are once their memory is warm."""


OURS, FP32, BF16, KEPT = "bertsmith", "transformers fp32", "transformers bf16", "transformers bf16, memory kept"
WORK = {
    "bert-toy": Work(64_000, 32, (0.0, 0.1), (FP32, BF16, KEPT), 3),
    "bert-base": Work(30_522, 8, (0.1,), (BF16, KEPT), 1),
    "bert-large": Work(30_522, 4, (0.1,), (BF16, KEPT), 1),
    "albert-xxlarge": Work(30_000, 2, (0.0,), (BF16, KEPT), 1),
}


def tokens(work: Work) -> tuple[np.ndarray, np.ndarray]:
    """Token ids ``[sequences, length]``, and the sorted flat positions of those that are selected."""
    generator = np.random.default_rng(0)
    token_ids = generator.integers(5, work.vocabulary, (work.sequences, LENGTH))
    selected = generator.random((work.sequences, LENGTH)).argsort(1)[:, :SELECTED]
    return token_ids, np.sort((selected + np.arange(work.sequences)[:, None] * LENGTH).ravel())


def encoder(name: str, dropout: float) -> EncoderConfig:
    """The model's sizes."""
    return preset(name, vocab_size=WORK[name].vocabulary, dropout=Dropout.everywhere(dropout))


def batch(work: Work) -> Batch:
    """The same sequences as we take them."""
    token_ids, positions = tokens(work)
    seen = token_ids.ravel().copy()
    seen[positions] = MASK_ID
    packed = PackedTokens.build(seen, np.zeros_like(seen), np.arange(work.sequences + 1) * LENGTH)
    return Batch(packed, torch.from_numpy(positions), torch.from_numpy(token_ids.ravel()[positions]), len(positions))


def ours(name: str, dropout: float) -> Callable[[], object]:
    """One of our steps."""
    micro_batches, device = [batch(WORK[name])], choose_device("cpu")
    model = new_model(ModelConfig(encoder=encoder(name, dropout)), seed=0).train()
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    objective = MaskedLanguageModel()
    return lambda: train_step(state, micro_batches, objective, device=device, learning_rate=1e-4, clip_norm=1.0, seed=0)


def theirs(name: str, dropout: float, *, bf16: bool) -> Callable[[], object]:
    """One of transformers' steps."""
    token_ids, positions = tokens(WORK[name])
    seen, labels = torch.from_numpy(token_ids.copy()), torch.full(token_ids.shape, -100)
    seen.view(-1)[positions] = MASK_ID
    labels.view(-1)[positions] = torch.from_numpy(token_ids.ravel()[positions])
    config = encoder(name, dropout)
    sizes: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    }
    if config.family == "albert":
        albert = transformers.AlbertConfig(**sizes, embedding_size=config.embedding_width, hidden_act="gelu_new")
        model = transformers.AlbertForMaskedLM(albert)
    else:
        model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = model(input_ids=seen, attention_mask=torch.ones_like(seen), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def floor_seconds(name: str) -> float:
    """Matrix work at the machine's bf16 rate, and what the optimizer must move at its copy rate."""
    model = meta_model(ModelConfig(encoder=encoder(name, 0.0)))
    work = work_of_step(model, [batch(WORK[name])], MaskedLanguageModel(), OptimizerConfig())
    return sum(work.seconds(measured_rates(choose_device("cpu", "bf16"))).values())


def contestant(name: str, dropout: float, who: str) -> Callable[[], object]:
    """The steps of one turn, and its process made ready."""
    if who in (OURS, KEPT):
        keep_freed_memory()
    step = ours(name, dropout) if who == OURS else theirs(name, dropout, bf16=who != FP32)

    def turn() -> None:
        for _ in range(WORK[name].steps):
            step()

    return turn


def measure(name: str, rounds: int) -> dict[str, Any]:
    """Ours and each peer in turn: two at a time, since the memory of three does not fit where one nearly does."""
    work, floor = WORK[name], floor_seconds(name)
    values: dict[str, Any] = {"sequences": work.sequences, "floor_ms": round(1e3 * floor, 1)}
    for dropout in work.dropouts:
        mine: list[float] = []
        found: dict[str, Any] = {}
        for peer in work.peers:
            names = [f"{name}|{dropout}|{who}" for who in (OURS, peer)]
            here, there = contest("training_step", names, rounds=rounds, warmup=1).values()
            mine += [turn / work.steps for turn in here]
            found[peer] = summary([turn / work.steps for turn in there])
            found[f"times faster than {peer}"] = round(statistics.median(there) / statistics.median(here), 2)
        fraction = round(floor / statistics.median(mine), 2)
        values[f"dropout {dropout}"] = {OURS: summary(mine), **found, "fraction of floor": fraction}
    return values


def main() -> None:
    """Measure, print and write; or be a contestant."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", help=", ".join(WORK))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contestant")
    args = parser.parse_args()
    if args.contestant:
        name, dropout, who = args.contestant.split("|")
        serve(contestant(name, float(dropout), who))
        return
    for name in args.models or WORK:
        write_part("training_step", name, measure(name, args.rounds))


if __name__ == "__main__":
    main()
