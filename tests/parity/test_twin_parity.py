"""XLM-RoBERTa and CamemBERT are read and written as RoBERTa, and give the same numbers as before in the reference."""

from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import CLASSIFIER, TIED, UNTIED, enlarge, random_config, random_inputs
from reference_models import assert_parity, opener, reference_config
from transformers import (
    CamembertConfig,
    CamembertForMaskedLM,
    CamembertForSequenceClassification,
    PreTrainedModel,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForSequenceClassification,
)

from bertsmith.folders.config_json import architecture
from bertsmith.folders.model_folder import read_config, read_model, write_model
from bertsmith.model import HeadsConfig, ModelConfig
from bertsmith.tokenization import Tokenizer

TWINS: dict[str, tuple[Any, Any, Any]] = {
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaForSequenceClassification),
    "camembert": (CamembertConfig, CamembertForMaskedLM, CamembertForSequenceClassification),
}
FIELDS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id", "tie_word_embeddings"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "id2label"),
)


def twin_of(kind: str, config: ModelConfig, number: int) -> PreTrainedModel:
    """A random model of a twin's own class."""
    config_class, masked, classifier = TWINS[kind]
    built = reference_config(config, number)
    model_class = classifier if config.heads.labels else masked
    model = model_class(config_class(**{name: getattr(built, name) for name in FIELDS}))
    enlarge(model, number)
    return model.eval()


@pytest.mark.parametrize("heads", [TIED, UNTIED, CLASSIFIER], ids=["tied", "untied", "classifier"])
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("kind", TWINS)
def test_a_twin_of_roberta_agrees_as_it_is_and_as_it_is_written_back(
    kind: str, number: int, heads: HeadsConfig, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = random_config("roberta", number).model_copy(update={"heads": heads})
    twin = twin_of(kind, config, number)
    twin.save_pretrained(tmp_path / "twin")
    assert read_config(tmp_path / "twin")["model_type"] == kind
    read = read_model(tmp_path / "twin")
    assert read.notes == (f"{kind} is read and written as roberta, which computes the same",)
    assert read.model.config == config
    (tmp_path / "back").mkdir()
    write_model(tmp_path / "back", read.model, tiny_tokenizer)
    name = architecture(config) or ""
    back, loading = opener(name).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert isinstance(back, RobertaForSequenceClassification if heads.labels else RobertaForMaskedLM)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    inputs = random_inputs(config.encoder, number)
    with torch.no_grad():
        before, after = twin(**inputs.named).logits, back.eval()(**inputs.named).logits
    counted = slice(None) if heads.labels else inputs.real
    # The tanh of gelu is written in two ways, which differ in the last digit.
    torch.testing.assert_close(after[counted], before[counted], atol=1e-5, rtol=1e-5)
    if not heads.labels:
        assert_parity(read.model, twin, inputs, single=1e-5, double=1e-10)
