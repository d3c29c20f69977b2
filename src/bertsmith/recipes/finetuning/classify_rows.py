"""Classifying a file or a stream of texts: in bounded memory, in order, one result a row."""

import contextlib
import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from bertsmith.examples.task_tables import Columns, OptionNames, TableConfig, TaskRow, read_texts, task_row
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import disk_room
from bertsmith.inference.classify import ClassifyPredictor, ClassPrediction
from bertsmith.text.tables import PLAIN_COLUMN, TableRow

_ROWS_AT_ONCE = 2048
"""Rows that are held together, and sorted by length inside the model."""
_CSV = {".csv": ",", ".tsv": "\t"}
_OPTIONS = OptionNames(text="--text-column", pair="--pair-column")


@dataclass(frozen=True)
class RowResult:
    """What came of one row: a prediction, or why there is none."""

    number: int
    place: str
    prediction: ClassPrediction | None
    fault: InputError | None

    @property
    def values(self) -> dict[str, Any]:
        """As plain values: the prediction's fields, or ``row``, ``place`` and ``error``."""
        if self.prediction is not None:
            return prediction_values(self.prediction)
        error = {} if self.fault is None else {"rule": self.fault.rule, "received": self.fault.received}
        do = {} if self.fault is None else {"do": self.fault.do}
        return {"row": self.number, "place": self.place, "error": error | do}


def prediction_values(prediction: ClassPrediction) -> dict[str, Any]:
    """A prediction as plain values; without ``pair`` where the text stands alone."""
    values = asdict(prediction)
    if prediction.pair is None:
        del values["pair"]
    return values


def classify_file(
    predictor: ClassifyPredictor, path: Path, config: TableConfig = TableConfig()
) -> tuple[Columns, Iterator[RowResult]]:
    """Classify the rows of a file.

    Args:
        predictor: the model.
        path: .txt with one text a line, .jsonl, .csv, .tsv or .parquet.
        config: which columns hold the texts, and the file's encoding.

    Returns:
        the columns, and a result for each row in the order of the file. A row that cannot be used gives its fault, and
        the others go on.

    Raises:
        InputError: if the file cannot be read or its columns not be found, and as `classify_rows`.
    """
    if not path.is_file():
        raise InputError("--input must name a file, or be - for standard input", path, "Check the path.")
    columns, rows = read_texts(path, config, options=_OPTIONS)
    return columns, classify_rows(predictor, rows, lambda row: task_row(path, row, columns, options=_OPTIONS))


def classify_stream(predictor: ClassifyPredictor, lines: Iterable[bytes]) -> Iterator[RowResult]:
    """Classify lines in UTF-8, one text each, such as those of standard input; raises as `classify_rows`."""
    name = Path("standard input")
    columns = Columns(PLAIN_COLUMN, None, None)
    return classify_rows(predictor, _lines(lines), lambda row: task_row(name, row, columns))


def classify_rows(
    predictor: ClassifyPredictor, rows: Iterable[TableRow], as_task: Callable[[TableRow], TaskRow]
) -> Iterator[RowResult]:
    """Classify rows, a few thousand at a time.

    Raises:
        InputError: at the end, if there was no row that could be used.
    """
    remaining = iter(rows)
    num_rows = num_used = 0
    while held := list(islice(remaining, _ROWS_AT_ONCE)):
        found: list[TaskRow | InputError] = []
        for row in held:
            try:
                found.append(as_task(row))
            except InputError as fault:
                found.append(fault)
        requests = predictor.prepare([one.texts for one in found if isinstance(one, TaskRow)])
        num_rows, num_used = num_rows + len(held), num_used + len(requests)
        probabilities = predictor.run([request.window for request in requests])
        predictions = iter(
            [predictor.decode(request, row) for request, row in zip(requests, probabilities, strict=True)]
        )
        for row, one in zip(held, found, strict=True):
            if isinstance(one, InputError):
                yield RowResult(row.number, row.place, None, one)
            else:
                yield RowResult(row.number, row.place, next(predictions), None)
    if not num_used:
        raise InputError("There must be a row that can be used", f"{num_rows} rows, and none can", "Mend the input.")


def refuse_unwritable(path: Path) -> None:
    """Raise an `InputError` where results could not be written to a place, which is left as it is."""
    with _writing(path):
        if not path.parent.is_dir():
            raise InputError(
                "--output must lie in a folder that exists", path, "Make the folder, or choose another place."
            )
        if path.exists() and not path.is_file():
            raise InputError("--output must be a file", f"{path}, which is none", "Choose another place.")
        temporary = _temporary(path)
        try:
            temporary.touch()
        finally:
            temporary.unlink(missing_ok=True)


def write_results(results: Iterable[RowResult], path: Path) -> Iterator[RowResult]:
    """Write results as they come: .csv and .tsv with text, pair, label, score and error, else JSON lines.

    The file appears when all results have been written, and not before: where they end in an error, there is none. The
    results are given on.

    Raises:
        InputError: if the file cannot be written; as far as that can be told, before the first result is asked for.
    """
    refuse_unwritable(path)
    temporary = _temporary(path)
    try:
        with _writing(path):
            with open(temporary, "w", encoding="utf-8", newline="") as file:
                delimiter = _CSV.get(path.suffix.lower())
                write = _json_writer(file) if delimiter is None else _csv_writer(file, delimiter)
                for result in results:
                    write(result)
                    yield result
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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


def _json_writer(file: IO[str]) -> Callable[[RowResult], None]:
    def write(result: RowResult) -> None:
        file.write(json.dumps(result.values, ensure_ascii=False) + "\n")

    return write


def _csv_writer(file: IO[str], delimiter: str) -> Callable[[RowResult], None]:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["row", "text", "pair", "label", "score", "error"])

    def write(result: RowResult) -> None:
        found = result.prediction
        if found is None:
            writer.writerow([result.number, "", "", "", "", str(result.fault)])
        else:
            writer.writerow([result.number, found.text, found.pair or "", found.label, f"{found.score:.6f}", ""])

    return write


def _lines(lines: Iterable[bytes]) -> Iterator[TableRow]:
    for number, line in enumerate(lines, 1):
        place = f"line {number}"
        try:
            yield TableRow(number, place, {PLAIN_COLUMN: line.decode("utf-8").rstrip("\r\n")})
        except UnicodeDecodeError as error:
            received = f"standard input, {place}, with the byte 0x{line[error.start]:02X}"
            yield TableRow(number, place, {}, InputError("Text must be UTF-8", received, "Re-encode it."))
