"""Thresholds between two scores, so that no decision hangs on the rounding of either."""

HALF = 0.5
"""The threshold where none was tuned."""
_DIGITS = 4


def middle_between(low: float, high: float, *, end: float) -> float:
    """The middle of two numbers, rounded if there is room; `end`, one of them, where no number lies between them."""
    middle = (low + high) / 2
    rounded = round(middle, _DIGITS)
    if low < rounded < high:
        return rounded
    return middle if low < middle < high else end
