"""What a predictor takes, out of the rows of a file or a stream: which column holds what, for each task."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bertsmith.examples.choice_tables import ChoiceColumns, ChoiceItem, choice_row, read_choices
from bertsmith.examples.question_tables import CONTEXT_COLUMNS, open_questions, question_of
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.tagged_lists import is_table
from bertsmith.examples.tagged_rows import read_words
from bertsmith.examples.task_columns import SAMPLE_ROWS, Columns, named_column, refuse_unlike
from bertsmith.examples.task_tables import open_rows, read_texts, task_row
from bertsmith.examples.written_lists import read_list
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.prediction.rows import ItemRow, held_together
from bertsmith.text.arrow_files import is_dataset_folder
from bertsmith.text.questions import is_question_file
from bertsmith.text.separated import separator_note
from bertsmith.text.sources import file_kind
from bertsmith.text.streams import STREAM, LinesAre, Stream, stream_rows
from bertsmith.text.tables import PLAIN_COLUMN, TableRow, about_rows
from bertsmith.text.tagged import TaggedSentence

_NAMES: dict[str, OptionNames] = {
    "answer": OptionNames(text="--question-column", pair="--context-column"),
    "choose": OptionNames(text="--text-column", pair="--start-column"),
}
_TEXT_NAMES = OptionNames(text="--text-column", pair="--pair-column")
_CONTEXT_NAMES = OptionNames(text="--context-column", pair="--question-column")

_TASKS_OF_PAIRS = ("classify", "regress", "multilabel")

Make = Callable[[TableRow], Any]


@dataclass(frozen=True)
class Given:
    """What is the same for every row, because it was said beside the input."""

    question: str | None = None
    """Asked of every row, which then holds a context alone."""
    choices: tuple[str, ...] = ()
    """From which one is chosen for every row, which then holds a text alone."""


@dataclass(frozen=True)
class Input:
    """The rows of an input as a predictor takes them."""

    columns: str
    """What is read from where, to be said."""
    parts: Iterator[list[ItemRow]]
    """Rows that are held together."""
    can_wait: bool
    """Whether later rows may be read before earlier ones are answered: not so where somebody types them."""
    about_rows: int | None
    """About how many rows there are; None where that is not known."""
    pairs: bool | None = None
    """Whether each row is a pair of texts, and not one that stands alone; None where rows differ or are neither."""

    def refuse_unless_pairs_are(self, expected: bool | None) -> None:
        """Raise an `InputError` for pairs where a model was trained on texts that stand alone, and the other way round.

        Args:
            expected: whether it was trained on pairs; None where that is not known.
        """
        refuse_unlike(expected, self.pairs, f"a file with {self.columns}", _TEXT_NAMES)


def file_input(task: str, path: Path, config: TableConfig = TableConfig(), *, given: Given = Given()) -> Input:
    """Open a file of rows to be predicted.

    Args:
        task: the predictor's.
        path: .txt with one text a line, .jsonl, .csv, .tsv, .parquet or the folder of a saved data set's split; for
            answer also SQuAD's JSON, for tag also .conll and .conllu.
        config: which columns hold what: ``text`` and ``pair`` are question and context for answer, and context and the
            start of the sentence for choose.
        given: what is the same for every row.

    Raises:
        InputError: if the file cannot be read or its columns not be found.
    """
    if not path.is_file() and not is_dataset_folder(path):
        raise InputError("--input must name a file, or be - for standard input", path, "Check the path.")
    if given.question is not None and is_question_file(path):
        raise InputError(
            "--question is asked of texts, and a .json file holds questions of its own",
            f"--question with {path}",
            "Leave --question out, or give a file of texts.",
        )
    columns, rows, pairs = _opened(task, path, config, given)
    # Of sentences with a word a line, and of questions in one document, the lines say nothing.
    counted = task != "tag" or _is_text_table(path, config)
    about = about_rows(path, config.encoding) if counted else None
    columns += separator_note(path, config.encoding)
    return Input(columns, held_together(rows), can_wait=True, about_rows=about, pairs=pairs)


def stream_input(task: str, stream: Stream, config: TableConfig = TableConfig(), *, given: Given = Given()) -> Input:
    """Open a stream of lines to be predicted, such as standard input: one text each, one JSON object each where a task
    takes more than a text, and either where it takes a text or a pair.

    Args:
        task: the predictor's.
        stream: the lines.
        config: the lines' encoding, and which names hold what in objects; else ``text`` and the like.
        given: what is the same for every line.

    Raises:
        InputError: for names where lines are texts; while it is read, as `stream_rows`.
    """
    columns, lines_are, make = _of_stream(task, config, given)
    lines = stream_rows(stream, config.encoding, lines_are=lines_are)
    parts = (part for rows in lines for part in held_together(_item_rows(rows, make)))
    return Input(columns, parts, can_wait=False, about_rows=None)


def _opened(task: str, path: Path, config: TableConfig, given: Given) -> tuple[str, Iterator[ItemRow], bool | None]:
    """What is read from where, the rows, and whether they are pairs of texts."""
    options = _NAMES.get(task, _TEXT_NAMES)
    if task == "answer" and given.question is None:
        columns, rows = open_questions(path, config, labels=False, options=options)
        return str(columns), _item_rows(rows, lambda row: question_of(path, row, columns, options=options).key), None
    if task == "choose" and not given.choices:
        choices, rows = read_choices(path, config, options=options)
        return str(choices), _item_rows(rows, lambda row: choice_row(path, row, choices, options=options).item), None
    if task == "tag" and _holds_words(path, config):
        words, sentences = read_words(path, config, options=options)
        return str(words), _sentence_rows(sentences), None
    if task == "answer":
        config, options = _of_contexts(path, config), _CONTEXT_NAMES
    # Of what is found in a text the place is told, counted in the text as it was written.
    columns, rows = read_texts(path, config, options=options, as_written=task in ("answer", "tag"))
    if task == "embed" and columns.pair is not None:
        raise InputError("embed reads one column of texts", f"{path}, with {columns}", f"Name it with {options.text}.")
    pairs = columns.pair is not None if task in _TASKS_OF_PAIRS else None
    return str(columns), _item_rows(rows, _made_of_text(path, columns, options, given)), pairs


def _is_text_table(path: Path, config: TableConfig) -> bool:
    """Whether a file holds a text or a sentence a row, and not a word a line."""
    kind = file_kind(path)
    return is_table(path, config.encoding) or (kind.known and kind.layout == "plain")


def _holds_words(path: Path, config: TableConfig) -> bool:
    """Whether a file holds words that are parted already: lists of them, or one a line."""
    if not is_table(path, config.encoding):
        return not _is_text_table(path, config)
    sample = list(islice(open_rows(path, config, _TEXT_NAMES), SAMPLE_ROWS))
    cells = (row.values.items() for row in sample)
    return any(read_list(value) is not None for row in cells for name, value in row if config.text in (None, name))


def _of_contexts(path: Path, config: TableConfig) -> TableConfig:
    """The column of contexts, where its name tells: that of questions beside it is not asked."""
    if config.text is None:
        first = next(open_rows(path, config, _CONTEXT_NAMES), None)
        names = [] if first is None else list(first.values)
        found = next((found for name in CONTEXT_COLUMNS if (found := named_column(names, name))), None)
        return config.model_copy(update={"text": found})
    return config


def _of_stream(task: str, config: TableConfig, given: Given) -> tuple[str, LinesAre, Make]:
    """What the lines hold, to be said, how they are read, and what becomes of one."""
    text = config.text or PLAIN_COLUMN
    if task == "answer" and given.question is None:
        asked = Columns(config.text or "question", config.pair or "context", None)
        return str(asked), "objects", lambda row: question_of(STREAM, row, asked).key
    if task == "choose" and not given.choices:
        offered = ChoiceColumns(text, config.pair or "start", ("choices",), None)
        return str(offered), "objects", lambda row: choice_row(STREAM, row, offered).item
    alone, pair = Columns(text, None, None), Columns(text, config.pair or "pair", None)
    if task in _TASKS_OF_PAIRS:
        return f"{alone}, or objects with {pair}", "either", lambda row: _text_or_pair(row, alone, pair)
    if named := config.text or config.pair:
        raise InputError(
            "A column is named for files, and for lines that hold JSON objects",
            f"the column {named}, and for {task} lines are texts",
            "Leave it out, or give a file with --input.",
        )
    return str(alone), "texts", _made_of_text(STREAM, alone, OptionNames(), given)


def _text_or_pair(row: TableRow, alone: Columns, pair: Columns) -> Any:
    """A text, or both of a pair, out of an object or a plain line."""
    has_pair = row.values.get(str(pair.pair)) is not None
    return task_row(STREAM, row, pair if has_pair else alone).texts


def _made_of_text(path: Path, columns: Columns, options: OptionNames, given: Given) -> Make:
    """What becomes of a text, beside what is given."""

    def make(row: TableRow) -> Any:
        texts = task_row(path, row, columns, options=options).texts
        if given.question is not None:
            return given.question, texts
        return ChoiceItem(str(texts), given.choices) if given.choices else texts

    return make


def _item_rows(rows: Iterable[TableRow], make: Make) -> Iterator[ItemRow]:
    for row in rows:
        try:
            item = make(row)
        except InputError as fault:
            item = fault
        yield ItemRow(row.number, row.place, item, num_characters(item))


def _sentence_rows(sentences: Iterable[TaggedSentence | InputError]) -> Iterator[ItemRow]:
    for number, sentence in enumerate(sentences, 1):
        if isinstance(sentence, InputError):
            yield ItemRow(number, f"row {number}", sentence, 0)
        else:
            words = list(sentence.words)
            yield ItemRow(number, sentence.place, words, num_characters(words))


def num_characters(item: Any) -> int:
    """Of all texts in an item."""
    match item:
        case str():
            return len(item)
        case list() | tuple():
            return sum(map(num_characters, item))
        case ChoiceItem():
            return num_characters(item.pairs)
        case _:
            return 0
