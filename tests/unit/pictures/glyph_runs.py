"""What is drawn for a text: its glyphs from the left to the right, as an SVG's outlines name them."""

import io
import re

from matplotlib import rc_context
from matplotlib.figure import Figure

_USED = re.compile(r'<use xlink:href="#([^"]+)"')


def glyphs(text: str) -> list[str]:
    """The glyphs of one line, but for the shapeless one that stands for spaces and joiners."""
    shapeless = _run(" ")
    return [glyph for glyph in _run(text) if glyph not in shapeless]


def _run(text: str) -> list[str]:
    settings = {"svg.fonttype": "path", "svg.hashsalt": "test", "font.family": ["DejaVu Sans"]}
    with rc_context(settings):
        figure = Figure()
        figure.text(0.1, 0.5, text)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _USED.findall(buffer.getvalue())
