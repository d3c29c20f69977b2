"""The verbs as functions, with the names and defaults of the command line."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertsmith.model.encoder import Encoder
from bertsmith.recipes.evaluate import evaluate_run as evaluate
from bertsmith.recipes.inspect_folder import info
from bertsmith.recipes.inspect_folder import verify_folder as verify
from bertsmith.recipes.options import PretrainConfig, put_given
from bertsmith.recipes.predict import load
from bertsmith.recipes.prepare import prepare_run as prepare
from bertsmith.recipes.pretrain import pretrain_run
from bertsmith.recipes.results import Run
from bertsmith.recipes.train_tokenizer import train_tokenizer_run as train_tokenizer
from bertsmith.training.events import Observer

__all__ = ["Encoder", "evaluate", "info", "load", "prepare", "pretrain", "train_tokenizer", "verify"]


def pretrain(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    model: str | Path = "bert-toy",
    tokenizer: str | Path | None = None,
    objective: str = "mlm",
    epochs: float | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    restart: bool = False,
    settings: dict[str, Any] | None = None,
    observers: Sequence[Observer] = (),
) -> Run:
    """Pre-train from raw text or a prepared corpus, or go on with such a run.

    Args:
        sources: files, folders, or one prepared corpus.
        out: the run's folder.
        model: a preset or config.json for fresh weights, or a model folder to go on from.
        tokenizer: a tokenizer folder; trained on the text where not given.
        objective: ``mlm`` or ``mlm+nsp``.
        epochs: passes over the text; or one of the next two.
        steps: steps.
        minutes: time for all of it.
        restart: remove an earlier run in `out` first.
        settings: further settings by dotted key, as ``--set`` takes them.
        observers: are told of events.

    Raises:
        InputError: if something given cannot be used.
        Stopped: if a signal asked to stop; the same call goes on.
    """
    values: dict[str, Any] = {"sources": [str(source) for source in sources], "objective": objective}
    given = {
        "model.start": str(model),
        "tokenizer_folder": None if tokenizer is None else str(tokenizer),
        "length.epochs": epochs,
        "length.steps": steps,
        "length.minutes": minutes,
        **copy.deepcopy(settings or {}),
    }
    put_given(values, given)
    config = PretrainConfig.parse(values, where="the arguments")
    return pretrain_run(config, out, restart=restart, observers=observers)
