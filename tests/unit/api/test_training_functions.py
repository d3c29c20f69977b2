"""The functions that train take what their commands take, by the same names."""

import inspect
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertsmith
from bertsmith import InputError, Run
from bertsmith.cli.finetune_commands import finetune as finetune_command
from bertsmith.cli.train_commands import pretrain as pretrain_command
from bertsmith.cli.use_commands import evaluate as evaluate_command
from bertsmith.examples.table_config import TableConfig
from bertsmith.recipes.run_options import FINETUNING_SETTINGS, PRETRAINING_SETTINGS
from made_corpora import made_texts
from made_tasks import made_encoder, made_rows, write_rows

_SAID_OTHERWISE = {"assignments", "as_json"}
"""In Python `settings` stands for the first; results are objects."""


class Table:
    columns = ("text", "label")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("functions")
    made_encoder(work / "encoder")
    rows = made_rows({"wet": 30, "dry": 30})
    write_rows(work / "train.jsonl", rows)
    renamed = [{"review": row["text"], "verdict": row["label"], "note": row["text"] * 2} for row in rows[:20]]
    write_rows(work / "named.jsonl", renamed)
    (work / "text.txt").write_text("\n\n".join(made_texts(60)), encoding="utf-8")
    write_rows(work / "text.jsonl", [{"body": text, "text": "Short."} for text in made_texts(30)])
    return work


@pytest.fixture(scope="module")
def learned(work: Path) -> Run:
    return bertsmith.finetune(
        "classify",
        work / "train.jsonl",
        model=work / "encoder",
        out=work / "learned",
        steps=2,
        encoding="utf-8",
        device="cpu",
        precision="fp32",
        threads=1,
        max_length=32,
        batch_size=8,
        learning_rate=2e-4,
        seed=3,
    )


@pytest.mark.parametrize(
    ("function", "command"),
    [
        (bertsmith.pretrain, pretrain_command),
        (bertsmith.finetune, finetune_command),
        (bertsmith.evaluate, evaluate_command),
    ],
)
def test_every_option_of_a_command_is_an_argument_of_its_function(function: Any, command: Any) -> None:
    options = inspect.signature(command).parameters.keys() - _SAID_OTHERWISE
    assert options <= inspect.signature(function).parameters.keys()


def test_every_argument_with_a_setting_reaches_it(learned: Run) -> None:
    written = tomllib.loads((learned.folder / "run.toml").read_text(encoding="utf-8"))
    assert (written["max_length"], written["length"]["steps"]) == (32, 2)
    assert (written["training"]["batch_size"], written["training"]["seed"]) == (8, 3)
    assert written["training"]["optimizer"]["learning_rate"] == 2e-4
    assert written["runtime"] == {"device": "cpu", "precision": "fp32", "threads": 1}
    for function, places in ((bertsmith.pretrain, PRETRAINING_SETTINGS), (bertsmith.finetune, FINETUNING_SETTINGS)):
        assert places.keys() <= inspect.signature(function).parameters.keys()


def test_a_run_toml_is_a_config_and_arguments_stand_over_it(learned: Run, work: Path) -> None:
    config = learned.folder / "run.toml"
    again = bertsmith.finetune(
        config=config, out=work / "again", epochs=0.5, seed=4, settings={"training.schedule.warmup_share": 0.2}
    )
    written = tomllib.loads((again.folder / "run.toml").read_text(encoding="utf-8"))
    assert written["length"] == {"epochs": 0.5}
    assert (written["training"]["seed"], written["training"]["batch_size"]) == (4, 8)
    assert written["training"]["schedule"]["warmup_share"] == 0.2


def test_settings_take_the_place_of_a_files_length_and_of_options(learned: Run, work: Path) -> None:
    config, settings = learned.folder / "run.toml", {"length.epochs": 0.5, "training.seed": np.int64(6)}
    run = bertsmith.finetune(config=config, out=work / "set", seed=4, settings=settings)
    written = tomllib.loads((run.folder / "run.toml").read_text(encoding="utf-8"))
    assert (written["length"], written["training"]["seed"]) == ({"epochs": 0.5}, 6)


def test_a_fault_of_an_argument_is_not_laid_to_the_file_alone(learned: Run) -> None:
    config = learned.folder / "run.toml"
    with pytest.raises(InputError, match=r"Change it in .*run\.toml or the arguments"):
        bertsmith.finetune(config=config, out="x", epochs=-1.0)


def test_a_comparison_takes_one_path(work: Path) -> None:
    with pytest.raises(InputError, match="no-such-folder"):
        bertsmith.compare("no-such-folder", work / "compared")


def test_pretraining_takes_one_path_and_what_the_command_takes(work: Path) -> None:
    run = bertsmith.pretrain(
        str(work / "text.txt"),
        work / "pretrained",
        model="bert-toy",
        steps=1,
        device="cpu",
        precision="fp32",
        max_length=32,
        batch_tokens=256,
        seed=5,
        settings={"tokenizer.vocab_size": 200},
    )
    written = tomllib.loads((run.folder / "run.toml").read_text(encoding="utf-8"))
    assert (written["max_length"], written["training"]["batch_tokens"], written["training"]["seed"]) == (32, 256, 5)
    encoder = bertsmith.Encoder.from_folder(run.folder)
    assert encoder.config.vocab_size >= 200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bertsmith.pretrain(out="x"), "pretrain needs text"),
        (lambda: bertsmith.pretrain(["a.txt"]), "needs a folder of its own"),
        (lambda: bertsmith.finetune("classify", "a.csv", out="x"), "needs the folder of an encoder"),
        (lambda: bertsmith.finetune("classify", model="m", out="x"), "needs a file of rows"),
        (lambda: bertsmith.finetune("clasify", "a.csv", model="m", out="x"), "Did you mean classify"),
        (lambda: bertsmith.finetune("tag", "a.csv", model="m", out="x", config="nowhere.toml"), "no file nowhere"),
    ],
)
def test_what_is_missing_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_an_evaluation_reads_the_columns_that_are_named(learned: Run, work: Path) -> None:
    path = work / "named.jsonl"
    named = bertsmith.evaluate(learned.folder, path, text="note", label="verdict", device="cpu")
    assert "text “note”" in named.metrics["notes"][0]
    over = bertsmith.evaluate(
        learned.folder, path, text="review", table=TableConfig(text="note", label="verdict"), device="cpu"
    )
    assert "text “review”" in over.metrics["notes"][0]
    with pytest.raises(InputError, match="txet"):
        bertsmith.evaluate(learned.folder, path, text="txet", device="cpu")


def test_an_evaluation_of_a_language_model_takes_a_column_of_text_and_nothing_else_of_rows(work: Path) -> None:
    short = bertsmith.evaluate(work / "encoder", work / "text.jsonl", device="cpu")
    body = bertsmith.evaluate(work / "encoder", work / "text.jsonl", text="body", device="cpu")
    assert body.metrics["loss"] != short.metrics["loss"]
    with pytest.raises(InputError, match=r"only rows of a task have labels.*label, pair for"):
        bertsmith.evaluate(work / "encoder", work / "text.jsonl", pair="a", label="b")
