"""How labels of a row are written: lists, text with separators, 0 and 1."""

from pathlib import Path
from typing import Any

import pytest

from bertsmith.examples.label_sets import LabelCells, LabelLayout, flag_width, guess_layout, label_set
from bertsmith.examples.written_lists import read_list
from bertsmith.foundation.errors import InputError

PATH = Path("rows.jsonl")


def _cells(*values: Any) -> list[LabelCells]:
    return [LabelCells((value,), f"line {number}") for number, value in enumerate(values, 1)]


def _sets(*values: Any, named: bool = False) -> tuple[LabelLayout, list[tuple[str, ...]]]:
    rows = _cells(*values)
    layout = guess_layout(["tags"], rows, named=named)
    width = flag_width(rows) if layout.form == "flags" else None
    return layout, [label_set(row, layout, PATH, width=width) for row in rows]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (["a", 1], ["a", 1]),
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        (" [1, 0] ", [1, 0]),
        ("[]", []),
        ("a|b", None),
        ("[a, b]", None),
        ("{'a': 1}", None),
        ("[" * 5000 + "]" * 5000, None),
        ("[__import__('os')]", None),
        (None, None),
        (7, None),
    ],
)
def test_lists_are_read_as_json_or_python_writes_them(cell: Any, expected: list[Any] | None) -> None:
    assert read_list(cell) == expected


def test_lists_of_names_keep_each_name_once_and_none_is_valid() -> None:
    layout, sets = _sets(["b", " a "], [], None, ["a", "a"], ["", None, "c"])
    assert layout.form == "names"
    assert sets == [("a", "b"), (), (), ("a",), ("c",)]


def test_lists_of_numbers_are_names_where_they_are_no_flags() -> None:
    layout, sets = _sets([3, 27], [2], [0.0])
    assert layout.form == "names"
    assert sets == [("27", "3"), ("2",), ("0",)]


@pytest.mark.parametrize(
    ("cells", "separator", "expected"),
    [
        (["a|b", "b", None], "|", [("a", "b"), ("b",), ()]),
        (["a, b", "b"], ",", [("a", "b"), ("b",)]),
        (["a;b;", ";"], ";", [("a", "b"), ()]),
        (["b, the old|a", "c, d"], "|", [("a", "b, the old"), ("c, d",)]),
        (["a", "b"], None, [("a",), ("b",)]),
    ],
)
def test_the_separator_is_guessed_and_said(cells: list[Any], separator: str | None, expected: Any) -> None:
    layout, sets = _sets(*cells)
    assert (layout.form, layout.separator) == ("separated", separator)
    assert sets == expected
    assert (f"separated by “{separator}”" if separator else "no separator was found") in str(layout)


def test_written_lists_of_a_separated_file_are_lists() -> None:
    layout, sets = _sets("['a', 'b']", "[]", '["c"]', None)
    assert layout.form == "names"
    assert sets == [("a", "b"), (), ("c",), ()]
    with pytest.raises(InputError, match=r"JSON or Python.*line 2: tags='\[a, b\]'"):
        _sets("['a']", "[a, b]")


@pytest.mark.parametrize("cast", [int, float, bool])
def test_lists_of_0_and_1_are_flags_whatever_their_type(cast: type) -> None:
    # They come as integers, and the loss needs floats: nothing of that is left to the person.
    layout, sets = _sets([cast(0), cast(1), cast(1)], [cast(0), cast(0), cast(0)], [cast(1), cast(0), cast(0)])
    assert layout.form == "flags"
    assert sets == [("1", "2"), (), ("0",)]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (([0, 1, 1], [0, 2, 0]), r"1 or 0.*line 2: tags\[1\]=2"),
        (([0, 1, 1], [0, 0.5, 0]), r"1 or 0.*line 2: tags\[1\]=0\.5"),
        (([0, -1, 0], [0, 1, 0]), r"1 or 0.*line 1: tags\[1\]=-1"),
        (([0, 1, 1], [0, 1]), r"must all be as long.*line 2: 2 in tags, and 3 in the first row"),
        (([0.2, 0.8], [0.5, 0.5]), r"1 or 0.*line 1: tags\[0\]=0\.2"),
        (([0.0, float("nan")], [0.5, 0.5]), r"1 or 0.*line 1: tags\[1\]=nan"),
    ],
)
def test_a_flag_other_than_0_or_1_is_refused_with_its_row(cells: tuple[Any, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _sets(*cells)


def test_columns_of_0_and_1_are_labels_by_their_names() -> None:
    layout = guess_layout(["rude", "kind"], [], named=True)
    assert layout.form == "columns"
    rows = [("1", "0"), (0, 1.0), (True, "TRUE"), ("0.0", False)]
    found = [label_set(LabelCells(row, "line 1"), layout, PATH) for row in rows]
    assert found == [("rude",), ("kind",), ("kind", "rude"), ()]
    for bad in ("2", 0.5, "yes", "", None, [1]):
        with pytest.raises(InputError, match=r"1 or 0.*line 9: kind="):
            label_set(LabelCells((1, bad), "line 9"), layout, PATH)


def test_one_column_of_0_and_1_that_was_named_is_a_label() -> None:
    layout, sets = _sets("1", "0", named=True)
    assert layout.form == "columns"
    assert sets == [("tags",), ()]
    layout, sets = _sets("1", "0")
    assert sets == [("1",), ("0",)]


@pytest.mark.parametrize("bad", [{"a": 1}, ["a", {"b": 1}], ["a", ["b"]]])
def test_what_is_no_name_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=r"name or a whole number.*line 2"):
        _sets(["a"], bad)
