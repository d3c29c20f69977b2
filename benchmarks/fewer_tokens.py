"""What a recipe makes of equally many tokens: ours beside BERT's, at several sizes and over several texts.

    python -m benchmarks.fewer_tokens TEXT --held-out LINES.txt --work DIR [--sizes 2x128 4x128 4x256] [--tokens 4.4e6]

TEXT is made a corpus once, so that all arms of a size share tokenizer, tokens and held-out part. The arms:

- `bert`: a post-norm BERT, AdamW 1e-3 that falls in a line, 15 % masked: what transformers' example does.
- `bert, slower`: the same at 3e-4, since a deep post-norm encoder does not learn by the first rate.
- `bert, our rates`: the same encoder, our optimizers and mask rate.
- `modern, their rates`: our encoder, and the first arm's optimizer and mask rate.
- `ours`: what `bertsmith pretrain` does by itself.

All see batches of 4,096 tokens, as many steps, and the same seed; a model is scored by what a hidden character costs
(`benchmarks/hidden_words.py`) and by `bertsmith evaluate` with 15 % masked, whatever it was trained with. None of it
depends on how fast the machine is, so other work may go on beside. A run that is there is not run again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import bertsmith
from benchmarks.hidden_words import HiddenWord, hidden_words, nats_a_character
from benchmarks.measuring import write_part
from bertsmith.model import PRESETS
from bertsmith.tokenization.config import TokenizerConfig

BATCH_TOKENS = 4096
_THEIR_RATES: dict[str, Any] = {
    "training.optimizer.kind": "adamw",
    "training.optimizer.matrices": "same",
    "training.optimizer.learning_rate": 1e-3,
    "training.schedule.shape": "linear",
    "training.schedule.warmup_share": 0.0,
    "model.bias_from_frequencies": False,
    "masking.mask_rate": 0.15,
}
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert-toy", _THEIR_RATES),
    "bert, slower": ("bert-toy", _THEIR_RATES | {"training.optimizer.learning_rate": 3e-4}),
    "bert, our rates": ("bert-toy", {}),
    "modern, their rates": ("modern-toy", _THEIR_RATES),
    "ours": ("modern-toy", {}),
}
"""Preset and settings of each."""


def sizes_of(preset: str, size: str) -> dict[str, int]:
    """Settings of a size such as ``4x128``: layers and width, as wide inside the feed-forwards as the family's is."""
    layers, hidden = (int(part) for part in size.split("x"))
    known = PRESETS[preset]
    return {
        "model.num_hidden_layers": layers,
        "model.hidden_size": hidden,
        "model.num_attention_heads": hidden // 32,
        "model.intermediate_size": hidden * known["intermediate_size"] // known["hidden_size"],
    }


def run_arm(corpus: Path, out: Path, arm: str, size: str, steps: int) -> Path:
    """The model folder of an arm, trained now or before."""
    preset, settings = ARMS[arm]
    if not (out / "model").is_dir():
        bertsmith.pretrain(
            [corpus],
            out,
            model=preset,
            steps=steps,
            settings={**sizes_of(preset, size), "training.batch_tokens": BATCH_TOKENS, **settings},
        )
    return out / "model"


def scores(model: Path, corpus: Path, words: list[HiddenWord]) -> dict[str, float]:
    """What a model is worth."""
    metrics = bertsmith.evaluate(model, corpus, precision="fp32").metrics
    return {"loss": round(metrics["loss"], 4), "nats_a_hidden_character": round(nats_a_character(model, words), 4)}


def main() -> None:
    """Run what is missing, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--name", help="Of the text, in the JSON; that of the file where not given.")
    parser.add_argument("--vocabulary", type=int, default=16_000)
    parser.add_argument("--sizes", nargs="+", default=["2x128", "4x128", "4x256"])
    parser.add_argument("--tokens", type=float, default=4.4e6)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    corpus, tokenizer = args.work / "corpus", args.work / "tokenizer"
    if not corpus.is_dir():
        bertsmith.train_tokenizer([str(args.text)], tokenizer, TokenizerConfig(vocab_size=args.vocabulary))
        bertsmith.prepare([str(args.text)], tokenizer, corpus)
    words = hidden_words(args.held_out.read_text(encoding="utf-8").splitlines())
    steps = round(args.tokens / BATCH_TOKENS)
    found: dict[str, dict[str, Any]] = {}
    for size in args.sizes:
        for arm in ARMS:
            out = args.work / f"{size}-{arm.replace(', ', '-').replace(' ', '-')}"
            found.setdefault(size, {})[arm] = scores(run_arm(corpus, out, arm, size, steps), corpus, words)
            print(size, arm, json.dumps(found[size][arm]), flush=True)
    name = args.name or args.text.stem
    write_part("fewer_tokens", name, {"vocabulary": args.vocabulary, "tokens": args.tokens, "sizes": found})


if __name__ == "__main__":
    main()
