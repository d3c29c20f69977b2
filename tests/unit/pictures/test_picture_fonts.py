"""Fonts for any script out of those that a machine has."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from bertsmith.pictures.fonts import FIRST_FAMILY, font_chain, missing_glyphs_notice

OWN_CHARACTER = "\U00100abc"
"""For private use: no font of a machine has it."""
OTHER_CHARACTER = "\U00100abd"


def _square() -> object:
    pen = TTGlyphPen(None)
    for place, point in enumerate([(0, 0), (0, 500), (500, 500), (500, 0)]):
        pen.lineTo(point) if place else pen.moveTo(point)
    pen.closePath()
    return pen.glyph()


def _made_font(path: Path, family: str, characters: str) -> Path:
    """A font in which these characters are squares."""
    names = [".notdef", *(f"square{number}" for number in range(len(characters)))]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(character): name for character, name in zip(characters, names[1:], strict=True)})
    builder.setupGlyf({name: _square() for name in names})
    builder.setupHorizontalMetrics(dict.fromkeys(names, (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return path


@pytest.fixture
def fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Files that the system has; to begin with, those that matplotlib brings."""
    manager = font_manager.fontManager
    own = [entry for entry in manager.ttflist if "mpl-data" in entry.fname]
    monkeypatch.setattr(manager, "ttflist", own)
    files: list[str] = []
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: list(files))
    manager._findfont_cached.cache_clear()
    yield files
    manager._findfont_cached.cache_clear()


@pytest.mark.parametrize("text", ["cat ##ing ▁", "مدرسة ـِ", "[CLS] … ↵ ⇥ ◌", "Ωж ש", "\u200d\ufe0f\u202b \u2060"])
def test_the_font_of_matplotlib_does_for_what_it_has(text: str, fonts: list[str]) -> None:
    chain = font_chain([text])
    assert chain.families == (FIRST_FAMILY,)
    assert chain.missing == ()


def test_a_font_that_was_installed_later_is_found(fonts: list[str], tmp_path: Path) -> None:
    texts = ["cat", f"x{OWN_CHARACTER}"]
    assert font_chain(texts).missing == (OWN_CHARACTER,)
    fonts.append(str(_made_font(tmp_path / "own.ttf", "Squares", OWN_CHARACTER)))
    chain = font_chain(texts)
    assert chain.families == (FIRST_FAMILY, "Squares")
    assert chain.missing == ()
    assert font_chain(["cat"]).families == (FIRST_FAMILY,)


def test_as_few_fonts_as_will_do_are_taken(fonts: list[str], tmp_path: Path) -> None:
    both = OWN_CHARACTER + OTHER_CHARACTER
    fonts += [
        str(_made_font(tmp_path / "a.ttf", "A Sans", OWN_CHARACTER)),
        str(_made_font(tmp_path / "b.ttf", "B Sans", both)),
        str(_made_font(tmp_path / "c.ttf", "Unifont C", both)),
    ]
    assert font_chain([both]).families == (FIRST_FAMILY, "B Sans")
    assert font_chain([OWN_CHARACTER]).families == (FIRST_FAMILY, "A Sans")


def test_a_font_with_a_box_for_everything_does_not_count(fonts: list[str], tmp_path: Path) -> None:
    assert any(entry.name.startswith("Last") for entry in font_manager.fontManager.ttflist), "matplotlib brings one"
    assert font_chain([OWN_CHARACTER]).missing == (OWN_CHARACTER,)


def test_a_damaged_font_is_passed_over(fonts: list[str], tmp_path: Path) -> None:
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    fonts += [str(tmp_path / "damaged.ttf"), str(tmp_path / "gone.ttf")]
    fonts.append(str(_made_font(tmp_path / "own.ttf", "Squares", OWN_CHARACTER)))
    assert font_chain([OWN_CHARACTER]).families == (FIRST_FAMILY, "Squares")


@pytest.mark.parametrize(
    ("characters", "told", "packages"),
    [
        ("か", "has か:", "install fonts-noto-cjk;"),
        ("猫한", "has 猫 한:", "install fonts-noto-cjk;"),
        ("🦩", "has 🦩:", "install fonts-symbola;"),
        ("นम", "has น म:", "install fonts-noto-core;"),
        ("猫🦩", "has 猫 🦩:", "install fonts-noto-cjk, fonts-symbola;"),
        ("一二三四五六七八九十百千", "一 二 三 四 五 六 七 八 九 十 and 2 more:", "install fonts-noto-cjk;"),
    ],
)
def test_a_notice_names_what_is_missing_and_what_to_install(characters: str, told: str, packages: str) -> None:
    notice = missing_glyphs_notice(characters)
    assert told in notice
    assert packages in notice
    assert "\n" not in notice
