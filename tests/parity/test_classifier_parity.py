"""A fine-tuned folder gives the same outputs in transformers, its pipeline included."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

import bertsmith
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from made_corpora import made_texts
from made_tasks import made_encoder, made_rows, write_rows

LONG = " ".join(["The old river carried every small boat"] * 20)
TEXTS = [*made_texts(12, sentences=(1, 5)), LONG, "Rain.", "東京 caf\xe9"]
PAIRS = [("Rain fell.", "The boat waited."), (LONG, "Rain."), ("Rain.", LONG), (LONG, f"{LONG} {LONG}")]


def _trained(work: Path, long_texts: str, *, pairs: bool) -> Path:
    """A classifier, trained for a few steps, whose labels do not stand in the order of the alphabet everywhere."""
    table = write_rows(work / "train.csv", made_rows({"wet": 20, "dry": 20, "cold": 20}, pairs=pairs))
    values: dict[str, Any] = {
        "train": str(table),
        "model": str(made_encoder(work / "encoder", pairs=pairs)),
        "length": {"steps": 8},
        "max_length": 40,
        "long_texts": long_texts,
        "runtime": {"device": "cpu", "precision": "fp32", "threads": 1},
        "training": {"optimizer": {"learning_rate": 5e-3}},
    }
    return finetune_run(FinetuneConfig.parse(values, where="a test"), work / "run").model_folder


@pytest.fixture(scope="module", params=["head", "tail"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of texts."""
    return _trained(tmp_path_factory.mktemp("classifier"), request.param, pairs=False)


@pytest.fixture(scope="module", params=["head", "tail"])
def folder_of_pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of pairs."""
    return _trained(tmp_path_factory.mktemp("pairs"), request.param, pairs=True)


def _ours(folder: Path, texts: list[Any]) -> np.ndarray:
    classify = bertsmith.load(folder, device="cpu", precision="fp32")
    assert isinstance(classify, ClassifyPredictor)
    return np.array([[found.scores[label] for label in classify.labels] for found in classify(texts)])


def test_the_pipeline_gives_our_scores(folder: Path) -> None:
    classify = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    for text, ours in zip(TEXTS, _ours(folder, TEXTS), strict=True):
        (theirs,) = classify([text], truncation=True)
        found = {entry["label"]: entry["score"] for entry in theirs}
        assert [found[label] for label in ("cold", "dry", "wet")] == pytest.approx(ours.tolist(), abs=1e-5)


@torch.no_grad()
def test_the_class_gives_our_scores_for_padded_batches_of_pairs(folder_of_pairs: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(folder_of_pairs).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder_of_pairs)
    first, second = zip(*PAIRS, strict=True)
    inputs = tokenizer(list(first), list(second), truncation=True, padding=True, return_tensors="pt")
    assert inputs["input_ids"].shape[1] == 40
    theirs = model(**inputs).logits.softmax(-1).numpy()
    assert theirs == pytest.approx(_ours(folder_of_pairs, list(PAIRS)), abs=1e-5)
    assert model.config.id2label == {0: "cold", 1: "dry", 2: "wet"}
