"""Evaluating a model on what it was trained to do: a language model on text, a fine-tuned one on rows of its task."""

from collections.abc import Callable
from pathlib import Path

from bertsmith.examples.table_config import TableConfig
from bertsmith.recipes.evaluation_files import refuse_unfit_folder, write_evaluation
from bertsmith.recipes.finetuning.evaluate import evaluate_task
from bertsmith.recipes.predict import model_folder_of, open_model
from bertsmith.recipes.pretraining.evaluate import evaluate_language_model
from bertsmith.recipes.results import Report
from bertsmith.text.documents import TextConfig


def evaluate_run(
    folder: str | Path,
    source: str | Path,
    *,
    max_length: int | None = None,
    text: TextConfig = TextConfig(),
    table: TableConfig = TableConfig(),
    device: str = "auto",
    precision: str = "auto",
    out: str | Path | None = None,
    notify: Callable[[str], None] = lambda message: None,
) -> Report:
    """Evaluate what a model does.

    A masked language model: loss, accuracy and perplexity on text, 15 % of it hidden by a fixed draw. A causal one or
    an ELMo: the same of every next token, and for the ELMo of every one before too. A fine-tuned
    model: the scores of its task, each class, the confusion counts and the worst errors, on labelled rows.

    Args:
        folder: a model folder or a run.
        source: a text file or folder, or a prepared corpus, whose validation part is then used; for a fine-tuned
            model, a file of rows.
        max_length: tokens of a sequence; the model's positions, 512 at most, where not given. For a fine-tuned
            model, what it was trained with.
        text: how text files are read.
        table: how a file of labelled rows is read.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``.
        out: a folder into which what was found is written, as `write_evaluation` does it.
        notify: is told in a line what of that could not be drawn.

    Raises:
        InputError: if the model has no head to evaluate, the text cannot be read, a label is unknown to the model, or
            `out` is a run or a model, or holds files of the names that would be written which no evaluation wrote, or
            `source` under one of them. Other files in it stay.
    """
    if out is not None:
        refuse_unfit_folder(Path(out), Path(source))
    path = model_folder_of(folder)
    opened = open_model(path, device=device, precision=precision)
    model, _, _ = opened
    if model.config.heads.task is not None:
        found = evaluate_task(path, source, opened, max_length=max_length, table=table)
    else:
        found = evaluate_language_model(path, source, opened, max_length=max_length, text=text)
    if out is not None:
        write_evaluation(Path(out), found, notify=notify)
    return found
