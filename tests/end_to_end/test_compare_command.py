"""`bertsmith compare`: three tiny models on the small text, once, and what they leave behind."""

import json
from pathlib import Path

import pytest
from command_line import Outcome, command, refused

from bertsmith.folders.model_folder import read_model
from bertsmith.pictures import comparison as picture

_SETTINGS = (
    *("--max-length", "32", "--batch-tokens", "512", "--steps", "4", "--threads", "1", "--precision", "fp32"),
    *("--set", "task.most_train_texts=60", "--set", "task.most_test_texts=30", "--set", "task.epochs=1"),
)


@pytest.fixture(scope="module")
def arguments(text_file: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    out = tmp_path_factory.mktemp("compare") / "compared"
    chosen = ("compare", text_file, "--out", out, "--model", tiny_model, *_SETTINGS)
    return tuple(map(str, chosen))


@pytest.fixture(scope="module")
def folder(arguments: tuple[str, ...]) -> Path:
    return Path(arguments[arguments.index("--out") + 1])


@pytest.fixture(scope="module")
def outcome(arguments: tuple[str, ...]) -> Outcome:
    return command(*arguments, "--json")


def test_the_comparison_runs_and_leaves_its_files(outcome: Outcome, folder: Path) -> None:
    assert outcome.code == 0, outcome.err
    for name in ("comparison.json", "comparison.md", "comparison.png", "comparison.svg"):
        assert (folder / name).is_file()
    assert outcome.objects == [json.loads((folder / "comparison.json").read_text(encoding="utf-8"))]


def test_the_three_have_one_size_and_one_budget(outcome: Outcome, folder: Path) -> None:
    (values,) = outcome.objects
    models = values["models"]
    sizes = [model["parameters"] for model in models.values()]
    assert max(sizes) <= 1.05 * min(sizes)
    assert {model["steps"] for model in models.values()} == {4}
    assert len({model["tokens"] for model in models.values()}) == 1
    for kind, objective in (("bert", "mlm"), ("gpt", "causal"), ("elmo", "bilm")):
        assert models[kind]["objective"] == objective
        read = read_model(folder / kind / "model").model.config.encoder
        assert (read.causal, read.family == "elmo") == (kind == "gpt", kind == "elmo")


def test_directions_are_what_they_must_be(outcome: Outcome) -> None:
    (values,) = outcome.objects
    seen = {
        kind: (model["direction"]["sees_later"], model["direction"]["sees_earlier"])
        for kind, model in values["models"].items()
    }
    assert seen == {"bert": (True, True), "gpt": (False, True), "elmo": (True, True)}
    halves = values["models"]["elmo"]["direction"]
    assert not halves["forward_half"]["sees_later"]
    assert not halves["backward_half"]["sees_earlier"]


def test_everything_is_measured(outcome: Outcome) -> None:
    (values,) = outcome.objects
    assert values["task"]["train_texts"] == 60
    for kind, model in values["models"].items():
        assert model["prediction"]["perplexity"] > 1
        assert model["tokens_per_second"] > 0
        assert ("prompt" in model, "writing" in model) == (kind == "gpt", kind == "gpt")
        for way in ("finetuned", "frozen", *(["prompt"] if kind == "gpt" else [])):
            assert 0 <= model[way]["accuracy"] <= 1
    assert values["models"]["gpt"]["writing"]["continuation"]
    assert values["models"]["elmo"]["context"] == {"longest": None, "tried": 128, "finite": True}
    assert values["models"]["bert"]["context"] == {"longest": 32}


def test_a_finished_comparison_does_nothing_but_show_itself(
    outcome: Outcome, arguments: tuple[str, ...], folder: Path
) -> None:
    assert outcome.code == 0
    before = (folder / "comparison.json").stat().st_mtime_ns
    (folder / "comparison.png").unlink()
    again = command(*arguments)
    assert again.code == 0
    assert "is finished" in again.err
    assert again.out.startswith("# BERT, GPT and ELMo on the same text")
    assert (folder / "comparison.json").stat().st_mtime_ns == before
    # What was missing is drawn.
    assert (folder / "comparison.png").is_file()


def test_what_is_finished_is_not_done_again(outcome: Outcome, arguments: tuple[str, ...], folder: Path) -> None:
    assert outcome.code == 0
    (folder / "comparison.json").unlink()
    (folder / "measured" / "gpt-writing.json").unlink()
    kept = folder / "measured" / "bert-prediction.json"
    kept.write_text(
        kept.read_text(encoding="utf-8").replace('"scored_tokens": ', '"scored_tokens": 1'), encoding="utf-8"
    )
    again = command(*arguments, "--json")
    assert again.code == 0, again.err
    assert "training begins" not in again.err
    (values,) = again.objects
    (first,) = outcome.objects
    assert values["models"]["gpt"]["writing"] == first["models"]["gpt"]["writing"]
    assert values["models"]["bert"]["prediction"] != first["models"]["bert"]["prediction"]


def test_without_matplotlib_the_table_is_made_and_the_picture_asked_for(
    outcome: Outcome, arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome.code == 0
    (folder / "comparison.svg").unlink(missing_ok=True)
    monkeypatch.setattr("bertsmith.recipes.comparison.run.can_draw", lambda: False)
    again = command(*arguments)
    assert again.code == 0
    assert "matplotlib is not installed" in again.err
    assert not (folder / "comparison.svg").exists()
    assert picture.FORMATS == ("png", "svg")


def test_the_same_folder_takes_no_other_comparison(outcome: Outcome, arguments: tuple[str, ...]) -> None:
    assert outcome.code == 0
    refused(command(*arguments, "--seed", "7"), "seed was 0 and is now 7")


def test_info_knows_a_comparison(outcome: Outcome, folder: Path) -> None:
    assert outcome.code == 0
    (found,) = command("info", folder, "--json").objects
    assert (found["kind"], found["finished"]) == ("comparison", True)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--model", "roberta-base"), "causal"),
        (("--model", "bert-tiny"), "bert-toy"),
        (("--batch-tokens", "40"), "--batch-tokens"),
        (("--labels", "nowhere.csv"), "nowhere.csv"),
        (("--template", "{label}"), "template"),
        (("--bert-objective", "causal"), "bert_objective"),
        (("--steps", "4", "--minutes", "2"), "only one of"),
        (("--set", "lerning_rate=1"), "learning_rate"),
        # Told when the corpus stands and the first training is about to begin.
        (("--minutes", "0.001", "--max-length", "32"), "--minutes"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    more: tuple[str, ...], told: str, text_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "compared"
    refused(command("compare", text_file, "--out", out, *more), told)
    assert not out.exists()
