"""What the commands of all tasks do alike: items or rows go in, predictions are shown or written."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from bertsmith.cli.output import CountDisplay, note, result
from bertsmith.cli.prediction_display import prediction_lines, similarity_lines
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted_of

if TYPE_CHECKING:
    from bertsmith.model.config import TaskName
    from bertsmith.recipes.prediction.items import Given, Input
    from bertsmith.recipes.prediction.rows import RowResult
    from bertsmith.text.streams import Stream

_MOST_FAULTS = 5
_ASIDE = {"answer": ' --question "What?"', "choose": ' --choice "One." --choice "Another."'}
"""What a text needs beside it, in the example."""


@dataclass(frozen=True)
class Use:
    """How a model is used, whatever its task."""

    folder: Path
    source: str | None
    output: Path | None
    columns: dict[str, Any]
    """Of the input: `text`, `pair` and `encoding`."""
    device: str
    precision: str
    engine: str
    as_json: bool
    top_k: int | None = None


def predict(task: "TaskName", use: Use, items: Sequence[Any], given: "Given | None" = None) -> None:
    """Predict items, or the rows of the input; whatever is wrong with the options is told before a model is read."""
    if bool(items) == (use.source is not None):
        raise InputError(
            f"{task} takes texts, or a file of them with --input",
            "both" if items else "neither",
            f'Give bertsmith {task} DIR "A text."{_ASIDE.get(task, "")}, or bertsmith {task} DIR --input rows.jsonl.',
        )
    if use.source is None and any(value not in (None, "utf-8") for value in use.columns.values()):
        raise InputError(
            "Columns and an encoding are named for the rows of --input",
            "texts on the command line",
            "Leave them out, or give a file.",
        )
    if use.output is not None and use.source is None:
        raise InputError("--output goes with --input", "texts on the command line", "Leave it out, or give a file.")
    from bertsmith.recipes.predict import load_predictor
    from bertsmith.recipes.prediction.items import Given
    from bertsmith.recipes.prediction.outputs import refuse_unwritable, write_results
    from bertsmith.recipes.prediction.rows import predict_rows

    if use.output is not None:
        source = Path("/dev/stdin" if use.source == "-" else str(use.source))
        refuse_unwritable(use.output, task, source=source)
    found, first = None, []
    if use.source is not None and use.precision == "int8":
        # The model is judged by the first rows, before it predicts any.
        found = _input(task, use, given or Given())
        first = next(found.parts, [])
        items = [row.item for row in first if not isinstance(row.item, InputError)]
    predictor = load_predictor(
        task,
        use.folder,
        device=use.device,
        precision=use.precision,
        engine=use.engine,
        top_k=use.top_k,
        judge_on=items,
        # A few texts are sooner predicted than it is known which engine would be faster.
        probes=use.source is not None,
        notify=note,
    )
    for line in getattr(predictor, "notes", ()):
        note(line)
    if use.source is None:
        predictions = [prediction.values for prediction in predictor(items)]
        for values in predictions:
            _show(task, values, use)
        if task == "embed" and not use.as_json:
            for line in similarity_lines([values["embedding"] for values in predictions]):
                typer.echo(line)
        return
    found = found or _input(task, use, given or Given())
    found.refuse_unless_pairs_are(getattr(predictor, "pairs", None))
    parts = chain([first] if first else [], found.parts)
    results: Iterable[RowResult] = predict_rows(predictor, parts, ahead=found.can_wait)
    if use.output is not None:
        results = write_results(results, use.output, task)
    _show_rows(task, results, use, found.about_rows)
    if use.output is not None:
        note(f"written: {use.output}")


def _input(task: str, use: Use, given: "Given") -> "Input":
    from bertsmith.examples.table_config import TableConfig
    from bertsmith.recipes.prediction.items import file_input, stream_input

    config = TableConfig.parse(use.columns, where="the options")
    if use.source == "-":
        return stream_input(task, cast("Stream", sys.stdin.buffer), config, given=given)
    found = file_input(task, Path(str(use.source)), config, given=given)
    note(f"columns: {found.columns}")
    return found


def _show_rows(task: str, results: "Iterable[RowResult]", use: Use, about_rows: int | None) -> None:
    progress = None if use.output is None else CountDisplay(about_rows)
    num_rows = num_faults = num_cut = num_long = 0
    try:
        for row in results:
            num_rows += 1
            if row.fault is not None:
                num_faults += 1
                if num_faults <= _MOST_FAULTS:
                    _note_beside(progress, f"row {row.number}: {row.fault}")
            num_cut += row.prediction is not None and row.prediction.cut
            num_long += row.num_long_words > 0
            if progress is not None:
                progress(num_rows)
            elif row.prediction is not None or use.as_json:
                _show(task, row.values, use)
            else:
                typer.echo(f"–\t\trow {row.number} could not be used")
    finally:
        if progress is not None:
            progress.close()
    if num_faults:
        note(counted_of(num_faults, num_rows, "row", "could not be used", "could not be used"))
    if num_cut:
        cut = ("is longer than the model sees and was cut", "are longer than the model sees and were cut")
        note(counted_of(num_cut, num_rows, "row", *cut))
    if num_long:
        longer = "a word of more characters than the tokenizer allows, which becomes unknown (max_word_characters)"
        note(counted_of(num_long, num_rows, "row", f"has {longer}", f"have {longer}"))


def _note_beside(progress: CountDisplay | None, message: str) -> None:
    if progress is not None:
        progress.close()
    note(message)


def _show(task: str, values: dict[str, Any], use: Use) -> None:
    if use.as_json:
        result(values, as_json=True)
        return
    for line in prediction_lines(task, values, top_k=1 if use.top_k is None else use.top_k):
        typer.echo(line)
