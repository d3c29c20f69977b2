"""Classification: the loss, its weights, the scores."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.task_examples import text_examples
from bertsmith.model import Model
from bertsmith.objectives.classification import (
    TERM,
    Classification,
    best_class,
    class_details,
    class_logits,
    classification_scores,
)
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_texts, made_tokenizer, weights_of
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
LABELS = ("a", "b", "c")
IDS = np.array([0, 2, 1, 1, 0, 2, 2, 0, 1, 0])


def _loader(*, micro_batch_tokens: int = 10_000) -> TaskLoader:
    examples = text_examples(made_texts(10, sentences=(1, 3)), IDS, made_tokenizer(), max_length=64)
    return TaskLoader(examples, batch_size=10, micro_batch_tokens=micro_batch_tokens, seed=0)


def _model(dropout: float = 0.0) -> Model:
    return made_classifier(LABELS, dropout=dropout)


def _batch() -> Batch:
    (batch,) = _loader().micro_batches(0)
    return batch


def test_it_is_an_objective() -> None:
    objective = Classification()
    assert isinstance(objective, Objective)
    assert objective.terms == (TERM,)
    assert objective.counts(_batch()) == {TERM: 10}


def test_the_loss_is_the_cross_entropy_of_the_true_classes() -> None:
    model, batch = _model().eval(), _batch()
    assert batch.labels is not None
    report = Classification().report(model, batch, with_hits=True)
    logits = class_logits(model, batch.packed)
    expected = functional.cross_entropy(logits, batch.labels)
    assert report.loss(report.counts).item() == pytest.approx(expected.item(), rel=1e-6)
    assert int(report.hits[TERM]) == int((logits.argmax(-1) == batch.labels).sum())
    assert Classification().report(model, batch, with_hits=False).hits == {}


def test_parts_of_a_batch_add_up_to_the_whole_with_weights_too() -> None:
    model = _model().eval()
    for objective in (Classification(), Classification((0.5, 1.0, 2.0))):
        parts = _loader(micro_batch_tokens=120).micro_batches(0)
        assert len(parts) > 1
        counts = add_counts(objective.counts(part) for part in parts)
        together = sum(objective.report(model, part, with_hits=False).loss(counts).item() for part in parts)
        whole = objective.report(model, _batch(), with_hits=False).loss(counts).item()
        assert together == pytest.approx(whole, rel=1e-5)


def test_a_weight_counts_the_rows_of_its_class_so_many_times() -> None:
    model, batch = _model().eval(), _batch()
    assert batch.labels is not None
    each = functional.cross_entropy(class_logits(model, batch.packed), batch.labels, reduction="none")
    weights = (0.5, 1.0, 2.0)
    found = Classification(weights).report(model, batch, with_hits=False).totals[TERM].item()
    assert found == pytest.approx((each * torch.tensor(weights)[batch.labels]).sum().item(), rel=1e-6)


def test_a_model_or_batch_without_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a classifier and labels"):
        Classification().report(made_model(made_tokenizer().vocab_size), _batch(), with_hits=False)


def test_one_step_moves_every_weight_that_is_used() -> None:
    model = _model().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    train_step(
        state,
        _loader().micro_batches(0),
        Classification(),
        device=CPU,
        learning_rate=1e-3,
        clip_norm=1.0,
        seed=0,
    )
    still = {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])}
    assert still == set()


def test_a_frozen_encoder_stays_and_the_head_moves() -> None:
    model = _model().train()
    model.encoder.requires_grad_(False)
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    train_step(
        state, _loader().micro_batches(0), Classification(), device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0
    )
    moved = {name for name, weight in weights_of(model).items() if not torch.equal(weight, before[name])}
    assert moved == {name for name in before if not name.startswith("encoder.")}


def test_scores_by_hand() -> None:
    # Two classes by confusion [[3, 1], [2, 4]].
    truth = np.array([0] * 4 + [1] * 6)
    predicted = np.array([0, 0, 0, 1, 0, 0, 1, 1, 1, 1])
    probabilities = np.where(np.eye(2)[predicted] == 1, 0.8, 0.2)
    scores = classification_scores(probabilities, truth)
    assert scores["accuracy"] == pytest.approx(0.7)
    assert scores["macro_f1"] == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert scores["matthews"] == pytest.approx((3 * 4 - 1 * 2) / math.sqrt(5 * 5 * 4 * 6))
    assert scores["loss"] == pytest.approx(-(7 * math.log(0.8) + 3 * math.log(0.2)) / 10)
    details = class_details(predicted, truth, ("no", "yes"))
    assert details["confusion"] == [[3, 1], [2, 4]]
    assert details["per_class"]["no"] == pytest.approx({"precision": 0.6, "recall": 0.75, "f1": 6 / 9, "rows": 4})


def test_scores_are_defined_where_everything_is_one_class() -> None:
    log_probabilities = np.log(np.array([[0.9, 0.1, 1e-9]] * 3))
    truth = np.zeros(3, np.int64)
    assert classification_scores(log_probabilities, truth)["matthews"] == 0.0
    details = class_details(np.zeros(3, np.int64), truth, LABELS)
    assert details["per_class"]["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "rows": 0}
    assert details["confusion"] == [[3, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_the_engine_counts_hits_over_batches() -> None:
    found = evaluate(_model(), Classification(), _loader(micro_batch_tokens=120).in_order(), CPU)
    assert found[f"{TERM}_count"] == 10
    assert found["loss"] == found[f"{TERM}_loss"]


def test_the_best_class_comes_first() -> None:
    label, scores = best_class(np.array([0.2, 0.5, 0.3]), LABELS)
    assert label == "b"
    assert list(scores) == ["b", "c", "a"]
