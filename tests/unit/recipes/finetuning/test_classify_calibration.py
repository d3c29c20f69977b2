"""Classify tells how far its probabilities may be taken at their word."""

from pathlib import Path

import numpy as np
import pytest

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.model import HeadsConfig
from bertsmith.objectives.calibration import brier_score, top_label_calibration_error
from bertsmith.objectives.softmax import softmax
from bertsmith.recipes.finetuning.tasks.classify import Classify
from made_corpora import made_tokenizer
from made_tasks import write_rows

TASK = Classify()


def test_an_evaluation_tells_calibration_and_the_temperature_and_applies_none(tmp_path: Path) -> None:
    rows = [{"text": f"text {number}", "label": "ab"[number % 2]} for number in range(20)]
    read = TASK.read(write_rows(tmp_path / "a.csv", rows), TableConfig(), like=None, options=OptionNames())
    heads = HeadsConfig(labels=("a", "b"), masked_language_model=False)
    examples = TASK.examples(read, heads.labels, made_tokenizer(), max_length=16, long_texts="head", heads=heads)
    # Sure of itself in every row, and wrong in every fourth.
    truth = np.arange(20) % 2
    told = np.where(np.arange(20) % 4 == 3, 1 - truth, truth)
    logits = np.where(np.eye(2)[told] > 0, 5.0, -5.0).astype(np.float32)
    found = TASK.evaluation(logits, examples, read, heads)
    probabilities = softmax(logits)
    assert found["calibration_error"] == pytest.approx(1 / (1 + np.exp(-10)) - 0.75)
    assert found["calibration_error"] == pytest.approx(top_label_calibration_error(probabilities, truth))
    assert found["brier_score"] == pytest.approx(brier_score(probabilities, truth))
    # Right in three of four is a difference of ln 3 between the two scores, where these have one of 10.
    assert found["temperature"] == pytest.approx(10 / np.log(3), rel=1e-6)
    assert found["loss_at_temperature"] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert found["loss"] > found["loss_at_temperature"]
    assert "calibration_error" in TASK.metrics(read, heads.labels)
