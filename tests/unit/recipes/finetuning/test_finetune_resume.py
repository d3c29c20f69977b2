"""Fine-tuning that was stopped, that is begun again, and by several seeds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from finetune_parts import COUNTS, QUICK, StopsAt, config_of, fill_work, same_weights, validations_of
from safetensors.torch import load_file, save_file

import bertsmith
from bertsmith.foundation.errors import InputError, Stopped
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.inspect_folder import info
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.training.events import Observer
from made_tasks import made_encoder, made_rows, write_rows


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and a table."""
    return fill_work(tmp_path_factory.mktemp("resume"))


def test_a_stopped_run_goes_on_to_the_same_weights(work: Path) -> None:
    whole = finetune_run(config_of(work), work / "whole")
    observers: Sequence[Observer] = [StopsAt(2)]
    with pytest.raises(Stopped):
        finetune_run(config_of(work), work / "parted", observers=observers)
    assert not (work / "parted" / "model").exists()
    parted = finetune_run(config_of(work), work / "parted")
    assert same_weights(whole.model_folder, parted.model_folder)
    assert parted.metrics == whole.metrics


def test_a_run_whose_rows_changed_is_refused(work: Path) -> None:
    path = write_rows(work / "changing.csv", made_rows(COUNTS))
    config = config_of(work, train=str(path))
    with pytest.raises(Stopped):
        finetune_run(config, work / "changing", observers=[StopsAt(2)])
    write_rows(path, made_rows(COUNTS, seed=3))
    with pytest.raises(InputError, match="train file that has changed since"):
        finetune_run(config, work / "changing")
    assert finetune_run(config, work / "changing", restart=True).steps == 6


@pytest.mark.parametrize("changed", ["model", "tokenizer"])
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_run_whose_model_changed_is_refused(work: Path, tmp_path: Path, changed: str, seeds: int) -> None:
    source = made_encoder(tmp_path / "encoder")
    config = config_of(work, model=str(source), seeds=seeds)
    with pytest.raises(Stopped):
        finetune_run(config, tmp_path / "out", observers=[StopsAt(2)])
    if changed == "model":
        tensors = load_file(source / "model.safetensors")
        save_file({name: value + 1 for name, value in tensors.items()}, source / "model.safetensors")
    else:
        path = source / "tokenizer.json"
        path.write_text(path.read_text(encoding="utf-8").replace('"river"', '"rivers"'), encoding="utf-8")
    with pytest.raises(InputError, match=f"a {changed} that has changed since"):
        finetune_run(config, tmp_path / "out")


def test_a_run_that_says_nothing_of_its_model_goes_on(work: Path) -> None:
    out = work / "without-sums"
    with pytest.raises(Stopped):
        finetune_run(config_of(work), out, observers=[StopsAt(2)])
    run = RunFolder(out, config_of(work))
    run.write({name: value for name, value in run.record().items() if "sha256" not in name})
    assert finetune_run(config_of(work), out).steps == 6


def test_equal_seeds_give_equal_weights_and_others_do_not(work: Path) -> None:
    folders: list[Path] = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        training = QUICK["training"] | {"seed": seed}
        folders.append(finetune_run(config_of(work, training=training), work / f"seed-{name}").model_folder)
    assert same_weights(folders[0], folders[1])
    assert not same_weights(folders[0], folders[2])


def test_several_seeds_give_mean_and_spread_and_the_best_model(work: Path) -> None:
    config = config_of(work, seeds=3, length={"epochs": 3})
    notes: list[str] = []
    run = finetune_run(config, work / "seeds", notify=notes.append)
    singles = [finetune_run(config.with_seed(seed), work / "seeds" / f"seed-{seed}") for seed in range(3)]
    assert all(one.already_finished for one in singles)
    assert len({one.metrics["loss"] for one in singles}) == 3
    for name, mean in run.metrics.items():
        values = np.array([one.metrics[name] for one in singles])
        assert mean == pytest.approx(values.mean())
        assert run.spread[name] == pytest.approx(values.std(ddof=1))
    best = max(singles, key=lambda one: (one.metrics["accuracy"], -one.metrics["loss"]))
    assert same_weights(run.model_folder, best.model_folder)
    assert bertsmith.verify(run.model_folder).faults == ()
    assert "seed 2 (3 of 3)" in notes
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "Each seed" in page
    assert "±" in page
    told = info(run.folder)
    assert told["steps"] == run.steps > 0
    assert told["last_validation"] == validations_of(best)[-1]
    assert not list(run.folder.rglob("checkpoints"))
    assert bertsmith.verify(run.folder).faults == ()
    again = finetune_run(config, work / "seeds")
    assert again.already_finished
    assert (again.metrics, again.spread) == (run.metrics, run.spread)


def test_several_seeds_that_were_stopped_go_on(work: Path) -> None:
    config = config_of(work, seeds=2)
    with pytest.raises(Stopped):
        finetune_run(config, work / "seeds-parted", observers=[StopsAt(2)])
    assert not (work / "seeds-parted" / "model").exists()
    before = (work / "seeds-parted" / "run.toml").read_bytes()
    with pytest.raises(InputError, match=r"runtime\.precision was fp32 and is now bf16"):
        finetune_run(config_of(work, seeds=2, runtime={"precision": "bf16"}), work / "seeds-parted")
    assert (work / "seeds-parted" / "run.toml").read_bytes() == before
    parted = finetune_run(config, work / "seeds-parted")
    whole = finetune_run(config, work / "seeds-whole")
    assert (parted.metrics, parted.spread) == (whole.metrics, whole.spread)
    assert same_weights(parted.model_folder, whole.model_folder)
