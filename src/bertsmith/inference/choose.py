"""The choice that fits a context best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.examples.task_examples import is_cut, kept_windows
from bertsmith.foundation.errors import InputError
from bertsmith.inference.predictor import Predictor
from bertsmith.inference.running import TokenWindow
from bertsmith.objectives.softmax import softmax


@dataclass(frozen=True)
class ChoicePrediction:
    """What was chosen for a context."""

    text: str
    start: str
    """Of the sentence that each choice ends; empty where the choices stand by themselves."""
    choices: tuple[str, ...]
    choice: str
    """The likeliest one; the first of them where several are as likely."""
    index: int
    """Its place among the choices, from 0."""
    score: float
    """Its probability among them."""
    scores: tuple[float, ...]
    """Probability of each choice, in their order."""
    cut: bool
    """Whether something of the texts was not seen, being longer than the model takes."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return {
            "text": self.text,
            **({"start": self.start} if self.start else {}),
            "choices": list(self.choices),
            "choice": self.choice,
            "index": self.index,
            "score": self.score,
            "scores": list(self.scores),
            "cut": self.cut,
        }


@dataclass(frozen=True)
class ChoiceRequest:
    """A context and its choices as the model sees them."""

    item: ChoiceItem
    windows: tuple[TokenWindow, ...]
    """One a choice."""
    cut: bool


class ChoosePredictor(Predictor[ChoiceItem | tuple[str, Sequence[str]], ChoiceRequest, ChoicePrediction]):
    """Chooses among the choices of contexts, each given as a pair of text and choices."""

    task = "choose"

    def prepare(self, items: Sequence[Any], *, first: int = 1) -> list[ChoiceRequest]:
        """Choices as tokens, each with its context, cut where they are too long as in training.

        Raises:
            InputError: for an item that is no text with choices, has fewer than two, or a blank text.
        """
        requests: list[ChoiceRequest] = []
        for number, given in enumerate(self.plain(items, first), first):
            item = _item(given, number)
            windows: list[TokenWindow] = []
            was_cut = False
            for encoding in self._tokenizer.encode_batch(item.pairs):
                (kept,) = kept_windows(encoding, self.max_length, self._tokenizer.long_texts)
                was_cut = was_cut or is_cut(encoding, [kept])
                windows.append(TokenWindow(encoding.token_ids[kept], encoding.segment_ids[kept]))
            requests.append(ChoiceRequest(item, tuple(windows), was_cut))
        return requests

    def decode(self, request: ChoiceRequest, outputs: Sequence[Float[np.ndarray, " one"]]) -> ChoicePrediction:
        """The choice with the highest score."""
        probabilities = softmax(np.concatenate(outputs))
        item, index = request.item, int(probabilities.argmax())
        return ChoicePrediction(
            item.text,
            item.start,
            item.choices,
            item.choices[index],
            index,
            float(probabilities[index]),
            tuple(probabilities.tolist()),
            request.cut,
        )


def _item(given: Any, number: int) -> ChoiceItem:
    """An item in one form, whichever it was given in."""
    if isinstance(given, ChoiceItem):
        text, choices, start = given.text, given.choices, given.start
    elif isinstance(given, tuple | list) and len(given) == 2 and not isinstance(given[1], str):
        text, choices, start = given[0], tuple(given[1]), ""
    else:
        raise InputError(
            "An item must be a text with its choices",
            f"item {number}: {given!r:.60}",
            'For example ("It rained.", ["He opened the umbrella.", "He closed it."]).',
        )
    if len(choices) < 2:
        raise InputError(
            "There must be two choices at least", f"item {number} with {len(choices)}", "Give another choice."
        )
    for part in (text, *choices):
        if not isinstance(part, str):
            raise InputError("A text or choice must be text", f"item {number}: {part!r:.60}", "Write it as a string.")
        if not part.strip():
            raise InputError("A text or choice must not be blank", f"item {number}: {part!r}", "Give it some text.")
    return ChoiceItem(text, choices, start)
