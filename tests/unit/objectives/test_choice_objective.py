"""Multiple choice: the softmax within each question, the loss, the scores."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.choice import choice_examples
from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.model import Model
from bertsmith.objectives.choice import (
    TERM,
    Choice,
    by_group,
    choice_metrics,
    choice_scores,
    group_probabilities,
)
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.objectives.softmax import softmax
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_texts, made_tokenizer, weights_of
from made_heads import made_head, one_batch

CPU = Device("cpu", "fp32")
COUNTS = [2, 4, 3, 2]
RIGHT = np.array([1, 0, 2, 1])
_TEXTS = made_texts(40, sentences=(1, 2))
ITEMS = [
    ChoiceItem(_TEXTS[number], tuple(_TEXTS[10 * number + 1 : 10 * number + 1 + n])) for number, n in enumerate(COUNTS)
]
EXAMPLES = choice_examples(ITEMS, RIGHT, made_tokenizer(), max_length=64)


def _model() -> Model:
    return made_head("choose").eval()


@torch.no_grad()
def _each() -> list[torch.Tensor]:
    """Log-probabilities of the choices of each question, one question at a time."""
    scores = choice_scores(_model(), one_batch(EXAMPLES).packed)[:, 0]
    return [part.log_softmax(0) for part in scores.split(COUNTS)]


def test_it_is_an_objective_that_counts_questions() -> None:
    objective, batch = Choice(), one_batch(EXAMPLES)
    assert isinstance(objective, Objective)
    assert objective.counts(batch) == {TERM: 4}
    hits = sum(int(part.argmax() == right) for part, right in zip(_each(), RIGHT.tolist(), strict=True))
    assert int(objective.report(_model(), batch, with_hits=True).hits[TERM]) == hits
    assert evaluate(_model(), objective, [batch], CPU)[f"{TERM}_accuracy"] == pytest.approx(hits / 4)


def test_the_loss_is_the_cross_entropy_within_each_question() -> None:
    found = Choice().report(_model(), one_batch(EXAMPLES), with_hits=False)
    expected = np.mean([-part[right].item() for part, right in zip(_each(), RIGHT.tolist(), strict=True)])
    assert found.loss(found.counts).item() == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_one_question_is_a_batch() -> None:
    examples = choice_examples(ITEMS[:1], RIGHT[:1], made_tokenizer(), max_length=64)
    found = Choice().report(_model(), one_batch(examples), with_hits=True)
    assert found.counts == {TERM: 1}
    assert found.loss(found.counts).item() == pytest.approx(-_each()[0][RIGHT[0]].item(), rel=1e-5)


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    objective, model = Choice(), _model()
    parts = TaskLoader(EXAMPLES, batch_size=4, micro_batch_tokens=80, seed=0).micro_batches(0)
    assert len(parts) > 1
    counts = add_counts(objective.counts(part) for part in parts)
    together = sum(objective.report(model, part, with_hits=False).loss(counts).item() for part in parts)
    whole = objective.report(model, one_batch(EXAMPLES), with_hits=False).loss(counts).item()
    assert together == pytest.approx(whole, rel=1e-5)


def test_groups_of_unlike_size_do_not_touch_each_other() -> None:
    scores = torch.tensor([1.0, 3.0, -2.0, 0.5, 0.5, 9.0], requires_grad=True)
    rows = by_group(scores, torch.tensor([0, 2, 5, 6]))
    assert rows.isinf().tolist() == [[False, False, True], [False] * 3, [False, True, True]]
    loss = functional.cross_entropy(rows, torch.tensor([0, 1, 0]), reduction="sum")
    loss.backward()
    assert scores.grad is not None
    expected = [torch.softmax(scores.detach()[part], 0) for part in (slice(0, 2), slice(2, 5), slice(5, 6))]
    for part, place in zip(expected, (0, 1, 0), strict=True):
        part[place] -= 1
    assert torch.allclose(scores.grad, torch.cat(expected), atol=1e-6)


def test_one_step_moves_every_weight() -> None:
    model = _model().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    batches = [one_batch(EXAMPLES)]
    train_step(state, batches, Choice(), device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0)
    # Adding the same to every score changes no probability: the bias has no gradient.
    still = {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])}
    assert still <= {"classifier.output.bias"}


def test_a_model_or_batch_without_groups_is_refused() -> None:
    batch = one_batch(EXAMPLES)
    for model, one in ((made_model(made_tokenizer().vocab_size), batch), (_model(), replace(batch, group_starts=None))):
        with pytest.raises(ValueError, match="groups of sequences with the right one of each"):
            Choice().report(model, one, with_hits=False)


def test_probabilities_are_those_of_each_question() -> None:
    scores = choice_scores(_model(), one_batch(EXAMPLES).packed)[:, 0].detach().numpy()
    assert EXAMPLES.group_starts is not None
    found = group_probabilities(scores, EXAMPLES.group_starts)
    assert [len(part) for part in found] == COUNTS
    for part, expected in zip(found, _each(), strict=True):
        assert part == pytest.approx(expected.exp().numpy(), abs=1e-6)
    assert softmax(np.array([1000.0, -1000.0])).tolist() == [1.0, 0.0]


def test_scores_by_hand() -> None:
    probabilities = [np.array([0.25, 0.75]), np.array([0.5, 0.2, 0.3]), np.array([0.0, 1.0])]
    scores = choice_metrics(probabilities, np.array([1, 2, 1]))
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["loss"] == pytest.approx(-(math.log(0.75) + math.log(0.3)) / 3)
    assert math.isfinite(choice_metrics(probabilities, np.array([1, 2, 0]))["loss"])
