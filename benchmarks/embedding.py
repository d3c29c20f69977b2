"""How fast are texts embedded on a CPU, and how near to fp32, beside other programs?

    python -m benchmarks.embedding MODEL TEXT [TEXT ...]

MODEL is the folder of a sentence embedder in BERT's layout, such as MiniLM, and TEXT are files with a paragraph a line.
Two sets of texts are embedded: the first paragraphs of 80 characters or more, cut at 256 tokens, and their first
sentences. A turn is everything from the texts to their vectors. Each contestant has a process of its own and sorts the
texts by length. Agreement is the cosine with what sentence-transformers gives in fp32.
"""

import argparse
import json
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.embedding_peers import MAX_TOKENS, PACKAGES, SENTENCES, Embed, lengths, missing, peer
from benchmarks.measuring import contest, serve, summary, write_part
from bertsmith.engine.device import Device
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.kernels.encoding import WordPrecision
from bertsmith.model.frozen import frozen

OURS: dict[str, WordPrecision] = {"bertsmith bf16": "bf16", "bertsmith int8": "int8"}
SHORTEST = 80


def paragraphs(paths: list[Path], count: int) -> list[str]:
    """The first paragraphs that are long enough, headings of the form ``= Title =`` left out."""
    lines = [line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if len(line) >= SHORTEST and not line.startswith("=")][:count]


def first_sentences(texts: list[str]) -> list[str]:
    """Up to the first full stop, question or exclamation mark before a space."""
    return [re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0] for text in texts]


def ours(model: str, precision: WordPrecision) -> Embed:
    """Our own embedder."""
    keep_freed_memory()
    read = read_model(Path(model)).model
    tokenizer = read_tokenizer(Path(model), vocab_size=read.config.encoder.vocab_size).seeing(MAX_TOKENS)
    return EmbedPredictor(TorchEngine(frozen(read, precision), Device("cpu", "bf16")), tokenizer).vectors


def contestant(who: str, folder: Path) -> None:
    """Embed whenever asked to; the first time, the vectors are kept."""
    asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    scratch = folder / who
    scratch.mkdir()
    embed = ours(asked["model"], OURS[who]) if who in OURS else peer(who, asked["model"], scratch)
    np.save(folder / f"{who}.npy", embed(asked["texts"]))
    serve(lambda: embed(asked["texts"]))


def agreement(vectors: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """Mean and smallest cosine."""
    cosines = (vectors * exact).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(exact, axis=1)
    return {"mean cosine": round(float(cosines.mean()), 5), "least cosine": round(float(cosines.min()), 5)}


def measure(model: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """All contestants in turn."""
    there = [name for name in PACKAGES if not missing(name)]
    absent = {name: f"not installed: {', '.join(missing(name))}" for name in PACKAGES if missing(name)}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        asked = {"model": model, "texts": texts}
        (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        names = {name: f"{name}|{folder}" for name in (*OURS, *there)}
        turns = contest("embedding", list(names.values()), rounds=rounds, warmup=1)
        seconds = {name: turns[names[name]] for name in names}
        vectors = {name: np.load(folder / f"{name}.npy") for name in names}
    tokens = sum(lengths(model, texts))
    medians = {name: statistics.median(turn) for name, turn in seconds.items()}
    values: dict[str, Any] = {"texts": len(texts), "tokens": tokens, "most tokens of a text": MAX_TOKENS}
    for name, turn in seconds.items():
        near = agreement(vectors[name], vectors[SENTENCES]) if SENTENCES in vectors else {}
        values[name] = {**summary(turn), "tokens a second": round(tokens / medians[name]), **near}
    for name in OURS:
        values[f"times faster, {name}"] = {one: round(medians[one] / medians[name], 2) for one in there}
    return values | absent


def table(values: dict[str, Any]) -> str:
    """The same for people."""
    rows = [
        f"{values['texts']} texts, {values['tokens']} tokens",
        "| who | ms | tokens a second | mean cosine | least |",
    ]
    rows.append("|---|---|---|---|---|")
    for name in (*OURS, *PACKAGES):
        found = values[name]
        if isinstance(found, str):
            rows.append(f"| {name} | {found} | | | |")
            continue
        cosines = (found.get(part, "") for part in ("mean cosine", "least cosine"))
        rows.append("| " + " | ".join(map(str, (name, found["median_ms"], found["tokens a second"], *cosines))) + " |")
    return "\n".join(rows)


def main() -> None:
    """Measure, print and write; or be a contestant."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("model", nargs="?")
    parser.add_argument("texts", nargs="*", type=Path)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contestant")
    args = parser.parse_args()
    if args.contestant:
        who, folder = args.contestant.split("|")
        contestant(who, Path(folder))
        return
    if args.model is None or not args.texts:
        parser.error("name a model folder and a text file at least")
    chosen = paragraphs(args.texts, args.count)
    sets = {"paragraphs": chosen, "first sentences": first_sentences(chosen)}
    for name, texts in sets.items():
        values = measure(str(Path(args.model).resolve()), texts, args.rounds)
        write_part("embedding", name, values)
        print(table(values), flush=True)


if __name__ == "__main__":
    main()
