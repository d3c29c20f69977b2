"""Predicting lines as they come: texts or objects, whole ones alone, each as soon as it is there."""

import io
import json

import pytest
from prediction_parts import close

from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.prediction.items import Given, stream_input
from bertsmith.recipes.prediction.rows import RowResult, predict_rows
from made_predictors import as_rows, made_items, made_predictor


def _streamed(content: bytes, task: str = "classify", given: Given = Given(), **config: str) -> list[RowResult]:
    found = stream_input(task, io.BytesIO(content), TableConfig(**config), given=given)
    assert not found.can_wait
    return list(predict_rows(made_predictor(task), found.parts, ahead=False))


def test_a_stream_is_read_line_by_line() -> None:
    content = "\ufeffthe old boat\n\n\u6771\u4eac\r\nlast".encode() + b"\nbad \xff byte\n"
    found = _streamed(content)
    assert [result.values.get("text") for result in found] == ["the old boat", None, "\u6771\u4eac", "last", None]
    assert [result.place for result in found] == [f"line {number}" for number in range(1, 6)]
    assert "0xFF" in str(found[4].fault)


def test_a_stream_in_another_encoding_is_read_where_it_is_named() -> None:
    assert [result.values["text"] for result in _streamed(b"caf\xe9\nna\xefve\n", encoding="latin-1")] == [
        "caf\xe9",
        "na\xefve",
    ]
    with pytest.raises(InputError, match="a line ends with one byte"):
        _streamed("caf\xe9\n".encode("utf-16"), encoding="utf-16")
    with pytest.raises(InputError, match="Did you mean latin"):
        _streamed(b"x\n", encoding="latin1x")


@pytest.mark.parametrize("task", ["answer", "choose"])
def test_lines_of_tasks_that_take_more_than_a_text_are_objects(task: str) -> None:
    items = made_items(task, 3)
    lines = [json.dumps(row) for row in as_rows(task, items)]
    found = _streamed("\n".join([lines[0], "", "[1]", lines[1], "no JSON", lines[2]]).encode(), task)
    assert [result.place for result in found] == ["line 1", "line 3", "line 4", "line 5", "line 6"]
    assert [result.fault is None for result in found] == [True, False, True, False, True]
    assert close(found[-1].values, made_predictor(task)([items[2]])[0].values)


@pytest.mark.parametrize("task", ["classify", "regress", "multilabel"])
def test_lines_of_tasks_that_take_pairs_are_texts_or_objects(task: str) -> None:
    one, two, three = made_items("classify", 3)
    lines = [one, json.dumps({"text": two, "pair": three}), json.dumps({"text": three}), '{"pair": "x"}', '{"text": "x']
    *found, without, broken = _streamed("\n".join(lines).encode(), task)
    for result, item in zip(found, [one, (two, three), three], strict=True):
        assert close(result.values, made_predictor(task)(item)[0].values)
    assert (without.place, broken.place) == ("line 4", "line 5")
    assert "nothing under text" in str(without.fault)
    assert "not JSON" in str(broken.fault)


@pytest.mark.parametrize("task", ["tag", "embed"])
def test_lines_of_other_tasks_are_texts_whatever_they_look_like(task: str) -> None:
    (found,) = _streamed(b'{"text": "the old boat"}\n', task)
    assert found.values["text"] == '{"text": "the old boat"}'


def test_what_is_given_beside_the_lines_holds_for_every_one() -> None:
    texts = made_items("classify", 3)
    content = "\n".join(texts).encode()
    for task, given, items in (
        ("answer", Given(question="who walked?"), [("who walked?", text) for text in texts]),
        ("choose", Given(choices=("rain", "snow")), [(text, ("rain", "snow")) for text in texts]),
    ):
        for result, expected in zip(_streamed(content, task, given), made_predictor(task)(items), strict=True):
            assert close(result.values, expected.values)


class _Endless:
    """A stream that gives a line whenever it is asked."""

    def __init__(self) -> None:
        self.num_read = 0

    def read1(self, size: int, /) -> bytes:
        """The next line."""
        self.num_read += 1
        return b"the old boat\n"


def test_a_stream_is_answered_as_soon_as_a_line_has_come() -> None:
    stream = _Endless()
    results = predict_rows(made_predictor("classify"), stream_input("classify", stream).parts, ahead=False)
    for number in (1, 2, 3):
        assert next(results).number == number
        assert stream.num_read == number


def test_a_line_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertsmith.text import streams

    monkeypatch.setattr(streams, "MAX_RECORD_CHARACTERS", 1000)
    with pytest.raises(InputError, match="at most 1,000 characters"):
        _streamed(b"x" * 10_000)


@pytest.mark.parametrize("task", ["classify", "answer", "choose"])
def test_objects_of_a_stream_may_have_names_of_their_own(task: str) -> None:
    first = "question" if task == "answer" else "text"
    items = made_items(task, 2)
    rows = [{("mine" if name == first else name): value for name, value in row.items()} for row in as_rows(task, items)]
    found = _streamed("\n".join(map(json.dumps, rows)).encode(), task, text="mine")
    for result, expected in zip(found, made_predictor(task)(items), strict=True):
        assert close(result.values, expected.values)


def test_names_are_refused_where_lines_are_texts() -> None:
    with pytest.raises(InputError, match="the column review, and for embed lines are texts"):
        _streamed(b"the old boat\n", "embed", text="review")


def test_a_stream_without_lines_is_refused() -> None:
    with pytest.raises(InputError, match="0 rows, and none can"):
        _streamed(b"")
