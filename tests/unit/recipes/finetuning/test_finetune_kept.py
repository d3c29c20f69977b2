"""Which model a fine-tuning keeps: by its best validation, by a score or its loss, as a mean of weights."""

from pathlib import Path
from typing import Any

import pytest
from finetune_parts import QUICK, StopsAt, config_of, fill_work, same_weights, validations_of

import bertsmith
from bertsmith.foundation.errors import BertsmithError, InputError, Stopped
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.training import weight_average
from bertsmith.training.events import EndedEarly, Event


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and a table."""
    return fill_work(tmp_path_factory.mktemp("kept"))


def _spoilt(work: Path, **training: Any) -> FinetuneConfig:
    """A run whose rate is far too high, so that its validations go up and down."""
    values = QUICK["training"] | {"optimizer": {"learning_rate": 0.05}, "validate_every_share": 0.05} | training
    return config_of(work, length={"steps": 40}, training=values)


def test_the_model_of_the_best_validation_is_kept_whichever_way_is_better(work: Path) -> None:
    for metric, best in (("accuracy", max), ("loss", min)):
        notes: list[str] = []
        run = finetune_run(_spoilt(work, metric=metric), work / f"best-{metric}", notify=notes.append)
        scores = [entry[metric] for entry in validations_of(run)]
        assert run.metrics[metric] == pytest.approx(best(scores))
        assert next(iter(run.metrics)) == metric
        # Among equals the one with the lowest loss.
        kept = min((entry["loss"], entry["step"]) for entry in validations_of(run) if entry[metric] == best(scores))[1]
        assert kept == run.steps or any(f"the model of step {kept} is kept" in note for note in notes)
        found = bertsmith.load(run.folder, device="cpu", precision="fp32")
        assert isinstance(found, ClassifyPredictor)
    last = finetune_run(_spoilt(work, keep="last"), work / "last")
    assert last.metrics["loss"] == validations_of(last)[-1]["loss"]


def test_the_mean_of_the_weights_is_kept_as_it_was_validated_and_a_resumed_run_has_the_same(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_average, "_LONG", 1)
    config = _spoilt(work, metric="loss", average_share=0.5)
    run = finetune_run(config, work / "mean")
    losses = [entry["loss"] for entry in validations_of(run)]
    assert run.metrics["loss"] == pytest.approx(min(losses))
    with pytest.raises(Stopped):
        finetune_run(config, work / "mean-parted", observers=[StopsAt(7)])
    assert same_weights(finetune_run(config, work / "mean-parted").model_folder, run.model_folder)
    plain = finetune_run(_spoilt(work, metric="loss", average_share=0.0), work / "no-mean")
    assert not same_weights(plain.model_folder, run.model_folder)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_model_that_came_apart_is_no_result(work: Path, keep: str) -> None:
    training = {"optimizer": {"learning_rate": 1e30}, "keep": keep}
    config, out = config_of(work, length={"steps": 3}, training=training), work / f"apart-{keep}"
    with pytest.raises(BertsmithError, match=r"must give finite numbers.*--learning-rate"):
        finetune_run(config, out)
    assert not (out / "model").exists()
    assert not (out / "evaluation.json").exists()


def test_the_direction_can_be_turned(work: Path) -> None:
    run = finetune_run(_spoilt(work, metric="loss", direction="higher"), work / "turned-round")
    losses = [entry["loss"] for entry in validations_of(run)]
    assert run.metrics["loss"] == pytest.approx(max(losses))
    assert losses[-1] < max(losses)


def test_a_run_that_gets_no_better_ends_early_and_a_resume_of_it_too(work: Path) -> None:
    config = _spoilt(work, metric="loss", patience=2)
    events: list[Event] = []
    run = finetune_run(config, work / "patient", observers=[events.append])
    losses = [entry["loss"] for entry in validations_of(run)]
    assert run.steps < 40
    assert losses.index(min(losses)) == len(losses) - 3
    (ended,) = [event for event in events if isinstance(event, EndedEarly)]
    assert (ended.step, ended.best_step) == (run.steps, validations_of(run)[-3]["step"])
    with pytest.raises(Stopped):
        finetune_run(config, work / "patient-parted", observers=[StopsAt(2)])
    parted = finetune_run(config, work / "patient-parted")
    assert parted.steps == run.steps
    assert same_weights(parted.model_folder, run.model_folder)


def test_an_unknown_metric_is_refused_before_training(work: Path) -> None:
    training = QUICK["training"] | {"metric": "acuracy"}
    with pytest.raises(InputError, match=r"accuracy.*macro_f1.*acuracy.*Did you mean accuracy"):
        finetune_run(config_of(work, training=training), work / "metric")
    assert not (work / "metric").exists()
