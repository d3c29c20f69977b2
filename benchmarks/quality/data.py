"""Published data sets, as their folders hold them, made into the files that both sides read.

    python -m benchmarks.quality.data FOLDER --out DATA

FOLDER holds `en_trec`, `en_snips`, `en_sst2` and `en_pos_ewt` (the others are read as they are), each with the files of
its publication. A folder that is not there is left out, and said.
"""

import argparse
import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_SST2_ROWS = 10_000


def main() -> None:
    """Make what can be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[Path, Path], None]] = {
        "en_trec": _trec, "en_snips": _snips, "en_sst2": _sst2, "en_pos_ewt": _ewt,
    }  # fmt: skip
    for name, make in makers.items():
        if (args.folder / name).is_dir():
            make(args.folder / name, args.out)
        else:
            print(f"{name}: not in {args.folder}")


def _trec(folder: Path, out: Path) -> None:
    """The six coarse classes; a line is ``CLASS:fine question``, in Latin-1."""
    for part in ("train", "test"):
        lines = (folder / f"{part}.txt").read_text(encoding="latin-1").splitlines()
        rows = [line.split(" ", 1) for line in lines if line]
        _write(out / f"trec-{part}.tsv", ((text, label.split(":")[0]) for label, text in rows))


def _snips(folder: Path, out: Path) -> None:
    """The intents; some of the text is no longer UTF-8, and such bytes are replaced."""
    for part in ("train", "valid", "test"):
        texts = (folder / f"{part}.seq.in").read_text(encoding="utf-8", errors="replace").splitlines()
        labels = (folder / f"{part}.label").read_text(encoding="utf-8").splitlines()
        _write(out / f"snips-{part}.tsv", ((a.strip(), b.strip()) for a, b in zip(texts, labels, strict=True)))


def _sst2(folder: Path, out: Path) -> None:
    """All training rows of GLUE (its `train` and `dev` here together), and the first ten thousand of `train`."""
    parts = {part: list(_sst2_rows(folder / f"{part}.tsv")) for part in ("train", "dev", "test")}
    _write(out / "sst2-all-train.tsv", parts["train"] + parts["dev"])
    _write(out / "sst2-10k-train.tsv", parts["train"][:_SST2_ROWS])
    _write(out / "sst2-test.tsv", parts["test"])


def _sst2_rows(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        text, label = line.split("\t")
        yield text.strip(), label


def _ewt(folder: Path, out: Path) -> None:
    """A word and its part of speech a line: CoNLL by another name."""
    for part in ("train", "dev", "test"):
        text = (folder / f"{part}.tsv").read_text(encoding="utf-8")
        (out / f"ewt-{part}.conll").write_text(text, encoding="utf-8")


def _write(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
