"""Text, counts and names as they can stand in a line of a message."""

import re
from collections.abc import Iterable, Sequence

_MOST_SHOWN = 5
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def on_one_line(text: str) -> str:
    """Text with control characters and line ends escaped, ``\\n``, so that they are seen and break no line."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a text, and three dots where there is more of it."""
    return text if len(text) <= most else f"{text[:most]}…"


def counted(number: int, one: str, several: str = "") -> str:
    """A number with what it counts, ``1 row has`` or ``1,009 rows have``.

    Args:
        number: how many there are.
        one: what follows a one.
        several: what follows any other number; `one` with an s where not given.
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def counted_of(number: int, total: int, what: str, one: str, several: str) -> str:
    """Some of a total with what is said of them, ``1 of 1,009 rows is cut``.

    Args:
        number: how many of them there are.
        total: of how many.
        what: one of the total.
        one: what is said of a single one.
        several: what is said of any other number.
    """
    return f"{number:,} of {counted(total, what)} {one if number == 1 else several}"


def listed_names(names: Iterable[str]) -> str:
    """Names with commas between them; one that has a comma itself stands in quotes, as CSV writes it."""
    return ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"' if "," in name else name for name in names)


def first_few(items: Sequence[str]) -> str:
    """The first of some names or places, and how many more there are."""
    more = len(items) - _MOST_SHOWN
    return ", ".join(items[:_MOST_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
