"""Lists that a table holds in one cell: as a list, or as the text that JSON or Python has for one."""

import ast
import json
import warnings
from typing import Any


def is_written_list(value: Any) -> bool:
    """Whether a value is text that begins and ends as a list does."""
    return isinstance(value, str) and value.strip().startswith("[") and value.strip().endswith("]")


def read_list(value: Any) -> list[Any] | None:
    """The list that a cell holds, written out or not; None where it holds something else."""
    if isinstance(value, list | tuple):
        return list(value)
    if not is_written_list(value):
        return None
    for read in (json.loads, _read_python):
        try:
            found = read(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return found if isinstance(found, list) else None
    return None


def _read_python(text: str) -> Any:
    with warnings.catch_warnings():
        # A backslash that escapes nothing is no fault of a name.
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)
