"""Attention as pictures."""

import importlib.metadata
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib import colormaps, image

from bertsmith.foundation.errors import InputError
from bertsmith.inference.attention import AttentionMap
from bertsmith.pictures.attention import draw_attention, draw_head
from bertsmith.pictures.heat_maps import Panel, Sheet

TOKENS = ("[CLS]", "the", "old", "sail", "##or", "[SEP]", "snow", "[SEP]")
NO_GLYPH = "\U00100abc"
_COMMENT = re.compile(r"<!-- (.*?) -->")


def _weights(*shape: int, tokens: int = len(TOKENS), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(tokens, 0.3), (*shape, tokens)).astype(np.float32)


def _map(num_layers: int = 2, num_heads: int = 3) -> AttentionMap:
    count = len(TOKENS)
    return AttentionMap(
        text="the old sailor",
        pair="snow",
        tokens=TOKENS,
        offsets=np.zeros((count, 2), np.int64),
        words=np.full(count, -1),
        sequences=np.array([-1, 0, 0, 0, 0, -1, 1, -1]),
        weights=_weights(num_layers, num_heads),
        cut=False,
    )


def _fail(message: str) -> None:
    raise AssertionError(message)


def _texts(path: Path) -> list[str]:
    """Every text in an SVG; each stands in a comment beside its outlines."""
    return _COMMENT.findall(path.read_text(encoding="utf-8"))


def _pixels(path: Path) -> np.ndarray:
    return np.asarray(image.imread(path))[..., :3]


def _near(pixels: np.ndarray, color: tuple[float, ...]) -> np.ndarray:
    return np.argwhere(np.abs(pixels - np.array(color[:3])).max(-1) < 0.01)


def test_one_head_has_its_tokens_on_both_axes_and_a_scale(tmp_path: Path) -> None:
    draw_attention(_map(), tmp_path / "one.svg", layer=1, head=2, notify=_fail)
    texts = _texts(tmp_path / "one.svg")
    for token in ("[CLS]", "the", "##or", "snow"):
        assert texts.count(token) == 2
    assert texts.count("[SEP]") == 4
    assert {"layer 1, head 2", "token that looks", "token that is looked at", "0.0"} <= set(texts)
    assert "attention weight; each row sums to 1" in texts


def test_all_heads_stand_in_rows_of_layers(tmp_path: Path) -> None:
    draw_attention(_map(), tmp_path / "all.svg", notify=_fail)
    texts = _texts(tmp_path / "all.svg")
    for name in ("head 0", "head 1", "head 2", "layer 0", "layer 1"):
        assert texts.count(name) == 1
    assert "head 3" not in texts
    assert "layer 2" not in texts
    assert texts.count("snow") == 2 + 3, "beside each row and below each column"
    assert (tmp_path / "all.svg").read_text(encoding="utf-8").count("<image ") == 2 * 3 + 1


def test_a_layer_has_all_its_heads(tmp_path: Path) -> None:
    draw_attention(_map(num_heads=5), tmp_path / "layer.svg", layer=1, notify=_fail)
    texts = _texts(tmp_path / "layer.svg")
    assert [text for text in texts if text.startswith("head")] == [f"head {number}" for number in range(5)]
    assert texts.count("layer 1") == 1
    # Three columns: below each one the tokens stand once, and beside each of the two rows.
    assert texts.count("snow") == 3 + 2


def test_a_model_of_one_head_is_drawn_large(tmp_path: Path) -> None:
    draw_attention(_map(1, 1), tmp_path / "one.svg", notify=_fail)
    assert {"layer 0, head 0", "token that looks"} <= set(_texts(tmp_path / "one.svg"))


@pytest.mark.parametrize(("row", "column"), [(0, 3), (3, 0), (2, 1)])
def test_a_row_looks_and_a_column_is_looked_at(row: int, column: int, tmp_path: Path) -> None:
    weights = np.zeros((4, 4), np.float32)
    weights[row, column] = 1.0
    draw_head("abcd", weights, tmp_path / "one.png", notify=_fail)
    pixels = _pixels(tmp_path / "one.png")
    dark, bright = (_near(pixels, colormaps["viridis"](value)) for value in (0.0, 1.0))
    # The scale, at the right, has some pixels of both; the map has most.
    (top, left), (bottom, right) = dark.min(0), np.percentile(dark, 95, axis=0)
    place = (np.median(bright, axis=0) - (top, left)) / (bottom - top, right - left) * 4
    assert np.floor(place).astype(int).tolist() == [row, column]


def test_every_panel_of_a_sheet_shows_its_weights_on_one_scale() -> None:
    weights = _weights(2, 2)
    panels = [Panel(weights[row, column], row, column) for row in range(2) for column in range(2)]
    figure = Sheet(tuple(panels), TOKENS, "", None).figure()
    shown = [axes.images[0] for axes in figure.axes[:4]]
    for panel, picture in zip(panels, shown, strict=True):
        np.testing.assert_array_equal(picture.get_array(), panel.weights)
        assert picture.get_clim() == (0.0, pytest.approx(weights.max()))
    assert len({axes.get_position().bounds for axes in figure.axes}) == 5, "none covers another"


def test_a_line_parts_the_texts_of_a_pair(tmp_path: Path) -> None:
    orange = (0xFF / 255, 0x70 / 255, 0x43 / 255)
    counts = []
    for border in (None, 6):
        draw_head(TOKENS, _weights(), tmp_path / "one.png", border=border, notify=_fail)
        counts.append(len(_near(_pixels(tmp_path / "one.png"), orange)))
    assert counts[0] == 0
    assert counts[1] > 100
    figure = Sheet((Panel(_weights()),), TOKENS, "", 6).figure()
    lines = figure.axes[0].lines
    assert [line.get_ydata()[0] for line in lines[:1]] == [5.5]
    assert [line.get_xdata()[0] for line in lines[1:]] == [5.5]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".PNG"])
def test_the_same_weights_give_the_same_file(suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        draw_attention(_map(), path, layer=0, notify=_fail)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert first.startswith(b"<?xml" if suffix == ".svg" else b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(("count", "step"), [(8, 1), (40, 1), (200, 3), (512, 6)])
def test_as_many_tokens_are_named_as_have_room(count: int, step: int) -> None:
    labels = tuple(f"token{number}" for number in range(count))
    sheet = Sheet((Panel(_weights(tokens=count)),), labels, "", None)
    axes = sheet.figure().axes[0]
    for texts in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert [text.get_text() for text in texts] == list(labels[::step])
    assert axes.get_xticks().tolist() == list(range(0, count, step))
    note = f"(one token in {step} is named)"
    assert (note in axes.get_xlabel()) == (step > 1)
    room = sheet.side * 72 / len(axes.get_yticklabels())
    assert room >= axes.get_yticklabels()[0].get_fontsize()


def test_a_grid_says_too_that_not_all_are_named() -> None:
    for count, note in ((8, ""), (139, "(one token in 5 is named)")):
        labels = tuple(f"token{number}" for number in range(count))
        panels = tuple(Panel(_weights(tokens=count), 0, column) for column in range(4))
        (title,) = Sheet(panels, labels, "", None).figure().texts
        assert title.get_text() == note


def test_the_largest_text_is_drawn(tmp_path: Path) -> None:
    draw_head(["x"] * 512, _weights(tokens=512), tmp_path / "large.png", notify=_fail)
    assert min(_pixels(tmp_path / "large.png").shape[:2]) > 512


@pytest.mark.parametrize("token", ["$x$", "$", "مدرسة", "##ات", "a_{b}", "<b>&amp;", "\n", "--", "%"])
def test_any_token_is_drawn_as_it_is(token: str, tmp_path: Path) -> None:
    draw_head([token, "the"], _weights(tokens=2), tmp_path / "one.svg", title="$ a $", notify=_fail)
    assert "$ a $" in _texts(tmp_path / "one.svg")


def test_what_no_font_has_is_told_once_and_drawn_as_a_box(tmp_path: Path) -> None:
    told: list[str] = []
    draw_head([NO_GLYPH, f"x{NO_GLYPH}"], _weights(tokens=2), tmp_path / "one.png", notify=told.append)
    assert (tmp_path / "one.png").is_file()
    assert len(told) == 1
    assert f"no font of this machine has {NO_GLYPH}: " in told[0]
    with pytest.warns(UserWarning, match="no font of this machine has"):
        draw_head([NO_GLYPH], _weights(tokens=1), tmp_path / "two.png")


def _head(count: int, weights: int, name: str) -> Callable[[Path], None]:
    return lambda folder: draw_head(["x"] * count, _weights(tokens=weights), folder / name, notify=_fail)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a page": (_head(2, 2, "one.html"), r"must end in \.png or \.svg.*one\.html"),
    "no suffix": (_head(2, 2, "one"), r"must end in \.png"),
    "no folder": (_head(2, 2, "lost/one.png"), "a folder that exists"),
    "a folder": (_head(2, 2, "folder.png"), "must be a file"),
    "too many tokens": (_head(513, 513, "old.png"), "from 1 to 512 tokens. Received: 513"),
    "no token": (_head(0, 1, "old.png"), "from 1 to 512 tokens. Received: 0"),
    "weights of another text": (_head(2, 3, "old.png"), r"each of the 2 tokens. Received: weights of shape \(3, 3\)"),
    "another layer": (
        lambda folder: draw_attention(_map(), folder / "old.png", layer=2, notify=_fail),
        r"--layer must lie in \[0, 1\]",
    ),
    "a head without its layer": (
        lambda folder: draw_attention(_map(), folder / "old.png", head=0, notify=_fail),
        "--head needs --layer",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_drawn_is_refused_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "old.png").write_bytes(b"old")
    before = sorted(tmp_path.rglob("*"))
    draw, told = REFUSED[case]
    with pytest.raises(InputError, match=told):
        draw(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "old.png").read_bytes() == b"old"


@pytest.mark.parametrize(("version", "told"), [("3.10.8", "matplotlib 3.10.8"), ("", "none")])
def test_a_matplotlib_that_parts_letters_is_refused(
    version: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(name: str) -> str:
        if not version:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)
    with pytest.raises(InputError, match=rf"needs matplotlib 3\.11.*Received: {told}\. .*pip install"):
        draw_head("ab", _weights(tokens=2), tmp_path / "one.png", notify=_fail)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, content: bytes) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("bertsmith.pictures.attention.write_file", refuse)
    with pytest.raises(InputError, match=r"where it can be written.*Permission denied"):
        draw_head("ab", _weights(tokens=2), tmp_path / "one.png", notify=_fail)
