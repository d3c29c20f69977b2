"""Commands that use a fine-tuned model on texts, files and streams: one for each task."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bertsmith.cli.options import Device, Engine, Json, PrecisionOfUse, Predicting
from bertsmith.cli.predicting import Use, predict
from bertsmith.foundation.errors import InputError

Texts = Annotated[list[str] | None, typer.Argument(help="Texts.")]
Pair = Annotated[str | None, typer.Option(help="The second text, for a model of pairs.")]
Source = Annotated[str | None, typer.Option("--input", help="A file of rows, or - for lines on standard input.")]
TextSource = Annotated[
    str | None,
    typer.Option("--input", help='A file of rows, or - for lines: texts, or JSON objects with "text" and "pair".'),
]
Output = Annotated[Path | None, typer.Option(help="Write results there: .csv, .tsv, else JSON lines.")]
TextColumn = Annotated[str | None, typer.Option(help="The file's column of the text; guessed if not given.")]
PairColumn = Annotated[str | None, typer.Option(help="The file's column of the second text.")]
Encoding = Annotated[str, typer.Option(help="Encoding of the input.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (classify, regress, multilabel, tag, answer, choose, embed):
        app.command(command.__name__)(command)


def classify(
    folder: Predicting,
    texts: Texts = None,
    pair: Pair = None,
    source: TextSource = None,
    output: Output = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    encoding: Encoding = "utf-8",
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="How many classes are shown.")] = 1,
    device: Device = "auto",
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Tell the class of texts, or of every row of a file.

    Example: bertsmith classify my-classifier "A film to remember."
    """
    columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
    use = Use(folder, source, output, columns, device, precision, engine, as_json, top_k)
    predict("classify", use, _texts_or_pair(texts, pair))


def regress(
    folder: Predicting,
    texts: Texts = None,
    pair: Pair = None,
    source: TextSource = None,
    output: Output = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Tell a number for texts, or for every row of a file.

    Example: bertsmith regress my-regressor "A boat for sale, as good as new."
    """
    columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
    predict(
        "regress", Use(folder, source, output, columns, device, precision, engine, as_json), _texts_or_pair(texts, pair)
    )


def multilabel(
    folder: Predicting,
    texts: Texts = None,
    pair: Pair = None,
    source: TextSource = None,
    output: Output = None,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    encoding: Encoding = "utf-8",
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="At least so many labels are shown.")] = 0,
    device: Device = "auto",
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Tell all labels of texts, or of every row of a file.

    Example: bertsmith multilabel my-labeller "Rain and bread."
    """
    columns = {"text": text_column, "pair": pair_column, "encoding": encoding}
    use = Use(folder, source, output, columns, device, precision, engine, as_json, top_k)
    predict("multilabel", use, _texts_or_pair(texts, pair))


def tag(
    folder: Predicting,
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
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Label the words of texts, or of every row of a file: entities are marked where they stand.

    Example: bertsmith tag my-tagger "Angela Merkel lives in Berlin."
    """
    columns = {"text": text_column, "encoding": encoding}
    predict("tag", Use(folder, source, output, columns, device, precision, engine, as_json), texts or [])


def answer(
    folder: Predicting,
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
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
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
    use = Use(folder, source, output, columns | {"encoding": encoding}, device, precision, engine, as_json, top_k)
    items = [(str(question), text) for text in contexts]
    predict("answer", use, items, Given(question=question))


def choose(
    folder: Predicting,
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
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
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
    use = Use(folder, source, output, columns, device, precision, engine, as_json, top_k)
    predict("choose", use, [(text, given) for text in texts or []], Given(choices=given))


def embed(
    folder: Predicting,
    texts: Texts = None,
    source: Source = None,
    output: Annotated[Path | None, typer.Option(help="Write vectors there: .npy, .csv, .tsv, else JSON lines.")] = None,
    text_column: TextColumn = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    precision: PrecisionOfUse = "fp32",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Turn texts, or every row of a file, into vectors that are near for texts that are alike.

    Example: bertsmith embed my-embedder --input texts.txt --output vectors.npy
    """
    columns = {"text": text_column, "encoding": encoding}
    predict("embed", Use(folder, source, output, columns, device, precision, engine, as_json), texts or [])


def _texts_or_pair(texts: list[str] | None, pair: str | None) -> list[Any]:
    if pair is None:
        return list(texts or [])
    if len(texts or []) != 1:
        raise InputError(
            "--pair goes with one text", f"{len(texts or [])} texts", "Give pairs as rows of an input with --input."
        )
    return [(text, pair) for text in texts or []]
