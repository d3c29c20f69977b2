"""A fine-tuned model on rows of its task: what is said of them, and which errors are told."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.examples.table_config import TableConfig
from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig
from bertsmith.recipes.evaluate import evaluate_run
from bertsmith.recipes.finetuning.data import examples_of, task_data
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.tasks import TASKS
from made_corpora import made_tokenizer
from made_heads import made_head
from made_tasks import made_rows, write_rows

LABELS = ("dry", "wet")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A classifier that was never trained."""
    (tmp_path / "model").mkdir()
    write_model(tmp_path / "model", made_head("classify", labels=LABELS), made_tokenizer())
    return tmp_path / "model"


def _long_word() -> str:
    return "boat" * (made_tokenizer().max_word_characters or 0)


def test_every_error_is_told_and_the_worst_of_them_with_the_scores(model: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.csv", made_rows({"wet": 60, "dry": 60}))
    report = evaluate_run(model, path, device="cpu", precision="fp32", out=tmp_path / "out")
    wrong = sum(report.metrics["confusion"][true][found] for true, found in ((0, 1), (1, 0)))
    assert len(report.errors) == report.metrics["num_errors"] == wrong > 20
    assert report.metrics["worst_errors"] == list(report.errors[:20])
    sure = [error["score"] for error in report.errors]
    assert sure == sorted(sure, reverse=True)
    assert len((tmp_path / "out" / "errors.tsv").read_text().splitlines()) == wrong + 1


@pytest.fixture
def multilabel(tmp_path: Path) -> Path:
    """A model of any number of labels that was never trained."""
    (tmp_path / "multilabel").mkdir()
    head = made_head("multilabel", labels=("Food, Drink", "Rest", "Travel"))
    write_model(tmp_path / "multilabel", head, made_tokenizer())
    return tmp_path / "multilabel"


def test_labels_of_rows_are_read_as_the_model_knows_them(multilabel: Path, tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("text\tlabels\none\tFood, Drink\ntwo\tTravel\n")
    report = evaluate_run(multilabel, path, device="cpu", precision="fp32")
    assert {name: one["rows"] for name, one in report.metrics["per_class"].items()} == {
        "Food, Drink": 1,
        "Rest": 0,
        "Travel": 1,
    }


@pytest.mark.parametrize(
    ("row", "label", "told"),
    [
        ({"labels": [0, 0, 1, 0]}, None, r"a place for each label.*: 3\. Received: 4 in labels, in .*a\.jsonl"),
        (
            {"Travel": 1, "Rest": 0},
            "Travel,Rest",
            r"of all labels.*: \"Food, Drink\", Rest, Travel\. Received: Travel, Rest",
        ),
        ({"Travel": 1}, "Travel", r"of all labels.*Received: Travel, in"),
    ],
)
def test_zeros_and_ones_of_other_labels_than_the_models_are_refused(
    multilabel: Path, tmp_path: Path, row: dict[str, Any], label: str | None, told: str
) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"text": text} | row for text in ("one", "two")])
    with pytest.raises(InputError, match=told):
        evaluate_run(multilabel, path, device="cpu", precision="fp32", table=TableConfig(label=label))


def test_words_that_are_too_long_are_said_of_rows_that_are_evaluated(model: Path, tmp_path: Path) -> None:
    rows = [{"text": f"the {_long_word()}", "label": "wet"}, {"text": "the boat", "label": "dry"}]
    report = evaluate_run(model, write_rows(tmp_path / "test.csv", rows), device="cpu", precision="fp32")
    assert any(note.startswith("1 of 2 rows has a word of more than") for note in report.metrics["notes"])


def test_words_that_are_too_long_are_said_of_rows_to_learn_from(tmp_path: Path) -> None:
    rows = [{"text": f"a boat {_long_word()}", "label": label} for label in LABELS * 10]
    values = {"train": str(write_rows(tmp_path / "train.csv", rows)), "model": "none"}
    config = FinetuneConfig.parse(values, where="a test")
    data = task_data(TASKS["classify"], config)
    heads = HeadsConfig(masked_language_model=False, pooler=True, task="classify", labels=LABELS)
    found = examples_of(TASKS["classify"], data, made_tokenizer(), config, heads=heads, max_length=16)
    assert any(note.startswith("training: 18 of 18 rows have a word of more than") for note in found.notes)
