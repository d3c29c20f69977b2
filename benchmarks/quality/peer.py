"""Fine-tuning with transformers' own Trainer, written as its users write it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from torch.utils.data import Dataset
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from benchmarks.quality.rows import Answerable, Labelled, Tagged

_STRIDE = 128
_IGNORED = -100


@dataclass(frozen=True)
class PeerSettings:
    """What the Trainer is told; all else stays at its default."""

    seed: int
    max_length: int
    bf16: bool


def trainer_defaults() -> dict[str, Any]:
    """What the Trainer does by itself, as settings of a fine-tuning here; its rate falls in a line too."""
    return {
        "length.epochs": TrainingArguments.num_train_epochs,
        "training.batch_size": TrainingArguments.per_device_train_batch_size,
        "training.optimizer.learning_rate": TrainingArguments.learning_rate,
        "training.optimizer.weight_decay": TrainingArguments.weight_decay,
        "training.optimizer.beta1": TrainingArguments.adam_beta1,
        "training.optimizer.beta2": TrainingArguments.adam_beta2,
        "training.optimizer.eps": TrainingArguments.adam_epsilon,
        "training.optimizer.layer_decay": 1.0,
        "training.optimizer.clip_norm": TrainingArguments.max_grad_norm,
        "training.schedule.warmup_share": 0.0,
        "training.keep": "last",
        "training.average_share": 0.0,
    }


class _Rows(Dataset[dict[str, Any]]):
    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self._rows[number]


def train_peer(
    task: str,
    rows: Sequence[Labelled] | Sequence[Tagged] | Sequence[Answerable],
    labels: Sequence[str],
    model: Path,
    out: Path,
    settings: PeerSettings,
) -> int:
    """Train, or go on training, and write a model folder; returns the number of steps."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.model_max_length = settings.max_length
    names = {
        "classify": "AutoModelForSequenceClassification",
        "tag": "AutoModelForTokenClassification",
        "answer": "AutoModelForQuestionAnswering",
    }
    by_name = {} if task == "answer" else {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }  # fmt: skip
    transformers.set_seed(settings.seed)  # The new head is drawn before the Trainer sets it.
    peer = getattr(transformers, names[task]).from_pretrained(model, **by_name)
    made = {"classify": _classified, "tag": _tagged, "answer": _answerable}[task](
        rows, labels, tokenizer, settings.max_length
    )
    collate = (
        transformers.DataCollatorForTokenClassification(tokenizer)
        if task == "tag"
        else DataCollatorWithPadding(tokenizer)
    )
    arguments = TrainingArguments(
        output_dir=str(out / "trainer"),
        use_cpu=True,
        bf16=settings.bf16,
        seed=settings.seed,
        report_to=[],
        save_steps=1_000,
        save_total_limit=1,
        disable_tqdm=True,
    )
    trainer = Trainer(model=peer, args=arguments, train_dataset=_Rows(made), data_collator=collate)
    checkpoints = Path(str(arguments.output_dir))
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(checkpoints)) if checkpoints.is_dir() else None)
    trainer.save_model(str(out))
    tokenizer.save_pretrained(str(out))
    return trainer.state.global_step


def _classified(
    rows: Sequence[Labelled], labels: Sequence[str], tokenizer: Any, max_length: int
) -> list[dict[str, Any]]:
    encoded = tokenizer([row.text for row in rows], truncation=True, max_length=max_length)
    places = {label: number for number, label in enumerate(labels)}
    return [
        {name: encoded[name][number] for name in encoded} | {"labels": places[row.label]}
        for number, row in enumerate(rows)
    ]


def _tagged(rows: Sequence[Tagged], labels: Sequence[str], tokenizer: Any, max_length: int) -> list[dict[str, Any]]:
    encoded = tokenizer(
        [list(row.words) for row in rows], is_split_into_words=True, truncation=True, max_length=max_length
    )
    places = {label: number for number, label in enumerate(labels)}
    made: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        words = encoded.word_ids(number)
        found = [
            _IGNORED if word is None or word == before else places[row.tags[word]]
            for word, before in zip(words, [None, *words], strict=False)
        ]
        made.append({name: encoded[name][number] for name in encoded} | {"labels": found})
    return made


def _answerable(
    rows: Sequence[Answerable], labels: Sequence[str], tokenizer: Any, max_length: int
) -> list[dict[str, Any]]:
    encoded = tokenizer(
        [row.question for row in rows],
        [row.context for row in rows],
        truncation="only_second",
        max_length=max_length,
        stride=_STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    owners = encoded.pop("overflow_to_sample_mapping")
    offsets = encoded.pop("offset_mapping")
    made: list[dict[str, Any]] = []
    for number, owner in enumerate(owners):
        row, sides = rows[owner], np.array([-1 if side is None else side for side in encoded.sequence_ids(number)])
        spans = np.array(offsets[number])
        start, end = row.start, row.start + len(row.answer)
        inside = np.flatnonzero((sides == 1) & (spans[:, 1] > start) & (spans[:, 0] < end))
        context = np.flatnonzero(sides == 1)
        whole = len(inside) > 0 and spans[context[0], 0] <= start and spans[context[-1], 1] >= end
        first, last = (int(inside[0]), int(inside[-1])) if whole else (0, 0)
        features = {name: encoded[name][number] for name in encoded}
        made.append(features | {"start_positions": first, "end_positions": last})
    return made
