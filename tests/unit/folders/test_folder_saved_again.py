"""Folders from here that another program opened, changed and saved: read as what they are now."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from made_folders import LABELS, assert_equal_models, weights_of, written

from bertsmith.folders.model_folder import read_config, read_model
from bertsmith.model import HeadsConfig
from bertsmith.tokenization import Tokenizer

CLASSIFIER = HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS)


def saved_again(folder: Path, again: Path, opened_as: Any, **more: Any) -> None:
    """What another program leaves when it opens a folder as a class and saves it."""
    opened_as.from_pretrained(folder, **more).save_pretrained(again)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "distilbert", "modern"])
def test_a_classifier_that_another_program_made_of_our_encoder_is_read_as_one(
    kind: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    ours = written(tmp_path / "ours", kind, HeadsConfig(), tokenizer)
    id2label = dict(enumerate(LABELS))
    opened = transformers.AutoModelForSequenceClassification
    saved_again(tmp_path / "ours", tmp_path / "again", opened, id2label=id2label)
    # Their program keeps what it doesn't know.
    assert read_config(tmp_path / "again")["bertsmith"]["heads"]["masked_language_model"] is True
    read = read_model(tmp_path / "again")
    heads = read.model.config.heads
    assert (heads.labels, heads.masked_language_model) == (LABELS, False)
    assert read.model.classifier is not None
    assert any("read as its architectures say" in note for note in read.notes)
    assert_equal_models(read.model.encoder, ours.encoder)


def test_one_label_a_token_is_not_taken_for_one_a_text(tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path / "ours", "bert", CLASSIFIER, tokenizer)
    saved_again(tmp_path / "ours", tmp_path / "again", transformers.AutoModelForTokenClassification)
    read = read_model(tmp_path / "again")
    assert read.model.classifier is None
    assert (read.model.config.heads.task, read.model.config.heads.labels) == ("tag", LABELS)


def test_an_encoder_saved_again_without_our_own_heads_is_read_as_an_encoder(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    ours = written(tmp_path / "ours", "bert", HeadsConfig(mlm_head="linear"), tokenizer)
    saved_again(tmp_path / "ours", tmp_path / "again", transformers.AutoModel)
    read = read_model(tmp_path / "again")
    assert read.model.masked_language_model is None
    assert any("read as its architectures say" in note for note in read.notes)
    assert_equal_models(read.model.encoder, ours.encoder)


def test_heads_that_were_left_beside_a_folder_saved_again_are_not_taken_for_its_own(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, "bert", HeadsConfig(mlm_head="linear", pooler=True, labels=LABELS), tokenizer)
    opened = transformers.AutoModelForSequenceClassification
    saved_again(tmp_path, tmp_path, opened, id2label=dict(enumerate(LABELS)))
    assert (tmp_path / "bertsmith_heads.safetensors").is_file()
    classifier = read_model(tmp_path).model.classifier
    assert classifier is not None
    assert torch.equal(classifier.output.weight, weights_of(tmp_path)["classifier.weight"])


@pytest.mark.parametrize(
    "earlier",
    [
        HeadsConfig(mlm_head="linear"),
        HeadsConfig(pooler=True, labels=("one", "other")),
        HeadsConfig(masked_language_model=False, pooler=True, labels=("one", "other"), classifier_input="mean"),
    ],
)
@pytest.mark.parametrize("heads", [HeadsConfig(), HeadsConfig(masked_language_model=False), CLASSIFIER])
def test_heads_of_an_earlier_model_change_nothing_in_a_later_one(
    heads: HeadsConfig, earlier: HeadsConfig, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path / "earlier", "bert", earlier, tokenizer)
    later = written(tmp_path / "later", "bert", heads, tokenizer)
    name = "bertsmith_heads.safetensors"
    (tmp_path / "earlier" / name).rename(tmp_path / "later" / name)
    read = read_model(tmp_path / "later")
    assert read.model.config == later.config
    assert_equal_models(read.model, later)
    (note,) = read.notes
    assert note.startswith(f"not used of {name}: ")
