"""The picture of a comparison: losses, who sees whom, and scores, in one figure."""

import importlib.util
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.foundation.files import write_file

FORMATS = ("png", "svg")
_COLORS = ("#3566d6", "#d2571b", "#2f8f5b")
_SOFT = "#5b667a"
_LARGEST_SHOWN = 12
"""Letters of a token's label."""


@dataclass(frozen=True)
class ComparedModel:
    """What the picture shows of one model."""

    name: str
    train: Sequence[tuple[float, float]]
    """Tokens seen and loss, in nats."""
    validation: Sequence[tuple[float, float]]
    tokens: Sequence[str]
    """Of the sentence in which one token after the other was changed."""
    moved: Float[np.ndarray, "changed moved"]
    """How far each vector moved by it."""
    scores: Mapping[str, float | None]
    """Accuracy by the way in which the task was done; None where the model does not do it that way."""


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_comparison(models: Sequence[ComparedModel], folder: Path, *, commonest_share: float) -> None:
    """Write `comparison.png` and `comparison.svg`.

    Args:
        models: three of them.
        folder: where the files are written.
        commonest_share: accuracy of always naming the commonest label.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Text stays text in the SVG, and the same figures give the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "bertsmith", "font.size": 11}):
        figure = Figure(figsize=(15, 10), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.15))
        top, bottom = parts
        losses, scores = top.subplots(1, 2)
        _draw_losses(losses, models)
        _draw_scores(scores, models, commonest_share)
        _draw_directions(bottom, models)
        for kind in FORMATS:
            write_file(folder / f"comparison.{kind}", _rendered(figure, kind))


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes; the table has the text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure.savefig(buffer, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _draw_losses(axes: Any, models: Sequence[ComparedModel]) -> None:
    for model, color in zip(models, _COLORS, strict=True):
        axes.plot(*_columns(model.train), color=color, alpha=0.35, linewidth=1)
        axes.plot(*_columns(model.validation), color=color, marker="o", markersize=4, label=model.name)
    axes.set_title("Validation loss, each of its own objective (faint: training)")
    axes.set_xlabel("tokens")
    axes.set_ylabel("loss, nats")
    axes.legend()
    _plain(axes)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _draw_scores(axes: Any, models: Sequence[ComparedModel], commonest_share: float) -> None:
    ways = list(models[0].scores)
    width = 0.8 / len(models)
    for number, (model, color) in enumerate(zip(models, _COLORS, strict=True)):
        places = [way + (number - (len(models) - 1) / 2) * width for way in range(len(ways))]
        heights = [model.scores[way] for way in ways]
        axes.bar(places, [height or 0.0 for height in heights], width, color=color, label=model.name)
        for place, height in zip(places, heights, strict=True):
            axes.text(
                place, (height or 0.0) + 0.01, "–" if height is None else f"{height:.2f}", ha="center", fontsize=10
            )
    axes.axhline(commonest_share, color=_SOFT, linestyle="--", linewidth=1, label="commonest label")
    axes.set_xticks(range(len(ways)), ways)
    axes.set_ylim(0, 1.08)
    axes.set_title("Accuracy on the task")
    axes.legend(loc="lower left")
    _plain(axes)


def _draw_directions(figure: Any, models: Sequence[ComparedModel]) -> None:
    figure.suptitle("How far a vector moves when a token is changed, as a share of its length")
    highest = max(float(_others(model.moved).max(initial=0.0)) for model in models) or 1.0
    panels = figure.subplots(1, len(models))
    image = None
    for axes, model in zip(panels, models, strict=True):
        labels = [
            token if len(token) <= _LARGEST_SHOWN else f"{token[: _LARGEST_SHOWN - 1]}…" for token in model.tokens
        ]
        image = axes.imshow(_others(model.moved), cmap="viridis", vmin=0.0, vmax=highest)
        # A dollar sign would begin a formula.
        axes.set_xticks(range(len(labels)), labels, rotation=90, parse_math=False)
        axes.set_yticks(range(len(labels)), labels, parse_math=False)
        axes.set_title(model.name)
        axes.set_xlabel("vector looked at")
    panels[0].set_ylabel("token changed")
    figure.colorbar(image, ax=list(panels), shrink=0.8)


def _others(moved: Float[np.ndarray, "changed moved"]) -> Float[np.ndarray, "changed moved"]:
    """Without what a token does to its own vector, which says nothing of direction and would outshine the rest."""
    return np.where(np.eye(len(moved), dtype=bool), 0.0, moved)


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
