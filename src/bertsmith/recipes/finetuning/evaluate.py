"""Evaluating a classifier on labelled rows."""

from pathlib import Path

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.examples.classification import label_ids
from bertsmith.examples.data_look import cut_note, table_notes
from bertsmith.examples.task_tables import TableConfig, read_task_table
from bertsmith.foundation.errors import InputError
from bertsmith.inference.sequence_outputs import batch_log_probabilities
from bertsmith.model.heads import Model
from bertsmith.recipes.finetuning.data import LabelledRows, task_file
from bertsmith.recipes.finetuning.evaluation import classification_evaluation
from bertsmith.recipes.results import Report
from bertsmith.tokenization.tokenizer import Tokenizer

_BATCH_TOKENS = 16_384


def evaluate_classifier(
    folder: Path,
    source: str | Path,
    opened: tuple[Model, Tokenizer, Device],
    *,
    max_length: int | None,
    table: TableConfig,
) -> Report:
    """Scores of a classifier on the rows of a file.

    Args:
        folder: the model's folder.
        source: the file.
        opened: the model, its tokenizer and where it runs.
        max_length: most tokens of a sequence; as in training where not given.
        table: how the file is read.

    Returns:
        a report whose metrics are those of `classification_evaluation`, with ``notes`` about the data.

    Raises:
        InputError: if the file cannot be read, or holds a label that the model does not know.
    """
    model, tokenizer, device = opened
    labels, positions = model.config.heads.labels, model.config.encoder.num_positions
    length = max_length or min(positions, tokenizer.model_max_length or positions)
    if not 8 <= length <= positions:
        raise InputError(
            f"--max-length must lie between 8 and the positions of the model, {positions}",
            length,
            "Leave it out to use what the model was trained with.",
        )
    rows = read_task_table(task_file(str(source), "evaluate"), table)
    data = LabelledRows(rows.rows, label_ids(rows, labels))
    examples = data.examples(tokenizer, max_length=length, long_texts=tokenizer.long_texts)
    loader = TaskLoader(examples, data.ids, batch_size=len(examples), micro_batch_tokens=_BATCH_TOKENS, seed=0)
    log_probabilities = batch_log_probabilities(model, loader.in_order(), device)
    cut = cut_note(examples.num_cut, len(examples), length, tokenizer.long_texts)
    notes = [f"columns of {rows.path.name}: {rows.columns}", *table_notes(rows), *([cut] if cut else [])]
    evaluation = classification_evaluation(log_probabilities, data, labels)
    return Report(folder, Path(source), evaluation | {"precision": device.precision, "notes": notes})
