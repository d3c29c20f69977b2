"""The data of a fine-tuning: files become rows to train on and to validate on, and what stands out in them is said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.classification import grouped_split, stratified_split
from bertsmith.examples.data_look import (
    counts_note,
    cut_note,
    length_note,
    long_word_note,
    row_lengths,
    validation_label_notes,
)
from bertsmith.examples.repeated_rows import (
    contradiction_note,
    overlap_note,
    refuse_contradictions,
    refuse_overlap,
    refuse_repeats,
)
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import MissingColumn, named_columns
from bertsmith.examples.task_examples import TaskExamples
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import HeadsConfig
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_batch_size
from bertsmith.recipes.finetuning.task import Grouped, ReadForLabels, Task, TaskRows
from bertsmith.text.arrow_files import dataset_files, is_dataset_folder
from bertsmith.text.separated import separator_note
from bertsmith.text.shown import counted, counted_of, on_one_line
from bertsmith.text.tables import table_sha256
from bertsmith.tokenization.tokenizer import Tokenizer

_SPLIT_SEED = 15
"""The rows that are held out are the same whatever the run's seed, so that scores of several seeds compare."""
_OPTIONS = OptionNames(skip_blank="--set data.blank_rows=skip")


@dataclass(frozen=True)
class TaskData:
    """What a model is trained and validated on."""

    labels: tuple[str, ...]
    train: TaskRows
    validation: TaskRows
    notes: tuple[str, ...]
    """What a person should know, a line each."""
    facts: dict[str, Any]
    """Sizes and sums, for the run's record."""


@dataclass(frozen=True)
class Examples:
    """Rows as token sequences."""

    train: TaskExamples
    validation: TaskExamples
    notes: tuple[str, ...]
    """How long they are, and what was cut."""


@dataclass(frozen=True)
class Loaded:
    """Rows as batches."""

    train: TaskLoader
    validation: TaskLoader
    notes: tuple[str, ...]
    """What a person should know of the batches, a line each."""


def task_data(task: Task, config: FinetuneConfig) -> TaskData:
    """Read the training file, and the validation file or a share held out of the training rows.

    Raises:
        InputError: if a file cannot be read, nothing can be learned from it, or validation has a label that training
            lacks.
    """
    rows = read_rows(task, task_file(config.train, "train"), config.data, like=None, options=_OPTIONS)
    labels = task.labels(rows)
    task.check(rows, labels)
    notes = [f"columns of {rows.path.name}: {rows.columns}", *rows.notes]
    facts = {"train_sha256": table_sha256(rows.path), "columns": rows.columns}
    if config.validation is not None:
        train = rows
        path = task_file(config.validation, "--validation")
        validation = _validation_rows(task, path, config.data, rows)
        task.check(validation, labels)
        facts["validation_sha256"] = table_sha256(path)
        notes += [f"{path.name}: {note}" for note in validation.notes]
    else:
        train, validation = _held_out(task, rows, labels, config.validation_share)
        held = counted_of(len(validation.items), len(rows.items), "row", "is held out", "are held out")
        notes.append(
            f"no --validation: {held}, {'of each label ' if labels else ''}about {config.validation_share:.0%}"
        )
    if isinstance(task, Grouped) and (note := _shared_note(task, train, validation)):
        notes.append(note)
    validation = replace(validation, held_out=True)
    files = (rows,) if config.validation is None else (rows, validation)
    if config.data.strict:
        for part in files:
            refuse_contradictions(part.path, part.items, _OPTIONS)
        if config.validation is None:
            refuse_repeats(rows.path, rows.items, _OPTIONS)
        else:
            refuse_overlap(validation.path, train.items, validation.items, _OPTIONS)
    found = task.facts(train, labels)
    notes += [*_notes(files, train, validation, (found, task.facts(validation, labels))), *task.notes(train, labels)]
    facts |= {"train_rows": len(train.items), "validation_rows": len(validation.items)}
    return TaskData(labels, train, validation, tuple(map(on_one_line, notes)), facts | found)


def read_rows(
    task: Task,
    path: Path,
    data: TableConfig,
    *,
    like: TaskRows | None,
    options: OptionNames,
    labels: Sequence[str] = (),
) -> TaskRows:
    """The rows of a file as `Task.read` gives them, told also what separates them where that is no comma.

    `labels` are those of a model that the rows are for, where there is one.
    """
    if labels and isinstance(task, ReadForLabels):
        rows = task.read_for(path, data, labels, options=options)
    else:
        rows = task.read(path, data, like=like, options=options)
    return replace(rows, columns=f"{rows.columns}{separator_note(path, data.encoding)}")


def _validation_rows(task: Task, path: Path, data: TableConfig, train: TaskRows) -> TaskRows:
    """The rows of a validation file, by the columns of the training file.

    Raises:
        InputError: as `Task.read`; for a column that only the training file told, with that file's name.
    """
    try:
        return read_rows(task, path, data, like=train, options=_OPTIONS)
    except MissingColumn as error:
        if error.column in (data.text, data.pair, *named_columns(data.label or ""), data.label):
            raise
        raise InputError(
            f"The validation file must have the columns that are read of {train.path.name}: {train.layout}",
            f"{path} with the columns {', '.join(error.names)}, and without {error.column}",
            "Give it these columns.",
        ) from None


def _held_out(task: Task, rows: TaskRows, labels: Sequence[str], share: float) -> tuple[TaskRows, TaskRows]:
    """Rows to train on, and a share to validate on."""
    strata = task.strata(rows, labels)
    if isinstance(task, Grouped):
        kept, held = grouped_split(strata, task.groups(rows), share=share, seed=_SPLIT_SEED)
    else:
        kept, held = stratified_split(strata, share=share, seed=_SPLIT_SEED)
    if not len(held):
        raise InputError(
            "There must be rows to validate on",
            f"{len(rows.items)} rows in {rows.path}, none of whose labels has two",
            "Give a file with --validation, or more rows.",
        )
    return rows.some(kept), rows.some(held)


def _shared_note(task: Grouped, train: TaskRows, validation: TaskRows) -> str | None:
    """A line about validation rows that are about what training rows are about too; None without any."""
    known = set(task.groups(train))
    shared = sum(group in known for group in task.groups(validation))
    if not shared:
        return None
    about = "about a text that training has"
    found = counted_of(shared, len(validation.items), "validation row", f"is {about}", f"are {about}")
    return f"{found}, which makes scores look better than they are"


def _notes(
    files: Sequence[TaskRows], train: TaskRows, validation: TaskRows, facts: tuple[dict[str, Any], dict[str, Any]]
) -> list[str]:
    """What stands out in rows of any task, in the files as they were read and in the parts that were made of them."""
    counts = [part.get("label_counts", {}) for part in facts]
    notes = [
        counts_note("training", len(train.items), counts[0]),
        counts_note("validation", len(validation.items), counts[1]),
    ]
    for part in files:
        if note := contradiction_note(part.items):
            notes.append(f"{part.path.name}: {note}")
    if note := overlap_note(train.items, validation.items):
        notes.append(note)
    return notes + (validation_label_notes(counts[1]) if counts[1] else [])


def task_file(name: str, option: str) -> Path:
    """The file, or the folder of a saved data set's split, that was named.

    Raises:
        InputError: if there is none, or a folder holds something else.
    """
    path = Path(name)
    if path.is_dir() and is_dataset_folder(path):
        dataset_files(path)
    elif not path.is_file():
        what = "a folder that holds no saved data set" if path.is_dir() else "no such file"
        raise InputError(f"{option} must name a file of rows", f"{name}, {what}", "Check the path.")
    return path


def examples_of(
    task: Task, data: TaskData, tokenizer: Tokenizer, config: FinetuneConfig, *, heads: HeadsConfig, max_length: int
) -> Examples:
    """Both parts as token sequences."""
    examples: list[TaskExamples] = []
    notes: list[str] = []
    for name, rows in (("training", data.train), ("validation", data.validation)):
        found = task.examples(
            rows, data.labels, tokenizer, max_length=max_length, long_texts=config.long_texts, heads=heads
        )
        is_whole = not found.num_cut and (len(found) == len(rows.items) or found.group_starts is not None)
        lengths = found.lengths if is_whole else row_lengths(rows.items, tokenizer, apart=config.task == "embed")
        notes.append(length_note(name, lengths))
        if note := cut_note(found.num_cut, len(rows.items), max_length, config.long_texts):
            notes.append(f"{name}: {note}")
        if note := long_word_note(rows.items, tokenizer):
            notes.append(f"{name}: {note}")
        notes += [f"{name}: {note}" for note in found.notes]
        if len(found) > len(rows.items) and found.group_starts is None:
            notes.append(f"{name}: {counted(len(rows.items), 'row is', 'rows are')} read in {len(found):,} windows")
        examples.append(found)
    return Examples(examples[0], examples[1], tuple(notes))


def loaded(examples: Examples, config: FinetuneConfig, *, num_rows: int) -> Loaded:
    """Both parts as batches.

    Args:
        examples: the parts.
        config: says how large batches are, and what decides their order.
        num_rows: rows to train on.
    """
    train, validation = (
        TaskLoader(
            part,
            batch_size=config.training.batch_size or default_batch_size(num_rows, config.task),
            micro_batch_tokens=config.training.micro_batch_tokens,
            seed=config.training.seed,
        )
        for part in (examples.train, examples.validation)
    )
    notes: list[str] = []
    if config.task == "embed" and (parts := len(train.micro_batches(0))) > 1:
        notes.append(
            f"a batch is cut into {parts} parts of {config.training.micro_batch_tokens:,} tokens, and texts are "
            "compared within a part alone: a larger training.micro_batch_tokens or a smaller --max-length lets them "
            "see more"
        )
    return Loaded(train, validation, tuple(notes))
