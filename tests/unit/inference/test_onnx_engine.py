"""Running an exported graph: what it is fed, what comes back, and what it refuses."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.exchange.onnx_export.build import exported_config, model_graph
from bertsmith.exchange.onnx_export.graph import save_graph
from bertsmith.foundation.errors import InputError
from bertsmith.inference import onnx_engine
from bertsmith.inference.onnx_engine import OnnxEngine, open_session, padded
from bertsmith.inference.running import TokenWindow, members_of_batches
from bertsmith.model import HeadsConfig, ModelConfig
from made_corpora import made_model, made_tokenizer
from made_predictors import made_task_model

VOCABULARY = made_tokenizer().vocab_size


@dataclass(frozen=True)
class _Named:
    name: str


class _Recorder:
    """A graph that classifies by how many tokens a row has, and remembers what it was fed."""

    def __init__(self, inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids")) -> None:
        self.fed: list[dict[str, np.ndarray]] = []
        self._inputs = inputs

    def run(self, output_names: Any, input_feed: Any) -> Any:
        self.fed.append(input_feed)
        return [input_feed["attention_mask"].sum(1, keepdims=True).repeat(2, 1).astype(np.float32)]

    def get_inputs(self) -> Any:
        return [_Named(name) for name in self._inputs]

    def get_outputs(self) -> Any:
        return [_Named("logits")]


def _windows(*lengths: int) -> list[TokenWindow]:
    return [TokenWindow(np.arange(length) + 5, np.full(length, 1)) for length in lengths]


def _exported(job: str, folder: Path) -> OnnxEngine:
    model = made_model(VOCABULARY, spread=0.3) if job == "fill" else made_task_model(job)
    save_graph(model_graph(model), folder / "model.onnx")
    return OnnxEngine(open_session(folder / "model.onnx"), exported_config(model.config), "fp32")


def test_windows_are_padded_at_their_ends_and_results_come_in_their_order() -> None:
    session = _Recorder()
    config = made_task_model("classify").config
    config = config.model_copy(update={"encoder": config.encoder.model_copy(update={"pad_token_id": 3})})
    found = OnnxEngine(session, config, "fp32").outputs("classify", _windows(4, 2, 3))
    assert [row.tolist() for row in found] == [[4, 4], [2, 2], [3, 3]]
    (fed,) = session.fed
    assert fed["input_ids"].tolist() == [[5, 6, 3, 3], [5, 6, 7, 3], [5, 6, 7, 8]]
    assert fed["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert fed["token_type_ids"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert all(array.dtype == np.int64 for array in fed.values())


def test_batches_hold_no_more_than_a_budget_with_their_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_engine, "MAX_BATCH_TOKENS", 20)
    session = _Recorder()
    OnnxEngine(session, made_task_model("classify").config, "fp32").outputs("classify", _windows(9, 1, 8, 30, 2, 7))
    assert [fed["input_ids"].shape for fed in session.fed] == [(2, 2), (2, 8), (1, 9), (1, 30)]


def test_padding_counts_where_a_batch_is_padded() -> None:
    assert list(members_of_batches(_windows(1, 1, 9), 12)) == [[0, 1, 2]]
    assert list(members_of_batches(_windows(1, 1, 9), 12, padded=True)) == [[0, 1], [2]]


def test_a_model_without_segments_is_fed_none() -> None:
    config = made_task_model("classify").config
    config = config.model_copy(update={"encoder": config.encoder.model_copy(update={"type_vocab_size": 1})})
    assert set(padded(_windows(3), config)) == {"input_ids", "attention_mask"}


def test_scores_over_the_vocabulary_are_those_of_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _exported("fill", tmp_path)
    windows = _windows(5, 9, 3)
    together = engine.vocabulary(windows, [[1, 3], [8], []])
    assert [scores.shape for scores in together] == [(2, VOCABULARY), (1, VOCABULARY), (0, VOCABULARY)]
    monkeypatch.setattr(onnx_engine, "_MAX_SCORES", VOCABULARY)  # So that every window is a batch of its own.
    for one, other in zip(together, engine.vocabulary(windows, [[1, 3], [8], []]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    ("job", "wanted", "message"),
    [
        ("classify", "tag", r"tag needs a folder that was exported for it.*to classify.*bertsmith classify DIR"),
        ("classify", "embed", r"exported for it.*to classify"),
        ("classify", "fill", r"exported for it.*to classify"),
        ("fill", "embed", r"exported for it.*to fill.*bertsmith fill DIR"),
        ("fill", "classify", r"trained for it.*without a trained head.*bertsmith finetune classify"),
        ("embed", "fill", r"exported for it.*to embed"),
    ],
)
def test_a_graph_does_its_own_job_alone(tmp_path: Path, job: str, wanted: Any, message: str) -> None:
    engine = _exported(job, tmp_path)
    engine.refuse_other(job)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=message):
        engine.refuse_other(wanted)
    with pytest.raises(InputError):
        engine.vocabulary([], []) if wanted == "fill" else engine.outputs(wanted, [])


def test_an_encoder_alone_embeds_and_says_so_to_those_who_want_a_task(tmp_path: Path) -> None:
    encoder = made_model(VOCABULARY).config.encoder
    config = ModelConfig(encoder=encoder, heads=HeadsConfig(masked_language_model=False))
    model = made_task_model("embed")
    save_graph(model_graph(model), tmp_path / "model.onnx")
    engine = OnnxEngine(open_session(tmp_path / "model.onnx"), config, "fp32")
    engine.refuse_other("embed")
    with pytest.raises(InputError, match="without a trained head"):
        engine.refuse_other("classify")


def test_a_graph_of_another_model_is_refused() -> None:
    config = made_task_model("classify").config
    with pytest.raises(InputError, match=r"takes attention_mask, input_ids, token_type_ids.*takes input_ids and gives"):
        OnnxEngine(_Recorder(["input_ids"]), config, "fp32")
    with pytest.raises(InputError, match=r"gives end_logits, start_logits.*gives logits"):
        OnnxEngine(_Recorder(), made_task_model("answer").config, "fp32")


def test_a_damaged_graph_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(InputError, match=r"model\.onnx must be a graph that onnxruntime opens"):
        open_session(tmp_path / "model.onnx")


def test_without_onnxruntime_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r'without onnxruntime.*pip install "bertsmith\[export\]"'):
        open_session(tmp_path / "model.onnx")


def test_a_graph_runs_with_as_many_threads_as_torch(tmp_path: Path) -> None:
    save_graph(model_graph(made_task_model("classify")), tmp_path / "model.onnx")
    session: Any = open_session(tmp_path / "model.onnx")
    assert session.get_session_options().intra_op_num_threads == torch.get_num_threads()
