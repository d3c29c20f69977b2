"""Commands that use a fine-tuned model on texts, files and streams: one for each task."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bertsmith.cli.options import Device, Folder, Json, Precision
from bertsmith.cli.output import RowDisplay, note, result
from bertsmith.cli.prediction_display import prediction_lines, similarity_lines
from bertsmith.foundation.errors import InputError

if TYPE_CHECKING:
    from bertsmith.recipes.prediction.items import Given, Input
    from bertsmith.recipes.prediction.rows import RowResult
    from bertsmith.text.streams import Stream

Texts = Annotated[list[str] | None, typer.Argument(help="Texts.")]
Pair = Annotated[str | None, typer.Option(help="The second text, for a model of pairs.")]
Source = Annotated[str | None, typer.Option("--input", help="A file of rows, or - for lines on standard input.")]
Output = Annotated[Path | None, typer.Option(help="Write results there: .csv, .tsv, else JSON lines.")]
TextColumn = Annotated[str | None, typer.Option(help="The file's column of the text; guessed if not given.")]
PairColumn = Annotated[str | None, typer.Option(help="The file's column of the second text.")]
Encoding = Annotated[str, typer.Option(help="Encoding of the input.")]
_MOST_FAULTS = 5


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (classify, regress, multilabel, tag, answer, choose, embed):
        app.command(command.__name__)(command)


@dataclass(frozen=True)
class _Use:
    """How a model is used, whatever its task."""

    folder: Path
    source: str | None
    output: Path | None
    columns: dict[str, Any]
    """Of the input: `text`, `pair` and `encoding`."""
    device: str
    precision: str
    as_json: bool
    top_k: int | None = None


def classify(
    folder: Folder,
    texts: Texts = None,
    pair: Pair = None,
    source: Source = None,
    output: Output = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    encoding: Encoding = "utf-8",
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="How many classes are shown.")] = 1,
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Tell the class of texts, or of every row of a file.

    Example: bertsmith classify my-classifier "A film to remember."
    """
    columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
    use = _Use(folder, source, output, columns, device, precision, as_json, top_k)
    _predict("classify", use, _texts_or_pair(texts, pair))


def regress(
    folder: Folder,
    texts: Texts = None,
    pair: Pair = None,
    source: Source = None,
    output: Output = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Tell a number for texts, or for every row of a file.

    Example: bertsmith regress my-regressor "A boat for sale, as good as new."
    """
    columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
    _predict("regress", _Use(folder, source, output, columns, device, precision, as_json), _texts_or_pair(texts, pair))


def multilabel(
    folder: Folder,
    texts: Texts = None,
    pair: Pair = None,
    source: Source = None,
    output: Output = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    encoding: Encoding = "utf-8",
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="At least so many labels are shown.")] = 0,
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Tell all labels of texts, or of every row of a file.

    Example: bertsmith multilabel my-labeller "Rain and bread."
    """
    columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
    use = _Use(folder, source, output, columns, device, precision, as_json, top_k)
    _predict("multilabel", use, _texts_or_pair(texts, pair))


def tag(
    folder: Folder,
    texts: Texts = None,
    source: Annotated[
        str | None,
        typer.Option("--input", help="A file of texts or of words (.conll, .conllu, lists), or - for lines."),
    ] = None,
    output: Output = None,
    text_column: Annotated[
        str | None, typer.Option(help="The file's column of the text or the words; guessed if not given.")
    ] = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Label the words of texts, or of every row of a file: entities are marked where they stand.

    Example: bertsmith tag my-tagger "Angela Merkel lives in Berlin."
    """
    columns = {"text": text_column, "encoding": encoding}
    _predict("tag", _Use(folder, source, output, columns, device, precision, as_json), texts or [])


def answer(
    folder: Folder,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts that may hold the answer.")] = None,
    question: Annotated[str | None, typer.Option(help="The question, about every text.")] = None,
    context: Annotated[str | None, typer.Option(help="A text that may hold the answer.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--input", help="SQuAD's JSON, a table, or - for lines: JSON objects, or texts with --question."),
    ] = None,
    output: Output = None,
    question_column: Annotated[str | None, typer.Option(help="The file's column of the question.")] = None,
    context_column: Annotated[str | None, typer.Option(help="The file's column of the text.")] = None,
    encoding: Encoding = "utf-8",
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=1, help="How many answers are told: one, or five with --json.")
    ] = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Answer questions out of texts, with the place of each answer.

    Example: bertsmith answer my-reader --question "Where does she live?" --context "She lives in Berlin."
    """
    from bertsmith.recipes.prediction.items import Given

    contexts = [*(texts or []), *([context] if context is not None else [])]
    if contexts and question is None:
        raise InputError(
            "answer needs a question about the text", "a text alone", 'Ask it with --question "What is it?".'
        )
    asks_rows = question is not None and source is not None
    columns = {"text": context_column} if asks_rows else {"text": question_column, "pair": context_column}
    if asks_rows and question_column is not None:
        raise InputError(
            "--question-column is for questions out of the file", "--question too", "Leave one of them out."
        )
    use = _Use(folder, source, output, columns | {"encoding": encoding}, device, precision, as_json, top_k)
    items = [(str(question), text) for text in contexts]
    _predict("answer", use, items, Given(question=question))


def choose(
    folder: Folder,
    texts: Texts = None,
    choices: Annotated[list[str] | None, typer.Option("--choice", help="A choice; give two or more.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--input", help="A table, or - for lines: JSON objects, or texts with --choice."),
    ] = None,
    output: Output = None,
    text_column: TextColumn = None,
    start_column: Annotated[
        str | None, typer.Option(help="The file's column of the start of the sentence that each choice ends.")
    ] = None,
    encoding: Encoding = "utf-8",
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="How many choices are shown.")] = 1,
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Choose what fits a text best, or for every row of a file.

    Example: bertsmith choose my-chooser "It rained." --choice "She opened her umbrella." --choice "She closed it."
    """
    from bertsmith.recipes.prediction.items import Given

    given = tuple(choices or ())
    if (texts and len(given) < 2) or len(given) == 1:
        raise InputError(
            "choose needs two choices at least",
            f"{len(given)}",
            'Give each by itself: --choice "One." --choice "Another.".',
        )
    columns = {"text": text_column, "pair": start_column, "encoding": encoding}
    use = _Use(folder, source, output, columns, device, precision, as_json, top_k)
    _predict("choose", use, [(text, given) for text in texts or []], Given(choices=given))


def embed(
    folder: Folder,
    texts: Texts = None,
    source: Source = None,
    output: Annotated[Path | None, typer.Option(help="Write vectors there: .npy, .csv, .tsv, else JSON lines.")] = None,
    text_column: TextColumn = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    precision: Precision = "fp32",
    as_json: Json = False,
) -> None:
    """Turn texts, or every row of a file, into vectors that are near for texts that are alike.

    Example: bertsmith embed my-embedder --input texts.txt --output vectors.npy
    """
    columns = {"text": text_column, "encoding": encoding}
    _predict("embed", _Use(folder, source, output, columns, device, precision, as_json), texts or [])


def _texts_or_pair(texts: list[str] | None, pair: str | None) -> list[Any]:
    if pair is None:
        return list(texts or [])
    if len(texts or []) != 1:
        raise InputError(
            "--pair goes with one text", f"{len(texts or [])} texts", "Give pairs as columns of a file with --input."
        )
    return [(text, pair) for text in texts or []]


def _predict(task: str, use: _Use, items: Sequence[Any], given: "Given | None" = None) -> None:
    """Predict items, or the rows of the input; whatever is wrong with the options is told before a model is read."""
    if bool(items) == (use.source is not None):
        raise InputError(
            f"{task} takes texts, or a file of them with --input",
            "both" if items else "neither",
            f'For example: bertsmith {task} DIR "A text." or bertsmith {task} DIR --input texts.txt.',
        )
    if use.output is not None and use.source is None:
        raise InputError("--output goes with --input", "texts on the command line", "Leave it out, or give a file.")
    from bertsmith.recipes.predict import load_predictor
    from bertsmith.recipes.prediction.items import Given
    from bertsmith.recipes.prediction.outputs import refuse_unwritable, write_results
    from bertsmith.recipes.prediction.rows import predict_rows

    if use.output is not None:
        refuse_unwritable(use.output, task)
    predictor = load_predictor(task, use.folder, device=use.device, precision=use.precision, top_k=use.top_k)
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
    found = _input(task, use, given or Given())
    results: Iterable[RowResult] = predict_rows(predictor, found.parts, ahead=found.can_wait)
    if use.output is not None:
        results = write_results(results, use.output, task)
    _show_rows(task, results, use, found.about_rows)
    if use.output is not None:
        note(f"written: {use.output}")


def _input(task: str, use: _Use, given: "Given") -> "Input":
    from bertsmith.examples.task_tables import TableConfig
    from bertsmith.recipes.prediction.items import file_input, stream_input

    config = TableConfig.parse(use.columns, where="the options")
    if use.source == "-":
        return stream_input(task, cast("Stream", sys.stdin.buffer), config.encoding, given=given)
    found = file_input(task, Path(str(use.source)), config, given=given)
    note(f"columns: {found.columns}")
    return found


def _show_rows(task: str, results: "Iterable[RowResult]", use: _Use, about_rows: int | None) -> None:
    progress = None if use.output is None else RowDisplay(about_rows)
    num_rows = num_faults = num_cut = 0
    try:
        for row in results:
            num_rows += 1
            if row.fault is not None:
                num_faults += 1
                if num_faults <= _MOST_FAULTS:
                    _note_beside(progress, f"row {row.number}: {row.fault}")
            num_cut += row.prediction is not None and row.prediction.cut
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
        note(f"{num_faults:,} of {num_rows:,} rows could not be used")
    if num_cut:
        note(f"{num_cut:,} of {num_rows:,} rows are longer than the model sees and were cut")


def _note_beside(progress: RowDisplay | None, message: str) -> None:
    if progress is not None:
        progress.close()
    note(message)


def _show(task: str, values: dict[str, Any], use: _Use) -> None:
    if use.as_json:
        result(values, as_json=True)
        return
    for line in prediction_lines(task, values, top_k=1 if use.top_k is None else use.top_k):
        typer.echo(line)
