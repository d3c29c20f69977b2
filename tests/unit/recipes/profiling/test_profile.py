"""A profile of any training: its parts are its step, and nothing of it stays but what was asked for."""

import json
import math
import re
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from profile_parts import RATES, RUNTIME, SIZES, TASKS, fill_work, finetuning, pretraining

import bertsmith
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.profiling import run as recipe
from bertsmith.recipes.profiling.profile import PartTime, Profile
from bertsmith.recipes.profiling.run import profile_finetuning, profile_pretraining
from bertsmith.training import step_times

LAYERED = {"embedding", "attention", "feed_forward", "norms", "head_and_loss"}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"model": {"start": "bert-toy"}},
    "roberta": {"model": {"start": "roberta-base"}},
    "albert": {"model": {"start": "albert-base"}},
    "modern": {"model": {"start": "modern-small"}},
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_work(tmp_path_factory.mktemp("work"))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a profile may put what it needs; the machine is not measured each time, and nothing kept."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(recipe, "measured_rates", lambda device: RATES)
    monkeypatch.setattr(step_times, "keep_freed_memory", lambda: None)
    return folder


def _by_name(found: Profile) -> dict[str, PartTime]:
    return {part.part: part for part in found.parts}


def _is_whole(found: Profile) -> None:
    """What holds for any profile."""
    assert math.fsum(part.ms for part in found.parts) == pytest.approx(found.steps.watched_ms)
    assert math.fsum(part.share for part in found.parts) == pytest.approx(1.0)
    for part in found.parts:
        assert part.ms >= 0
        if part.forward_ms is not None and part.backward_ms is not None:
            assert part.forward_ms + part.backward_ms == pytest.approx(part.ms)
    assert found.floor.ms == pytest.approx(math.fsum(part.floor_ms for part in found.parts))
    assert found.floor.fraction == pytest.approx(found.floor.ms / found.steps.plain_ms)
    assert found.steps.fastest_ms <= found.steps.plain_ms <= found.steps.slowest_ms
    assert found.tokens_per_second == pytest.approx(1e3 * found.batch.tokens / found.steps.plain_ms)
    assert found.steps.without_update == 0
    assert found.peak_memory_bytes is None or found.peak_memory_bytes > 1 << 20


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp", "mlm+sop", "causal", "bilm"])
def test_each_objective_has_its_parts(objective: str, work: Path, temporary: Path) -> None:
    config = pretraining(work / "corpus", objective=objective, model={"start": "bert-toy"})
    found = profile_pretraining(config, steps=2)
    _is_whole(found)
    layered = {"embedding", "recurrence", "head_and_loss"} if objective == "bilm" else LAYERED
    assert _by_name(found).keys() == layered | {"waiting", "optimizer", "other"}
    for part in layered:
        assert (_by_name(found)[part].forward_ms or 0) > 0
        assert (_by_name(found)[part].backward_ms or 0) > 0
    assert (found.subject.job, found.subject.task) == ("pretrain", objective)
    assert list(temporary.glob("bertsmith-*")) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_parts(family: str, work: Path) -> None:
    found = profile_pretraining(pretraining(work / "corpus", **FAMILIES[family]), steps=2)
    _is_whole(found)
    assert found.subject.family == family
    assert _by_name(found).keys() >= LAYERED
    assert (_by_name(found)["embedding"].floor_ms > 0) == (family == "albert")


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_its_parts(task: str, work: Path) -> None:
    found = profile_finetuning(finetuning(work, task), steps=2)
    _is_whole(found)
    assert (found.subject.job, found.subject.task) == ("finetune", task)
    assert _by_name(found).keys() >= LAYERED
    assert _by_name(found)["head_and_loss"].ms > 0
    # Sequences of a batch are filled up to a round number of rows.
    assert 0 <= found.batch.filling_share < 1


def test_a_frozen_encoder_is_told_by_its_missing_backward_pass(work: Path) -> None:
    found = _by_name(profile_finetuning(finetuning(work, "classify", freeze="encoder"), steps=2))
    for part in ("embedding", "attention", "feed_forward", "norms"):
        assert found[part].backward_ms == 0
    assert (found["head_and_loss"].backward_ms or 0) > 0


def test_with_a_large_vocabulary_head_and_loss_lead(work: Path, tmp_path: Path) -> None:
    sizes = {**SIZES, "num_hidden_layers": 1, "vocab_size": 60_000, "max_position_embeddings": 64}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "bert", **sizes}), encoding="utf-8")
    config = pretraining(work / "corpus", model={"start": str(path)} | dict.fromkeys(SIZES), masking={"mask_rate": 0.5})
    found = profile_pretraining(config, steps=3)
    layers = [part for part in found.parts if part.part in LAYERED]
    assert max(layers, key=lambda part: part.ms).part == "head_and_loss"
    assert max(layers, key=lambda part: part.floor_ms).part == "head_and_loss"
    assert found.subject.parameters > 60_000 * 32


def test_raw_text_is_prepared_where_it_leaves_nothing(work: Path, temporary: Path) -> None:
    told: list[str] = []
    before = sorted(path.name for path in work.iterdir())
    found = profile_pretraining(pretraining(work / "text.txt"), steps=1, notify=told.append)
    _is_whole(found)
    assert any(line.startswith("tokenizer: ") for line in told)
    assert list(temporary.glob("bertsmith-*")) == []
    assert sorted(path.name for path in work.iterdir()) == before


def test_a_refusal_leaves_nothing_either(work: Path, temporary: Path, tmp_path: Path) -> None:
    config = pretraining(work / "text.txt", objective="bilm", training={"recompute_activations": True})
    with pytest.raises(InputError, match="needs an encoder of transformer layers"):
        profile_pretraining(config, out=tmp_path / "out")
    assert list(temporary.glob("bertsmith-*")) == []
    assert not (tmp_path / "out").exists()


def test_micro_batches_and_recomputing_are_told_of(work: Path) -> None:
    training = {"micro_batch_tokens": 64, "recompute_activations": True}
    found = profile_pretraining(pretraining(work / "corpus", training=training), steps=2)
    _is_whole(found)
    assert found.batch.forward_passes >= 4


def test_a_mask_rate_that_changes_is_that_of_the_run_s_beginning(work: Path) -> None:
    changing = {"mask_rate": 0.9, "final_mask_rate": 0.1}
    longer = profile_pretraining(pretraining(work / "corpus", masking=changing, length={"steps": 100_000}), steps=2)
    fixed = profile_pretraining(pretraining(work / "corpus", masking={"mask_rate": 0.9}), steps=2)
    assert longer.floor.operations == pytest.approx(fixed.floor.operations, rel=0.05)


def test_a_length_in_minutes_is_no_obstacle(work: Path) -> None:
    _is_whole(profile_pretraining(pretraining(work / "corpus", length={"minutes": 0.01}), steps=1))
    _is_whole(profile_finetuning(finetuning(work, "classify", length={"minutes": 0.01}, seeds=3), steps=1))


def test_muon_s_products_belong_to_the_floor(work: Path) -> None:
    optimizer = {"optimizer": {"matrices": "muon"}}
    found = profile_pretraining(pretraining(work / "corpus", training=optimizer), steps=1).floor
    plain = profile_pretraining(
        pretraining(work / "corpus", training={"optimizer": {"matrices": "same"}}), steps=1
    ).floor
    assert found.optimizer_operations > 0 == plain.optimizer_operations
    assert found.optimizer_bytes < plain.optimizer_bytes


def test_what_was_found_is_written_where_asked_for_and_again(work: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "profile"
    for _ in range(2):
        found = profile_pretraining(pretraining(work / "corpus"), steps=1, out=out)
        assert sorted(path.name for path in out.iterdir()) == ["profile.json", "report.html"]
        written = json.loads((out / "profile.json").read_text(encoding="utf-8"))
        assert written["settings"]["sources"] == [str(work / "corpus")]
        assert written["versions"]["bertsmith"] == bertsmith.__version__
        plain = json.loads(json.dumps(asdict(found)))
        assert {name: written[name] for name in plain} == plain


@pytest.mark.parametrize("name", ["file", "other"])
def test_a_folder_of_something_else_is_refused_before_any_work(name: str, work: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine", encoding="utf-8")
    told: list[str] = []
    with pytest.raises(InputError, match="--out must be"):
        profile_pretraining(pretraining(work / "corpus"), out=tmp_path / name, notify=told.append)
    with pytest.raises(InputError, match="--out must be"):
        profile_finetuning(finetuning(work, "classify"), out=tmp_path / name, notify=told.append)
    assert told == []
    assert (tmp_path / "other" / "thesis.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("watched_ms", "told"), [(104.0, ""), (96.0, ""), (122.0, r"\+22%"), (90.0, "-10%")])
def test_a_difference_that_watching_does_not_make_is_told(
    watched_ms: float, told: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = profile_pretraining(pretraining(work / "corpus"), steps=1)
    steps = replace(found.steps, watched_ms=watched_ms, plain_ms=100.0)
    monkeypatch.setattr(recipe, "profile_of", lambda *given, **more: replace(found, steps=steps))
    notes: list[str] = []
    profile_pretraining(pretraining(work / "corpus"), steps=1, notify=notes.append)
    doubts = [note for note in notes if "were watched" in note]
    assert len(doubts) == bool(told)
    assert all(re.search(told, note) for note in doubts)


def test_no_steps_are_refused(work: Path) -> None:
    with pytest.raises(InputError, match="--steps must be 1 or more"):
        profile_pretraining(pretraining(work / "corpus"), steps=0)


def test_the_function_is_public(work: Path) -> None:
    settings = {f"runtime.{name}": value for name, value in RUNTIME.items()}
    sizes = {f"model.{name}": value for name, value in SIZES.items()}
    small = {"max_length": 32, "training.batch_tokens": 256, **sizes, **settings}
    found = bertsmith.profile(
        "pretrain", work / "corpus", model="bert-toy", objective="mlm+sop", steps=1, settings=small
    )
    assert (found.subject.model, found.subject.task) == ("bert-toy", "mlm+sop")
    found = bertsmith.profile(
        "finetune", work / "tag.conll", task="tag", model=work / "encoder", steps=1, settings=settings
    )
    assert (found.subject.job, found.subject.task) == ("finetune", "tag")


def test_the_function_refuses_what_belongs_to_another_job(work: Path) -> None:
    with pytest.raises(InputError, match=r"A job to profile must be one of.*Did you mean pretrain\?"):
        bertsmith.profile("pretrian", work / "corpus")
    with pytest.raises(InputError, match=r"only known options\. Received: task"):
        bertsmith.profile("pretrain", work / "corpus", task="tag")
    with pytest.raises(InputError, match=r"only known options\. Received: objective"):
        bertsmith.profile("finetune", work / "tag.conll", model=work / "encoder", objective="mlm")
