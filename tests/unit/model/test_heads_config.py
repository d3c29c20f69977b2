"""A config names one task, and what belongs to it: labels, thresholds, the pooler that its family's head reads."""

from typing import Any

import pytest
from small_models import KINDS, encoder_config

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig, ModelConfig
from bertsmith.model.config import has_labels, reads_pooler

LABELS = ("b", "c", "a")


def refused(kind: type[Config], values: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        kind.parse(values, where="model.toml")
    return str(caught.value)


def test_labels_without_a_task_are_those_of_a_classifier() -> None:
    heads = HeadsConfig(labels=LABELS)
    assert heads.task == "classify"
    assert heads == HeadsConfig(task="classify", labels=LABELS)
    assert HeadsConfig.parse({"labels": list(LABELS), "task": None}, where="x") == heads
    assert HeadsConfig().task is None


@pytest.mark.parametrize("labels", [("a",), ("a", "a"), ("a", "b", "a"), ()])
def test_labels_of_a_classifier_are_two_at_least_and_differ(labels: tuple[str, ...]) -> None:
    message = refused(HeadsConfig, {"task": "classify", "labels": labels})
    assert "labels must be two at least and differ for task classify" in message
    assert ", ".join(labels) in message
    assert "model.toml" in message


def test_one_label_without_a_task_is_refused() -> None:
    assert "labels must be two at least and differ" in refused(HeadsConfig, {"labels": ("a",)})


@pytest.mark.parametrize("task", ["multilabel", "tag"])
def test_one_label_is_enough_where_each_stands_for_itself_or_for_a_word(task: str) -> None:
    assert HeadsConfig.parse({"task": task, "labels": ("a",)}, where="x").num_outputs == 1
    for labels in ((), ("a", "a")):
        message = refused(HeadsConfig, {"task": task, "labels": labels})
        assert f"labels must be one at least and differ for task {task}" in message


@pytest.mark.parametrize("task", ["regress", "choose", "answer", "embed"])
def test_labels_are_refused_where_outputs_have_no_names(task: str) -> None:
    message = refused(HeadsConfig, {"task": task, "labels": LABELS})
    assert f"labels must be left out of task {task}, and they are b, c, a" in message
    assert not has_labels(task)


def test_labels_keep_the_order_in_which_they_were_given() -> None:
    assert HeadsConfig(task="tag", labels=LABELS).labels == LABELS


def test_a_mistyped_task_is_refused_with_those_there_are() -> None:
    message = refused(HeadsConfig, {"task": "clasify"})
    assert "task='clasify'" in message
    assert "'classify'" in message


def test_thresholds_are_one_for_each_label_of_a_multilabel_model() -> None:
    fitting = HeadsConfig(task="multilabel", labels=LABELS, thresholds=(0.0, 0.5, 1.0))
    assert fitting.thresholds == (0.0, 0.5, 1.0)
    values = {"task": "multilabel", "labels": LABELS, "thresholds": (0.5, 0.5)}
    assert "they are 2 for 3" in refused(HeadsConfig, values)
    assert "thresholds belong to task multilabel" in refused(HeadsConfig, values | {"task": "classify"})
    assert "thresholds.1=1.5" in refused(HeadsConfig, values | {"thresholds": (0.5, 1.5, 0.5)})


@pytest.mark.parametrize(
    ("task", "head", "outputs"),
    [
        ("classify", "classifier", 3),
        ("multilabel", "classifier", 3),
        ("regress", "classifier", 1),
        ("choose", "classifier", 1),
        ("tag", "token_classifier", 3),
        ("answer", "spans", 2),
        ("embed", None, 0),
        (None, None, 0),
    ],
)
def test_a_task_has_its_head_and_its_number_of_outputs(task: str | None, head: str | None, outputs: int) -> None:
    heads = HeadsConfig.parse({"task": task, "labels": LABELS if has_labels(task) else ()}, where="x")
    assert (heads.task_head, heads.num_outputs) == (head, outputs)


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress", "choose", "tag", "answer", "embed"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_head_needs_the_pooler_where_the_published_one_reads_it(kind: str, task: str) -> None:
    encoder = encoder_config(**KINDS[kind])
    heads = {"task": task, "labels": LABELS if has_labels(task) else ()}
    of_bert = encoder.family in ("bert", "albert") and task in ("classify", "multilabel", "regress", "choose")
    needs = of_bert or (kind, task) == ("roberta", "choose")
    assert reads_pooler(encoder.family, heads["task"]) == needs
    if needs:
        message = refused(ModelConfig, {"encoder": encoder, "heads": heads})
        assert f"task {task} needs the pooler in family {encoder.family}" in message
    config = ModelConfig.parse({"encoder": encoder, "heads": heads | {"pooler": needs}}, where="x")
    assert config.uses_pooler == needs
