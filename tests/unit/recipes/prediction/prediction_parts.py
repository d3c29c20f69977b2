"""How values of predictions are compared."""

from typing import Any


def close(found: Any, expected: Any) -> bool:
    """Whether values are equal, numbers within 1e-5."""
    match found, expected:
        case dict(), dict():
            return found.keys() == expected.keys() and all(close(found[name], expected[name]) for name in found)
        case list() | tuple(), list() | tuple():
            return len(found) == len(expected) and all(map(close, found, expected))
        case float(), float():
            return abs(found - expected) <= 1e-5
        case _:
            return found == expected
