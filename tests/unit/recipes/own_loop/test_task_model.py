"""A model with a head gives a loss and logits, and any loop can train it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import bertsmith
from bertsmith import InputError, TaskModel
from bertsmith.model.encoder import pack_padded
from bertsmith.objectives.regression import sequence_values
from made_corpora import made_tokenizer
from made_heads import made_head
from made_predictors import made_items, made_task_folder
from made_tasks import made_encoder

TASKS = ("classify", "multilabel", "regress", "choose", "tag", "answer")
ROWS, LENGTH, CHOICES = 3, 9, 2


def made_inputs(task: str) -> dict[str, Tensor]:
    """A batch whose second row is padded, with labels."""
    generator = torch.Generator().manual_seed(0)
    shape = (ROWS, CHOICES, LENGTH) if task == "choose" else (ROWS, LENGTH)
    ids = torch.randint(5, made_tokenizer().vocab_size, shape, generator=generator)
    mask = torch.ones(shape, dtype=torch.int64)
    mask[1, ..., 6:] = 0
    tags = torch.full((ROWS, LENGTH), -100)
    tags[:, 1:4] = torch.tensor([0, 2, 1])
    labels: dict[str, Tensor] = {
        "classify": torch.tensor([0, 1, 1]),
        "multilabel": torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]),
        "regress": torch.tensor([0.5, -1.0, 3.0]),
        "choose": torch.tensor([1, 0, 1]),
        "tag": tags,
        "answer": torch.tensor([[1, 2], [-100, -100], [0, 0]]),
        "fill": tags,
    }
    return {"token_ids": ids, "attention_mask": mask, "labels": labels[task]}


SHAPES: dict[str, tuple[int, ...]] = {
    "classify": (ROWS, 2),
    "multilabel": (ROWS, 3),
    "regress": (ROWS, 1),
    "choose": (ROWS, CHOICES),
    "tag": (ROWS, LENGTH, 3),
    "answer": (ROWS, LENGTH, 2),
    "fill": (ROWS, LENGTH, made_tokenizer().vocab_size),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    work = tmp_path_factory.mktemp("models")
    return {"fill": made_encoder(work / "fill")} | {task: made_task_folder(task, work / task) for task in TASKS}


@pytest.mark.parametrize("job", SHAPES)
def test_labels_give_a_loss_and_logits_and_none_give_logits_alone(job: str, folders: dict[str, Path]) -> None:
    model, given = TaskModel.from_folder(folders[job]), made_inputs(job)
    assert not model.training
    found = model(**given)
    assert found.loss.ndim == 0
    assert found.loss > 0
    assert tuple(found.logits.shape) == SHAPES[job]
    alone = model(given["token_ids"], given["attention_mask"])
    assert alone.loss is None
    torch.testing.assert_close(alone.logits, found.logits)


@pytest.mark.parametrize("job", SHAPES)
def test_a_step_down_the_gradient_lowers_the_loss_and_reaches_the_encoder(job: str, folders: dict[str, Path]) -> None:
    model, given = TaskModel.from_folder(folders[job]).train(), made_inputs(job)
    before = model(**given).loss
    before.backward()
    assert model.model.encoder.embeddings.token.weight.grad.abs().sum() > 0  # pyright: ignore
    with torch.no_grad():
        for weight in model.parameters():
            if weight.grad is not None:
                weight -= 1e-3 * weight.grad
    assert model(**given).loss < before


def test_the_loss_is_that_of_the_very_logits_dropout_included(folders: dict[str, Path]) -> None:
    model = TaskModel.from_folder(folders["fill"], task="classify", labels=("no", "yes"), dropout=0.5).train()
    given = made_inputs("classify")
    found = model(**given)
    assert not torch.equal(found.logits, model(**given).logits)
    torch.testing.assert_close(found.loss, torch.nn.functional.cross_entropy(found.logits, given["labels"]))


@pytest.mark.parametrize("job", SHAPES)
def test_padding_changes_nothing(job: str, folders: dict[str, Path]) -> None:
    model, given = TaskModel.from_folder(folders[job]), made_inputs(job)
    other = dict(given)
    other["token_ids"] = given["token_ids"].masked_fill(given["attention_mask"] == 0, 10**9)
    torch.testing.assert_close(model(**other).loss, model(**given).loss)


@pytest.mark.parametrize("job", ["tag", "fill", "answer"])
def test_a_batch_that_asks_for_nothing_has_loss_0_and_no_gradient(job: str, folders: dict[str, Path]) -> None:
    model, given = TaskModel.from_folder(folders[job]), made_inputs(job)
    loss = model(**given | {"labels": torch.full_like(given["labels"], -100)}).loss
    assert loss == 0
    if loss.requires_grad:
        loss.backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in model.parameters())


def test_answers_are_told_by_columns_wherever_padding_stands(folders: dict[str, Path]) -> None:
    model, given = TaskModel.from_folder(folders["answer"]), made_inputs("answer")
    ids, labels = given["token_ids"][:1], given["labels"][:1]
    padded = torch.cat([torch.zeros_like(ids[:, :2]), ids], 1)
    mask = (torch.arange(padded.shape[1]) >= 2)[None]
    # Without learned positions the columns would not matter; with them they do, so only the place is looked at.
    found = model(padded, mask, labels=labels + 2)
    scores = found.logits[0].log_softmax(0)
    assert found.logits[0, :2].isneginf().all()
    torch.testing.assert_close(found.loss, -(scores[3, 0] + scores[4, 1]) / 2)


@pytest.mark.parametrize("task", TASKS)
def test_a_new_head_is_trained_saved_and_used(task: str, folders: dict[str, Path], tmp_path: Path) -> None:
    names = {"classify": ("no", "yes"), "multilabel": ("a", "b", "c"), "tag": ("O", "B-X", "I-X")}.get(task, ())
    model = TaskModel.from_folder(folders["fill"], task=task, labels=names, dropout=0.0, seed=1).train()
    assert model.labels == names
    assert any("pooler" in note for note in model.notes) == (task not in ("tag", "answer"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    given = made_inputs(task)
    losses: list[float] = []
    for _ in range(5):
        loss = model(**given).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0]
    folder = model.save(tmp_path / "saved" / "model")
    again = TaskModel.from_folder(folder)
    torch.testing.assert_close(again(**given).logits, model.eval()(**given).logits)
    assert len(bertsmith.load(folder, device="cpu")(made_items(task, 2))) == 2
    with pytest.raises(InputError, match="a folder of its own"):
        model.save(folder)


def test_a_new_head_depends_on_the_seed_alone(folders: dict[str, Path]) -> None:
    def weight(seed: int) -> Tensor:
        model = TaskModel.from_folder(folders["fill"], task="tag", labels=("O", "X"), seed=seed)
        return model.model.token_classifier.output.weight  # pyright: ignore

    assert torch.equal(weight(3), weight(3))
    assert not torch.equal(weight(3), weight(4))


@pytest.mark.parametrize(
    ("job", "change", "message"),
    [
        ("classify", {"labels": torch.tensor([0, 1, 2])}, r"labels must lie in \[0, 2\)\. Received: 2"),
        ("classify", {"labels": torch.tensor([0, 1])}, r"labels must be \[batch\].*Received: \[2\]"),
        ("classify", {"labels": torch.tensor([0.0, 1.0, 1.0])}, r"whole numbers.*float32.*labels\.long"),
        ("multilabel", {"labels": torch.full((3, 3), 2)}, r"\[0, 1\].*from 2 to 2"),
        ("multilabel", {"labels": torch.tensor([0, 1, 1])}, r"\[batch, labels\]"),
        ("regress", {"labels": torch.tensor([0.0, torch.nan, 1.0])}, r"finite"),
        ("choose", {"labels": torch.tensor([0, 2, 1])}, r"\[0, 2\)"),
        ("choose", {"token_ids": torch.ones(3, 9, dtype=torch.int64)}, r"\[batch, choices, sequence\]"),
        ("tag", {"labels": torch.zeros(3, 9, dtype=torch.int64)}, r"label of padding must be -100"),
        ("answer", {"labels": torch.tensor([[1, 2], [3, 7], [0, 0]])}, r"within the tokens"),
        ("answer", {"labels": torch.tensor([[2, 1], [0, 0], [0, 0]])}, r"not end before it starts"),
        ("answer", {"labels": torch.tensor([[1, -100], [0, 0], [0, 0]])}, r"both"),
        ("fill", {"labels": torch.full((3, 9), -1)}, r"padding must be -100"),
        ("classify", {"token_ids": torch.ones(9, dtype=torch.int64)}, r"\[batch, sequence\].*token_ids\[None\]"),
        ("classify", {"token_ids": torch.full((3, 9), 10**6)}, r"token_ids must lie in.*another tokenizer"),
        ("classify", {"token_ids": torch.ones(3, 9)}, r"whole numbers.*float32"),
        ("classify", {"attention_mask": torch.ones(3, 8)}, r"attention_mask must have the shape.*\(3, 8\)"),
        ("classify", {"attention_mask": torch.zeros(3, 9)}, r"must have a token.*row 0"),
        ("classify", {"segment_ids": torch.full((3, 9), 2)}, r"segment_ids must lie in \[0, 2\)"),
        ("classify", {"token_ids": torch.ones(3, 65, dtype=torch.int64)}, r"65 tokens, 64 positions"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    job: str, change: dict[str, Any], message: str, folders: dict[str, Path]
) -> None:
    model = TaskModel.from_folder(folders[job])
    with pytest.raises(InputError, match=message):
        model(**made_inputs(job) | change)


def test_what_has_no_head_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    embedder = made_task_folder("embed", tmp_path / "embedder")
    with pytest.raises(InputError, match=r"an embedder, which learns from pairs\. Begin one"):
        TaskModel.from_folder(embedder)
    for arguments, message in (
        ({"task": "clasify", "labels": ("a", "b")}, "Did you mean classify"),
        ({"task": "classify"}, "labels must be two at least"),
        ({"task": "classify", "labels": ("a",)}, "labels must be two at least"),
        ({"task": "regress", "labels": ("a",)}, "labels must be left out of task regress"),
        ({"task": "embed"}, "an embedder"),
        ({"labels": ("a", "b")}, "needs its task"),
        ({"task": "tag", "labels": "OX"}, "a list of names"),
        ({"task": "tag", "labels": ("O", "X"), "dropout": 1.0}, r"\[0, 1\)"),
    ):
        with pytest.raises(InputError, match=message):
            TaskModel.from_folder(folders["fill"], **arguments)  # pyright: ignore[reportArgumentType]


def test_the_head_of_a_checkpoint_in_training_gives_values_and_takes_them() -> None:
    scaled, given = made_head("regress", value_scale=(10.0, 4.0)).eval(), made_inputs("regress")
    real = given["attention_mask"].bool()
    packed = pack_padded(given["token_ids"], real, torch.zeros_like(given["token_ids"]))
    values = sequence_values(scaled, packed).detach()
    found = TaskModel(scaled, made_tokenizer())(**given)
    torch.testing.assert_close(found.logits, values, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(found.loss, (values[:, 0] - given["labels"]).square().mean(), atol=1e-3, rtol=1e-5)
