"""The data of a fine-tuning: files become labelled token sequences, and what stands out in them is said."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.classification import label_counts, label_ids, labels_of, stratified_split
from bertsmith.examples.data_look import cut_note, label_notes, overlap_note, table_notes
from bertsmith.examples.task_examples import LongTexts, TaskExamples, task_examples
from bertsmith.examples.task_tables import OptionNames, TaskRow, TaskTable, read_task_table
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import sha256
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_batch_size
from bertsmith.tokenization.tokenizer import Tokenizer

_SPLIT_SEED = 15
"""The rows that are held out are the same whatever the run's seed, so that scores of several seeds compare."""
_OPTIONS = OptionNames(skip_blank="--set data.blank_rows=skip")


@dataclass(frozen=True)
class LabelledRows:
    """Rows with the class of each."""

    rows: tuple[TaskRow, ...]
    ids: Int[np.ndarray, " rows"]

    def examples(self, tokenizer: Tokenizer, *, max_length: int, long_texts: LongTexts) -> TaskExamples:
        """The rows as token sequences."""
        texts = [row.texts for row in self.rows]
        return task_examples(texts, tokenizer, max_length=max_length, long_texts=long_texts)


@dataclass(frozen=True)
class ClassificationData:
    """What a classifier is trained and validated on."""

    labels: tuple[str, ...]
    train: LabelledRows
    validation: LabelledRows
    notes: tuple[str, ...]
    """What a person should know, a line each."""
    facts: dict[str, Any]
    """Sizes and sums, for the run's record."""

    def with_labels(self, labels: tuple[str, ...]) -> "ClassificationData":
        """The same rows under the same labels in another order."""
        places = np.array([labels.index(name) for name in self.labels])
        return replace(
            self,
            labels=labels,
            train=replace(self.train, ids=places[self.train.ids]),
            validation=replace(self.validation, ids=places[self.validation.ids]),
        )


def classification_data(config: FinetuneConfig) -> ClassificationData:
    """Read the training file, and the validation file or a share held out of the training rows.

    Raises:
        InputError: if a file cannot be read, has one label alone, or validation has a label that training lacks.
    """
    table = read_task_table(task_file(config.train, "train"), config.data, options=_OPTIONS)
    labels = labels_of(table)
    ids = label_ids(table, labels)
    notes = [f"columns of {table.path.name}: {table.columns}", *table_notes(table)]
    facts = {"train_sha256": sha256(table.path), "columns": str(table.columns)}
    if config.validation is not None:
        train = LabelledRows(table.rows, ids)
        held_out = _validation_table(config, table)
        validation = LabelledRows(held_out.rows, label_ids(held_out, labels))
        facts["validation_sha256"] = sha256(held_out.path)
        if overlap := overlap_note(train.rows, validation.rows):
            notes.append(overlap)
    else:
        kept, held = stratified_split(ids, share=config.validation_share, seed=_SPLIT_SEED)
        train, validation = (LabelledRows(tuple(table.rows[row] for row in rows), ids[rows]) for rows in (kept, held))
        if not len(held):
            raise InputError(
                "There must be rows to validate on",
                f"{len(ids)} rows in {table.path}, none of whose labels has two",
                "Give a file with --validation, or more rows.",
            )
        notes.append(
            f"no --validation: {len(held):,} of {len(ids):,} rows are held out, of each label about "
            f"{config.validation_share:.0%}"
        )
        if overlap := overlap_note(train.rows, validation.rows):
            notes.append(overlap)
    counts = label_counts(train.ids, labels)
    notes += label_notes(counts)
    facts |= {"train_rows": len(train.rows), "validation_rows": len(validation.rows), "label_counts": counts}
    return ClassificationData(labels, train, validation, tuple(notes), facts)


def task_file(name: str, option: str) -> Path:
    """The file that was named.

    Raises:
        InputError: if there is none.
    """
    path = Path(name)
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise InputError(f"{option} must name a file of rows", f"{name}, {what}", "Check the path.")
    return path


def loaders(
    data: ClassificationData, tokenizer: Tokenizer, config: FinetuneConfig, *, max_length: int
) -> tuple[TaskLoader, TaskLoader, tuple[str, ...]]:
    """Loaders of the training and the validation rows, and what was cut of them."""
    found: list[TaskLoader] = []
    notes: list[str] = []
    for name, part in (("training", data.train), ("validation", data.validation)):
        examples = part.examples(tokenizer, max_length=max_length, long_texts=config.long_texts)
        if note := cut_note(examples.num_cut, len(examples), max_length, config.long_texts):
            notes.append(f"{name}: {note}")
        loader = TaskLoader(
            examples,
            part.ids,
            batch_size=config.training.batch_size or default_batch_size(len(data.train.rows)),
            micro_batch_tokens=config.training.micro_batch_tokens,
            seed=config.training.seed,
        )
        found.append(loader)
    return found[0], found[1], tuple(notes)


def _validation_table(config: FinetuneConfig, train: TaskTable) -> TaskTable:
    """The validation file, read by the columns that were found in the training file."""
    columns = train.columns
    named = config.data.model_copy(update={"text": columns.text, "pair": columns.pair, "label": columns.label})
    return read_task_table(task_file(str(config.validation), "--validation"), named, options=_OPTIONS)
