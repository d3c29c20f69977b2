"""`profile pretrain` and `profile finetune`, as people type them."""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import FinishedRun, Outcome, refused

from made_tasks import made_rows, write_rows

Command = Callable[..., Outcome]
QUICK = ("--steps", "2", "--precision", "fp32", "--threads", "1")
SMALL = ("--max-length", "32", "--batch-tokens", "512", "--set", "corpus.workers=1")
FIELDS = {"subject", "machine", "steps", "batch", "parts", "tokens_per_second", "peak_memory_bytes", "floor"}


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command puts what it needs for a while."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("table") / "train.csv", made_rows({"wet": 30, "dry": 30}))


def test_a_pre_training_is_shown_as_a_table_and_written(
    command: Command, text_file: Path, tiny_model: Path, tmp_path: Path, temporary: Path
) -> None:
    out = tmp_path / "profile"
    found = command("profile", "pretrain", text_file, "--model", tiny_model, *SMALL, *QUICK, "--out", out)
    assert found.code == 0, found.err
    for part in ("waiting for the batch", "embedding", "attention", "feed-forward", "norms", "head and loss"):
        assert re.search(rf"^{part} .*\d%", found.out, re.MULTILINE), found.out
    assert re.search(r"^step, watched .* 100\.0%", found.out, re.MULTILINE)
    for fact in ("floor", "tokens a second", "padding", "peak memory"):
        assert re.search(rf"^{fact}  +\S", found.out, re.MULTILINE), found.out
    assert "written:" in found.err
    assert sorted(path.name for path in out.iterdir()) == ["profile.json", "report.html"]
    assert list(temporary.glob("bertsmith-*")) == []


def test_json_is_one_object_whose_parts_are_the_step(command: Command, mlm_run: FinishedRun, temporary: Path) -> None:
    found = command("profile", "pretrain", "--config", mlm_run.folder / "run.toml", *QUICK, "--json")
    assert found.code == 0, found.err
    (values,) = found.objects
    assert values.keys() == FIELDS
    assert values["subject"]["task"] == "mlm"
    assert values["steps"]["measured"] == 2
    assert sum(part["ms"] for part in values["parts"]) == pytest.approx(values["steps"]["watched_ms"])
    assert values["machine"] == {"device": "cpu", "precision": "fp32", "threads": 1} | {
        "kernels": values["machine"]["kernels"]
    }
    # It may be small, but such a step is never as fast as its matrix products.
    assert 0 < values["floor"]["fraction"] < 1
    assert 300 < values["batch"]["tokens"] < 700
    assert list(temporary.glob("bertsmith-*")) == []


def test_a_prepared_corpus_is_used_as_it_is(command: Command, mlm_run: FinishedRun, temporary: Path) -> None:
    corpus = mlm_run.folder / "corpus"
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*")}
    arguments = ("profile", "pretrain", corpus, "--model", mlm_run.model, "--max-length", "32", "--batch-tokens", "256")
    found = command(*arguments, "--objective", "mlm+sop", *QUICK, "--json")
    assert found.code == 0, found.err
    assert {path: path.stat().st_mtime_ns for path in corpus.rglob("*")} == before
    assert "corpus:" not in found.err
    assert list(temporary.glob("bertsmith-*")) == []


def test_a_fine_tuning_is_profiled_from_the_run_of_its_encoder(
    command: Command, mlm_run: FinishedRun, table: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in mlm_run.folder.rglob("*")}
    found = command("profile", "finetune", "classify", table, "--model", mlm_run.folder, "--batch-size", "8", *QUICK)
    assert found.code == 0, found.err
    assert found.out.startswith("A step of fine-tuning, task classify: ")
    assert "training: a row has" in found.err
    assert {path: path.stat().st_mtime_ns for path in mlm_run.folder.rglob("*")} == before
    (values,) = command(
        "profile", "finetune", "classify", table, "--model", mlm_run.folder, "--batch-size", "8", *QUICK, "--json"
    ).objects
    assert values["batch"]["sequences"] <= 8
    assert values["subject"] == {
        "job": "finetune",
        "task": "classify",
        "model": str(mlm_run.folder),
        "family": "bert",
        "parameters": values["subject"]["parameters"],
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("pretrain",), "profile pretrain needs text"),
        (("pretrain", "nowhere"), "nowhere"),
        (("pretrain", "TEXT", "--model", "bert-toi"), "Did you mean bert-toy?"),
        (("pretrain", "TEXT", "--objective", "mml"), "Did you mean mlm?"),
        (
            ("pretrain", "TEXT", "--model", "bert-toy", "--max-length", "600"),
            "--max-length must not exceed the positions",
        ),
        (("pretrain", "TEXT", "--batch-tokens", "100"), "--batch-tokens must hold two sequences"),
        (("pretrain", "TEXT", "--device", "gpu"), "--device must name a device"),
        (("pretrain", "TEXT", "--set", "trainig.seed=1"), "Did you mean training?"),
        (("pretrain", "TEXT", "--out", "TEXT"), "--out must be a folder"),
        (("finetune", "classify"), "needs a file of rows"),
        (("finetune", "classify", "TABLE"), "needs --model"),
        (("finetune", "classify", "TABLE", "--model", "bert-base"), "a preset without weights"),
        (("finetune", "clasify", "TABLE", "--model", "MODEL"), "Did you mean classify?"),
        (("finetune", "classify", "nowhere.csv", "--model", "MODEL"), "nowhere.csv"),
        (("finetune", "classify", "TABLE", "--model", "MODEL", "--text", "txt"), "--text must be one of"),
        (("finetune", "classify", "TABLE", "--model", "MODEL", "--max-length", "9999"), "--max-length must not exceed"),
        (("finetune", "classify", "TABLE", "--model", "MODEL", "--device", "gpu"), "--device must name a device"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(
    arguments: tuple[str, ...],
    told: str,
    command: Command,
    text_file: Path,
    table: Path,
    mlm_run: FinishedRun,
    tmp_path: Path,
    temporary: Path,
) -> None:
    names = {"TEXT": text_file, "TABLE": table, "MODEL": mlm_run.model}
    given = [names.get(name, name) for name in arguments]
    if "--out" not in given:
        given += ["--out", tmp_path / "out"]
    refused(command("profile", *given), told)
    assert list(tmp_path.iterdir()) == []
    assert list(temporary.glob("bertsmith-*")) == []


def test_the_page_holds_what_the_json_holds(
    command: Command, text_file: Path, tiny_model: Path, tmp_path: Path, temporary: Path
) -> None:
    arguments = ("profile", "pretrain", text_file, "--model", tiny_model, "--objective", "bilm", *SMALL, *QUICK)
    found = command(*arguments, "--out", tmp_path, "--json")
    assert found.code == 0, found.err
    (printed,) = found.objects
    written = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    assert {name: written[name] for name in printed} == printed
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{written['floor']['fraction']:.2f}" in page
    assert "LSTMs" in page


def test_with_a_time_the_steps_are_those_of_what_is_chosen_for_it(command: Command, text_file: Path) -> None:
    asked = ("profile", "pretrain", text_file, *SMALL, *QUICK, "--set", "tokenizer.vocab_size=400", "--json")
    toy, quick = command(*asked), command(*asked, "--minutes", "0.3")
    assert (toy.code, quick.code) == (0, 0), quick.err
    # In a third of a minute nothing is measured, and the smallest is trained, of half as many layers.
    assert quick.objects[0]["subject"]["parameters"] < 0.7 * toy.objects[0]["subject"]["parameters"]
