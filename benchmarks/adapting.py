"""What adapting an encoder to a domain brings: cloze accuracy of the domain and a downstream score, before and after.

    python -m benchmarks.adapting MODEL --text DOMAIN.txt --held-out HELD.txt --train A.csv --test B.csv --out DIR

DOMAIN and HELD hold one text a line. The cloze hides one word of each held-out text, of at least five letters, the same
words for every model; a hit is the hidden word among a model's five best words. A word that a vocabulary writes with
several pieces cannot be found by it, which is what extending the vocabulary is for.
"""

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

import bertsmith
from bertsmith.foundation.random_streams import random_stream
from bertsmith.recipes.predict import load_fill

_WORD = re.compile(r"[^\W\d_]{5,}")
_TOP = 5


def cloze_lines(texts: list[str], count: int) -> list[tuple[str, str]]:
    """Texts with one word hidden, and the word."""
    stream = random_stream(0, "cloze words")
    lines: list[tuple[str, str]] = []
    for text in texts:
        words = list(_WORD.finditer(text))
        if words and "[MASK]" not in text:
            hidden = words[int(stream.integers(len(words)))]
            lines.append((f"{text[: hidden.start()]}[MASK]{text[hidden.end() :]}", hidden[0].lower()))
    return lines[:count]


def cloze_accuracy(model: Path, lines: list[tuple[str, str]]) -> float | None:
    """Share of the hidden words among a model's five best; None for one that fills nothing."""
    if "masked language model" not in bertsmith.info(model)["heads"]:
        return None
    predictor = load_fill(model)
    found = predictor([text for text, _ in lines], top_k=_TOP)
    hits = [
        text.replace("[MASK]", word).lower() in [best.sequence.lower() for best in mask.words]
        for mask, (text, word) in zip(found, lines, strict=True)
    ]
    return sum(hits) / len(hits)


def downstream(model: Path, args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Accuracy of classifiers fine-tuned from a model, over seeds."""
    accuracies: list[float] = []
    for seed in range(args.seeds):
        run = bertsmith.finetune(
            "classify", args.train, model=model, out=out / f"seed-{seed}", validation=args.test, epochs=args.epochs,
            seed=seed,
        )  # fmt: skip
        accuracies.append(run.metrics["accuracy"])
    return {"accuracies": accuracies, "mean": statistics.mean(accuracies)}


def main() -> None:
    """Measure the model as it is, adapted, and adapted with words of the domain."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    for name in ("text", "held-out", "train", "test", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--words", type=int, default=500)
    parser.add_argument("--epochs", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    lines = cloze_lines(args.held_out.read_text(encoding="utf-8").splitlines(), 1000)
    models = {"as it was": args.model}
    for name, words in (("adapted", 0), ("adapted with words", args.words)):
        run = bertsmith.pretrain(
            [args.text], args.out / name.replace(" ", "-"), model=args.model, minutes=args.minutes,
            extend_vocabulary=words, settings={"text.layout": "line", "training.validation_tokens": 20_000},
        )  # fmt: skip
        models[name] = run.model_folder
    results = {
        name: {
            "cloze_top5": cloze_accuracy(model, lines),
            "downstream": downstream(model, args, args.out / f"classifier-{name.replace(' ', '-')}"),
        }
        for name, model in models.items()
    }
    print(json.dumps({"cloze_lines": len(lines), "minutes": args.minutes, "models": results}, indent=2))


if __name__ == "__main__":
    main()
