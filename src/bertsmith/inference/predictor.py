"""What every predictor of a downstream task is: prepare windows, run the model, decode what it says."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from bertsmith.examples.task_examples import LongTexts, is_cut, kept_windows
from bertsmith.examples.trained_on import refuse_unlike_training
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Engine
from bertsmith.inference.objects import plain_item, refuse_table
from bertsmith.inference.running import TokenWindow
from bertsmith.model.config import TaskName
from bertsmith.tokenization.tokenizer import Tokenizer


@runtime_checkable
class Prediction(Protocol):
    """What came of one item."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        ...

    @property
    def cut(self) -> bool:
        """Whether something of the item was not seen, being longer than the model takes."""
        ...


@runtime_checkable
class Request(Protocol):
    """An item as the model sees it."""

    @property
    def windows(self) -> tuple[TokenWindow, ...]:
        """The sequences it became."""
        ...


@dataclass(frozen=True)
class TextRequest:
    """A text, or a pair of texts, as the model sees it."""

    text: str
    pair: str | None
    windows: tuple[TokenWindow, ...]
    cut: bool


ItemT = TypeVar("ItemT")
RequestT = TypeVar("RequestT", bound=Request)
PredictionT = TypeVar("PredictionT", bound=Prediction)


class Predictor(ABC, Generic[ItemT, RequestT, PredictionT]):
    """Does a model's job on items, in three phases. Each may be called by itself, so that they can overlap.

    Args:
        engine: runs a model that was trained for the task.
        tokenizer: the one it was trained with. Its ``model_max_length`` says how long its sequences are.

    Raises:
        InputError: if the model was trained for something else, or nothing.
    """

    task: ClassVar[TaskName]
    """The task's name, which is that of its command too."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer) -> None:
        engine.refuse_other(self.task)
        self._engine = engine
        self._tokenizer = tokenizer
        self.max_length = tokenizer.longest_sequence(engine.config.encoder.num_positions)
        """Most tokens of a sequence."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The one it was made with."""
        return self._tokenizer

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels that the model tells apart; none where the task has none."""
        return self._engine.config.heads.labels

    def __call__(self, items: ItemT | Mapping[str, Any] | Iterable[ItemT | Mapping[str, Any]]) -> list[PredictionT]:
        """What becomes of each item, in order, none for none; a single one counts as a list of one, as in `listed`.

        An item may be an object with the names of the commands' JSON: ``{"text": …}``, ``{"text": …, "pair": …}``,
        ``{"question": …, "context": …}`` or ``{"text": …, "choices": […]}``.

        It does not depend on what stands beside the item, beyond rounding (1e-5 in fp32).

        Raises:
            InputError: for an item that cannot be used, or a table.
        """
        given = listed(items)
        return list(self.predicted(self.prepare(given))) if given else []

    def predicted(self, requests: Sequence[RequestT]) -> Iterator[PredictionT]:
        """Run the model on prepared items and decode what it says, in order."""
        outputs = iter(self.run([window for request in requests for window in request.windows]))
        for request in requests:
            yield self.decode(request, [next(outputs) for _ in request.windows])

    @abstractmethod
    def prepare(self, items: Sequence[ItemT], *, first: int = 1) -> list[RequestT]:
        """Items as token windows.

        Args:
            items: as people write them, so that whatever they are is checked here.
            first: the number by which errors call the first of them.

        Raises:
            InputError: for an item that cannot be used, told with its number.
        """

    def plain(self, items: Sequence[Any], first: int) -> list[Any]:
        """Items of which none is an object; see `plain_item`."""
        return [plain_item(self.task, item, number) for number, item in enumerate(items, first)]

    def run(self, windows: Sequence[TokenWindow]) -> list[Float[np.ndarray, "..."]]:
        """What the model says of each window."""
        return self._engine.outputs(self.task, windows)

    @abstractmethod
    def decode(self, request: RequestT, outputs: Sequence[Float[np.ndarray, "..."]]) -> PredictionT:
        """What becomes of an item, from the outputs of its windows."""


class TextPredictor(Predictor[str | tuple[str, str], TextRequest, PredictionT]):
    """A predictor of whole texts or pairs. Long ones are treated as in training."""

    @property
    def long_texts(self) -> LongTexts:
        """What is seen of a text that is too long."""
        return "windows" if self._engine.config.heads.windows else self._tokenizer.long_texts

    def prepare(self, items: Sequence[Any], *, first: int = 1) -> list[TextRequest]:
        """Texts as tokens, cut or in windows where they are too long.

        Raises:
            InputError: for a blank text, what is neither a text nor a pair of texts, or the one of them where the model
                was trained on the other.
        """
        items = self.plain(items, first)
        refuse_blank(items, first=first)
        self._refuse_others(items, first)
        requests: list[TextRequest] = []
        for item, encoding in zip(items, self._tokenizer.encode_batch(items), strict=True):
            kept = kept_windows(encoding, self.max_length, self.long_texts)
            windows = tuple(TokenWindow(encoding.token_ids[part], encoding.segment_ids[part]) for part in kept)
            text, pair = (item, None) if isinstance(item, str) else item
            requests.append(TextRequest(text, pair, windows, is_cut(encoding, kept)))
        return requests

    @property
    def pairs(self) -> bool | None:
        """Whether the model was trained on pairs of texts; None where that is not known."""
        return self._engine.config.heads.pairs

    def _refuse_others(self, items: Sequence[Any], first: int) -> None:
        both, alone = "Give the second text too, with --pair or as a tuple", "Leave the second text out"
        for number, item in enumerate(items, first):
            is_pair = not isinstance(item, str)
            received = f"text {number}, {'which is a pair' if is_pair else 'which stands alone'}"
            refuse_unlike_training(self.pairs, is_pair, received, both, alone)


def listed(items: Any) -> list[Any]:
    """The items that a predictor was called with.

    A text, a tuple, such as a pair of texts, or an object is a single item, and so is everything that cannot be gone
    through. A list, and whatever else can be gone through, holds items.

    Raises:
        InputError: for a table.
    """
    refuse_table(items)
    is_one = isinstance(items, str | bytes | tuple | Mapping) or not isinstance(items, Iterable)
    return [items] if is_one else list(items)


def refuse_blank(items: Sequence[Any], *, first: int = 1) -> None:
    """Raise an `InputError` for a text without a visible character, or what is neither a text nor a pair of texts.

    Args:
        items: what was given.
        first: the number of the first.
    """
    for number, item in enumerate(items, first):
        match item:
            case str():
                parts: tuple[str, ...] = (item,)
            case (str() as text, str() as other):
                parts = (text, other)
            case _:
                raise InputError(
                    "An item must be a text, or a pair of two texts",
                    f"text {number}: {item!r:.60}",
                    "Give several in a list.",
                )
        for part in parts:
            if not part.strip():
                raise InputError("A text must not be blank", f"text {number}: “{part}”", "Give it some text.")


def text_values(text: str, pair: str | None) -> dict[str, Any]:
    """The entries that say what was predicted on; without ``pair`` where the text stands alone."""
    return {"text": text} | ({} if pair is None else {"pair": pair})
