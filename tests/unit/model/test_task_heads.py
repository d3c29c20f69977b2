"""The heads of the tasks: built as their families publish them, one output for each name, and all of them learn."""

import numpy as np
import pytest
import torch
from small_models import KINDS, LENGTHS, packed, sequences, small_model

from bertsmith.model import HeadsConfig, Model, PackedTokens
from bertsmith.model.config import has_labels, reads_pooler
from bertsmith.model.pooling import pooled_tokens

LABELS = ("b", "c", "a")
TASKS = ("classify", "multilabel", "regress", "choose", "tag", "answer", "embed")


def task_model(task: str, kind: str = "bert", **more: object) -> Model:
    family = KINDS[kind].get("family", "bert")
    values = {
        "masked_language_model": False,
        "task": task,
        "labels": LABELS if has_labels(task) else (),
        "pooler": reads_pooler(family, task),  # pyright: ignore[reportArgumentType]
    }
    return small_model(heads=HeadsConfig.parse(values | more, where="a test"), **KINDS[kind])


def outputs_of(model: Model, tokens: PackedTokens) -> torch.Tensor:
    hidden = model.encoder.packed(tokens)
    match model.config.heads.task:
        case "tag":
            return model.tag(hidden)
        case "answer":
            return model.answer_spans(hidden)
        case "embed":
            return model.embed(hidden, tokens)
        case _:
            return model.classify(hidden, tokens)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_has_its_outputs_and_every_weight_of_its_model_learns(kind: str, task: str) -> None:
    model = task_model(task, kind)
    tokens = packed(sequences(LENGTHS), multiple=16)
    outputs = outputs_of(model.eval(), tokens)
    assert len(tokens.token_ids) > tokens.num_tokens
    per_token = task in ("tag", "answer")
    assert outputs.shape == (
        len(tokens.token_ids) if per_token else len(LENGTHS),
        16 if task == "embed" else model.config.heads.num_outputs,
    )
    counted = outputs[: tokens.num_tokens] if per_token else outputs
    # One number after the norm of a transform would be the same wherever it is read: each has its own weight.
    (counted * torch.linspace(-1.0, 2.0, counted.numel()).reshape(counted.shape)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("task", TASKS)
def test_a_model_has_the_head_of_its_task_alone(task: str) -> None:
    model = task_model(task)
    parts = {name.split(".")[0] for name in model.state_dict()} - {"encoder", "pooler"}
    assert parts == ({model.config.heads.task_head} if task != "embed" else set())


@pytest.mark.parametrize(
    ("kind", "transforms"), [("bert", False), ("roberta", False), ("albert", False), ("modern", True)]
)
@pytest.mark.parametrize("task", ["tag", "answer"])
def test_a_head_over_tokens_has_a_transform_in_the_modern_family_alone(kind: str, task: str, transforms: bool) -> None:
    names = {name for name in task_model(task, kind).state_dict() if not name.startswith("encoder.")}
    assert any("transform" in name for name in names) == transforms
    assert not any(name.startswith("pooler.") for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_acts_before_the_last_projection_of_a_head_over_tokens(kind: str) -> None:
    model = task_model("tag", kind, classifier_dropout=0.5)
    head = model.token_classifier
    assert head is not None
    hidden = torch.randn(200, 16)
    exact = head.eval()(hidden)
    torch.testing.assert_close(exact, head.output(head.transform(hidden)))
    assert not torch.allclose(head.train()(hidden), exact)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda model, hidden, tokens: model.classify(hidden, tokens), r"heads\.labels="),
        (lambda model, hidden, tokens: model.tag(hidden), 'heads.task="tag"'),
        (lambda model, hidden, tokens: model.answer_spans(hidden), 'heads.task="answer"'),
    ],
)
def test_a_model_without_a_head_says_how_to_get_one(call: object, said: str) -> None:
    model = small_model()
    tokens = packed(sequences([4]))
    with pytest.raises(ValueError, match=said):
        call(model, model.encoder.packed(tokens), tokens)  # pyright: ignore[reportCallIssue]


REFERENCES = {"mean": lambda rows: rows.mean(0), "first": lambda rows: rows[0], "max": lambda rows: rows.max(0)}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("pooling", REFERENCES)
def test_an_embedding_is_that_of_each_sequence_and_leaves_filling_out(pooling: str, dtype: torch.dtype) -> None:
    lengths = [4, 1, 300]
    tokens = packed(sequences(lengths), multiple=16)
    # All below zero: what begins at zero, or reads the filling, has a larger maximum.
    hidden = torch.rand(len(tokens.token_ids), 3, generator=torch.Generator().manual_seed(0)) - 2.0
    hidden[tokens.num_tokens :] = 100.0
    hidden = hidden.to(dtype)
    given = pooled_tokens(hidden, tokens, pooling)  # pyright: ignore[reportArgumentType]
    assert given.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    exact = hidden.double().numpy()
    expected = [REFERENCES[pooling](rows) for rows in np.split(exact[:305], [4, 5])]
    torch.testing.assert_close(given.double().numpy(), np.array(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize("pooling", REFERENCES)
def test_an_embedding_has_length_one_where_the_config_says_so(pooling: str) -> None:
    plain, normal = (task_model("embed", pooling=pooling, normalize=normalize).eval() for normalize in (False, True))
    tokens = packed(sequences(LENGTHS))
    lengths = outputs_of(plain, tokens).norm(dim=1, keepdim=True)
    torch.testing.assert_close(outputs_of(normal, tokens), outputs_of(plain, tokens) / lengths)
    assert not torch.allclose(lengths, torch.ones_like(lengths))


@pytest.mark.parametrize("task", TASKS)
def test_outputs_do_not_depend_on_neighbours(task: str) -> None:
    model = task_model(task).eval()
    rows = sequences(LENGTHS)
    together = outputs_of(model, packed(rows, multiple=16))
    bounds = np.cumsum([0, *LENGTHS])
    for number, row in enumerate(rows):
        alone = outputs_of(model, packed([row]))
        among = together[bounds[number] : bounds[number + 1]] if task in ("tag", "answer") else together[number, None]
        torch.testing.assert_close(alone, among, atol=1e-5, rtol=0)
