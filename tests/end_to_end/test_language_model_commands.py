"""`pretrain --objective causal` and `bilm`, and what the other commands make of such models."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import FinishedRun, command, pretrained, refused

import bertsmith
from bertsmith.foundation.errors import InputError


@pytest.fixture(scope="module")
def runs(text_file: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FinishedRun]:
    made: dict[str, FinishedRun] = {}

    def run(objective: str) -> FinishedRun:
        if objective not in made:
            folder = tmp_path_factory.mktemp(objective) / "run"
            made[objective] = pretrained(text_file, tiny_model, folder, objective)
        return made[objective]

    return run


@pytest.mark.parametrize(("objective", "kind"), [("causal", "bert"), ("bilm", "elmo")])
def test_a_run_trains_and_leaves_a_model(objective: str, kind: str, runs: Callable[[str], FinishedRun]) -> None:
    run = runs(objective)
    (found,) = run.outcome.objects
    log = [json.loads(line) for line in (run.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [entry["loss"] for entry in log if entry["kind"] == "validation"]
    assert found["loss"] == found[f"{objective}_loss"] == losses[-1] < losses[0]
    config = json.loads((run.model / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == kind
    assert config.get("is_decoder", False) == (objective == "causal")
    (info,) = command("info", run.model, "--json").objects
    assert info["family"] == kind


@pytest.mark.parametrize("objective", ["causal", "bilm"])
def test_the_same_command_does_nothing_more(objective: str, runs: Callable[[str], FinishedRun]) -> None:
    again = command(*runs(objective).arguments)
    assert again.code == 0
    assert "is finished" in again.err
    assert again.objects == runs(objective).outcome.objects


@pytest.mark.parametrize("objective", ["causal", "bilm"])
def test_evaluate_asks_a_model_what_it_was_trained_on(
    objective: str, runs: Callable[[str], FinishedRun], text_file: Path
) -> None:
    outcome = command("evaluate", runs(objective).model, text_file, "--max-length", "32", "--json")
    assert outcome.code == 0, outcome.err
    (found,) = outcome.objects
    assert found["loss"] == found[f"{objective}_loss"]
    assert found[f"{objective}_count"] > 1000


def test_a_causal_run_shows_how_it_writes_on(runs: Callable[[str], FinishedRun]) -> None:
    log = (runs("causal").folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line)["lines"] for line in log if json.loads(line)["kind"] == "samples"]
    assert samples
    assert all(" → " in line for lines in samples for line in lines)
    prompts = {tuple(line.split(" → ")[0] for line in lines) for lines in samples}
    assert len(prompts) == 1


def test_a_causal_model_writes_on_in_python(runs: Callable[[str], FinishedRun]) -> None:
    first, again = (bertsmith.generate(runs("causal").folder, "The cat sees", max_new_tokens=5) for _ in range(2))
    assert first == again
    assert first.text.lower().startswith("the cat sees")
    with pytest.raises(InputError, match="causal"):
        bertsmith.generate(runs("bilm").folder, "The cat sees")


@pytest.mark.parametrize("objective", ["causal", "bilm"])
def test_filling_masks_is_refused(objective: str, runs: Callable[[str], FinishedRun]) -> None:
    refused(command("fill", runs(objective).model, "The [MASK] sees."), "--objective mlm")


@pytest.mark.parametrize("objective", ["causal", "bilm"])
def test_the_card_says_what_it_is(objective: str, runs: Callable[[str], FinishedRun]) -> None:
    card = (runs(objective).model / "README.md").read_text(encoding="utf-8")
    assert "fill-mask" not in card
    assert ("bertsmith.generate(" in card) == (objective == "causal")
    assert ("library_name: bertsmith" in card) == (objective == "bilm")


def test_a_causal_folder_opens_in_the_reference_implementation(runs: Callable[[str], FinishedRun]) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(runs("causal").model)
    assert type(model).__name__ == "BertLMHeadModel"


def test_settings_of_masks_are_refused_without_masks(text_file: Path, tiny_model: Path, tmp_path: Path) -> None:
    arguments = ("pretrain", text_file, "--out", tmp_path / "run", "--model", tiny_model, "--objective", "causal")
    refused(command(*arguments, "--max-length", "32", "--set", "masking.mask_rate=0.3"), "masking")
    assert not (tmp_path / "run").exists()


def test_a_model_of_another_reading_is_refused_before_anything(
    runs: Callable[[str], FinishedRun], text_file: Path, tmp_path: Path
) -> None:
    arguments = ("pretrain", text_file, "--out", tmp_path / "run", "--max-length", "32")
    refused(command(*arguments, "--model", runs("causal").model), "with the objective causal")
    refused(command(*arguments, "--model", "modern-small", "--objective", "causal"), "causal")
    assert not (tmp_path / "run").exists()
