"""Rows with any number of labels each: read, ordered, mapped by name, split evenly."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.classification import (
    label_order,
    label_places,
    place_of,
    unknown_label,
    whole_names,
)
from bertsmith.examples.label_sets import (
    SEPARATORS,
    LabelCells,
    LabelLayout,
    best_layout,
    flag_width,
    guess_layout,
    label_set,
)
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import (
    LABEL_COLUMNS,
    SAMPLE_ROWS,
    Columns,
    MissingColumn,
    column_names,
    find_columns,
    missing_column,
    named_columns,
)
from bertsmith.examples.task_tables import TaskRow, TaskTable, is_blank, open_rows, task_row, whole_rows
from bertsmith.foundation.errors import InputError
from bertsmith.text.shown import counted_of, listed_names
from bertsmith.text.tables import TableRow, refuse_half_pair

MULTILABEL_COLUMNS = (
    "labels",
    "tags",
    "categories",
    "classes",
    "topics",
    "genres",
    "emotions",
    "keywords",
    *(name for name in LABEL_COLUMNS if name != "labels"),
)
"""Columns under which labels are looked for, in this order, where none is named."""

_FEWEST_ROWS_TO_JUDGE = 10


@dataclass(frozen=True)
class MultilabelTable:
    """The rows of a file; the label of each is a tuple of names, each once, in alphabetical order."""

    table: TaskTable
    layout: LabelLayout
    width: int
    """How many places lists of 0 and 1 have; 0 where labels are written in another way."""

    @property
    def rows(self) -> tuple[TaskRow, ...]:
        """The rows."""
        return self.table.rows

    def __str__(self) -> str:
        texts = replace(self.table.columns, label=None)
        return f"{texts}, {self.layout}"


def read_multilabel_table(
    path: Path,
    config: TableConfig = TableConfig(),
    *,
    options: OptionNames = OptionNames(),
    like: MultilabelTable | None = None,
    known: Sequence[str] = (),
) -> MultilabelTable:
    """Read a file whose rows have any number of labels, none among them.

    Args:
        path: the file.
        config: how it is read. Its ``label`` names a column of lists or of text with separators, or several columns of
            0 and 1 as `named_columns` takes them.
        options: what errors call the settings.
        like: rows that were read before, whose columns are meant. Labels may be written in another way than theirs;
            where two ways may be meant, it is the one that gives more of their labels.
        known: labels of a model that the rows are for, where there are no earlier rows. They tell what parts names.

    Raises:
        InputError: if it cannot be read, a column is missing or cannot be told, a row holds no text, or labels that
            cannot be read.
    """
    rows = open_rows(path, config, options)
    sample = list(itertools.islice(rows, SAMPLE_ROWS))
    columns, label_columns = _columns(path, sample, config, options, like)
    single = len(label_columns) == 1
    needed = [name for name in (columns.text, columns.pair, *(() if single else label_columns)) if name is not None]
    read, skipped = whole_rows(
        path,
        itertools.chain(sample, rows),
        lambda row: [name for name in needed if is_blank(row.values, name)],
        lambda row: (task_row(path, row, columns, options=options), _cells(path, row, label_columns)),
        config,
        options,
    )
    cells = [found for _, found in read]
    is_label = label_columns[0] in known if known else config.label is not None
    layout = guess_layout(label_columns, cells, named=is_label)
    if like is not None and layout != like.layout:
        layout = best_layout((like.layout, layout), cells, _known_labels(like), path, width=like.width)
    elif known and layout.form == "separated":
        others = [replace(layout, separator=sign) for sign in (*SEPARATORS, None)]
        layout = best_layout((layout, *others), cells, known, path)
    width = flag_width(cells) if layout.form == "flags" else 0
    if like is not None and layout.form == like.layout.form:
        width = like.width or width
    labelled = tuple(replace(row, label=label_set(found, layout, path, width=width or None)) for row, found in read)
    columns = replace(columns, label=listed_names(label_columns))
    return MultilabelTable(TaskTable(path, columns, labelled, skipped), layout, width)


def _known_labels(like: MultilabelTable) -> list[str]:
    return [*(name for row in like.rows for name in row.label), *map(str, range(like.width))]


def refuse_other_labels(table: MultilabelTable, labels: Sequence[str]) -> None:
    """Raise an `InputError` for columns, or lists, of 0 and 1 that are not those of the labels of a model."""
    layout, path = table.layout, table.table.path
    trained = "that the model is trained on"
    if layout.form == "columns" and set(layout.columns) != set(labels):
        raise InputError(
            f"Columns of 0 and 1 must be those of all labels {trained}: {listed_names(labels)}",
            f"{listed_names(layout.columns)}, in {path}",
            "Name them all with --label, or write the labels of each row into one column.",
        )
    if layout.form == "flags" and table.width not in (0, len(labels)):
        raise InputError(
            f"Lists of 0 and 1 must have a place for each label {trained}: {len(labels)}",
            f"{table.width} in {layout.columns[0]}, in {path}",
            "Mend the lists, or write the names of the labels that each row has.",
        )


def label_names(table: MultilabelTable) -> tuple[str, ...]:
    """Every label of training rows: those of columns as they stand, others ordered by name, numbers by their value.

    Raises:
        InputError: if no row has a label, all have the same, or none ever recurs.
    """
    layout, rows = table.layout, table.rows
    where = f"{table.table.path}, {layout}"
    sets = {row.label for row in rows}
    if sets == {()}:
        raise InputError(
            "Rows must have labels for a model to learn them",
            f"none in all {len(rows)} rows of {where}",
            "Name another column with --label, or several of 0 and 1 as --label a,b,c.",
        )
    if len(sets) == 1:
        raise InputError(
            "Rows must differ in their labels for a model to learn them",
            f"{listed_names(rows[0].label)} in all {len(rows)} rows of {where}",
            "Add rows with other labels, or name another column with --label.",
        )
    if layout.form == "columns":
        return layout.columns
    if layout.form == "flags":
        return tuple(str(number) for number in range(table.width))
    counts = Counter(name for row in rows for name in row.label)
    if len(rows) >= _FEWEST_ROWS_TO_JUDGE and len(counts) >= len(rows) and max(counts.values()) == 1:
        raise InputError(
            "Labels must recur", f"another one in each of {len(rows)} rows of {where}", "Name the right one."
        )
    return label_order(whole_names(counts))


def label_targets(rows: Sequence[TaskRow], labels: Sequence[str], path: Path) -> Float[np.ndarray, "rows labels"]:
    """1 where a row has a label and 0 where it lacks it, as the loss takes them.

    Raises:
        InputError: for a label that is none of `labels`; it and its row are named.
    """
    places = label_places(labels)
    targets = np.zeros((len(rows), len(labels)), np.float32)
    for number, row in enumerate(rows):
        for name in row.label:
            place = place_of(name, places)
            if place is None:
                raise unknown_label(name, labels, path, row.place)
            targets[number, place] = 1.0
    return targets


def label_strata(targets: Float[np.ndarray, "rows labels"]) -> Int[np.ndarray, " rows"]:
    """A stratum for each row: its rarest label, from 1, or 0 where it has none.

    Rows that are held out by it have rare labels in their share, as far as labels that stand together allow.
    """
    rarity = np.argsort(np.argsort(targets.sum(0), kind="stable"), kind="stable")
    ranks = np.where(targets > 0, rarity, targets.shape[1])
    return np.where(targets.any(1), ranks.argmin(1) + 1, 0)


def set_counts(targets: Float[np.ndarray, "rows labels"], labels: Sequence[str]) -> dict[str, int]:
    """Rows that have each label."""
    return dict(zip(labels, targets.sum(0).astype(int).tolist(), strict=True))


def balanced_label_weights(targets: Float[np.ndarray, "rows labels"]) -> tuple[tuple[float, float], ...]:
    """For each label a weight where it lacks and one where it stands, so that both weigh the same over the rows.

    A label weighs 1 on the average row. One that no row has, or every row, keeps 1.
    """
    rows, having = len(targets), targets.sum(0, dtype=np.float64)
    weights: list[tuple[float, float]] = []
    for count in having.tolist():
        both = 0 < count < rows
        weights.append((rows / (2 * (rows - count)), rows / (2 * count)) if both else (1.0, 1.0))
    return tuple(weights)


def label_set_notes(targets: Float[np.ndarray, "rows labels"], labels: Sequence[str]) -> list[str]:
    """What stands out in how many labels rows have."""
    notes: list[str] = []
    rows = len(targets)
    if bare := int((~targets.any(1)).sum()):
        lacking = counted_of(bare, rows, "training row", "has no label", "have no label")
        notes.append(f"{lacking}, which is a valid answer")
    if max(targets.sum(1)) <= 1:
        notes.append("no row has two labels: where one excludes the others, the task is classify")
    counts = set_counts(targets, labels)
    if absent := [name for name, count in counts.items() if not count]:
        notes.append(f"no training row has {listed_names(absent[:5])}{' …' if len(absent) > 5 else ''}")
    if always := [name for name, count in counts.items() if count == rows]:
        notes.append(f"every training row has {listed_names(always[:5])}")
    return notes


def _columns(
    path: Path, sample: Sequence[TableRow], config: TableConfig, options: OptionNames, like: MultilabelTable | None
) -> tuple[Columns, tuple[str, ...]]:
    """The columns of the texts, and those of the labels."""
    if like is not None:
        columns = like.table.columns
        config = config.model_copy(update={"text": columns.text, "pair": columns.pair})
    names = column_names(path, sample)
    several = like.layout.columns if like is not None else named_columns(config.label or "")
    if config.label in names and like is None:
        several = (config.label,)
    if len(several) < 2:
        config = config.model_copy(update={"label": several[0] if several else None})
        found = _with_one_label_column(path, sample, config, options)
        return replace(found, label=None), (str(found.label),)
    for name in several:
        if name not in names:
            raise _no_label_column(path, options.label, name, names)
    rest = [
        replace(row, values={name: row.values[name] for name in row.values if name not in several}) for row in sample
    ]
    unlabelled = config.model_copy(update={"label": None})
    return find_columns(path, rest, unlabelled, labels=False, options=options), several


def _no_label_column(path: Path, option: str, name: str, names: Sequence[str]) -> InputError:
    """`missing_column`, which tells of quotes too where a name may have been parted at its comma."""
    error = missing_column(path, option, name, names)
    if not isinstance(error, MissingColumn) or not any("," in one for one in names):
        return error
    do = f"{error.do} A name with a comma stands in quotes, as CSV writes it: {option} 'a,\"b, c\"'."
    return MissingColumn(error.rule, error.received, do, name, names)


def _with_one_label_column(
    path: Path, sample: Sequence[TableRow], config: TableConfig, options: OptionNames
) -> Columns:
    try:
        return find_columns(path, sample, config, labels=True, options=options, label_columns=MULTILABEL_COLUMNS)
    except InputError as error:
        if config.label is not None or options.label not in error.do:
            raise
        do = f"{error.do} Several columns of 0 and 1 are named as {options.label} a,b,c."
        raise InputError(error.rule, error.received, do) from None


def _cells(path: Path, row: TableRow, columns: Sequence[str]) -> LabelCells:
    values = tuple(None if is_blank(row.values, name) else row.values[name] for name in columns)
    for value in values:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str):
                refuse_half_pair(path, row.place, part)
    return LabelCells(values, row.place)
