"""Evaluating a model on what it was trained to do: a language model on text, a fine-tuned one on rows of its task."""

from collections.abc import Callable
from pathlib import Path

from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.errors import InputError
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
        max_length: tokens of a sequence; what the model was trained with, and for a language model 512 at most, where
            not given.
        table: how a file of labelled rows is read; of text, its column alone.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``.
        out: a folder into which what was found is written, as `write_evaluation` does it.
        notify: is told in a line what of that could not be drawn.

    Raises:
        InputError: if the model has no head to evaluate, `table` says what is not for it, the text cannot be read, a
            label is unknown to the model, or `out` is a run or a model, or holds files of the names that would be
            written which no evaluation wrote, or `source` under one of them. Other files in it stay.
    """
    if out is not None:
        refuse_unfit_folder(Path(out), Path(source))
    path = model_folder_of(folder)
    opened = open_model(path, device=device, precision=precision)
    model, _, _ = opened
    task = model.config.heads.task
    if task == "tag" and table.pair is not None:
        raise InputError("Words are tagged in texts that stand alone", f"pair={table.pair!r}", "Leave it out.")
    if task is not None:
        found = evaluate_task(path, source, opened, max_length=max_length, table=table)
    else:
        found = evaluate_language_model(path, source, opened, max_length=max_length, text=_as_text(table, path))
    if out is not None:
        write_evaluation(Path(out), found, notify=notify)
    return found


def _as_text(table: TableConfig, folder: Path) -> TextConfig:
    """How text is read where something was said of rows."""
    unfit = sorted(name for name, value in table if name != "text" and value != getattr(TableConfig(), name))
    if unfit:
        raise InputError(
            "A language model is evaluated on text in UTF-8; only rows of a task have labels, pairs and an encoding",
            f"{', '.join(unfit)} for {folder}",
            "Leave it out.",
        )
    return TextConfig(text_column=table.text)
