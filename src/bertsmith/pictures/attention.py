"""Attention weights as heat maps: one head with its tokens on both axes, or many heads side by side."""

import importlib.metadata
import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_file
from bertsmith.inference.attention import MAX_TOKENS, AttentionMap
from bertsmith.pictures.fonts import font_chain, missing_glyphs_notice
from bertsmith.pictures.token_labels import token_labels

SUFFIXES = (".png", ".svg")
_FIRST_SHAPING_VERSION = (3, 11)
"""Earlier versions of matplotlib draw the letters of every script apart and from the left."""
_DPI = 150
_COLORS = "viridis"
_BORDER_COLOR = "#ff7043"
_CELL_INCHES = 0.27
_LARGEST_INCHES = 12.0
_WIDEST_INCHES = 15.0
_SMALLEST_PANEL_INCHES = 0.9
_LARGEST_PANEL_INCHES = 3.2
_GAP_INCHES = 0.1
_TITLE_INCHES = 0.3
_POINTS_PER_INCH = 72
_LINE_SPACING = 1.25
"""How far labels stand apart at least, in heights of their letters."""


def draw_attention(
    found: AttentionMap,
    path: str | Path,
    *,
    layer: int | None = None,
    head: int | None = None,
    notify: Callable[[str], object] = warnings.warn,
) -> None:
    """Draw all heads of a model for a text, those of a layer, or one.

    Args:
        found: weights and tokens.
        path: the picture, .png or .svg.
        layer: draw this layer's heads alone; counted from 0.
        head: draw this head of `layer` alone; counted from 0.
        notify: is told, in a line, which characters no font has.

    Raises:
        InputError: for a layer or head that the model does not have, and whatever `draw_head` refuses.
    """
    layers, heads = found.chosen(layer, head)
    if layer is not None and head is not None:
        title, weights = f"layer {layer}, head {head}", found.weights[layer, head]
        draw_head(found.tokens, weights, path, title=title, border=found.border, notify=notify)
        return
    weights = found.weights[layers.start : layers.stop, heads.start : heads.stop]
    if layer is None:
        panels = [
            _Panel(weights[row, column], row, column, f"head {column}" * (row == 0), f"layer {row}" * (column == 0))
            for row in layers
            for column in heads
        ]
        title = ""
    else:
        columns = math.ceil(math.sqrt(len(heads)))
        panels = [_Panel(weights[0, head], head // columns, head % columns, f"head {head}") for head in heads]
        title = f"layer {layer}"
    _draw(found.tokens, panels, path, title=title, border=found.border, notify=notify)


def draw_head(
    tokens: Sequence[str],
    weights: Float[np.ndarray, "tokens tokens"],
    path: str | Path,
    *,
    title: str = "",
    border: int | None = None,
    notify: Callable[[str], object] = warnings.warn,
) -> None:
    """Draw one attention head: a row for each token that looks, a column for each that is looked at.

    Args:
        tokens: what stands on both axes, in any script.
        weights: how much each row's token takes of each column's.
        path: the picture, .png or .svg. The same arguments give the same file.
        title: stands above.
        border: first token of a second text; a line is drawn before it.
        notify: is told, in a line, which characters no font has. A Python warning where not given.

    Raises:
        InputError: for another suffix, a folder that is not there, more than 512 tokens, weights that are not a row and
            a column for each token, or without matplotlib 3.11.
    """
    _draw(tokens, [_Panel(np.asarray(weights), 0, 0)], path, title=title, border=border, notify=notify)


def refuse_undrawable(path: str | Path) -> None:
    """Raise an `InputError` where a picture could not be drawn, before any work is done for it."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"A picture of attention ends in {' or '.join(SUFFIXES)}",
            path.name,
            f"For example: {path.with_suffix('.png').name if path.stem else 'attention.png'}.",
        )
    if not path.parent.is_dir():
        raise InputError(
            "A picture must lie in a folder that exists", path, "Make the folder, or choose another place."
        )
    if path.exists() and not path.is_file():
        raise InputError("A picture must be a file", f"{path}, which is none", "Choose another place.")
    version = _matplotlib_version()
    if version is None or tuple(map(int, re.findall(r"\d+", version)[:2])) < _FIRST_SHAPING_VERSION:
        raise InputError(
            "Drawing attention needs matplotlib 3.11 or newer, which draws every script as it is written",
            "none" if version is None else f"matplotlib {version}",
            "Install it: pip install --upgrade 'bertsmith[pictures]'.",
        )


def _matplotlib_version() -> str | None:
    try:
        return importlib.metadata.version("matplotlib")
    except importlib.metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class _Panel:
    """One head in a grid."""

    weights: Float[np.ndarray, "tokens tokens"]
    row: int
    column: int
    title: str = ""
    name: str = ""
    """Stands left of the row."""


def _draw(
    tokens: Sequence[str],
    panels: list[_Panel],
    path: str | Path,
    *,
    title: str,
    border: int | None,
    notify: Callable[[str], object],
) -> None:
    path = Path(path)
    refuse_undrawable(path)
    if not 1 <= len(tokens) <= MAX_TOKENS:
        raise InputError(
            f"A picture shows from 1 to {MAX_TOKENS} tokens", f"{len(tokens)}", "Give a part of the text."
        )
    for panel in panels:
        if panel.weights.shape != (len(tokens), len(tokens)):
            raise InputError(
                f"Weights must be a row and a column for each of the {len(tokens)} tokens",
                f"weights of shape {panel.weights.shape}",
                "Give the weights of one head.",
            )
    labels = token_labels(tokens)
    chain = font_chain([*labels, title])
    from matplotlib import rc_context

    settings = {
        "font.family": list(chain.families),
        # Outlines: letters are joined and ordered the same on every machine, whatever fonts it has.
        "svg.fonttype": "path",
        "svg.hashsalt": "bertsmith",
        "text.parse_math": False,
    }
    with rc_context(settings):
        content = _rendered(_sheet(panels, labels, title, border), path.suffix.lower().removeprefix("."))
    _write(path, content)
    if chain.missing:
        notify(missing_glyphs_notice(chain.missing))


def _sheet(panels: list[_Panel], labels: list[str], title: str, border: int | None) -> Any:
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    rows, columns = (1 + max(getattr(panel, name) for panel in panels) for name in ("row", "column"))
    alone = len(panels) == 1
    if alone:
        side = min(_CELL_INCHES * len(labels), _LARGEST_INCHES)
        points = 9.0 if len(labels) * _CELL_INCHES <= _LARGEST_INCHES else 7.0
    else:
        side = min(max(_WIDEST_INCHES / columns, _SMALLEST_PANEL_INCHES), _LARGEST_PANEL_INCHES)
        points = 6.0
    side = max(side, _SMALLEST_PANEL_INCHES)
    # A row of panels has titles above it, unless they stand over the columns once for all.
    titled = any(panel.title and panel.row for panel in panels)
    pitch = (side + _GAP_INCHES, side + (_TITLE_INCHES if titled else _GAP_INCHES))
    width, height = pitch[0] * (columns - 1) + side, pitch[1] * (rows - 1) + side
    figure = Figure(figsize=(width, height))
    norm = Normalize(0.0, max(float(max(panel.weights.max() for panel in panels)), 1e-9))
    image = None
    places = {(panel.row, panel.column) for panel in panels}
    for panel in panels:
        left, top = panel.column * pitch[0], panel.row * pitch[1]
        axes: Any = figure.add_axes(
            (left / width, 1 - (top + side) / height, side / width, side / height)  # pyright: ignore[reportArgumentType]
        )
        image = axes.imshow(panel.weights, cmap=_COLORS, norm=norm, aspect="auto")
        _label_axes(
            axes,
            labels,
            side,
            points,
            below=(panel.row + 1, panel.column) not in places,
            left=panel.column == 0,
        )
        if border is not None:
            for line in (axes.axhline, axes.axvline):
                line(border - 0.5, color=_BORDER_COLOR, linewidth=1.2 if alone else 0.7)
        axes.set_title(panel.title, fontsize=8)
        if panel.name:
            axes.set_ylabel(panel.name, fontsize=8)
    bar: Any = figure.add_axes((1 + 0.2 / width, 1 - min(height, 4.0) / height, 0.15 / width, min(height, 4.0) / height))
    figure.colorbar(image, cax=bar).ax.tick_params(labelsize=8)
    bar.set_ylabel("attention weight; each row sums to 1", fontsize=8)
    if alone:
        figure.axes[0].set_title(title, fontsize=11)
        figure.axes[0].set_ylabel("token that looks", fontsize=9)
        figure.axes[0].set_xlabel("token that is looked at", fontsize=9)
    elif title:
        figure.text(0.0, 1 + 0.4 / height, title, fontsize=11)
    return figure


def _label_axes(axes: Any, labels: list[str], side: float, points: float, *, below: bool, left: bool) -> None:
    """Put tokens on the axes, as many as there is room for: every so many-th, from the first on."""
    step = math.ceil(points * _LINE_SPACING / _POINTS_PER_INCH / (side / len(labels)))
    places = range(0, len(labels), max(step, 1))
    shown = [labels[place] for place in places]
    axes.tick_params(length=2, width=0.5, pad=2)
    if below:
        axes.set_xticks(places, shown, rotation=90, fontsize=points, parse_math=False)
    else:
        axes.set_xticks([])
    if left:
        axes.set_yticks(places, shown, fontsize=points, parse_math=False)
    else:
        axes.set_yticks([])


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # What has no glyph is told once, with what to do about it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(buffer, format=kind, dpi=_DPI, bbox_inches="tight", pad_inches=0.15, metadata=metadata)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    try:
        write_file(path, content)
    except OSError as error:
        raise InputError(
            "A picture must lie where it can be written", f"{path} ({error.strerror})", "Choose another place."
        ) from error
