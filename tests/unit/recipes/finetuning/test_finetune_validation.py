"""Which validation is the best, how many are made, and what time they leave to train."""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import QUICK, config_of, fill_work

from bertsmith.foundation.errors import InputError
from bertsmith.recipes import step_budget
from bertsmith.recipes.finetuning import validation as module
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.several import best_of
from bertsmith.recipes.finetuning.validation import badness
from bertsmith.recipes.results import Run
from bertsmith.training.log import read_log
from made_tasks import made_rows, write_rows


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and a table."""
    return fill_work(tmp_path_factory.mktemp("validation"))


WORST = (math.inf, math.inf)


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"accuracy": 0.5, "loss": 2.0}, (-0.5, 2.0)),
        ({"accuracy": 0.5}, (-0.5, math.inf)),
        ({"accuracy": math.nan, "loss": 2.0}, WORST),
        ({"accuracy": math.inf, "loss": 2.0}, WORST),
        ({"accuracy": 0.5, "loss": math.nan}, WORST),
        ({"accuracy": 0.5, "loss": math.inf}, WORST),
        ({"loss": 2.0}, WORST),
    ],
)
def test_a_validation_without_finite_numbers_is_the_worst(
    metrics: dict[str, float], expected: tuple[float, ...]
) -> None:
    assert badness(metrics, {"accuracy": "higher"}) == expected


def test_the_way_that_is_better_decides() -> None:
    assert badness({"loss": 2.0}, {"loss": "lower"}) == (2.0, 2.0)
    assert badness({"loss": 2.0}, {"loss": "higher"}) == (-2.0, 2.0)


def _runs(*metrics: dict[str, float]) -> list[Run]:
    evaluation = {"decided_by": {"metric": "accuracy", "better": "higher"}}
    return [Run(Path(), Path(), 1, 1, each, None, evaluation=evaluation) for each in metrics]


def test_the_best_of_several_seeds_is_judged_as_validations_are() -> None:
    even = {"accuracy": 0.5, "loss": 2.0}
    assert best_of(_runs(even, even | {"loss": 1.0}, even)) == 1
    assert best_of(_runs({"accuracy": math.nan, "loss": 0.1}, even)) == 1
    assert best_of(_runs({"loss": 0.1}, even)) == 1
    assert best_of(_runs(even, even | {"accuracy": 0.6, "loss": 3.0})) == 1
    assert best_of(_runs(even, even)) == 0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Has an entry for each validation that is made."""
    calls: list[float] = []
    whole = module.batch_outputs

    def counted(*given: Any) -> np.ndarray:
        calls.append(time.monotonic())
        return whole(*given)

    monkeypatch.setattr(module, "batch_outputs", counted)
    return calls


def _logged(run: Run) -> list[dict[str, Any]]:
    return [entry for entry in read_log(run.folder / "log.jsonl") if entry["kind"] == "validation"]


def test_the_last_validation_is_not_made_again(work: Path, tmp_path: Path, made: list[float]) -> None:
    run = finetune_run(config_of(work, training=QUICK["training"] | {"keep": "last"}), tmp_path / "last")
    logged = _logged(run)
    assert len(made) == len(logged) > 1
    assert run.metrics == {name: logged[-1][name] for name in run.metrics}


def test_an_earlier_model_that_is_kept_is_validated_again(work: Path, tmp_path: Path, made: list[float]) -> None:
    worst_is_best = {"metric": "loss", "direction": "higher", "optimizer": {"learning_rate": 0.01}}
    run = finetune_run(config_of(work, training=worst_is_best, length={"steps": 20}), tmp_path / "best")
    logged = _logged(run)
    best = max(logged, key=lambda entry: entry["loss"])
    assert best is not logged[-1]
    assert len(made) == len(logged) + 1
    assert run.metrics == {name: best[name] for name in run.metrics}


def test_a_scale_that_goes_into_the_weights_is_validated_and_thresholds_are_not(
    work: Path, tmp_path: Path, made: list[float]
) -> None:
    rows = made_rows({"wet": 30, "dry": 30})
    scored = [{"text": row["text"], "score": len(row["text"])} for row in rows]
    for task, table, more in (("regress", scored, 1), ("multilabel", rows, 0)):
        made.clear()
        path = write_rows(tmp_path / f"{task}.csv", table)
        config = config_of(work, task=task, train=str(path), training=QUICK["training"] | {"keep": "last"})
        run = finetune_run(config, tmp_path / task)
        assert len(made) == len(_logged(run)) + more


@pytest.mark.parametrize(("seeds", "seconds", "validation_seconds"), [(1, 6.0, 0.5), (2, 6.0, 0.05)])
def test_a_run_by_the_clock_ends_in_time_however_slow_validations_are(
    work: Path, tmp_path: Path, seeds: int, seconds: float, validation_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = module.batch_outputs

    def slow(*given: Any) -> np.ndarray:
        time.sleep(validation_seconds)
        return whole(*given)

    monkeypatch.setattr(module, "batch_outputs", slow)
    monkeypatch.setattr(step_budget, "_FINISHING_SECONDS", 1.2)
    started_at = time.monotonic()
    run = finetune_run(config_of(work, length={"minutes": seconds / 60}, seeds=seeds), tmp_path / "run")
    assert time.monotonic() - started_at < seconds
    assert run.steps > 1


def test_several_seeds_never_mix_two_data_sets(work: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "train.csv", made_rows({"wet": 30, "dry": 30}))
    config = config_of(work, train=str(path), seeds=2)

    class _PulledOut(Exception):
        pass

    def pull_out(message: str) -> None:
        if message.startswith("seed 1 "):
            raise _PulledOut

    with pytest.raises(_PulledOut):
        finetune_run(config, tmp_path / "run", notify=pull_out)
    assert (tmp_path / "run" / "seed-0" / "model").is_dir()
    assert not (tmp_path / "run" / "seed-1").exists()
    write_rows(path, made_rows({"wet": 30, "dry": 30}, seed=1))
    with pytest.raises(InputError, match="train file that has changed since"):
        finetune_run(config, tmp_path / "run")
    assert not (tmp_path / "run" / "seed-1").exists()
