"""Functions that train, or measure a training."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from bertsmith.api.arguments import folder_of, given_values, path_of, paths_of
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.run import Comparison, compare_run
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.profiling.profile import Job, Profile
from bertsmith.recipes.profiling.run import DEFAULT_STEPS, profile_finetuning, profile_pretraining
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_options import FINETUNING_SETTINGS, PRETRAINING_SETTINGS
from bertsmith.recipes.settings import put_given, told_where
from bertsmith.training.events import Observer


def pretrain(
    sources: str | Path | Sequence[str | Path] | None = None,
    out: str | Path | None = None,
    *,
    model: str | Path | None = None,
    tokenizer: str | Path | None = None,
    objective: str | None = None,
    extend_vocabulary: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    config: str | Path | None = None,
    device: str | None = None,
    precision: str | None = None,
    threads: int | None = None,
    max_length: int | None = None,
    batch_tokens: int | None = None,
    seed: int | None = None,
    restart: bool = False,
    settings: dict[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    notify: Callable[[str], None] = lambda message: None,
) -> Run:
    """Pre-train from raw text or a prepared corpus, or go on with such a run.

    None says of any argument that it was not given: it is then as `config` has it, or as the command does without.

    Args:
        sources: files, folders, or one prepared corpus.
        out: the run's folder; it must be given.
        model: a preset or config.json for fresh weights, or a model folder to go on from; where not given, a small
            modern encoder, or BERT where the objective needs it.
        tokenizer: a tokenizer folder; trained on the text where not given.
        objective: ``mlm`` where not given, ``mlm+nsp``, ``mlm+sop``, ``causal`` or ``bilm``.
        extend_vocabulary: words of the text to add to the vocabulary of the model that the run goes on from.
        epochs: passes over the text; or one of the next two. Three where none is given.
        steps: steps.
        minutes: time for all of it.
        config: a TOML file of settings, such as a run's run.toml, or the name of some that come along: ``bert-base`` ….
        device: ``auto``, ``cpu``, ``cuda`` ….
        precision: ``auto``, ``fp32`` or ``bf16``.
        threads: threads for computing.
        max_length: most tokens of a sequence, special ones included.
        batch_tokens: tokens of a step.
        seed: decides fresh weights, order and draws.
        restart: remove an earlier run in `out` first.
        settings: further settings by dotted key, as ``--set`` takes them, over all else.
        observers: are told of events.
        notify: is told in a line what is being done.

    Raises:
        InputError: if something given cannot be used.
        Stopped: if a signal asked to stop; the same call goes on.
    """
    options = {
        "sources": paths_of("sources", sources),
        "model": path_of("model", model),
        "tokenizer": path_of("tokenizer", tokenizer),
        "objective": objective,
        "extend_vocabulary": extend_vocabulary,
        "epochs": epochs,
        "steps": steps,
        "minutes": minutes,
        "device": device,
        "precision": precision,
        "threads": threads,
        "max_length": max_length,
        "batch_tokens": batch_tokens,
        "seed": seed,
    }
    values = given_values(PRETRAINING_SETTINGS, config, options, settings, by_name=True)
    if not values.get("sources"):
        raise InputError("pretrain needs text", "no source", "Name files, folders or a prepared corpus.")
    parsed = PretrainConfig.parse(values, where=told_where(config, "the arguments"))
    return pretrain_run(parsed, folder_of(out), restart=restart, observers=observers, notify=notify)


def finetune(
    task: str | None = None,
    train: str | Path | None = None,
    *,
    out: str | Path,
    model: str | Path | None = None,
    validation: str | Path | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    strict: bool = False,
    encoding: str | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    config: str | Path | None = None,
    device: str | None = None,
    precision: str | None = None,
    threads: int | None = None,
    max_length: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    restart: bool = False,
    settings: dict[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    notify: Callable[[str], None] = lambda message: None,
) -> Run:
    """Train an encoder to do a job, from rows that show it done, or go on with such a run.

    None says of any argument that it was not given: it is then as `config` has it, or as the command does without.

    Args:
        task: ``classify``, ``regress``, ``multilabel``, ``tag``, ``answer``, ``choose`` or ``embed``.
        train: file of rows: .csv, .tsv, .jsonl or .parquet, or the folder of a saved data set's split; for ``tag`` also
            .conll and .conllu, for ``answer`` SQuAD's JSON, for ``embed`` also raw lines of a .txt.
        out: the run's folder.
        model: folder of the encoder, or of the run that made it.
        validation: file of rows to validate on; a share of the training rows where not given.
        text: column of the text; guessed where not given, as are the next two.
        pair: column of the second text.
        label: column of what is to be found.
        strict: refuse rows that contradict each other, overlap or are broken.
        encoding: of the files; UTF-8 where not given.
        epochs: passes over the rows; or one of the next two. Three to twenty by their number where none is given.
        steps: steps.
        minutes: time for all of it, which several seeds share.
        config: a TOML file of settings, such as a run's run.toml.
        device: ``auto``, ``cpu``, ``cuda`` ….
        precision: ``auto``, ``fp32`` or ``bf16``.
        threads: threads for computing.
        max_length: most tokens of a sequence, special ones included.
        batch_size: rows of a step.
        learning_rate: the highest one; by the model's width where not given.
        seed: decides the new weights and the order.
        seeds: train so often, by seeds that follow each other, and keep the best model; once where not given.
        restart: remove an earlier run in `out` first.
        settings: further settings by dotted key, as ``--set`` takes them, over all else.
        observers: are told of events.
        notify: is told in a line what is being done, and what stands out in the data.

    Returns:
        the run; its ``metrics`` are the scores on the validation rows, its ``evaluation`` those in detail. Of several
        seeds, ``metrics`` are the means and ``spread`` the standard deviations.

    Raises:
        InputError: if something given cannot be used.
        Stopped: if a signal asked to stop; the same call goes on.
    """
    options = {
        "task": task,
        "train": path_of("train", train),
        "model": path_of("model", model),
        "validation": path_of("validation", validation),
        "text": text,
        "pair": pair,
        "label": label,
        "strict": strict or None,
        "encoding": encoding,
        "epochs": epochs,
        "steps": steps,
        "minutes": minutes,
        "device": device,
        "precision": precision,
        "threads": threads,
        "max_length": max_length,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "seed": seed,
        "seeds": seeds,
    }
    values = given_values(FINETUNING_SETTINGS, config, options, settings)
    for name, what in (("task", "a task"), ("train", "a file of rows"), ("model", "the folder of an encoder")):
        if not values.get(name):
            example = 'finetune("classify", "train.csv", model="my-bert/model", out="my-classifier")'
            raise InputError(f"finetune needs {what}", f"no {name}", f"For example: {example}.")
    parsed = FinetuneConfig.parse(values, where=told_where(config, "the arguments"))
    return finetune_run(parsed, folder_of(out), restart=restart, observers=observers, notify=notify)


def compare(
    sources: str | Path | Sequence[str | Path],
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
    values: dict[str, Any] = {"sources": paths_of("sources", sources), "model": model}
    given = {
        "task.labels": path_of("labels", labels),
        "task.table.text": text,
        "task.table.label": label,
        "length.epochs": epochs,
        "length.steps": steps,
        "length.minutes": minutes,
        **copy.deepcopy(settings or {}),
    }
    put_given(values, given)
    parsed = CompareConfig.parse(values, where="the arguments")
    return compare_run(parsed, folder_of(out), restart=restart, observers=observers)


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
    paths = paths_of("source", source)
    values: dict[str, Any] = {"sources": paths} if pretrains else {"train": path_of("source", source)}
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
