"""Values: read as numbers, refused where they are none, scaled for training."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.examples.regression import VALUE_COLUMNS, value_notes, value_scale, value_strata, values_of
from bertsmith.examples.task_tables import TaskTable, read_task_table
from bertsmith.foundation.errors import InputError


def _table(folder: Path, labels: Sequence[Any], *, column: str = "score") -> TaskTable:
    path = folder / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"t{n}", column: label}) for n, label in enumerate(labels)))
    return read_task_table(path, label_columns=VALUE_COLUMNS)


@pytest.mark.parametrize("column", ["label", "score", "value", "similarity", "Rating"])
def test_the_column_of_the_value_is_found_by_its_name(tmp_path: Path, column: str) -> None:
    table = _table(tmp_path, [1, 2.5], column=column)
    assert table.columns.label == column
    assert values_of(table).tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("written", "value"),
    [(3, 3.0), (-0.5, -0.5), ("4.20", 4.2), (" 7 ", 7.0), ("-.5", -0.5), ("1e3", 1000.0), ("2.", 2.0), ("٣", 3.0)],
)
def test_numbers_are_read_however_they_are_written(tmp_path: Path, written: Any, value: float) -> None:
    assert values_of(_table(tmp_path, [written]))[0] == value


@pytest.mark.parametrize(
    "written",
    ["good", "nan", "inf", "-Infinity", "1_000", "1,000.5", "50%", "0x10", True, [1.0], {"a": 1}, 10**400, 1e31],
)
def test_what_is_no_number_is_refused_with_its_place(tmp_path: Path, written: Any) -> None:
    with pytest.raises(InputError, match=r"must be a number.*line 2: score=.*--label"):
        values_of(_table(tmp_path, [1.0, written]))


@pytest.mark.parametrize("written", ["NaN", "Infinity"])
def test_numbers_of_json_that_are_not_finite_are_refused(tmp_path: Path, written: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "x", "score": 1}}\n{{"text": "y", "score": {written}}}\n')
    with pytest.raises(InputError, match=r"must be a number.*line 2"):
        values_of(read_task_table(path, label_columns=VALUE_COLUMNS))


def test_a_decimal_comma_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1: score='3,5'.*decimal point, not a comma"):
        values_of(_table(tmp_path, ["3,5"]))


def test_the_scale_is_mean_and_spread() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    assert value_scale(values, "a test") == pytest.approx((4.0, np.sqrt((9 + 4 + 0 + 25) / 4)))


def test_values_that_are_all_equal_are_refused() -> None:
    with pytest.raises(InputError, match=r"must differ.*2\.5 in all 3 training rows of a test"):
        value_scale(np.full(3, 2.5), "a test")


def test_values_that_fp32_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(InputError, match=r"hundred-thousandth.*Take away"):
        value_scale(1.6e9 + np.arange(5.0), "a test")
    assert value_scale(np.arange(1990.0, 2020.0), "a test")[0] == pytest.approx(2004.5)


def test_strata_hold_rows_of_like_value() -> None:
    values = np.random.default_rng(0).permutation(np.arange(1000.0))
    strata = value_strata(values)
    assert np.bincount(strata).tolist() == [100] * 10
    for one, other in zip(range(9), range(1, 10), strict=True):
        assert values[strata == one].max() < values[strata == other].min()
    assert set(value_strata(np.arange(30.0)).tolist()) == {0}
    assert len(set(value_strata(np.repeat([1.0, 2.0], 500)).tolist())) == 2


def test_notes_tell_the_range_and_what_is_odd() -> None:
    assert value_notes(np.arange(5.0)) == ["values from 0 to 4, half of them below 2"]
    notes = value_notes(np.array([0.0] * 6 + [5.0] * 3))
    assert "6 of 9 rows have the value 0" in notes[1]
    assert "0 and 5 alone: are they classes?" in notes[2]
