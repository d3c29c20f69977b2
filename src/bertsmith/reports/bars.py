"""A chart of horizontal bars as SVG text, each of several lengths end to end, with a mark on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT = 860, 170, 150
_ROW, _BAR = 30, 18


@dataclass(frozen=True)
class Bar:
    """One row."""

    name: str
    lengths: tuple[float, ...]
    """End to end; one for each of the chart's kinds."""
    told: str
    """Beside its end."""
    mark: float | None = None
    """Where a line stands across it."""


def bar_chart(bars: Sequence[Bar], kinds: Sequence[tuple[str, str]], *, mark: str, label: str) -> str:
    """The chart as an `svg` element with its legend.

    Args:
        bars: from the top.
        kinds: name of each length, and the CSS variable of its colour.
        mark: what a mark is.
        label: what the chart shows, for those who do not see it.
    """
    longest = max((max(sum(bar.lengths), bar.mark or 0.0) for bar in bars), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    height = _ROW * len(bars)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(label)}" font-size="13" fill="var(--ink)">'
    ]
    for row, bar in enumerate(bars):
        top = row * _ROW + (_ROW - _BAR) / 2
        base = top + _BAR - 4
        parts.append(f'<text x="{_LEFT - 10}" y="{base:.1f}" text-anchor="end">{escape(bar.name)}</text>')
        place = float(_LEFT)
        for (_, color), length in zip(kinds, bar.lengths, strict=True):
            width = max(length, 0.0) * scale
            parts.append(
                f'<rect x="{place:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BAR}" fill="var({color})"/>'
            )
            place += width
        if bar.mark is not None:
            x = _LEFT + bar.mark * scale
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 3:.1f}" y2="{top + _BAR + 3:.1f}" '
                'stroke="var(--ink)" stroke-width="2"/>'
            )
            place = max(place, x)
        parts.append(f'<text x="{place + 8:.1f}" y="{base:.1f}" fill="var(--soft)">{escape(bar.told)}</text>')
    parts.append("</svg>")
    legend = " · ".join(f'<span style="color:var({color})">&#9632;</span> {escape(name)}' for name, color in kinds)
    return f'{"".join(parts)}<p class="legend">{legend} · &#10072; {escape(mark)}</p>'
