"""Texts as tokens that an answer may begin and end with, and windows over them, over random texts and sizes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.examples.answering import AnswerExamples, QuestionEncoder
from bertsmith.examples.text_windows import ContextTokens
from bertsmith.objectives.answer_scores import AnswerScores, normalizer
from bertsmith.objectives.answering import best_spans
from bertsmith.text.graphemes import parts_character
from bertsmith.text.questions import GoldAnswer, Question
from made_corpora import WORDS, made_tokenizer

PLAIN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(" ".join)
ODD = st.text(st.sampled_from("ab \n\u0301عُّـ\u200d😊👍🏽🇩🇪한ᄒ\u1161\u11ab東ﬁé\u200b[SEP]"), min_size=1, max_size=25)
TEXT = st.one_of(PLAIN, ODD)


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
@given(text=TEXT)
@settings(max_examples=80, deadline=None)
def test_no_answer_parts_a_character_and_each_is_told_once(algorithm: str, text: str) -> None:
    context = ContextTokens.of(text, made_tokenizer(algorithm).encode(text))
    begins, ends = np.flatnonzero(context.begins), np.flatnonzero(context.ends)
    assert len(begins) == len(ends)
    starts, stops = context.offsets[begins, 0].tolist(), context.offsets[ends, 1].tolist()
    assert starts == sorted(set(starts))
    assert stops == sorted(set(stops))
    assert not any(parts_character(text, place) for place in [*starts, *stops])
    for start, stop in zip(starts, stops, strict=True):
        assert not text[start].isspace()
        assert not text[stop - 1].isspace()


@given(text=PLAIN, data=st.data(), max_length=st.integers(16, 40), share=st.floats(0, 0.9))
@settings(max_examples=60, deadline=None)
def test_a_window_that_holds_the_answer_points_at_it(
    text: str, data: st.DataObject, max_length: int, share: float
) -> None:
    words = text.split()
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, min(first + 2, len(words) - 1)))
    answer = " ".join(words[first : last + 1])
    start = len(" ".join([*words[:first], ""])) if first else 0
    question = Question("line 1", "1", "river boat", text, (GoldAnswer(answer, start, start + len(answer)),))
    tokenizer = made_tokenizer()
    overlap = int(share * (max_length - 3 - max_length // 4))
    examples = AnswerExamples.of_questions(
        [question], QuestionEncoder(tokenizer, max_length=max_length, overlap=overlap), max_answer=30
    )
    context = examples.windows[0].context
    told = 0
    for number, (one, other) in enumerate(examples.targets.tolist()):
        part = examples.windows[0].parts[number]
        if one > 0:
            told += 1
            shift = part.start - part.place
            assert context.range_of(one + shift, other + shift) == (start, start + len(answer))
    covered = np.zeros(len(context.token_ids), bool)
    for part in examples.windows[0].parts:
        covered[part.start : part.end] = True
    assert covered.all()
    # An answer fits some window where windows share one token less than it has.
    if overlap >= examples.windows[0].answer_length(question) - 1:
        assert told


@given(text=PLAIN, seed=st.integers(0, 99), count=st.integers(1, 30), longest=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_probabilities_of_spans_and_of_no_answer_add_up(text: str, seed: int, count: int, longest: int) -> None:
    (asked,) = QuestionEncoder(made_tokenizer(), max_length=24).encode([("river boat", text)])
    stream = np.random.default_rng(seed)
    logits = [stream.normal(0, 5, (len(ids), 2)).astype(np.float32) for ids, _ in asked.sequences]
    everything = best_spans(asked.windows, logits, max_answer=longest, count=100_000)
    some = best_spans(asked.windows, logits, max_answer=longest, count=count)
    assert some.spans == everything.spans[:count]
    assert len({(span.first, span.last) for span in everything.spans}) == len(everything.spans)
    assert all(span.first <= span.last < span.first + longest for span in everything.spans)
    assert sum(span.probability for span in everything.spans) + everything.no_answer == pytest.approx(1.0)


WORDY = st.lists(st.sampled_from(["the", "a", "boat", "Boat,", "rain", "«x»", "ال", ".", "an"]), max_size=6).map(
    " ".join
)


@given(answer=WORDY, golds=st.lists(WORDY, max_size=3))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(answer: str, golds: list[str]) -> None:
    normal = normalizer("squad")
    right = [normal(gold) for gold in golds if normal(gold)] or [[]]
    found = normal(answer)

    def f1(gold: list[str]) -> float:
        if not gold or not found:
            return float(gold == found)
        same = sum(min(count, gold.count(word)) for word, count in Counter(found).items())
        precision, recall = same / len(found), same / len(gold)
        return 2 * precision * recall / (precision + recall) if same else 0.0

    scores = AnswerScores.of([answer], [golds])
    assert scores.f1[0] == pytest.approx(max(map(f1, right)))
    assert scores.exact[0] == float(found in right)
    assert scores.exact[0] <= scores.f1[0] + 1e-12
