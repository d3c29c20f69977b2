"""Answering questions about texts, from all windows of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.examples.answering import QuestionEncoder
from bertsmith.examples.text_windows import TextWindows
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Engine
from bertsmith.inference.predictor import Predictor
from bertsmith.inference.running import TokenWindow
from bertsmith.model.config import AnsweringHead
from bertsmith.objectives.answering import best_spans
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class AnswerSpan:
    """A range of the text that may be the answer."""

    answer: str
    """The text's own characters from `start` to `end`."""
    start: int
    """In code points of the text as it was given."""
    end: int
    """Behind its last code point."""
    score: float
    """Its probability among all spans of the text and no answer."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values."""
        return {"answer": self.answer, "start": self.start, "end": self.end, "score": self.score}


@dataclass(frozen=True)
class AnswerPrediction:
    """What was found about a question."""

    question: str
    context: str
    answer: str
    """Empty where the text does not answer; `start` and `end` are then 0."""
    start: int
    """In code points of the text as it was given: the answer is ``context[start:end]``."""
    end: int
    score: float
    """Probability of the answer, or of no answer where none is given."""
    no_answer_score: float
    """Probability that the text does not answer."""
    alternatives: tuple[AnswerSpan, ...]
    """Other spans, all different, the likeliest first."""
    cut: bool
    """Whether the question is longer than the model sees. The text is always seen as a whole."""

    @property
    def values(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return {
            "question": self.question,
            "answer": self.answer,
            "start": self.start,
            "end": self.end,
            "score": self.score,
            "no_answer_score": self.no_answer_score,
            "alternatives": [span.values for span in self.alternatives],
            "cut": self.cut,
        }


@dataclass(frozen=True)
class AnswerRequest:
    """A question and its text as the model sees them."""

    question: str
    context: str
    parts: TextWindows
    windows: tuple[TokenWindow, ...]
    cut: bool


class AnswerPredictor(Predictor[tuple[str, str], AnswerRequest, AnswerPrediction]):
    """Finds the answer to a question in a text, and the next best ones.

    Args:
        engine: runs a model that was trained for it.
        tokenizer: the one it was trained with. Its ``model_max_length`` says how long a window is.
        top_k: how many spans are told of a question, the alternatives and the answer together.

    Raises:
        InputError: if the model was trained for something else, or `top_k` is not positive.
    """

    task = "answer"

    def __init__(self, engine: Engine, tokenizer: Tokenizer, *, top_k: int = 5) -> None:
        super().__init__(engine, tokenizer)
        if top_k < 1:
            raise InputError("top_k must be 1 or more", top_k, "Ask for one answer at least.")
        self._top_k = top_k
        self._head_config = engine.config.heads.answering or AnsweringHead()
        self._encoder = QuestionEncoder(
            tokenizer,
            max_length=self.max_length,
            overlap=self._head_config.overlap,
            max_question=self._head_config.max_question,
            long_texts=tokenizer.long_texts,
        )

    def prepare(self, items: Sequence[Any], *, first: int = 1) -> list[AnswerRequest]:
        """Questions and texts as token windows.

        Raises:
            InputError: for a blank question or text, or something else than a question with its text.
        """
        pairs = [_checked(number, item) for number, item in enumerate(self.plain(items, first), first)]
        return [
            AnswerRequest(
                question,
                context,
                asked.windows,
                tuple(TokenWindow(token_ids, segment_ids) for token_ids, segment_ids in asked.sequences),
                asked.cut,
            )
            for (question, context), asked in zip(pairs, self._encoder.encode(pairs), strict=True)
        ]

    def decode(self, request: AnswerRequest, outputs: Sequence[Float[np.ndarray, "..."]]) -> AnswerPrediction:
        """The best span over all windows; none where that is likelier than the model's threshold and the model was
        trained on such questions, or the text has no visible character."""
        head = self._head_config
        found = best_spans(request.parts, outputs, max_answer=head.max_answer, count=self._top_k)
        spans: list[AnswerSpan] = []
        for span in found.spans:
            start, end = request.parts.context.range_of(span.first, span.last)
            spans.append(AnswerSpan(request.context[start:end], start, end, span.probability))
        if not spans or (head.threshold is not None and found.no_answer > head.threshold):
            best = AnswerSpan("", 0, 0, found.no_answer)
        else:
            best = spans.pop(0)
        return AnswerPrediction(
            request.question,
            request.context,
            best.answer,
            best.start,
            best.end,
            best.score,
            found.no_answer,
            tuple(spans[: self._top_k - 1]),
            request.cut,
        )


def _checked(number: int, item: object) -> tuple[str, str]:
    match item:
        case (str() as question, str() as context):
            for what, text in (("question", question), ("text", context)):
                if not text.strip():
                    raise InputError(
                        f"A {what} must not be blank", f"item {number}, with the {what} “{text}”", "Give it some text."
                    )
            return question, context
        case _:
            raise InputError(
                "answer takes questions with their texts",
                f"item {number}: {item!r:.60}",
                "Give a pair, (question, text), or several in a list.",
            )
