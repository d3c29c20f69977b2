"""Heat maps of token by token: one large, or many in a grid with a common scale."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

_COLORS = "viridis"
_BORDER_COLOR = "#ff7043"
_CELL_INCHES = 0.27
_LARGEST_INCHES = 12.0
_WIDEST_INCHES = 15.0
_SMALLEST_PANEL_INCHES = 0.9
_LARGEST_PANEL_INCHES = 3.2
_GAP_INCHES = 0.1
_TITLE_INCHES = 0.3
_LONGEST_BAR_INCHES = 4.0
_LETTER_POINTS, _SMALL_POINTS, _GRID_POINTS = 9.0, 7.0, 6.0
"""Sizes of tokens: beside one map, beside one whose tokens are so many that not all are named, beside a grid."""
_TITLE_POINTS, _NOTE_POINTS = 11, 8
_POINTS_PER_INCH = 72
_LINE_SPACING = 1.25
"""How far labels stand apart at least, in heights of their letters."""


@dataclass(frozen=True)
class Panel:
    """One map of a sheet."""

    weights: Float[np.ndarray, "tokens tokens"]
    row: int = 0
    column: int = 0
    title: str = ""
    """Stands above it."""
    name: str = ""
    """Stands left of its row."""


@dataclass(frozen=True)
class Sheet:
    """Maps over the same tokens."""

    panels: tuple[Panel, ...]
    labels: tuple[str, ...]
    title: str
    border: int | None
    """First token of a second text, before which a line is drawn."""

    @property
    def is_grid(self) -> bool:
        """Whether there are several maps."""
        return len(self.panels) > 1

    @property
    def columns(self) -> int:
        """Maps beside each other."""
        return 1 + max(panel.column for panel in self.panels)

    @property
    def rows(self) -> int:
        """Maps below each other."""
        return 1 + max(panel.row for panel in self.panels)

    @property
    def side(self) -> float:
        """Width and height of a map in inches."""
        if self.is_grid:
            return min(max(_WIDEST_INCHES / self.columns, _SMALLEST_PANEL_INCHES), _LARGEST_PANEL_INCHES)
        return min(max(_CELL_INCHES * len(self.labels), _SMALLEST_PANEL_INCHES), _LARGEST_INCHES)

    @property
    def pitch(self) -> tuple[float, float]:
        """From one map to the next, to the right and down, in inches."""
        # Titles stand above every map, or over the columns once for all.
        titled = any(panel.title and panel.row for panel in self.panels)
        return self.side + _GAP_INCHES, self.side + (_TITLE_INCHES if titled else _GAP_INCHES)

    @property
    def points(self) -> float:
        """Size of the tokens' letters."""
        if self.is_grid:
            return _GRID_POINTS
        return _LETTER_POINTS if _CELL_INCHES * len(self.labels) <= _LARGEST_INCHES else _SMALL_POINTS

    @property
    def step(self) -> int:
        """One token in so many is named: as many as have room."""
        room = self.side / len(self.labels) * _POINTS_PER_INCH
        return max(1, math.ceil(self.points * _LINE_SPACING / room))

    @property
    def _named(self) -> str:
        return f" (one token in {self.step} is named)" if self.step > 1 else ""

    def figure(self) -> Any:
        """The sheet as a figure of matplotlib, in the fonts that are set where it is called."""
        from matplotlib.colors import Normalize
        from matplotlib.figure import Figure

        width = self.pitch[0] * (self.columns - 1) + self.side
        height = self.pitch[1] * (self.rows - 1) + self.side
        figure = Figure(figsize=(width, height))
        highest = max(float(panel.weights.max()) for panel in self.panels)
        norm = Normalize(0.0, highest or 1.0)
        image: Any = None
        for panel in self.panels:
            left, top = panel.column * self.pitch[0], panel.row * self.pitch[1]
            place = (left / width, 1 - (top + self.side) / height, self.side / width, self.side / height)
            axes: Any = figure.add_axes(place)
            image = axes.imshow(panel.weights, cmap=_COLORS, norm=norm, aspect="auto")
            self._label(axes, panel)
            self._draw_border(axes)
        share = min(height, _LONGEST_BAR_INCHES) / height
        bar: Any = figure.add_axes((1 + 0.2 / width, 1 - share, 0.15 / width, share))
        figure.colorbar(image, cax=bar).ax.tick_params(labelsize=_NOTE_POINTS)
        bar.set_ylabel("attention weight; each row sums to 1", fontsize=_NOTE_POINTS)
        if self.is_grid:
            figure.text(0.0, 1 + 0.4 / height, f"{self.title}{self._named}".strip(), fontsize=_TITLE_POINTS)
        else:
            self._explain(figure.axes[0])
        return figure

    def _label(self, axes: Any, panel: Panel) -> None:
        """Name the tokens where nothing stands between them and the edge of the sheet."""
        places = range(0, len(self.labels), self.step)
        shown = [self.labels[place] for place in places]
        is_last = all((other.row, other.column) != (panel.row + 1, panel.column) for other in self.panels)
        axes.tick_params(length=2, width=0.5, pad=2)
        axes.set_xticks(*((places, shown) if is_last else ((), ())), rotation=90, fontsize=self.points)
        axes.set_yticks(*((places, shown) if panel.column == 0 else ((), ())), fontsize=self.points)
        axes.set_title(panel.title, fontsize=_NOTE_POINTS)
        axes.set_ylabel(panel.name, fontsize=_NOTE_POINTS)

    def _draw_border(self, axes: Any) -> None:
        if self.border is not None:
            for line in (axes.axhline, axes.axvline):
                line(self.border - 0.5, color=_BORDER_COLOR, linewidth=0.7 if self.is_grid else 1.2)

    def _explain(self, axes: Any) -> None:
        axes.set_title(self.title, fontsize=_TITLE_POINTS)
        axes.set_ylabel("token that looks", fontsize=_LETTER_POINTS)
        axes.set_xlabel(f"token that is looked at{self._named}", fontsize=_LETTER_POINTS)
