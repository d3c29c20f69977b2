"""What a model will be is told without making it, beside what its authors say."""

import json
from pathlib import Path

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.plan import plan

MILLIONS = {
    "bert-base": (109.48, 110.11),
    "bert-large": (335.14, 336.23),
    "albert-xxlarge": (222.60, 223.16),
    "roberta-base": (None, 124.70),
    "roberta-large": (None, 355.41),
    "modern-base": (149.01, 149.66),
}


@pytest.mark.parametrize("name", MILLIONS)
def test_counts_are_those_of_the_reference_implementation(name: str) -> None:
    made = plan(name)
    with_pooler, with_heads = MILLIONS[name]
    assert round(made.with_pretraining_heads / 1e6, 2) == with_heads
    if with_pooler is not None:
        assert round(made.encoder_with_pooler / 1e6, 2) == with_pooler
    assert made.published is not None
    assert made.parts.total == made.with_pretraining_heads
    assert abs(float(made.published.parameters.removesuffix("M")) / (made.with_pretraining_heads / 1e6) - 1) < 0.06


def test_another_vocabulary_changes_the_embeddings_and_has_no_published_figure() -> None:
    small, large = plan("bert-base", vocab_size=1000), plan("bert-base", vocab_size=2000)
    assert large.parts.embeddings - small.parts.embeddings == 1000 * 768
    assert large.parts.heads - small.parts.heads == 1000
    assert large.parts.layers == small.parts.layers
    assert small.published is None
    assert plan("bert-toy").published is None


def test_layers_that_share_their_weights_count_once() -> None:
    one = plan("albert-base").parts.layers
    assert abs(plan("bert-base").parts.layers / one - 12) < 0.01


def test_a_config_file_is_planned_like_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    path.write_text(json.dumps({"model_type": "bert", "vocab_size": 30522, **sizes}), encoding="utf-8")
    for given in (path, tmp_path):
        assert plan(given).parts == plan("bert-base").parts


def test_an_unknown_model_names_the_presets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Did you mean bert-large\?"):
        plan("bert-larg")
