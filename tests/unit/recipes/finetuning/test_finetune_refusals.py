"""What a fine-tuning refuses before anything is written or removed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from finetune_parts import COUNTS, config_of, fill_work

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.run_folder import RunFolder
from made_questions import made_questions, write_squad
from made_tasks import made_encoder, made_rows, write_rows


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and a table."""
    return fill_work(tmp_path_factory.mktemp("refusals"))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"train": "no-such.csv"}, "no-such.csv, no such file"),
        ({"validation": "no-such.csv"}, "--validation must name a file"),
        ({"model": "bert-toy"}, "a preset without weights"),
        ({"model": "no-such-folder"}, "no-such-folder"),
        ({"max_length": 65}, "65, and .* has 64"),
        ({"data": {"label": "kind"}}, "--label must be one of.*text, label"),
        ({"runtime": {"device": "abacus"}}, "--device"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_written(
    work: Path, tmp_path: Path, more: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        finetune_run(config_of(work, **more), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_label_only_in_validation_is_named_before_training(work: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "dev.csv", made_rows({"wet": 2, "cold": 1}))
    with pytest.raises(InputError, match=r"“cold” in .*dev\.csv, line \d"):
        finetune_run(config_of(work, validation=str(path)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "told", "said"),
    [
        (
            [{"text": "rain at sea", "label": "dry"}, {"text": "rain at sea", "label": "wet"}],
            "must have the same label",
            "1 text has different labels in different rows",
        ),
        (
            [{"text": "rain at sea", "label": "wet"}] * 12,
            "no text may be repeated where a share of the rows is held out",
            "validation texts stand in the training rows too",
        ),
        ([{"text": " ", "label": "wet"}], "1 blank in", "1 row left out, blank"),
    ],
)
def test_a_strict_run_refuses_faulty_rows_with_their_places(
    work: Path, tmp_path: Path, rows: list[dict[str, str]], told: str, said: str
) -> None:
    path = write_rows(tmp_path / "train.csv", [*made_rows(COUNTS), *rows])
    data = {"blank_rows": "skip"}
    with pytest.raises(InputError, match=rf"{told}.*line 10\d"):
        finetune_run(config_of(work, train=str(path), data=data | {"strict": True}), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    notes: list[str] = []
    finetune_run(config_of(work, train=str(path), data=data), tmp_path / "out", notify=notes.append)
    assert any(said in note for note in notes)


def test_rows_of_a_saved_data_set_are_trained_on_by_the_names_of_their_classes(work: Path, tmp_path: Path) -> None:
    rows = made_rows(COUNTS)
    names = sorted({row["label"] for row in rows})
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
    made = datasets.Dataset.from_list(rows, features=features)
    datasets.DatasetDict({"train": made, "validation": made.select(range(20))}).save_to_disk(str(tmp_path / "rows"))
    with pytest.raises(InputError, match=r"with train, validation\. For example: .*rows/train\."):
        finetune_run(config_of(work, train=str(tmp_path / "rows")), tmp_path / "out")
    with pytest.raises(InputError, match="a folder that holds no saved data set"):
        finetune_run(config_of(work, train=str(tmp_path)), tmp_path / "out")
    parts = {"train": str(tmp_path / "rows" / "train"), "validation": str(tmp_path / "rows" / "validation")}
    run = finetune_run(config_of(work, **parts), tmp_path / "out")
    assert run.evaluation["labels"] == names
    assert run.evaluation["rows"] == 20


def test_no_restart_costs_a_run_of_another_kind(work: Path, tmp_path: Path) -> None:
    source = made_encoder(tmp_path / "run" / "model")
    (tmp_path / "run" / "run.toml").write_text('objective = "mlm"\n')
    with pytest.raises(InputError, match="holds a pre-training, for a fine-tuning"):
        finetune_run(config_of(work), tmp_path / "run", restart=True)
    assert (source / "manifest.json").is_file()


@pytest.mark.parametrize("inside", ["checkpoints/step-00000006", "rows.csv", "dev.csv", "."])
def test_no_restart_costs_what_the_run_is_made_from(inside: str, work: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    RunFolder(out, config_of(work)).write({})
    made_encoder(out / "checkpoints" / "step-00000006")
    made_encoder(out / "model")
    for name in ("rows.csv", "dev.csv"):
        write_rows(out / name, made_rows(COUNTS))
    given = {"rows.csv": "train", "dev.csv": "validation"}.get(inside, "model")
    before = sorted(out.rglob("*"))
    with pytest.raises(InputError, match="--restart must not remove what the run is made from"):
        finetune_run(config_of(work, **{given: str(out / inside)}), out, restart=True)
    assert sorted(out.rglob("*")) == before


def test_seeds_share_what_is_left_of_the_time(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Begun(Exception):
        pass

    def begin(*_: object) -> None:
        raise Begun

    monkeypatch.setattr("bertsmith.recipes.finetuning.run.run_seeds", begin)
    config = config_of(work, seeds=5, length={"minutes": 1})
    with pytest.raises(Begun):
        finetune_run(config, tmp_path / "out", started_at=time.monotonic() - 15)
    with pytest.raises(InputError, match=r"1 minutes for 5 seeds, which is for each 0\.2 minutes, of which 1 s"):
        finetune_run(config, tmp_path / "out", started_at=time.monotonic() - 55)


def _choices(folder: Path) -> Path:
    rows = [{"sent1": f"a boat {n}", "ending0": "rain", "ending1": "bread", "label": n % 2} for n in range(20)]
    return write_rows(folder / "rows.csv", rows)


def _values(folder: Path) -> Path:
    return write_rows(folder / "rows.csv", [{"text": f"a boat {n}", "score": n} for n in range(20)])


def _pairs(folder: Path) -> Path:
    rows = [{"sentence1": f"a boat {n}", "sentence2": f"the boat {n}"} for n in range(20)]
    return write_rows(folder / "rows.csv", rows)


def _questions(folder: Path) -> Path:
    return write_squad(folder / "rows.json", made_questions(20))


def _labels(folder: Path) -> Path:
    return write_rows(folder / "rows.csv", made_rows(COUNTS))


@pytest.mark.parametrize(
    ("task", "rows", "more", "told"),
    [
        ("classify", None, {"train": "no-such.csv"}, "no-such.csv, no such file"),
        ("classify", _labels, {"training": {"metric": "acuracy"}}, "Did you mean accuracy"),
        ("classify", _labels, {"runtime": {"device": "abacus"}}, "--device"),
        ("classify", _labels, {"length": {"minutes": 0.001}}, "--minutes must leave time to train"),
        ("classify", _labels, {"seeds": 200, "length": {"minutes": 1}}, r"must leave time.*1 minutes for 200 seeds"),
        ("regress", _values, {"class_weights": "balanced"}, "class_weights must be none for regress"),
        ("choose", _choices, {"long_texts": "windows"}, "hoices are compared by one reading"),
        ("embed", _pairs, {"freeze": "encoder"}, "no weights beside its encoder's"),
        ("answer", _questions, {"answer": {"no_answer_threshold": 0.5}}, "no_answer_threshold needs"),
        ("answer", _questions, {"answer": {"overlap": 60}, "max_length": 32}, "overlap"),
    ],
)
def test_a_slip_of_the_pen_does_not_cost_the_earlier_run(
    work: Path, tmp_path: Path, task: str, rows: Callable[[Path], Path] | None, more: dict[str, Any], told: str
) -> None:
    out = tmp_path / "run"
    RunFolder(out, config_of(work)).write({})
    made_encoder(out / "model")
    before = sorted(out.rglob("*"))
    train = {} if rows is None else {"train": str(rows(tmp_path))}
    with pytest.raises(InputError, match=told):
        finetune_run(config_of(work, task=task, **train | more), out, restart=True)
    assert sorted(out.rglob("*")) == before
