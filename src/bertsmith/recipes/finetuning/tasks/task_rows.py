"""Rows with a text or a pair and one label, as several tasks read them."""

from collections.abc import Sequence
from pathlib import Path

from bertsmith.examples.data_look import table_notes
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import LABEL_COLUMNS
from bertsmith.examples.task_tables import read_task_table
from bertsmith.recipes.finetuning.task import TaskRows


def table_rows(
    path: Path,
    data: TableConfig,
    *,
    like: TaskRows | None,
    options: OptionNames,
    label_columns: Sequence[str] = LABEL_COLUMNS,
) -> TaskRows:
    """Rows with a text or a pair and a label; the columns of `like` are meant where it is given."""
    if like is not None:
        columns = like.layout
        data = data.model_copy(update={"text": columns.text, "pair": columns.pair, "label": columns.label})
    table = read_task_table(path, data, options=options, label_columns=label_columns)
    return TaskRows(path, table.rows, f"{table.columns}", tuple(table_notes(table)), table.columns)


def has_pairs(rows: TaskRows) -> bool:
    """Whether each row holds a pair of texts, and not one that stands alone."""
    return rows.items[0].pair is not None
