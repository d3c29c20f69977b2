"""Results of rows as a file: JSON lines, a table, or a matrix of vectors. It is whole or it is not there."""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from bertsmith.folders.model_folder import CONFIG
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, disk_room, place_of_file, sealed_folder_of
from bertsmith.inference.embed import Embedding
from bertsmith.inference.predictor import Prediction
from bertsmith.recipes.prediction.rows import RowResult
from bertsmith.recipes.run_folder import is_file_of_run
from bertsmith.recipes.separated_rows import separated_row

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_VECTORS = ".npy"
_UNWRITTEN = {
    **dict.fromkeys((".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".ods", ".npz"), "which names another layout"),
    **dict.fromkeys((".gz", ".zst", ".bz2", ".xz", ".zip", ".7z", ".lz4"), "which names a compressed file"),
}
"""Endings under which results would not be what the name says, with what it says."""
_TABLES: dict[str, tuple[str, ...]] = {
    "classify": ("text", "pair", "label", "score", "scores"),
    "multilabel": ("text", "pair", "labels", "scores"),
    "regress": ("text", "pair", "value"),
    "tag": ("text", "words", "labels", "entities"),
    "answer": ("question", "answer", "start", "end", "score", "no_answer_score"),
    "choose": ("text", "start", "choices", "choice", "index", "score"),
    "embed": ("text", "embedding"),
}
"""Columns of a table of results. What is no text or number is written as JSON."""

Write = Callable[[RowResult], None]


def refuse_unwritable(path: Path, task: str, *, source: Path | None = None) -> None:
    """Raise an `InputError` where results could not be written to a place, which is left as it is, would not be what
    its name says, or would take the place of what must stay: of their source, or of a part of a model, a corpus or a
    run."""
    with _writing(path):
        if not path.parent.is_dir():
            raise InputError(
                "--output must lie in a folder that exists", path, "Make the folder, or choose another place."
            )
        place = _place(path)
        if source is not None and _is_part_of(source, place):
            raise InputError(
                "--output must not replace what is read", f"{path}, which is the --input", "Choose another place."
            )
        for way in (Path(os.path.abspath(path)), place):
            _refuse_part_of_folder(way)
        _refuse_ending(path, task)
        temporary = _temporary(place)
        try:
            temporary.touch()
        finally:
            temporary.unlink(missing_ok=True)


def write_results(results: Iterable[RowResult], path: Path, task: str) -> Iterator[RowResult]:
    """Write results as they come.

    .csv and .tsv have a row each with the task's columns and ``error``; .npy the vectors of an embedder as fp32, where
    a row that could not be used is NaN throughout; any other name JSON lines. The file appears when all results have
    been written, and not before: where they end in an error, there is none. The results are given on.

    Args:
        results: in their order.
        path: the file.
        task: what was predicted.

    Raises:
        InputError: if the file cannot be written; as far as that can be told, before the first result is asked for.
    """
    refuse_unwritable(path, task)
    place = _place(path)
    temporary = _temporary(place)
    try:
        with _writing(path):
            with _writer(temporary, path.suffix.lower(), task) as write:
                for result in results:
                    write(result)
                    yield result
            os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


def _place(path: Path) -> Path:
    place = place_of_file(path)
    if place is None:
        raise InputError(
            "--output must be a file",
            f"{path}, which is no ordinary file",
            "Choose another place, or leave --output out and redirect standard output.",
        )
    return place


def _is_part_of(source: Path, place: Path) -> bool:
    """Whether a file is the source of rows, by whatever name, or lies in the folder that is."""
    if not (os.path.exists(place) and os.path.exists(source)):
        return False
    return place.samefile(source) or place.is_relative_to(source.resolve())


def _refuse_part_of_folder(path: Path) -> None:
    """Raise an `InputError` for a file that belongs to a model, a checkpoint, a corpus or a run."""
    # Whatever lies beside such a file may be read with it, and a person's project may have one of its own.
    holders = [name for name in (MANIFEST, CONFIG) if (path.parent / name).exists()]
    beside = f"{path}, beside {holders[0]}" if holders else path
    if holders or sealed_folder_of(path) is not None or is_file_of_run(path):
        raise InputError(
            f"--output must not be part of a model, a checkpoint, a corpus or a run, nor lie beside a {MANIFEST} or "
            f"{CONFIG}, which they have",
            beside,
            "Choose another place.",
        )


def _refuse_ending(path: Path, task: str) -> None:
    """Raise an `InputError` for a name that tells of something else than results are written as."""
    suffix, is_embedder = path.suffix.lower(), task == "embed"
    named = _UNWRITTEN if is_embedder else _UNWRITTEN | {_VECTORS: "a file of vectors"}
    if suffix in named:
        raise InputError(
            f"--output must be .csv, .tsv{f', {_VECTORS}' if is_embedder else ''} or JSON lines for {task}",
            f"{path}, {named[suffix]}",
            "Name it .jsonl, for example.",
        )


def _temporary(path: Path) -> Path:
    return path.with_name(f".partial-{os.getpid()}-{path.name}")


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn whatever the system refuses inside the block into an `InputError`."""
    try:
        with disk_room(path.parent):
            yield
    except OSError as error:
        raise InputError(
            "--output must be a file that can be written",
            f"{path} ({error.strerror or error})",
            "Choose another place, or mend the rights of this one.",
        ) from error


@contextlib.contextmanager
def _writer(path: Path, suffix: str, task: str) -> Iterator[Write]:
    if suffix == _VECTORS:
        with open(path, "wb") as file:
            vectors = _VectorWriter(file)
            yield vectors.write
            vectors.close()
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        delimiter = _DELIMITERS.get(suffix)
        yield _json_writer(file) if delimiter is None else _table_writer(file, delimiter, _TABLES[task])


def _json_writer(file: IO[str]) -> Write:
    def write(result: RowResult) -> None:
        file.write(json.dumps(result.values, ensure_ascii=False) + "\n")

    return write


def _table_writer(file: IO[str], delimiter: str, columns: tuple[str, ...]) -> Write:
    file.write(separated_row(["row", *columns, "error"], delimiter))

    def write(result: RowResult) -> None:
        values = {} if result.prediction is None else _with_lists(result.prediction.values)
        cells = [_cell(values.get(name)) for name in columns]
        fault = "" if result.fault is None else str(result.fault)
        file.write(separated_row([result.number, *cells, fault], delimiter))

    return write


def _with_lists(values: dict[str, Any]) -> dict[str, Any]:
    """Tagged words as a list of words and one of labels, as a table of words holds them."""
    words = values.get("words")
    if words is None:
        return values
    return values | {"words": [word["word"] for word in words], "labels": [word["label"] for word in words]}


def _cell(value: Any) -> str | int | float:
    match value:
        case None:
            return ""
        case str() | int() | float():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def _embedding(prediction: Prediction) -> Any:
    return prediction.embedding if isinstance(prediction, Embedding) else prediction.values["embedding"]


class _VectorWriter:
    """Writes a matrix whose number of rows shows only at the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._num_rows = 0
        self._size = 0
        """Columns; 0 until the first vector."""

    def write(self, result: RowResult) -> None:
        """Add a row."""
        if result.prediction is not None:
            vector = np.asarray(_embedding(result.prediction), "<f4")
            if not self._size:
                self._size = len(vector)
                self._header()
                for _ in range(self._num_rows):
                    self._file.write(self._nothing)
            self._file.write(vector.tobytes())
        elif self._size:
            self._file.write(self._nothing)
        self._num_rows += 1

    def close(self) -> None:
        """Write the number of rows where it belongs."""
        self._file.seek(0)
        self._header()

    @property
    def _nothing(self) -> bytes:
        return np.full(self._size, np.nan, "<f4").tobytes()

    def _header(self) -> None:
        # numpy leaves room in it for any number of rows, so that it stays as long as it is.
        values = {"descr": "<f4", "fortran_order": False, "shape": (self._num_rows, self._size)}
        np.lib.format.write_array_header_1_0(self._file, values)
