"""A fine-tuned model on rows of its task: what is said of them, and which errors are told."""

from pathlib import Path

import pytest

from bertsmith.folders.model_folder import write_model
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
