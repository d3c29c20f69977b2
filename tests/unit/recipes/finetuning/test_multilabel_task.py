"""The task multilabel: from rows with any number of labels to a model folder that gives them."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import assert_refused, config_of

import bertsmith
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.multilabel import MultilabelPredictor
from bertsmith.model import HeadsConfig
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.task import Task, TaskRows
from bertsmith.recipes.finetuning.tasks.multilabel import Multilabel
from bertsmith.recipes.results import Run
from made_corpora import made_tokenizer
from made_tasks import made_encoder, write_rows

TASK = Multilabel()
WORDS = {"wet": "rain", "cold": "snow", "dry": "bread"}
OTHERS = ["the", "old", "small", "river", "harbour", "garden", "morning", "teacher", "sailor", "walked", "waited"]


def _rows(count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Texts that have a label for each of three words in them."""
    stream = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        labels = [name for name, share in zip(WORDS, (0.5, 0.3, 0.2), strict=True) if stream.random() < share]
        words = stream.choices(OTHERS, k=stream.randint(3, 8)) + [WORDS[name] for name in labels]
        stream.shuffle(words)
        rows.append({"text": f"{' '.join(words)} {number}", "labels": "|".join(labels)})
    return rows


def _config(work: Path, **more: Any) -> FinetuneConfig:
    return config_of(work, **({"task": "multilabel", "length": {"steps": 200}} | more))


def _read(path: Path, like: TaskRows | None = None, **more: Any) -> TaskRows:
    return TASK.read(path, TableConfig(**more), like=like, options=OptionNames())


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and rows."""
    folder = tmp_path_factory.mktemp("multilabel")
    made_encoder(folder / "encoder")
    write_rows(folder / "train.csv", _rows(240))
    write_rows(folder / "validation.csv", _rows(60, seed=1))
    return folder


@pytest.fixture(scope="module")
def run(work: Path) -> Run:
    """A run that learns."""
    return finetune_run(_config(work, validation=str(work / "validation.csv")), work / "run")


def test_it_is_a_task_with_labels(work: Path) -> None:
    rows = _read(work / "train.csv")
    labels = TASK.labels(rows)
    assert isinstance(TASK, Task)
    assert labels == ("cold", "dry", "wet")
    assert rows.columns == "text “text”, labels “labels” (separated by “|”)"
    counts = TASK.facts(rows, labels)["label_counts"]
    assert counts["wet"] > counts["cold"] > counts["dry"] > 30
    assert any("have no label, which is a valid answer" in note for note in TASK.notes(rows, labels))
    assert set(TASK.strata(rows, labels).tolist()) == {0, 1, 2, 3}


def test_labels_are_learned_and_thresholds_tuned_and_saved(work: Path, run: Run) -> None:
    found = run.evaluation
    assert found["rows"] == 60
    assert found["tuned_micro_f1"] > 0.8
    assert found["tuned_macro_f1"] >= found["macro_f1"] - 1e-9
    assert found["label_ranking_average_precision"] > 0.9
    assert set(found["per_class"]) == set(found["thresholds"]) == set(WORDS)
    heads = read_model(run.model_folder).model.config.heads
    assert heads.task == "multilabel"
    assert dict(zip(heads.labels, heads.thresholds, strict=True)) == found["thresholds"]
    assert run.metrics["tuned_micro_f1"] == found["tuned_micro_f1"]


def test_the_predictor_gives_what_the_evaluation_counted(work: Path, run: Run) -> None:
    predictor = bertsmith.load(run.model_folder, device="cpu", precision="fp32")
    assert isinstance(predictor, MultilabelPredictor)
    rows = _read(work / "validation.csv").items
    found = predictor([row.text for row in rows])
    right = np.mean([set(one.labels) == set(row.label) for one, row in zip(found, rows, strict=True)])
    assert right == pytest.approx(run.evaluation["tuned_subset_accuracy"])


def test_evaluating_the_folder_gives_the_scores_of_the_run(work: Path, run: Run) -> None:
    report = bertsmith.evaluate(run.model_folder, work / "validation.csv", device="cpu", precision="fp32")
    for name in TASK.metrics(_read(work / "train.csv"), ()):
        assert report.metrics[name] == pytest.approx(run.evaluation[name], rel=1e-5)
    assert report.metrics["thresholds"] == run.evaluation["thresholds"]


def test_balanced_weights_and_columns_of_0_and_1_train_too(work: Path, tmp_path: Path) -> None:
    rows = [
        {"text": row["text"], **{name: int(name in row["labels"].split("|")) for name in WORDS}} for row in _rows(80)
    ]
    path = write_rows(tmp_path / "train.csv", rows)
    config = _config(
        work, train=str(path), class_weights="balanced", length={"steps": 3}, data={"label": "wet,cold,dry"}
    )
    run = finetune_run(config, tmp_path / "run")
    heads = read_model(run.model_folder).model.config.heads
    assert heads.labels == ("wet", "cold", "dry")
    assert list(run.evaluation["per_class"]) == ["wet", "cold", "dry"]


def test_a_label_only_in_validation_is_refused_before_training(work: Path, tmp_path: Path) -> None:
    held_out = write_rows(tmp_path / "held.csv", [*_rows(5), {"text": "a storm", "labels": "wett|cold"}])
    assert_refused(
        _config(work, validation=str(held_out)), tmp_path / "run", r"“wett” in .*held\.csv, line 7.*Did you mean wet\?"
    )


def test_a_value_other_than_0_or_1_is_refused_before_training(work: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "train.jsonl", [{"text": "a", "labels": [0, 1]}, {"text": "b", "labels": [2, 2]}])
    with pytest.raises(InputError, match=r"1 or 0.*line 2: labels\[0\]=2"):
        finetune_run(_config(work, train=str(path)), tmp_path / "run")


def test_a_tuned_score_cannot_tell_the_best_validation(work: Path, tmp_path: Path) -> None:
    assert_refused(
        _config(work, training={"metric": "tuned_micro_f1"}), tmp_path / "run", "thresholds are tuned at the end alone"
    )


def test_the_worst_errors_are_those_of_which_the_model_was_the_most_certain(tmp_path: Path) -> None:
    rows = _read(write_rows(tmp_path / "a.jsonl", [
        {"text": "one", "labels": ["a"]}, {"text": "two", "labels": []}, {"text": "three", "labels": ["a", "b"]},
    ]))  # fmt: skip
    heads = HeadsConfig(task="multilabel", labels=("a", "b"), masked_language_model=False)
    examples = TASK.examples(rows, heads.labels, made_tokenizer(), max_length=16, long_texts="head", heads=heads)
    logits = np.array([[2.0, -2.0], [3.0, -1.0], [-4.0, 1.0]], np.float32)
    found = TASK.evaluation(logits, examples, rows, heads)
    assert [(error["text"], error["label"], error["predicted"]) for error in found["worst_errors"]] == [
        ("three", "a, b", "b"),
        ("two", "no label", "a"),
    ]
    assert found["worst_errors"][0]["score"] == pytest.approx(1 / (1 + np.exp(-4.0)))
    assert found["subset_accuracy"] == pytest.approx(1 / 3)
    assert not {"tuned_micro_f1", "thresholds"} & set(found)


def test_windows_of_a_row_are_averaged(tmp_path: Path) -> None:
    rows = _read(write_rows(tmp_path / "a.jsonl", [
        {"text": "rain " * 40, "labels": ["a"]}, {"text": "snow", "labels": ["b"]},
    ]))  # fmt: skip
    heads = HeadsConfig(task="multilabel", labels=("a", "b"), masked_language_model=False, windows=True)
    examples = TASK.examples(rows, heads.labels, made_tokenizer(), max_length=16, long_texts="windows", heads=heads)
    num_windows = int((examples.rows == 0).sum())
    assert num_windows > 1
    assert examples.targets[:num_windows].tolist() == [[1.0, 0.0]] * num_windows
    logits = np.concatenate([np.tile([1.0, -1.0], (num_windows, 1)), [[-1.0, 1.0]]]).astype(np.float32)
    logits[0] = [-1.0, -1.0]
    assert TASK.evaluation(logits, examples, rows, heads)["subset_accuracy"] == 1.0
