"""Lists that a table holds in one cell: as a list, or as the text that JSON, Python or numpy has for one."""

from typing import Any

from bertsmith.text.written_values import read_written


def is_written_list(value: Any) -> bool:
    """Whether a value is text that begins and ends as a list does."""
    return isinstance(value, str) and value.strip().startswith("[") and value.strip().endswith("]")


def read_list(value: Any) -> list[Any] | None:
    """The list that a cell holds, written out or not; None where it holds something else."""
    if isinstance(value, list | tuple):
        return list(value)
    if not is_written_list(value):
        return None
    try:
        found = read_written(value)
    except ValueError:
        return None
    return found if isinstance(found, list) else None
