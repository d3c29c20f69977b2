"""Evaluating a fine-tuned model on rows of its task."""

from dataclasses import replace
from pathlib import Path

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.examples.data_look import cut_note, long_word_note
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import refuse_unlike
from bertsmith.foundation.errors import InputError
from bertsmith.inference.task_outputs import HEADS, batch_outputs
from bertsmith.model.heads import Model
from bertsmith.recipes.finetuning.data import read_rows, task_file
from bertsmith.recipes.finetuning.task import MOST_ERRORS
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.finetuning.tasks.task_rows import has_pairs
from bertsmith.recipes.results import Report
from bertsmith.tokenization.tokenizer import Tokenizer

_BATCH_TOKENS = 16_384


def evaluate_task(
    folder: Path,
    source: str | Path,
    opened: tuple[Model, Tokenizer, Device],
    *,
    max_length: int | None,
    table: TableConfig,
) -> Report:
    """Scores of a fine-tuned model on the rows of a file.

    Args:
        folder: the model's folder.
        source: the file.
        opened: the model, its tokenizer and where it runs.
        max_length: most tokens of a sequence; as in training where not given.
        table: how the file is read.

    Returns:
        a report whose metrics are those of the task's `evaluation`, with ``num_errors``, of which ``worst_errors`` are
        the first 20, and ``notes`` about the data.

    Raises:
        InputError: if the file cannot be read, or holds a label that the model does not know.
    """
    model, tokenizer, device = opened
    heads, positions = model.config.heads, model.config.encoder.num_positions
    length = max_length or tokenizer.longest_sequence(positions)
    if not 8 <= length <= positions:
        raise InputError(
            f"--max-length must lie between 8 and the positions of the model, {positions}",
            length,
            "Leave it out to use what the model was trained with.",
        )
    task = TASKS[heads.task or "classify"]
    path = task_file(str(source), "evaluate")
    read = read_rows(task, path, table, like=None, options=OptionNames(), labels=heads.labels)
    rows = replace(read, held_out=True)
    if heads.pairs is not None:
        refuse_unlike(heads.pairs, has_pairs(rows), f"{rows.path}, with {rows.columns}", OptionNames())
    task.check(rows, heads.labels)
    long_texts = "windows" if heads.windows else tokenizer.long_texts
    examples = task.examples(rows, heads.labels, tokenizer, max_length=length, long_texts=long_texts, heads=heads)
    loader = TaskLoader(examples, batch_size=len(examples), micro_batch_tokens=_BATCH_TOKENS, seed=0)
    outputs = batch_outputs(model, loader.in_order(), device, HEADS[task.name])
    looks = (cut_note(examples.num_cut, len(rows.items), length, long_texts), long_word_note(rows.items, tokenizer))
    notes = [f"columns of {rows.path.name}: {rows.columns}", *rows.notes, *filter(None, looks), *examples.notes]
    evaluation = task.evaluation(outputs, examples, rows, heads, most_errors=None)
    errors = tuple(evaluation["worst_errors"])
    told = {"worst_errors": list(errors[:MOST_ERRORS]), "num_errors": len(errors)}
    return Report(folder, Path(source), evaluation | told | {"precision": device.precision, "notes": notes}, errors)
