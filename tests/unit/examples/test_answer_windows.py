"""Questions and their texts as token windows, and where the answer stands in each."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bertsmith.examples.answering import AnswerConfig, AnswerExamples, AskedText, QuestionEncoder
from bertsmith.examples.targets import IGNORED
from bertsmith.examples.text_windows import ContextTokens
from bertsmith.foundation.errors import InputError
from bertsmith.text.questions import GoldAnswer, Question
from made_corpora import made_tokenizer
from made_questions import question_of

TOKENIZER = made_tokenizer()
SHORT = "The old boat waited under the bridge."
LONG = " ".join(["river harbour garden winter morning teacher sailor"] * 12)


def _one(encoder: QuestionEncoder, question: str, context: str) -> AskedText:
    (asked,) = encoder.encode([(question, context)])
    return asked


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_a_short_text_is_one_window_as_the_tokenizer_lays_it_out(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    asked = _one(QuestionEncoder(tokenizer, max_length=64), "What waited?", SHORT)
    ((token_ids, segment_ids),) = asked.sequences
    expected = tokenizer.encode("What waited?", SHORT)
    assert token_ids.tolist() == expected.token_ids.tolist()
    assert segment_ids.tolist() == expected.segment_ids.tolist()
    (part,) = asked.windows.parts
    assert (expected.sequence_ids == 1).nonzero()[0].tolist() == list(range(part.place, part.place + part.end))
    assert not asked.cut


def test_windows_cover_a_long_text_and_share_what_was_asked_for() -> None:
    encoder = QuestionEncoder(TOKENIZER, max_length=32, overlap=8)
    asked = _one(encoder, "What waited?", LONG)
    parts, context = asked.windows.parts, asked.windows.context
    assert len(parts) > 2
    assert parts[0].start == 0
    assert parts[-1].end == len(context.token_ids)
    assert all(before.end - after.start >= 8 for before, after in pairwise(parts))
    assert all(len(token_ids) == 32 for token_ids, _ in asked.sequences)
    for part, (token_ids, _) in zip(parts, asked.sequences, strict=True):
        inside = token_ids[part.place : part.place + part.end - part.start]
        assert inside.tolist() == context.token_ids[part.start : part.end].tolist()
        assert token_ids[: part.place].tolist() == asked.sequences[0][0][: part.place].tolist()


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ({"max_length": 32, "overlap": 30}, "answer.overlap must be smaller.*30 tokens.*leave room for 21.*Use 20"),
        ({"max_length": 32, "overlap": 21, "max_question": 8}, "answer.overlap must be smaller"),
        ({"max_length": 32, "max_question": 29}, "leave room for a text.*smaller answer.max_question"),
        ({"max_length": 3}, "leave room for a text.*Use a larger --max-length"),
    ],
)
def test_lengths_that_leave_no_way_forward_are_refused_before_any_text(lengths: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        QuestionEncoder(TOKENIZER, **lengths)


def test_lengths_that_are_not_given_fit_any_model() -> None:
    for max_length in range(8, 520, 7):
        encoder = QuestionEncoder(TOKENIZER, max_length=max_length)
        assert encoder.max_question == max(1, min(64, max_length // 4))
        asked = _one(encoder, "What waited?", LONG)
        assert all(len(token_ids) <= max_length for token_ids, _ in asked.sequences)
    assert AnswerConfig().overlap is None


def test_a_question_of_600_tokens_is_cut_by_the_stated_rule_and_counted() -> None:
    question = " ".join(["river"] * 599 + ["boat"])
    head, tail = (QuestionEncoder(TOKENIZER, max_length=128, long_texts=kept) for kept in ("head", "tail"))
    boat = TOKENIZER.encode("boat").token_ids[1]
    for encoder, ends_with_boat in ((head, False), (tail, True)):
        asked = _one(encoder, question, SHORT)
        assert asked.cut
        assert encoder.max_question == 32
        place = asked.windows.parts[0].place
        assert place == 32 + 2
        assert (asked.sequences[0][0][place - 2] == boat) == ends_with_boat
    examples = AnswerExamples.of_questions(
        [question_of(SHORT, "old boat", question=asked) for asked in (question, "Short?")], head, max_answer=30
    )
    assert examples.notes == ("1 of 2 questions is longer than 32 tokens; its head is used",)


def test_a_question_that_is_seen_whole_can_be_asked_with_a_larger_limit() -> None:
    question = " ".join(["river"] * 50)
    assert _one(QuestionEncoder(TOKENIZER, max_length=128), question, SHORT).cut
    assert not _one(QuestionEncoder(TOKENIZER, max_length=128, max_question=50), question, SHORT).cut


def test_special_tokens_in_question_and_text_stay_text() -> None:
    asked = _one(QuestionEncoder(TOKENIZER, max_length=64), "a [SEP] b [CLS]", "c [SEP] d [MASK] e")
    ids = asked.sequences[0][0].tolist()
    assert ids.count(TOKENIZER.sep_id) == 2
    assert ids.count(TOKENIZER.cls_id) == 1
    assert TOKENIZER.mask_id not in ids
    context = asked.windows.context
    first, last = context.tokens_of(GoldAnswer("[SEP]", 2, 7)) or (0, 0)
    assert context.range_of(first, last) == (2, 7)


def test_a_text_of_many_questions_is_encoded_once() -> None:
    encoder = QuestionEncoder(TOKENIZER, max_length=64)
    first, second, other = encoder.encode([("A boat?", SHORT), ("A bridge?", SHORT), ("A boat?", LONG)])
    assert first.windows.context is second.windows.context
    assert other.windows.context is not first.windows.context
    assert list(encoder.encode([])) == []


def test_the_target_is_the_answers_first_and_last_token_where_a_window_holds_it() -> None:
    context = f"{LONG} the wooden bridge {LONG}"
    question = question_of(context, "wooden bridge")
    examples = AnswerExamples.of_questions(
        [question], QuestionEncoder(TOKENIZER, max_length=32, overlap=10), max_answer=30
    )
    holding = 0
    for number, (first, last) in enumerate(examples.targets.tolist()):
        start = examples.sequence_starts[number]
        if (first, last) == (0, 0):
            continue
        holding += 1
        ids = examples.token_ids[start + first : start + last + 1]
        assert TOKENIZER.decode(ids) == "wooden bridge"
    assert 1 <= holding < len(examples)
    assert examples.rows.tolist() == [0] * len(examples)
    assert examples.notes == ()


def test_only_the_first_answer_that_has_a_place_is_trained_on() -> None:
    golds = (GoldAnswer("ship", None, None), GoldAnswer("bridge", 30, 36), GoldAnswer("boat", 8, 12))
    question = Question("line 1", "1", "What?", SHORT, golds)
    examples = AnswerExamples.of_questions([question], QuestionEncoder(TOKENIZER, max_length=64), max_answer=30)
    ((first, last),) = examples.targets.tolist()
    assert TOKENIZER.decode(examples.token_ids[first : last + 1]) == "bridge"


def test_a_question_without_an_answer_points_at_the_first_token_and_a_lost_one_nowhere() -> None:
    questions = [question_of(LONG), Question("line 2", "2", "What?", LONG, (GoldAnswer("ship", None, None),))]
    examples = AnswerExamples.of_questions(questions, QuestionEncoder(TOKENIZER, max_length=32), max_answer=30)
    assert (examples.targets[examples.rows == 0] == 0).all()
    assert (examples.targets[examples.rows == 1] == IGNORED).all()


def test_an_answer_that_no_window_holds_whole_asks_nothing_of_windows_with_a_piece_of_it() -> None:
    context = f"{LONG} {LONG}"
    question = question_of(context, LONG)
    examples = AnswerExamples.of_questions([question], QuestionEncoder(TOKENIZER, max_length=32), max_answer=30)
    first, last = examples.windows[0].context.tokens_of(question.answers[0]) or (0, 0)
    for part, target in zip(examples.windows[0].parts, examples.targets.tolist(), strict=True):
        assert target == ([IGNORED] * 2 if part.start <= last and first < part.end else [0, 0])
    assert [0, 0] in examples.targets.tolist()
    assert "1 of 1 question has an answer of more than 30 tokens" in examples.notes[0]


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_answers_begin_and_end_with_whole_characters(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    text = "glad😊 👨\u200d👩\u200d👧 cafe\u0301 boat 🇩🇪🇫🇷 شُكرًا"
    context = ContextTokens.of(text, tokenizer.encode(text))
    begins, ends = np.flatnonzero(context.begins), np.flatnonzero(context.ends)
    assert len(begins) == len(ends) > 0
    found = {
        text[slice(*context.range_of(int(first), int(last)))] for first in begins for last in ends if first <= last
    }
    assert all("" != answer == answer.strip() for answer in found)
    assert not any(answer.startswith(("\u0301", "\u200d", "\u064f", "\u064b")) for answer in found)
    assert not any(answer.endswith("\u200d") for answer in found)
    for answer in ("👨\u200d👩\u200d👧", "boat"):
        span = context.tokens_of(question_of(text, answer).answers[0])
        assert span is not None
        start, end = context.range_of(*span)
        assert answer in text[start:end]


def test_an_answer_that_holds_nothing_the_model_sees_has_no_tokens() -> None:
    text = "a\u200b boat"
    context = ContextTokens.of(text, TOKENIZER.encode(text))
    assert context.tokens_of(GoldAnswer(" ", 2, 3)) is None
    assert context.tokens_of(GoldAnswer("ship", None, None)) is None
    nothing = ContextTokens.of("", TOKENIZER.encode(""))
    assert nothing.tokens_of(GoldAnswer("a", 0, 1)) is None
