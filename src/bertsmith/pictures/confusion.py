"""What was taken for what, as a heat map: the share of each true class that was taken for each one."""

import io
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.foundation.files import write_file
from bertsmith.pictures.fonts import font_chain, missing_glyphs_notice

FILES = ("confusion.png", "confusion.svg")
_DPI = 120
_COLORS = "Blues"
_EMPTY_COLOR = "#e8e8e8"
"""Of a row without any row of its class."""
_DARK = 0.55
"""The share from which on a cell is so dark that its count is written in white."""
_LARGEST_WITH_COUNTS = 40
_WIDEST_CELL_INCHES, _NARROWEST_CELL_INCHES = 0.55, 0.17
_WIDEST_MAP_INCHES = 14.0
_MARGIN_INCHES = 1.0
_LONGEST_LABEL = 30
_POINTS_PER_INCH = 72


def draw_confusion(
    labels: Sequence[str],
    counts: Int[np.ndarray, "true predicted"],
    folder: Path,
    *,
    notify: Callable[[str], object] = warnings.warn,
) -> None:
    """Write `confusion.png` and `confusion.svg`.

    Each row of the map is a true class and adds up to one; counts stand in the cells of up to forty classes. Of more
    classes than there is room to name, every second one is named, every third, and so on.

    Args:
        labels: names of the classes, in any script.
        counts: rows of each true class that were taken for each class.
        folder: where the files are written. The same arguments give the same files.
        notify: is told, in a line, which characters no font has. A Python warning where not given.
    """
    from matplotlib import rc_context

    names = [_shown(label) for label in labels]
    chain = font_chain(names)
    settings: Any = {
        "font.family": list(chain.families),
        # Outlines: letters are joined and ordered the same on every machine, whatever fonts it has.
        "svg.fonttype": "path",
        "svg.hashsalt": "bertsmith",
        "text.parse_math": False,
    }
    with rc_context(settings):
        figure = _figure(names, counts)
        for name in FILES:
            write_file(folder / name, _rendered(figure, name.rpartition(".")[2]))
    if chain.missing:
        notify(missing_glyphs_notice(chain.missing))


def class_shares(counts: Int[np.ndarray, "true predicted"]) -> Float[np.ndarray, "true predicted"]:
    """Counts as shares of the true class; NaN for a class without rows."""
    totals = counts.sum(1, keepdims=True)
    return np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)


def _figure(names: Sequence[str], counts: Int[np.ndarray, "true predicted"]) -> Any:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    size = len(names)
    cell = min(_WIDEST_CELL_INCHES, max(_NARROWEST_CELL_INCHES, _WIDEST_MAP_INCHES / size))
    side = min(cell * size, 2 * _WIDEST_MAP_INCHES)
    cell = side / size
    points = max(6.0, min(10.0, 0.6 * cell * _POINTS_PER_INCH))
    for_names = min(max(map(len, names)), _LONGEST_LABEL) * 0.65 * points / _POINTS_PER_INCH + _MARGIN_INCHES
    figure = Figure(figsize=(side + for_names + _MARGIN_INCHES, side + for_names), layout="constrained")
    axes: Any = figure.subplots()
    shares = class_shares(counts)
    image = axes.imshow(shares, cmap=colormaps[_COLORS].with_extremes(bad=_EMPTY_COLOR), vmin=0.0, vmax=1.0)
    step = math.ceil(1.3 * points / _POINTS_PER_INCH / cell)
    places = range(0, size, step)
    axes.set_xticks(places, [names[place] for place in places], rotation=90, fontsize=points)
    axes.set_yticks(places, [names[place] for place in places], fontsize=points)
    axes.set_xlabel("taken for")
    axes.set_ylabel("true class")
    if size <= _LARGEST_WITH_COUNTS:
        _write_counts(axes, counts, shares, points=min(points, 0.32 * cell * _POINTS_PER_INCH))
    figure.colorbar(image, ax=axes, shrink=min(1.0, 4.0 / side), label="share of the true class")
    return figure


def _write_counts(
    axes: Any,
    counts: Int[np.ndarray, "true predicted"],
    shares: Float[np.ndarray, "true predicted"],
    *,
    points: float,
) -> None:
    for true, predicted in np.argwhere(counts > 0).tolist():
        color = "white" if shares[true, predicted] >= _DARK else "black"
        text = f"{counts[true, predicted]:,}"
        axes.text(predicted, true, text, ha="center", va="center", color=color, fontsize=points)


def _shown(label: str) -> str:
    flat = " ".join(label.split())
    return flat if len(flat) <= _LONGEST_LABEL else f"{flat[: _LONGEST_LABEL - 1]}…"


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # What no font has is told in words; versions of matplotlib before 3.11 cannot join the letters of Arabic.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=_DPI, metadata=metadata, bbox_inches="tight", pad_inches=0.15)
    return buffer.getvalue()
