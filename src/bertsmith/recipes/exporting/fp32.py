"""A model as a graph in fp32, which is compared with it in every shape of batch."""

from pathlib import Path
from typing import Any

from bertsmith import __version__
from bertsmith.exchange.onnx_export.build import model_graph
from bertsmith.exchange.onnx_export.graph import OPSET, save_graph
from bertsmith.exchange.onnx_export.parity import LARGEST_DIFFERENCE, differences, refuse_difference
from bertsmith.inference.onnx_engine import input_names, output_names
from bertsmith.recipes.exporting.source import ExportSource


def write_fp32(source: ExportSource, path: Path) -> dict[str, Any]:
    """Write a model's graph.

    Args:
        source: the model.
        path: where it is written.

    Returns:
        what `export.json` says of it.

    Raises:
        InputError: if it does not give what the model gives.
    """
    save_graph(model_graph(source.model, version=__version__), path)
    found = differences(source.exact, source.graph(path, "fp32"), longest=source.longest)
    refuse_difference(found)
    return {
        "format": "onnx",
        "opset": OPSET,
        "made_by": f"bertsmith {__version__}",
        "job": source.job,
        "precision": "fp32",
        "weights_sha256": source.weights,
        "inputs": list(input_names(source.config)),
        "outputs": list(output_names(source.job)),
        "fp32": {"limit": LARGEST_DIFFERENCE, "shapes": [one.values for one in found]},
    }
