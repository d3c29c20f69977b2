"""Labels of padded sequences as the objectives take them, checked first."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.examples.targets import IGNORED
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Job
from bertsmith.model import ModelConfig
from bertsmith.model.packed import PackedTokens
from bertsmith.recipes.own_loop.padded import Padded, refuse_outside, whole


@dataclass(frozen=True)
class Labelled:
    """Sequences of which something may be asked."""

    job: Job
    config: ModelConfig
    given: Padded
    packed: PackedTokens
    num_choices: int | None = None
    """Of each question, where sequences are choices; these follow each other."""

    def batch(self, labels: Any) -> Batch:
        """What an objective takes.

        Args:
            labels: as `TaskModel` says for each job.

        Raises:
            InputError: for labels of another type or shape, or outside what the model knows.
        """
        if not isinstance(labels, Tensor):
            raise InputError("labels must be a tensor", type(labels).__name__, "Make one: torch.tensor(labels).")
        labels = labels.to(self.given.token_ids.device)
        none = self.given.token_ids.new_empty(0)
        if self.job == "fill":
            wanted = self._of_tokens(labels, self.config.encoder.vocab_size)
            positions = (wanted != IGNORED).nonzero()[:, 0]
            return Batch(self.packed, positions, wanted[positions], len(positions))
        starts = None
        if self.num_choices is not None:
            starts = torch.arange(0, len(self.given.real) + 1, self.num_choices, device=labels.device)
        return Batch(self.packed, none, none, 0, labels=self._labels(labels), group_starts=starts)

    def _labels(self, labels: Tensor) -> Tensor:
        rows, heads = len(self.given.real), self.config.heads
        match self.job:
            case "multilabel":
                _refuse_shape(
                    labels, (rows, heads.num_outputs), "[batch, labels]: 1 for each label that is given, or 0"
                )
                if not bool(((labels >= 0) & (labels <= 1)).all()):
                    raise InputError("labels must lie in [0, 1]", _range(labels), "Give 1 for a label, 0 for none.")
                return labels
            case "regress":
                labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
                _refuse_shape(labels, (rows,), "[batch]: a number for each sequence")
                if not bool(labels.isfinite().all()):
                    raise InputError("Values must be finite", _range(labels), "Leave such rows out.")
                return labels.float() if labels.dtype != torch.float64 else labels
            case "tag":
                return self._of_tokens(labels, heads.num_outputs)
            case "answer":
                return self._spans(labels)
            case _:
                grouped = self.num_choices is not None
                count, rows = (self.num_choices, rows // self.num_choices) if self.num_choices else (0, rows)
                _refuse_shape(labels, (rows,), f"[batch]: the number of the right {'choice' if grouped else 'class'}")
                refuse_outside("labels", _whole(labels), count or heads.num_outputs, "Count from 0.")
                return labels.long()

    def _of_tokens(self, labels: Tensor, count: int) -> Tensor:
        """Of each real token; padding must ask for nothing, or somebody's labels stand one place off."""
        given = self.given
        _refuse_shape(labels, tuple(given.real.shape), f"[batch, sequence], {IGNORED} where nothing is asked")
        labels = _whole(labels)
        if bool((labels[~given.real] != IGNORED).any()):
            raise InputError(
                f"The label of padding must be {IGNORED}", "a label where attention_mask is 0", "Move it to its token."
            )
        found = labels[given.real]
        refuse_outside("labels", found[found != IGNORED], count, f"Count from 0, and give {IGNORED} for no label.")
        return found

    def _spans(self, labels: Tensor) -> Tensor:
        """First and last token of each answer, as places in its sequence."""
        given = self.given
        _refuse_shape(
            labels, (len(given.real), 2), "[batch, 2]: the columns in which the answer's first and last token stand"
        )
        labels = _whole(labels)
        asked = labels[:, 0] != IGNORED
        if bool((asked != (labels[:, 1] != IGNORED)).any()):
            raise InputError(
                f"Start and end of an answer must both be given, or both be {IGNORED}", "one of them", "Give both."
            )
        refuse_outside("labels", labels[asked], given.real.shape[1], "Columns count from 0.")
        columns = labels.clamp(min=0)
        if not bool(given.real.gather(1, columns)[asked].all()) or bool((labels[asked, 0] > labels[asked, 1]).any()):
            raise InputError(
                "An answer must lie within the tokens, and not end before it starts",
                labels[asked].tolist()[:4],
                "Columns count from 0, and the last token belongs to the answer.",
            )
        return torch.where(asked[:, None], given.places.gather(1, columns), IGNORED)


def _refuse_shape(labels: Tensor, shape: tuple[int, ...], meaning: str) -> None:
    if tuple(labels.shape) != shape:
        raise InputError(f"labels must be {meaning}; here {list(shape)}", list(labels.shape), "Give others.")


def _whole(labels: Tensor) -> Tensor:
    return whole("labels", labels, "Convert them: labels.long().")


def _range(values: Tensor) -> str:
    return f"values from {float(values.min()):g} to {float(values.max()):g}"
