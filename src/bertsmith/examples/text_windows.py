"""A text as tokens of which a range may be an answer, and the windows that hold parts of it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from bertsmith.examples.targets import IGNORED
from bertsmith.text.graphemes import whole_characters
from bertsmith.text.questions import GoldAnswer, Question
from bertsmith.tokenization.encoding import Encoding


@dataclass(frozen=True)
class ContextTokens:
    """A text as tokens, once for all of its questions and windows."""

    token_ids: Int[np.ndarray, " tokens"]
    offsets: Int[np.ndarray, "tokens 2"]
    """Half-open range of each token in the text, in code points, widened so that no character is parted."""
    begins: Bool[np.ndarray, " tokens"]
    """Whether an answer can begin with a token. Of tokens that share a character, the first alone can."""
    ends: Bool[np.ndarray, " tokens"]
    """Whether an answer can end with a token; of tokens that share a character, the last alone can."""

    @classmethod
    def of(cls, text: str, encoding: Encoding) -> "ContextTokens":
        """Of a text that was encoded by itself."""
        is_text = encoding.sequence_ids == 0
        offsets = encoding.offsets[is_text].astype(np.int32)
        if not text.isascii():
            for number, (start, end) in enumerate(offsets.tolist()):
                if start < end:
                    offsets[number] = whole_characters(text, start, end)
        visible = np.flatnonzero(offsets[:, 1] > offsets[:, 0])
        # Bytes of one character overlap, and so does a piece for a space alone with the word behind it.
        starts = np.minimum.accumulate(offsets[visible, 0][::-1])[::-1]
        stops = np.maximum.accumulate(offsets[visible, 1])
        offsets[visible] = np.stack([starts, stops], axis=1)
        begins, ends = np.zeros((2, len(offsets)), np.bool_)
        begins[visible[:1]] = ends[visible[-1:]] = True
        begins[visible[1:]] = ends[visible[:-1]] = stops[:-1] <= starts[1:]
        return cls(encoding.token_ids[is_text].astype(np.int32), offsets, begins, ends)

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """Half-open range in the text, in code points, of the tokens from `first` to `last`."""
        return int(self.offsets[first, 0]), int(self.offsets[last, 1])

    def tokens_of(self, answer: GoldAnswer) -> tuple[int, int] | None:
        """First and last token of the shortest answer that holds the given one; None where no token holds any of it."""
        if answer.start is None or answer.end is None:
            return None
        visible = np.flatnonzero(self.offsets[:, 1] > self.offsets[:, 0])
        reaching = visible[self.offsets[visible, 1] > answer.start]
        beginning = visible[self.offsets[visible, 0] < answer.end]
        if not len(reaching) or not len(beginning) or reaching[0] > beginning[-1]:
            return None
        begins, ends = np.flatnonzero(self.begins), np.flatnonzero(self.ends)
        first = begins[np.searchsorted(begins, reaching[0], side="right") - 1]
        last = ends[np.searchsorted(ends, beginning[-1])]
        return int(first), int(last)


@dataclass(frozen=True)
class TextPart:
    """The part of a text that stands in a window."""

    start: int
    """Number of its first token among those of the text."""
    end: int
    """Number of the token behind its last one."""
    place: int
    """Where in the window its first token stands."""


@dataclass(frozen=True)
class TextWindows:
    """A text, and the part of it in each of a question's windows."""

    context: ContextTokens
    parts: tuple[TextPart, ...]

    def targets(self, question: Question) -> Int[np.ndarray, "windows 2"]:
        """Places of the first and the last token of the answer in each window.

        It is the window's first token twice where the window does not hold the whole answer, or there is none;
        `IGNORED` where the answer's place is not known, and, for an answer that no window holds whole, in windows
        that hold a piece of it.
        """
        found = np.zeros((len(self.parts), 2), np.int64)
        if question.is_impossible:
            return found
        span = self._span(question)
        if span is None:
            return np.full_like(found, IGNORED)
        first, last = span
        holds = [part.start <= first and last < part.end for part in self.parts]
        for number, part in enumerate(self.parts):
            if holds[number]:
                found[number] = np.array(span) - part.start + part.place
            elif not any(holds) and part.start <= last and first < part.end:
                found[number] = IGNORED
        return found

    def answer_length(self, question: Question) -> int:
        """Tokens of the answer that is trained on; 0 without one."""
        span = self._span(question)
        return 0 if span is None else span[1] - span[0] + 1

    def _span(self, question: Question) -> tuple[int, int] | None:
        answer = question.answer
        return None if answer is None else self.context.tokens_of(answer)
