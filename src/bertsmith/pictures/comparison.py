"""The picture of a comparison: losses, who sees whom, and scores, in one figure."""

import importlib.util
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from bertsmith.foundation.files import write_file
from bertsmith.pictures.fonts import font_chain, missing_glyphs_notice, quiet_fonts
from bertsmith.pictures.token_labels import token_labels

FORMATS = ("png", "svg")
_COLORS = ("#3566d6", "#d2571b", "#2f8f5b")
_MARKERS = ("o", "s", "^")
_SOFT = "#5b667a"
_LEFT_OUT = "#c9cfda"
_LEAST_MOVEMENT = 1e-4
"""What is less is rounding, as for the table."""
_TITLE_PAD = 30
"""Points between a plot and its title, where the legend stands: inside it would cover what is drawn."""


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


def draw_comparison(
    models: Sequence[ComparedModel],
    folder: Path,
    *,
    commonest_share: float,
    notify: Callable[[str], object] = warnings.warn,
) -> None:
    """Write `comparison.png` and `comparison.svg`. The same figures give the same files.

    Args:
        models: three of them.
        folder: where the files are written.
        commonest_share: accuracy of always naming the commonest label.
        notify: is told, in a line, which characters no font of the machine has. A Python warning where not given.
    """
    from matplotlib import rc_context

    chain = font_chain([text for model in models for text in (model.name, *token_labels(model.tokens), *model.scores)])
    settings: dict[Any, Any] = {
        "font.family": list(chain.families),
        "font.size": 11,
        # Text stays text, which can be searched and read aloud.
        "svg.fonttype": "none",
        "svg.hashsalt": "bertsmith",
        # A token with a dollar sign is no formula.
        "text.parse_math": False,
    }
    with rc_context(settings), quiet_fonts():
        figure = comparison_figure(models, commonest_share=commonest_share)
        for kind in FORMATS:
            write_file(folder / f"comparison.{kind}", _rendered(figure, kind))
    if chain.missing:
        notify(missing_glyphs_notice(chain.missing))


def comparison_figure(models: Sequence[ComparedModel], *, commonest_share: float) -> Any:
    """The picture as a figure of matplotlib, in the fonts that are set where it is called."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 10.5), layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.1, h_pad=0.1)
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.15))
    top, bottom = parts
    losses, scores = top.subplots(1, 2)
    _draw_losses(losses, models)
    _draw_scores(scores, models, commonest_share)
    _draw_directions(bottom, models)
    return figure


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def _draw_losses(axes: Any, models: Sequence[ComparedModel]) -> None:
    from matplotlib.ticker import EngFormatter

    for model, color, marker in zip(models, _COLORS, _MARKERS, strict=True):
        axes.plot(*_columns(model.train), color=color, alpha=0.35, linewidth=1)
        axes.plot(*_columns(model.validation), color=color, marker=marker, markersize=5, label=model.name)
    axes.set_xlabel("tokens")
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.set_ylabel("loss, nats")
    _finish(axes, "Validation loss, each of its own objective (faint: training)")


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
    _finish(axes, "Accuracy on the task")


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, pad=_TITLE_PAD)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="y", alpha=0.3)


def _draw_directions(figure: Any, models: Sequence[ComparedModel]) -> None:
    """A map for each model, in one scale: logarithmic, since a model that moves little must show whom it sees too."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    figure.suptitle(
        "How far a vector moves when a token is changed, as a share of its length\n"
        "(white: not at all; grey: the token's own vector, left out)"
    )
    others = [np.where(_own(model), 0.0, model.moved) for model in models]
    highest = max(float(moved.max(initial=0.0)) for moved in others)
    scale = LogNorm(_LEAST_MOVEMENT, max(highest, 10 * _LEAST_MOVEMENT))
    colors = colormaps["viridis"].with_extremes(bad="white")
    panels = figure.subplots(1, len(models))
    image = None
    for axes, model, moved in zip(panels, models, others, strict=True):
        labels = token_labels(model.tokens)
        image = axes.imshow(np.ma.masked_less(moved, _LEAST_MOVEMENT), cmap=colors, norm=scale)
        axes.imshow(np.ma.masked_where(~_own(model), np.ones_like(moved)), cmap=ListedColormap([_LEFT_OUT]))
        axes.set_xticks(range(len(labels)), labels, rotation=90)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_title(model.name)
        axes.set_xlabel("vector looked at")
    panels[0].set_ylabel("token changed")
    figure.colorbar(image, ax=list(panels), shrink=0.8, format="%g")


def _own(model: ComparedModel) -> Bool[np.ndarray, "changed moved"]:
    """What a token does to its own vector, which says nothing of direction and would outshine the rest."""
    return np.eye(len(model.moved), dtype=bool)
