"""Rows with the same texts are said, or refused."""

from pathlib import Path

import pytest

from bertsmith.examples.choice_tables import ChoiceItem, ChoiceRow
from bertsmith.examples.embedding_tables import EmbedRow
from bertsmith.examples.repeated_rows import (
    contradiction_note,
    contradictions,
    overlap_note,
    refuse_contradictions,
    refuse_overlap,
    refuse_repeats,
)
from bertsmith.examples.task_tables import TaskRow
from bertsmith.foundation.errors import InputError
from bertsmith.text.questions import GoldAnswer, Question
from bertsmith.text.tagged import TaggedSentence


def _rows(*pairs: tuple[str, str]) -> tuple[TaskRow, ...]:
    return tuple(TaskRow(text, None, label, f"line {number}") for number, (text, label) in enumerate(pairs, 2))


def test_rows_that_differ_give_no_notes_and_are_not_refused() -> None:
    rows = _rows(("a", "x"), ("b", "y"))
    assert contradiction_note(rows) is None
    assert overlap_note(rows[:1], rows[1:]) is None
    refuse_contradictions(Path("a.csv"), rows)
    refuse_overlap(Path("a.csv"), rows[:1], rows[1:])


def test_rows_that_contradict_each_other_are_told_with_their_places_or_refused() -> None:
    rows = _rows(("a", "x"), ("a", " x"), ("b", "x"), ("b", "y"), ("c", "y"), ("b", "z"))
    note = contradiction_note(rows)
    assert note == "1 text has different labels in different rows: “b” in line 4, line 5, line 7"
    with pytest.raises(InputError, match=r"--strict.*2 in a\.csv.*line 4 and line 5.*leave --strict out"):
        refuse_contradictions(Path("a.csv"), rows)


def test_rows_of_every_task_with_one_right_answer_can_contradict_each_other() -> None:
    choice = ChoiceItem("it rained", ("one", "two"))
    pairs = [
        [ChoiceRow(choice, 0, "line 1"), ChoiceRow(choice, 1, "line 2")],
        [TaggedSentence(("a", "b"), ("O", "O"), "line 1"), TaggedSentence(("a", "b"), ("O", "B-X"), "line 3")],
        [EmbedRow(("a", "b"), 0.5, "line 1"), EmbedRow(("a", "b"), 0.7, "line 2")],
        [TaskRow("a", "b", ("x", "y"), "line 1"), TaskRow("a", "b", ("x",), "line 2")],
    ]
    for first, second in pairs:
        assert [str(one) for one in contradictions([first, second])] == [f"{first.place} and {second.place}"]
        assert contradictions([first, first]) == []
        assert contradiction_note([first, second]) is not None


def test_questions_may_have_several_right_answers() -> None:
    answers = [(GoldAnswer("a", 0, 1),), (GoldAnswer("b", 2, 3),)]
    rows = [Question(f"question {number}", str(number), "what?", "a b", found) for number, found in enumerate(answers)]
    assert contradictions(rows) == []
    assert overlap_note(rows[:1], rows[1:]) == "1 of 1 validation text stands in the training rows too"


def test_texts_in_both_parts_are_counted_or_refused() -> None:
    train, validation = _rows(("a", "x"), ("b", "x")), _rows(("a", "y"), ("c", "x"), ("b", "x"))
    assert overlap_note(train, validation) == "2 of 3 validation texts stand in the training rows too"
    with pytest.raises(InputError, match=r"--strict.*2 of 3, in dev\.csv: line 2, line 4\. Remove"):
        refuse_overlap(Path("dev.csv"), train, validation)


def test_rows_that_repeat_texts_are_refused_where_a_share_is_held_out() -> None:
    rows = _rows(("a", "x"), ("b", "x"), ("a", "x"), ("b", "y"))
    refuse_repeats(Path("a.csv"), rows[:2])
    with pytest.raises(InputError, match=r"--strict.*2 of 4 rows of a\.csv: line 4, line 5\. Remove the repeats"):
        refuse_repeats(Path("a.csv"), rows)


def test_whole_numbers_contradict_no_other_spelling_of_themselves() -> None:
    assert contradictions(_rows(("a", "1"), ("a", "1.0"))) == []
    assert contradictions([TaskRow("a", None, True, "line 1"), TaskRow("a", None, "true", "line 2")]) == []
    assert len(contradictions(_rows(("a", "1.1"), ("a", "1.10")))) == 1


def test_each_contradiction_is_told_with_its_own_text() -> None:
    rows = _rows(
        ("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("c", "x"), ("c", "y"), ("d" * 70, "x"), ("d" * 70, "y")
    )
    assert contradiction_note(rows) == (
        "4 texts have different labels in different rows: “a” in line 2, line 4; “b” in line 3, line 5; "
        "“c” in line 6, line 7; and 1 more text"
    )
    assert contradiction_note(rows[-2:]) == (
        f"1 text has different labels in different rows: “{'d' * 60}…” in line 8, line 9"
    )
