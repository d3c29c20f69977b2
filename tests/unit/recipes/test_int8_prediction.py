"""Predicting in int8 from a model folder: judged by the texts before, and refused where it predicts something else. In
other precisions nothing is judged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.kernels.encoding import WordPrecision, encodes
from bertsmith.model import Model, new_model
from bertsmith.model.frozen import FrozenEncoder, frozen
from bertsmith.recipes import predict
from bertsmith.recipes.predict import load, load_fill, load_predictor
from made_exports import made_export, made_source
from made_predictors import made_items, made_predictor, made_task_folder

ITEMS = made_items("embed", 20)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_task_folder("embed", tmp_path_factory.mktemp("int8") / "embedder")


def test_vectors_are_near_those_in_fp32_and_the_figure_is_told(embedder: Path) -> None:
    told: list[str] = []
    predictor = load_predictor("embed", embedder, precision="int8", judge_on=ITEMS, notify=told.append)
    exact = made_predictor("embed")
    for ours, theirs in zip(predictor(ITEMS), exact(ITEMS), strict=True):
        cosine = ours.embedding @ theirs.embedding
        assert cosine / np.linalg.norm(ours.embedding) / np.linalg.norm(theirs.embedding) > 0.98
        assert not np.array_equal(ours.embedding, theirs.embedding)
    assert told[0].startswith("int8: cosine 0.99")
    assert told[0].endswith("beside fp32, over 20")


def test_what_a_text_gives_depends_on_no_other(embedder: Path) -> None:
    predictor: Any = load(embedder, precision="int8", judge_on=ITEMS)
    together = predictor(ITEMS)
    for number in (0, 7, 19):
        (alone,) = predictor([ITEMS[number]])
        np.testing.assert_allclose(alone.embedding, together[number].embedding, rtol=0, atol=1e-5)


def test_masks_are_filled(tmp_path: Path) -> None:
    folder = made_source("fill", tmp_path / "filler")
    texts = ["the [MASK] walked", "a boat on the [MASK]"]
    found = load_fill(folder, precision="int8", judge_on=texts)(texts)
    expected = load_fill(folder)(texts)
    assert [one.predictions[0].token_id for one in found] == [one.predictions[0].token_id for one in expected]


def test_one_that_predicts_something_else_is_refused(embedder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(model: Model, precision: WordPrecision) -> Model:
        return new_model(model.config, seed=9) if precision == "int8" else frozen(model, precision)

    monkeypatch.setattr(predict, "frozen", other)
    with pytest.raises(InputError, match=r"must agree with its model: cosine of 0\.98.*over 20.*--precision bf16"):
        load_predictor("embed", embedder, precision="int8", judge_on=ITEMS)


def test_without_texts_to_judge_by_it_is_refused(embedder: Path) -> None:
    with pytest.raises(InputError, match=r"must be judged by texts.*judge_on"):
        load(embedder, precision="int8")


def test_texts_that_cannot_be_used_are_left_out(embedder: Path) -> None:
    told: list[str] = []
    load_predictor("embed", embedder, precision="int8", judge_on=[" ", *ITEMS[:5]], notify=told.append)
    assert told[0].endswith("over 5")


def test_an_exported_folder_has_the_precision_that_it_was_exported_in(tmp_path: Path) -> None:
    folder = made_export("embed", tmp_path / "exported")
    with pytest.raises(InputError, match=r"--precision int8 for fp32"):
        load(folder, precision="int8", judge_on=ITEMS)


def test_training_and_evaluating_know_no_int8(embedder: Path) -> None:
    with pytest.raises(InputError, match="--precision"):
        predict.open_model(embedder, precision="int8")


def test_bf16_runs_all_layers_at_once_and_stays_near(tmp_path: Path, embedder: Path) -> None:
    predictor = load_predictor("embed", embedder, device="cpu", precision="bf16")
    for ours, theirs in zip(predictor(ITEMS), made_predictor("embed")(ITEMS), strict=True):
        np.testing.assert_allclose(ours.embedding, theirs.embedding, rtol=0, atol=2e-2 * np.abs(theirs.embedding).max())
    engine, _ = predict.open_engine(embedder, device="cpu", precision="bf16")
    assert engine.precision == "bf16"


def test_in_fp32_too_wherever_there_are_kernels_for_it(embedder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Model] = []

    def noted(model: Model, precision: WordPrecision) -> Model:
        made.append(frozen(model, precision))
        return made[-1]

    monkeypatch.setattr(predict, "frozen", noted)
    exact = made_predictor("embed")(ITEMS)
    for there in (encodes("fp32"), False):
        made.clear()
        monkeypatch.setattr(predict, "encodes", lambda precision, there=there: there)
        predictor = load_predictor("embed", embedder, device="cpu")
        assert [isinstance(model.encoder, FrozenEncoder) for model in made] == [True] * there
        for ours, theirs in zip(predictor(ITEMS), exact, strict=True):
            np.testing.assert_allclose(ours.embedding, theirs.embedding, rtol=0, atol=1e-5)
        assert predict.open_engine(embedder, device="cpu", precision="fp32")[0].precision == "fp32"
