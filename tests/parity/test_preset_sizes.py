"""Presets have as many parameters as the reference's classes at full size, counted without memory."""

import pytest
import torch
import transformers
from reference_models import reference_config

from bertsmith.folders.config_json import architecture
from bertsmith.model import HeadsConfig, ModelConfig, meta_model, preset

HEADS = {
    "BertForPreTraining": HeadsConfig(pooler=True, next_sentence=True),
    "AlbertForPreTraining": HeadsConfig(pooler=True, sentence_order=True),
    "MaskedLM": HeadsConfig(),
}


@pytest.mark.parametrize(
    ("name", "vocabulary", "heads"),
    [
        ("bert-base", 30_522, "BertForPreTraining"),
        ("bert-large", 30_522, "BertForPreTraining"),
        ("albert-base", 30_000, "AlbertForPreTraining"),
        ("albert-xxlarge", 30_000, "AlbertForPreTraining"),
        ("roberta-base", 50_265, "MaskedLM"),
        ("roberta-large", 50_265, "MaskedLM"),
        ("modern-base", 50_368, "MaskedLM"),
    ],
)
def test_a_preset_has_as_many_parameters_as_the_class_of_the_reference(name: str, vocabulary: int, heads: str) -> None:
    config = ModelConfig(encoder=preset(name, vocab_size=vocabulary), heads=HEADS[heads])
    kind = getattr(transformers, architecture(config) or "")
    with torch.device("meta"):
        theirs = kind(reference_config(config, 0))
        theirs.tie_weights()
    ours = sum(parameter.numel() for parameter in meta_model(config).parameters())
    assert ours == theirs.num_parameters()


def test_modern_base_is_the_published_one() -> None:
    published = transformers.ModernBertConfig()
    encoder = preset("modern-base", vocab_size=published.vocab_size)
    ours = reference_config(ModelConfig(encoder=encoder, heads=HeadsConfig(classifier_dropout=0.0)), 0).to_dict()
    # Tokens' ids are the tokenizer's matter.
    of_tokens = {key for key in ours if key.endswith("token_id")}
    kept = {key for key in published.to_dict() if key not in of_tokens}
    assert {key: ours[key] for key in kept} == {key: published.to_dict()[key] for key in kept}
