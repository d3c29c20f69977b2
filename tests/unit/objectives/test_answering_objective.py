"""Answers as spans: the loss over each sequence's own tokens, and the best spans over all windows."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.answering import AnswerExamples, QuestionEncoder
from bertsmith.examples.targets import IGNORED
from bertsmith.examples.text_windows import ContextTokens, TextPart, TextWindows
from bertsmith.inference.task_outputs import batch_outputs
from bertsmith.objectives.answering import TERM, Answering, Span, answer_loss, best_spans, span_logits
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.text.questions import GoldAnswer, Question
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_tokenizer, weights_of
from made_questions import made_answerer, question_of

CPU = Device("cpu", "fp32")
LONG = " ".join(["river harbour garden winter morning teacher sailor"] * 6)
QUESTIONS = [
    question_of("The old boat waited under the bridge.", "old boat"),
    question_of(f"{LONG} wooden bridge {LONG}", "wooden bridge"),
    question_of("Rain fell on the garden.", question="Who waited?"),
    Question("line 4", "4", "What?", "Snow fell.", (GoldAnswer("ship", None, None),)),
]


def _examples() -> AnswerExamples:
    encoder = QuestionEncoder(made_tokenizer(), max_length=32, overlap=6)
    return AnswerExamples.of_questions(QUESTIONS, encoder, max_answer=30)


def _loader(*, micro_batch_tokens: int = 10_000) -> TaskLoader:
    examples = _examples()
    return TaskLoader(examples, batch_size=len(examples), micro_batch_tokens=micro_batch_tokens, seed=0)


def _batch() -> Batch:
    (batch,) = _loader().in_order()
    return batch


def test_it_is_an_objective_that_counts_the_sequences_something_is_asked_of() -> None:
    objective, targets = Answering(), _examples().targets
    assert isinstance(objective, Objective)
    assert objective.terms == (TERM,)
    assert (targets[-1] == IGNORED).all()
    assert objective.counts(_batch()) == {TERM: len(targets) - 1}


def test_the_loss_is_the_mean_cross_entropy_of_start_and_end_among_a_sequences_own_tokens() -> None:
    model, batch, examples = made_answerer().eval(), _batch(), _examples()
    report = Answering().report(model, batch, with_hits=True)
    logits = span_logits(model, batch.packed)
    losses: list[float] = []
    hits = 0
    bounds = zip(examples.sequence_starts[:-1], examples.sequence_starts[1:], strict=True)
    for (start, end), wanted in zip(bounds, torch.from_numpy(examples.targets), strict=True):
        if wanted[0] >= 0:
            own = logits[start:end].T
            losses.append(functional.cross_entropy(own, wanted).item())
            hits += bool((own.argmax(-1) == wanted).all())
    assert report.loss(report.counts).item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert int(report.hits[TERM]) == hits
    assert Answering().report(model, batch, with_hits=False).hits == {}
    outputs = batch_outputs(model, [batch], CPU, span_logits)
    assert answer_loss(outputs, examples.sequence_starts, examples.targets) == pytest.approx(np.mean(losses), rel=1e-5)


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    model, objective = made_answerer().eval(), Answering()
    parts = list(_loader(micro_batch_tokens=40).in_order())
    assert len(parts) > 2
    counts = add_counts(objective.counts(part) for part in parts)
    together = sum(objective.report(model, part, with_hits=False).loss(counts).item() for part in parts)
    whole = objective.report(model, _batch(), with_hits=False).loss(counts).item()
    assert together == pytest.approx(whole, rel=1e-5)


def test_a_batch_of_which_nothing_is_asked_has_loss_zero_and_no_gradient() -> None:
    encoder = QuestionEncoder(made_tokenizer(), max_length=32)
    examples = AnswerExamples.of_questions(QUESTIONS[-1:], encoder, max_answer=30)
    (batch,) = TaskLoader(examples, batch_size=1, micro_batch_tokens=99, seed=0).in_order()
    model = made_answerer().train()
    report = Answering().report(model, batch, with_hits=True)
    loss = report.loss(report.counts)
    loss.backward()
    assert loss.item() == 0.0
    assert int(report.hits[TERM]) == 0
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert all((gradient == 0).all() for gradient in gradients)


def test_one_step_moves_every_weight_that_is_used() -> None:
    model = made_answerer().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    train_step(state, _loader().micro_batches(0), Answering(), device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0)
    still = {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])}
    assert still == set()


def test_a_model_without_a_head_and_a_batch_without_places_are_refused() -> None:
    with pytest.raises(ValueError, match="no head for answers"):
        Answering().report(made_model(made_tokenizer().vocab_size), _batch(), with_hits=False)
    (batch,) = TaskLoader(
        AnswerExamples(**{**vars(_examples()), "targets": np.empty(0, np.int64)}),
        batch_size=99,
        micro_batch_tokens=9999,
        seed=0,
    ).in_order()
    with pytest.raises(ValueError, match="first and a last token"):
        Answering().counts(batch)


def test_the_engine_evaluates_it() -> None:
    found = evaluate(made_answerer(), Answering(), _loader(micro_batch_tokens=40).in_order(), CPU)
    assert found[f"{TERM}_count"] == len(_examples()) - 1
    assert found["loss"] > 0


def _windows(text: str, *parts: tuple[int, int], place: int = 2) -> TextWindows:
    context = ContextTokens.of(text, made_tokenizer().encode(text))
    return TextWindows(context, tuple(TextPart(start, end, place) for start, end in parts))


def _logits(windows: TextWindows, seed: int = 0) -> list[np.ndarray]:
    stream = np.random.default_rng(seed)
    sizes = [part.place + part.end - part.start + 1 for part in windows.parts]
    return [stream.normal(0, 3, (size, 2)).astype(np.float32) for size in sizes]


def _by_hand(
    windows: TextWindows, logits: list[np.ndarray], max_answer: int
) -> tuple[dict[tuple[int, int], float], float]:
    """Probability of every span and of no answer, one at a time."""
    spans: dict[tuple[int, int], float] = {}
    nothing = math.inf
    for part, scores in zip(windows.parts, logits, strict=True):
        told = torch.from_numpy(scores).double().softmax(0).numpy()
        nothing = min(nothing, told[0, 0] * told[0, 1])
        for first, last in itertools.product(range(part.start, part.end), repeat=2):
            possible = windows.context.begins[first] and windows.context.ends[last]
            if possible and 0 <= last - first < max_answer:
                shift = part.place - part.start
                value = told[first + shift, 0] * told[last + shift, 1]
                spans[first, last] = max(spans.get((first, last), 0.0), value)
    total = nothing + sum(spans.values())
    return {span: value / total for span, value in spans.items()}, nothing / total


@pytest.mark.parametrize("max_answer", [1, 4, 100])
@pytest.mark.parametrize("bounds", [[(0, 9)], [(0, 5), (3, 8), (4, 9)], [(0, 4), (1, 5), (2, 6), (5, 9)]])
def test_spans_are_ranked_over_all_windows_each_once(bounds: list[tuple[int, int]], max_answer: int) -> None:
    windows = _windows("the old boat under a small bridge again never", *bounds)
    assert len(windows.context.token_ids) == 9
    logits = _logits(windows)
    expected, nothing = _by_hand(windows, logits, max_answer)
    for count in (1, 3, 10, 1000):
        found = best_spans(windows, logits, max_answer=max_answer, count=count)
        best = sorted(expected.items(), key=lambda entry: -entry[1])[:count]
        assert [(span.first, span.last) for span in found.spans] == [span for span, _ in best]
        assert [span.probability for span in found.spans] == pytest.approx([value for _, value in best])
        assert found.no_answer == pytest.approx(nothing)
    everything = best_spans(windows, logits, max_answer=max_answer, count=1000)
    assert sum(span.probability for span in everything.spans) + everything.no_answer == pytest.approx(1.0)


def test_logits_of_any_size_give_probabilities() -> None:
    windows = _windows("the old boat", (0, 3))
    logits = np.full((6, 2), -1e4, np.float32)
    logits[3] = 1e4
    found = best_spans(windows, [logits], max_answer=30, count=1)
    (span,) = found.spans
    assert span == Span(1, 1, span.probability)
    assert span.probability == pytest.approx(1.0)
    assert found.no_answer == 0.0


def test_equal_spans_stand_in_the_order_of_the_text() -> None:
    windows = _windows("the old boat", (0, 3))
    found = best_spans(windows, [np.zeros((6, 2), np.float32)], max_answer=2, count=3)
    assert [(span.first, span.last) for span in found.spans] == [(0, 0), (0, 1), (1, 1)]
    assert found.spans[0].probability == pytest.approx(1 / 6)


def test_of_equal_spans_that_which_begins_first_and_then_the_shortest_is_given() -> None:
    windows = _windows("the old boat under a small bridge again never", (0, 5), (3, 8), (6, 9))
    logits = [np.zeros((part.place + part.end - part.start + 1, 2), np.float32) for part in windows.parts]
    # Of a shorter window every token is likelier, so all are made alike.
    logits = [np.concatenate([scores, np.zeros((8 - len(scores), 2), np.float32)]) for scores in logits]
    expected = [(first, last) for first in range(9) for last in range(first, min(first + 3, 9))]
    inside = [span for span in expected if any(part.start <= span[0] <= span[1] < part.end for part in windows.parts)]
    for count in (1, 2, 5, 11, 100):
        found = best_spans(windows, logits, max_answer=3, count=count)
        assert [(span.first, span.last) for span in found.spans] == inside[:count]
        assert len({span.probability for span in found.spans}) == 1


def test_a_text_without_visible_tokens_has_no_span() -> None:
    windows = _windows("", (0, 0))
    found = best_spans(windows, [np.zeros((3, 2), np.float32)], max_answer=30, count=5)
    assert found.spans == ()
    assert found.no_answer == 1.0


def test_a_model_that_says_no_number_does_not_say_that_there_is_an_answer() -> None:
    windows = _windows("the old boat under a small bridge", (0, 5), (3, 7))
    logits = _logits(windows)
    logits[0][:] = np.nan
    for broken in (logits, [np.full_like(scores, np.nan) for scores in logits]):
        found = best_spans(windows, broken, max_answer=30, count=2)
        assert np.isnan(found.no_answer)
