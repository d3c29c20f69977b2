"""Lines of a stream."""

import io

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.streams import stream_rows
from bertsmith.text.tables import TableRow


class _Pieces:
    """A stream that comes in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces, b""]

    def read1(self, size: int, /) -> bytes:
        """The next piece."""
        return self._pieces.pop(0)


def _texts(parts: list[list[TableRow]]) -> list[list[str]]:
    return [[row.values["text"] for row in part] for part in parts]


def test_lines_that_came_together_are_given_together() -> None:
    parts = list(stream_rows(_Pieces(b"one\ntw", b"o\nthree\n", b"fo", b"ur", b"\nfive")))
    assert _texts(parts) == [["one"], ["two", "three"], ["four"], ["five"]]
    assert [(row.number, row.place) for part in parts for row in part] == [(n, f"line {n}") for n in range(1, 6)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_where_a_stream_is_parted_makes_no_difference(size: int) -> None:
    content = "\ufeffone\r\n\n\u0633\u0644\u0627\u0645 \U0001f600\nlast".encode()
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    found = [text for part in _texts(list(stream_rows(_Pieces(*pieces)))) for text in part]
    assert found == ["one", "", "\u0633\u0644\u0627\u0645 \U0001f600", "last"]


def test_objects_are_rows_and_what_is_none_is_a_fault_of_its_line() -> None:
    content = b'{"a": 1}\n\n[]\n{"a": "x\\r\\ny"}\n{\n'
    rows = [row for part in stream_rows(io.BytesIO(content), lines_are="objects") for row in part]
    assert [(row.number, row.place) for row in rows] == [(1, "line 1"), (2, "line 3"), (3, "line 4"), (4, "line 5")]
    assert [row.values for row in rows] == [{"a": 1}, {}, {"a": "x\r\ny"}, {}]
    assert [row.fault is None for row in rows] == [True, False, True, False]


def test_either_reads_an_object_where_one_begins_and_else_a_text() -> None:
    content = b'one\n {"a": 1}\n{two} and "three"\n{}\n\n{"a": \n'
    rows = [row for part in stream_rows(io.BytesIO(content), lines_are="either") for row in part]
    assert [row.values for row in rows] == [
        *({"text": "one"}, {"a": 1}, {"text": '{two} and "three"'}, {"text": "{}"}, {"text": ""}, {})
    ]
    assert [row.place for row in rows if row.fault is not None] == ["line 6"]


def test_an_encoding_in_which_a_line_ends_with_more_than_a_byte_is_refused() -> None:
    with pytest.raises(InputError, match="a line ends with one byte"):
        next(stream_rows(io.BytesIO(b""), "utf-16"))
    assert _texts(list(stream_rows(io.BytesIO(b"\xef\xbb\xbfone\n"), "utf-8-sig"))) == [["one"]]
