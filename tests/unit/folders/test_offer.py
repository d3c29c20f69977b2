"""A model is offered for what it does, told by its config alone, and by the program that computes all of it."""

from pathlib import Path

import pytest
from made_folders import KINDS, LABELS, UNUSUAL_HEADS, named, small_config, task_heads, written

from bertsmith.folders.config_json import written_config
from bertsmith.folders.model_folder import read_config
from bertsmith.folders.offer import Offer, offer_of
from bertsmith.model import HeadsConfig
from bertsmith.tokenization import Tokenizer


@pytest.mark.parametrize(
    ("kind", "heads", "expected"),
    [
        ("bert", HeadsConfig(), Offer("transformers", "fill-mask", False)),
        ("modern", HeadsConfig(), Offer("transformers", "fill-mask", False)),
        ("modern", HeadsConfig(pooler=True), Offer("transformers", "fill-mask", True)),
        ("causal", HeadsConfig(), Offer("transformers", "text-generation", False)),
        ("bert", HeadsConfig(mlm_head="linear"), Offer("bertsmith", "fill-mask", True)),
        ("bert", HeadsConfig(masked_language_model=False), Offer("transformers", "feature-extraction", False)),
        (
            "bert",
            HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS),
            Offer("transformers", "text-classification", False),
        ),
        ("bert", HeadsConfig(pooler=True, labels=LABELS), Offer("bertsmith", "text-classification", True)),
    ],
)
def test_a_model_is_offered_for_what_it_does(kind: str, heads: HeadsConfig, expected: Offer) -> None:
    assert offer_of(small_config(heads, **KINDS[kind])) == expected


@pytest.mark.parametrize(
    ("task", "pipeline"),
    [
        ("classify", "text-classification"),
        ("multilabel", "text-classification"),
        ("regress", "text-classification"),
        ("choose", "multiple-choice"),
        ("tag", "token-classification"),
        ("answer", "question-answering"),
        ("embed", "sentence-similarity"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fine_tuned_model_is_offered_for_its_task(kind: str, task: str, pipeline: str) -> None:
    offer = offer_of(small_config(task_heads(kind, task), **KINDS[kind]))
    if task == "embed":
        assert offer == Offer("sentence-transformers", pipeline, False)
    elif kind == "causal":
        assert offer == Offer("bertsmith", pipeline, True)
    else:
        assert offer == Offer("transformers", pipeline, False)


def test_embeddings_of_an_elmo_are_offered_by_this_program() -> None:
    heads = HeadsConfig(masked_language_model=False, task="embed")
    elmo = small_config(heads, family="elmo", embedding_size=6, type_vocab_size=0)
    assert offer_of(elmo) == Offer("bertsmith", "feature-extraction", False)


def test_an_elmo_is_offered_for_its_features_by_this_program() -> None:
    elmo = small_config(
        HeadsConfig(mlm_head="linear", tie_embeddings=False), family="elmo", embedding_size=6, type_vocab_size=0
    )
    assert offer_of(elmo) == Offer("bertsmith", "feature-extraction", True)


@pytest.mark.parametrize("heads", UNUSUAL_HEADS, ids=named)
@pytest.mark.parametrize("kind", KINDS)
def test_the_config_alone_tells_what_was_written_and_whether_a_part_lies_apart(
    kind: str, heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, heads, tokenizer)
    told = written_config(read_config(tmp_path), "config.json")
    assert told == model.config
    assert told is not None
    assert offer_of(told).keeps_apart == (tmp_path / "bertsmith_heads.safetensors").is_file()


def test_a_config_from_elsewhere_leaves_the_heads_to_the_weights() -> None:
    assert written_config({"model_type": "bert"}, "config.json") is None
