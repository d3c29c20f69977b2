"""An engine that is named runs, says the same as the other one, or is refused with what to do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.inference.onnx_engine import OnnxEngine
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import new_model
from bertsmith.recipes.exporting.run import export_run
from bertsmith.recipes.predict import load, load_fill, load_predictor, open_engine
from made_exports import made_export, made_source
from made_predictors import TASKS, made_items, made_task_model


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedder with its export inside."""
    folder = made_source("embed", tmp_path_factory.mktemp("named") / "embedder")
    export_run(folder)
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_both_engines_say_the_same(tmp_path: Path, task: Any) -> None:
    folder = made_source(task, tmp_path / "model")
    export_run(folder)
    items = made_items(task, 5)
    found: list[list[dict[str, Any]]] = []
    for engine in ("torch", "onnx"):
        predictor: Any = load(folder, device="cpu", engine=engine)
        found.append([one.values for one in predictor(items)])
    ours, theirs = (np.array(_numbers(values)) for values in found)
    assert ours.size > len(items)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def _numbers(values: Any) -> list[float]:
    match values:
        case dict():
            return [number for value in values.values() for number in _numbers(value)]
        case list() | tuple():
            return [number for value in values for number in _numbers(value)]
        case int() | float():
            return [float(values)]
        case _:
            return []


def test_masks_are_filled_the_same(tmp_path: Path) -> None:
    folder = made_source("fill", tmp_path / "model")
    export_run(folder)
    texts = ["the [MASK] river", "a boat [MASK] the [MASK]"]
    ours, theirs = (load_fill(folder, device="cpu", engine=engine)(texts) for engine in ("onnx", "torch"))
    for one, other in zip(ours, theirs, strict=True):
        assert [best.token for best in one.predictions] == [best.token for best in other.predictions]
        scores = [[best.score for best in mask.predictions] for mask in (one, other)]
        np.testing.assert_allclose(*scores, rtol=0, atol=1e-5)


def test_the_engine_that_was_named_runs(exported: Path) -> None:
    assert isinstance(open_engine(exported, device="cpu", engine="onnx")[0], OnnxEngine)
    assert isinstance(open_engine(exported, device="cpu", engine="torch")[0], TorchEngine)
    assert isinstance(open_engine(exported / "onnx", engine="onnx")[0], OnnxEngine)
    told: list[str] = []
    engine, _ = open_engine(exported, device="cpu", precision="fp32", notify=told.append)
    assert told[0].startswith(f"engine: {'onnx' if isinstance(engine, OnnxEngine) else 'torch'}. ")


def test_an_encoder_alone_embeds_by_either_engine(tmp_path: Path) -> None:
    config = made_task_model("embed").config
    heads = config.heads.model_copy(update={"task": None})
    model = new_model(config.model_copy(update={"heads": heads}), seed=0)
    folder = made_source("embed", tmp_path / "model", model=model)
    export_run(folder)
    vectors: list[np.ndarray] = []
    for engine in ("torch", "onnx"):
        embed: Any = load(folder, device="cpu", engine=engine)
        vectors.append(embed("the old river")[0].embedding)
    np.testing.assert_allclose(*vectors, rtol=0, atol=1e-5)


def test_onnx_is_refused_where_there_is_no_graph_for_it(tmp_path: Path, exported: Path) -> None:
    alone = made_source("fill", tmp_path / "alone")
    with pytest.raises(InputError, match=r"alone without onnx\. Make it: bertsmith export .*alone\."):
        load(alone, engine="onnx")
    (alone / "onnx").mkdir()
    (alone / "onnx" / "model.onnx").write_bytes(b"another program's")
    with pytest.raises(InputError, match="onnx, which holds something else"):
        load(alone, engine="onnx")
    with pytest.raises(InputError, match=r"embedder.onnx in fp32, for --precision bf16\. Use --precision fp32, or"):
        load(exported, engine="onnx", precision="bf16")
    with pytest.raises(InputError, match="runs on the CPU"):
        load(exported, engine="onnx", device="cuda")


def test_onnx_is_refused_for_what_the_graph_was_not_exported_for(tmp_path: Path) -> None:
    folder = made_source("fill", tmp_path / "model")
    export_run(folder)
    with pytest.raises(InputError, match=r"exported to fill, to embed\. Use --engine torch"):
        load_predictor("embed", folder, engine="onnx")
    told: list[str] = []
    load_predictor("embed", folder, device="cpu", notify=told.append)(["the old river"])
    assert "exported to fill, to embed" in told[0]


def test_an_exported_folder_is_not_run_by_torch(tmp_path: Path) -> None:
    folder = made_export("classify", tmp_path / "out")
    with pytest.raises(InputError, match=r"--engine torch needs a model folder.*that it was exported from"):
        load(folder, engine="torch")
    with pytest.raises(InputError, match=r"--engine must be one of: auto, onnx, torch.*Did you mean onnx\?"):
        load(folder, engine="onxx")
