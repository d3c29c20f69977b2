"""Folders fine-tuned to regress, multilabel and choose give the same in transformers, pipelines included."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    pipeline,
)

import bertsmith
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from made_corpora import made_texts
from made_tasks import made_encoder, write_rows

LONG = " ".join(["The old river carried every small boat"] * 20)
TEXTS = [*made_texts(10, sentences=(1, 5)), LONG, "Rain.", "東京 caf\xe9"]
CHOICES = [
    ("The boat.", ["It sank.", "It waited by the bridge.", "Nobody sang."]),
    (LONG, ["It sank.", "It waited.", f"It carried {LONG}"]),
]


def _rows(task: str) -> list[dict[str, Any]]:
    stream = random.Random(0)
    rows: list[dict[str, Any]] = []
    for number, text in enumerate(made_texts(40, sentences=(1, 2), seed=1)):
        row: dict[str, Any] = {"text": text}
        match task:
            case "regress":
                row["score"] = 2000 + 30 * (number % 5)
            case "multilabel":
                row["labels"] = [name for name in ("wet", "cold", "dry") if stream.random() < 0.4]
            case _:
                row |= {"choices": ["rain fell", "the boat", "a song"][: 2 + number % 2], "label": number % 2}
        rows.append(row)
    return rows


def _folder(task: str, work: Path, long_texts: str) -> Path:
    table = write_rows(work / "train.jsonl", _rows(task))
    values: dict[str, Any] = {
        "task": task,
        "train": str(table),
        "model": str(made_encoder(work / "encoder")),
        "length": {"steps": 6},
        "max_length": 40,
        "long_texts": long_texts,
        "runtime": {"device": "cpu", "precision": "fp32", "threads": 1},
        "training": {"optimizer": {"learning_rate": 5e-3}},
    }
    return finetune_run(FinetuneConfig.parse(values, where="a test"), work / "run").model_folder


@pytest.mark.parametrize("long_texts", ["head", "tail"])
def test_a_regression_gives_plain_values(tmp_path: Path, long_texts: str) -> None:
    folder = _folder("regress", tmp_path, long_texts)
    ours = np.array([found.value for found in bertsmith.load(folder, device="cpu", precision="fp32")(TEXTS)])
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert (model.config.num_labels, model.config.problem_type) == (1, "regression")
    inputs = tokenizer(TEXTS, truncation=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        theirs = model.eval()(**inputs).logits[:, 0].numpy()
    # fp32 has seven digits.
    assert theirs == pytest.approx(ours, rel=1e-6)
    assert 1900 < ours.mean() < 2300
    tell = pipeline("text-classification", model=str(folder), function_to_apply="none", device="cpu")
    assert [found["score"] for found in tell(TEXTS[:3], truncation=True)] == pytest.approx(ours[:3], rel=1e-6)


@pytest.mark.parametrize("long_texts", ["head", "tail"])
def test_labels_have_our_scores(tmp_path: Path, long_texts: str) -> None:
    folder = _folder("multilabel", tmp_path, long_texts)
    ours = bertsmith.load(folder, device="cpu", precision="fp32")(TEXTS)
    tell = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    assert tell.model.config.problem_type == "multi_label_classification"
    for text, expected in zip(TEXTS, ours, strict=True):
        (theirs,) = tell([text], truncation=True)
        assert {one["label"]: one["score"] for one in theirs} == pytest.approx(expected.scores, abs=1e-5)


def test_choices_have_our_scores(tmp_path: Path) -> None:
    folder = _folder("choose", tmp_path, "head")
    choose = bertsmith.load(folder, device="cpu", precision="fp32")
    model, tokenizer = AutoModelForMultipleChoice.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    texts = [text for text, choices in CHOICES for _ in choices]
    endings = [choice for _, choices in CHOICES for choice in choices]
    inputs = tokenizer(texts, endings, truncation=True, padding=True, return_tensors="pt")
    # Two questions with three choices each, as the class takes them.
    with torch.no_grad():
        logits = model.eval()(**{name: value.view(2, 3, -1) for name, value in inputs.items()}).logits
    ours = np.array([found.scores for found in choose(CHOICES)])
    assert logits.softmax(-1).numpy() == pytest.approx(ours, abs=1e-5)
