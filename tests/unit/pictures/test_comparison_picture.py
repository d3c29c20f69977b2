"""The comparison's picture."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bertsmith.pictures.comparison import ComparedModel, draw_comparison

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
    draw_comparison(_models((token, "the")), tmp_path, commonest_share=0.5)
    assert (tmp_path / "comparison.png").stat().st_size > 10_000


def test_vectors_that_never_move_are_drawn(tmp_path: Path) -> None:
    models = [model for model in _models() if model.name == "BERT"] * 3
    draw_comparison(models, tmp_path, commonest_share=0.5)
    assert (tmp_path / "comparison.svg").is_file()
