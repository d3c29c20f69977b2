"""Heads of fine-tuned models give the same numbers here and in the reference, whoever wrote the folder."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from random_models import Inputs, enlarge, random_config, random_inputs
from reference_models import named_for, opener, reference_config, reference_model
from torch import Tensor
from torch.nn import functional
from transformers import AutoModel, PreTrainedModel

from bertsmith.folders.config_json import architecture
from bertsmith.folders.model_folder import read_config, read_model, write_model
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from bertsmith.model.config import has_labels, reads_pooler
from bertsmith.model.encoder import pack_padded
from bertsmith.tokenization import Tokenizer

LABELS = ("yes", "no", "perhaps", "both")
TASKS = ("multilabel", "regress", "choose", "tag", "answer")
FAMILIES = ("bert", "roberta", "albert", "distilbert", "modern")
NUMBERS = range(4)
PROBLEMS = {"multilabel": "multi_label_classification", "regress": "regression"}
TWINS = {"xlm-roberta": "XLMRoberta", "camembert": "Camembert"}


def task_config(kind: str, task: str, number: int) -> ModelConfig:
    """A random encoder with the head of a task. Every second modern one reads the mean of its tokens."""
    encoder = random_config(kind, number).encoder
    heads = {
        "masked_language_model": False,
        "task": task,
        "labels": LABELS[: 1 + number % 4] if has_labels(task) else (),
        "pooler": reads_pooler(encoder.family, task),  # pyright: ignore[reportArgumentType]
        "classifier_input": "mean" if kind == "modern" and number % 2 and task not in ("tag", "answer") else "first",
    }
    return ModelConfig(encoder=encoder, heads=HeadsConfig.parse(heads, where="a case"))


def as_published(config: ModelConfig) -> ModelConfig:
    """The config with the rate that the reference's class has before its last projection."""
    encoder, heads = config.encoder, config.heads
    hidden = encoder.dropout.feed_forward
    rate = heads.classifier_dropout
    match encoder.family, heads.task:
        case "bert" | "roberta" | "albert", "answer":
            rate = 0.0
        case ("roberta", "choose") | ("distilbert", "tag"):
            rate = hidden
        case _:
            pass
    return config.model_copy(update={"heads": heads.model_copy(update={"classifier_dropout": rate})})


def from_the_left(inputs: Inputs) -> Inputs:
    """The same rows with their padding at the end: the reference's heads of whole texts read the first column."""
    order = (~inputs.real).long().argsort(dim=1, stable=True)
    return Inputs(*(value.gather(1, order) for value in (inputs.token_ids, inputs.real, inputs.segment_ids)))


def our_scores(model: Model, inputs: Inputs) -> Tensor:
    """What the head of the model's task gives, at real tokens or for each row."""
    packed = pack_padded(
        inputs.token_ids, inputs.real, inputs.segment_ids, skip=model.config.encoder.positions_skip_padding
    )
    hidden = model.encoder.packed(packed)
    match model.config.heads.task:
        case "tag":
            return model.tag(hidden)
        case "answer":
            return model.answer_spans(hidden)
        case _:
            return model.classify(hidden, packed)


def their_scores(model: PreTrainedModel, inputs: Inputs) -> Tensor:
    named = named_for(model, inputs)
    kind = type(model).__name__
    if kind.endswith("ForMultipleChoice"):
        # All rows are the choices of one question.
        return model(**{name: value[None] for name, value in named.items()}).logits.reshape(-1, 1)
    result = model(**named)
    if kind.endswith("ForQuestionAnswering"):
        return torch.stack([result.start_logits, result.end_logits], dim=-1)[inputs.real]
    return result.logits[inputs.real] if kind.endswith("ForTokenClassification") else result.logits


@torch.no_grad()
def assert_same_scores(ours: Model, theirs: PreTrainedModel, inputs: Inputs) -> None:
    """Compare in fp32 and in float64. Both models are float64 afterwards."""
    for tolerance in (1e-5, 1e-10):
        given, expected = our_scores(ours.eval(), inputs), their_scores(theirs.eval(), inputs)
        assert given.shape == expected.shape
        assert expected.abs().max() > 1e-3
        torch.testing.assert_close(given, expected, atol=tolerance, rtol=0)
        ours.double()
        theirs.double()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_a_task_of_transformers_gives_the_same_scores_here(kind: str, task: str, number: int, tmp_path: Path) -> None:
    config = task_config(kind, task, number)
    more: dict[str, Any] = {"problem_type": PROBLEMS[task]} if task in PROBLEMS else {}
    theirs = reference_model(config, number, **more | ({"num_labels": 1} if task == "regress" else {}))
    theirs.save_pretrained(tmp_path)
    read = read_model(tmp_path)
    assert read.notes == ()
    assert read.model.config == as_published(config)
    assert_same_scores(read.model, theirs, from_the_left(random_inputs(config.encoder, number)))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_a_task_written_here_gives_the_same_scores_in_transformers(
    kind: str, task: str, number: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = task_config(kind, task, number + len(NUMBERS))
    ours = new_model(config, seed=number)
    enlarge(ours, number)
    write_model(tmp_path, ours, tiny_tokenizer)
    name = architecture(config) or ""
    theirs, loading = opener(name).from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs).__name__ == name
    assert not any(loading[what] for what in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert theirs.config.problem_type == PROBLEMS.get(task)
    if has_labels(task):
        assert theirs.config.id2label == dict(enumerate(config.heads.labels))
        assert theirs.config.label2id == {label: number for number, label in enumerate(config.heads.labels)}
    assert_same_scores(ours, theirs, from_the_left(random_inputs(config.encoder, number)))


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("twin", TWINS)
def test_a_task_of_a_twin_of_roberta_agrees_as_it_is_and_as_it_is_written_back(
    twin: str, task: str, number: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = task_config("roberta", task, number)
    built = reference_config(config, number).to_dict()
    kind = getattr(transformers, (architecture(config) or "").replace("Roberta", TWINS[twin]))
    values = {name: value for name, value in built.items() if name not in ("model_type", "architectures")}
    values |= {"problem_type": PROBLEMS.get(task)} | ({"num_labels": 1} if task == "regress" else {})
    theirs = kind(kind.config_class(**values))
    enlarge(theirs, number)
    theirs.eval().save_pretrained(tmp_path / "twin")
    assert read_config(tmp_path / "twin")["model_type"] == twin
    read = read_model(tmp_path / "twin")
    assert read.notes == (f"{twin} is read and written as roberta, which computes the same",)
    assert read.model.config == as_published(config)
    (tmp_path / "back").mkdir()
    write_model(tmp_path / "back", read.model, tiny_tokenizer)
    back = opener(architecture(config) or "").from_pretrained(tmp_path / "back")
    inputs = from_the_left(random_inputs(config.encoder, number))
    # The tanh of gelu is written in two ways, which differ in the last digit.
    with torch.no_grad():
        torch.testing.assert_close(their_scores(back, inputs), their_scores(theirs, inputs), atol=1e-5, rtol=1e-5)
    assert_same_scores(read.model, theirs, inputs)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
@pytest.mark.parametrize("kind", FAMILIES)
@torch.no_grad()
def test_an_embedder_is_the_plain_encoder_and_what_its_tokens_give(
    kind: str, pooling: str, normalize: bool, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    heads = HeadsConfig.parse(
        {"masked_language_model": False, "task": "embed", "pooling": pooling, "normalize": normalize}, where="a case"
    )
    config = ModelConfig(encoder=random_config(kind, 5).encoder, heads=heads)
    ours = new_model(config, seed=5).eval()
    enlarge(ours, 5)
    write_model(tmp_path, ours, tiny_tokenizer)
    theirs, loading = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    # The plain class of some families always makes a pooler; a folder has none where none was trained.
    assert all("pooler" in name for name in loading["missing_keys"])
    assert not loading["unexpected_keys"]
    inputs = from_the_left(random_inputs(config.encoder, 5))
    hidden, real = theirs(**named_for(theirs, inputs)).last_hidden_state, inputs.real[..., None]
    expected = {
        "mean": (hidden * real).sum(1) / real.sum(1),
        "first": hidden[:, 0],
        "max": hidden.masked_fill(~real, -torch.inf).amax(1),
    }[pooling]
    packed = pack_padded(inputs.token_ids, inputs.real, inputs.segment_ids, skip=config.encoder.positions_skip_padding)
    given = ours.embed(ours.encoder.packed(packed), packed)
    expected = functional.normalize(expected, dim=-1) if normalize else expected
    torch.testing.assert_close(given, expected, atol=1e-5, rtol=0)
    assert read_model(tmp_path).model.config == config
