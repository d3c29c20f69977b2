"""The commands that use a fine-tuned model, each with texts, files and streams."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Outcome, refused

from made_predictors import TASKS, as_rows, made_items, made_predictor, made_task_folder
from made_tasks import made_encoder, write_rows

Command = Callable[..., Outcome]
Listing = Callable[[], dict[str, bytes | None]]
CPU = ("--device", "cpu")
OF_A_TEXT = ("classify", "multilabel", "regress", "tag", "embed")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A model's folder for each task."""
    folder = tmp_path_factory.mktemp("models")

    def of(task: str) -> Path:
        return folder / task if (folder / task).is_dir() else made_task_folder(task, folder / task)

    return of


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a text into standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def _arguments(task: str, item: Any) -> list[str]:
    """An item as it is typed."""
    match task:
        case "answer":
            return ["--question", item[0], "--context", item[1]]
        case "choose":
            return [item[0], *(part for choice in item[1] for part in ("--choice", choice))]
        case _:
            return [item]


def _alike(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Every task's main entries, numbers within what a folder rounds."""
    assert set(found) == set(expected)
    for name in ("text", "label", "labels", "question", "answer", "start", "end", "choice"):
        assert found.get(name) == expected.get(name)
    for name in ("score", "value", "embedding"):
        if name in expected:
            assert found[name] == pytest.approx(expected[name], abs=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_a_text_is_predicted_as_json_and_for_people(
    command: Command, folders: Callable[[str], Path], task: str
) -> None:
    (item,) = made_items(task, 1)
    (expected,) = made_predictor(task)([item])
    outcome = command(task, folders(task), *_arguments(task, item), "--json", *CPU)
    assert outcome.code == 0, outcome.err
    (found,) = outcome.objects
    _alike(found, expected.values)
    shown = command(task, folders(task), *_arguments(task, item), *CPU)
    assert shown.code == 0
    assert shown.out.strip()
    assert "{" not in shown.out


@pytest.mark.parametrize("task", TASKS)
def test_a_file_is_predicted_and_a_bad_row_named(
    command: Command, folders: Callable[[str], Path], tmp_path: Path, task: str
) -> None:
    rows = as_rows(task, made_items(task, 3))
    rows[1] = rows[1] | {next(iter(rows[1])): ""}
    source = write_rows(tmp_path / "a.jsonl", rows)
    outcome = command(task, folders(task), "--input", source, "--output", tmp_path / "out.jsonl", *CPU)
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    assert "columns: " in outcome.err
    assert re.search(r"^row 2: .*line 2", outcome.err, re.MULTILINE), outcome.err
    assert "1 of 3 rows could not be used" in outcome.err
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert ["error" in one for one in written] == [False, True, False]
    printed = command(task, folders(task), "--input", source, "--json", *CPU).objects
    assert printed == written


@pytest.mark.parametrize("task", TASKS)
def test_lines_of_standard_input_are_predicted(
    command: Command, folders: Callable[[str], Path], stdin: Callable[[str], None], task: str
) -> None:
    items = made_items(task, 2)
    lines = as_rows(task, items) if task in ("answer", "choose") else items
    stdin("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    outcome = command(task, folders(task), "--input", "-", "--json", *CPU)
    assert outcome.code == 0, outcome.err
    for found, expected in zip(outcome.objects, made_predictor(task)(items), strict=True):
        _alike(found, expected.values)


def test_one_question_and_given_choices_hold_for_every_line(
    command: Command, folders: Callable[[str], Path], stdin: Callable[[str], None]
) -> None:
    texts = made_items("classify", 2)
    for task, options in (("answer", ("--question", "who?")), ("choose", ("--choice", "rain", "--choice", "snow"))):
        stdin("\n".join(texts))
        outcome = command(task, folders(task), "--input", "-", "--json", *options, *CPU)
        assert outcome.code == 0, outcome.err
        assert len(outcome.objects) == 2


def test_more_is_told_where_it_is_asked_for(command: Command, folders: Callable[[str], Path]) -> None:
    text = made_items("classify", 1)[0]
    shown = command("classify", folders("classify"), text, "--top-k", "2", *CPU).out.splitlines()
    assert sorted(line.split("\t")[0].strip() for line in shown) == ["no", "yes"]
    asked = ("answer", folders("answer"), text, "--question", "who walked?", "--json", *CPU)
    assert [len(command(*asked, "--top-k", k).objects[0]["alternatives"]) for k in (1, 3)] == [0, 2]


def test_vectors_become_a_matrix(command: Command, folders: Callable[[str], Path], tmp_path: Path) -> None:
    texts = made_items("embed", 3)
    (tmp_path / "a.txt").write_text("\n".join(texts))
    outcome = command("embed", folders("embed"), "--input", tmp_path / "a.txt", "--output", tmp_path / "out.npy", *CPU)
    assert outcome.code == 0, outcome.err
    expected = [one.values["embedding"] for one in made_predictor("embed")(texts)]
    assert np.load(tmp_path / "out.npy") == pytest.approx(np.array(expected), abs=1e-5)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "embed"])
def test_an_encoder_without_a_trained_head_is_refused(command: Command, tmp_path: Path, task: str) -> None:
    encoder = made_encoder(tmp_path / "encoder")
    outcome = command(task, encoder, *_arguments(task, made_items(task, 1)[0]), *CPU)
    refused(outcome, f"{task} needs a model that was trained for it", f"bertsmith finetune {task}")


def test_a_model_of_another_task_is_named(command: Command, folders: Callable[[str], Path]) -> None:
    refused(command("tag", folders("classify"), "a text", *CPU), "trained to classify", "bertsmith classify")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "neither"),
        (("a text", "--input", "a.txt"), "both"),
        (("--input", "no-such.txt"), "no-such.txt"),
        (("--input", "no-such.txt", "--output", "no/such/folder.csv"), "--output must lie in a folder"),
        ((" ",), "must not be blank"),
    ],
)
def test_wrong_use_is_refused(
    command: Command, folders: Callable[[str], Path], task: str, arguments: tuple[str, ...], told: str
) -> None:
    more = {"answer": ("--question", "who?"), "choose": ("--choice", "one", "--choice", "two")}.get(task, ())
    refused(command(task, folders(task), *arguments, *more, *CPU), told)


@pytest.mark.parametrize(
    ("task", "arguments", "told"),
    [
        ("classify", ("one", "two", "--pair", "three"), "--pair goes with one text"),
        ("classify", ("one", "--output", "out.jsonl"), "--output goes with --input"),
        ("classify", ("one", "--text-column", "review"), "for the rows of --input"),
        ("embed", ("one", "--encoding", "latin-1"), "for the rows of --input"),
        ("classify", ("--input", "a.txt", "--output", "out.npy"), "a file of vectors"),
        ("answer", ("--context", "a text"), "needs a question"),
        ("answer", ("--question", "who?"), "neither"),
        ("answer", ("--question", "who?", "--input", "a.csv", "--question-column", "q"), "--question-column"),
        ("choose", ("a text",), "two choices at least"),
        ("choose", ("a text", "--choice", "one"), "two choices at least"),
    ],
)
def test_wrong_use_of_one_task_is_refused_before_the_model_is_read(
    command: Command, tmp_path: Path, task: str, arguments: tuple[str, ...], told: str
) -> None:
    refused(command(task, tmp_path / "no-model", *arguments), told)


def test_a_folder_without_a_model_is_named_with_those_that_have_one(
    command: Command, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    models = folders("classify").parent
    refused(command("classify", models / "clasify", "a text"), "Did you mean", "classify?")
    refused(command("evaluate", models / "other", "a.csv"), f"{models}", "classify")
    refused(command("classify", models, "a text"), "Below it there is: ", "classify")
    refused(command("classify", tmp_path / "none" / "none", "a text"), "Check the path")


def test_nothing_is_left_of_an_input_without_a_usable_row(
    command: Command, folders: Callable[[str], Path], tmp_path: Path, listing: Listing
) -> None:
    (tmp_path / "a.txt").write_text("\n \n")
    before = listing()
    outcome = command(
        "regress", folders("regress"), "--input", tmp_path / "a.txt", "--output", tmp_path / "o.csv", *CPU
    )
    assert outcome.code == 2
    assert "2 rows, and none can" in outcome.err
    assert listing() == before


def test_cut_rows_are_counted(command: Command, folders: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"the old boat\n{'the old boat ' * 100}\n")
    outcome = command("classify", folders("classify"), "--input", tmp_path / "a.txt", "--json", *CPU)
    assert "1 of 2 rows is longer than the model sees and was cut" in outcome.err
    assert [one["cut"] for one in outcome.objects] == [False, True]


def test_rows_are_predicted_in_int8_where_the_first_of_them_agree(
    command: Command, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "a.jsonl", as_rows("embed", made_items("embed", 30)))
    asked = ("embed", folders("embed"), "--input", source, "--json")
    quick, exact = command(*asked, "--precision", "int8", "--device", "cpu"), command(*asked, *CPU)
    assert quick.code == 0, quick.err
    assert re.search(r"^int8: cosine 0\.9\d+ beside fp32, over 30$", quick.err, re.MULTILINE), quick.err
    assert [one["text"] for one in quick.objects] == [one["text"] for one in exact.objects]


def test_an_unknown_precision_is_named_with_those_that_are_known(
    command: Command, folders: Callable[[str], Path]
) -> None:
    outcome = command("embed", folders("embed"), "a text", "--precision", "int4")
    assert outcome.code == 2
    assert "int4" in outcome.err
    assert "int8" in outcome.err
