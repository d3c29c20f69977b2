"""How other programs embed texts: each as fast as its own documentation says, on the same texts in the same process."""

import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.engine.memory import keep_freed_memory

Embed = Callable[[list[str]], np.ndarray]
MAX_TOKENS, BATCH = 256, 32
SENTENCES, BF16, ORT, OPENVINO = "sentence-transformers", "transformers bf16", "onnxruntime int8", "openvino bf16"
PACKAGES = {
    SENTENCES: ("sentence_transformers",),
    BF16: ("transformers",),
    ORT: ("transformers", "onnx", "onnxruntime"),
    OPENVINO: ("transformers", "onnx", "openvino"),
}
"""What each needs."""


def missing(peer: str) -> list[str]:
    """Packages of a peer that are not installed."""
    return [name for name in PACKAGES[peer] if importlib.util.find_spec(name) is None]


def peer(name: str, model: str, scratch: Path) -> Embed:
    """A peer, ready to embed.

    Args:
        name: which.
        model: the model's folder.
        scratch: a folder for graphs.
    """
    makers = {SENTENCES: _sentence_transformers, BF16: _transformers, ORT: _onnxruntime, OPENVINO: _openvino}
    return makers[name](model, scratch)


def _sentence_transformers(model: str, scratch: Path) -> Embed:
    from sentence_transformers import SentenceTransformer

    made = SentenceTransformer(model, device="cpu")
    made.max_seq_length = MAX_TOKENS
    return lambda texts: made.encode(texts, show_progress_bar=False, normalize_embeddings=True)


class _Embedder(nn.Module):
    """The mean of the tokens' last vectors, at length one: part of the graph, where there is one."""

    def __init__(self, model: str, dtype: torch.dtype) -> None:
        super().__init__()
        from transformers import AutoModel

        self.encoder = AutoModel.from_pretrained(model, dtype=dtype).eval()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask)[0].float()
        sums = (hidden * attention_mask[..., None]).sum(1)
        return nn.functional.normalize(sums, dim=-1)


def _batches(model: str, texts: list[str], made: Callable[[np.ndarray, np.ndarray], Any]) -> np.ndarray:
    """What is made of the texts' tokens, 32 texts of like length at a time."""
    tokenizer = _tokenizer(model)
    encodings = tokenizer.encode_batch(texts)
    order = sorted(range(len(texts)), key=lambda number: len(encodings[number].ids))
    found: list[np.ndarray] = []
    for start in range(0, len(order), BATCH):
        members = [encodings[number].ids for number in order[start : start + BATCH]]
        ids = np.zeros((len(members), max(map(len, members))), np.int64)
        for row, tokens in zip(ids, members, strict=True):
            row[: len(tokens)] = tokens
        mask = (np.arange(ids.shape[1]) < np.array([len(tokens) for tokens in members])[:, None]).astype(np.int64)
        found.append(np.asarray(made(ids, mask)))
    vectors = np.concatenate(found)
    result = np.empty_like(vectors)
    result[order] = vectors
    return result


_TOKENIZERS: dict[str, Any] = {}


def _tokenizer(model: str) -> Any:
    from tokenizers import Tokenizer

    if model not in _TOKENIZERS:
        tokenizer = Tokenizer.from_file(str(Path(model) / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        _TOKENIZERS[model] = tokenizer
    return _TOKENIZERS[model]


def _transformers(model: str, scratch: Path) -> Embed:
    keep_freed_memory()
    made = _Embedder(model, torch.bfloat16)

    @torch.inference_mode()
    def embedded(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return made(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()

    return lambda texts: _batches(model, texts, embedded)


def _graph(model: str, scratch: Path) -> Path:
    """The model as torch writes it in ONNX, with the exporter that needs no further package."""
    path = scratch / "model.onnx"
    axes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}
    example = (torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Embedder(model, torch.float32), example, str(path), dynamo=False, input_names=list(axes),
            output_names=["vectors"], dynamic_axes={**axes, "vectors": {0: "batch"}}, opset_version=17,
        )  # fmt: skip
    return path


def _onnxruntime(model: str, scratch: Path) -> Embed:
    """As its documentation advises for transformers: the graph is optimised first, then quantised dynamically."""
    import onnx
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    logging.disable(logging.WARNING)
    config = _Embedder(model, torch.float32).encoder.config
    optimised = optimizer.optimize_model(
        str(_graph(model, scratch)),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
    )
    optimised.save_model_to_file(str(scratch / "optimised.onnx"))
    # What the optimiser joins has types that the quantiser doesn't know.
    types = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(
        scratch / "optimised.onnx", scratch / "int8.onnx", weight_type=QuantType.QInt8, extra_options=types
    )
    session = onnxruntime.InferenceSession(str(scratch / "int8.onnx"), providers=["CPUExecutionProvider"])
    return lambda texts: _batches(
        model, texts, lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    )


def _openvino(model: str, scratch: Path) -> Embed:
    import openvino

    made = openvino.convert_model(str(_graph(model, scratch)))
    compiled = openvino.compile_model(made, "CPU", {"INFERENCE_PRECISION_HINT": "bf16", "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()

    def embedded(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return request.infer({"input_ids": ids, "attention_mask": mask})[0].copy()

    return lambda texts: _batches(model, texts, embedded)


def lengths(model: str, texts: list[str]) -> Iterator[int]:
    """Tokens of each text, special ones included."""
    return (len(encoding.ids) for encoding in _tokenizer(model).encode_batch(texts))
