"""`bertsmith export`, and all that takes or refuses the folder that it writes."""

import json
import math
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import FinishedRun, Outcome, refused

import bertsmith
from bertsmith.foundation.errors import InputError
from bertsmith.model import new_model
from made_exports import made_source
from made_predictors import made_task_model
from made_tasks import made_rows, write_rows

Command = Callable[..., Outcome]
Listing = Callable[[], dict[str, bytes | None]]
GRAPH = ("--engine", "onnx")


def test_a_classifier_is_exported_and_classifies(command: Command, tmp_path: Path) -> None:
    source = made_source("classify", tmp_path / "model")
    done = command("export", source, "--format", "onnx", "--out", tmp_path / "onnx", "--json")
    assert done.code == 0, done.err
    (values,) = done.objects
    assert (values["job"], values["precision"], values["agreement"]) == ("classify", "fp32", None)
    assert values["largest_difference"] < 1e-5
    names = {path.name for path in (tmp_path / "onnx").iterdir()}
    assert {"model.onnx", "config.json", "tokenizer.json", "export.json", "manifest.json"} <= names
    theirs, ours = (
        command("classify", folder, "the old river", "a boat", "--json", "--device", "cpu")
        for folder in (source, tmp_path / "onnx")
    )
    assert ours.code == 0, ours.err
    for one, other in zip(ours.objects, theirs.objects, strict=True):
        assert one["label"] == other["label"]
        assert one["scores"] == pytest.approx(other["scores"], abs=1e-5)


def test_the_guide_s_program_without_bertsmith_runs(command: Command, tmp_path: Path) -> None:
    source, folder = made_source("classify", tmp_path / "model"), tmp_path / "my-classifier-onnx"
    assert command("export", source, "--out", folder).code == 0
    guide = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    program = textwrap.dedent(guide.split("Without bertsmith:\n")[1].split("## ")[0])
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, second = map(float, re.findall(r"-?\d+\.\d*(?:e-?\d+)?", ran.stdout))
    (found,) = command("classify", folder, "A film to remember.", "--json").objects
    odds = math.exp(first - second)
    assert odds == pytest.approx(found["scores"]["no"] / found["scores"]["yes"], rel=1e-4)


def test_rows_of_a_file_go_through_an_exported_folder(command: Command, tmp_path: Path) -> None:
    source = made_source("embed", tmp_path / "model")
    assert command("export", source, "--out", tmp_path / "onnx").code == 0
    rows = write_rows(tmp_path / "rows.jsonl", [{"text": row["text"]} for row in made_rows({"dry": 20, "wet": 20})])
    outcome = command("embed", tmp_path / "onnx", "--input", rows, "--output", tmp_path / "vectors.npy")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "vectors.npy").is_file()


def test_a_model_folder_with_its_export_is_run_by_either_engine(command: Command, tmp_path: Path) -> None:
    source = made_source("classify", tmp_path / "model")
    done = command("export", source, "--json")
    assert done.code == 0, done.err
    assert done.objects[0]["folder"] == str(source / "onnx")
    rows = write_rows(tmp_path / "rows.jsonl", [{"text": row["text"]} for row in made_rows({"dry": 9, "wet": 9})])
    given = ("--input", rows, "--json", "--device", "cpu")
    found = {name: command("classify", source, *given, "--engine", name) for name in ("auto", "torch", "onnx")}
    scores: dict[str, list[float]] = {}
    for name, outcome in found.items():
        assert outcome.code == 0, outcome.err
        assert ("engine: " in outcome.err) == (name == "auto")
        scores[name] = [score for row in outcome.objects for score in row["scores"].values()]
        assert len(scores[name]) == 36
        assert scores[name] == pytest.approx(scores["auto"], abs=1e-5)
    assert re.search(r"^engine: (torch|onnx)\. [\d,]+ tokens took torch .* ms and onnx .* ms", found["auto"].err, re.M)


def test_for_a_few_texts_nothing_is_probed(command: Command, tmp_path: Path) -> None:
    source = made_source("fill", tmp_path / "model")
    assert command("export", source).code == 0
    text = "the old [MASK]"
    plain, by_graph = (command("fill", source, text, "--device", "cpu", "--json", *more) for more in ((), GRAPH))
    assert (plain.code, plain.err) == (by_graph.code, by_graph.err) == (0, "")
    scores = [[one["score"] for one in outcome.objects[0]["predictions"]] for outcome in (plain, by_graph)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_an_engine_that_cannot_run_is_refused_with_what_to_do(command: Command, tmp_path: Path) -> None:
    source = made_source("embed", tmp_path / "model")
    refused(command("embed", source, "rain", *GRAPH), f"bertsmith export {source}")
    assert command("export", source).code == 0
    refused(command("export", source), "--out must be a new or empty folder", f"Remove {source / 'onnx'}")
    refused(command("embed", source, "rain", "--engine", "openvino"), "--engine must be one of: auto, onnx, torch")
    refused(command("embed", source / "onnx", "rain", "--engine", "torch"), "--engine torch needs a model folder")
    made_source("embed", tmp_path / "other", model=new_model(made_task_model("embed").config, seed=3))
    shutil.copytree(tmp_path / "other", source, dirs_exist_ok=True)
    refused(command("embed", source, "rain", *GRAPH), "exported from other weights", f"bertsmith export {source}")
    rows = write_rows(tmp_path / "rows.jsonl", [{"text": "rain"}])
    told = command("embed", source, "--input", rows, "--json", "--device", "cpu")
    assert told.code == 0, told.err
    assert "engine: torch. The graph in the model's folder is not used: " in told.err


def test_a_pre_trained_run_is_exported_and_fills_masks(command: Command, mlm_run: FinishedRun, tmp_path: Path) -> None:
    done = command("export", mlm_run.folder, "--out", tmp_path / "onnx")
    assert done.code == 0, done.err
    assert "fill" in done.out
    text = "The [MASK] sees the dog near the house."
    theirs, ours = (
        command("fill", folder, text, "--json", "--device", "cpu").objects[0]["predictions"]
        for folder in (mlm_run.model, tmp_path / "onnx")
    )
    assert [one["token"] for one in ours] == [one["token"] for one in theirs]
    assert [one["score"] for one in ours] == pytest.approx([one["score"] for one in theirs], abs=1e-5)
    shown = command("info", tmp_path / "onnx", "--json").objects[0]
    assert (shown["kind"], shown["job"]) == ("export", "fill")


def test_int8_is_exported_with_its_agreement_or_refused(
    command: Command, text_file: Path, tmp_path: Path, listing: Listing
) -> None:
    source = made_source("embed", tmp_path / "model")
    given = ("export", source, "--out", tmp_path / "onnx", "--quantize", "int8", "--calibrate", text_file)
    before = listing()
    refused(command(*given, "--agreement", "1"), "cosine of 1 at least", "--agreement")
    assert listing() == before
    done = command(*given, "--json")
    assert done.code == 0, done.err
    assert "cosine" in done.err
    report = json.loads((tmp_path / "onnx" / "export.json").read_text(encoding="utf-8"))
    assert report["int8"]["agreement"] == done.objects[0]["agreement"]
    assert report["int8"]["agreement"]["value"] >= 0.98


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    command: Command, tmp_path: Path, listing: Listing
) -> None:
    source = made_source("classify", tmp_path / "model")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    before = listing()
    refused(command("export", source, "--out", tmp_path / "new", "--format", "torch"), "--format must be one of: onnx")
    refused(command("export", source, "--out", tmp_path / "full"), "--out must be a new or empty folder")
    refused(command("export", tmp_path / "none", "--out", tmp_path / "new"), "A model folder must exist")
    refused(command("export", source, "--out", tmp_path / "new", "--calibrate", "a.txt"), "--quantize int8")
    assert listing() == before


def test_commands_that_need_weights_refuse_an_exported_folder(
    command: Command, text_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "onnx"
    assert command("export", made_source("fill", tmp_path / "model"), "--out", folder).code == 0
    rows = write_rows(tmp_path / "rows.csv", made_rows({"dry": 20, "wet": 20}))
    reason = "whose graph can only be run"
    refused(command("finetune", "classify", rows, "--model", folder, "--out", tmp_path / "run"), reason)
    refused(command("pretrain", text_file, "--model", folder, "--out", tmp_path / "run"), reason)
    refused(command("evaluate", folder, text_file), reason)
    with pytest.raises(InputError, match=reason):
        bertsmith.generate(folder, "The")
    refused(command("attention", folder, "The old river", "--json"), reason)
    refused(command("export", folder, "--out", tmp_path / "again"), reason)
    refused(command("classify", folder, "The old river"), "classify needs a model that was trained for it")
