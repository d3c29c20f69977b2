"""Items that were given as objects, with the names that the commands' JSON has."""

from collections.abc import Iterable, Mapping
from typing import Any

from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.examples.written_lists import read_offered
from bertsmith.foundation.errors import InputError, near_match

_NEEDED: dict[str, tuple[str, ...]] = {"answer": ("question", "context"), "choose": ("text", "choices")}
_FURTHER: dict[str, tuple[str, ...]] = {
    "classify": ("pair",),
    "multilabel": ("pair",),
    "regress": ("pair",),
    "choose": ("start",),
    "embed": ("pair",),  # It takes none, and says so.
}


def plain_item(task: str, item: Any, number: int) -> Any:
    """An item as predictors have it: of an object what its entries say, and whatever else as it is.

    Further entries, such as a row's label, are not read.

    Args:
        task: the predictor's.
        item: ``{"text"}`` or ``{"text", "pair"}``; to answer ``{"question", "context"}``, to choose ``{"text",
            "choices"}`` and perhaps ``"start"``.
        number: of the item, for errors.

    Raises:
        InputError: for an object without what the task needs, or whose entries are no texts.
    """
    if not isinstance(item, Mapping):
        return item
    needed = _NEEDED.get(task, ("text",))
    missing = [name for name in needed if item.get(name) is None]
    if missing:
        names = [str(name) for name in item]
        near = near_match(missing[0], names)
        raise InputError(
            f"An object to {task} must have {' and '.join(needed)}",
            f"item {number} with {', '.join(names) or 'nothing'}",
            f"Name {near} {missing[0]}." if near else f"Give it {missing[0]}.",
        )
    for name in needed:
        if name != "choices" and not isinstance(item[name], str):
            raise InputError(
                "An entry of an object must be a text",
                f"{name} of item {number}: {item[name]!r:.60}",
                "Give an object for each item.",
            )
    further = {name: item.get(name) for name in _FURTHER.get(task, ())}
    match task:
        case "answer":
            return item["question"], item["context"]
        case "choose":
            return ChoiceItem(item["text"], _choices(item["choices"]), further["start"] or "")
        case _:
            pair = further.get("pair")
            return item["text"] if pair is None else (item["text"], pair)


def _choices(given: Any) -> tuple[Any, ...]:
    """Choices in one of the forms that a file's cell has for them, or in another sequence; else the value alone."""
    if (offered := read_offered(given)) is not None:
        return tuple(offered[0])
    alone = isinstance(given, str | Mapping) or not isinstance(given, Iterable)
    return (given,) if alone else tuple(given)


def refuse_table(items: Any) -> None:
    """Raise an `InputError` for a table, such as a DataFrame: to go through one gives the names of its columns."""
    if hasattr(items, "columns") and not isinstance(items, Mapping):
        raise InputError(
            "Items must be texts, and a table has columns",
            f"a {type(items).__name__}",
            'Give a column as a list: table["text"].tolist().',
        )
