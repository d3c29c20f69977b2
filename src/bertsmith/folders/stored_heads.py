"""Which heads lie in a model folder: those that bertsmith wrote, or those that a folder from elsewhere shows."""

from typing import Any

from torch import Tensor

from bertsmith.folders.config_json import PROBLEM_TYPES, architecture, labels_of, written_heads
from bertsmith.folders.formats import published_class
from bertsmith.folders.stored_weights import StoredWeights
from bertsmith.model import EncoderConfig, HeadsConfig, ModelConfig
from bertsmith.model.config import TaskName, has_labels, reads_pooler

_TASKS_BY_CLASS: dict[str, TaskName] = {
    "ForSequenceClassification": "classify",
    "ForMultipleChoice": "choose",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "answer",
}
_TASKS_BY_PROBLEM: dict[str, TaskName] = {problem: task for task, problem in PROBLEM_TYPES.items()}
_SOME_LABELS = ("0", "1")
"""Stand in for a head's labels until its weights have told how many there are."""


def own_heads(values: dict[str, Any], encoder: EncoderConfig, stored: StoredWeights, where: str) -> HeadsConfig | None:
    """The heads that bertsmith wrote; None if it wrote none, or another program has put others in their place since.

    Raises:
        InputError: if what bertsmith wrote was changed into what cannot be, or labels contradict the weights.
    """
    own = written_heads(values, where)
    if not own:
        return None
    named = has_labels(own.get("task"))
    draft = HeadsConfig.parse({**own, "labels": _SOME_LABELS if named else (), "thresholds": ()}, where=where)
    try:
        config = ModelConfig(encoder=encoder, heads=draft)
    except ValueError:
        return None
    name = architecture(config)
    if values.get("architectures") not in (None, [] if name is None else [name]):
        return None
    # One class serves several tasks, and another program may have trained the folder for another of them.
    if draft.task in PROBLEM_TYPES and values.get("problem_type") not in (None, PROBLEM_TYPES[draft.task]):
        return None
    # The plain encoder's class leaves our own heads behind when it saves a folder anew.
    if published_class(config) is None and not stored.own_heads and name is not None:
        return None
    if draft.task_head is None:
        return draft
    output = stored.find(_output(draft), config)
    if output is None:
        return None
    labels = _checked_labels(values, draft.task, _rows(output), where)
    try:
        return HeadsConfig.model_validate(own | {"labels": labels})
    except ValueError:
        return None


def shown_heads(values: dict[str, Any], encoder: EncoderConfig, stored: StoredWeights, where: str) -> HeadsConfig:
    """The heads that the weights of a folder from elsewhere show, and the task that its class and `problem_type` tell.

    A head that nothing here computes, such as a regression of several numbers, is left out.

    Raises:
        InputError: if labels contradict the weights.
    """
    bare = ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False))

    def has(ours: str) -> bool:
        return stored.published(ours, bare) is not None

    task, labels = _shown_task(values, encoder, stored, where)
    pooler = has("pooler.dense.weight")
    reads_mean = values.get("classifier_pooling") == "mean" and task in ("classify", "multilabel", "regress", "choose")
    shown = {
        "masked_language_model": has("masked_language_model.bias") or stored.format.projection_bias in stored.tensors,
        "tie_embeddings": values.get("tie_word_embeddings", True),
        # A head that reads a pooler needs one: if it isn't there, it is missed.
        "pooler": pooler or (task is not None and reads_pooler(encoder.family, task)),
        "next_sentence": pooler and has("next_sentence.weight"),
        "sentence_order": pooler and has("sentence_order.weight"),
        "task": task,
        "labels": labels,
        "classifier_dropout": stored.format.classifier_dropout(values, task),
        "classifier_input": "mean" if reads_mean else "first",
    }
    return HeadsConfig.parse(shown, where=where)


def _shown_task(
    values: dict[str, Any], encoder: EncoderConfig, stored: StoredWeights, where: str
) -> tuple[TaskName | None, tuple[str, ...]]:
    """The task and its labels; none where the head's weights are not there, or nothing here computes it."""
    names = values.get("architectures") or []
    told: list[TaskName] = [
        task for ending, task in _TASKS_BY_CLASS.items() if any(name.endswith(ending) for name in names)
    ]
    if not told:
        return None, ()
    task = told[0]
    labels = _SOME_LABELS if has_labels(task) else ()
    heads = HeadsConfig(masked_language_model=False, pooler=True, task=task, labels=labels)
    output = stored.published(_output(heads), ModelConfig(encoder=encoder, heads=heads))
    if output is None:
        return None, ()
    if task == "classify":
        task = _task_of_problem(values.get("problem_type"), _rows(output))
    return task, _checked_labels(values, task, _rows(output), where)


def _task_of_problem(problem: object, count: int) -> TaskName | None:
    """What a class of whole texts with `count` outputs is used for; where nobody says so, one number is a value."""
    if problem is None:
        return "classify" if count > 1 else "regress"
    task = _TASKS_BY_PROBLEM.get(problem) if isinstance(problem, str) else None
    fits = {"classify": count > 1, "regress": count == 1, "multilabel": True}
    return task if task is not None and fits[task] else None


def _checked_labels(values: dict[str, Any], task: TaskName | None, count: int, where: str) -> tuple[str, ...]:
    """Names of the outputs of a task's head; none where it has no names, though a value's must not be several."""
    labels = labels_of(values, count, where) if has_labels(task) or task == "regress" else ()
    return labels if has_labels(task) else ()


def _rows(matrix: Tensor) -> int:
    return matrix.shape[0] if matrix.ndim else 0


def _output(heads: HeadsConfig) -> str:
    """Our name of the matrix with which the head of a task projects."""
    return f"{heads.task_head}.output.weight"
