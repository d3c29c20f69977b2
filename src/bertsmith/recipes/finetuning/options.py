"""What a fine-tuning run is made of, as one frozen config: the same in TOML, on the command line and in Python."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from bertsmith.examples.answering import AnswerConfig
from bertsmith.examples.table_config import TableConfig
from bertsmith.examples.task_examples import LongTexts
from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import TaskName
from bertsmith.objectives.embedding import EmbedConfig
from bertsmith.recipes.settings import RuntimeConfig
from bertsmith.training.config import LengthConfig, LoopConfig

ConfigT = TypeVar("ConfigT", bound=Config)

_OPTIMIZER = {"beta2": 0.999}
_SCHEDULE = {"warmup_share": 0.1}
_LOOP = {"validate_every_share": 0.2, "keep_checkpoints": 1}

_ROWS_SEEN, _ROWS_SEEN_A_LABEL, _TOKENS_SEEN = 30_000, 1_000, 4_000_000
_FEW_ROWS = 2_000
_VALIDATION_SHARE = 0.1
_FEWEST_EPOCHS, _MOST_EPOCHS = 3.0, 20.0
_AVERAGE_SHARE, _LAYER_DECAY = 0.4, 0.9
_DECIDED = {"learning_rate", "layer_decay", "average_share"}
"""Settings of training that the model and the task decide where they are not given."""
_WIDTH_OF_BASE = 768
_RATE_OF_BASE, _EMBEDDING_RATE_OF_BASE = 5e-5, 4e-5
_HIGHEST_RATE = 1e-3
_SIZE_OF_WEIGHTS = 0.07
"""Root mean square of the weights in the layers of models like those that the rates were found with."""


class FinetuneTraining(LoopConfig):
    """Everything about fine-tuning that is not the model, the data or the length of the run.

    What is not given here is as published BERT was fine-tuned (Devlin et al. 2019, appendix A.3), and not as it was
    pre-trained. `FinetuneConfig.training_for` decides the rest.
    """

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Rows in a step's batch; where not given, 32, or 16 where there are fewer than 2,000 rows, and 64 for embed."""
    metric: str | None = None
    """The score that tells the best validation; the task's own first one where not given."""
    direction: Literal["higher", "lower"] | None = None
    """Which way `metric` is better; as the task knows it where not given."""
    keep: Literal["best", "last"] = "best"
    """Which model the run leaves: that of its best validation, or that of its last step."""
    patience: Annotated[int, Field(ge=1)] | None = None
    """Validations in a row without a better one after which the run ends early; never, where not given. An equal score
    with a lower loss is better."""

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        filled = _LOOP | values
        for name, defaults in (("optimizer", _OPTIMIZER), ("schedule", _SCHEDULE)):
            given = filled.get(name, {})
            if isinstance(given, dict):
                filled[name] = defaults | given
        return filled


class FinetuneConfig(Config):
    """Everything that decides a fine-tuning run."""

    task: TaskName = "classify"
    train: str
    """File of labelled rows."""
    validation: str | None = None
    """File of rows to validate on; a share of the training rows where not given."""
    validation_share: Annotated[float, Field(gt=0.0, lt=1.0)] = _VALIDATION_SHARE
    """How many training rows are held out where no file is given: of each label as many, drawn the same way always."""
    model: str
    """The folder of the encoder, or of a run."""
    fresh_weights: bool = False
    """Take the folder's sizes and tokenizer alone: the comparison that shows what pre-training brings."""
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """In all places of the encoder and before the classifier."""
    max_length: Annotated[int, Field(ge=8)] | None = None
    """Most tokens of a sequence, special ones included; what the model takes, 512 at most, where not given."""
    long_texts: LongTexts = "head"
    """What is seen of a longer text: its head, its tail, or all of it in overlapping windows, scores averaged."""
    freeze: Literal["nothing", "encoder"] = "nothing"
    """encoder: train the head alone, pooler included, on the encoder as it is and without dropout in it."""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: all labels weigh the same in the loss, however many rows each has."""
    embed: EmbedConfig | None = None
    """Of task embed alone: what an embedding is made of and how it is learned."""
    answer: AnswerConfig | None = None
    """Of task answer alone: how questions are asked of texts and when none is answered."""
    seeds: Annotated[int, Field(ge=1)] = 1
    """Runs by as many seeds, counted from `training.seed`; more than one show what chance does to the scores. They
    share `length.minutes`."""
    length: LengthConfig = LengthConfig()
    data: TableConfig = TableConfig()
    training: FinetuneTraining = FinetuneTraining()
    runtime: RuntimeConfig = RuntimeConfig()

    @model_validator(mode="after")
    def _parts_fit_the_task(self) -> "FinetuneConfig":
        for name in ("embed", "answer"):
            part: Config | None = getattr(self, name)
            if part is not None and self.task != name:
                given = [f"{name}.{key}={getattr(part, key)}" for key in sorted(part.model_fields_set)]
                raise InputError(
                    f"The settings {name}.… belong to task {name} alone",
                    f"{', '.join(given) or name}, and task {self.task}",
                    f"Leave {'them' if len(given) > 1 else 'it'} out, or take the task {name}.",
                )
        return self

    @model_validator(mode="after")
    def _columns_fit_the_task(self) -> "FinetuneConfig":
        data = self.data
        for name, column, reason in (
            ("pair", data.pair if self.task == "tag" else None, "goes with tasks that read two texts"),
            ("negative", data.negative if self.task != "embed" else None, "belongs to task embed alone"),
        ):
            if column is not None:
                raise InputError(
                    f"The setting data.{name} {reason}", f"data.{name}={column}, and task {self.task}", "Leave it out."
                )
        return self

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> "FinetuneConfig":
        decay = self.training.optimizer.layer_decay
        for setting, is_idle, beside, reason in (
            # What it is without being set stands in every run.toml.
            (
                f"validation_share={self.validation_share:g}",
                self.validation is not None and self.validation_share != _VALIDATION_SHARE,
                f"validation={self.validation}",
                "rows are held out only where no file to validate on is given",
            ),
            (
                f"training.optimizer.layer_decay={decay:g}",
                self.freeze == "encoder" and decay < 1.0,
                "freeze=encoder",
                "layers that are not trained have no rate",
            ),
        ):
            if is_idle:
                raise InputError(
                    f"A setting must have an effect, and {reason}",
                    f"{setting} beside {beside}",
                    "Leave one of them out.",
                )
        return self

    @property
    def written(self) -> dict[str, Any]:
        """Plain values from which the same run can be begun again; what the model and the task decide is left out."""
        values = self.model_dump(mode="json", exclude_none=True)
        training = values["training"]
        for part, given in ((training, self.training), (training["optimizer"], self.training.optimizer)):
            for name in _DECIDED & part.keys() - given.model_fields_set:
                del part[name]
        return values

    def with_seed(self, seed: int) -> "FinetuneConfig":
        """The same run by one seed, in its share of the time where a time is given."""
        training, length = self.training.model_copy(update={"seed": seed}), self.length
        if length.minutes is not None:
            length = length.model_copy(update={"minutes": length.minutes / self.seeds})
        return self.model_copy(update={"seeds": 1, "training": training, "length": length})

    def training_for(self, hidden_size: int, size_of_weights: float = 0.0) -> FinetuneTraining:
        """The settings of training with what the model and the task decide where nobody gave it.

        The learning rate is 5e-5 at 768, among those published for BERT-Base, and falls with the square of the width:
        at 384 and at 256 the rates that were best by trial are 2e-4 and 5e-4. AdamW moves a weight by about the rate,
        however large it is: where those of the layers are larger than usual, as Muon leaves them, so is the rate. An
        embedder's, 4e-5 at 768, falls with the width alone. A mean of the weights is left, and lower layers have lower
        rates where they were trained before; embedders were not tried. The trials are in docs/lab-notes.md.

        Args:
            hidden_size: the width.
            size_of_weights: root mean square of the weights in the layers, as the training begins.
        """
        narrower, is_embedder = _WIDTH_OF_BASE / hidden_size, self.task == "embed"
        rate = _EMBEDDING_RATE_OF_BASE * narrower if is_embedder else _RATE_OF_BASE * narrower**2
        by_width_alone = is_embedder or self.freeze == "encoder"
        larger = 1.0 if by_width_alone else max(1.0, size_of_weights / _SIZE_OF_WEIGHTS)
        optimizer = {
            "learning_rate": min(rate, _HIGHEST_RATE) * larger,
            "layer_decay": 1.0 if is_embedder or self.fresh_weights else _LAYER_DECAY,
        }
        training = {"average_share": 0.0 if is_embedder else _AVERAGE_SHARE}
        return _filled(self.training, training | {"optimizer": _filled(self.training.optimizer, optimizer)})


def _filled(given: ConfigT, decided: dict[str, Any]) -> ConfigT:
    """A config with values for what nobody gave it; parts of it that are configs themselves are taken as they are."""
    names = [name for name in decided if name not in given.model_fields_set or isinstance(decided[name], Config)]
    return given.model_copy(update={name: decided[name] for name in names})


def default_batch_size(num_rows: int, task: TaskName = "classify") -> int:
    """Rows of a step where none are asked for: few need the more steps.

    An embedder learns from what else is in a batch, and its batches are as SimCSE's (Gao et al. 2021).
    """
    if task == "embed":
        return 64
    return 16 if num_rows < _FEW_ROWS else 32


def default_epochs(num_rows: int, num_tokens: int, num_labels: int = 0) -> float:
    """Passes over the training rows where no length is given: three, and more over few rows or for many labels.

    Small data needs many passes to be learned steadily (Mosbach et al. 2021): 30,000 rows are seen in all, or 1,000 for
    each label, in 20 passes at most. Long rows hold more to learn from, and their passes cost more: what goes beyond
    three passes ends at four million tokens.

    Args:
        num_rows: rows to train on.
        num_tokens: tokens of all their sequences.
        num_labels: labels that a row is to be told by; 0 where there are none.
    """
    seen = max(_ROWS_SEEN, _ROWS_SEEN_A_LABEL * num_labels)
    most = min(seen / num_rows, _TOKENS_SEEN / num_tokens, _MOST_EPOCHS)
    return max(most, _FEWEST_EPOCHS)
