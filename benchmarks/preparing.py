"""How long until text is a corpus on disk, beside `datasets.map` with the same tokenizer on the same cores?

    python -m benchmarks.preparing                        # CPython's documentation, repeated to 10 MB
    python -m benchmarks.preparing TEXT [--tokenizer DIR] # text of your own: .txt or .jsonl, of one kind

Ours is the whole command `bertsmith prepare`: sentences, tokens, the held-out part, sums of everything. The peer does
what transformers' own script for masked language models does: the text is loaded line by line, tokenized in batches
with the mask of special tokens, and, as the second peer, put in a row and cut into blocks of 128, each step written
to Arrow files. All are processes of their own, started anew each turn in an empty folder.

What is said twice costs us less than what is new, and repeated text is: text of your own tells more than the default.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

OURS, MAPPED, GROUPED = "bertsmith", "datasets.map", "datasets.map, in blocks"
LENGTH = 128
MEGABYTE = 1_000_000


def loaded(files: Sequence[Path], tokenizer: Any, workers: int) -> Any:
    """Files as rows of tokens, as transformers' script makes them."""
    import datasets

    kind = "json" if files[0].suffix == ".jsonl" else "text"
    rows = datasets.load_dataset(kind, data_files={"train": [str(path) for path in files]})["train"]
    return rows.map(
        lambda batch: tokenizer(batch["text"], return_special_tokens_mask=True),
        batched=True,
        num_proc=workers,
        remove_columns=rows.column_names,
    )


def grouped(rows: Any, workers: int) -> Any:
    """Rows in a row, cut into blocks; what is left over at the end of a batch is dropped."""

    def cut(batch: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {name: list(itertools.chain(*values)) for name, values in batch.items()}
        whole = len(joined["input_ids"]) // LENGTH * LENGTH
        return {name: [flat[at : at + LENGTH] for at in range(0, whole, LENGTH)] for name, flat in joined.items()}

    return rows.map(cut, batched=True, num_proc=workers)


def run_peer(files: Sequence[Path], tokenizer_folder: Path, workers: int, *, in_blocks: bool) -> None:
    """The peer's process."""
    import transformers

    rows = loaded(files, transformers.AutoTokenizer.from_pretrained(tokenizer_folder), workers)
    if in_blocks:
        grouped(rows, workers)


def write_documentation(path: Path, size: int) -> None:
    """CPython's documentation, as often as it takes to fill so many bytes."""
    from bertsmith.recipes.demonstration.corpus import python_documentation

    documents = [document.text for document in python_documentation()]
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for text in itertools.cycle(documents):
            file.write(f"{text}\n\n")
            if file.tell() >= size:
                return


def commands(files: Sequence[Path], tokenizer: Path, workers: int) -> dict[str, Callable[[Path], Sequence[str]]]:
    """By name, the command of each contestant."""
    names = [str(path.resolve()) for path in files]
    shared = [*names, "--tokenizer", str(tokenizer.resolve()), "--workers", str(workers)]

    def ours(folder: Path) -> list[str]:
        return [sys.executable, "-m", "bertsmith", "prepare", *shared, "--out", str(folder / "corpus")]

    def peer(name: str) -> Callable[[Path], Sequence[str]]:
        return lambda folder: [sys.executable, "-m", "benchmarks.preparing", *shared, "--contestant", name]

    return {OURS: ours, MAPPED: peer(MAPPED), GROUPED: peer(GROUPED)}


def measure(files: Sequence[Path], tokenizer: Path, *, workers: int, rounds: int) -> dict[str, Any]:
    """All in turn."""
    from benchmarks.measuring import commands_in_turn, summary

    megabytes = sum(path.stat().st_size for path in files) / MEGABYTE
    turns = commands_in_turn(commands(files, tokenizer, workers), rounds=rounds)
    values: dict[str, Any] = {"megabytes": round(megabytes, 1), "workers": workers}
    medians = {name: statistics.median(turn.seconds for turn in found) for name, found in turns.items()}
    for name, found in turns.items():
        values[name] = {
            **summary([turn.seconds for turn in found]),
            "processor seconds": round(statistics.median(turn.processor_seconds for turn in found), 2),
            "MB/s a core": round(megabytes / medians[name] / workers, 2),
        }
        if name != OURS:
            values[f"times faster than {name}"] = round(medians[name] / medians[OURS], 2)
    return values


def new_tokenizer(files: Sequence[Path], folder: Path, vocab_size: int) -> Path:
    """A WordPiece tokenizer of the text, which all contestants use."""
    from bertsmith.recipes.train_tokenizer import train_tokenizer_run
    from bertsmith.tokenization.config import TokenizerConfig

    train_tokenizer_run([str(path) for path in files], folder, TokenizerConfig(vocab_size=vocab_size))
    return folder


def main() -> None:
    """Measure, print and write; or be a contestant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="text, in files of one kind")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer's folder; one is trained where none is given")
    parser.add_argument("--vocab-size", type=int, default=16_000, help="of the one that is trained")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--name", default="documentation", help="of the text, in the JSON")
    parser.add_argument("--contestant", choices=(MAPPED, GROUPED), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        run_peer(options.files, options.tokenizer, options.workers, in_blocks=options.contestant == GROUPED)
        return
    from benchmarks.measuring import write_part

    with tempfile.TemporaryDirectory() as name:
        files = options.files or [Path(name) / "documentation.txt"]
        if not options.files:
            write_documentation(files[0], 10 * MEGABYTE)
        tokenizer = options.tokenizer or new_tokenizer(files, Path(name) / "tokenizer", options.vocab_size)
        values = measure(files, tokenizer, workers=options.workers, rounds=options.rounds)
    write_part("preparing", options.name, values)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
