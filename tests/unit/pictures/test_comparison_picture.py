"""The comparison's picture."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bertsmith.pictures.comparison import ComparedModel, comparison_figure, draw_comparison

_PNG = b"\x89PNG\r\n\x1a\n"


def _models(tokens: tuple[str, ...] = ("the", "cat", "$ sat $", "##ting")) -> list[ComparedModel]:
    return [
        ComparedModel(
            name=name,
            train=[(1000.0, 5.0), (2000.0, 4.0)],
            validation=[(1000.0, 4.9), (2000.0, 4.1)],
            tokens=tokens,
            moved=np.full((len(tokens), len(tokens)), 0.1 * number),
            scores={"fine-tuned": 0.8, "frozen features": 0.7, "by prompt": None if number else 0.6},
        )
        for number, name in enumerate(("BERT", "GPT", "ELMo"))
    ]


def _texts(path: Path) -> set[str]:
    root = ElementTree.parse(path).getroot()
    return {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_both_files_are_written_with_their_labels(tmp_path: Path) -> None:
    draw_comparison(_models(), tmp_path, commonest_share=0.5)
    assert (tmp_path / "comparison.png").read_bytes().startswith(_PNG)
    texts = _texts(tmp_path / "comparison.svg")
    assert {"BERT", "GPT", "ELMo", "tokens", "loss, nats", "token changed", "vector looked at"} <= texts
    assert {"fine-tuned", "frozen features", "by prompt", "commonest label", "0.80", "–"} <= texts
    assert {"the", "cat", "$ sat $", "##ting"} <= texts


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    written: list[bytes] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        draw_comparison(_models(), tmp_path / name, commonest_share=0.5)
        written.append((tmp_path / name / "comparison.svg").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("token", ["القط", "猫", "\U00010380", "a_very_long_piece_of_a_word"])
def test_tokens_of_any_script_and_length_are_drawn(token: str, tmp_path: Path) -> None:
    said: list[str] = []
    draw_comparison(_models((token, "the")), tmp_path, commonest_share=0.5, notify=said.append)
    assert (tmp_path / "comparison.png").stat().st_size > 10_000
    assert all(token in line for line in said)


def test_a_character_that_no_font_has_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    draw_comparison(_models(("\U0010abcd", "the")), tmp_path, commonest_share=0.5, notify=said.append)
    assert len(said) == 1
    assert "\U0010abcd" in said[0]


def test_pieces_of_an_arabic_word_are_drawn_as_parts_of_it(tmp_path: Path) -> None:
    draw_comparison(_models(("الب", "##يت")), tmp_path, commonest_share=0.5)
    assert {"الب\u200d", "##\u200dيت"} <= _texts(tmp_path / "comparison.svg")


def test_vectors_that_never_move_are_drawn(tmp_path: Path) -> None:
    models = [model for model in _models() if model.name == "BERT"] * 3
    draw_comparison(models, tmp_path, commonest_share=0.5)
    assert (tmp_path / "comparison.svg").is_file()


def _drawn(models: list[ComparedModel]) -> tuple[Any, Any]:
    figure = comparison_figure(models, commonest_share=0.5)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return figure, canvas.get_renderer()


def test_no_legend_covers_what_is_drawn() -> None:
    figure, renderer = _drawn(_models())
    losses, scores = figure.axes[:2]
    for axes in (losses, scores):
        assert not axes.get_legend().get_window_extent(renderer).overlaps(axes.bbox)
        assert not axes.get_legend().get_window_extent(renderer).overlaps(axes.title.get_window_extent(renderer))


@pytest.mark.parametrize("count", [2, 14])
def test_no_label_is_cut_off_or_runs_into_the_next(count: int) -> None:
    figure, renderer = _drawn(_models(tuple(f"a_long_token_{number}" for number in range(count))))
    maps = [axes for axes in figure.axes if axes.get_xlabel() == "vector looked at"]
    assert len(maps) == 3
    tokens = [labels for axes in maps for labels in (axes.get_xticklabels(), axes.get_yticklabels())]
    others = [label for axes in figure.axes for label in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    for label in [*others, *(label for labels in tokens for label in labels)]:
        box = label.get_window_extent(renderer)
        assert label.get_text() == "" or (min(box.x0, box.y0) >= 0 and (box.max <= figure.bbox.max).all()), label
    for labels in tokens:
        boxes = [label.get_window_extent(renderer) for label in labels]
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_a_model_that_moves_little_shows_whom_it_sees_and_whom_not() -> None:
    models = _models()
    size = len(models[0].tokens)
    shown = {"BERT": np.full((size, size), 0.002), "GPT": np.triu(np.full((size, size), 0.03)), "ELMo": np.eye(size)}
    models = [replace(model, moved=shown[model.name] + np.diag([0.9] * size)) for model in models]
    figure, _ = _drawn(models)
    maps = {axes.get_title(): axes.images for axes in figure.axes if axes.get_xlabel() == "vector looked at"}
    seen = {name: images[0].get_array() for name, images in maps.items()}
    own = np.eye(size, dtype=bool)
    # Nothing is drawn where nothing moves, and a movement is far from the darkest colour.
    assert (np.ma.getmaskarray(seen["BERT"]) == own).all()
    assert (np.ma.getmaskarray(seen["GPT"]) == ~np.triu(~own)).all()
    assert np.ma.getmaskarray(seen["ELMo"]).all()
    assert maps["BERT"][0].norm(0.002) > 0.4
    # The scale is common, and a token's own vector stands apart from both.
    assert len({(image[0].norm.vmin, image[0].norm.vmax) for image in maps.values()}) == 1
    assert all((~np.ma.getmaskarray(images[1].get_array()) == own).all() for images in maps.values())
