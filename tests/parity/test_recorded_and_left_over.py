"""What holds beside equal outputs between models here and in the reference: recorded attention, leftovers, lengths."""

from pathlib import Path

import pytest
import torch
from random_models import KINDS, SMALLEST_VOCABULARY, Inputs, enlarge, random_config, random_inputs
from reference_models import assert_parity, named_for, our_outputs, reference_model
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, BertModel

from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.model.attention import RecordingSelfAttention
from bertsmith.model.encoder import pack_padded
from bertsmith.tokenization import Tokenizer


def test_a_masked_language_model_with_a_pooler_opens_with_the_pooler_left_over(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = random_config("bert", 3).model_copy(update={"heads": HeadsConfig(pooler=True)})
    ours = new_model(config, seed=3).eval()
    enlarge(ours, 3)
    write_model(tmp_path, ours, tiny_tokenizer)
    theirs, loading = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert set(loading["unexpected_keys"]) == {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    inputs = random_inputs(config.encoder, 3)
    with torch.no_grad():
        scores = theirs(**inputs.named).logits[inputs.real]
        encoder = AutoModel.from_pretrained(tmp_path)
        pooled = encoder.pooler(encoder(**inputs.named).last_hidden_state)
    outputs = our_outputs(ours, inputs)
    torch.testing.assert_close(outputs["vocabulary"], scores, atol=1e-5, rtol=0)
    from_the_right = inputs.real[:, 0]
    torch.testing.assert_close(outputs["pooled"][from_the_right], pooled[from_the_right], atol=1e-5, rtol=0)


def test_the_reference_reads_the_written_tokenizer_and_its_length(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    config = random_config("bert", 5)
    assert tiny_tokenizer.vocab_size <= SMALLEST_VOCABULARY
    write_model(tmp_path, new_model(config, seed=5), tiny_tokenizer)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == config.encoder.max_position_embeddings
    ours = tiny_tokenizer.encode("abab", "ba ab")
    encoded = theirs("abab", "ba ab")
    assert encoded["input_ids"] == ours.token_ids.tolist()
    assert encoded["token_type_ids"] == ours.segment_ids.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(6))
def test_recorded_attention_is_that_of_the_reference_and_changes_no_output(
    kind: str, number: int, tmp_path: Path
) -> None:
    config = random_config(kind, number)
    theirs = reference_model(config, number, attn_implementation="eager")
    theirs.save_pretrained(tmp_path)
    recording = read_model(tmp_path, attention="recording").model.double().eval()
    fused = read_model(tmp_path).model.double().eval()
    inputs = random_inputs(config.encoder, number)
    if kind == "modern":
        # The reference's weights are not numbers where padding has nothing real in its window, and from there on.
        first = inputs.real[0]
        inputs = Inputs(*(value[:1, first] for value in (inputs.token_ids, inputs.real, inputs.segment_ids)))
    ours, expected = our_outputs(recording, inputs), our_outputs(fused, inputs)
    for name in expected:
        torch.testing.assert_close(ours[name], expected[name], atol=1e-10, rtol=0)
    with torch.no_grad():
        attentions = theirs.double()(**named_for(theirs, inputs), output_attentions=True).attentions
    assert len(attentions) == config.encoder.num_hidden_layers
    # A layer that serves several times has the weights of its last call.
    layers = recording.encoder.layers
    served = len(attentions) // len(layers)
    # The reference's softmax for ModernBERT is fp32 whatever the model has.
    tolerance = 1e-6 if kind == "modern" else 1e-10
    for layer, expected_weights in zip(layers, attentions[served - 1 :: served], strict=True):
        _assert_recorded(layer.attention, config, inputs.real, expected_weights, tolerance)


def _assert_recorded(
    attention: RecordingSelfAttention,
    config: ModelConfig,
    real: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float,
) -> None:
    """Compare the weights of every sequence. Groups hold sequences in an order of their own, so each finds its twin."""
    seen = [weights for block in attention.recorded for weights in block]
    assert len(seen) == len(real)
    for weights in seen:
        assert weights.shape[0] == config.encoder.num_attention_heads
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)), atol=1e-12, rtol=0)
    for row, mask in zip(expected, real, strict=True):
        length = int(mask.sum())
        wanted = row[:, mask][:, :, mask]
        twins = [
            weights
            for weights in seen
            if weights.shape[-1] >= length
            and torch.allclose(weights[:, :length, :length], wanted, atol=tolerance, rtol=0)
            and not weights[:, :length, length:].any()
        ]
        assert twins, f"no recorded sequence of {length} tokens has the weights of the reference"


def test_recorded_attention_is_that_of_the_last_call_only() -> None:
    config = random_config("bert", 3)
    model = new_model(config, seed=0, attention="recording")
    for number in (3, 4):
        inputs = random_inputs(config.encoder.model_copy(update={"max_position_embeddings": 6 - number}), number)
        model.encoder.packed(pack_padded(inputs.token_ids, inputs.real, inputs.segment_ids))
        recorded = model.encoder.layers[0].attention.recorded
        assert sum(len(block) for block in recorded) == len(inputs.real)
        assert not recorded[0].requires_grad


def test_two_columns_in_the_wrong_order_would_be_seen(tmp_path: Path) -> None:
    config = random_config("bert", 5)
    theirs = reference_model(config, 5)
    theirs.save_pretrained(tmp_path)
    ours = read_model(tmp_path).model
    with torch.no_grad():
        weight = ours.encoder.layers[0].attention.query_key_value.weight
        size = config.encoder.hidden_size
        weight[: 2 * size] = torch.cat([weight[size : 2 * size], weight[:size]])
    with pytest.raises(AssertionError, match="differs by"):
        assert_parity(ours, theirs, random_inputs(config.encoder, 5), single=1e-5, double=1e-10)


def test_the_encoder_under_heads_opens_as_the_plain_class(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    config = random_config("bert", 5)
    ours = new_model(config, seed=1).eval()
    enlarge(ours, 1)
    write_model(tmp_path, ours, tiny_tokenizer)
    theirs, loading = BertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    inputs = random_inputs(config.encoder, 5)
    with torch.no_grad():
        hidden = theirs(**inputs.named).last_hidden_state[inputs.real]
    torch.testing.assert_close(our_outputs(ours, inputs)["padded view"], hidden, atol=1e-5, rtol=0)
