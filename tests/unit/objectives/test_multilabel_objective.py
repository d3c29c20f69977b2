"""Any number of labels: the loss, its weights, thresholds, scores."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.multilabel import balanced_label_weights
from bertsmith.examples.task_examples import TaskExamples, text_examples
from bertsmith.model import Model
from bertsmith.objectives.classification import class_logits
from bertsmith.objectives.multilabel import (
    TERM,
    Multilabelling,
    decoded_labels,
    given_labels,
    label_details,
    label_probabilities,
    multilabel_scores,
    tuned_thresholds,
)
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_texts, made_tokenizer, weights_of
from made_heads import made_head, one_batch

CPU = Device("cpu", "fp32")
LABELS = ("a", "b", "c")
TARGETS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]], np.float32)


def _examples(targets: np.ndarray = TARGETS) -> TaskExamples:
    return text_examples(made_texts(6, sentences=(1, 3)), targets, made_tokenizer(), max_length=64)


def _model() -> Model:
    return made_head("multilabel", labels=LABELS).eval()


def _loss(objective: Multilabelling, batch: Batch) -> float:
    report = objective.report(_model(), batch, with_hits=False)
    return report.loss(report.counts).item()


def test_it_is_an_objective_whose_hits_are_rows_with_every_label_right() -> None:
    objective, batch, model = Multilabelling(), one_batch(_examples()), _model()
    assert isinstance(objective, Objective)
    assert objective.counts(batch) == {TERM: 6}
    logits = class_logits(model, batch.packed).detach().numpy()
    expected = int(((logits >= 0) == (TARGETS > 0)).all(1).sum())
    assert int(objective.report(model, batch, with_hits=True).hits[TERM]) == expected
    assert evaluate(model, objective, [batch], CPU)[f"{TERM}_accuracy"] == pytest.approx(expected / 6)


def test_the_loss_is_the_mean_binary_cross_entropy_over_labels_and_rows() -> None:
    batch = one_batch(_examples())
    logits = class_logits(_model(), batch.packed)
    expected = functional.binary_cross_entropy(logits.sigmoid(), torch.from_numpy(TARGETS)).item()
    assert _loss(Multilabelling(), batch) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_, np.float32])
def test_integers_are_cast(dtype: type) -> None:
    batch = one_batch(_examples(TARGETS.astype(dtype)))
    assert _loss(Multilabelling(), batch) == pytest.approx(_loss(Multilabelling(), one_batch(_examples())), rel=1e-7)


def test_weights_count_lacking_and_having_a_label_so_many_times() -> None:
    weights = balanced_label_weights(TARGETS)
    batch = one_batch(_examples())
    logits = class_logits(_model(), batch.packed).detach().double().numpy()
    lacking, having = np.array(weights).T
    each = np.where(TARGETS > 0, having * np.logaddexp(0, -logits), lacking * np.logaddexp(0, logits))
    assert _loss(Multilabelling(weights), batch) == pytest.approx(each.mean(), rel=1e-5)
    assert _loss(Multilabelling(((1.0, 1.0),) * 3), batch) == pytest.approx(_loss(Multilabelling(), batch), rel=1e-6)


def test_parts_of_a_batch_add_up_to_the_whole_with_weights_too() -> None:
    for objective in (Multilabelling(), Multilabelling(balanced_label_weights(TARGETS))):
        parts = TaskLoader(_examples(), batch_size=6, micro_batch_tokens=60, seed=0).micro_batches(0)
        assert len(parts) > 1
        counts = add_counts(objective.counts(part) for part in parts)
        together = sum(objective.report(_model(), part, with_hits=False).loss(counts).item() for part in parts)
        assert together == pytest.approx(_loss(objective, one_batch(_examples())), rel=1e-5)


def test_one_step_moves_every_weight() -> None:
    model = _model().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    batches = [one_batch(_examples())]
    train_step(state, batches, Multilabelling(), device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0)
    assert {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])} == set()


def test_a_model_or_batch_without_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a classifier and labels"):
        Multilabelling().report(made_model(made_tokenizer().vocab_size), one_batch(_examples()), with_hits=False)


def test_probabilities_are_sigmoids_without_overflow() -> None:
    logits = np.array([[0.0, 2.0, -2.0, 1000.0, -1000.0]], np.float32)
    expected = [0.5, 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2)), 1.0, 0.0]
    assert label_probabilities(logits)[0].tolist() == pytest.approx(expected)
    assert label_probabilities(logits).dtype == np.float64


def _tuned(scores: list[float], truth: list[int]) -> float:
    return tuned_thresholds(np.array(scores)[:, None], np.array(truth, bool)[:, None])[0]


@pytest.mark.parametrize(
    ("scores", "truth", "expected"),
    [
        ([0.1, 0.2, 0.4, 0.8], [0, 0, 1, 1], 0.3),
        ([0.1, 0.2, 0.4, 0.8], [0, 0, 0, 1], 0.5),
        ([0.6, 0.7, 0.9], [0, 0, 1], 0.8),
        ([0.6, 0.7, 0.9], [1, 1, 1], 0.5),
        ([0.2, 0.3], [1, 1], 0.1),
        ([0.6, 0.2], [0, 0], 0.5),
        ([0.3, 0.3, 0.3], [1, 1, 0], 0.15),
        ([0.0, 0.0], [1, 0], 0.5),
        ([0.0, 5e-324], [0, 1], 5e-324),
        ([1.0, 1.0, 0.0], [1, 1, 0], 0.5),
        ([0.123456, 0.123457], [0, 1], 0.1234565),
    ],
)
def test_thresholds_give_the_best_f1_and_stay_near_a_half(
    scores: list[float], truth: list[int], expected: float
) -> None:
    assert _tuned(scores, truth) == pytest.approx(expected, rel=1e-12, abs=0)


def test_no_other_threshold_has_a_better_f1() -> None:
    stream = np.random.default_rng(0)
    for _ in range(50):
        scores = stream.uniform(0.01, 1, 30).round(2)
        truth = stream.uniform(0, 1, 30) < 0.3 + 0.3 * scores

        def f1(threshold: float, scores: np.ndarray = scores, truth: np.ndarray = truth) -> float:
            given = scores >= threshold
            return 2 * (given & truth).sum() / max(given.sum() + truth.sum(), 1)

        found = f1(_tuned(scores.tolist(), truth.astype(int).tolist()))
        assert found == pytest.approx(max(f1(threshold) for threshold in [0.0, *scores, *(scores + 1e-9)]))


def test_a_threshold_of_one_label_does_not_depend_on_others_or_on_order() -> None:
    stream = np.random.default_rng(1)
    scores, truth = stream.uniform(0, 1, (40, 3)), stream.uniform(0, 1, (40, 3)) < 0.4
    together = tuned_thresholds(scores, truth)
    assert together == tuple(tuned_thresholds(scores[:, [one]], truth[:, [one]])[0] for one in range(3))
    order = stream.permutation(40)
    assert tuned_thresholds(scores[order], truth[order]) == together


def test_scores_by_hand() -> None:
    probabilities = np.array([[0.9, 0.6, 0.2], [0.3, 0.8, 0.1], [0.7, 0.4, 0.3], [0.2, 0.1, 0.4]])
    truth = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
    scores = multilabel_scores(probabilities, truth)
    # a: 2 right, 0 wrong, 1 missed. b: 1 right, 1 wrong, 0 missed. c never stands there and is never given.
    assert scores["micro_f1"] == pytest.approx(2 * 3 / (2 * 3 + 1 + 1))
    assert scores["macro_f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert scores["subset_accuracy"] == pytest.approx(2 / 4)
    assert scores["hamming_loss"] == pytest.approx(2 / 12)
    assert scores["label_ranking_average_precision"] == pytest.approx((1 + 1 + 1 + 1) / 4)
    of_truth = np.where(truth, probabilities, 1 - probabilities)
    assert scores["loss"] == pytest.approx(-np.log(of_truth).mean())
    assert not [name for name in scores if name.startswith("tuned")]
    tuned = multilabel_scores(probabilities, truth, (0.25, 0.7, 0.5))
    assert (tuned["tuned_micro_f1"], tuned["tuned_subset_accuracy"], tuned["tuned_hamming_loss"]) == (1.0, 1.0, 0.0)
    assert tuned["tuned_macro_f1"] == 1.0
    assert {name: tuned[name] for name in scores} == scores


def test_scores_are_defined_where_nothing_is_to_be_found() -> None:
    nothing = np.zeros((3, 1), bool)
    scores = multilabel_scores(np.full((3, 1), 0.1), nothing, (0.5,))
    assert scores["micro_f1"] == scores["macro_f1"] == 0.0
    assert scores["subset_accuracy"] == 1.0
    assert all(math.isfinite(value) for value in scores.values())
    assert math.isfinite(multilabel_scores(np.zeros((3, 1)), ~nothing)["loss"])


def test_each_label_by_hand() -> None:
    truth = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
    given = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
    details = label_details(given, truth, LABELS)
    assert details["a"] == pytest.approx({"precision": 1.0, "recall": 2 / 3, "f1": 0.8, "rows": 3})
    assert details["b"] == pytest.approx({"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "rows": 1})
    assert details["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "rows": 0}


def test_labels_are_given_from_their_threshold_on_the_likeliest_first() -> None:
    probabilities = np.array([0.5, 0.9, 0.3])
    assert decoded_labels(probabilities, LABELS, ()) == (["b", "a"], {"b": 0.9, "a": 0.5, "c": 0.3})
    assert decoded_labels(probabilities, LABELS, (0.6, 0.95, 0.3))[0] == ["c"]
    assert given_labels(probabilities, (0.6, 0.95, 0.4)).tolist() == [False] * 3
