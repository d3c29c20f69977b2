"""Answering questions about texts: spans over all windows, and no answer."""

import time
from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.examples.answering import QuestionEncoder
from bertsmith.foundation.errors import InputError
from bertsmith.inference.answer import AnswerPrediction, AnswerPredictor
from bertsmith.inference.predictor import Prediction, Request
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model.config import AnsweringHead
from bertsmith.objectives.answering import best_spans
from bertsmith.text.graphemes import parts_character
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_model, made_texts, made_tokenizer
from made_questions import made_answerer
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
SHORT = "The old boat waited under the bridge."
LONG = " ".join(["The old river carried every small boat"] * 30)
PREDICTOR = AnswerPredictor(TorchEngine(made_answerer(), CPU), made_tokenizer())


def _predictor(
    head: AnsweringHead | None = None, *, algorithm: str = "wordpiece", top_k: int = 5, positions: int = 64
) -> AnswerPredictor:
    model = made_answerer(head, algorithm=algorithm, positions=positions)
    return AnswerPredictor(TorchEngine(model, CPU), made_tokenizer(algorithm), top_k=top_k)


def _spans(found: AnswerPrediction) -> list[tuple[int, int, float]]:
    first = [(found.start, found.end, found.score)] if found.answer else []
    return [*first, *((span.start, span.end, span.score) for span in found.alternatives)]


@torch.no_grad()
def test_answers_are_the_best_spans_of_the_models_scores_over_all_windows() -> None:
    for context in (SHORT, LONG):
        (found,) = PREDICTOR([("What waited?", context)])
        (asked,) = QuestionEncoder(made_tokenizer(), max_length=64).encode([("What waited?", context)])
        assert len(asked.sequences) == 1 if context is SHORT else len(asked.sequences) > 3
        (request,) = PREDICTOR.prepare([("What waited?", context)])
        expected = best_spans(asked.windows, PREDICTOR.run(request.windows), max_answer=30, count=5)
        places = [asked.windows.context.range_of(span.first, span.last) for span in expected.spans]
        assert [span[:2] for span in _spans(found)] == places
        assert [span[2] for span in _spans(found)] == pytest.approx([span.probability for span in expected.spans])
        assert found.no_answer_score == pytest.approx(expected.no_answer)
        assert found.answer == context[found.start : found.end]


def test_the_result_has_the_documented_fields() -> None:
    (found,) = PREDICTOR([("What waited?", SHORT)])
    assert isinstance(found, Prediction)
    assert isinstance(PREDICTOR.prepare([("What waited?", SHORT)])[0], Request)
    values = found.values
    assert list(values) == [
        "question", "answer", "start", "end", "score", "no_answer_score", "alternatives", "cut",
    ]  # fmt: skip
    assert list(values["alternatives"][0]) == ["answer", "start", "end", "score"]
    assert values["question"] == "What waited?"
    assert values["answer"] == SHORT[values["start"] : values["end"]]


@pytest.mark.parametrize("context", [SHORT, LONG, "boat"])
def test_ten_answers_are_ten_different_spans_or_all_there_are(context: str) -> None:
    (found,) = _predictor(top_k=10)([("What waited?", context)])
    spans = _spans(found)
    assert len({span[:2] for span in spans}) == len(spans) == (1 if context == "boat" else 10)
    scores = [span[2] for span in spans]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) + found.no_answer_score <= 1 + 1e-9
    (one,) = _predictor(top_k=1)([("What waited?", context)])
    assert one.alternatives == ()
    assert (one.start, one.end) == spans[0][:2]


def test_answers_are_no_longer_than_was_trained() -> None:
    predictor = _predictor(AnsweringHead(max_answer=2), top_k=50)
    (request,), (found,) = predictor.prepare([("What?", LONG)]), predictor([("What?", LONG)])
    starts, ends = (request.parts.context.offsets[:, side] for side in (0, 1))
    counts = {int(((starts >= start) & (ends <= end)).sum()) for start, end, _ in _spans(found)}
    assert counts == {1, 2}


def test_a_question_without_an_answer_is_told_where_the_model_knows_such_questions() -> None:
    (always,) = PREDICTOR([("What waited?", SHORT)])
    assert always.answer
    low, high = (
        _predictor(AnsweringHead(unanswerable=True, no_answer_threshold=limit))([("What waited?", SHORT)])[0]
        for limit in (0.0, 1.0)
    )
    assert (low.answer, low.start, low.end, low.score) == ("", 0, 0, low.no_answer_score)
    assert low.no_answer_score == pytest.approx(always.no_answer_score)
    assert [(span.start, span.end) for span in low.alternatives] == [span[:2] for span in _spans(always)][:4]
    assert (high.answer, high.start, high.end) == (always.answer, always.start, always.end)
    never = _predictor(AnsweringHead(no_answer_threshold=0.0))([("What waited?", SHORT)])[0]
    assert never.answer == always.answer


def test_a_prediction_depends_neither_on_neighbours_nor_on_order() -> None:
    items = [("What waited?", text) for text in [*made_texts(8, sentences=(1, 8)), LONG, SHORT]]
    alone = [PREDICTOR([item])[0] for item in items]
    together, backwards = PREDICTOR(items), PREDICTOR(items[::-1])[::-1]
    for one, *others in zip(alone, together, backwards, strict=True):
        for other in others:
            assert other.context == one.context
            assert (other.start, other.end) == (one.start, one.end)
            assert other.score == pytest.approx(one.score, abs=1e-5)
            assert other.no_answer_score == pytest.approx(one.no_answer_score, abs=1e-5)


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_answers_in_any_script_are_whole_characters_of_the_text_as_given(algorithm: str) -> None:
    context = "  glad😊 عَرَبِيّ 👨\u200d👩\u200d👧 cafe\u0301\r\nboat 東京 \u200b🇩🇪 \ud800 ﬁn "
    (found,) = _predictor(algorithm=algorithm, top_k=2000)([("من؟ [SEP]", context)])
    assert len(_spans(found)) > 5
    for span in found.alternatives:
        assert span.answer == context[span.start : span.end] == span.answer.strip()
        assert span.answer
        assert not parts_character(context, span.start)
        assert not parts_character(context, span.end)


def test_literal_special_tokens_in_question_and_text_can_be_answers() -> None:
    context = "a [SEP] b"
    (found,) = _predictor(top_k=1000)([("What is [CLS]?", context)])
    answers = {context[start:end] for start, end, _ in _spans(found)}
    assert {"[SEP]", "a [SEP] b", "b"} <= answers


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([("", SHORT)], "question must not be blank.*item 1"),
        ([("Who?", SHORT), (" \n", SHORT)], "question must not be blank.*item 2"),
        ([("Who?", "  ")], "text must not be blank"),
        (["Who?"], r"takes questions with their texts.*item 1: 'Who\?'"),
        ([("Who?", SHORT, "more")], "takes questions with their texts"),
        ([("Who?", 7)], "takes questions with their texts"),
        ("Who?", r"takes questions with their texts.*item 1: 'Who\?'"),
    ],
)
def test_items_that_cannot_be_used_are_refused_by_their_number(items: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        PREDICTOR(items)


def test_a_single_pair_is_one_item_and_a_list_of_two_is_two_texts() -> None:
    assert PREDICTOR(("Who?", SHORT)) == PREDICTOR([("Who?", SHORT)])
    with pytest.raises(InputError, match="item 1"):
        PREDICTOR(["Who?", SHORT])


def test_a_text_without_anything_the_model_sees_is_not_answered() -> None:
    (found,) = PREDICTOR([("Who?", "\u200b\u200b")])
    if not found.answer:  # Some tokenizers make an unknown token of it.
        assert (found.start, found.end, found.no_answer_score) == (0, 0, 1.0)
    assert found.answer == "\u200b\u200b"[found.start : found.end]


def test_a_long_question_is_cut_and_said() -> None:
    (found,) = PREDICTOR([("river " * 600, SHORT)])
    assert found.cut
    assert not PREDICTOR([("river", LONG)])[0].cut


def test_windows_are_those_that_the_model_was_trained_with() -> None:
    head = AnsweringHead(overlap=1, max_question=3)
    few, many = (
        _predictor(each).prepare([("The old boat of the river?", LONG)])[0]
        for each in (head, head.model_copy(update={"overlap": 40}))
    )
    assert len(few.windows) < len(many.windows)
    assert few.cut
    assert few.parts.parts[0].place == 2 + 3


def test_length_is_the_one_the_tokenizer_was_saved_with(tmp_path: Any) -> None:
    made_tokenizer().seeing(24).save(tmp_path)
    predictor = AnswerPredictor(TorchEngine(made_answerer(), CPU), Tokenizer.from_folder(tmp_path))
    assert {len(window.token_ids) for window in predictor.prepare([("Who?", LONG)])[0].windows} == {24}


def test_a_very_long_text_is_answered_in_bounded_time() -> None:
    context = "river " * 6_000 + "boat"
    predictor = _predictor(positions=512)
    started = time.process_time()
    (request,) = predictor.prepare([("Who?", context)])
    rows = [np.random.default_rng(0).normal(size=(len(window.token_ids), 2)) for window in request.windows]
    found = predictor.decode(request, [row.astype(np.float32) for row in rows])
    assert time.process_time() - started < 10
    assert context[found.start : found.end] == found.answer
    assert len(request.windows) > 10


def test_other_models_are_refused() -> None:
    with pytest.raises(InputError, match=r"answer needs a model that was trained for it.*bertsmith finetune answer"):
        AnswerPredictor(TorchEngine(made_model(made_tokenizer().vocab_size), CPU), made_tokenizer())
    with pytest.raises(InputError, match="trained to classify"):
        AnswerPredictor(TorchEngine(made_classifier(("a", "b")), CPU), made_tokenizer())
    with pytest.raises(InputError, match="top_k must be 1 or more"):
        _predictor(top_k=0)
