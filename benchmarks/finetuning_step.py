"""How fast is a small encoder fine-tuned to classify sentences, beside transformers padding to the longest?

MiniLM's sizes (6 layers of 384, vocabulary 30,522, a pooler) and fresh weights, which take as long as trained ones.
Batches of 32 sentences whose lengths are spread as SST-2's are, the same for all; dropout of 0.1; a whole step with
clipping and a fused AdamW. Each contestant is a process of its own.
"""

import argparse
import statistics
from collections.abc import Callable

import numpy as np
import torch
import transformers

from benchmarks.measuring import contest, serve, summary, write_part
from bertsmith.batches.batch import Batch
from bertsmith.batches.micro_batches import token_multiple
from bertsmith.engine.device import choose_device
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.model import Dropout, HeadsConfig, ModelConfig, new_model, preset
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.classification import Classification
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step

# Tokens of SST-2's training sentences in MiniLM's vocabulary, special ones included: the 0th, 5th, … 100th percentile.
PERCENTILES = (3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 10, 11, 13, 14, 16, 18, 20, 23, 27, 33, 66)
VOCABULARY, SENTENCES, STEPS = 30_522, 32, 8
OURS, FP32, BF16, KEPT = "bertsmith", "transformers fp32", "transformers bf16", "transformers bf16, memory kept"
PEERS = (FP32, BF16, KEPT)


def sentences() -> list[list[np.ndarray]]:
    """The token ids of each sentence of each step."""
    generator = np.random.default_rng(0)
    places = generator.random((STEPS, SENTENCES)) * (len(PERCENTILES) - 1)
    lengths = np.interp(places, np.arange(len(PERCENTILES)), PERCENTILES).round().astype(int)
    return [[generator.integers(5, VOCABULARY, length) for length in step] for step in lengths]


def ours() -> Callable[[], None]:
    """Our steps of one turn."""
    encoder = preset(
        "bert-toy", vocab_size=VOCABULARY, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, dropout=Dropout.everywhere(0.1),
    )  # fmt: skip
    model = new_model(
        ModelConfig(encoder=encoder, heads=HeadsConfig(task="classify", labels=("a", "b"), pooler=True)), seed=0
    ).train()
    state, objective, device = (
        TrainState(model, new_optimizer(model, OptimizerConfig())),
        Classification(),
        choose_device(),
    )
    nothing = torch.empty(0, dtype=torch.int64)
    batches = [
        Batch(
            PackedTokens.build(
                np.concatenate(step),
                np.zeros(sum(map(len, step)), np.int64),
                np.cumsum([0, *map(len, step)]),
                multiple=token_multiple(sum(map(len, step))),
            ),
            nothing,
            nothing,
            0,
            labels=torch.arange(SENTENCES) % 2,
        )
        for step in sentences()
    ]

    def turn() -> None:
        for batch in batches:
            train_step(state, [batch], objective, device=device, learning_rate=1e-4, clip_norm=1.0, seed=0)

    return turn


def theirs(*, bf16: bool) -> Callable[[], None]:
    """Transformers' steps of one turn."""
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    model = transformers.BertForSequenceClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    labels = torch.arange(SENTENCES) % 2
    batches: list[tuple[torch.Tensor, torch.Tensor]] = []
    for step in sentences():
        token_ids = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(ids) for ids in step], batch_first=True)
        batches.append((token_ids, (token_ids > 0).long()))

    def turn() -> None:
        for token_ids, mask in batches:
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                loss = model(input_ids=token_ids, attention_mask=mask, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return turn


def contestant(who: str) -> Callable[[], None]:
    """The steps of one turn, and its process made ready."""
    if who in (OURS, KEPT):
        keep_freed_memory()
    return ours() if who == OURS else theirs(bf16=who != FP32)


def main() -> None:
    """Measure, print and write; or be a contestant."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--contestant", choices=(OURS, *PEERS))
    args = parser.parse_args()
    if args.contestant:
        serve(contestant(args.contestant))
        return
    turns = contest("finetuning_step", (OURS, *PEERS), rounds=args.rounds, warmup=1)
    real = sum(len(ids) for step in sentences() for ids in step)
    padded = sum(SENTENCES * max(map(len, step)) for step in sentences())
    mine = statistics.median(turns[OURS])
    write_part(
        "finetuning_step",
        "sentences",
        {
            "real tokens of those that padding makes": round(real / padded, 3),
            **{who: summary([turn / STEPS for turn in found]) for who, found in turns.items()},
            **{f"times faster than {who}": round(statistics.median(turns[who]) / mine, 2) for who in PEERS},
        },
    )


if __name__ == "__main__":
    main()
