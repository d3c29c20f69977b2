"""Line charts as SVG text, small enough to stand inside a page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH = 860
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 40


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    name: str
    points: Sequence[tuple[float, float]]
    color: str
    """Name of a CSS variable, such as ``--train``."""


def line_chart(curves: Sequence[Curve], *, x_label: str, y_label: str, height: int = 320) -> str:
    """A chart with axes, grid and legend, as an `svg` element. Points that are not finite are left out."""
    curves = [
        Curve(curve.name, [(x, y) for x, y in curve.points if math.isfinite(x) and math.isfinite(y)], curve.color)
        for curve in curves
    ]
    points = [point for curve in curves for point in curve.points]
    if not points:
        return "<p>Nothing was logged.</p>"
    x_ticks = _ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_ticks = _ticks(min(y for _, y in points), max(y for _, y in points))
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        up = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return _LEFT + across * inner_width, _TOP + (1 - up) * inner_height

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(y_label)} over {escape(x_label)}" font-size="12" fill="var(--soft)">'
    ]
    for tick in y_ticks:
        _, y = place(x_ticks[0], tick)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        x, _ = place(tick, y_ticks[0])
        parts.append(f'<text x="{x:.1f}" y="{height - _BOTTOM + 18}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{_LEFT + inner_width / 2}" y="{height - 4}" text-anchor="middle">{escape(x_label)}</text>')
    for curve in curves:
        if not curve.points:
            continue
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve.points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="var({curve.color})" stroke-width="2"/>')
        if len(curve.points) <= 30:
            for point in curve.points:
                x, y = place(*point)
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="var({curve.color})"/>')
    parts.append("</svg>")
    legend = " · ".join(
        f'<span style="color:var({curve.color})">&#9632;</span> {escape(curve.name)}'
        for curve in curves
        if curve.points
    )
    return f'{"".join(parts)}<p class="legend">{escape(y_label)}: {legend}</p>'


def loss_curves(log: Sequence[dict[str, Any]]) -> list[Curve]:
    """The loss in training and in validation, out of the entries of a run's log."""
    train = [(float(entry["step"]), entry["loss"]) for entry in log if entry["kind"] == "train"]
    validation = [(float(entry["step"]), entry["loss"]) for entry in log if entry["kind"] == "validation"]
    return [Curve("training", train, "--train"), Curve("validation", validation, "--validation")]


def rate_chart(log: Sequence[dict[str, Any]]) -> str:
    """The learning rate over a run."""
    rates = [(float(entry["step"]), entry["learning_rate"]) for entry in log if entry["kind"] == "train"]
    return line_chart([Curve("learning rate", rates, "--train")], x_label="step", y_label="rate", height=160)


def _ticks(lowest: float, highest: float) -> list[float]:
    """Round values from below the lowest to above the highest."""
    if highest <= lowest:
        highest = lowest + (abs(lowest) or 1.0)
    rough = (highest - lowest) / 5
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= rough)
    first, last = math.floor(lowest / step), math.ceil(highest / step)
    # To so many digits and not to so many places: a learning rate may be very small.
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
