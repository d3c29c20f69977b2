"""What is written is read back, whatever the heads; and others find what they expect in it."""

import json
from pathlib import Path

import pytest
import torch
from made_folders import (
    EVERY_HEADS,
    assert_equal_models,
    change_config,
    named,
    small_config,
    varied_model,
    weights_of,
)
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM

from bertsmith.folders.config_json import architecture
from bertsmith.folders.formats import published_class
from bertsmith.folders.model_folder import read_config, read_model, read_tokenizer, write_model
from bertsmith.model import Dropout, HeadsConfig
from bertsmith.tokenization import Tokenizer

PUBLISHED_HEADS = [heads for heads in EVERY_HEADS if published_class(small_config(heads))]
OWN_HEADS = [heads for heads in EVERY_HEADS if heads not in PUBLISHED_HEADS]


@pytest.mark.parametrize("heads", EVERY_HEADS, ids=named)
def test_a_model_is_read_as_it_was_written(heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = small_config(heads, dropout=Dropout(embeddings=0.1, feed_forward=0.2), activation="gelu_tanh")
    model = varied_model(config)
    write_model(tmp_path, model, tokenizer)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == config
    assert_equal_models(read.model, model)
    assert read_tokenizer(tmp_path, vocab_size=40).fingerprint == tokenizer.fingerprint


def test_all_kinds_of_heads_are_tried() -> None:
    assert len(EVERY_HEADS) == 2 * 7 * 3
    assert len({architecture(small_config(heads)) for heads in EVERY_HEADS}) == 4


@pytest.mark.parametrize("heads", OWN_HEADS, ids=named)
@torch.no_grad()
def test_a_head_of_our_own_lies_apart_and_the_encoder_opens_elsewhere(
    heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = varied_model(small_config(heads))
    write_model(tmp_path, model, tokenizer)
    assert read_config(tmp_path)["architectures"] == ["BertModel"]
    apart = set(load_file(tmp_path / "bertsmith_heads.safetensors"))
    assert apart == {name for name in model.state_dict() if not name.startswith(("encoder.", "pooler."))}
    assert not [name for name in weights_of(tmp_path) if name.startswith(("cls", "bert", "masked"))]
    theirs, loading = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    expected_missing = set() if heads.pooler else {"pooler.dense.weight", "pooler.dense.bias"}
    assert set(loading["missing_keys"]) == expected_missing
    assert not loading["unexpected_keys"]
    tokens = torch.arange(20).reshape(2, 10)
    mask = torch.tensor([[1] * 10, [1] * 6 + [0] * 4])
    ours = model.encoder(tokens, mask)[mask.bool()]
    hidden = theirs(tokens, attention_mask=mask).last_hidden_state[mask.bool()]
    torch.testing.assert_close(ours, hidden, atol=1e-5, rtol=0)


@pytest.mark.parametrize("heads", PUBLISHED_HEADS, ids=named)
def test_published_heads_lie_with_the_encoder(heads: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_model(tmp_path, varied_model(small_config(heads)), tokenizer)
    assert not (tmp_path / "bertsmith_heads.safetensors").exists()
    names = set(weights_of(tmp_path))
    assert ("cls.predictions.transform.dense.weight" in names) == heads.masked_language_model
    assert ("cls.seq_relationship.weight" in names) == heads.next_sentence


def test_tied_weights_are_stored_once_and_are_one_again_when_read(folder: Path) -> None:
    assert "cls.predictions.decoder.weight" not in weights_of(folder)
    model = read_model(folder).model
    head = model.masked_language_model
    assert head is not None
    assert head.projection is model.encoder.embeddings.token.weight
    theirs, loading = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not loading["missing_keys"]
    assert theirs.cls.predictions.decoder.weight is theirs.bert.embeddings.word_embeddings.weight


def test_untied_weights_are_stored_with_the_bias_under_both_names(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = varied_model(small_config(HeadsConfig(tie_embeddings=False)))
    write_model(tmp_path, model, tokenizer)
    weights = weights_of(tmp_path)
    assert read_config(tmp_path)["tie_word_embeddings"] is False
    assert torch.equal(weights["cls.predictions.decoder.bias"], weights["cls.predictions.bias"])
    embedding = weights["bert.embeddings.word_embeddings.weight"]
    assert not torch.equal(weights["cls.predictions.decoder.weight"], embedding)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_weights_are_written_in_fp32_whatever_the_model_has(
    dtype: torch.dtype, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = varied_model(small_config(HeadsConfig())).to(dtype)
    write_model(tmp_path, model, tokenizer)
    assert {value.dtype for value in weights_of(tmp_path).values()} == {torch.float32}
    assert_equal_models(read_model(tmp_path).model, model.float())


def test_attention_of_either_kind_takes_the_same_weights(folder: Path) -> None:
    assert_equal_models(read_model(folder, attention="recording").model, read_model(folder).model)


def test_the_length_is_saved_with_the_tokenizer(folder: Path) -> None:
    assert json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["model_max_length"] == 24


def test_a_folder_without_a_saved_length_gets_that_of_the_model_when_written(folder: Path, tmp_path: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    del settings["model_max_length"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    unlimited = read_tokenizer(folder, vocab_size=40)
    assert unlimited.model_max_length is None
    again = tmp_path / "again"
    again.mkdir()
    write_model(again, read_model(folder).model, unlimited)
    assert read_tokenizer(again, vocab_size=40).model_max_length == 24


def test_dropout_of_other_programs_is_read_from_their_two_rates(folder: Path) -> None:
    change_config(folder, bertsmith=None, hidden_dropout_prob=0.25, attention_probs_dropout_prob=0.5)
    assert read_model(folder).model.config.encoder.dropout == Dropout(
        embeddings=0.25, attention_weights=0.5, attention_output=0.25, feed_forward=0.25
    )
