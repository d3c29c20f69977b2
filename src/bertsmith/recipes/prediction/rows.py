"""Predicting row after row: in bounded memory, in order, one result a row, whatever the task."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertsmith.examples.item_texts import long_words_by_item
from bertsmith.foundation.errors import InputError
from bertsmith.inference.predictor import Prediction, Predictor, Request

_ROWS_AT_ONCE = 2048
"""Rows that are held together, and sorted by length inside the model."""
_CHARACTERS_AT_ONCE = 1 << 21
"""Rows that are held together have about as many characters at most; a single longer one is held alone."""

_PARTS_AHEAD = 2


@dataclass(frozen=True)
class ItemRow:
    """A row of the input."""

    number: int
    """From 1."""
    place: str
    """Where it stands, such as `line 3`."""
    item: Any
    """What the predictor takes, or the `InputError` that says why there is nothing for it."""
    num_characters: int
    """Of all texts in the item."""


@dataclass(frozen=True)
class RowResult:
    """What came of one row: a prediction, or why there is none."""

    number: int
    place: str
    prediction: Prediction | None
    fault: InputError | None
    num_long_words: int = 0
    """Words that became unknown because they have more characters than the tokenizer allows."""

    @property
    def values(self) -> dict[str, Any]:
        """As plain values: the prediction's, or ``row``, ``place`` and ``error``."""
        if self.prediction is not None:
            return self.prediction.values
        fault = self.fault
        error = {} if fault is None else {"rule": fault.rule, "received": fault.received, "do": fault.do}
        return {"row": self.number, "place": self.place, "error": error}


def held_together(rows: Iterable[ItemRow]) -> Iterator[list[ItemRow]]:
    """Rows in lists of a few thousand, fewer where they are long."""
    held: list[ItemRow] = []
    characters = 0
    for row in rows:
        held.append(row)
        characters += row.num_characters
        if len(held) == _ROWS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield held
            held, characters = [], 0
    if held:
        yield held


def predict_rows(
    predictor: Predictor[Any, Any, Any], parts: Iterable[Sequence[ItemRow]], *, ahead: bool = True
) -> Iterator[RowResult]:
    """Predict rows, part after part.

    Args:
        predictor: the model.
        parts: rows that are held, and sorted by their length, together.
        ahead: prepare one part, run the model on another and decode a third at the same time. It reads parts before
            the results of earlier ones are given, so it does not suit rows that somebody types.

    Returns:
        a result for each row, in order. A row that cannot be used gives its fault, and the others go on.

    Raises:
        InputError: at the end, if there was no row that could be used.
    """
    num_rows = num_used = 0
    for part, requests, outputs in (_run_ahead if ahead else _run_plainly)(predictor, parts):
        remaining = iter(outputs)
        long_words = long_words_by_item(predictor.tokenizer, [row.item for row in part])
        for row, request, num_long in zip(part, requests, long_words, strict=True):
            num_rows += 1
            if isinstance(request, InputError):
                yield RowResult(row.number, row.place, None, request)
            else:
                num_used += 1
                windows = [next(remaining) for _ in request.windows]
                yield RowResult(row.number, row.place, predictor.decode(request, windows), None, num_long)
    if not num_used:
        raise InputError("There must be a row that can be used", f"{num_rows} rows, and none can", "Mend the input.")


_Prepared = list[Request | InputError]
_Ran = tuple[Sequence[ItemRow], _Prepared, list[np.ndarray]]


def _run_plainly(predictor: Predictor[Any, Any, Any], parts: Iterable[Sequence[ItemRow]]) -> Iterator[_Ran]:
    for part in parts:
        requests = _prepared(predictor, part)
        yield part, requests, _outputs(predictor, requests)


def _run_ahead(predictor: Predictor[Any, Any, Any], parts: Iterable[Sequence[ItemRow]]) -> Iterator[_Ran]:
    """The same, with a thread that prepares and one that runs the model, each at one part at a time and in order."""
    preparing, running = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    def run(prepared: "Future[_Prepared]") -> tuple[_Prepared, list[np.ndarray]]:
        requests = prepared.result()
        return requests, _outputs(predictor, requests)

    begun: deque[tuple[Sequence[ItemRow], Future[tuple[_Prepared, list[np.ndarray]]]]] = deque()
    try:
        for part in parts:
            begun.append((part, running.submit(run, preparing.submit(_prepared, predictor, part))))
            if len(begun) > _PARTS_AHEAD:
                first, ran = begun.popleft()
                yield first, *ran.result()
        while begun:
            first, ran = begun.popleft()
            yield first, *ran.result()
    finally:
        for pool in (preparing, running):
            pool.shutdown(cancel_futures=True)


def _prepared(predictor: Predictor[Any, Any, Any], part: Sequence[ItemRow]) -> _Prepared:
    """What the predictor makes of each row; of one that it refuses, why."""
    usable = [row for row in part if not isinstance(row.item, InputError)]
    try:
        requests: Iterator[Request | InputError] = iter(
            predictor.prepare([row.item for row in usable]) if usable else []
        )
    except InputError:
        requests = (_request(predictor, row) for row in usable)
    return [row.item if isinstance(row.item, InputError) else next(requests) for row in part]


def _request(predictor: Predictor[Any, Any, Any], row: ItemRow) -> Request | InputError:
    try:
        return predictor.prepare([row.item], first=row.number)[0]
    except InputError as fault:
        return fault


def _outputs(predictor: Predictor[Any, Any, Any], requests: _Prepared) -> list[np.ndarray]:
    windows = [window for request in requests if not isinstance(request, InputError) for window in request.windows]
    return predictor.run(windows) if windows else []
