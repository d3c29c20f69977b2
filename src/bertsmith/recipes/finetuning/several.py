"""A fine-tuning by several seeds: what the scores are worth, and the best of the models."""

import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bertsmith.foundation.files import MANIFEST, new_folder, write_file, write_json
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import Better
from bertsmith.recipes.finetuning.validation import badness
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.reports.finetune_report import finetune_report
from bertsmith.training.log import read_log

RunOne = Callable[[FinetuneConfig, Path], Run]


def run_seeds(
    config: FinetuneConfig, run: RunFolder, facts: dict[str, Any], run_one: RunOne, notify: Callable[[str], None]
) -> Run:
    """Run each seed in a folder of its own, and sum them up.

    Args:
        config: the settings, with `seeds` above one.
        run: the folder of all of them.
        facts: sizes of the data, and sums by which a changed file or model is known when all of them go on.
        run_one: runs, or goes on with, one fine-tuning; a finished one is given back as it is.
        notify: is told in a line which seed is run.

    Returns:
        a run whose ``metrics`` are the means, whose ``spread`` holds the standard deviations over the seeds, and whose
        model is that of the best seed.
    """
    seeds = range(config.training.seed, config.training.seed + config.seeds)
    runs: list[Run] = []
    if not run.record():  # A seed may refuse what this session is told, and it must not stand there then.
        run.write(facts)
    for seed in seeds:
        notify(f"seed {seed} ({seed - seeds.start + 1} of {config.seeds})")
        place = run.path / f"seed-{seed}"
        runs.append(run_one(config.with_seed(seed), place))
        _remove_checkpoints(place / "checkpoints")
    kept = best_of(runs)
    by_seed = {str(seed): one.metrics for seed, one in zip(seeds, runs, strict=True)}
    mean, spread = _summary([one.metrics for one in runs])
    evaluation = {**runs[kept].evaluation, "seeds": by_seed, "mean": mean, "spread": spread}
    of_kept = RunFolder(runs[kept].folder, config.with_seed(seeds[kept]))
    record = of_kept.record() | {"metrics": mean, "spread": spread, "kept_seed": seeds[kept]}
    write_json(run.evaluation, evaluation)
    log = read_log(of_kept.log)
    write_file(run.report, finetune_report(run.path.name, config.written, record, evaluation, log))
    run.write(record)
    with new_folder(run.model, seal={"kind": "model"}) as temporary:
        shutil.copytree(of_kept.model, temporary, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
    return run.finished(already=False)


def best_of(runs: Sequence[Run]) -> int:
    """Number of the run with the best validation, the first one among equals."""
    decided = runs[0].evaluation["decided_by"]
    ways: dict[str, Better] = {decided["metric"]: decided["better"]}
    return min(range(len(runs)), key=lambda number: badness(runs[number].metrics, ways))


def _remove_checkpoints(folder: Path) -> None:
    """Remove what a finished seed went on from; of an interruption nothing is left that looks like a checkpoint."""
    for manifest in list(folder.rglob(MANIFEST)):
        manifest.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _summary(metrics: Sequence[dict[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    names = [name for name in metrics[0] if all(name in each for each in metrics)]
    columns = {name: [each[name] for each in metrics] for name in names}
    means = {name: statistics.fmean(values) for name, values in columns.items()}
    return means, {name: statistics.stdev(values) for name, values in columns.items()}
