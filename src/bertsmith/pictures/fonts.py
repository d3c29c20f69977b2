"""Fonts for text of any script, out of those that the machine has.

matplotlib falls back from font to font where a character is missing, so a picture needs a chain of fonts that together
have all of its characters. It begins with the font that comes with matplotlib.
"""

import contextlib
import logging
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bertsmith.tokenization.scripts import OTHER, script_of

FIRST_FAMILY = "DejaVu Sans"
_WEIGHTS = (400, 500, "normal", "regular", "medium")
_STAND_INS = (".", "Last", "Adobe Blank")
"""How families are called that have a box for every character."""
_SCRIPTS_OF_EAST_ASIA = frozenset(["Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"])
_MOST_NAMED = 10


@dataclass(frozen=True)
class FontChain:
    """Families to be tried one after the other, and what none of them has."""

    families: tuple[str, ...]
    missing: tuple[str, ...]
    """Characters that no font of the machine has, in the order of their code points."""


@dataclass(frozen=True)
class _Font:
    family: str
    path: str
    face: int


def font_chain(texts: Iterable[str]) -> FontChain:
    """The fonts that a picture with these texts needs: as few as will do, the same every time on one machine."""
    drawn = {character for text in texts for character in text if _is_drawn(character)}
    from matplotlib import font_manager

    first = font_manager.findfont(FIRST_FAMILY)
    missing = drawn - _held(str(first), 0, frozenset(drawn))
    families = [FIRST_FAMILY]
    if missing:
        _take_in_new_fonts()
        for tier in _tiers():
            while missing:
                found = [(font, missing & _held(font.path, font.face, frozenset(missing))) for font in tier]
                best, held = max(found, key=lambda each: len(each[1]), default=(None, set[str]()))
                if best is None or not held:
                    break
                families.append(best.family)
                missing -= held
    return FontChain(tuple(families), tuple(sorted(missing)))


def missing_glyphs_notice(missing: Iterable[str]) -> str:
    """A line that names characters without a glyph, and what to install for them."""
    characters = list(missing)
    named = " ".join(characters[:_MOST_NAMED])
    more = f" and {len(characters) - _MOST_NAMED} more" if len(characters) > _MOST_NAMED else ""
    packages = ", ".join(sorted({_package(character) for character in characters}))
    return (
        f"no font of this machine has {named}{more}: drawn as boxes. "
        f"On Debian and Ubuntu, install {packages}; elsewhere, any font with outlines that has them."
    )


@contextlib.contextmanager
def quiet_fonts() -> Iterator[None]:
    """Inside the block, matplotlib says nothing of fonts: what has no glyph is told once, with what to do about it."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    finally:
        logger.setLevel(level)


def _package(character: str) -> str:
    """The package of Debian that has a font for a character."""
    script = script_of(character)
    if script in _SCRIPTS_OF_EAST_ASIA:
        return "fonts-noto-cjk"
    # The emoji in colours are bitmaps, which matplotlib cannot draw.
    symbol = script == OTHER and unicodedata.category(character)[0] in "SC"
    return "fonts-symbola" if symbol else "fonts-noto-core"


def _is_drawn(character: str) -> bool:
    """Whether a character needs a glyph: those that only steer others, and spaces, do not."""
    selects = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return not selects and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


@lru_cache(maxsize=1 << 12)
def _held(path: str, face: int, characters: frozenset[str]) -> frozenset[str]:
    """Which of some characters a font has."""
    from matplotlib.ft2font import FT2Font

    font = FT2Font(path, face_index=face)
    return frozenset(character for character in characters if font.get_char_index(ord(character)))


def _tiers() -> Iterator[list[_Font]]:
    """The upright fonts of the machine by family: plain ones, then others, then those that try to have everything."""
    import matplotlib
    from matplotlib import font_manager

    own = Path(matplotlib.get_data_path())
    fonts: dict[str, _Font] = {}
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: (entry.name, entry.fname)):
        upright = entry.style == "normal" and entry.stretch == "normal" and entry.weight in _WEIGHTS
        # What matplotlib brings beside its first font is for formulas, with letters in places of their own.
        if upright and own not in Path(entry.fname).parents and not entry.name.startswith(_STAND_INS):
            fonts.setdefault(entry.name, _Font(entry.name, entry.fname, entry.index))
    tiers: tuple[list[_Font], ...] = ([], [], [])
    for font in fonts.values():
        tiers[2 if "unifont" in font.family.lower() else 0 if "Sans" in font.family else 1].append(font)
    yield from tiers


def _take_in_new_fonts() -> None:
    """Tell matplotlib of fonts that were installed since it made its list, which it keeps on the disk."""
    from matplotlib import font_manager

    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            font_manager.fontManager.addfont(path)
        except Exception:  # Whatever is wrong with a font of the machine, there are others.
            continue
