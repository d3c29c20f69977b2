"""Lists that a table holds in one cell: as a list, or as the text that JSON, Python, numpy or pandas have for one."""

from typing import Any

from bertsmith.text.written_values import read_written


def is_written_list(value: Any) -> bool:
    """Whether a value is text that begins and ends as a list does."""
    return isinstance(value, str) and value.strip().startswith("[") and value.strip().endswith("]")


def read_list(value: Any) -> list[Any] | None:
    """The list that a cell holds, written out or not; None where it holds something else."""
    found = _read(value) if is_written_list(value) else value
    return list(found) if isinstance(found, list | tuple) else None


def read_offered(value: Any) -> tuple[list[Any], tuple[str, ...]] | None:
    """The choices that a cell holds, written out or not, and what it calls them, if anything.

    They are a list of texts, or texts with their names as AI2's data sets have them: ``{"text": […], "label": ["A",
    …]}`` or ``[{"text": …, "label": "A"}, …]``.

    Returns:
        the texts, whatever they are, and a name for each or none at all; None where a cell holds something else.
    """
    value = _read(value) if isinstance(value, str) else value
    match value:
        case {"text": list(texts), "label": list(names)} if len(texts) == len(names):
            pass
        case [{"text": _, "label": _}, *_] if all(
            isinstance(one, dict) and {"text", "label"} <= one.keys() for one in value
        ):
            texts, names = [one["text"] for one in value], [one["label"] for one in value]
        case list() | tuple():
            texts, names = value, []
        case _:
            return None
    called = tuple(str(name).strip() for name in names)
    return (list(texts), called) if len(set(called)) == len(called) else None


def _read(text: str) -> Any:
    """What a text stands for; None where it stands for nothing."""
    try:
        return read_written(text)
    except ValueError:
        return None
