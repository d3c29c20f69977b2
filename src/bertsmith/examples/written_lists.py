"""Lists that a table holds in one cell: as a list, or as the text that JSON, Python, numpy or pandas have for one."""

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


def read_offered(value: Any) -> tuple[list[Any], tuple[str, ...]] | None:
    """The choices that a cell holds, written out or not, and what it calls them, if anything.

    They are a list of texts, or texts with their names as AI2's data sets have them: ``{"text": […], "label": ["A",
    …]}`` or ``[{"text": …, "label": "A"}, …]``.

    Returns:
        the texts, whatever they are, and a name for each or none at all; None where a cell holds something else.
    """
    if isinstance(value, str):
        try:
            value = read_written(value)
        except ValueError:
            return None
    match value:
        case {"text": list(texts), "label": list(names)} if len(texts) == len(names):
            pass
        case [{"text": _, "label": _}, *_] if all(
            isinstance(one, dict) and {"text", "label"} <= one.keys() for one in value
        ):
            texts, names = [one["text"] for one in value], [one["label"] for one in value]
        case list() | tuple():
            texts, names = list(value), []
        case _:
            return None
    called = tuple(str(name).strip() for name in names)
    return (texts, called) if len(set(called)) == len(called) else None
