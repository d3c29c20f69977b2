"""The entries of an evaluation's worst errors."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.task_tables import TaskRow


def worst_of(numbers: Int[np.ndarray, " wrong"], badness: Float[np.ndarray, " wrong"], most: int | None) -> list[int]:
    """The numbers of the worst rows, as many as asked for or all, the worst first; of equal ones the first in the
    file."""
    return numbers[np.argsort(-badness, kind="stable")[:most]].tolist()


def written_number(number: np.floating[Any]) -> str:
    """A number with every digit that tells it from others of its type; a whole one without a fraction."""
    shortest = float(str(number))  # Of its own type, and written as Python writes it: no exponent for a million.
    return str(shortest).removesuffix(".0")


def text_error(row: TaskRow, label: str, predicted: str, score: float | None) -> dict[str, Any]:
    """What is shown of a row with a text or a pair; `score` is the probability of what was predicted, if it has one."""
    pair = {} if row.pair is None else {"pair": row.pair}
    return {"place": row.place, "text": row.text, **pair, "label": label, "predicted": predicted} | (
        {} if score is None else {"score": score}
    )
