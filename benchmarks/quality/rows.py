"""Rows of each task as both sides are given them, read once by the product's own readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.recipes.finetuning.data import task_data
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.tasks import TASKS


@dataclass(frozen=True)
class Labelled:
    """A text with its label."""

    text: str | tuple[str, str]
    label: str


@dataclass(frozen=True)
class Tagged:
    """Words with a tag each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Answerable:
    """A question, with an answer that stands in its context."""

    question: str
    context: str
    answer: str
    start: int


def training_rows(values: dict[str, Any]) -> tuple[Sequence[Any], tuple[str, ...]]:
    """The rows that a fine-tuning of these settings trains on, and their labels in order."""
    config = FinetuneConfig.parse(values, where="the options")
    data = task_data(TASKS[config.task], config)
    return [_plain(config.task, item) for item in data.train.items], data.labels


def _plain(task: str, item: Any) -> Labelled | Tagged | Answerable:
    match task:
        case "classify":
            return Labelled(item.texts, str(item.label).strip())
        case "tag":
            return Tagged(tuple(item.words), tuple(item.tags))
        case _:
            return Answerable(item.question, item.context, item.answers[0].text, item.answers[0].start)
