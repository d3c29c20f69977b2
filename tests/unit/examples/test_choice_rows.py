"""Which choice is right, and each choice as a sequence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.examples.choice import choice_examples, choice_notes, labels_are_texts, right_choices
from bertsmith.examples.choice_tables import ChoiceColumns, ChoiceItem, ChoiceRow, ChoiceTable
from bertsmith.foundation.errors import InputError
from made_corpora import made_tokenizer

TOKENIZER = made_tokenizer()
LONG = " ".join(["The old river carried every small boat"] * 8)


def _table(*rows: tuple[tuple[str, ...], Any]) -> ChoiceTable:
    columns = ChoiceColumns("text", None, ("choices",), "label")
    found = [ChoiceRow(ChoiceItem("x", choices), label, f"line {n}") for n, (choices, label) in enumerate(rows, 1)]
    return ChoiceTable(Path("a.jsonl"), columns, tuple(found))


@pytest.mark.parametrize("label", [1, "1", " 1 ", 1.0, "1.0", "in"])
def test_a_label_is_a_place_or_the_text_of_a_choice(label: Any) -> None:
    assert right_choices(_table((("out", "in"), label))).tolist() == [1]


def test_places_are_places_though_choices_are_numbers_too() -> None:
    table = _table((("2", "0", "1"), "1"), (("7", "8"), "0"))
    assert right_choices(table).tolist() == [1, 0]


@pytest.mark.parametrize("by_text", [None, False])
def test_letters_are_places_where_all_labels_are_some(by_text: bool | None) -> None:
    table = _table((("out", "in"), "B"), (("up", "down", "in"), "C"), (("up", "down"), " a "))
    assert labels_are_texts(table) is False
    known = replace(table, columns=replace(table.columns, by_text=by_text))
    assert right_choices(known).tolist() == [1, 2, 0]


def test_letters_that_are_the_texts_of_choices_are_texts() -> None:
    assert right_choices(_table((("B", "A"), "B"), (("A", "B"), "B"))).tolist() == [0, 1]


@pytest.mark.parametrize("label", ["C", "1", "AB", "I", 1])
def test_letters_among_other_labels_are_refused(label: Any) -> None:
    with pytest.raises(InputError, match=r"from 0 to 1, or its text, or in every row its letter"):
        right_choices(_table((("out", "in"), "B"), (("out", "in"), label)))


def test_numbers_that_are_out_of_range_may_be_the_texts_of_choices() -> None:
    table = _table((("12", "14"), "14"), (("1", "0"), "0"))
    assert right_choices(table).tolist() == [1, 1]


def test_a_number_with_a_fraction_is_the_choice_that_is_written_so() -> None:
    assert right_choices(_table((("1.0", "0.0"), "0.0"), (("1.0", "0.0"), "1.0"))).tolist() == [1, 0]


def test_labels_that_could_be_both_and_mean_two_things_are_refused() -> None:
    with pytest.raises(InputError, match=r"each of 2 can be both, as label='1' in line 1.*numbers in a \.jsonl"):
        right_choices(_table((("1", "2", "3"), "1"), (("1", "2", "3"), "2")))
    assert right_choices(_table((("1", "2", "3"), 1), (("1", "2", "3"), 2))).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("rows", "known", "right"),
    [
        ([(("1", "2", "3"), "3"), (("1", "2", "3"), "1")], True, [2, 0]),
        ([(("out", "in"), "1"), (("0", "1"), "0")], False, [1, 0]),
        ([(("0", "1"), "0"), (("out", "in"), 1)], None, [0, 1]),
        ([(("out", "in"), 1)], None, [1]),
    ],
)
def test_a_file_tells_whether_its_labels_are_texts_or_nothing_of_it(
    rows: list[tuple[tuple[str, ...], Any]], known: bool | None, right: list[int]
) -> None:
    assert labels_are_texts(_table(*rows)) is known
    assert right_choices(_table(*rows)).tolist() == right


def test_what_is_known_of_labels_holds_in_another_file() -> None:
    table = _table((("1", "2", "3"), "1"), (("1", "2", "3"), "2"))
    for by_text, right in ((True, [0, 1]), (False, [1, 2])):
        known = replace(table, columns=replace(table.columns, by_text=by_text))
        assert right_choices(known).tolist() == right
    for by_text, label, told in (
        (True, "0", "or its text, as in training"),
        (False, "in", "from 0 to 1, as in training"),
    ):
        table = _table((("out", "in"), label))
        with pytest.raises(InputError, match=rf"{told}.*line 1: label='{label}'"):
            right_choices(replace(table, columns=replace(table.columns, by_text=by_text)))


@pytest.mark.parametrize("label", [2, -1, "2", "-1", "off", True, 0.5, None, ["in"]])
def test_a_label_that_is_no_choice_is_refused_with_its_row(label: Any) -> None:
    with pytest.raises(InputError, match=r"place of the right choice, from 0 to 1, or its text.*line 2: label="):
        right_choices(_table((("out", "in"), 0), (("out", "in"), label)))


def test_the_row_that_is_named_is_the_wrong_one() -> None:
    with pytest.raises(InputError, match=r"from 0 to 2.*line 3: label=3, with 3 choices"):
        right_choices(_table((("a", "b"), 1), (("a", "b", "c"), 2), (("a", "b", "c"), 3), (("a", "b"), 0)))
    with pytest.raises(InputError, match="line 2: label='c'"):
        right_choices(_table((("a", "b"), "b"), (("a", "b"), "c")))
    with pytest.raises(InputError, match="line 2: label='7'"):
        right_choices(_table((("a", "b"), "b"), (("a", "b"), "7")))


def test_a_text_that_two_choices_have_is_refused_and_a_place_is_not() -> None:
    with pytest.raises(InputError, match=r"line 1: label='in', the text of 2 choices"):
        right_choices(_table((("in", "in"), "in")))
    table = _table((("in", "in"), 1), (("in", "out"), 0))
    assert right_choices(table).tolist() == [1, 0]
    assert "1 of 2 rows has a choice twice" in choice_notes(table)


def test_notes_tell_how_good_guessing_is_and_labels_that_look_wrong() -> None:
    pair, four = ("a", "b"), ("a", "b", "c", "d")
    assert choice_notes(_table((pair, 1), (four, 0))) == [
        "2 to 4 choices a row, of which guessing finds the right one in 37.5%"
    ]
    assert "choice 1, counted from 0, is the right one in every row" in choice_notes(_table(*[(pair, 1)] * 10))
    assert "counted from 0, not from 1" in choice_notes(_table(*[(four, 1 + n % 3) for n in range(10)]))[-1]


def test_each_choice_is_a_pair_and_those_of_a_row_are_a_group() -> None:
    items = [ChoiceItem("The boat.", ("sank", "waited", "sang"), "It"), ChoiceItem("Rain.", ("fell", "rose"))]
    examples = choice_examples(items, np.array([1, 0]), TOKENIZER, max_length=64)
    assert examples.group_starts is not None
    assert examples.group_starts.tolist() == [0, 3, 5]
    assert examples.rows.tolist() == [0, 0, 0, 1, 1]
    assert (examples.targets.tolist(), examples.targets_by, examples.num_cut) == ([1, 0], "group", 0)
    pairs = [("The boat.", "It sank"), ("The boat.", "It waited"), ("The boat.", "It sang"), ("Rain.", "fell")]
    for number, (text, second) in enumerate(pairs):
        here = slice(*examples.sequence_starts[number : number + 2])
        encoding = TOKENIZER.encode(text, second)
        assert examples.token_ids[here].tolist() == encoding.token_ids.tolist()
        assert examples.segment_ids[here].tolist() == encoding.segment_ids.tolist()


@pytest.mark.parametrize("long_texts", ["head", "tail"])
def test_rows_that_are_cut_are_counted_once_and_keep_their_choices(long_texts: Any) -> None:
    items = [ChoiceItem(LONG, ("sank", "waited")), ChoiceItem("Rain.", ("fell", "rose"))]
    examples = choice_examples(items, None, TOKENIZER, max_length=16, long_texts=long_texts)
    assert examples.num_cut == 1
    assert examples.lengths.max() == 16
    assert not len(examples.targets)
    for number, choice in enumerate(("sank", "waited")):
        here = slice(*examples.sequence_starts[number : number + 2])
        ending = TOKENIZER.encode("x", choice).token_ids[-len(TOKENIZER.encode(choice)) + 1 :]
        assert examples.token_ids[here][-len(ending) :].tolist() == ending.tolist()


def test_windows_are_refused() -> None:
    with pytest.raises(InputError, match=r"long_texts must be head or tail: choices are compared"):
        choice_examples([ChoiceItem("a", ("b", "c"))], None, TOKENIZER, max_length=16, long_texts="windows")
