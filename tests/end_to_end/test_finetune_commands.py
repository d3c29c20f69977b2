"""`finetune`, `classify` and `evaluate` on labelled rows, from the command line."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, refused

from made_tasks import made_encoder, made_rows, write_rows

Command = Callable[..., Outcome]
Listing = Callable[[], dict[str, bytes | None]]
QUICK = ("--steps", "80", "--learning-rate", "5e-3", "--device", "cpu", "--precision", "fp32", "--threads", "1")
CPU = ("--device", "cpu")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model's folder."""
    return made_encoder(tmp_path_factory.mktemp("encoder") / "model")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred labelled rows."""
    return write_rows(tmp_path_factory.mktemp("table") / "train.csv", made_rows({"wet": 60, "dry": 40}))


@pytest.fixture(scope="module")
def trained(
    command: Command, encoder: Path, table: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Outcome]:
    """A fine-tuned run, and what its command printed."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    outcome = command("finetune", "classify", table, "--model", encoder, "--out", folder, *QUICK)
    assert outcome.code == 0, outcome.err
    return folder, outcome


def test_finetune_prints_scores_each_class_and_what_to_try(trained: tuple[Path, Outcome]) -> None:
    folder, outcome = trained
    for line in (r"^accuracy +\d\.\d{4}$", r"^macro f1 ", r"^matthews ", r"^rows +10$", r"^  wet +precision"):
        assert re.search(line, outcome.out, re.MULTILINE), outcome.out
    for part in (
        "no --validation: 10 of 100 rows",
        "training: 90 rows, of “wet” 54, “dry” 36",
        "validation accuracy",
        f"report: {folder}",
    ):
        assert part in outcome.err
    tried = outcome.err.strip().splitlines()[-1]
    assert tried.startswith(f"try it: bertsmith classify {folder / 'model'} ")


def test_a_classifier_of_pairs_is_tried_and_used_with_pairs(command: Command, encoder: Path, tmp_path: Path) -> None:
    table = write_rows(tmp_path / "pairs.csv", made_rows({"wet": 60, "dry": 40}, pairs=True))
    folder = tmp_path / "run"
    outcome = command("finetune", "classify", table, "--model", encoder, "--out", folder, *QUICK, "--steps", "2")
    tried = outcome.err.strip().splitlines()[-1]
    assert re.fullmatch(rf'try it: bertsmith classify {folder / "model"} "[^"]+" --pair "[^"]+"', tried)
    cpu = ("--device", "cpu")
    (found,) = command("classify", folder, "a boat", "--pair", "rain", "--json", *cpu).objects
    assert (found["text"], found["pair"]) == ("a boat", "rain")
    refused(command("classify", folder, "a boat", *cpu), "trained on pairs of texts", "--pair")
    alone = ("--text-column", "sentence1")
    refused(command("classify", folder, "--input", table, *alone, *cpu), "must be given pairs", "--pair-column")
    assert command("classify", folder, "--input", table, *cpu).code == 0


def test_the_same_command_again_says_that_it_is_finished(
    trained: tuple[Path, Outcome], command: Command, encoder: Path, table: Path
) -> None:
    folder, _ = trained
    outcome = command("finetune", "classify", table, "--model", encoder, "--out", folder, *QUICK, "--json")
    assert outcome.code == 0
    assert "is finished" in outcome.err
    (found,) = outcome.objects
    assert found["steps"] == 80
    assert {"loss", "accuracy", "macro_f1", "matthews", "rows"} <= set(found)
    other = command("finetune", "classify", table, "--model", encoder, "--out", folder, *QUICK, "--seed", "5")
    refused(other, "training.seed was 0 and is now 5")


def test_several_seeds_show_mean_and_spread(command: Command, encoder: Path, table: Path, tmp_path: Path) -> None:
    run = ("finetune", "classify", table, "--model", encoder, "--out", tmp_path / "run", "--seeds", "2", *QUICK)
    run = (*run, "--steps", "2")
    outcome = command(*run)
    assert outcome.code == 0, outcome.err
    (found,) = command(*run, "--json").objects
    shown = dict(re.findall(r"^(loss|accuracy) +(.+)$", outcome.out, re.MULTILINE))
    for name in ("loss", "accuracy"):
        assert shown[name] == f"{found[name]:.4f} ± {found['spread'][name]:.4f}"
    assert found["spread"]["loss"] > 0


def test_a_run_begins_again_from_its_own_settings(
    trained: tuple[Path, Outcome], command: Command, tmp_path: Path
) -> None:
    folder, _ = trained
    run = ("finetune", "classify", "--config", folder / "run.toml", "--out", tmp_path / "again", "--steps", "2")
    outcome = command(*run, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.objects[0]["steps"] == 2


def test_classify_tells_texts(trained: tuple[Path, Outcome], command: Command) -> None:
    folder, _ = trained
    plain = command("classify", folder, "the old boat rain", "the old boat bread", *CPU)
    assert plain.code == 0, plain.err
    assert [line.split("\t")[0] for line in plain.out.splitlines()] == ["wet", "dry"]
    found = command("classify", folder, "the old boat rain", "--json", *CPU).objects
    assert set(found[0]) == {"text", "label", "score", "scores", "cut"}
    assert (found[0]["text"], found[0]["label"]) == ("the old boat rain", "wet")
    pair = command("classify", folder, "the old boat rain", "--pair", "bread", *CPU)
    refused(pair, "texts that stand alone must be given such", "Leave the second text out")


def test_classify_reads_a_file_and_writes_one(trained: tuple[Path, Outcome], command: Command, tmp_path: Path) -> None:
    folder, _ = trained
    rows = made_rows({"wet": 3, "dry": 3}, seed=5)
    source = write_rows(tmp_path / "a.csv", [{"id": number, "words": row["text"]} for number, row in enumerate(rows)])
    outcome = command("classify", folder, "--input", source, "--output", tmp_path / "out.jsonl", *CPU)
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    assert "columns: text “words”" in outcome.err
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["text"] for one in written] == [row["text"] for row in rows]
    named = command("classify", folder, "--input", source, "--text-column", "id", "--json", *CPU)
    assert [one["text"] for one in named.objects] == list("012345")


def test_classify_reads_standard_input_and_goes_on_after_a_bad_row(
    trained: tuple[Path, Outcome], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = trained
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the old boat rain\n\nthe old boat bread\n")))
    outcome = command("classify", folder, "--input", "-", "--json", *CPU)
    assert outcome.code == 0
    first, bad, last = outcome.objects
    assert (first["label"], bad["row"], last["label"]) == ("wet", 2, "dry")
    assert "row 2: A text must not be blank" in outcome.err
    assert "1 of 3 rows could not be used" in outcome.err


def test_evaluate_scores_a_classifier_on_rows(trained: tuple[Path, Outcome], command: Command, table: Path) -> None:
    folder, _ = trained
    outcome = command("evaluate", folder, table, *CPU)
    assert outcome.code == 0, outcome.err
    assert "columns of train.csv" in outcome.err
    assert re.search(r"^accuracy +\d\.\d{4}$", outcome.out, re.MULTILINE)
    (found,) = command("evaluate", folder, table, "--json", *CPU).objects
    assert found["rows"] == 100
    assert set(found["per_class"]) == {"dry", "wet"}
    assert sum(map(sum, found["confusion"])) == 100


def test_evaluate_writes_a_report_a_picture_and_the_worst_errors(
    trained: tuple[Path, Outcome], command: Command, table: Path, tmp_path: Path
) -> None:
    outcome = command("evaluate", trained[0], table, "--out", tmp_path / "found", "--json", *CPU)
    assert outcome.code == 0, outcome.err
    assert f"written: {tmp_path / 'found'}" in outcome.err
    names = {"evaluation.json", "report.html", "confusion.png", "confusion.svg", "errors.tsv"}
    assert {path.name for path in (tmp_path / "found").iterdir()} == names
    assert json.loads((tmp_path / "found" / "evaluation.json").read_text(encoding="utf-8")) == outcome.objects[0]
    before = sorted(trained[0].rglob("*"))
    refused(command("evaluate", trained[0], table, "--out", trained[0]), "which holds run.toml")
    assert sorted(trained[0].rglob("*")) == before


def test_info_names_the_labels(trained: tuple[Path, Outcome], command: Command) -> None:
    (found,) = command("info", trained[0] / "model", "--json").objects
    assert found["labels"] == ["dry", "wet"]
    assert found["architectures"] == ["BertForSequenceClassification"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("classify",), "texts, or a file of them with --input"),
        (("classify", "a text", "--input", "a.txt"), "both"),
        (("classify", "one", "two", "--pair", "three"), "--pair goes with one text"),
        (("classify", "one", "--output", "out.jsonl"), "--output goes with --input"),
        (("classify", " "), "must not be blank"),
        (("classify", "--input", "no-such.txt"), "no-such.txt"),
        (("fill", "a [MASK]"), "needs a masked language model"),
        (("evaluate", "no-such.csv"), "no-such.csv, no such file"),
    ],
)
def test_wrong_use_of_a_classifier_is_refused(
    trained: tuple[Path, Outcome], command: Command, arguments: tuple[str, ...], told: str
) -> None:
    verb, *rest = arguments
    refused(command(verb, trained[0], *rest), told)


def test_an_encoder_without_a_classifier_is_refused(command: Command, encoder: Path) -> None:
    refused(command("classify", encoder, "a text"), "trained for it", "bertsmith finetune classify")


def test_an_input_without_a_usable_row_is_refused_and_nothing_is_left(
    trained: tuple[Path, Outcome],
    command: Command,
    tmp_path: Path,
    listing: Listing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "a.txt").write_text("\n \n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    before = listing()
    for source, told in ((tmp_path / "a.txt", "2 rows, and none can"), ("-", "0 rows, and none can")):
        outcome = command("classify", trained[0], "--input", source, "--output", tmp_path / "out.csv", *CPU)
        assert outcome.code == 2
        assert told in outcome.err
    assert listing() == before


def test_an_output_that_cannot_be_written_is_refused_before_the_model_is_read(
    command: Command, tmp_path: Path, listing: Listing
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "folder").mkdir()
    before = listing()
    for output in (tmp_path / "folder", tmp_path / "none" / "out.csv", tmp_path / ("x" * 300)):
        classify = ("classify", tmp_path / "no-model", "--input", tmp_path / "a.txt", "--output", output)
        refused(command(*classify), "--output must")
    assert listing() == before


def test_half_a_character_costs_its_row_alone(trained: tuple[Path, Outcome], command: Command, tmp_path: Path) -> None:
    texts = ("the old boat rain", "the old boat \ud83d", "the old boat bread")
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    outcome = command("classify", trained[0], "--input", tmp_path / "a.jsonl", "--output", tmp_path / "out.jsonl", *CPU)
    assert outcome.code == 0, outcome.err
    assert "row 2: a.jsonl must hold whole characters" in outcome.err
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert ["label" in one for one in written] == [True, False, True]


def test_commands_are_told_their_own_options(trained: tuple[Path, Outcome], command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("one,two,label\na,b,wet\n")
    refused(command("classify", trained[0], "--input", tmp_path / "a.csv"), "--text-column")
    (tmp_path / "blank.csv").write_text("text,label\n,wet\n")
    outcome = command("evaluate", trained[0], tmp_path / "blank.csv")
    refused(outcome, "line 2 (text)")
    assert "--set" not in outcome.err


TABLES: dict[str, tuple[str, str]] = {
    "one.csv": ("text,label\na,x\nb,x\n", "two labels at least"),
    "ragged.csv": ("text,label\na,x\nb,y,z\n", "line 3: 3 fields where the header has 2"),
    "blank.csv": ("text,label\na,x\n,y\n", "--set data.blank_rows=skip"),
    "empty.csv": ("", "must hold rows"),
    "unknown.csv": ("one,two,three\na,b,c\n", "--label"),
    "float.csv": ("text,label\na,0.5\nb,0.7\nc,0.5\n", "names or whole numbers"),
    "list.jsonl": ('{"text": "a", "label": ["x"]}\n', "name or a whole number"),
    "number.jsonl": ('{"text": 4, "label": "x"}\n', "must be text"),
    "broken.jsonl": ('{"text": "a", "label": "x"}\n{\n', "line 2: not JSON"),
    "half.jsonl": ('{"text": "a \\ud83d", "label": "x"}\n{"text": "b", "label": "y"}\n', "surrogate pair"),
    "single.csv": ("text,label\na,x\nb,y\n", "none of whose labels has two"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_cannot_be_used_is_refused_and_nothing_is_left(
    command: Command, encoder: Path, tmp_path: Path, listing: Listing, name: str
) -> None:
    content, told = TABLES[name]
    (tmp_path / name).write_text(content)
    before = listing()
    refused(command("finetune", "classify", tmp_path / name, "--model", encoder, "--out", tmp_path / "out"), told)
    assert listing() == before


def test_a_table_in_another_encoding_is_read_where_it_is_named(command: Command, encoder: Path, tmp_path: Path) -> None:
    rows = [row | {"text": f"{row['text']} caf\xe9"} for row in made_rows({"wet": 10, "dry": 10})]
    path = write_rows(tmp_path / "latin.csv", rows)
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    run = ("finetune", "classify", path, "--model", encoder, "--out", tmp_path / "out", "--steps", "1", *CPU)
    refused(command(*run), "0xE9", "--encoding")
    assert command(*run, "--encoding", "latin-1").code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("classify",), "a file of rows to learn from"),
        (("classify", "train.csv"), "--model, the folder of an encoder"),
        (("sort", "train.csv", "--model", "x"), "task"),
        (("classify", "train.csv", "--model", "bert-base"), "a preset without weights"),
        (("classify", "train.csv", "--model", "x", "--set", "training.batch_tokens=8"), "training.batch_tokens"),
    ],
)
def test_wrong_use_of_finetune_is_refused(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    refused(command("finetune", *arguments, "--out", tmp_path / "out"), told)
    assert not (tmp_path / "out").exists()
