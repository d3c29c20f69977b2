"""Thresholds, calibration, correlations, labels and choices over random values."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.choice import choice_examples
from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.examples.label_sets import LabelCells, flag_width, guess_layout, label_set
from bertsmith.examples.multilabel import label_strata
from bertsmith.examples.regression import value_strata
from bertsmith.objectives.calibration import best_temperature, brier_score, expected_calibration_error
from bertsmith.objectives.correlation import pearson, spearman
from bertsmith.objectives.multilabel import label_probabilities, tuned_thresholds
from bertsmith.objectives.regression import regression_scores, standardised
from made_corpora import WORDS, made_tokenizer

SHARE = st.floats(0, 1)
NUMBER = st.floats(-1e6, 1e6)
NAME = st.text("abcdef", min_size=1, max_size=3)


@given(st.lists(st.tuples(SHARE, st.booleans()), min_size=1, max_size=30))
def test_a_threshold_lies_in_range_and_none_of_a_grid_is_better(rows: list[tuple[float, bool]]) -> None:
    scores, truth = np.array([score for score, _ in rows]), np.array([label for _, label in rows])
    (found,) = tuned_thresholds(scores[:, None], truth[:, None])
    assert 0 <= found <= 1

    def f1(threshold: float) -> float:
        given = scores >= threshold
        return 2 * (given & truth).sum() / max(given.sum() + truth.sum(), 1)

    # At 0 every row is given the label, which no threshold above it does where a score is 0.
    best = max(f1(threshold) for threshold in (0.5, *(score for score in scores if score > 0)))
    assert f1(found) >= best - 1e-9
    if f1(0.5) >= best - 1e-12:
        assert found == 0.5


@given(st.lists(st.tuples(SHARE, st.booleans()), min_size=1, max_size=40), st.integers(1, 20))
def test_calibration_errors_lie_in_range_whatever_the_order(rows: list[tuple[float, bool]], bins: int) -> None:
    confidence, right = np.array([one for one, _ in rows]), np.array([one for _, one in rows])
    found = expected_calibration_error(confidence, right, num_bins=bins)
    assert 0 <= found <= 1 + 1e-12
    assert expected_calibration_error(confidence[::-1], right[::-1], num_bins=bins) == pytest.approx(found)
    # One bin compares the means of all, which more bins never bring nearer to each other.
    assert found >= abs(confidence.mean() - right.mean()) - 1e-12


@given(st.lists(st.tuples(st.lists(st.floats(-30, 30), min_size=3, max_size=3), st.integers(0, 2)), min_size=1))
@settings(max_examples=50, deadline=None)
def test_the_best_temperature_is_never_worse_than_none(rows: list[tuple[list[float], int]]) -> None:
    scores, truth = np.array([one for one, _ in rows]), np.array([one for _, one in rows])
    probabilities = np.exp(scores - scores.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)
    temperature, loss = best_temperature(probabilities, truth)
    assert 0.01 * (1 - 1e-9) <= temperature <= 100 * (1 + 1e-9)
    assert loss <= -np.log(probabilities[np.arange(len(truth)), truth]).mean() + 1e-6
    assert 0 <= brier_score(probabilities, truth) <= 2 + 1e-12


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=2, max_size=30), st.floats(0.01, 100), NUMBER)
def test_correlations_lie_in_range_and_do_not_feel_a_scale(
    rows: list[tuple[float, float]], factor: float, shift: float
) -> None:
    first, second = np.array([one for one, _ in rows]), np.array([one for _, one in rows])
    for measure in (pearson, spearman):
        assert -1 <= measure(first, second) <= 1
        assert measure(first, second) == pytest.approx(measure(second, first))
    assert spearman(first, second) == pytest.approx(spearman(first * 2, second * 4))
    if np.ptp(first) > 1 and np.ptp(second) > 1:
        assert pearson(factor * first + shift, second) == pytest.approx(pearson(first, second), abs=1e-5)


@given(st.lists(NUMBER, min_size=2, max_size=30), st.floats(0.5, 1e4))
def test_the_loss_of_values_is_that_of_standardised_ones(values: list[float], spread: float) -> None:
    truth = np.array(values)
    scale = (float(truth.mean()), spread)
    found = truth[::-1].copy()
    expected = np.square(standardised(found, scale).astype(np.float64) - standardised(truth, scale)).mean()
    loss = regression_scores(found, truth, spread=spread)["loss"]
    assert loss == pytest.approx(expected, rel=1e-3, abs=1e-3 * (np.abs(truth).max() / spread + 1) ** 2)


@given(st.lists(NUMBER, min_size=1, max_size=400))
def test_strata_of_values_keep_their_order(values: list[float]) -> None:
    found = np.array(values)
    strata = value_strata(found)
    order = np.argsort(found, kind="stable")
    assert (np.diff(strata[order]) >= 0).all()
    assert len(set(strata.tolist())) <= max(1, len(values) // 20)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=50))
def test_every_row_is_in_the_stratum_of_a_label_that_it_has(rows: list[list[bool]]) -> None:
    targets = np.array(rows, np.float32)
    counts = targets.sum(0)
    for row, stratum in zip(targets, label_strata(targets).tolist(), strict=True):
        assert (stratum == 0) == (not row.any())
        if stratum:
            assert row[stratum - 1] == 1
            assert counts[stratum - 1] == min(counts[place] for place in np.flatnonzero(row))


@given(st.lists(st.lists(NAME, max_size=4), min_size=1, max_size=12), st.sampled_from(["|", ";", ","]))
def test_labels_are_the_same_in_every_way_to_write_them(rows: list[list[str]], separator: str) -> None:
    expected = [tuple(sorted(set(row))) for row in rows]
    names = sorted({name for row in rows for name in row})
    separated = [separator.join(row) or None for row in rows]
    several = len(names) > 1
    ways: list[tuple[list[str], list[LabelCells]]] = [
        (["labels"], [LabelCells((row,), "line 1") for row in rows]),
        (["labels"], [LabelCells((repr(row),), "line 1") for row in rows]),
        (["labels"], [LabelCells((cell,), "line 1") for cell in separated]),
    ]
    if several:
        ways.append((names, [LabelCells(tuple(name in row for name in names), "line 1") for row in rows]))
    for columns, cells in ways:
        layout = guess_layout(columns, cells, named=False)
        assert [label_set(one, layout, Path("a.csv")) for one in cells] == expected
    if several:
        flags = [LabelCells(([int(name in row) for name in names],), "line 1") for row in rows]
        layout = guess_layout(["labels"], flags, named=False)
        width = flag_width(flags)
        found = [label_set(one, layout, Path("a.csv"), width=width) for one in flags]
        assert [tuple(names[int(place)] for place in sorted(one, key=int)) for one in found] == expected


@given(st.lists(st.lists(st.floats(-1000, 1000, width=32), min_size=2, max_size=2), min_size=1))
def test_label_probabilities_are_finite_and_rise_with_the_score(rows: list[list[float]]) -> None:
    logits = np.array(rows, np.float32)
    found = label_probabilities(logits)
    assert ((found >= 0) & (found <= 1)).all()
    assert label_probabilities(-logits) == pytest.approx(1 - found)
    order = np.argsort(logits, axis=0)
    assert (np.diff(np.take_along_axis(found, order, 0), axis=0) >= 0).all()


@given(
    counts=st.lists(st.integers(2, 5), min_size=1, max_size=12),
    batch_size=st.integers(1, 6),
    most=st.integers(1, 200),
    seed=st.integers(0, 3),
)
@settings(max_examples=30, deadline=None)
def test_the_choices_of_a_row_are_never_parted(counts: list[int], batch_size: int, most: int, seed: int) -> None:
    items = [
        ChoiceItem(WORDS[number], tuple(WORDS[number + place + 1] for place in range(count)))
        for number, count in enumerate(counts)
    ]
    right = np.array([count - 1 for count in counts])
    examples = choice_examples(items, right, made_tokenizer(), max_length=32)
    loader = TaskLoader(examples, batch_size=batch_size, micro_batch_tokens=most, seed=seed)
    seen: list[int] = []
    for step in range(loader.batches_per_epoch):
        for batch in loader.micro_batches(step):
            assert batch.group_starts is not None
            assert batch.labels is not None
            sizes = batch.group_starts.diff().tolist()
            # Each row's right choice is its last one, so that it tells how many there are.
            assert [size - 1 for size in sizes] == batch.labels.tolist()
            assert sum(sizes) == batch.packed.num_sequences
            seen += sizes
    assert sorted(seen) == sorted(counts)
