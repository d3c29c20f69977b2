"""A model in int8: its scales by one half of some texts, and the judgement on it by the other."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bertsmith import __version__
from bertsmith.exchange.onnx_export.build import model_graph
from bertsmith.exchange.onnx_export.quantize import write_quantized
from bertsmith.inference.agreement import Agreement, agreement, least_agreement, refuse_agreement
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.running import TokenWindow
from bertsmith.recipes.exporting.source import ExportSource
from bertsmith.recipes.exporting.texts import CalibrationItems
from bertsmith.recipes.judging import AnyPredictor, predicted, usable_items

_DO = "Give text like that which it is used on with --calibrate, ask less with --agreement, or leave out --quantize."
_MOST_WINDOWS = 512
"""Sequences by which scales are fixed."""


def write_int8(
    source: ExportSource,
    path: Path,
    texts: CalibrationItems,
    *,
    least: float | None,
    scratch: Path,
    notify: Callable[[str], object],
) -> dict[str, Any]:
    """Write a model's graph in int8, and judge it. Where it is not good enough, it is written once more with the part
    in fp32 that loses the most.

    Args:
        source: the model.
        path: where the graph is written.
        texts: by which its scales are fixed, and by which it is judged.
        least: agreement with the model that it must reach; that of its job where not given.
        scratch: an existing folder for what is written meanwhile.
        notify: is told how it was judged.

    Returns:
        what `export.json` says of it.

    Raises:
        InputError: if it agrees less.
    """
    exact = source.predictor(source.exact)
    windows = _windows(exact, texts.to_calibrate)
    items = usable_items(exact, texts.to_judge)
    expected = predicted(exact, items)
    least = least_agreement(source.job) if least is None else least
    tried: list[dict[str, Any]] = []
    judged: list[Agreement] = []
    for second_product in (True, False):
        graph = model_graph(source.model, version=__version__, projection_apart=True)
        write_quantized(graph, path, source.config, windows, scratch=scratch, second_product=second_product)
        found = agreement(source.job, expected, predicted(source.predictor(source.graph(path, "int8")), items))
        second = "int8" if second_product else "fp32"
        notify(f"int8, the second product of feed-forwards in {second}: {found.measure} {found.value:.4f}")
        judged.append(found)
        tried.append({"second_product_of_feed_forwards": second, "agreement": found.values})
        if found.value >= least:
            break
    refuse_agreement(max(judged, key=lambda one: one.value), least, do=_DO)
    scales = {"text": texts.source, "sequences": len(windows)}
    return {"precision": "int8", "int8": {"least": least, "calibrated_on": scales, **tried[-1], "tried": tried[:-1]}}


def _windows(predictor: AnyPredictor, items: Sequence[Any]) -> list[TokenWindow]:
    """Some of the sequences that items become, spread over all of them."""
    usable = usable_items(predictor, items)
    if isinstance(predictor, FillPredictor):
        found = [request.window for text in usable for request in predictor.prepare(text)]
    else:
        found = [window for request in predictor.prepare(usable) for window in request.windows]
    return found[:: -(-len(found) // _MOST_WINDOWS)]
