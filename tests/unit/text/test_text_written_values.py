"""Values that are written out as text."""

from typing import Any

import pytest

from bertsmith.text.written_values import read_flag, read_written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a", 1, null]', ["a", 1, None]),
        (" ['a', 'it\\'s', None] ", ["a", "it's", None]),
        ("{'a': [1]}", {"a": [1]}),
        ("['EU' 'rejects'\n 'German']", ["EU", "rejects", "German"]),
        ("""['' "it's" 'a "b"' '\\\\' ' ']""", ["", "it's", 'a "b"', "\\", " "]),
        ("""['', "'", ' ']""", ["", "'", " "]),
        ("[0 1\n -1]", [0, 1, -1]),
        ("[0. 1.5 1e-3]", [0.0, 1.5, 0.001]),
        ("[ True False]", [True, False]),
        (
            "{'a': array(['b', \"c's array(\"], dtype=object), 'n': array([5], dtype=int32)}",
            {"a": ["b", "c's array("], "n": [5]},
        ),
        ("[np.float32(1.5), np.int64(-3), np.str_('q'), np.True_]", [1.5, -3, "q", True]),
    ],
)
def test_what_json_python_and_numpy_write_is_read(text: str, expected: Any) -> None:
    assert read_written(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[a, b]",
        "[a b]",
        "['a' 'b', 'c']",
        "['a', 'b' 'c']",
        "['a''b']",
        "[u'a' u'b']",
        "['a' ... 'b']",
        "['a', ..., 'b']",
        "{'a': array(['b', ..., 'c'], dtype=object)}",
        "list(['a'])",
        "np.array",
        "array(['a'], ['b'])",
        "[" * 100_000,
    ],
)
def test_what_is_none_of_them_or_means_two_things_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_written(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, True) for value in (True, 1, 1.0, "1", "True", " true ", "1.0")),
        *((value, False) for value in (False, 0, 0.0, "0", "FALSE")),
        *((value, None) for value in (None, 2, 0.5, "", "yes", [1], float("nan"))),
    ],
)
def test_truth_values_are_told_from_others(value: Any, expected: bool | None) -> None:
    assert read_flag(value) is expected
