"""What a fine-tuning is given, read and checked before any work begins."""

from dataclasses import dataclass, replace
from typing import Any

from bertsmith.folders.tensors import weight_sums
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.model.config import HeadsConfig
from bertsmith.recipes.finetuning.data import Examples, Loaded, TaskData, examples_of, loaded, task_data
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_epochs
from bertsmith.recipes.finetuning.start_model import Source, known_order, open_source, task_model_config
from bertsmith.recipes.finetuning.task import Better, Task
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.tokenization.tokenizer import Tokenizer

_LABELLED_ROWS = ("classify", "multilabel")


@dataclass(frozen=True)
class Given:
    """What a run is given, read and checked."""

    task: Task
    source: Source
    tokenizer: Tokenizer
    """The source's, for sequences as the model is trained on: they are what it sees later too, here and elsewhere."""
    data: TaskData
    metrics: dict[str, Better]
    """The scores, the one first that tells the best validation."""
    max_length: int
    task_heads: dict[str, Any]
    """What `HeadsConfig` says of the task."""
    heads: HeadsConfig
    """With what comes from the encoder."""
    examples: Examples

    @classmethod
    def of(cls, config: FinetuneConfig) -> "Given":
        """Read what a run is given, and refuse what cannot be used.

        Raises:
            InputError: for files, rows and settings that cannot be used, with each other or at all.
        """
        task = TASKS[config.task]
        source = open_source(config.model)
        max_length = _max_length(config, source)
        data = task_data(task, config)
        sums = {"weights_sha256": weight_sums(source.folder), "tokenizer_sha256": source.tokenizer.fingerprint}
        data = replace(data, labels=known_order(source, data.labels), facts=data.facts | sums)
        metrics = _metrics(config, task, data)
        task_heads = {"task": task.name} | task.heads(data.train, data.labels, config)
        heads = task_model_config(source, task_heads, dropout=config.dropout).heads
        examples = examples_of(task, data, source.tokenizer, config, heads=heads, max_length=max_length)
        side = "head" if config.long_texts == "windows" else config.long_texts
        tokenizer = source.tokenizer.seeing(max_length, side)
        return cls(task, source, tokenizer, data, metrics, max_length, task_heads, heads, examples)

    def scores(self, evaluation: dict[str, Any]) -> dict[str, float]:
        """The scores of an evaluation, as far as it has them."""
        return {name: evaluation[name] for name in self.metrics if name in evaluation}

    def batches(self, config: FinetuneConfig) -> Loaded:
        """The rows as batches, in an order that the seed decides."""
        return loaded(self.examples, config, num_rows=len(self.data.train.items))

    def default_epochs(self, num_tokens: int) -> float:
        """Passes over the training rows, of so many tokens, where no length is given."""
        # A word's label comes as often as there are words, and needs no passes of its own.
        labels = self.data.labels if self.task.name in _LABELLED_ROWS else ()
        return default_epochs(len(self.data.train.items), num_tokens, len(labels))


def _metrics(config: FinetuneConfig, task: Task, data: TaskData) -> dict[str, Better]:
    """The task's scores, that one first which tells the best validation."""
    known = task.metrics(data.validation, data.labels)
    chosen = config.training.metric
    if chosen is None:
        chosen = next(iter(known))
    elif chosen not in known:
        raise unknown_name("training.metric", chosen, known)
    ways: dict[str, Better] = {chosen: config.training.direction or known[chosen]}
    for name, way in known.items():
        ways.setdefault(name, way)
    return ways


def _max_length(config: FinetuneConfig, source: Source) -> int:
    positions = source.num_positions
    if config.max_length is not None and config.max_length > positions:
        raise InputError(
            "--max-length must not exceed the positions of the model",
            f"{config.max_length}, and {source.folder} has {positions}",
            f"Use --max-length {positions} or less.",
        )
    return config.max_length or source.max_length
