"""Exported folders of small models with fresh weights."""

from pathlib import Path

from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.files import new_folder
from bertsmith.model import Model
from bertsmith.recipes.exporting.run import export_run
from made_corpora import made_model, made_tokenizer
from made_predictors import made_task_model


def made_source(job: str, folder: Path, *, model: Model | None = None) -> Path:
    """The folder of a model for a task, or to fill masks."""
    if model is None:
        model = made_model(made_tokenizer().vocab_size, spread=0.3) if job == "fill" else made_task_model(job)
    with new_folder(folder, seal={"kind": "model"}) as temporary:
        write_model(temporary, model, made_tokenizer())
    return folder


def made_export(job: str, folder: Path) -> Path:
    """The same, exported in fp32."""
    source = made_source(job, folder.with_name(f"{folder.name}-model"))
    return export_run(source, folder).folder
