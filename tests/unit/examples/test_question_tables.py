"""Files of questions: columns, answers brought to their place, and what is said about them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.examples.question_tables import open_questions, question_of, read_questions
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.foundation.errors import InputError
from made_questions import asked, squad, write_squad

CONTEXT = "The old boat lay in the harbour. A boat is old."
ARABIC = "وُلد الشاعر\u00a0خليل مردم في دمشق."


def _lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_questions_of_both_kinds_are_read_with_what_stands_out(tmp_path: Path) -> None:
    document = squad(
        (
            CONTEXT,
            [
                asked("What lay?", ("The old boat", 0), ("boat", 8), name="1"),
                asked("Who sailed?", name="2"),
                asked("What is old?", ("A boat", 3), name="3"),
                asked("What is new?", ("A ship", 3), name="4"),
                asked("Why?", ("boat", 8), name="5", is_impossible=True),
                asked("Who sailed?", name="6"),
            ],
        ),
        (ARABIC, [asked("من؟", ("الشاعر خليل مردم", 0), name="7")]),
    )
    table = read_questions(write_squad(tmp_path / "q.json", document))
    assert [question.id for question in table.rows] == list("1234567")
    assert [question.is_impossible for question in table.rows] == [False, True, False, False, True, True, False]
    assert [answer.start for answer in table.rows[0].answers] == [0, 8]
    moved, lost, arabic = table.rows[2].answer, table.rows[3], table.rows[6].answer
    assert moved is not None
    assert CONTEXT[moved.start : moved.end] == "A boat"
    assert lost.answer is None
    assert lost.answers[0].text == "A ship"
    assert arabic is not None
    assert ARABIC[arabic.start : arabic.end] == "الشاعر\u00a0خليل مردم"
    assert [note.split(" ", 1) for note in table.notes] == [
        ["2", "answers do not stand at their offset as written, and the nearest place where they do is taken: "
         "question 3 (id 3), question 7 (id 7)"],
        ["1", "answer does not stand in its context, and is not trained on: question 4 (id 4)"],
        ["1", "question has answers and is marked is_impossible, and the mark counts: question 5 (id 5)"],
        ["1", "of 7 questions repeats another about the same text"],
    ]  # fmt: skip


def test_strict_refuses_what_is_otherwise_mended(tmp_path: Path) -> None:
    strict, options = TableConfig(strict=True), OptionNames(strict="--set data.strict=true")
    path = write_squad(tmp_path / "q.json", squad((CONTEXT, [asked("Q?", ("boat", 3)), asked("R?", ("ship", 3))])))
    with pytest.raises(InputError, match=r"data\.strict=true.*1 answer does not stand at.*question 1.*question 2"):
        read_questions(path, strict, options=options)
    right = write_squad(tmp_path / "r.json", squad((CONTEXT, [asked("Q?", ("boat", 8)), asked("Nothing?")])))
    assert read_questions(right, strict).notes == ()


@pytest.mark.parametrize(
    "names", [("question", "context", "answers"), ("Query", "passage", "answer"), ("question", "text", "answer")]
)
def test_columns_are_found_by_their_names(tmp_path: Path, names: tuple[str, str, str]) -> None:
    question, context, answer = names
    row = {"other": "x", context: CONTEXT, question: "What?", answer: "boat", "answer_start": 8}
    table = read_questions(_lines(tmp_path / "q.jsonl", row))
    assert str(table.columns) == f"text “{question}”, pair “{context}”, label “{answer}”"
    (found,) = table.rows
    assert (found.place, found.id) == ("line 1", "line 1")
    assert found.answer is not None
    assert found.answer.start == 8


def test_a_separated_table_with_starts_is_read(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text(f'question,context,answer,answer_start\nWhat?,"{CONTEXT}",boat,8\nWho?,"{CONTEXT}",,\n')
    first, second = read_questions(path).rows
    assert first.answers[0].start == 8
    assert second.is_impossible


@pytest.mark.parametrize(("mark", "is_marked"), [("True", True), ("1", True), ("False", False), ("", False)])
def test_a_mark_of_an_impossible_question_counts_in_a_separated_table_too(
    tmp_path: Path, mark: str, is_marked: bool
) -> None:
    path = tmp_path / "q.csv"
    path.write_text(f'question,context,answer,is_impossible\nWhat?,"{CONTEXT}",boat,{mark}\n')
    assert [row.is_impossible for row in read_questions(path).rows] == [is_marked]


@pytest.mark.parametrize(("mark", "is_marked"), [(True, True), (1, True), (0, False), (None, False)])
def test_a_mark_of_an_impossible_question_may_be_a_number(tmp_path: Path, mark: Any, is_marked: bool) -> None:
    row = {"question": "What?", "context": CONTEXT, "answer": "boat", "is_impossible": mark}
    assert [row.is_impossible for row in read_questions(_lines(tmp_path / "q.jsonl", row)).rows] == [is_marked]


def test_a_mark_that_is_no_truth_value_is_refused(tmp_path: Path) -> None:
    row = {"question": "What?", "context": CONTEXT, "answer": "boat", "is_impossible": "maybe"}
    with pytest.raises(InputError, match=r"true or false.*line 1: is_impossible='maybe'"):
        read_questions(_lines(tmp_path / "q.jsonl", row))


def test_named_columns_are_taken_and_missing_ones_refused(tmp_path: Path) -> None:
    path = _lines(tmp_path / "q.jsonl", {"a": "What?", "b": CONTEXT, "c": {"text": ["boat"], "answer_start": [8]}})
    table = read_questions(path, TableConfig(text="a", pair="b", label="c"))
    assert table.rows[0].key == ("What?", CONTEXT)
    with pytest.raises(InputError, match=r"--pair must be one of the file's columns: a, b, c.*contexts"):
        read_questions(path, TableConfig(text="a", pair="contexts", label="c"))
    with pytest.raises(InputError, match=r"column that holds the answers must be known.*--label"):
        read_questions(path, TableConfig(text="a", pair="b"))


@pytest.mark.parametrize(("question", "context"), [("", CONTEXT), ("  ", CONTEXT), ("What?", " "), (None, CONTEXT)])
def test_a_blank_question_or_text_is_refused_or_left_out(tmp_path: Path, question: str | None, context: str) -> None:
    good = {"question": "What?", "context": CONTEXT, "answers": []}
    path = _lines(tmp_path / "q.jsonl", good, {"question": question, "context": context, "answers": []})
    with pytest.raises(InputError, match=r"1 blank.*line 2"):
        read_questions(path)
    table = read_questions(path, TableConfig(blank_rows="skip"))
    assert len(table.rows) == 1
    assert "1 row left out, blank: line 2" in table.notes[0]


def test_questions_to_be_answered_need_no_answers(tmp_path: Path) -> None:
    path = _lines(tmp_path / "q.jsonl", {"question": "What?", "context": CONTEXT}, {"question": " ", "context": "x"})
    columns, rows = open_questions(path, TableConfig(), labels=False)
    first, second = rows
    assert question_of(path, first, columns).key == ("What?", CONTEXT)
    with pytest.raises(InputError, match="line 2: nothing under question"):
        question_of(path, second, columns)


def test_a_squad_file_without_answers_is_refused_only_where_they_are_needed(tmp_path: Path) -> None:
    path = write_squad(tmp_path / "q.json", squad((CONTEXT, [{"question": "What?"}, {"question": "Who?"}])))
    with pytest.raises(InputError, match=r"need answers.*q\.json, whose questions hold question, context.*an empty"):
        read_questions(path)
    columns, rows = open_questions(path, TableConfig(), labels=False)
    assert [question_of(path, row, columns).question for row in rows] == ["What?", "Who?"]


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must hold some"):
        read_questions(write_squad(tmp_path / "q.json", squad()))


def test_another_encoding_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes('{"question": "Où?", "context": "Là.", "answers": []}\n'.encode("latin-1"))
    with pytest.raises(InputError, match="--encoding"):
        read_questions(path)
    assert read_questions(path, TableConfig(encoding="latin-1")).rows[0].question == "Où?"


def test_answers_without_an_offset_are_taken_where_they_stand_first_and_are_no_fault(tmp_path: Path) -> None:
    path = _lines(
        tmp_path / "q.jsonl",
        {"question": "What lay?", "context": CONTEXT, "answer": "boat"},
        {"question": "What is old?", "context": CONTEXT, "answer": "A boat"},
    )
    table = read_questions(path, TableConfig(strict=True))
    assert [row.answers[0].start for row in table.rows] == [8, 33]
    assert table.notes == ("2 answers have no offset, and the first place where they stand is taken: line 1, line 2",)
    lost = _lines(tmp_path / "r.jsonl", {"question": "What sank?", "context": CONTEXT, "answer": "ship"})
    with pytest.raises(InputError, match=r"--strict.*1 answer does not stand in its context: line 1"):
        read_questions(lost, TableConfig(strict=True))


def test_files_that_hold_no_questions_by_their_ending_are_refused(tmp_path: Path) -> None:
    for name, told in (("q.dat", r"ending \.dat"), ("q.xlsx", "spreadsheet.*as CSV"), ("q.conll", "the task tag")):
        path = tmp_path / name
        path.write_text("question,context,answer\n")
        with pytest.raises(InputError, match=told):
            read_questions(path)


def test_questions_in_utf_16_are_told_with_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes(f"question;context;answer\nWhat?;{CONTEXT};boat\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"in UTF-16\. Read it with --encoding utf-16\."):
        read_questions(path)
    assert len(read_questions(path, TableConfig(encoding="utf-16")).rows) == 1
