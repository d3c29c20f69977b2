"""The picture of what was taken for what."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image

from bertsmith.pictures.confusion import FILES, class_shares, draw_confusion

_SVG = "{http://www.w3.org/2000/svg}"


def _draw(folder: Path, names: list[str], counts: np.ndarray) -> list[str]:
    notices: list[str] = []
    folder.mkdir(exist_ok=True)
    draw_confusion(names, counts, folder, notify=notices.append)
    return notices


def test_counts_become_shares_of_the_true_class() -> None:
    shares = class_shares(np.array([[3, 1], [0, 0]]))
    assert shares[0].tolist() == [0.75, 0.25]
    assert np.isnan(shares[1]).all()


def test_both_files_are_written_and_the_same_counts_give_the_same(tmp_path: Path) -> None:
    counts = np.array([[12, 3, 0], [1, 900, 4], [0, 0, 0]])
    for folder in ("a", "b"):
        assert _draw(tmp_path / folder, ["dry", "wet", "$x$"], counts) == []
    for name in FILES:
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("a", "b"))
        assert first == second
    assert (tmp_path / "a" / FILES[0]).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ElementTree.parse(tmp_path / "a" / FILES[1]).getroot().tag == f"{_SVG}svg"


def test_a_class_of_which_all_is_right_is_darker_than_one_of_which_nothing_is(tmp_path: Path) -> None:
    _draw(tmp_path, ["a", "b"], np.array([[10, 0], [10, 0]]))
    pixels = image.imread(tmp_path / FILES[0])[..., :3]
    # Of the map's colours, the darkest blue and white both stand in the picture.
    blue = (pixels[..., 2] > pixels[..., 0] + 0.3).mean()
    assert 0.05 < blue < 0.6


@pytest.mark.parametrize("size", [2, 30, 77, 300])
def test_many_classes_stay_readable(tmp_path: Path, size: int) -> None:
    counts = np.eye(size, dtype=np.int64) * 40 + np.arange(size)[None, :] % 3
    _draw(tmp_path, [f"some_label_of_banking_{number}" for number in range(size)], counts)
    root = ElementTree.parse(tmp_path / FILES[1]).getroot()
    width, height = (float(root.attrib[name].removesuffix("pt")) / 72 for name in ("width", "height"))
    assert max(width, height) < 40
    ticks = {axis: [g for g in root.iter(f"{_SVG}g") if g.get("id", "").startswith(f"{axis}tick")] for axis in "xy"}
    named = {2: 2, 30: 30, 77: 77}.get(size)
    for found in ticks.values():
        if named is None:
            assert size / 5 <= len(found) < size  # Together with those of the scale of colours.
        else:
            assert len(found) >= named
    if size == 77:
        # Labels of six points at least stand apart.
        assert height * 72 / size >= 6 * 1.2


@pytest.mark.parametrize(
    "name", ["\u0631\u064a\u0627\u0636\u0629", "a_very_long_name_of_a_class_that_never_ends_at_all"]
)
def test_names_of_any_script_and_length_are_drawn(tmp_path: Path, name: str) -> None:
    _draw(tmp_path, [name, "b"], np.array([[1, 2], [3, 4]]))
    assert (tmp_path / FILES[0]).stat().st_size > 5_000


def test_a_character_that_no_font_has_is_told(tmp_path: Path) -> None:
    (notice,) = _draw(tmp_path, ["\U0001fff9x", "b"], np.array([[1, 2], [3, 4]]))
    assert "no font of this machine has" in notice
