"""Exported graphs give the numbers of the model that they were made of, for every family, head and shape of batch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import enlarge, random_config

from bertsmith.engine.device import Device
from bertsmith.exchange.onnx_export.build import exported_config, model_graph
from bertsmith.exchange.onnx_export.graph import save_graph
from bertsmith.foundation.random_streams import random_stream
from bertsmith.inference.engine import Engine, Job, job_of
from bertsmith.inference.onnx_engine import HIDDEN, MASK, OnnxEngine, open_session, padded
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from bertsmith.model.config import has_labels, reads_pooler
from bertsmith.model.encoder import Encoder, pack_padded

LABELS = ("yes", "no", "perhaps", "both")
TASKS = ("classify", "multilabel", "regress", "choose", "tag", "answer", "embed")
FAMILIES = ("bert", "roberta", "albert", "distilbert", "modern")
NUMBERS = range(3)
EXACT = 1e-5


def made(kind: str, heads: HeadsConfig, number: int) -> Model:
    """A random model with weights so large that one in a wrong place shows, and room for a few tokens at least."""
    encoder = random_config(kind, number).encoder
    encoder = encoder.model_copy(update={"max_position_embeddings": encoder.max_position_embeddings + 16})
    model = new_model(ModelConfig(encoder=encoder, heads=heads), seed=number).eval()
    enlarge(model, number)
    return model


def task_heads(kind: str, task: str, number: int) -> HeadsConfig:
    """The head of a task, with what a config leaves open changing from one number to the next."""
    family = "bert" if kind == "causal" else kind
    heads = {
        "masked_language_model": False,
        "task": task,
        "labels": LABELS[: 2 + number % 3] if has_labels(task) else (),
        "pooler": reads_pooler(family, task),  # pyright: ignore[reportArgumentType]
        "classifier_input": "mean" if number % 2 else "first",
        "value_scale": (3.0, 0.5) if task == "regress" and number % 2 else None,
        "pooling": ("mean", "first", "max")[number % 3],
        "normalize": number % 2 == 0,
    }
    return HeadsConfig.parse(heads, where="a case")


def exported(model: Model, folder: Path, *, apart: bool = False) -> OnnxEngine:
    """The model's graph, open."""
    save_graph(model_graph(model, projection_apart=apart), folder / "model.onnx")
    return OnnxEngine(open_session(folder / "model.onnx"), exported_config(model.config), "fp32")


def windows(model: Model, lengths: Sequence[int], seed: int = 0) -> list[TokenWindow]:
    """Random tokens; of the second half the second segment, where there is one."""
    encoder, stream = model.config.encoder, random_stream(seed, "onnx windows")
    return [
        TokenWindow(
            stream.integers(0, encoder.vocab_size, length),
            (np.arange(length) >= (length + 1) // 2).astype(np.int64) * (encoder.type_vocab_size > 1),
        )
        for length in lengths
    ]


def outputs(engine: Engine, job: Job, given: Sequence[TokenWindow]) -> list[np.ndarray]:
    """What an engine says of windows, whatever it is for."""
    if job == "fill":
        return engine.vocabulary(given, [range(len(window.token_ids)) for window in given])
    return engine.outputs(job, given)


def assert_alike(model: Model, engine: OnnxEngine) -> None:
    """One row, three padded ones, and the longest sequence."""
    job, longest = job_of(model.config), model.config.encoder.num_positions
    exact = TorchEngine(model, Device("cpu", "fp32"))
    for lengths in ([5], [3, 16, 8], [longest], [1, longest]):
        given = windows(model, lengths)
        for ours, theirs in zip(outputs(engine, job, given), outputs(exact, job, given), strict=True):
            assert ours.shape == theirs.shape
            assert ours.dtype == np.float32
            np.testing.assert_allclose(ours, theirs, atol=EXACT, rtol=EXACT)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", [*FAMILIES, "causal"])
def test_a_task_gives_the_same_numbers(tmp_path: Path, kind: str, task: str, number: int) -> None:
    model = made(kind, task_heads(kind, task, number), number)
    assert_alike(model, exported(model, tmp_path))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", FAMILIES)
def test_scores_over_the_vocabulary_are_the_same(tmp_path: Path, kind: str, tied: bool, number: int) -> None:
    model = made(kind, HeadsConfig(tie_embeddings=tied), number)
    assert_alike(model, exported(model, tmp_path, apart=number == 2))


def test_a_head_that_reads_all_layers_is_exported_too(tmp_path: Path) -> None:
    heads = HeadsConfig(mlm_head="linear", mlm_head_input="all_layers", tie_embeddings=False)
    for number, kind in enumerate(("bert", "modern")):
        folder = tmp_path / kind
        folder.mkdir()
        model = made(kind, heads, number)
        assert_alike(model, exported(model, folder))


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_encoder_gives_the_same_vector_for_every_token(tmp_path: Path, kind: str) -> None:
    model = made(kind, HeadsConfig(masked_language_model=False), 1)
    engine = exported(model, tmp_path)
    given = padded(windows(model, [4, 16, 9]), engine.config)
    (hidden,) = open_session(tmp_path / "model.onnx").run([HIDDEN], given)
    real = torch.from_numpy(given[MASK]).bool()
    assert isinstance(model.encoder, Encoder)
    packed = pack_padded(
        torch.from_numpy(given["input_ids"]),
        real,
        torch.from_numpy(given.get("token_type_ids", np.zeros_like(given[MASK]))),
    )
    with torch.no_grad():
        expected = model.encoder.packed(packed)
    np.testing.assert_allclose(hidden[real.numpy()], expected.numpy(), atol=EXACT, rtol=EXACT)


@pytest.mark.parametrize("kind", FAMILIES)
def test_neighbours_and_padding_change_nothing(tmp_path: Path, kind: str) -> None:
    model = made(kind, task_heads(kind, "classify", 0), 4)
    engine = exported(model, tmp_path)
    lengths = [7, 1, 16, 3, 12]
    together = engine.outputs("classify", windows(model, lengths))
    for place, window in enumerate(windows(model, lengths)):
        (alone,) = engine.outputs("classify", [window])
        np.testing.assert_allclose(together[place], alone, atol=EXACT, rtol=EXACT)
