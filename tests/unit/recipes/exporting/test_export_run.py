"""Exporting: every predictor takes the folder, and what is not good enough is not written."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertsmith
from bertsmith.exchange.onnx_export.parity import ShapeDifference
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import sha256
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.recipes.exporting import fp32, int8
from bertsmith.recipes.exporting.run import export_run
from bertsmith.recipes.inspect_folder import info, verify_folder
from bertsmith.recipes.predict import load, load_fill, load_predictor
from made_corpora import made_model, made_texts, made_tokenizer
from made_exports import made_export, made_source
from made_predictors import TASKS, made_items, made_task_model


def _alike(found: Any, expected: Any) -> None:
    """Plain values with numbers within what fp32 rounds."""
    match expected:
        case float():
            assert found == pytest.approx(expected, abs=1e-5)
        case dict():
            assert set(found) == set(expected)
            for name, value in expected.items():
                _alike(found[name], value)
        case list():
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                _alike(one, other)
        case _:
            assert found == expected


def _texts(folder: Path) -> Path:
    path = folder / "texts.txt"
    path.write_text("\n".join(made_texts(60, sentences=(1, 3))), encoding="utf-8")
    return path


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_predicted_alike_by_torch_and_by_the_graph(tmp_path: Path, task: str) -> None:
    folder = made_export(task, tmp_path / "out")
    items = made_items(task, 7)
    expected, found = (load_predictor(task, one, device="cpu")(items) for one in (tmp_path / "out-model", folder))
    for one, other in zip(found, expected, strict=True):
        _alike(one.values, other.values)
    assert type(load(folder)) is type(load(tmp_path / "out-model", device="cpu"))


def test_masks_are_filled_alike(tmp_path: Path) -> None:
    folder = made_export("fill", tmp_path / "out")
    texts = ["the [MASK] river", "a boat [MASK] the [MASK]", "the [MASK] " * 40]
    for given in ({}, {"targets": ["river", "boats"]}):
        ours, theirs = (load_fill(one, device="cpu")(texts, **given) for one in (folder, tmp_path / "out-model"))
        for one, other in zip(ours, theirs, strict=True):
            assert [best.token for best in one.predictions] == [best.token for best in other.predictions]
            _alike([best.score for best in one.predictions], [best.score for best in other.predictions])


def test_an_encoder_alone_is_exported_to_embed(tmp_path: Path) -> None:
    encoder = made_model(made_tokenizer().vocab_size, spread=0.3).config.encoder
    model = new_model(ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False)), seed=0)
    source = made_source("embed", tmp_path / "model", model=model)
    assert export_run(source, tmp_path / "out").job == "embed"
    embed = load(tmp_path / "out")
    expected = load_predictor("embed", source, device="cpu")(["the old river"])
    _alike(embed(["the old river"])[0].values, expected[0].values)


@pytest.mark.parametrize("long_texts", ["head", "tail"])
def test_a_long_text_is_cut_as_the_model_cuts_it(tmp_path: Path, long_texts: Any) -> None:
    source = made_source("classify", tmp_path / "model")
    made_tokenizer().seeing(12, long_texts).save(source)
    export_run(source, tmp_path / "out")
    texts = ["the old river " * 20 + "rain", "rain " + "a boat " * 20]
    ours, theirs = (load_predictor("classify", one, device="cpu") for one in (tmp_path / "out", source))
    assert ours.max_length == theirs.max_length == 12
    for one, other in zip(ours(texts), theirs(texts), strict=True):
        _alike(one.values, other.values)
        assert one.values["cut"]


def test_the_report_tells_of_every_shape_and_the_folder_verifies(tmp_path: Path) -> None:
    folder = made_export("classify", tmp_path / "out")
    report = json.loads((folder / "export.json").read_text(encoding="utf-8"))
    assert [shape["lengths"] for shape in report["fp32"]["shapes"]] == [[16], [7, 24, 15], [64]]
    assert (report["job"], report["precision"], report["outputs"]) == ("classify", "fp32", ["logits"])
    assert verify_folder(folder).faults == ()
    shown = info(folder)
    assert (shown["kind"], shown["job"], shown["labels"]) == ("export", "classify", ["no", "yes"])
    assert shown["largest_difference"] < 1e-5
    assert _left(tmp_path) == ["out", "out-model"]


def test_without_out_it_lies_in_the_model_s_own_folder_and_disturbs_nothing(tmp_path: Path) -> None:
    source = made_source("classify", tmp_path / "model")
    before = info(source)
    assert export_run(source).folder == source / "onnx"
    report = json.loads((source / "onnx" / "export.json").read_text(encoding="utf-8"))
    assert report["weights_sha256"] == {"model.safetensors": sha256(source / "model.safetensors")}
    assert info(source) == before
    assert verify_folder(source).faults == ()
    read_model(source)
    with pytest.raises(InputError, match=r"new or empty folder.*Remove .*onnx, or name another folder with --out"):
        export_run(source)
    (source / "onnx" / "export.json").write_text("{}", encoding="utf-8")
    (fault,) = verify_folder(source).faults
    assert fault.startswith("onnx/export.json: 2 bytes")


def test_a_finished_run_gets_it_in_its_model(tmp_path: Path) -> None:
    made_source("classify", tmp_path / "run" / "model")
    (tmp_path / "run" / "run.toml").write_text("", encoding="utf-8")
    assert export_run(tmp_path / "run").folder == tmp_path / "run" / "model" / "onnx"
    assert verify_folder(tmp_path / "run").faults == ()
    (tmp_path / "run" / "model" / "onnx" / "model.onnx").unlink()
    assert verify_folder(tmp_path / "run").faults == ("model/onnx/model.onnx: missing",)


def test_int8_is_judged_on_the_texts_that_were_given(tmp_path: Path) -> None:
    source = made_source("embed", tmp_path / "model")
    done = bertsmith.export(source, tmp_path / "out", quantize="int8", calibrate=_texts(tmp_path))
    assert (done.precision, done.job) == ("int8", "embed")
    assert done.agreement is not None
    assert 0.98 <= done.agreement["value"] <= 1.0
    report = json.loads((tmp_path / "out" / "export.json").read_text(encoding="utf-8"))
    assert report["int8"]["calibrated_on"] == {"text": "texts.txt", "sequences": 30}
    assert report["int8"]["least"] == 0.98
    embed = load_predictor("embed", tmp_path / "out")
    exact = load_predictor("embed", source, device="cpu")
    ours, theirs = (np.array([one.embedding for one in each(made_texts(5))]) for each in (embed, exact))
    assert 0 < np.abs(ours - theirs).max() < 0.2
    assert _left(tmp_path) == ["model", "out", "texts.txt"]


def test_int8_of_a_model_of_pairs_is_made_by_pairs_of_the_texts_that_were_given(tmp_path: Path) -> None:
    config = made_task_model("classify").config
    heads = config.heads.model_copy(update={"pairs": True})
    model = new_model(config.model_copy(update={"heads": heads}), seed=0)
    source = made_source("classify", tmp_path / "model", model=model)
    done = export_run(source, tmp_path / "out", quantize="int8", calibrate=_texts(tmp_path), agreement=0.0)
    classify = load_predictor("classify", done.folder)
    assert len(classify([("a boat", "rain")])) == 1
    with pytest.raises(InputError, match="trained on pairs of texts must be given pairs"):
        classify(["a boat"])


def test_int8_that_agrees_too_little_is_tried_again_and_refused(tmp_path: Path) -> None:
    source = made_source("embed", tmp_path / "model")
    said: list[str] = []
    with pytest.raises(InputError, match=r"cosine of 1 at least.*0\.9.*--agreement"):
        export_run(
            source, tmp_path / "out", quantize="int8", calibrate=_texts(tmp_path), agreement=1.0, notify=said.append
        )
    assert [line.split(":")[0] for line in said] == [
        "int8, the second product of feed-forwards in int8",
        "int8, the second product of feed-forwards in fp32",
    ]
    assert _left(tmp_path) == ["model", "texts.txt"]


def test_what_stays_in_fp32_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, judged = int8.agreement, iter([0.9, 0.99])

    def judged_first_low(*given: Any) -> Any:
        found = judge(*given)
        return type(found)(found.measure, next(judged), found.mean_difference, found.compared)

    monkeypatch.setattr(int8, "agreement", judged_first_low)
    source = made_source("classify", tmp_path / "model")
    done = export_run(source, tmp_path / "out", quantize="int8", calibrate=_texts(tmp_path))
    (note,) = done.notes
    assert note.startswith("the second product of each feed-forward stays in fp32")
    assert "equal labels was 0.9000" in note
    report = json.loads((tmp_path / "out" / "export.json").read_text(encoding="utf-8"))["int8"]
    assert report["second_product_of_feed_forwards"] == "fp32"
    assert [one["second_product_of_feed_forwards"] for one in report["tried"]] == ["int8"]


def test_a_graph_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worse = ShapeDifference(3, (7, 24, 15), 1e-3, 1.0)
    monkeypatch.setattr(fp32, "differences", lambda *given, longest: [worse])
    source = made_source("classify", tmp_path / "model")
    with pytest.raises(InputError, match=r"within 0\.0001.*difference of 0\.001"):
        export_run(source, tmp_path / "out")
    assert _left(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "onyx"}, r"--format must be one of: onnx.*Did you mean onnx\?"),
        ({"quantize": "int4"}, r"--quantize must be one of: int8"),
        ({"calibrate": "a.txt"}, "--calibrate belongs to --quantize int8"),
        ({"agreement": 0.9}, "--agreement belongs to --quantize int8"),
        ({"quantize": "int8", "agreement": 98.0}, r"--agreement must lie in \[0, 1\]"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_read(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        export_run(tmp_path / "nothing", tmp_path / "out", **given)
    assert _left(tmp_path) == []


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="--out must be a new or empty folder"):
        export_run(tmp_path / "nothing", tmp_path / "out")
    assert _left(tmp_path / "out") == ["letter.txt"]


@pytest.mark.parametrize("name", ["onnx", "onnxruntime"])
def test_without_a_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    source = made_source("classify", tmp_path / "model")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=rf'without {name}\. Install them: pip install "bertsmith\[export\]"'):
        export_run(source, tmp_path / "out")
    assert _left(tmp_path) == ["model"]


def test_an_exported_folder_runs_where_and_how_it_can(tmp_path: Path) -> None:
    folder = made_export("classify", tmp_path / "out")
    load(folder, device="cpu", precision="auto")
    for given, message in (
        ({"device": "cuda"}, "runs on the CPU"),
        ({"precision": "bf16"}, "precision that it was exported in"),
        ({"precision": "fp8"}, "--precision must be one of"),
    ):
        with pytest.raises(InputError, match=message):
            load(folder, **given)
    with pytest.raises(InputError, match=r"tag needs a folder that was exported for it"):
        load_predictor("tag", folder)
    with pytest.raises(InputError, match="whose graph can only be run"):
        export_run(folder, tmp_path / "again")
