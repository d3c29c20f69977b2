"""Questions about texts as token windows: the question, and as much of the text as there is room for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field

from bertsmith.examples.task_examples import LongTexts, TaskExamples, refuse_long_texts
from bertsmith.examples.text_windows import ContextTokens, TextPart, TextWindows
from bertsmith.examples.windows import windows_of
from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.text.questions import Question
from bertsmith.text.shown import counted_of
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.tokenizer import Tokenizer

Scorer = Literal["squad", "mlqa-ar", "mlqa-de", "mlqa-en", "mlqa-es", "mlqa-hi", "mlqa-vi", "mlqa-zh"]
"""Whose scorer says when an answer is right: SQuAD's, or MLQA's (Lewis et al. 2020) for a language."""
_OVERLAP, _OVERLAP_SHARE = 128, 0.5
_MAX_QUESTION, _QUESTION_SHARE = 64, 0.25
_ENCODED_CHARACTERS = 1 << 20


class AnswerConfig(Config):
    """How questions are asked of texts, and what becomes of the answers."""

    overlap: Annotated[int, Field(ge=0)] | None = None
    """Tokens that two windows of a text share, which other tools call the stride: 128 where not given, and half of a
    window's room at most."""
    max_question: Annotated[int, Field(ge=1)] | None = None
    """Tokens of a question that are seen: 64 where not given, and a quarter of a sequence at most. A longer one is cut,
    and counted."""
    max_answer: Annotated[int, Field(ge=1)] = 30
    """Most tokens of an answer that is given."""
    no_answer_threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """A question has no answer where the probability of that exceeds this; where not given, the validation rows decide.
    A model that was trained without such questions always answers."""
    scorer: Scorer = "squad"


@dataclass(frozen=True)
class AskedText:
    """A question and its text as the model sees them."""

    windows: TextWindows
    sequences: tuple[tuple[Int[np.ndarray, "_"], Int[np.ndarray, "_"]], ...]
    """Token ids and segment ids of each window."""
    cut: bool
    """Whether the question is longer than what is seen of it."""


@dataclass(frozen=True)
class AnswerExamples(TaskExamples):
    """Questions as token windows, and what it takes to read answers off them. Targets are `TextWindows.targets`."""

    windows: tuple[TextWindows, ...] = ()
    """Of each row."""

    @classmethod
    def of_questions(
        cls, questions: Sequence[Question], encoder: "QuestionEncoder", *, max_answer: int
    ) -> "AnswerExamples":
        """Make windows of questions.

        Args:
            questions: the rows.
            encoder: makes the windows.
            max_answer: most tokens of an answer that will be given; longer ones are counted.
        """
        sequences: list[tuple[np.ndarray, np.ndarray]] = []
        rows: list[int] = []
        targets: list[np.ndarray] = [np.empty((0, 2), np.int64)]
        windows: list[TextWindows] = []
        num_cut = num_long = 0
        for row, asked in enumerate(encoder.encode([question.key for question in questions])):
            sequences += asked.sequences
            rows += [row] * len(asked.sequences)
            targets.append(asked.windows.targets(questions[row]))
            windows.append(asked.windows)
            num_cut += asked.cut
            num_long += asked.windows.answer_length(questions[row]) > max_answer
        notes: list[str] = []
        if num_cut:
            longer, kept = f"longer than {encoder.max_question} tokens", f"{encoder.kept} is used"
            told = (f"is {longer}; its {kept}", f"are {longer}; their {kept}")
            notes.append(counted_of(num_cut, len(questions), "question", *told))
        if num_long:
            longer = f"an answer of more than {max_answer} tokens, and never"
            told = (f"has {longer} gets it whole", f"have {longer} get it whole")
            notes.append(f"{counted_of(num_long, len(questions), 'question', *told)} (answer.max_answer)")
        base = TaskExamples.of(sequences, rows, targets=np.concatenate(targets))
        inherited = {field.name: getattr(base, field.name) for field in fields(base) if field.name != "notes"}
        return cls(**inherited, notes=tuple(notes), windows=tuple(windows))


class QuestionEncoder:
    """Makes token windows of questions and their texts: first token, question, separator, part of the text, separator.

    A window's text moves along by what it does not share with the one before it. The question stands in every window.

    Args:
        tokenizer: the model's.
        max_length: most tokens of a window, special ones included.
        overlap: as in `AnswerConfig`.
        max_question: as in `AnswerConfig`.
        long_texts: which end is kept of a longer question.

    Raises:
        InputError: if the tokenizer has no first token, the lengths leave no room or no way forward, or long
            questions are to be read in windows.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        max_length: int,
        overlap: int | None = None,
        max_question: int | None = None,
        long_texts: LongTexts = "head",
    ) -> None:
        refuse_long_texts(long_texts, ("head", "tail"), "texts are read in windows always, and this is for questions")
        self._tokenizer = tokenizer
        self._frame = _Frame.of(tokenizer)
        self._overlap = overlap
        self.kept: Literal["head", "tail"] = "tail" if long_texts == "tail" else "head"
        """Which part of a longer question is seen."""
        self._room = max_length - self._frame.num_special
        """For question and text."""
        given = max_question is not None
        self.max_question = (
            max_question if max_question is not None else max(1, min(_MAX_QUESTION, int(_QUESTION_SHARE * max_length)))
        )
        """Tokens of a question that are seen."""
        self.room_for_text = least = self._room - self.max_question
        """Tokens of a text that a window holds beside the longest question."""
        if least < 1:
            raise InputError(
                "--max-length must leave room for a text beside the question",
                f"{max_length} tokens, {self._frame.num_special} of them special and up to {self.max_question} of the "
                "question",
                "Use a smaller answer.max_question, or a larger --max-length."
                if given
                else "Use a larger --max-length.",
            )
        if overlap is not None and overlap >= least:
            raise InputError(
                "answer.overlap must be smaller than the room for text in a window, so that each brings new tokens",
                f"{overlap} tokens, and windows of {max_length} leave room for {least} beside the longest question",
                f"Use {least - 1} or less, or a larger --max-length.",
            )

    def encode(self, items: Sequence[tuple[str, str]]) -> Iterator[AskedText]:
        """Windows of questions with their texts, in order.

        Args:
            items: question and text; a text that many questions have is encoded once where they follow each other.
        """
        for some in _bounded(items):
            contexts = list(dict.fromkeys(context for _, context in some))
            texts = [*contexts, *(question for question, _ in some)]
            encodings = self._tokenizer.encode_batch(texts)
            known = {
                text: ContextTokens.of(text, encoding)
                for text, encoding in zip(contexts, encodings[: len(contexts)], strict=True)
            }
            for (_, context), question in zip(some, encodings[len(contexts) :], strict=True):
                yield self._asked(question, known[context])

    def _asked(self, question: Encoding, context: ContextTokens) -> AskedText:
        asked = question.token_ids[question.sequence_ids == 0].astype(np.int32)
        kept = asked[-self.max_question :] if self.kept == "tail" else asked[: self.max_question]
        room = self._room - len(kept)
        overlap = self._overlap
        if overlap is None:
            overlap = min(_OVERLAP, int(_OVERLAP_SHARE * room))
        parts = windows_of(len(context.token_ids), room, overlap)
        place = self._frame.num_before + len(kept)
        return AskedText(
            TextWindows(context, tuple(TextPart(start, end, place) for start, end in parts)),
            tuple(self._frame.sequence(kept, context.token_ids[start:end]) for start, end in parts),
            len(kept) < len(asked),
        )


@dataclass(frozen=True)
class _Frame:
    """The control tokens before, between and behind two texts, and the segments of all that stands in a sequence."""

    before: Int[np.ndarray, " before"]
    between: Int[np.ndarray, " between"]
    behind: Int[np.ndarray, " behind"]
    segments: tuple[Int[np.ndarray, " before"], Int[np.ndarray, " between"], Int[np.ndarray, " behind"]]
    """Of the same."""
    text_segments: tuple[int, int]
    """Of the two texts."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "_Frame":
        pair = tokenizer.encode("a", "a")
        first, second = (np.flatnonzero(pair.sequence_ids == number) for number in (0, 1))
        bounds = ((0, first[0]), (first[-1] + 1, second[0]), (second[-1] + 1, len(pair)))
        if not first[0]:
            raise InputError(
                "answer needs a tokenizer that puts a token before a text, where no answer is found",
                "a tokenizer without one",
                "Use a tokenizer made for BERT, or train one: bertsmith tokenizer train FILES --out DIR.",
            )
        before, between, behind = (pair.token_ids[start:end].astype(np.int32) for start, end in bounds)
        segments = tuple(pair.segment_ids[start:end].astype(np.int8) for start, end in bounds)
        text_segments = int(pair.segment_ids[first[0]]), int(pair.segment_ids[second[0]])
        return cls(before, between, behind, (segments[0], segments[1], segments[2]), text_segments)

    @property
    def num_before(self) -> int:
        """Control tokens before the second text."""
        return len(self.before) + len(self.between)

    @property
    def num_special(self) -> int:
        """Control tokens in a sequence."""
        return self.num_before + len(self.behind)

    def sequence(
        self, question: Int[np.ndarray, " question"], text: Int[np.ndarray, " text"]
    ) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " tokens"]]:
        """Token ids and segment ids of a window."""
        first, second = (
            np.full(len(part), segment, np.int8)
            for part, segment in zip((question, text), self.text_segments, strict=True)
        )
        token_ids = np.concatenate([self.before, question, self.between, text, self.behind])
        return token_ids, np.concatenate([self.segments[0], first, self.segments[1], second, self.segments[2]])


def _bounded(items: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The items in portions of a bounded number of characters, a text that follows itself counted once."""
    portion: list[tuple[str, str]] = []
    size = 0
    for question, context in items:
        new = len(question) + (0 if portion and portion[-1][1] == context else len(context))
        if portion and size + new > _ENCODED_CHARACTERS:
            yield portion
            portion, size = [], 0
            new = len(question) + len(context)
        portion.append((question, context))
        size += new
    if portion:
        yield portion
