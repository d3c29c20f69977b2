"""Random small BERTs give the same numbers here and in the reference implementation, whoever wrote the folder."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from random_models import (
    HEADS,
    REFERENCE,
    SMALLEST_VOCABULARY,
    Inputs,
    assert_parity,
    enlarge,
    our_outputs,
    random_config,
    random_inputs,
    reference_model,
    reference_outputs,
)
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForNextSentencePrediction,
    AutoModelForPreTraining,
    AutoTokenizer,
    BertModel,
)

from bertsmith.folders.config_json import architecture
from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.folders.weight_names import bert_names
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.model.attention import RecordingSelfAttention
from bertsmith.model.encoder import pack_padded
from bertsmith.tokenization import Tokenizer

NUM_CASES = 112
"""In each direction, so 224 models: 32 of each kind of heads."""
OPENERS = {
    "BertModel": AutoModel,
    "BertForMaskedLM": AutoModelForMaskedLM,
    "BertForNextSentencePrediction": AutoModelForNextSentencePrediction,
    "BertForPreTraining": AutoModelForPreTraining,
}


@pytest.mark.parametrize("number", range(NUM_CASES))
def test_a_folder_of_transformers_gives_the_same_outputs_here(number: int, tmp_path: Path) -> None:
    config = random_config(number)
    theirs = reference_model(config, number)
    theirs.save_pretrained(tmp_path)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config.model_copy(update={"heads": config.heads}) == config
    assert_parity(read.model, theirs, random_inputs(config.encoder, number), single=1e-5, double=1e-10)


@pytest.mark.parametrize("number", range(NUM_CASES, 2 * NUM_CASES))
def test_a_folder_written_here_gives_the_same_outputs_in_transformers(
    number: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = random_config(number)
    ours = new_model(config, seed=number)
    enlarge(ours, number)
    write_model(tmp_path, ours, tiny_tokenizer)
    kind = architecture(config.heads)
    theirs, loading = OPENERS[kind].from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs) is REFERENCE[kind]
    missing = set(loading["missing_keys"])
    if kind == "BertModel" and not config.heads.pooler:
        # The plain class always makes a pooler; a folder has none where none was trained.
        assert missing == {"pooler.dense.weight", "pooler.dense.bias"}
        theirs.pooler = None
    else:
        assert missing == set()
    assert not loading["unexpected_keys"]
    assert not loading["mismatched_keys"]
    assert_parity(ours, theirs, random_inputs(config.encoder, number), single=1e-5, double=1e-10)


@pytest.mark.parametrize("number", range(21))
def test_gradients_are_those_of_the_reference(number: int, tmp_path: Path) -> None:
    config = random_config(number)
    theirs = reference_model(config, number).double()
    theirs.save_pretrained(tmp_path)
    ours = read_model(tmp_path).model.double().eval()
    drawn = random_inputs(config.encoder, number)
    # The reference keeps the embedding of its padding token, number 0, out of every gradient.
    inputs = Inputs(drawn.token_ids.clamp(min=1), drawn.real, drawn.segment_ids)
    _scalar(our_outputs(ours, inputs)).backward()
    _scalar(reference_outputs(theirs, inputs)).backward()
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    names = bert_names(config, "" if architecture(config.heads) == "BertModel" else "bert.")
    if not config.heads.tie_embeddings:
        names["masked_language_model.bias"] = ("cls.predictions.decoder.bias",)
    compared = 0
    for ours_name, parameter in ours.named_parameters():
        parts = [expected[name] for name in names[ours_name]]
        if parameter.grad is None:
            assert parts == [None] * len(parts)
            continue
        torch.testing.assert_close(parameter.grad, torch.cat(parts), atol=1e-9, rtol=1e-9, msg=ours_name)
        compared += 1
    assert compared >= len(list(ours.encoder.parameters()))


def _scalar(outputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """A loss in which every output has its own weight."""
    weighted = [torch.linspace(-1, 2, value.numel(), dtype=value.dtype) * value.flatten() for value in outputs.values()]
    return torch.cat(weighted).sum()


def test_the_random_cases_reach_every_kind() -> None:
    cases = [random_config(number) for number in range(2 * NUM_CASES)]
    assert Counter(case.heads for case in cases) == dict.fromkeys(HEADS, 2 * NUM_CASES // len(HEADS))
    for half in (cases[:NUM_CASES], cases[NUM_CASES:]):
        assert {case.encoder.num_hidden_layers for case in half} == {1, 2, 3, 4}
        assert {case.encoder.num_attention_heads for case in half} == {1, 2, 3, 4}
        assert {case.encoder.type_vocab_size for case in half} == {1, 2, 3}
        assert {case.encoder.activation for case in half} == {"gelu", "gelu_tanh", "relu"}
        assert min(case.encoder.max_position_embeddings for case in half) == 1
    activations = {reference_model(random_config(n), n).config.hidden_act for n in range(NUM_CASES)}
    assert activations == {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu"}
    batches = [random_inputs(case.encoder, number) for number, case in enumerate(cases)]
    assert sum(not batch.real[:, 0].all() for batch in batches) > NUM_CASES // 2, "left padding"
    assert sum(not batch.real[:, -1].all() for batch in batches) > NUM_CASES // 2, "right padding"
    assert sum((batch.real.sum(1) == 1).any().item() for batch in batches) > NUM_CASES // 4, "one token alone"
    assert sum(batch.segment_ids.unique().numel() > 1 for batch in batches) > NUM_CASES // 2, "pairs"


def test_a_masked_language_model_with_a_pooler_opens_with_the_pooler_left_over(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = random_config(3).model_copy(update={"heads": HeadsConfig(pooler=True)})
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
    config = random_config(5)
    assert tiny_tokenizer.vocab_size <= SMALLEST_VOCABULARY
    write_model(tmp_path, new_model(config, seed=5), tiny_tokenizer)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == config.encoder.max_position_embeddings
    ours = tiny_tokenizer.encode("abab", "ba ab")
    encoded = theirs("abab", "ba ab")
    assert encoded["input_ids"] == ours.token_ids.tolist()
    assert encoded["token_type_ids"] == ours.segment_ids.tolist()


@pytest.mark.parametrize("number", range(12))
def test_recorded_attention_is_that_of_the_reference_and_changes_no_output(number: int, tmp_path: Path) -> None:
    config = random_config(number)
    theirs = reference_model(config, number, attn_implementation="eager")
    theirs.save_pretrained(tmp_path)
    recording = read_model(tmp_path, attention="recording").model.double().eval()
    fused = read_model(tmp_path).model.double().eval()
    inputs = random_inputs(config.encoder, number)
    ours, expected = our_outputs(recording, inputs), our_outputs(fused, inputs)
    for name in expected:
        torch.testing.assert_close(ours[name], expected[name], atol=1e-10, rtol=0)
    with torch.no_grad():
        attentions = theirs.double()(**inputs.named, output_attentions=True).attentions
    assert len(attentions) == config.encoder.num_hidden_layers
    for layer, expected_weights in zip(recording.encoder.layers, attentions, strict=True):
        _assert_recorded(layer.attention, config, inputs.real, expected_weights)


def _assert_recorded(
    attention: RecordingSelfAttention, config: ModelConfig, real: torch.Tensor, expected: torch.Tensor
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
            and torch.allclose(weights[:, :length, :length], wanted, atol=1e-10, rtol=0)
            and not weights[:, :length, length:].any()
        ]
        assert twins, f"no recorded sequence of {length} tokens has the weights of the reference"


def test_recorded_attention_is_that_of_the_last_call_only() -> None:
    config = random_config(3)
    model = new_model(config, seed=0, attention="recording")
    for number in (3, 4):
        inputs = random_inputs(config.encoder.model_copy(update={"max_position_embeddings": 6 - number}), number)
        model.encoder.packed(pack_padded(inputs.token_ids, inputs.real, inputs.segment_ids))
        recorded = model.encoder.layers[0].attention.recorded
        assert sum(len(block) for block in recorded) == len(inputs.real)
        assert not recorded[0].requires_grad


def test_two_columns_in_the_wrong_order_would_be_seen(tmp_path: Path) -> None:
    config = random_config(5)
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
    config = random_config(5)
    ours = new_model(config, seed=1).eval()
    enlarge(ours, 1)
    write_model(tmp_path, ours, tiny_tokenizer)
    theirs, loading = BertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    inputs = random_inputs(config.encoder, 5)
    with torch.no_grad():
        hidden = theirs(**inputs.named).last_hidden_state[inputs.real]
    torch.testing.assert_close(our_outputs(ours, inputs)["padded view"], hidden, atol=1e-5, rtol=0)
