"""Random small models of every family give the same numbers here and in the reference, whoever wrote the folder."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from random_models import HEADS, KINDS, enlarge, random_config, random_inputs, without_padding_token
from reference_models import assert_parity, has_prefix, opener, our_outputs, reference_model, reference_outputs

from bertsmith.folders.config_json import architecture
from bertsmith.folders.formats import named_format
from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.model import new_model
from bertsmith.tokenization import Tokenizer

NUM_CASES = {"bert": 56, "causal": 40, "roberta": 40, "albert": 42, "distilbert": 40, "modern": 50}
"""In each direction: of each kind of heads as many."""
READ = [(kind, number) for kind in KINDS for number in range(NUM_CASES[kind])]
WRITTEN = [(kind, number + NUM_CASES[kind]) for kind, number in READ]
GRADIENTS = [(kind, number) for kind in KINDS for number in range(2 * len(HEADS[kind]))]


@pytest.mark.parametrize(("kind", "number"), READ)
def test_a_folder_of_transformers_gives_the_same_outputs_here(kind: str, number: int, tmp_path: Path) -> None:
    config = random_config(kind, number)
    theirs = reference_model(config, number)
    theirs.save_pretrained(tmp_path)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == config
    assert_parity(read.model, theirs, random_inputs(config.encoder, number), single=1e-5, double=1e-10)


@pytest.mark.parametrize(("kind", "number"), WRITTEN)
def test_a_folder_written_here_gives_the_same_outputs_in_transformers(
    kind: str, number: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = random_config(kind, number)
    ours = new_model(config, seed=number)
    enlarge(ours, number)
    write_model(tmp_path, ours, tiny_tokenizer)
    name = architecture(config)
    assert name is not None
    theirs, loading = opener(name).from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs).__name__ == name
    missing = set(loading["missing_keys"])
    if missing:
        # The plain class of some families always makes a pooler; a folder has none where none was trained.
        assert name in ("BertModel", "RobertaModel", "AlbertModel")
        assert not config.heads.pooler
        assert {key.split(".")[0] for key in missing} == {"pooler"}
        theirs.pooler = None
    assert not loading["unexpected_keys"]
    assert not loading["mismatched_keys"]
    assert read_model(tmp_path).model.config == config
    assert_parity(ours, theirs, random_inputs(config.encoder, number), single=1e-5, double=1e-10)


@pytest.mark.parametrize(("kind", "number"), GRADIENTS)
def test_gradients_are_those_of_the_reference(kind: str, number: int, tmp_path: Path) -> None:
    config = random_config(kind, number)
    theirs = reference_model(config, number).double()
    theirs.save_pretrained(tmp_path)
    ours = read_model(tmp_path).model.double().eval()
    inputs = without_padding_token(config.encoder, random_inputs(config.encoder, number))
    _scalar(our_outputs(ours, inputs)).backward()
    _scalar(reference_outputs(theirs, inputs)).backward()
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    own = named_format(config)
    names = own.names(config, own.prefix if has_prefix(config) else "")
    if own.projection_bias is not None and not config.heads.tie_embeddings:
        names["masked_language_model.bias"] = (own.projection_bias,)
    compared = 0
    for ours_name, parameter in ours.named_parameters():
        parts = [expected[name] for name in names[ours_name]]
        assert parameter.grad is not None, ours_name
        torch.testing.assert_close(parameter.grad, torch.cat(parts), atol=1e-9, rtol=1e-9, msg=ours_name)
        compared += len(parts)
    unread = {name for name, gradient in expected.items() if gradient is None}
    assert compared == len(expected) - len(unread)
    # Untied, the reference has a second bias that nothing reads.
    assert unread <= {own.bias}


def _scalar(outputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """A loss in which every output has its own weight."""
    weighted = [torch.linspace(-1, 2, value.numel(), dtype=value.dtype) * value.flatten() for value in outputs.values()]
    return torch.cat(weighted).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_the_random_cases_reach_every_kind(kind: str) -> None:
    count = NUM_CASES[kind]
    cases = [random_config(kind, number) for number in range(2 * count)]
    assert Counter(case.heads for case in cases) == dict.fromkeys(HEADS[kind], 2 * count // len(HEADS[kind]))
    for half in (cases[:count], cases[count:]):
        encoders = [case.encoder for case in half]
        assert {encoder.num_hidden_layers for encoder in encoders} == {1, 2, 3, 4}
        assert {encoder.num_attention_heads for encoder in encoders} == {1, 2, 3, 4}
        assert {encoder.activation for encoder in encoders} == {"gelu", "gelu_tanh", "relu"}
        assert min(encoder.num_positions for encoder in encoders) <= 3
        if kind in ("bert", "causal", "roberta", "albert"):
            assert {encoder.type_vocab_size for encoder in encoders} == {1, 2, 3}
        if kind == "roberta":
            assert {encoder.pad_token_id for encoder in encoders} == {0, 1, 2, 3}
        if kind == "albert":
            assert {encoder.num_hidden_groups for encoder in encoders} == {1, 2, 3, 4}
            assert any(encoder.num_hidden_groups == 2 < encoder.num_hidden_layers for encoder in encoders)
            assert {encoder.embedding_size == encoder.hidden_size for encoder in encoders} == {True, False}
        if kind == "modern":
            rotaries = [encoder.rotary for encoder in encoders if encoder.rotary]
            assert {rotary.global_every for rotary in rotaries} == {1, 2, 3}
            assert {rotary.window // 2 < e.num_positions for rotary, e in zip(rotaries, encoders, strict=True)} == {
                True,
                False,
            }
    batches = [random_inputs(case.encoder, number) for number, case in enumerate(cases)]
    assert sum(not batch.real[:, 0].all() for batch in batches) > count // 2, "left padding"
    assert sum(not batch.real[:, -1].all() for batch in batches) > count // 2, "right padding"
    assert sum((batch.real.sum(1) == 1).any().item() for batch in batches) > count // 4, "one token alone"
    if cases[0].encoder.type_vocab_size:
        assert sum(batch.segment_ids.unique().numel() > 1 for batch in batches) > count // 2, "pairs"
