"""The answer to a question, as a span of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from bertsmith.examples.answering import AnswerConfig, AnswerExamples, QuestionEncoder
from bertsmith.examples.question_tables import read_questions
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_examples import LongTexts, TaskExamples
from bertsmith.foundation.errors import InputError
from bertsmith.inference.answer import AnswerPredictor
from bertsmith.inference.engine import Engine
from bertsmith.model.config import AnsweringHead, HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.answer_scores import AnswerScores, answer_metrics, settled_threshold
from bertsmith.objectives.answering import Answering, answer_loss, best_spans
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.class_weights import refuse_class_weights
from bertsmith.text.questions import Question
from bertsmith.text.shown import counted_of
from bertsmith.tokenization.tokenizer import Tokenizer

_SHOWN_AROUND = 150
"""Characters of a text that are shown to each side of an answer."""
_NO_ANSWER = "(no answer)"
_LEAST_QUESTION, _LEAST_TEXT, _LEAST_LENGTH = 8, 16, 32
"""Tokens that a window must show to learn from; a question that nobody limits has a quarter of it."""


class Answer:
    """See the module."""

    name = "answer"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """F1 first; where some questions have no answer, that of the best threshold, since validation decides it."""
        shares = ["f1", "exact_match"]
        if _unanswerable(rows):
            shares = ["best_f1", *shares, "best_exact", "has_answer_f1", "has_answer_exact", "no_answer_exact"]
        found: dict[str, Better] = dict.fromkeys(shares, "higher")
        found["loss"] = "lower"
        return found

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read SQuAD's JSON or a table of questions."""
        if like is not None and path.suffix == like.path.suffix:
            columns = like.layout
            data = data.model_copy(update={"text": columns.text, "pair": columns.pair, "label": columns.label})
        table = read_questions(path, data, options=options)
        return TaskRows(path, table.rows, str(table.columns), table.notes, table.columns)

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """None."""
        if all(question.answer is None for question in rows.items):
            raise InputError(
                "Some question must have an answer that stands in its text",
                f"none of {len(rows.items)} in {rows.path}",
                "Check the file's answers and their offsets.",
            )
        return ()

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Any answer will do."""

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """Whether a question has an answer."""
        return np.array([question.is_impossible for question in rows.items], np.int64)

    def groups(self, rows: TaskRows) -> list[str]:
        """The text of each question: several questions are asked about one."""
        return [question.context for question in rows.items]

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """Texts, and questions without an answer."""
        contexts = {question.context for question in rows.items}
        return {"texts": len(contexts), "unanswerable_rows": _unanswerable(rows)}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """How many questions have no answer, and answers that nobody will find."""
        count = _unanswerable(rows)
        if not count:
            return ["every question has an answer, so the model will always give one"]
        lacking = counted_of(count, len(rows.items), "question", "has no answer", "have no answer")
        return [f"{lacking}, so the model may give none"]

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """How questions are read, and whether some have no answer.

        Raises:
            InputError: for class weights, or a threshold where every question has an answer.
        """
        refuse_class_weights(config, "answers have no classes")
        settings = config.answer or AnswerConfig()
        if settings.no_answer_threshold is not None and not _unanswerable(rows):
            raise InputError(
                "answer.no_answer_threshold needs training questions without an answer, or the model always answers",
                f"{settings.no_answer_threshold}, and each of {len(rows.items)} questions in {rows.path} has an answer",
                "Leave it out, or add such questions.",
            )
        return {"answering": AnsweringHead(**settings.model_dump(), unanswerable=_unanswerable(rows) > 0)}

    def examples(
        self,
        rows: TaskRows,
        labels: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_length: int,
        long_texts: LongTexts,
        heads: HeadsConfig,
    ) -> AnswerExamples:
        """Each question with its text, in as many windows as the text needs."""
        head = heads.answering or AnsweringHead()
        encoder = QuestionEncoder(
            tokenizer,
            max_length=max_length,
            overlap=head.overlap,
            max_question=head.max_question,
            long_texts=long_texts,
        )
        if not rows.held_out:
            _refuse_narrow(encoder, head, max_length)
        return AnswerExamples.of_questions(rows.items, encoder, max_answer=head.max_answer)

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Answering:
        """Cross-entropy of the first and of the last token."""
        return Answering()

    def evaluation(
        self,
        outputs: Float[np.ndarray, "tokens 2"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Exact match and F1, questions with and without an answer apart, and the wrong answers that are worst."""
        head = heads.answering or AnsweringHead()
        found = _best_answers(outputs, examples, rows, head)
        answered, has_answer, no_answer = _judged(found, rows, head)
        return {
            "rows": len(rows.items),
            **answer_metrics(answered, has_answer, no_answer, threshold=head.threshold),
            "loss": answer_loss(outputs, examples.sequence_starts, examples.targets),
            "worst_errors": _worst_errors(found, _golds(rows), rows.items, head, most_errors),
        }

    def settle(
        self, outputs: Float[np.ndarray, "tokens 2"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """From which probability on no answer is given, where that was not said: it gives the best F1, and lies between
        the probabilities of two questions."""
        heads = model.config.heads
        head = heads.answering
        if head is None or not head.unanswerable or head.no_answer_threshold is not None:
            return heads
        answered, has_answer, no_answer = _judged(_best_answers(outputs, examples, rows, head), rows, head)
        if np.isnan(no_answer).any():
            return heads
        threshold = settled_threshold(answered.f1, has_answer, no_answer)
        return heads.model_copy(update={"answering": head.model_copy(update={"no_answer_threshold": threshold})})

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> AnswerPredictor:
        """The predictor of a trained model."""
        return AnswerPredictor(engine, tokenizer)


def _refuse_narrow(encoder: QuestionEncoder, head: AnsweringHead, max_length: int) -> None:
    """Raise an `InputError` for windows that show too little to learn from. A question may be as short as is said."""
    least_question = _LEAST_QUESTION if head.max_question is None else 1
    if encoder.max_question >= least_question and encoder.room_for_text >= _LEAST_TEXT:
        return
    raise InputError(
        f"--max-length must leave {_LEAST_QUESTION} tokens for a question, and {_LEAST_TEXT} for the text beside it",
        f"{max_length}, which leaves {encoder.max_question} for a question and {encoder.room_for_text} for the text",
        f"Use --max-length {_LEAST_LENGTH} or more."
        if head.max_question is None
        else "Use a larger --max-length, or a smaller answer.max_question.",
    )


@dataclass(frozen=True)
class _BestAnswer:
    """The likeliest span of a row's text."""

    text: str
    start: int
    score: float
    no_answer: float


def _best_answers(
    outputs: Float[np.ndarray, "tokens 2"], examples: TaskExamples, rows: TaskRows, head: AnsweringHead
) -> list[_BestAnswer]:
    if not isinstance(examples, AnswerExamples):
        raise ValueError("Answers are read off AnswerExamples. Received: other examples. Make them with Task.examples.")
    of_sequences = np.split(outputs, examples.sequence_starts[1:-1])
    firsts = np.searchsorted(examples.rows, np.arange(len(rows.items) + 1))
    found: list[_BestAnswer] = []
    for row, windows in enumerate(examples.windows):
        spans = best_spans(windows, of_sequences[firsts[row] : firsts[row + 1]], max_answer=head.max_answer, count=1)
        start = end = 0
        score = spans.no_answer
        for span in spans.spans:  # There is none in a text without a visible character.
            (start, end), score = windows.context.range_of(span.first, span.last), span.probability
        found.append(_BestAnswer(rows.items[row].context[start:end], start, score, spans.no_answer))
    return found


def _golds(rows: TaskRows) -> list[list[str]]:
    return [[answer.text for answer in question.answers] for question in rows.items]


def _judged(
    found: Sequence[_BestAnswer], rows: TaskRows, head: AnsweringHead
) -> tuple[AnswerScores, Bool[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """How right the best spans are, which questions have an answer, and how likely each is taken to have none."""
    golds = _golds(rows)
    answered = AnswerScores.of([answer.text for answer in found], golds, head.scorer)
    has_answer = np.array([bool(given) for given in golds])
    return answered, has_answer, np.array([answer.no_answer for answer in found])


def _worst_errors(
    found: Sequence[_BestAnswer],
    golds: Sequence[Sequence[str]],
    questions: Sequence[Question],
    head: AnsweringHead,
    most: int | None,
) -> list[dict[str, Any]]:
    """Wrong answers, those first that have the least in common with a right one, and of these the most certain."""
    silent = [head.threshold is not None and answer.no_answer > head.threshold for answer in found]
    given = ["" if none else answer.text for answer, none in zip(found, silent, strict=True)]
    certain = np.array([answer.no_answer if none else answer.score for answer, none in zip(found, silent, strict=True)])
    scores = AnswerScores.of(given, golds, head.scorer)
    wrong = np.flatnonzero(scores.exact == 0)
    worst = wrong[np.lexsort((-certain[wrong], scores.f1[wrong]))[:most]]
    errors: list[dict[str, Any]] = []
    for number in map(int, worst):
        question = questions[number]
        errors.append(
            {
                "place": question.place,
                "text": question.question,
                "pair": _around(question, found[number]),
                "label": " / ".join(list(dict.fromkeys(golds[number]))) or _NO_ANSWER,
                "predicted": given[number] or _NO_ANSWER,
                "score": float(certain[number]),
            }
        )
    return errors


def _around(question: Question, found: _BestAnswer) -> str:
    """The text where the right answer stands in it, or the one that was found."""
    right = question.answer
    at, end = found.start, found.start + len(found.text)
    if right is not None and right.start is not None and right.end is not None:
        at, end = right.start, right.end
    first, last = max(0, at - _SHOWN_AROUND), min(len(question.context), end + _SHOWN_AROUND)
    before, behind = "…" * (first > 0), "…" * (last < len(question.context))
    return f"{before}{question.context[first:last]}{behind}"


def _unanswerable(rows: TaskRows) -> int:
    return sum(question.is_impossible for question in rows.items)
