"""A model with a head as a torch module: called with labels it gives a loss, so that any loop can train it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.folders.model_folder import read_model, read_tokenizer, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.inference.engine import Job, job_of
from bertsmith.inference.task_outputs import HEADS
from bertsmith.model import HeadsConfig, Model
from bertsmith.objectives.answering import Answering
from bertsmith.objectives.choice import Choice
from bertsmith.objectives.classification import Classification
from bertsmith.objectives.masked_language_model import masked_tokens_report
from bertsmith.objectives.multilabel import Multilabelling
from bertsmith.objectives.regression import Regression, rescale
from bertsmith.objectives.report import Objective
from bertsmith.objectives.tagging import Tagging
from bertsmith.recipes.finetuning.start_model import open_source, start_model
from bertsmith.recipes.own_loop.padded import Padded, whole
from bertsmith.recipes.own_loop.task_batch import Labelled
from bertsmith.recipes.predict import model_folder_of
from bertsmith.tokenization.tokenizer import Tokenizer

_OBJECTIVES: dict[Job, Objective] = {
    "classify": Classification(),
    "multilabel": Multilabelling(),
    "regress": Regression(),
    "choose": Choice(),
    "tag": Tagging(),
    "answer": Answering(),
}
_DROPOUT = 0.1


@dataclass(frozen=True)
class TaskOutput:
    """What a `TaskModel` gives."""

    loss: Float[Tensor, ""] | None
    """In nats, or for regress the mean squared error; carries the gradient. None where no labels were given."""
    logits: Float[Tensor, "..."]
    """Scores before softmax or sigmoid; their shape is that of `TaskModel`'s table."""


class TaskModel(nn.Module):
    """A model with a head, for a training loop of one's own: ``model(token_ids, …, labels=labels).loss.backward()``.

    The loss is that of `bertsmith.finetune` and `bertsmith.pretrain`: a mean over what is asked. By job, labels and
    logits are:

    ============  ==========================================================  ============================
    job           labels                                                      logits
    ============  ==========================================================  ============================
    classify      ``[batch]``, number of the class                            ``[batch, labels]``
    multilabel    ``[batch, labels]``, 1 for each that is given, else 0       ``[batch, labels]``
    regress       ``[batch]``, values                                         ``[batch, 1]``, values
    choose        ``[batch]``, number of the right choice                     ``[batch, choices]``
    tag           ``[batch, sequence]``, -100 where nothing is asked          ``[batch, sequence, labels]``
    answer        ``[batch, 2]``, columns of its first and last token, or     ``[batch, sequence, 2]``
                  both -100
    fill          ``[batch, sequence]``, the true token where one is hidden,  ``[batch, sequence,
                  else -100                                                   vocabulary]``
    ============  ==========================================================  ============================

    For choose all that is given has a dimension more: ``[batch, choices, sequence]``. Padding has logits 0; for answer
    minus infinity, since no answer starts there, and so padding takes no part in the loss either, which in
    transformers it does. Where a batch asks for nothing, the loss is 0.

    fill makes the scores of every token over the whole vocabulary, which a loss does not need and `bertsmith.pretrain`
    never holds.

    Args:
        model: an encoder with a head.
        tokenizer: the one it was trained with; `save` writes it.
        notes: what a person should know of how the model was made.

    Raises:
        InputError: if the model has no head whose loss labels decide.
    """

    def __init__(self, model: Model, tokenizer: Tokenizer, notes: Sequence[str] = ()) -> None:
        super().__init__()
        _refuse_without_loss(model)
        heads = model.config.heads
        if heads.value_scale is not None:
            # A checkpoint's head gives distances from the mean; here it is to give values.
            rescale(model, heads.value_scale, None)
            heads = heads.model_copy(update={"value_scale": None})
            model.config = model.config.model_copy(update={"heads": heads})
        self.model = model
        self.tokenizer = tokenizer
        self.notes = tuple(notes)
        self.job: Job = job_of(model.config)
        """What the model is for: the name of the command that uses it."""

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        *,
        task: str | None = None,
        labels: Sequence[str] = (),
        dropout: float | None = None,
        seed: int = 0,
    ) -> "TaskModel":
        """Open a model with the head that it has, or begin a new head on its encoder; in eval mode and on the CPU.

        Args:
            folder: a model folder, from here or from the Hub, or the folder of a finished run.
            task: where given, the task of the new head: ``classify``, ``multilabel``, ``regress``, ``choose``, ``tag``
                or ``answer``. A head of the same task and labels is gone on with. Where not given, the model's own.
            labels: names of the new head's outputs in their order, for classify, multilabel and tag.
            dropout: with `task`, in all places of the encoder and before the head; 0.1 where not given.
            seed: decides the new weights.

        Raises:
            InputError: if the folder holds no model, the model has no head and no task is given, or task and labels do
                not fit each other.
        """
        if task is None:
            if labels or dropout is not None:
                given = "labels" if labels else "dropout"
                raise InputError(f"{given} belong to a new head, which needs its task", given, 'Add task="classify".')
            path = model_folder_of(folder)
            read = read_model(path)
            tokenizer = read_tokenizer(path, vocab_size=read.model.config.encoder.vocab_size)
            return cls(read.model, tokenizer, read.notes).eval()
        if isinstance(labels, str):
            raise InputError("labels must be a list of names", repr(labels), 'For example ("no", "yes").')
        heads = {"task": task, "labels": tuple(labels)}
        HeadsConfig.parse({"masked_language_model": False} | heads, where="the arguments")
        rate = _DROPOUT if dropout is None else dropout
        if not 0.0 <= rate < 1.0:
            raise InputError("dropout must lie in [0, 1)", dropout, "Use 0.1, for example.")
        source = open_source(str(model_folder_of(folder)))
        model, notes = start_model(source, heads, dropout=rate, fresh_weights=False, seed=seed)
        return cls(model, source.tokenizer, notes).eval()

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the head's outputs in their order; none where the job has none."""
        return self.model.config.heads.labels

    def forward(
        self,
        token_ids: Tensor,
        attention_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> TaskOutput:
        """Score padded sequences, and compare with labels where they are given.

        Args:
            token_ids: whole numbers ``[batch, sequence]``; for choose ``[batch, choices, sequence]``.
            attention_mask: of the same shape, not 0 where a token is real; all are where not given.
            segment_ids: of the same shape; 0 where not given.
            labels: as the class says for each job.

        Raises:
            InputError: for another shape or type, an id or a label that the model does not have, or a sequence that is
                longer than its positions or has no token.
        """
        sequences = self._sequences(token_ids, attention_mask, segment_ids)
        if self.job == "fill":
            return self._filled(sequences, labels)
        if labels is None:
            return TaskOutput(None, self._shaped(HEADS[self.job](self.model, sequences.packed), sequences))
        batch = sequences.batch(labels)
        with self._heard() as heard:
            report = _OBJECTIVES[self.job].report(self.model, batch, with_hits=False)
        return TaskOutput(report.loss(report.counts), self._shaped(heard[-1], sequences))

    def save(self, folder: str | Path) -> Path:
        """Write a model folder with the tokenizer, which `bertsmith.load`, the commands and transformers open.

        Raises:
            InputError: if there is something at `folder` already, or the disk is full.
        """
        path = Path(folder)
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise InputError("A model must be saved into a folder of its own", path, "Choose another place.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(path, seal={"kind": "model"}) as temporary:
            write_model(temporary, self.model, self.tokenizer)
        return path

    def _sequences(self, token_ids: Tensor, attention_mask: Tensor | None, segment_ids: Tensor | None) -> Labelled:
        encoder, num_choices = self.model.config.encoder, None
        given: list[Any] = [token_ids, attention_mask, segment_ids]
        if self.job == "choose":
            token_ids = whole("token_ids", token_ids)
            if token_ids.ndim != 3 or not token_ids.shape[1]:
                raise InputError(
                    "token_ids must be [batch, choices, sequence] to choose",
                    f"shape {tuple(token_ids.shape)}",
                    "Stack the choices of each row.",
                )
            num_choices = token_ids.shape[1]
            given = [value.flatten(0, 1) if isinstance(value, Tensor) and value.ndim == 3 else value for value in given]
        padded = Padded.checked(encoder, *given)
        padded.refuse_empty()
        return Labelled(self.job, self.model.config, padded, padded.packed(encoder), num_choices)

    def _filled(self, sequences: Labelled, labels: Tensor | None) -> TaskOutput:
        batch = None if labels is None else sequences.batch(labels)
        hidden = self.model.head_input(sequences.packed)
        head = self.model.masked_language_model
        assert head is not None  # What has no head was refused when this was made.
        loss = None
        if batch is not None:
            report = masked_tokens_report(self.model, hidden, batch, with_hits=False)
            loss = report.loss(report.counts)
        return TaskOutput(loss, self._shaped(head(hidden), sequences))

    def _shaped(self, outputs: Tensor, sequences: Labelled) -> Tensor:
        outputs = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        match self.job:
            case "fill" | "tag":
                return sequences.given.padded(outputs)
            case "answer":
                return sequences.given.padded(outputs, -torch.inf)
            case "choose":
                return outputs.reshape(-1, sequences.num_choices or 1)
            case _:
                return outputs

    @contextmanager
    def _heard(self) -> Iterator[list[Any]]:
        """What the head says meanwhile: the logits of the very pass that the loss is of, dropout included."""
        model = self.model
        heard: list[Any] = []
        head = model.classifier or model.token_classifier or model.spans
        assert head is not None
        hook = head.register_forward_hook(lambda _module, _inputs, output: heard.append(output))
        try:
            yield heard
        finally:
            hook.remove()


def _refuse_without_loss(model: Model) -> None:
    encoder, job = model.config.encoder, job_of(model.config)
    if job == "embed":
        trained = model.config.heads.task == "embed"
        raise InputError(
            "A TaskModel needs a head whose loss labels decide",
            "an embedder, which learns from pairs" if trained else "an encoder without a head",
            'Begin one: TaskModel.from_folder(folder, task="classify", labels=("no", "yes")).',
        )
    if job == "fill" and (encoder.causal or encoder.family == "elmo"):
        raise InputError(
            "A TaskModel of a language model fills masks",
            "a causal model" if encoder.causal else "an ELMo",
            "Begin a head of a task on it with task=…, or train it by bertsmith.pretrain.",
        )
