"""The verbs as functions, with the names and defaults of the command line."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from bertsmith.foundation.errors import unknown_name
from bertsmith.model.encoder import Encoder
from bertsmith.recipes.attention import attention_run as attention
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.run import Comparison, compare_run
from bertsmith.recipes.evaluate import evaluate_run as evaluate
from bertsmith.recipes.exporting.run import export_run as export
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.generate import generate_run as generate
from bertsmith.recipes.import_model import import_model_run as import_model
from bertsmith.recipes.inspect_folder import info
from bertsmith.recipes.inspect_folder import verify_folder as verify
from bertsmith.recipes.plan import plan
from bertsmith.recipes.predict import load
from bertsmith.recipes.prepare import prepare_run as prepare
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.profiling.profile import Job, Profile
from bertsmith.recipes.profiling.run import DEFAULT_STEPS, profile_finetuning, profile_pretraining
from bertsmith.recipes.push import push_run as push
from bertsmith.recipes.results import Run
from bertsmith.recipes.settings import put_given
from bertsmith.recipes.train_tokenizer import train_tokenizer_run as train_tokenizer
from bertsmith.training.events import Observer

__all__ = [
    "Encoder",
    "attention",
    "compare",
    "evaluate",
    "export",
    "finetune",
    "generate",
    "import_model",
    "info",
    "load",
    "plan",
    "prepare",
    "pretrain",
    "profile",
    "push",
    "train_tokenizer",
    "verify",
]


def pretrain(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    model: str | Path | None = None,
    tokenizer: str | Path | None = None,
    objective: str = "mlm",
    extend_vocabulary: int = 0,
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
        model: a preset or config.json for fresh weights, or a model folder to go on from; where not given, a small
            modern encoder, or BERT where the objective needs it.
        tokenizer: a tokenizer folder; trained on the text where not given.
        objective: ``mlm``, ``mlm+nsp``, ``mlm+sop``, ``causal`` or ``bilm``.
        extend_vocabulary: words of the text to add to the vocabulary of the model that the run goes on from.
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
        "model.start": None if model is None else str(model),
        "tokenizer_folder": None if tokenizer is None else str(tokenizer),
        "extend_vocabulary": extend_vocabulary or None,
        "length.epochs": epochs,
        "length.steps": steps,
        "length.minutes": minutes,
        **copy.deepcopy(settings or {}),
    }
    put_given(values, given)
    config = PretrainConfig.parse(values, where="the arguments")
    return pretrain_run(config, out, restart=restart, observers=observers)


def finetune(
    task: str,
    train: str | Path,
    *,
    model: str | Path,
    out: str | Path,
    validation: str | Path | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    strict: bool = False,
    seed: int | None = None,
    seeds: int = 1,
    restart: bool = False,
    settings: dict[str, Any] | None = None,
    observers: Sequence[Observer] = (),
) -> Run:
    """Train an encoder to do a job, from rows that show it done, or go on with such a run.

    Args:
        task: ``classify``, ``regress``, ``multilabel``, ``tag``, ``answer``, ``choose`` or ``embed``.
        train: file of rows: .csv, .tsv, .jsonl or .parquet, or the folder of a saved data set's split; for ``tag`` also
            .conll and .conllu, for ``answer`` SQuAD's JSON, for ``embed`` also raw lines of a .txt.
        model: folder of the encoder, or of the run that made it.
        out: the run's folder.
        validation: file of rows to validate on; a share of the training rows where not given.
        text: column of the text; guessed where not given, as are the next two.
        pair: column of the second text.
        label: column of what is to be found.
        epochs: passes over the rows; or one of the next two. Three to twenty by their number where none is given.
        steps: steps.
        minutes: time for all of it, which several seeds share.
        strict: refuse rows that contradict each other, overlap or are broken.
        seed: decides the new weights and the order.
        seeds: train so often, by seeds that follow each other, and keep the best model.
        restart: remove an earlier run in `out` first.
        settings: further settings by dotted key, as ``--set`` takes them.
        observers: are told of events.

    Returns:
        the run; its ``metrics`` are the scores on the validation rows, its ``evaluation`` those in detail. Of several
        seeds, ``metrics`` are the means and ``spread`` the standard deviations.

    Raises:
        InputError: if something given cannot be used.
        Stopped: if a signal asked to stop; the same call goes on.
    """
    values: dict[str, Any] = {"task": task, "train": str(train), "model": str(model)}
    given = {
        "validation": None if validation is None else str(validation),
        "data.text": text,
        "data.pair": pair,
        "data.label": label,
        "length.epochs": epochs,
        "length.steps": steps,
        "length.minutes": minutes,
        "data.strict": strict or None,
        "training.seed": seed,
        "seeds": seeds if seeds != 1 else None,
        **copy.deepcopy(settings or {}),
    }
    put_given(values, given)
    config = FinetuneConfig.parse(values, where="the arguments")
    return finetune_run(config, out, restart=restart, observers=observers)


def compare(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    model: str = "bert-toy",
    labels: str | Path | None = None,
    text: str | None = None,
    label: str | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    restart: bool = False,
    settings: dict[str, Any] | None = None,
    observers: Sequence[Observer] = (),
) -> Comparison:
    """Train a BERT, a GPT and an ELMo of one size on the same text and budget, and measure what each can do.

    Args:
        sources: files, folders, or one prepared corpus.
        out: the comparison's folder.
        model: the BERT preset whose size all three have.
        labels: a table of labelled texts; the task is made out of the corpus where not given.
        text: column of the text in `labels`; guessed where not given, as is the next.
        label: column of the label.
        epochs: passes over the text in each training; or one of the next two. Three where none is given.
        steps: steps of each training.
        minutes: time for all of it.
        restart: remove an earlier comparison in `out` first.
        settings: further settings by dotted key, such as ``{"task.template": "{text} Topic: {label}"}``.
        observers: are told of events.

    Raises:
        InputError: if something given cannot be used.
        Stopped: if a signal asked to stop; the same call goes on.
    """
    values: dict[str, Any] = {"sources": [str(source) for source in sources], "model": model}
    given = {
        "task.labels": None if labels is None else str(labels),
        "task.table.text": text,
        "task.table.label": label,
        "length.epochs": epochs,
        "length.steps": steps,
        "length.minutes": minutes,
        **copy.deepcopy(settings or {}),
    }
    put_given(values, given)
    return compare_run(CompareConfig.parse(values, where="the arguments"), out, restart=restart, observers=observers)


def profile(
    job: str,
    source: str | Path | Sequence[str | Path],
    *,
    model: str | Path | None = None,
    task: str | None = None,
    objective: str | None = None,
    tokenizer: str | Path | None = None,
    steps: int = DEFAULT_STEPS,
    out: str | Path | None = None,
    settings: dict[str, Any] | None = None,
) -> Profile:
    """See where the time of a training step goes, for a training as `pretrain` or `finetune` would begin it.

    Args:
        job: ``pretrain`` or ``finetune``.
        source: text files, folders or one prepared corpus; for a fine-tuning its file of rows.
        model: a preset, a config.json or a model folder; for a fine-tuning, which needs one, a folder.
        task: of a fine-tuning, ``classify`` where not given.
        objective: of a pre-training, ``mlm`` where not given.
        tokenizer: of a pre-training; trained on the text where not given.
        steps: how many steps are measured.
        out: a folder for `profile.json` and `report.html`.
        settings: further settings by dotted key, as ``--set`` takes them.

    Raises:
        InputError: if something given cannot be used.
    """
    if job not in get_args(Job):
        raise unknown_name("A job to profile", job, get_args(Job))
    pretrains = job == "pretrain"
    sources = [source] if isinstance(source, str | Path) else source
    values: dict[str, Any] = {"sources": [str(one) for one in sources]} if pretrains else {"train": str(source)}
    given = {
        "model.start" if pretrains else "model": None if model is None else str(model),
        "task": task,
        "objective": objective,
        "tokenizer_folder": None if tokenizer is None else str(tokenizer),
        **copy.deepcopy(settings or {}),
    }
    put_given(values, given)
    if pretrains:
        return profile_pretraining(PretrainConfig.parse(values, where="the arguments"), steps=steps, out=out)
    return profile_finetuning(FinetuneConfig.parse(values, where="the arguments"), steps=steps, out=out)
