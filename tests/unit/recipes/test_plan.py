"""What a model will be is told without making it, beside what its authors say."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bertsmith
from bertsmith.cli.main import app
from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.recipes.plan import Plan, plan
from made_corpora import made_tokenizer
from made_language_models import made_bert
from made_tasks import made_classifier

MILLIONS = {
    "bert-base": (109.48, 110.11),
    "bert-large": (335.14, 336.23),
    "albert-xxlarge": (222.60, 223.16),
    "roberta-base": (None, 124.70),
    "roberta-large": (None, 355.41),
    "modern-base": (149.01, 149.66),
}


def _parts(made: Plan) -> tuple[int, ...]:
    return made.embeddings, made.layers, made.pooler, made.heads


@pytest.mark.parametrize("name", MILLIONS)
def test_counts_are_those_of_the_reference_implementation(name: str) -> None:
    made = plan(name)
    with_pooler, with_heads = MILLIONS[name]
    assert round(made.parameters / 1e6, 2) == with_heads
    if with_pooler is not None:
        assert round(made.encoder_and_pooler / 1e6, 2) == with_pooler
    assert made.published is not None
    assert made.parameters == made.embeddings + made.layers + made.pooler + made.heads
    assert abs(float(made.published.removesuffix("M")) / (made.parameters / 1e6) - 1) < 0.06


def test_another_vocabulary_changes_the_embeddings_and_has_no_published_figure() -> None:
    small, large = plan("bert-base", vocab_size=1000), plan("bert-base", vocab_size=2000)
    assert large.embeddings - small.embeddings == 1000 * 768
    assert large.heads - small.heads == 1000
    assert large.layers == small.layers
    assert (small.vocab_size, small.published, small.published_by) == (1000, None, None)
    assert plan("bert-toy").published is None


def test_layers_that_share_their_weights_count_once() -> None:
    one = plan("albert-base").layers
    assert abs(plan("bert-base").layers / one - 12) < 0.01


def test_a_config_file_is_planned_like_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    path.write_text(json.dumps({"model_type": "bert", "vocab_size": 30522, **sizes}), encoding="utf-8")
    for given in (path, tmp_path):
        assert _parts(plan(given)) == _parts(plan("bert-base"))


@pytest.mark.parametrize("labels", [(), ("dry", "wet", "cold")])
def test_a_model_folder_is_counted_with_the_heads_that_it_has(labels: tuple[str, ...], tmp_path: Path) -> None:
    model = made_classifier(labels) if labels else made_bert()
    with new_folder(tmp_path / "model", seal={}) as temporary:
        write_model(temporary, model, made_tokenizer())
    made = plan(tmp_path / "model")
    assert made.parameters == sum(weight.numel() for weight in model.parameters())
    assert made.heads == (16 * 3 + 3 if labels else 16 * 16 + 16 + 2 * 16 + made.vocab_size)
    assert made.pooler == (16 * 16 + 16 if labels else 0)
    larger = plan(tmp_path / "model", vocab_size=made.vocab_size + 10)
    assert larger.embeddings == made.embeddings + 160


def test_the_function_is_public_and_has_the_fields_of_the_command() -> None:
    assert bertsmith.plan is plan
    found = CliRunner().invoke(app, ["plan", "--model", "albert-base", "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told == asdict(bertsmith.plan("albert-base"))
    assert {"parameters", "vocab_size", "family", "published"} <= told.keys()


def test_an_unknown_model_names_the_presets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Did you mean bert-large\?"):
        plan("bert-larg")
