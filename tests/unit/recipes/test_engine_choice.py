"""Which engine runs a model folder: what counts as its graph, and what a probe decides."""

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Engine, Job
from bertsmith.inference.engine_probe import Speeds
from bertsmith.inference.onnx_engine import OnnxEngine
from bertsmith.inference.running import TokenWindow
from bertsmith.model import new_model
from bertsmith.model.config import ModelConfig, TaskName
from bertsmith.recipes import engine_choice
from bertsmith.recipes.engine_choice import Wanted, faster_engine
from bertsmith.recipes.exporting.run import export_run
from bertsmith.recipes.predict import load, load_predictor
from made_corpora import made_texts, made_tokenizer
from made_exports import made_source
from made_predictors import made_items, made_task_model

SLOW = 0.05
"""Seconds of a batch: the small models of these tests take a tenth of it."""
Change = Callable[[Path], object]


class _Fake(Engine):
    """Says zeros after a time."""

    def __init__(self, seconds: float, config: ModelConfig | None = None) -> None:
        self.num_calls = 0
        self._seconds = seconds
        self._config = config or made_task_model("embed").config

    @property
    def config(self) -> ModelConfig:
        return self._config

    @property
    def precision(self) -> str:
        return "fp32"

    def refuse_other(self, job: Job) -> None:
        if job != "embed":
            raise InputError("It must be asked to embed", job, "Ask so.")

    def outputs(self, task: TaskName, windows: Sequence[TokenWindow]) -> list[Any]:
        self.num_calls += 1
        if self._seconds:
            time.sleep(self._seconds)
        return [np.zeros(1, np.float32)] * len(windows)

    def vocabulary(self, windows: Sequence[TokenWindow], positions: Sequence[Sequence[int]]) -> list[Any]:
        raise AssertionError("It was asked to embed.")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedder with its export inside; not to be changed."""
    folder = made_source("embed", tmp_path_factory.mktemp("choice") / "embedder")
    export_run(folder)
    return folder


@pytest.fixture
def embedder(exported: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return shutil.copytree(exported, tmp_path / "embedder")


def _chosen(usual: Engine, folder: Path, **wanted: Any) -> tuple[Engine, list[str]]:
    told: list[str] = []
    return faster_engine(usual, folder, Wanted(notify=told.append, **wanted)), told


def test_the_graph_is_taken_where_it_is_clearly_faster(exported: Path) -> None:
    found, told = _chosen(_Fake(SLOW), exported)
    assert isinstance(found, OnnxEngine)
    (line,) = told
    assert re.fullmatch(r"engine: onnx\. \d+ tokens took torch [1-9]\d\d\.\d ms and onnx \d+\.\d ms", line)


def test_torch_is_taken_where_the_graph_is_not(exported: Path) -> None:
    usual = _Fake(0.0)
    found, told = _chosen(usual, exported)
    assert found is usual
    (line,) = told
    assert re.fullmatch(r"engine: torch\. [\d,]+ tokens took torch \d\.\d ms and onnx \d+\.\d ms", line)


def test_without_a_graph_or_a_choice_nothing_is_run_or_said(exported: Path, tmp_path: Path) -> None:
    folder = made_source("embed", tmp_path / "alone")
    usual = _Fake(0.0)
    for given, wanted in ((folder, {}), (exported, {"probes": False}), (exported, {"engine": "torch"})):
        assert _chosen(usual, given, **wanted) == (usual, [])
    assert usual.num_calls == 0


def test_what_the_model_cannot_do_is_refused_before_the_probe(exported: Path) -> None:
    usual = _Fake(0.0)
    with pytest.raises(InputError, match="must be asked to embed"):
        _chosen(usual, exported, job="tag")
    assert usual.num_calls == 0


def _other_weights(folder: Path) -> None:
    write_model(folder, new_model(made_task_model("embed").config, seed=9), made_tokenizer())


def _other_pooling(folder: Path) -> None:
    path = folder / "1_Pooling" / "config.json"
    flags = json.loads(path.read_text(encoding="utf-8")) | {"pooling_mode_mean_tokens": False}
    path.write_text(json.dumps(flags | {"pooling_mode_cls_token": True}), encoding="utf-8")


def _without_sums(folder: Path) -> None:
    path = folder / "onnx" / "export.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    del report["weights_sha256"]
    path.write_text(json.dumps(report), encoding="utf-8")


STALE = (
    r"onnx, which was exported from other weights or settings\. Remove it, and make it anew: bertsmith export .*er\."
)
UNFIT: list[tuple[Change, str]] = [
    (_other_weights, STALE),
    (_other_pooling, STALE),
    (_without_sums, STALE),
    (
        lambda folder: (folder / "onnx" / "model.onnx").write_bytes(b"no graph"),
        r"model\.onnx \(.*Export the model anew",
    ),
    (lambda folder: (folder / "onnx" / "export.json").write_text("{"), r"export\.json.*Export the model anew"),
]


@pytest.mark.parametrize(("change", "message"), UNFIT)
def test_a_graph_that_does_not_fit_is_not_run_and_that_is_said(embedder: Path, change: Change, message: str) -> None:
    change(embedder)
    usual = _Fake(SLOW, read_model(embedder, weights=False).model.config)
    found, told = _chosen(usual, embedder)
    assert found is usual
    assert usual.num_calls == 0
    (line,) = told
    assert line.startswith("engine: torch. The graph in the model's folder is not used: ")
    with pytest.raises(InputError, match=message) as refused:
        load(embedder, engine="onnx")
    assert line.endswith(f"{refused.value.received}. {refused.value.do}")


def test_what_only_training_reads_leaves_the_graph_as_it_is(embedder: Path) -> None:
    path = embedder / "config.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["bertsmith"]["dropout"]["attention_output"] = 0.3
    path.write_text(json.dumps(values | {"transformers_version": "99", "initializer_range": 0.5}), encoding="utf-8")
    load(embedder, engine="onnx")


def test_without_onnxruntime_torch_runs_and_the_extra_is_named(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    usual = _Fake(SLOW)
    found, told = _chosen(usual, exported)
    assert found is usual
    assert 'without onnxruntime. Install them: pip install "bertsmith[export]"' in told[0]
    with pytest.raises(InputError, match="without onnxruntime"):
        load(exported, engine="onnx")


@pytest.fixture(scope="module")
def exported_in_int8(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedder with its export in int8 inside."""
    folder = made_source("embed", tmp_path_factory.mktemp("int8") / "embedder")
    texts = folder.with_name("texts.txt")
    texts.write_text("\n".join(made_texts(60, sentences=(1, 3))), encoding="utf-8")
    export_run(folder, quantize="int8", calibrate=texts)
    return folder


JUDGED = r"int8: cosine 0\.99\d\d beside fp32, over 30, at its export$"


def test_int8_takes_a_graph_in_int8_with_what_it_was_judged_by(exported_in_int8: Path, exported: Path) -> None:
    found, told = _chosen(_Fake(SLOW), exported_in_int8, precision="int8")
    assert found.precision == "int8"
    assert re.fullmatch(rf"engine: onnx\. .*; {JUDGED}", told[0])
    told = []
    load(exported_in_int8, engine="onnx", precision="int8", notify=told.append)
    assert re.fullmatch(JUDGED, told[0])
    with pytest.raises(InputError, match=r"in fp32, for --precision int8"):
        load(exported, engine="onnx", precision="int8")


@pytest.mark.parametrize("precision", ["fp32", "auto", "bf16"])
def test_a_graph_in_int8_is_for_nothing_else(exported_in_int8: Path, precision: str) -> None:
    usual = _Fake(SLOW)
    found, told = _chosen(usual, exported_in_int8, precision=precision)
    assert found is usual
    assert f"onnx in int8, for --precision {precision}. Use --precision int8, or --engine torch." in told[0]


def test_the_frozen_model_in_int8_is_judged_where_it_is_the_one_that_runs(
    exported_in_int8: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = made_items("embed", 20)
    for seconds, lines in ((1.0, ["engine: torch. ", "int8: cosine 0.99"]), (1e-9, ["engine: onnx. "])):
        # Of the two, only how fast the graph is found to be is made up.
        monkeypatch.setattr(engine_choice, "probe_speeds", lambda *given, onnx=seconds: Speeds(100, 1e-3, onnx))
        told: list[str] = []
        load_predictor("embed", exported_in_int8, precision="int8", judge_on=items, notify=told.append)(items)
        assert [line.startswith(start) for line, start in zip(told, lines, strict=True)] == [True] * len(lines)
