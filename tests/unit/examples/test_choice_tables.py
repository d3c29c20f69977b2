"""Tables of multiple choice: columns, choices of any number, and rows that cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.examples.choice import right_choices
from bertsmith.examples.choice_tables import (
    ChoiceColumns,
    ChoiceItem,
    ChoiceTable,
    choice_row,
    read_choice_table,
    read_choices,
)
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.text.tables import TableRow
from made_tasks import write_rows

SWAG = {
    "video-id": "7",
    "startphrase": "He opens the door. He",
    "sent1": "He opens the door.",
    "sent2": "He",
    "gold-source": "gold",
    "ending0": "walks in.",
    "ending1": "flies away.",
    "ending2": "melts.",
    "ending3": "sings the door.",
    "label": "0",
}


def _json(folder: Path, *rows: dict[str, Any], name: str = "a.jsonl", **more: Any) -> ChoiceTable:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, rows)))
    return read_choice_table(path, **more)


def test_swags_own_form_is_read(tmp_path: Path) -> None:
    table = read_choice_table(write_rows(tmp_path / "a.csv", [SWAG, SWAG | {"label": "2"}]))
    assert table.columns == ChoiceColumns("sent1", "sent2", ("ending0", "ending1", "ending2", "ending3"), "label")
    item = table.rows[0].item
    assert item == ChoiceItem("He opens the door.", ("walks in.", "flies away.", "melts.", "sings the door."), "He")
    assert item.pairs[1] == ("He opens the door.", "He flies away.")
    assert [row.label for row in table.rows] == ["0", "2"]
    assert str(table.columns).startswith("text “sent1”, start “sent2”, choices “ending0”, “ending1”")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("premise", "choice1", "choice2", "label"), ChoiceColumns("premise", None, ("choice1", "choice2"), "label")),
        (("goal", "sol1", "sol2", "label"), ChoiceColumns("goal", None, ("sol1", "sol2"), "label")),
        (
            ("Context", "Option_b", "option_a", "Answer"),
            ChoiceColumns("Context", None, ("option_a", "Option_b"), "Answer"),
        ),
        (
            ("article", "question", "choice 10", "choice 9", "label"),
            ChoiceColumns("article", "question", ("choice 9", "choice 10"), "label"),
        ),
        (
            ("question", "answer0", "answer1", "correct"),
            ChoiceColumns("question", None, ("answer0", "answer1"), "correct"),
        ),
    ],
)
def test_columns_are_told_by_their_names(tmp_path: Path, names: tuple[str, ...], expected: ChoiceColumns) -> None:
    rows = [{name: "0" if name == expected.label else f"some {name}" for name in names}]
    assert read_choice_table(write_rows(tmp_path / "a.csv", rows)).columns == expected


@pytest.mark.parametrize("choices", [["in", "out", "up"], "['in', 'out', 'up']", '["in", "out", "up", ""]'])
def test_choices_may_be_a_list(tmp_path: Path, choices: Any) -> None:
    table = _json(tmp_path, {"ctx_a": "He goes", "ctx_b": "then", "endings": choices, "label": 1})
    assert table.columns == ChoiceColumns("ctx_a", "ctx_b", ("endings",), "label")
    assert table.rows[0].item == ChoiceItem("He goes", ("in", "out", "up"), "then")


_ARC = {"text": ["in", "out", "up"], "label": ["A", "B", "C"]}


@pytest.mark.parametrize(
    "choices",
    [
        _ARC,
        str(_ARC),
        "{'text': array(['in', 'out', 'up'], dtype=object), 'label': array(['A', 'B', 'C'], dtype=object)}",
        [{"text": text, "label": label} for text, label in zip(*_ARC.values(), strict=True)],
    ],
)
def test_choices_may_have_names_as_ai2s_data_sets_have_them(tmp_path: Path, choices: Any) -> None:
    table = _json(tmp_path, {"id": "m1", "question": "He goes?", "choices": choices, "answerKey": "B"})
    assert table.columns == ChoiceColumns("question", None, ("choices",), "answerKey")
    (row,) = table.rows
    assert row.item == ChoiceItem("He goes?", ("in", "out", "up"))
    assert row.label == 1


def test_names_count_and_not_places_where_choices_have_names(tmp_path: Path) -> None:
    rows = [
        {"question": "a", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": 1},
        {"question": "b", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "B"},
    ]
    table = _json(tmp_path, *rows)
    assert right_choices(table).tolist() == [0, 1]


def test_a_row_stays_as_it_was_where_blank_choices_are_left_out() -> None:
    values = {"question": "a", "choices": {"text": ["x", "y", ""], "label": ["A", "B", "C"]}, "answerKey": "B"}
    columns = ChoiceColumns("question", None, ("choices",), "answerKey")
    row = choice_row(Path("a.jsonl"), TableRow(1, "line 1", values), columns)
    assert (row.item.choices, row.label) == (("x", "y"), 1)
    assert values["choices"]["text"] == ["x", "y", ""]


def test_a_label_that_names_no_choice_is_refused_with_its_row(tmp_path: Path) -> None:
    row = {"question": "a", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "B"}
    with pytest.raises(InputError, match=r"name one of the row's choices: A, B.*line 2: answerKey='C'"):
        _json(tmp_path, row, row | {"answerKey": "C"})


def test_the_number_of_choices_may_differ_by_row(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "choice0": "x", "choice1": "y", "choice2": "z", "label": 2},
        {"text": "b", "choice0": "x", "choice1": "y", "choice2": " ", "label": 0},
        {"text": "c", "choice0": "x", "choice1": "y", "label": 1},
    ]
    assert [len(row.item.choices) for row in _json(tmp_path, *rows).rows] == [3, 2, 2]


def test_a_blank_start_leaves_the_choice_by_itself(tmp_path: Path) -> None:
    (row,) = _json(tmp_path, {"sent1": "a", "sent2": " ", "ending0": "x", "ending1": "y", "label": 0}).rows
    assert row.item.pairs == [("a", "x"), ("a", "y")]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"choice1": None, "choice2": None}, r"two choices at least.*line 2 with 1"),
        ({"choice1": ""}, r"none may be left out.*line 2: choice 1, counted from 0, is ''"),
        ({"choice0": 7}, r"must be text.*line 2: choice 0, counted from 0, is 7"),
        ({"choice1": "x \ud83d"}, r"line 2: half of a surrogate pair"),
        ({"text": 7}, r"must be text.*line 2: text=7"),
        ({"text": " "}, r"1 blank in .*line 2 \(text\)"),
        ({"label": None}, r"1 blank in .*line 2 \(label\)"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, changes: Any, told: str) -> None:
    row = {"text": "a", "choice0": "x", "choice1": "y", "choice2": "z", "label": 0}
    with pytest.raises(InputError, match=told):
        _json(tmp_path, row, row | changes)


def test_blank_rows_are_left_out_where_asked(tmp_path: Path) -> None:
    row = {"text": "a", "choice0": "x", "choice1": "y", "label": 0}
    table = _json(tmp_path, row, row | {"text": ""}, config=TableConfig(blank_rows="skip"))
    assert len(table.rows) == 1
    assert table.skipped == ("line 2 (text)",)


@pytest.mark.parametrize(
    "choices",
    [
        "in or out",
        {"a": "in"},
        3,
        None,
        "[in, out]",
        {"text": ["x", "y"], "label": ["A"]},
        {"text": ["x", "y"], "label": ["A", "A"]},
    ],
)
def test_choices_in_one_column_must_be_a_list(tmp_path: Path, choices: Any) -> None:
    rows = [{"text": "a", "choices": ["x", "y"], "label": 0}, {"text": "a", "choices": choices, "label": 0}]
    with pytest.raises(InputError, match=r"must be a list.*line 2: choices="):
        _json(tmp_path, *rows)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("text", "label", "ending0"), "columns of the choices must be known.*text, label, ending0"),
        (("text", "choice0", "choice1"), r"holds the label must be known.*--label"),
        (("words", "choice0", "choice1", "label"), r"holds the text must be known.*--text"),
    ],
)
def test_columns_that_cannot_be_told_are_asked_for(tmp_path: Path, names: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_choice_table(write_rows(tmp_path / "a.csv", [{name: f"some {name}" for name in names}]))


def test_named_columns_are_taken_over_a_guess(tmp_path: Path) -> None:
    row = {"text": "a", "story": "b", "how": "c", "choice0": "x", "choice1": "y", "label": 0, "best": 1}
    config = TableConfig(text="story", pair="how", label="best")
    (found,) = _json(tmp_path, row, config=config).rows
    assert found.item == ChoiceItem("b", ("x", "y"), "c")
    assert found.label == 1
    with pytest.raises(InputError, match=r"--pair must be one of.*hov.*Did you mean how\?"):
        _json(tmp_path, row, config=TableConfig(pair="hov"))


def test_validation_is_read_by_the_columns_of_training(tmp_path: Path) -> None:
    row = {"story": "b", "text": "a", "choice0": "x", "choice1": "y", "choice2": "z", "label": 0}
    train = _json(tmp_path, row)
    fewer = {name: row[name] for name in row if name != "choice2"}
    assert _json(tmp_path, fewer | {"query": "q"}, like=train.columns).columns == train.columns
    with pytest.raises(InputError, match=r"--label must be one of.*label, for .*held\.jsonl"):
        _json(tmp_path, {"story": "b", "choice0": "x", "choice1": "y"}, name="held.jsonl", like=train.columns)


def test_rows_to_be_chosen_from_need_no_label(tmp_path: Path) -> None:
    options = OptionNames(text="--text-column")
    path = write_rows(tmp_path / "a.csv", [{"text": "a", "choice0": "x", "choice1": "y"}] * 2)
    columns, rows = read_choices(path, options=options)
    assert columns.label is None
    assert [choice_row(path, row, columns).item for row in rows] == [ChoiceItem("a", ("x", "y"))] * 2
    with pytest.raises(InputError, match="Name it with --text-column"):
        read_choices(write_rows(tmp_path / "b.csv", [{"x": "a", "choice0": "x", "choice1": "y"}]), options=options)


@pytest.mark.parametrize("content", ["", "text,choice0,choice1,label\n"])
def test_a_table_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="must hold rows"):
        read_choice_table(path)


def test_a_ragged_row_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,choice0,choice1,label\na,x,y,0\nb,x,y\n")
    with pytest.raises(InputError, match=r"line 3: 3 fields where the header has 4"):
        read_choice_table(path)
