"""The exported folder: recognised, read again, and refused where weights are needed."""

import json
from pathlib import Path

import pytest
from made_folders import KINDS, small_config, task_heads, written

from bertsmith.folders.exported import GRAPH, REPORT, is_exported, read_exported, refuse_exported, write_beside_graph
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.model import Dropout, HeadsConfig
from bertsmith.tokenization import Tokenizer

HEADS = HeadsConfig(
    masked_language_model=False, pooler=True, task="multilabel", labels=("dry", "wet"), thresholds=(0.3, 0.6)
)


@pytest.fixture
def exported(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    write_beside_graph(tmp_path, small_config(HEADS), tokenizer, {"precision": "int8", "job": "multilabel"})
    (tmp_path / GRAPH).write_bytes(b"a graph")
    return tmp_path


def test_a_folder_says_what_it_holds(exported: Path) -> None:
    assert is_exported(exported)
    found = read_exported(exported)
    assert found.config == small_config(HEADS)
    assert (found.precision, found.report["job"], found.graph) == ("int8", "multilabel", exported / GRAPH)
    assert Tokenizer.from_folder(exported).vocab_size == 36


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "causal"])
def test_an_export_is_of_the_weights_and_settings_it_was_made_of(
    kind: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, task_heads(kind, "multilabel", thresholds=(0.25, 0.5, 0.75)), tokenizer)
    sums = {"model.safetensors": "a sum"}
    (tmp_path / "onnx").mkdir()
    report = {"precision": "fp32", "weights_sha256": sums}
    write_beside_graph(tmp_path / "onnx", model.config, tokenizer, report)
    export, config = read_exported(tmp_path / "onnx"), read_model(tmp_path, weights=False).model.config
    assert export.is_of(config, sums)
    assert not export.is_of(config, {"model.safetensors": "another"})
    assert not export.is_of(config, sums | {"bertsmith_heads.safetensors": "a sum"})
    for part, change, same in (
        ("heads", {"thresholds": (0.25, 0.5, 0.5)}, False),
        ("heads", {"labels": ("no", "yes", "perhaps")}, False),
        ("encoder", {"activation": "relu"}, False),
        ("heads", {"classifier_dropout": 0.5, "pooler": True}, True),
        ("encoder", {"dropout": Dropout.everywhere(0.3), "initializer_range": 0.5}, True),
    ):
        changed = config.model_copy(update={part: getattr(config, part).model_copy(update=change)})
        assert export.is_of(changed, sums) == same, change


def test_a_graph_beside_a_model_makes_no_exported_folder(folder: Path) -> None:
    (folder / GRAPH).write_bytes(b"a graph")
    assert not is_exported(folder)
    refuse_exported(folder)
    read_model(folder)


def test_an_exported_folder_is_no_model_to_train_or_to_look_into(exported: Path) -> None:
    for weights in (True, False):
        with pytest.raises(InputError, match=r"model folder with its weights.*whose graph can only be run"):
            read_model(exported, weights=weights)


@pytest.mark.parametrize("name", ["config.json", REPORT])
@pytest.mark.parametrize("content", ["[]", "{", "{}"])
def test_damaged_files_are_refused(exported: Path, name: str, content: str) -> None:
    (exported / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"bertsmith export DIR"):
        read_exported(exported)


def test_a_missing_config_and_an_unknown_precision_are_refused(exported: Path) -> None:
    (exported / REPORT).write_text(json.dumps({"precision": "int4"}), encoding="utf-8")
    with pytest.raises(InputError, match=r"says in config\.json and export\.json what it holds"):
        read_exported(exported)
    (exported / "config.json").unlink()
    with pytest.raises(InputError, match=r"holds config\.json"):
        read_exported(exported)
