"""Folders of fine-tuned models: written with the class, the names and the settings of their task, and read as that."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from made_folders import (
    KINDS,
    LABELS,
    TASKS,
    assert_equal_models,
    change_config,
    change_weights,
    from_elsewhere,
    small_config,
    task_heads,
    varied_model,
    weights_of,
    written,
)

from bertsmith.folders.config_json import architecture, written_config
from bertsmith.folders.model_folder import read_config, read_model, write_model
from bertsmith.folders.offer import offer_of
from bertsmith.foundation.errors import InputError
from bertsmith.model import HeadsConfig
from bertsmith.model.config import reads_pooler
from bertsmith.tokenization import Tokenizer

ENDINGS = {
    "classify": "ForSequenceClassification",
    "multilabel": "ForSequenceClassification",
    "regress": "ForSequenceClassification",
    "choose": "ForMultipleChoice",
    "tag": "ForTokenClassification",
    "answer": "ForQuestionAnswering",
    "embed": "Model",
}
NAMES = {"bert": "Bert", "roberta": "Roberta", "albert": "Albert", "distilbert": "DistilBert", "modern": "ModernBert"}
SETTINGS: dict[str, dict[str, Any]] = {
    "multilabel": {"thresholds": (0.25, 0.5, 0.1)},
    "embed": {"pooling": "max", "normalize": True},
}
MANY = tuple(f"name {number}" for number in (7, 11, 0, 3, 12, 1, 10, 2, 9, 4, 8, 6, 5))


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_model(folder)
    return str(caught.value)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_read_as_it_was_written_and_told_by_its_config_alone(
    kind: str, task: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    heads = task_heads(kind, task, classifier_dropout=0.25, **SETTINGS.get(task, {}))
    model = written(tmp_path, kind, heads, tokenizer)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == model.config
    assert_equal_models(read.model, model)
    assert written_config(read_config(tmp_path), "config.json") == model.config
    apart = (tmp_path / "bertsmith_heads.safetensors").is_file()
    assert apart == offer_of(model.config).keeps_apart
    assert apart == (kind == "causal" and task != "embed")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", NAMES)
def test_a_folder_names_the_class_that_computes_its_task(
    kind: str, task: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, kind, task_heads(kind, task), tokenizer)
    assert read_config(tmp_path)["architectures"] == [f"{NAMES[kind]}{ENDINGS[task]}"]


@pytest.mark.parametrize("task", TASKS)
def test_the_config_says_what_other_programs_ask_of_a_task(task: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, "roberta", task_heads("roberta", task), tokenizer)
    values = read_config(tmp_path)
    problems = {
        "classify": "single_label_classification",
        "multilabel": "multi_label_classification",
        "regress": "regression",
    }
    assert values.get("problem_type") == problems.get(task)
    names = {"0": "LABEL_0"} if task == "regress" else {"0": "no", "1": "perhaps", "2": "yes"}
    has_names = task in ("classify", "multilabel", "tag", "regress")
    assert values.get("id2label") == (names if has_names else None)
    assert values.get("label2id") == ({name: int(key) for key, name in names.items()} if has_names else None)


@pytest.mark.parametrize("task", ["classify", "multilabel", "tag"])
def test_labels_keep_their_names_and_their_places(task: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    heads = task_heads("bert", task, labels=MANY)
    model = written(tmp_path / "ours", "bert", heads, tokenizer)
    assert read_model(tmp_path / "ours").model.config.heads.labels == MANY
    theirs = getattr(transformers, architecture(model.config) or "").from_pretrained(tmp_path / "ours")
    assert theirs.config.id2label == dict(enumerate(MANY))
    theirs.save_pretrained(tmp_path / "again")
    again = read_model(tmp_path / "again")
    assert again.notes == ()
    assert again.model.config == model.config
    assert_equal_models(again.model, model)


@pytest.mark.parametrize("task", ["classify", "multilabel", "tag"])
@pytest.mark.parametrize("ours", [True, False], ids=["from here", "from elsewhere"])
@pytest.mark.parametrize(
    "names", [{"0": "a", "1": "b"}, {"0": "a", "1": "b", "3": "c"}, {"0": "a", "1": "a", "2": "b"}]
)
def test_labels_that_contradict_the_weights_are_refused(
    task: str, ours: bool, names: dict[str, str], tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, "bert", task_heads("bert", task), tokenizer)
    if not ours:
        from_elsewhere(tmp_path)
    change_config(tmp_path, id2label=names)
    message = refusal(tmp_path)
    assert "label" in message
    assert "config.json" in message


def test_a_value_that_has_several_names_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    written(tmp_path, "bert", task_heads("bert", "regress"), tokenizer)
    change_config(tmp_path, id2label={"0": "a", "1": "b"})
    assert "for 1 outputs" in refusal(tmp_path)


@pytest.mark.parametrize("task", ["classify", "multilabel", "tag"])
@pytest.mark.parametrize("names", [None, {"0": "LABEL_0", "1": "LABEL_1"}])
def test_a_head_from_elsewhere_without_names_gets_numbered_ones(
    task: str, names: dict[str, str] | None, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, "distilbert", task_heads("distilbert", task), tokenizer)
    from_elsewhere(tmp_path)
    change_config(tmp_path, id2label=names, label2id=None)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config.heads.task == task
    assert read.model.config.heads.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize(
    ("problem", "count", "task"),
    [
        (None, 3, "classify"),
        (None, 1, "regress"),
        ("single_label_classification", 3, "classify"),
        ("single_label_classification", 1, None),
        ("multi_label_classification", 3, "multilabel"),
        ("multi_label_classification", 1, "multilabel"),
        ("regression", 1, "regress"),
        ("regression", 3, None),
        ("ranking", 3, None),
        (["regression"], 1, None),
    ],
)
def test_a_class_of_whole_texts_from_elsewhere_is_read_for_what_it_is_used_for(
    problem: Any, count: int, task: str | None, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, "roberta", task_heads("roberta", "multilabel", labels=LABELS[:count]), tokenizer)
    from_elsewhere(tmp_path)
    change_config(tmp_path, problem_type=problem)
    read = read_model(tmp_path)
    assert read.model.config.heads.task == task
    left_over = any("classifier.out_proj.weight" in note for note in read.notes)
    assert left_over == (task is None)
    assert (read.model.classifier is None) == (task is None)


@pytest.mark.parametrize("task", ["classify", "choose", "tag", "answer"])
@pytest.mark.parametrize("ours", [True, False], ids=["from here", "from elsewhere"])
@pytest.mark.parametrize("kind", NAMES)
def test_nothing_is_invented_for_a_head_whose_weights_are_not_there(
    kind: str, ours: bool, task: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, kind, task_heads(kind, task), tokenizer)
    if not ours:
        from_elsewhere(tmp_path)
    change_weights(
        tmp_path,
        lambda weights: {
            name: value
            for name, value in weights.items()
            if not name.startswith(("classifier", "qa_outputs", "head.", "pre_classifier"))
        },
    )
    read = read_model(tmp_path)
    assert read.model.config.heads.task is None
    assert all(part is None for part in (read.model.classifier, read.model.token_classifier, read.model.spans))
    assert_equal_models(read.model.encoder, model.encoder)
    assert any("read as its architectures say" in note for note in read.notes) == ours


@pytest.mark.parametrize(
    ("kind", "task", "lost"),
    [
        ("bert", "classify", "bert.pooler.dense.weight"),
        ("roberta", "choose", "roberta.pooler.dense.weight"),
        ("roberta", "classify", "classifier.dense.weight"),
        ("distilbert", "choose", "pre_classifier.weight"),
        ("modern", "answer", "head.norm.weight"),
        ("albert", "tag", "classifier.bias"),
    ],
)
@pytest.mark.parametrize("ours", [True, False], ids=["from here", "from elsewhere"])
def test_a_head_of_which_a_part_is_missing_is_refused_with_its_name(
    kind: str, task: str, lost: str, ours: bool, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, kind, task_heads(kind, task), tokenizer)
    if not ours:
        from_elsewhere(tmp_path)
    assert lost in weights_of(tmp_path)
    change_weights(tmp_path, lambda weights: {name: value for name, value in weights.items() if name != lost})
    message = refusal(tmp_path)
    assert "must hold all weights of its encoder and heads" in message
    assert lost in message


@pytest.mark.parametrize(("task", "name"), [("choose", "classifier"), ("answer", "qa_outputs")])
def test_outputs_of_another_number_than_the_task_has_are_refused(
    task: str, name: str, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, "bert", task_heads("bert", task), tokenizer)
    from_elsewhere(tmp_path)
    change_weights(tmp_path, lambda weights: weights | {f"{name}.weight": torch.ones(3, 12)})
    assert f"{name}.weight of shape (3, 12)" in refusal(tmp_path)


def test_a_classifier_of_a_folder_that_names_no_task_is_one(tmp_path: Path, tokenizer: Tokenizer) -> None:
    model = written(tmp_path, "bert", task_heads("bert", "classify"), tokenizer)
    own = read_config(tmp_path)["bertsmith"]
    for name in ("task", "thresholds", "pooling", "normalize"):
        del own["heads"][name]
    change_config(tmp_path, bertsmith=own)
    assert read_model(tmp_path).model.config == model.config
    assert written_config(read_config(tmp_path), "config.json") == model.config


def test_a_folder_that_another_program_trained_for_another_task_of_the_class_is_read_as_that(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    heads = task_heads("bert", "multilabel", thresholds=(0.1, 0.2, 0.3))
    written(tmp_path / "ours", "bert", heads, tokenizer)
    opened = transformers.AutoModelForSequenceClassification
    again = opened.from_pretrained(tmp_path / "ours", problem_type="single_label_classification")
    again.save_pretrained(tmp_path / "again")
    read = read_model(tmp_path / "again")
    assert (read.model.config.heads.task, read.model.config.heads.labels) == ("classify", LABELS)
    assert read.model.config.heads.thresholds == ()
    assert any("read as its architectures say" in note for note in read.notes)


def test_thresholds_of_labels_that_are_no_more_are_left_behind(tmp_path: Path, tokenizer: Tokenizer) -> None:
    heads = task_heads("roberta", "multilabel", thresholds=(0.1, 0.2, 0.3))
    written(tmp_path / "ours", "roberta", heads, tokenizer)
    again = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "ours", id2label={0: "a", 1: "b"}, label2id={"a": 0, "b": 1}, ignore_mismatched_sizes=True
    )
    again.save_pretrained(tmp_path / "again")
    heads = read_model(tmp_path / "again").model.config.heads
    assert (heads.task, heads.labels, heads.thresholds) == ("multilabel", ("a", "b"), ())


def test_a_regression_whose_outputs_are_still_to_be_scaled_is_not_written_under_a_class_that_scales_nothing(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = written(tmp_path, "bert", task_heads("bert", "regress", value_scale=(20.0, 5.0)), tokenizer)
    assert read_config(tmp_path)["architectures"] == ["BertModel"]
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == model.config
    assert_equal_models(read.model, model)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_of_an_elmo_lies_apart(task: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    heads = HeadsConfig.parse(
        {"mlm_head": "linear", "tie_embeddings": False, "task": task, "classifier_input": "mean"}
        | ({"labels": LABELS} if task in ("classify", "multilabel", "tag") else {}),
        where="a test",
    )
    assert not reads_pooler("elmo", heads.task)
    model = varied_model(small_config(heads, family="elmo", embedding_size=6, type_vocab_size=0))
    write_model(tmp_path, model, tokenizer)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == model.config
    assert_equal_models(read.model, model)
    assert written_config(read_config(tmp_path), "config.json") == model.config


@pytest.mark.parametrize(
    ("kind", "task", "rate"),
    [
        ("bert", "classify", 0.3),
        ("bert", "tag", 0.3),
        ("bert", "answer", 0.0),
        ("albert", "choose", 0.3),
        ("albert", "answer", 0.0),
        ("roberta", "choose", 0.0),
        ("roberta", "tag", 0.3),
        ("roberta", "answer", 0.0),
        ("distilbert", "regress", 0.3),
        ("distilbert", "answer", 0.3),
        ("distilbert", "tag", 0.0),
        ("modern", "answer", 0.3),
    ],
)
def test_the_rate_before_the_last_projection_is_that_of_the_class(
    kind: str, task: str, rate: float, tmp_path: Path, tokenizer: Tokenizer
) -> None:
    written(tmp_path, kind, task_heads(kind, task, classifier_dropout=0.3), tokenizer)
    assert read_model(tmp_path).model.config.heads.classifier_dropout == 0.3
    from_elsewhere(tmp_path)
    assert read_model(tmp_path).model.config.heads.classifier_dropout == rate
