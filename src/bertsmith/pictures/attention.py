"""Attention weights as pictures: one head with its tokens on both axes, or many heads side by side."""

import importlib.metadata
import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import write_file
from bertsmith.inference.attention import MAX_TOKENS, AttentionMap
from bertsmith.pictures.fonts import font_chain, missing_glyphs_notice, quiet_fonts
from bertsmith.pictures.heat_maps import Panel, Sheet
from bertsmith.pictures.token_labels import token_labels

SUFFIXES = (".png", ".svg")
_FIRST_SHAPING_VERSION = (3, 11)
"""Earlier versions of matplotlib draw the letters of every script apart and from the left."""
_DPI = 150

Notify = Callable[[str], object]


def draw_attention(
    found: AttentionMap,
    path: str | Path,
    *,
    layer: int | None = None,
    head: int | None = None,
    notify: Notify = warnings.warn,
) -> None:
    """Draw all heads of a model for a text, those of a layer, or one.

    Args:
        found: weights and tokens.
        path: the picture, .png or .svg.
        layer: draw this layer's heads alone; counted from 0.
        head: draw this head of `layer` alone; counted from 0.
        notify: is told, in a line, which characters no font has. A Python warning where not given.

    Raises:
        InputError: for a layer or head that the model does not have, and whatever `draw_head` refuses.
    """
    layers, heads = found.chosen(layer, head)
    if len(layers) == len(heads) == 1:
        title = f"layer {layers[0]}, head {heads[0]}"
        panels = [Panel(found.weights[layers[0], heads[0]])]
    elif layer is None:
        title = ""
        panels = [
            Panel(
                found.weights[row, column],
                row,
                column,
                title=f"head {column}" if row == 0 else "",
                name=f"layer {row}" if column == 0 else "",
            )
            for row in layers
            for column in heads
        ]
    else:
        title = f"layer {layer}"
        columns = math.ceil(math.sqrt(len(heads)))
        panels = [Panel(found.weights[layer, one], one // columns, one % columns, title=f"head {one}") for one in heads]
    _draw(found.tokens, panels, Path(path), title=title, border=found.border, notify=notify)


def draw_head(
    tokens: Sequence[str],
    weights: Any,
    path: str | Path,
    *,
    title: str = "",
    border: int | None = None,
    notify: Notify = warnings.warn,
) -> None:
    """Draw one attention head: a row for each token that looks, a column for each that is looked at.

    Args:
        tokens: what stands on both axes, in any script.
        weights: how much each row's token takes of each column's, ``[tokens, tokens]``: an array, a tensor or lists.
        path: the picture, .png or .svg. The same arguments give the same file.
        title: stands above.
        border: first token of a second text; a line is drawn before it.
        notify: is told, in a line, which characters no font has. A Python warning where not given.

    Raises:
        InputError: for another suffix, a folder that is not there, more than 512 tokens, tokens that are no texts,
            weights that are not a row and a column for each token or have one that is negative or no number, or without
            matplotlib 3.11.
    """
    for place, token in enumerate(tokens):
        if not isinstance(token, str):
            raise InputError(
                "A token must be a text", f"token {place}: {token!r:.60}", "Give tokens as they are written, not ids."
            )
    _draw(tokens, [Panel(_weights(weights))], Path(path), title=title, border=border, notify=notify)


def _weights(given: Any) -> Float[np.ndarray, "..."]:
    """Weights as an array; their shape is looked at with the tokens."""
    try:
        # A tensor may carry a gradient or lie on another device.
        weights = np.asarray(given.detach().float().cpu() if hasattr(given, "detach") else given)
    except ValueError:
        weights = np.empty(0, object)
    if not (np.issubdtype(weights.dtype, np.floating) or np.issubdtype(weights.dtype, np.integer)):
        kind = "rows of several lengths" if weights.dtype == object else weights.dtype
        raise InputError("Weights must be numbers, a row and a column for each token", kind, "Give those of one head.")
    wrong = weights[~np.isfinite(weights) | (weights < 0)]
    if wrong.size:
        raise InputError(
            "Weights must be numbers that are not negative", f"{wrong.flat[0]}", "Give them as attention has them."
        )
    return weights if np.issubdtype(weights.dtype, np.floating) else weights.astype(np.float32)


def refuse_undrawable(path: Path) -> None:
    """Raise an `InputError` where a picture could not be drawn, before any work is done for it."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"The name of a picture must end in {' or '.join(SUFFIXES)}",
            path,
            f"For example: {path.stem or 'attention'}.png",
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
            "Install it: pip install --upgrade 'bertsmith[pictures]' 'matplotlib>=3.11'",
        )


def _matplotlib_version() -> str | None:
    try:
        return importlib.metadata.version("matplotlib")
    except importlib.metadata.PackageNotFoundError:
        return None


def _draw(
    tokens: Sequence[str], panels: list[Panel], path: Path, *, title: str, border: int | None, notify: Notify
) -> None:
    refuse_undrawable(path)
    if not 1 <= len(tokens) <= MAX_TOKENS:
        raise InputError(f"A picture shows from 1 to {MAX_TOKENS} tokens", len(tokens), "Give a part of the text.")
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

    settings: dict[Any, Any] = {
        "font.family": list(chain.families),
        # Outlines: letters are joined and ordered the same on every machine, whatever fonts it has.
        "svg.fonttype": "path",
        "svg.hashsalt": "bertsmith",
        # A token with a dollar sign is no formula.
        "text.parse_math": False,
    }
    with rc_context(settings), quiet_fonts():
        content = _rendered(Sheet(tuple(panels), tuple(labels), title, border), path.suffix.lower().removeprefix("."))
    _write(path, content)
    if chain.missing:
        notify(missing_glyphs_notice(chain.missing))


def _rendered(sheet: Sheet, kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    sheet.figure().savefig(buffer, format=kind, dpi=_DPI, bbox_inches="tight", pad_inches=0.15, metadata=metadata)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    try:
        write_file(path, content)
    except OSError as error:
        raise InputError(
            "A picture must lie where it can be written", f"{path} ({error.strerror})", "Choose another place."
        ) from error
