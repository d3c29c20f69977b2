"""The exported folder: a graph that onnxruntime runs, and beside it what a predictor needs to know of the model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bertsmith.folders.config_json import to_json, written_config
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_json
from bertsmith.model.config import ModelConfig
from bertsmith.tokenization.tokenizer import Tokenizer

GRAPH = "model.onnx"
REPORT = "export.json"
"""What was exported, and how near it is to the model it was made of. A folder is an exported one if it holds both."""
OWN_EXPORT = "onnx"
"""The exported folder that may lie in a model's own, where other programs look for a graph too."""
ExportedPrecision = Literal["fp32", "int8"]
_CONFIG = "config.json"
_AGAIN = "Export the model anew: bertsmith export DIR --format onnx --out OUT."


@dataclass(frozen=True)
class Exported:
    """What stands in an exported folder, its graph aside."""

    folder: Path
    config: ModelConfig
    """Of the model, with the heads that the graph has."""
    precision: ExportedPrecision
    report: dict[str, Any]
    """`export.json`."""

    @property
    def graph(self) -> Path:
        """The graph's file."""
        return self.folder / GRAPH

    def is_of(self, config: ModelConfig, weights: dict[str, str]) -> bool:
        """Whether it was exported from a model as it is now.

        Args:
            config: the model's.
            weights: SHA-256 of its files by their names, as `weight_sums` gives them.
        """
        return self.report.get("weights_sha256") == weights and _computed(self.config) == _computed(config)

    @property
    def largest_difference(self) -> float:
        """Of any number that the graph in fp32 gives and the model gives, in any shape of batch."""
        return max(shape["largest_difference"] for shape in self.report["fp32"]["shapes"])

    @property
    def agreement(self) -> dict[str, Any] | None:
        """Of an int8 model with its model; None in fp32."""
        int8 = self.report.get("int8")
        return None if int8 is None else int8["agreement"]


def is_exported(folder: Path) -> bool:
    """Whether a folder was written by an export."""
    return (folder / GRAPH).is_file() and (folder / REPORT).is_file()


def refuse_exported(folder: Path) -> None:
    """Raise an `InputError` for an exported folder where a model's own weights are needed."""
    if is_exported(folder):
        raise InputError(
            "This needs a model folder with its weights",
            f"{folder}, an exported folder, whose graph can only be run",
            "Give the model folder that it was exported from.",
        )


def read_exported(folder: Path) -> Exported:
    """What an exported folder says of its model.

    Raises:
        InputError: if a file is damaged.
    """
    values, report = (_object(folder / name) for name in (_CONFIG, REPORT))
    config = written_config(values, str(folder / _CONFIG))
    precision = report.get("precision")
    if config is None or precision not in ("fp32", "int8"):
        raise InputError(
            f"An exported folder says in {_CONFIG} and {REPORT} what it holds", f"{folder}, which does not", _AGAIN
        )
    return Exported(folder, config, precision, report)


def write_beside_graph(folder: Path, config: ModelConfig, tokenizer: Tokenizer, report: dict[str, Any]) -> None:
    """Write all of an exported folder but its graph.

    Args:
        folder: an existing folder.
        config: of the model, with the heads that the graph has.
        tokenizer: the model's.
        report: what `export.json` says.
    """
    # What a model sees of a longer text is part of what it was trained for.
    tokenizer.seeing(tokenizer.longest_sequence(config.encoder.num_positions)).save(folder)
    write_json(folder / _CONFIG, to_json(config))
    write_json(folder / REPORT, report)


def _computed(config: ModelConfig) -> dict[str, Any]:
    """All of a config that decides what a predictor says: nothing of training, nor of heads beside that of its job."""
    beside = {"pooler", "next_sentence", "sentence_order", "masked_language_model"}
    return {
        "encoder": config.encoder.model_dump(exclude={"dropout", "initializer_range"}),
        "heads": config.heads.model_dump(exclude={"classifier_dropout", *beside}),
    }


def _object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"An exported folder holds {path.name}", f"{path.parent} without it", _AGAIN) from None
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InputError(f"{path.name} must be a JSON object", path, _AGAIN)
    return values
