"""What stands out in the data is said."""

from pathlib import Path

from bertsmith.examples.data_look import cut_note, label_notes, overlap_note, table_notes
from bertsmith.examples.task_tables import Columns, TaskRow, TaskTable


def _rows(*pairs: tuple[str, str]) -> tuple[TaskRow, ...]:
    return tuple(TaskRow(text, None, label, f"line {number}") for number, (text, label) in enumerate(pairs, 2))


def _table(*pairs: tuple[str, str], skipped: tuple[str, ...] = ()) -> TaskTable:
    return TaskTable(Path("a.csv"), Columns("text", None, "label"), _rows(*pairs), skipped)


def test_clean_rows_give_no_notes() -> None:
    assert table_notes(_table(("a", "x"), ("b", "y"))) == []
    assert overlap_note(_rows(("a", "x")), _rows(("b", "x"))) is None
    assert label_notes({"x": 20, "y": 30}) == []
    assert cut_note(0, 10, 64, "head") is None


def test_repeated_and_contradicting_texts_are_counted() -> None:
    notes = table_notes(_table(("a", "x"), ("a", "x"), ("b", "x"), ("b", "y"), ("c", "y")))
    assert notes == [
        "2 of 5 rows repeat the text of another",
        "1 texts have different labels in other rows: “b” …",
    ]


def test_rows_left_out_are_listed() -> None:
    places = tuple(f"line {number} (text)" for number in range(2, 9))
    (note,) = table_notes(_table(("a", "x"), ("b", "y"), skipped=places))
    assert note == f"7 rows left out, blank: {', '.join(places[:5])} and 2 more"


def test_texts_in_both_parts_are_counted() -> None:
    train, validation = _rows(("a", "x"), ("b", "x")), _rows(("a", "y"), ("c", "x"), ("b", "x"))
    assert overlap_note(train, validation) == "2 of 3 validation texts stand in the training rows too"


def test_small_and_uneven_labels_are_said() -> None:
    small, uneven = label_notes({"x": 95, "y": 5})
    assert "fewer than 10 training rows: y 5" in small
    assert "95 rows of the commonest and 5 of the rarest" in uneven
    assert "class_weights=balanced" in uneven


def test_cut_rows_are_said_with_what_is_kept() -> None:
    assert cut_note(3, 1200, 64, "tail") == "3 of 1,200 rows are longer than 64 tokens; their tail is used"
