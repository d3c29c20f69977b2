"""A model that begins from a config.json of another padding id than its tokenizer's means the same elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from bertsmith.folders.model_folder import write_model
from bertsmith.model import PackedTokens
from bertsmith.recipes.pretraining.options import ModelChoice
from bertsmith.recipes.pretraining.start_model import start_model
from made_corpora import made_texts, made_tokenizer

ROBERTA = {
    "model_type": "roberta",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 66,
    "type_vocab_size": 1,
    "initializer_range": 0.3,
}


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe"])
@pytest.mark.parametrize("pad_id", [0, 1, 7])
def test_positions_stand_where_they_stand_elsewhere(algorithm: str, pad_id: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(ROBERTA | {"pad_token_id": pad_id}), encoding="utf-8")
    tokenizer = made_tokenizer(algorithm)
    counts = np.ones(tokenizer.vocab_size, np.int64)
    choice = ModelChoice(start=str(tmp_path / "config.json"))
    model = start_model(choice, tokenizer, token_counts=counts, objective="mlm", seed=0).model.eval()
    (tmp_path / "model").mkdir()
    write_model(tmp_path / "model", model, tokenizer)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "model")
    # Every id of the vocabulary, so that one which the file took for padding stands in a text too.
    texts = [
        np.arange(10, 60),
        np.setdiff1d(np.arange(40), [tokenizer.pad_id or 0]),
        *(tokenizer.encode(text, max_length=50).token_ids for text in made_texts(3)),
    ]
    head = model.masked_language_model
    assert head is not None
    for ids in texts:
        bounds = np.array([0, len(ids)])
        with torch.inference_mode():
            packed = PackedTokens.build(ids, np.zeros(len(ids), np.int64), bounds)
            padded = torch.tensor([[*ids, *[tokenizer.pad_id] * 3]])
            expected = theirs(input_ids=padded, attention_mask=(padded != tokenizer.pad_id).long()).logits
            torch.testing.assert_close(head(model.head_input(packed)), expected[0, : len(ids)], atol=1e-4, rtol=0)
