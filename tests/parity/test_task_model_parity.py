"""A `TaskModel` called with labels gives the loss and the logits of the reference's class, and the same gradients."""

from pathlib import Path
from typing import Any

import pytest
import torch
from random_models import LABELS as CLASSES
from random_models import Inputs, enlarge, random_config, random_inputs
from reference_models import named_for, opener
from test_task_head_parity import FAMILIES, from_the_left, task_config
from torch import Tensor

from bertsmith import TaskModel
from bertsmith.folders.config_json import architecture
from bertsmith.folders.model_folder import write_model
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.model.config import reads_pooler
from bertsmith.tokenization import Tokenizer

JOBS = ("fill", "classify", "multilabel", "regress", "choose", "tag", "answer")
NUMBERS = (1, 2)


def job_config(kind: str, job: str, number: int) -> ModelConfig:
    """A random encoder with the head of a job."""
    if job not in ("fill", "classify"):
        return task_config(kind, job, number)
    encoder = random_config(kind, number).encoder
    fills = {"tie_embeddings": bool(number % 2)}
    classes = {
        "masked_language_model": False,
        "labels": CLASSES,
        "pooler": reads_pooler(encoder.family, "classify"),
    }
    return ModelConfig(encoder=encoder, heads=HeadsConfig.parse(fills if job == "fill" else classes, where="a case"))


def made_labels(job: str, config: ModelConfig, inputs: Inputs) -> Tensor:
    """Labels as a `TaskModel` takes them; of tokens every second one is asked."""
    generator = torch.Generator().manual_seed(0)
    rows, length = inputs.token_ids.shape
    count = config.encoder.vocab_size if job == "fill" else config.heads.num_outputs
    match job:
        case "fill" | "tag":
            labels = torch.randint(count, (rows, length), generator=generator)
            asked = inputs.real & (torch.arange(length) % 2 == 0)
            return labels.masked_fill(~asked, -100)
        case "multilabel":
            return torch.randint(2, (rows, count), generator=generator).float()
        case "regress":
            return torch.randn(rows, generator=generator)
        case "answer":
            return torch.randint(length, (rows, 2), generator=generator).sort(1).values
        case "choose":
            return torch.tensor([rows - 1])
        case _:
            return torch.randint(count, (rows,), generator=generator)


def theirs_of(job: str, model: Any, inputs: Inputs, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and logits of the reference's class."""
    named: dict[str, Any] = named_for(model, inputs)
    if job == "choose":
        named = {name: value[None] for name, value in named.items()}
    if job == "answer":
        found = model(**named, start_positions=labels[:, 0], end_positions=labels[:, 1])
        return found.loss, torch.stack([found.start_logits, found.end_logits], -1)
    found = model(**named, labels=labels)
    return found.loss, found.logits


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", FAMILIES)
def test_loss_logits_and_gradient_are_those_of_transformers(
    kind: str, job: str, number: int, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    config = job_config(kind, job, number)
    made = new_model(config, seed=number)
    enlarge(made, number)
    write_model(tmp_path, made, tiny_tokenizer)
    theirs = opener(architecture(config) or "").from_pretrained(tmp_path).eval()
    inputs = from_the_left(random_inputs(config.encoder, number))
    if job == "answer":
        # There the softmax runs over padding too, so the losses are the same where there is none.
        whole = inputs.real.all(1)
        inputs = Inputs(inputs.token_ids[whole], inputs.real[whole], inputs.segment_ids[whole])
    labels = made_labels(job, config, inputs)
    ours = TaskModel.from_folder(tmp_path)
    shown = [value[None] if job == "choose" else value for value in (inputs.token_ids, inputs.real, inputs.segment_ids)]
    found = ours(*shown, labels=labels)
    loss, logits = theirs_of(job, theirs, inputs, labels)
    torch.testing.assert_close(found.loss, loss, atol=1e-5, rtol=1e-5)
    assert found.logits.shape == logits.shape
    real = inputs.real if job in ("fill", "tag", "answer") else torch.ones(len(logits), dtype=torch.bool)
    torch.testing.assert_close(found.logits[real], logits[real], atol=1e-5, rtol=1e-5)
    found.loss.backward()
    loss.backward()
    given = ours.model.token_embedding.weight.grad
    expected = theirs.get_input_embeddings().weight.grad
    assert given is not None
    # The reference never trains the vector of its padding token, which here is one of the tokens.
    others = torch.arange(len(given)) != config.encoder.pad_token_id
    torch.testing.assert_close(given[others], expected[others], atol=1e-4, rtol=1e-3)
