"""Original TensorFlow checkpoints become model folders whose outputs are those of the reference classes."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_checkpoints import (
    ALBERT_SIZES,
    SIZES,
    SLOTS,
    albert_pairs,
    bert_pairs,
    random_reference,
    variables_of,
    write_checkpoint,
)
from safetensors.torch import load_file
from transformers import AlbertForPreTraining, BertForPreTraining

from bertsmith.exchange import tensorflow_checkpoint
from bertsmith.exchange.source import TensorFlowFolder, find_source
from bertsmith.exchange.tensorflow_checkpoint import write_as_layout
from bertsmith.exchange.tensorflow_names import is_slot, layout_name
from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.import_model import import_model_run

Variables = dict[str, np.ndarray]
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="TensorFlow is not built for this Python")


@pytest.fixture(scope="module")
def bert_variables() -> Variables:
    return variables_of(random_reference("bert"), bert_pairs())


@pytest.mark.parametrize("exported", ["", "module/"])
def test_a_bert_checkpoint_is_the_reference_model(tmp_path: Path, bert_variables: Variables, exported: str) -> None:
    variables = {f"{exported}{name}": value for name, value in bert_variables.items()}
    checkpoint = write_checkpoint(tmp_path / "uncased", variables | SLOTS)
    before = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    found = import_model_run(checkpoint, tmp_path / "out")
    reference = random_reference("bert").state_dict()
    weights = load_file(found.folder / "model.safetensors")
    assert all(torch.equal(value, reference[name]) for name, value in weights.items())
    opened = BertForPreTraining.from_pretrained(found.folder).eval()
    ids = torch.tensor([[2, 5, 6, 7, 3, 8, 9, 3]])
    expected = random_reference("bert")(input_ids=ids)
    actual = opened(input_ids=ids)
    torch.testing.assert_close(actual.prediction_logits, expected.prediction_logits, rtol=0, atol=0)
    torch.testing.assert_close(actual.seq_relationship_logits, expected.seq_relationship_logits, rtol=0, atol=0)
    assert found.source == "uncased"
    assert found.notes == (
        f"{len(bert_variables)} TensorFlow variables were renamed, their kernels transposed",
        "2 variables of the optimizer were left out",
        "gelu is computed by erf, as in BERT's copies in the Hugging Face layout; Google's later code computes it by "
        "tanh, which differs by less than 0.001",
        "the vocabulary has no capitals, so the tokenizer writes all small",
    )
    assert {path.name: path.read_bytes() for path in checkpoint.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "uncased"]


def test_an_albert_checkpoint_is_the_reference_model(tmp_path: Path) -> None:
    reference = random_reference("albert")
    variables = variables_of(reference, albert_pairs())
    checkpoint = write_checkpoint(
        tmp_path / "albert",
        variables | SLOTS,
        config=ALBERT_SIZES,
        config_name="albert_config.json",
        prefix="model.ckpt-best",
    )
    found = import_model_run(checkpoint, tmp_path / "out")
    assert found.family == "albert"
    assert "gelu is computed by tanh, as in ALBERT's code: the config says gelu_new" in found.notes
    opened, report = AlbertForPreTraining.from_pretrained(found.folder, output_loading_info=True)
    state = reference.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in opened.state_dict().items())
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ids = torch.tensor([[2, 5, 6, 7, 3, 8, 9, 3]])
    expected, actual = reference(input_ids=ids), opened.eval()(input_ids=ids)
    # The tanh of gelu is written in two ways, which differ in the last digit.
    torch.testing.assert_close(actual.prediction_logits, expected.prediction_logits, rtol=0, atol=2e-6)
    torch.testing.assert_close(actual.sop_logits, expected.sop_logits, rtol=0, atol=2e-6)


def test_the_two_ways_to_compute_gelu_differ_by_as_little_as_is_said() -> None:
    inputs = torch.linspace(-10, 10, 100_001, dtype=torch.float64)
    gelu = torch.nn.functional.gelu
    difference = (gelu(inputs) - gelu(inputs, approximate="tanh")).abs().max().item()
    assert 1e-4 < difference < 1e-3


@pytest.mark.parametrize("capitals", [True, False])
def test_the_vocabulary_tells_whether_capitals_count(tmp_path: Path, bert_variables: Variables, capitals: bool) -> None:
    checkpoint = write_checkpoint(tmp_path / "original", bert_variables, capitals=capitals)
    notes = import_model_run(checkpoint, tmp_path / "out").notes
    tokenizer = read_tokenizer(tmp_path / "out", vocab_size=30)
    unknown = 1
    assert (unknown in tokenizer.encode("A").token_ids) is capitals
    assert notes[-1] == (
        "the vocabulary has capitals, so the tokenizer keeps them"
        if capitals
        else "the vocabulary has no capitals, so the tokenizer writes all small"
    )


def test_a_sentencepiece_model_gets_the_name_under_which_it_is_looked_for(
    tmp_path: Path, bert_variables: Variables
) -> None:
    checkpoint = write_checkpoint(tmp_path / "original", bert_variables)
    (checkpoint / "vocab.txt").unlink()
    (checkpoint / "30k-clean.model").write_bytes(b"pieces")
    source = find_source(str(checkpoint))
    assert isinstance(source, TensorFlowFolder)
    (tmp_path / "layout").mkdir()
    write_as_layout(source, tmp_path / "layout")
    assert (tmp_path / "layout" / "spiece.model").read_bytes() == b"pieces"


def test_variables_that_are_not_known_are_named(tmp_path: Path, bert_variables: Variables) -> None:
    variables = bert_variables | {"output_weights": np.ones((3, 12), np.float32)}
    notes = import_model_run(write_checkpoint(tmp_path / "tuned", variables), tmp_path / "out").notes
    assert "not used: output_weights" in notes


def test_a_checkpoint_without_pooler_is_told_loudly(tmp_path: Path, bert_variables: Variables) -> None:
    variables = {n: v for n, v in bert_variables.items() if "pooler" not in n and "seq_relationship" not in n}
    notes = import_model_run(write_checkpoint(tmp_path / "original", variables), tmp_path / "out").notes
    assert notes[-1].startswith("ATTENTION, NO POOLER")
    assert read_model(tmp_path / "out").model.pooler is None


@pytest.mark.parametrize(
    ("variable", "slot"),
    [
        ("bert/pooler/dense/kernel/adam_v", True),
        ("bert/pooler/dense/kernel/lamb_m", True),
        ("bert/embeddings/word_embeddings/Adam_1", True),
        ("global_step", True),
        ("beta1_power", True),
        ("bert/embeddings/LayerNorm/beta", False),
        ("bert/pooler/dense/kernel", False),
    ],
)
def test_what_belongs_to_the_optimizer_is_known(variable: str, slot: bool) -> None:
    assert is_slot(variable) is slot


def test_names_outside_the_model_have_none_in_the_layout() -> None:
    for name in ("output_weights", "electra/embeddings/word_embeddings", "generator_predictions/dense/kernel"):
        assert layout_name(name, albert=False) is None


def _cut(folder: Path) -> None:
    path = next(folder.glob("*.data-*"))
    path.write_bytes(path.read_bytes()[:400])


def _damage_index(folder: Path) -> None:
    (folder / "bert_model.ckpt.index").write_bytes(b"no table")


def _damage_config(folder: Path) -> None:
    (folder / "bert_config.json").write_text("[1]", encoding="utf-8")


def _lose_data(folder: Path) -> None:
    next(folder.glob("*.data-*")).unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, "must be whole and of one save"),
        (_damage_index, "must be whole and of one save"),
        (_lose_data, "must be whole and of one save"),
        (_damage_config, "bert_config.json must be a JSON object"),
    ],
)
def test_a_damaged_checkpoint_is_refused_and_leaves_nothing(
    tmp_path: Path, bert_variables: Variables, damage: Callable[[Path], None], said: str
) -> None:
    checkpoint = write_checkpoint(tmp_path / "original", bert_variables)
    damage(checkpoint)
    with pytest.raises(InputError, match=said):
        import_model_run(checkpoint, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["original"]


def refusal(checkpoint: Path, out: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_model_run(checkpoint, out)
    assert not out.exists()
    return str(caught.value)


def test_a_checkpoint_whose_encoder_is_mostly_missing_is_refused_with_the_list(
    tmp_path: Path, bert_variables: Variables
) -> None:
    kept = {name: value for name, value in bert_variables.items() if "/layer_" not in name}
    message = refusal(write_checkpoint(tmp_path / "original", kept), tmp_path / "out")
    assert "32 missing" in message
    assert "bert.encoder.layer.0.attention.self.query.weight" in message


def test_checkpoints_of_other_kinds_are_refused(tmp_path: Path) -> None:
    one = np.ones(2, np.float32)
    electra = write_checkpoint(tmp_path / "electra", {"electra/embeddings/word_embeddings": one})
    assert "with electra/embeddings/word_embeddings" in refusal(electra, tmp_path / "out")
    objects = write_checkpoint(tmp_path / "objects", {"model/kernel/.ATTRIBUTES/VARIABLE_VALUE": one})
    assert "saved by TensorFlow 2" in refusal(objects, tmp_path / "out")


def test_without_tensorflow_the_command_that_installs_it_is_told(
    tmp_path: Path, bert_variables: Variables, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = write_checkpoint(tmp_path / "original", bert_variables)

    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(
        tensorflow_checkpoint, "importlib", type("Without", (), {"import_module": staticmethod(absent)})
    )
    assert 'pip install "bertsmith[tensorflow]"' in refusal(checkpoint, tmp_path / "out")
    assert importlib.import_module("tensorflow")


def test_leftovers_of_a_killed_import_go_with_the_next(tmp_path: Path, bert_variables: Variables) -> None:
    checkpoint = write_checkpoint(
        tmp_path / "original", bert_variables | {"bert/unused": np.array(SIZES["vocab_size"])}
    )
    (tmp_path / ".partial-ab12cd_4-out").mkdir()
    import_model_run(checkpoint, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["original", "out"]
