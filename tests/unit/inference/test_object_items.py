"""Items as objects with the names of the commands' JSON, and what is no item."""

from collections import UserDict
from typing import Any

import numpy as np
import pytest

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.torch_engine import TorchEngine
from made_corpora import made_model, made_tokenizer
from made_predictors import TASKS, as_rows, made_items, made_predictor

FILL = FillPredictor(TorchEngine(made_model(made_tokenizer().vocab_size), Device("cpu", "fp32")), made_tokenizer())
MASKED = "The [MASK] was old."


class Table:
    """What a DataFrame is to somebody who goes through it: the names of its columns."""

    columns = ("text", "label")

    def __iter__(self) -> Any:
        return iter(self.columns)


def _same(found: Any, expected: Any) -> bool:
    values, others = ([one.values for one in several] for several in (found, expected))
    return repr(values) == repr(others)


@pytest.mark.parametrize("task", TASKS)
def test_an_object_is_one_item_and_a_list_of_them_several(task: str) -> None:
    predictor, items = made_predictor(task), made_items(task, 3)
    rows = as_rows(task, items)
    assert _same(predictor(rows), predictor(items))
    assert _same(predictor(rows[0]), predictor([items[0]]))
    assert _same(predictor(UserDict(rows[0])), predictor([items[0]]))
    assert _same(predictor([rows[0] | {"label": 7}, items[1]]), predictor(items[:2]))


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress"])
def test_an_object_may_be_a_pair(task: str) -> None:
    predictor = made_predictor(task)
    pair = {"text": "the boat", "pair": "the snow"}
    assert _same(predictor(pair), predictor([("the boat", "the snow")]))
    assert _same(predictor(pair | {"pair": None}), predictor(["the boat"]))


def test_the_start_of_a_choice_is_read() -> None:
    (found,) = made_predictor("choose")({"text": "Rain.", "start": "He", "choices": ["ran", "sat"]})
    assert (found.start, found.choices) == ("He", ("ran", "sat"))


def test_choices_of_an_object_may_have_names() -> None:
    choices = {"text": ["ran", "sat"], "label": ["A", "B"]}
    (found,) = made_predictor("choose")({"text": "Rain.", "choices": choices})
    assert found.choices == ("ran", "sat")
    assert choices == {"text": ["ran", "sat"], "label": ["A", "B"]}


@pytest.mark.parametrize(
    ("task", "item", "message"),
    [
        ("classify", {"txt": "the boat"}, r"must have text\. Received: item 1 with txt\. Name txt text\."),
        ("classify", {"text": ["a", "b"]}, r"must be a text\. Received: text of item 1: \['a', 'b'\]"),
        ("answer", {"question": "Who?"}, r"must have question and context.*item 1 with question"),
        ("choose", {"text": "Rain.", "choices": ["one"]}, "two choices at least"),
        ("choose", {"text": "Rain.", "choices": "one"}, "two choices at least"),
        ("embed", {"text": "Rain.", "pair": "Snow."}, "texts that stand alone"),
        ("tag", {}, r"item 1 with nothing"),
    ],
)
def test_an_object_that_lacks_something_is_refused(task: str, item: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made_predictor(task)(item)


@pytest.mark.parametrize("task", TASKS)
def test_a_table_is_refused_with_what_to_give(task: str) -> None:
    with pytest.raises(InputError, match=r"a Table\. Give a column as a list: table\[\"text\"\]\.tolist\(\)"):
        made_predictor(task)(Table())
    with pytest.raises(InputError, match=r"item|text|list"):
        made_predictor(task)(b"bytes")


def test_filling_takes_a_text_an_object_and_a_list_of_either() -> None:
    (expected,) = FILL([MASKED])
    assert FILL(MASKED) == FILL({"text": MASKED}) == FILL(np.array([MASKED])) == [expected]
    assert FILL([{"text": MASKED}, MASKED]) == FILL([MASKED, MASKED])
    assert FILL([]) == []
    with pytest.raises(InputError, match="a Table"):
        FILL(Table())


def test_targets_in_one_string_are_parted_by_commas_as_the_command_has_them() -> None:
    (one,) = FILL(MASKED, targets="boat")
    assert [best.token for best in one.predictions] == ["boat"]
    assert FILL(MASKED, targets="boat, snow,") == FILL(MASKED, targets=["boat", "snow"])
