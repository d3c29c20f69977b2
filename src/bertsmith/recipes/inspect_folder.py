"""What is in a folder, and whether it is as it was written."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.verify import verify_corpus
from bertsmith.folders.exported import OWN_EXPORT, is_exported, read_exported
from bertsmith.folders.formats import published_class
from bertsmith.folders.model_folder import read_config, read_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, folder_faults, read_manifest
from bertsmith.model.build import num_parameters
from bertsmith.model.config import ModelConfig
from bertsmith.recipes.run_folder import record_of
from bertsmith.recipes.text_sources import is_corpus
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.log import read_log


@dataclass(frozen=True)
class Verification:
    """The result of `verify`."""

    folder: Path
    kind: str
    faults: tuple[str, ...]
    """One line for each fault; empty where everything is as it was written."""


def verify_folder(folder: str | Path) -> Verification:
    """Compare a corpus, a checkpoint, a model or a tokenizer with its manifest; of a run, all that it holds, and of a
    model the export in its folder too.

    Raises:
        InputError: if the folder holds nothing that can be verified.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError("verify takes a folder", f"no folder {path}", "Check the path.")
    if (path / "run.toml").is_file():
        kind = "run"
        parts = sorted(found.parent for found in path.rglob(MANIFEST) if not found.parent.name.startswith("."))
    elif is_corpus(str(path)):
        kind, parts = "corpus", [path]
    else:
        kind, own_export = str(read_manifest(path).get("kind", "folder")), path / OWN_EXPORT
        parts = [path, *([own_export] if (own_export / MANIFEST).is_file() else [])]
    faults = [
        fault if part == path else f"{part.relative_to(path).as_posix()}/{fault}"
        for part in parts
        for fault in _faults(part)
    ]
    return Verification(path, kind, tuple(faults))


def _faults(sealed: Path) -> list[str]:
    return verify_corpus(sealed) if is_corpus(str(sealed)) else folder_faults(sealed)


def info(folder: str | Path) -> dict[str, Any]:
    """What is in a folder: a run, a corpus, a tokenizer, a checkpoint, a model or an exported model.

    Raises:
        InputError: if it is none of them.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError("info takes a folder", f"no folder {path}", "Check the path.")
    if (path / "run.toml").is_file():
        return _run_info(path)
    if is_corpus(str(path)):
        return _corpus_info(path)
    if is_exported(path):
        return _exported_info(path)
    if (path / "config.json").is_file():
        return _model_info(path)
    if (path / "tokenizer.json").is_file() or (path / "vocab.txt").is_file():
        return _tokenizer_info(path)
    raise InputError(
        "info takes the folder of a run, a corpus, a tokenizer, a checkpoint or a model",
        f"{path}, which is none",
        "Check the path.",
    )


def _model_info(path: Path) -> dict[str, Any]:
    values = read_config(path)
    read = read_model(path, weights=False)
    encoder, heads = read.model.config.encoder, read.model.config.heads
    parameters = num_parameters(read.model)
    own = [
        name
        for name, there in (
            ("masked language model", heads.masked_language_model),
            ("next sentence", heads.next_sentence),
            ("sentence order", heads.sentence_order),
            ("classifier", heads.task_head == "classifier"),
            ("token classifier", heads.task_head == "token_classifier"),
            ("answer spans", heads.task_head == "spans"),
            ("pooler", heads.pooler),
        )
        if there
    ]
    return {
        "kind": "checkpoint" if (path / "training_state.json").is_file() else "model",
        "family": encoder.family,
        "architectures": values.get("architectures", []),
        "parameters": parameters,
        "layers": encoder.num_hidden_layers,
        "hidden_size": encoder.hidden_size,
        "attention_heads": encoder.num_attention_heads,
        "vocab_size": encoder.vocab_size,
        "max_length": encoder.num_positions,
        "activation": encoder.activation,
        "heads": own,
        "vocabulary_head": f"{heads.mlm_head}, reading {heads.mlm_head_input}" if heads.masked_language_model else None,
        "opens_in_transformers": _opens_elsewhere(read.model.config),
        "task": heads.task,
        "labels": list(heads.labels),
        "notes": list(read.notes),
    }


def _exported_info(path: Path) -> dict[str, Any]:
    found = read_exported(path)
    encoder, heads = found.config.encoder, found.config.heads
    return {
        "kind": "export",
        "format": found.report["format"],
        "family": encoder.family,
        "job": found.report["job"],
        "labels": list(heads.labels),
        "precision": found.precision,
        "inputs": found.report["inputs"],
        "outputs": found.report["outputs"],
        "largest_difference": found.largest_difference,
        "agreement": found.agreement,
        "max_length": encoder.num_positions,
        "made_by": found.report["made_by"],
    }


def _opens_elsewhere(config: ModelConfig) -> str:
    if config.encoder.family == "elmo":
        return "no: it has no such class"
    return "as it is" if published_class(config) else "its encoder; the head is bertsmith's own"


def _corpus_info(path: Path) -> dict[str, Any]:
    corpus = Corpus.open(path)
    manifest = corpus.manifest
    return {
        "kind": "corpus",
        "vocab_size": manifest.vocab_size,
        "token_type": manifest.token_dtype,
        "train": manifest.train.model_dump(),
        "validation": manifest.validation.model_dump(),
        "train_entropy": manifest.train_entropy,
        "context_free_loss": manifest.context_free_loss,
        "sources": [source.path for source in manifest.sources],
        "notes": corpus.warnings,
    }


def _tokenizer_info(path: Path) -> dict[str, Any]:
    tokenizer = Tokenizer.from_folder(path)
    return {
        "kind": "tokenizer",
        "vocab_size": tokenizer.vocab_size,
        "mask_token": tokenizer.mask_token,
        "max_length": tokenizer.model_max_length,
        "settings": tokenizer.config.model_dump() if tokenizer.config else None,
        "sha256": tokenizer.fingerprint,
    }


def _run_info(path: Path) -> dict[str, Any]:
    record = record_of(path)
    # Several seeds have a log each, and none together.
    logged = path / f"seed-{record['kept_seed']}" if "kept_seed" in record else path
    log = read_log(logged / "log.jsonl")
    steps = [entry["step"] for entry in log if entry["kind"] == "train"]
    validations = [entry for entry in log if entry["kind"] == "validation"]
    if (path / "comparison.json").is_file():
        return {"kind": "comparison", "finished": True, "page": str(path / "comparison.md")}
    finished = (path / "model" / MANIFEST).is_file()
    saved = [step for folder in (path / "checkpoints").glob("step-*") if (step := _checkpoint_step(folder))]
    if saved and not finished:  # It goes on from there, whether its log is a few lines behind or ahead.
        steps = saved
    return {
        "kind": "run",
        "finished": finished,
        "steps": record.get("steps", max(steps, default=0)),
        **_kept_validation(path, record),
        "last_validation": validations[-1] if validations else None,
        "model": _model_info(path / "model") if finished else None,
    }


def _kept_validation(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Of a finished fine-tuning, the step of the model that was kept, its seed where there were several, and its scores
    on the validation rows; nothing of another run."""
    evaluation = path / "evaluation.json"
    if "kept_step" not in record or not evaluation.is_file():
        return {}
    found = json.loads(evaluation.read_text(encoding="utf-8"))
    seed = {"seed": record["kept_seed"]} if "kept_seed" in record else {}
    scores = {name: found[name] for name in record.get("metrics", {}) if name in found}
    return {"kept_validation": {**seed, "step": record["kept_step"], **scores}}


def _checkpoint_step(folder: Path) -> int:
    """Steps of a checkpoint; 0 of one that is being removed, and of anything else."""
    try:
        return read_manifest(folder).get("step", 0)
    except (InputError, OSError):
        return 0
