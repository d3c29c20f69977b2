"""The task regress: from rows with numbers to a model folder that gives them."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import assert_refused, config_of

import bertsmith
from bertsmith.checkpoints.checkpoint import CheckpointStore
from bertsmith.engine.device import Device
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.regress import RegressPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.start_model import open_source, start_model
from bertsmith.recipes.finetuning.task import Task, TaskRows
from bertsmith.recipes.finetuning.tasks.regress import Regress
from bertsmith.recipes.results import Run
from made_corpora import made_tokenizer
from made_tasks import made_encoder, made_rows, write_rows

TASK = Regress()


def _rows(count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Texts whose value is about 1,000, or 100 more where it rains."""
    stream = random.Random(seed)
    rows = made_rows({"wet": count // 2, "dry": count - count // 2}, seed=seed)
    return [
        {"text": row["text"], "score": round(1000 + 100 * (row["label"] == "wet") + stream.gauss(0, 5), 2)}
        for row in rows
    ]


def _config(work: Path, **more: Any) -> FinetuneConfig:
    return config_of(work, **({"task": "regress", "length": {"steps": 80}} | more))


def _read(path: Path, **more: Any) -> TaskRows:
    return TASK.read(path, TableConfig(**more), like=None, options=OptionNames())


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and rows."""
    folder = tmp_path_factory.mktemp("regress")
    made_encoder(folder / "encoder")
    write_rows(folder / "train.csv", _rows(160))
    write_rows(folder / "validation.csv", _rows(40, seed=1))
    return folder


@pytest.fixture(scope="module")
def run(work: Path) -> Run:
    """A run that learns."""
    return finetune_run(_config(work, validation=str(work / "validation.csv")), work / "run")


def test_it_is_a_task_without_labels(work: Path) -> None:
    rows = _read(work / "train.csv")
    assert isinstance(TASK, Task)
    assert TASK.labels(rows) == ()
    assert rows.columns == "text “text”, label “score”"
    assert TASK.facts(rows, ()) == pytest.approx({"value_mean": 1050, "value_spread": 50}, rel=0.05)
    assert TASK.notes(rows, ())[0].startswith("values from 9")
    assert len(set(TASK.strata(rows, ()).tolist())) == 8


def test_values_are_learned_and_told_in_their_own_units(work: Path, run: Run) -> None:
    found = run.evaluation
    assert found["rows"] == 40
    assert found["r2"] > 0.8
    assert found["pearson"] > 0.9
    assert found["mae"] < 20
    assert found["loss"] == pytest.approx(found["mse"] / 50**2, rel=0.1)
    regress = bertsmith.load(run.model_folder, device="cpu")
    assert isinstance(regress, RegressPredictor)
    held_out = _read(work / "validation.csv")
    values = np.array([one.value for one in regress([row.text for row in held_out.items])])
    truth = np.array([float(row.label) for row in held_out.items])
    assert np.square(values - truth).mean() == pytest.approx(found["mse"], rel=1e-4)


def test_the_finished_folder_holds_no_scale_and_knows_the_spread(run: Run) -> None:
    heads = read_model(run.model_folder).model.config.heads
    assert heads.value_scale is None
    assert heads.value_spread == pytest.approx(50, rel=0.05)
    values = json.loads((run.model_folder / "config.json").read_text())
    assert values["problem_type"] == "regression"


def test_losses_of_steps_and_validations_are_of_one_scale(run: Run) -> None:
    entries = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    first = next(entry for entry in entries if entry["kind"] == "train")
    validated = [entry for entry in entries if entry["kind"] == "validation"]
    assert 0.2 < first["loss"] < 5
    for entry in validated:
        assert entry["mse"] == pytest.approx(entry["loss"] * 50**2, rel=0.1)
    assert validated[-1]["loss"] < 0.3
    assert run.evaluation["loss"] == pytest.approx(min(entry["loss"] for entry in validated), rel=1e-3)


def test_the_worst_errors_are_the_farthest_off(run: Run) -> None:
    errors = run.evaluation["worst_errors"]
    assert len(errors) == 20
    distances = [abs(float(error["label"]) - float(error["predicted"])) for error in errors]
    assert distances == sorted(distances, reverse=True)
    assert "score" not in errors[0]  # A number has no probability.
    assert errors[0]["place"].startswith("line ")


def test_errors_are_told_with_all_digits_of_their_values(tmp_path: Path) -> None:
    rows = _read(
        write_rows(tmp_path / "a.csv", [{"text": "one", "score": "1234567"}, {"text": "two", "score": "3e-6"}])
    )
    heads = HeadsConfig(task="regress", masked_language_model=False)
    examples = TASK.examples(rows, (), made_tokenizer(), max_length=16, long_texts="head", heads=heads)
    outputs = np.array([[1234000], [0.1]], np.float32)
    errors = TASK.evaluation(outputs, examples, rows, heads)["worst_errors"]
    assert [(one["label"], one["predicted"]) for one in errors] == [("1234567", "1234000"), ("3e-06", "0.1")]


def test_a_checkpoint_gives_values_too(work: Path, run: Run) -> None:
    checkpoint = CheckpointStore(run.folder / "checkpoints").newest()
    assert checkpoint is not None
    model, _ = checkpoint.read()
    scale = model.model.config.heads.value_scale
    assert scale == pytest.approx((1050, 50), rel=0.05)
    predictor = bertsmith.load(checkpoint.folder, device="cpu")
    assert isinstance(predictor, RegressPredictor)
    (found,) = predictor(["some rain"])
    assert 900 < found.value < 1200


def test_training_goes_on_with_the_values_that_a_folder_gives(run: Run) -> None:
    source = open_source(str(run.model_folder))
    heads = {"task": "regress", "value_scale": (-3.0, 0.25)}
    model, notes = start_model(source, heads, dropout=0.0, fresh_weights=False, seed=0)
    assert any("goes on with the head" in note for note in notes)
    theirs = bertsmith.load(run.model_folder, device="cpu")
    assert isinstance(theirs, RegressPredictor)
    ours = RegressPredictor(TorchEngine(model, Device("cpu", "fp32")), source.tokenizer)
    texts = ["some rain", "old bread", "The boat."]
    expected = [found.value for found in theirs(texts)]
    assert [found.value for found in ours(texts)] == pytest.approx(expected, rel=1e-4)


def test_evaluating_the_folder_gives_the_scores_of_the_run(work: Path, run: Run) -> None:
    report = bertsmith.evaluate(run.model_folder, work / "validation.csv", device="cpu", precision="fp32")
    for name in ("mse", "mae", "pearson", "spearman", "r2", "loss"):
        assert report.metrics[name] == pytest.approx(run.evaluation[name], rel=1e-5)


def test_validation_is_held_out_over_all_values(work: Path) -> None:
    run = finetune_run(_config(work, length={"steps": 2}, validation_share=0.25), work / "held")
    assert run.evaluation["rows"] == 40


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({1: "warm"}, r"must be a number.*train\.csv, line 3: score='warm'"),
        ({0: "nan"}, r"must be a number.*line 2: score='nan'"),
        ({3: ""}, r"1 blank in .*line 5 \(score\)"),
    ],
)
def test_what_is_no_number_is_refused_before_training(tmp_path: Path, work: Path, changes: Any, told: str) -> None:
    rows = [row | ({"score": changes[number]} if number in changes else {}) for number, row in enumerate(_rows(10))]
    path = write_rows(tmp_path / "train.csv", rows)
    assert_refused(_config(work, train=str(path)), tmp_path / "run", told)


def test_values_that_are_all_equal_are_refused_before_training(tmp_path: Path, work: Path) -> None:
    path = write_rows(tmp_path / "train.csv", [row | {"score": 7} for row in _rows(10)])
    with pytest.raises(InputError, match="7 in all 10 training rows"):
        finetune_run(_config(work, train=str(path)), tmp_path / "run")


def test_values_that_are_all_equal_are_no_fault_of_rows_to_validate_on(tmp_path: Path, work: Path) -> None:
    path = write_rows(tmp_path / "train.csv", _rows(12))
    run = finetune_run(_config(work, train=str(path), length={"steps": 2}), tmp_path / "held-out")
    assert run.evaluation["rows"] == 1
    even = write_rows(tmp_path / "even.csv", [row | {"score": 1000} for row in _rows(5, seed=1)])
    config = _config(work, train=str(path), validation=str(even), length={"steps": 2})
    run = finetune_run(config, tmp_path / "even")
    assert run.evaluation["rows"] == 5
    assert run.evaluation["mae"] > 0


def test_class_weights_are_refused(work: Path, tmp_path: Path) -> None:
    assert_refused(_config(work, class_weights="balanced"), tmp_path / "run", "class_weights must be none for regress")


def test_pairs_and_windows_are_read(tmp_path: Path) -> None:
    rows = [{"sentence1": f"a {n}", "sentence2": "b " * n, "similarity": n} for n in range(1, 4)]
    read = _read(write_rows(tmp_path / "a.jsonl", rows))
    assert read.columns == "text “sentence1”, pair “sentence2”, label “similarity”"
    config = FinetuneConfig(task="regress", train="x", model="y", long_texts="windows")
    heads = TASK.heads(read, (), config)
    assert heads["windows"]
    assert heads["value_scale"] == pytest.approx((2.0, np.sqrt(2 / 3)))
    again = TASK.read(tmp_path / "a.jsonl", TableConfig(), like=replace(read, items=()), options=OptionNames())
    assert again.layout == read.layout
