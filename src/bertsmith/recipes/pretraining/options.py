"""What a pre-training run is made of, as one frozen config: the same in TOML, on the command line and in Python."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from bertsmith.corpus.config import CorpusConfig
from bertsmith.examples.masking import MaskingConfig
from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import Activation, Count, Dropout
from bertsmith.text.documents import TextConfig
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.training.config import LengthConfig, TrainingConfig


class ModelChoice(Config):
    """Where the model comes from, and in what it differs from there."""

    start: str = "bert-toy"
    """A preset's name or a config.json, for fresh weights; or a model folder, to go on from its weights."""
    num_hidden_layers: Count | None = None
    hidden_size: Count | None = None
    num_attention_heads: Count | None = None
    intermediate_size: Count | None = None
    activation: Activation | None = None
    max_position_embeddings: Count | None = None
    dropout: Dropout | None = None
    """None: no dropout with fresh weights, what the folder says with others."""
    mlm_head: Literal["transform", "linear"] = "transform"
    mlm_head_input: Literal["last", "all_layers"] = "last"
    tie_embeddings: bool = True
    bias_from_frequencies: bool = True
    """Begin the vocabulary's bias at the logarithm of each token's frequency, as published BERT does not."""

    @property
    def sizes(self) -> dict[str, Any]:
        """Fields of the encoder's config in which a fresh model differs from its preset or file."""
        names = (
            "num_hidden_layers",
            "hidden_size",
            "num_attention_heads",
            "intermediate_size",
            "activation",
            "max_position_embeddings",
        )
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class RuntimeConfig(Config):
    """Where a run runs. Nothing here is part of what the run is, so a resume may change it, precision excepted."""

    device: str = "auto"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    threads: Annotated[int, Field(ge=1)] | None = None


class PretrainConfig(Config):
    """Everything that decides a pre-training run."""

    sources: tuple[str, ...]
    objective: Literal["mlm", "mlm+nsp", "mlm+sop", "causal", "bilm"] = "mlm"
    sequences: Literal["document_sentences", "full_sentences"] = "document_sentences"
    """full_sentences: sequences go on across documents, with a further separator where they do."""
    max_length: Annotated[int, Field(ge=8)] = 128
    """Most tokens of a sequence, special ones included."""
    tokenizer_folder: str | None = None
    """A tokenizer that exists; otherwise one is trained on the text."""
    extend_vocabulary: Annotated[int, Field(ge=0)] = 0
    """Words of the text that are added to the vocabulary of the model that the run goes on from."""
    length: LengthConfig = LengthConfig()
    model: ModelChoice = ModelChoice()
    tokenizer: TokenizerConfig = TokenizerConfig()
    text: TextConfig = TextConfig()
    corpus: CorpusConfig = CorpusConfig()
    masking: MaskingConfig = MaskingConfig()
    training: TrainingConfig = TrainingConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    @property
    def written(self) -> dict[str, Any]:
        """Plain values from which the same run can be begun again; a size that the text decides is left out."""
        values = self.model_dump(mode="json", exclude_none=True)
        if "vocab_size" not in self.tokenizer.model_fields_set:
            del values["tokenizer"]["vocab_size"]
        return values


def read_settings(path: Path) -> dict[str, Any]:
    """Settings out of a TOML file, such as a run's `run.toml`.

    Raises:
        InputError: if there is no such file or it is no TOML.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise InputError("--config must name a TOML file", f"no file {path}", "Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be TOML", error, "Mend the line that is named.") from None
    values.pop("record", None)
    return values


def with_assignments(values: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Values with ``key=value`` assignments put in; dots in a key lead into tables.

    Raises:
        InputError: for one that is no assignment.
    """
    merged = json.loads(json.dumps(values))
    for assignment in assignments:
        key, sign, text = assignment.partition("=")
        if not sign or not key.strip():
            raise InputError("--set takes key=value", assignment, "For example: --set training.seed=1.")
        put(merged, key.strip(), _value(text.strip()))
    return merged


def put_given(values: dict[str, Any], options: dict[str, Any]) -> None:
    """Set the dotted keys whose value was given; None says that it was not."""
    for key, value in options.items():
        if value is not None:
            put(values, key, value)


def put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key, making the tables that lead to it."""
    *tables, last = key.split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise InputError("--set must lead to an option", f"{key}, where {table} is no table", "Check the key.")
    values[last] = value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
