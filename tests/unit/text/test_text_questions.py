"""Questions out of SQuAD's JSON and out of tables, with their answers as they were written."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.questions import GoldAnswer, Question, gold_answers, is_question_file, question_rows
from bertsmith.text.tables import TableRow
from made_questions import asked, squad, write_squad

CONTEXT = "Ada wrote it.\r\nShe lived in London."
DOCUMENT = squad(
    (CONTEXT, [asked("Who?", ("Ada", 0), name="a1"), asked("When?", name="a2", is_impossible=True)]),
    ("Rain fell.", [{"question": "What fell?", "answers": [{"text": "Rain", "answer_start": 0}]}]),
)


def _answers(values: dict[str, Any], column: str | None = "answers") -> list[tuple[str, int | None]]:
    found = gold_answers(Path("made.jsonl"), TableRow(3, "line 3", values), column)
    assert all(answer.end is None or answer.start is not None for answer in found)
    return [(answer.text, answer.start) for answer in found]


def _compressed(path: Path, data: bytes) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(data)
    else:
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["q.json", "q.json.gz", "Q.JSON.ZST"])
def test_squad_files_are_read_also_compressed(tmp_path: Path, name: str) -> None:
    path = _compressed(tmp_path / name.lower(), b"\xef\xbb\xbf" + json.dumps(DOCUMENT).encode())
    assert is_question_file(Path(name))
    rows = list(question_rows(path))
    assert [row.place for row in rows] == ["question 1 (id a1)", "question 2 (id a2)", "question 3"]
    assert [row.values["question"] for row in rows] == ["Who?", "When?", "What fell?"]
    assert rows[0].values["context"] is rows[1].values["context"]
    assert [row.values.get("is_impossible") for row in rows] == [None, True, None]


def test_answers_that_no_question_has_an_entry_for_are_unknown(tmp_path: Path) -> None:
    first, second = {"question": "Who?"}, {"question": "When?", "is_impossible": True}
    path = write_squad(tmp_path / "q.json", squad((CONTEXT, [first, second])))
    assert not any("answers" in row.values for row in question_rows(path))
    path = write_squad(tmp_path / "q.json", squad((CONTEXT, [first, second]), ("Rain.", [asked("What?", ("Rain", 0))])))
    assert [row.values["answers"] is None for row in question_rows(path)] == [True, True, False]


def test_a_row_has_no_column_that_no_question_has(tmp_path: Path) -> None:
    (row,) = question_rows(write_squad(tmp_path / "q.json", squad((CONTEXT, [{"question": "Who?"}]))))
    assert set(row.values) == {"question", "context"}


def test_line_ends_stay_as_offsets_count_them(tmp_path: Path) -> None:
    row = {"question": "Where?", "context": CONTEXT, "answers": {"text": ["London"], "answer_start": [28]}}
    json_file = write_squad(tmp_path / "q.json", squad((CONTEXT, [asked("Where?", ("London", 28))])))
    lines = tmp_path / "q.jsonl"
    lines.write_text(json.dumps(row), encoding="utf-8")
    table = tmp_path / "q.parquet"
    pq.write_table(pa.Table.from_pylist([row]), table)
    for path in (json_file, lines, table):
        (found,) = question_rows(path)
        (answer,) = gold_answers(path, found, "answers")
        assert found.values["context"][answer.start : answer.end] == answer.text == "London"


def test_a_flat_list_of_questions_is_read_too(tmp_path: Path) -> None:
    flat = [{"id": 7, "question": "Who?", "context": CONTEXT, "answers": {"text": ["Ada"], "answer_start": [0]}}]
    for document in (flat, {"data": flat}):
        (row,) = question_rows(write_squad(tmp_path / "flat.json", document))  # pyright: ignore[reportArgumentType]
        assert row.place == "question 1 (id 7)"
        assert gold_answers(tmp_path, row, "answers") == (GoldAnswer("Ada", 0, 3),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"data": [', "one JSON document.*line 1"),
        ("7", "laid out as SQuAD's.*a int"),
        ('{"rows": []}', "laid out as SQuAD's.*under data: none"),
        ('{"data": {"paragraphs": []}}', "under data: a dict"),
        ('{"data": [null]}', "under data: None in it"),
        ('{"data": [{"paragraphs": [{"context": "c"}]}]}', "under qas, after question 0: none"),
        ('[{"text": "t", "label": "a"}]', "objects must hold question and context: they hold text, label"),
        ('[{"id": 1, "question": "q"}]', "objects must hold question and context: they hold id, question"),
        ('{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "x"}, 3]}]}]}', "under qas.*3 in it"),
    ],
)
def test_json_of_another_form_is_refused_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        list(question_rows(path))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"answers": [{"text": "Ada", "answer_start": 0}, {"text": "ink", "answer_start": 9}]},
            [("Ada", 0), ("ink", 9)],
        ),
        ({"answers": {"text": ["Ada", "ink"], "answer_start": [0, 9]}}, [("Ada", 0), ("ink", 9)]),
        ({"answers": {"text": "Ada", "answer_start": 4.0}}, [("Ada", 4)]),
        ({"answers": ["Ada", "ink"], "answer_start": [0, 9]}, [("Ada", 0), ("ink", 9)]),
        ({"answers": "Ada", "answer_start": " 12 "}, [("Ada", 12)]),
        ({"answers": "Ada", "answer_start": "7.0"}, [("Ada", 7)]),
        ({"answers": "Ada", "answer_start": "-1.00"}, [("Ada", -1)]),
        ({"answers": "Ada", "answer_start": " "}, [("Ada", None)]),
        ({"answers": "Ada", "answer_start": "NaN"}, [("Ada", None)]),
        ({"answers": "Ada", "answer_start": float("nan")}, [("Ada", None)]),
        ({"answers": "", "answer_start": float("nan")}, []),
        ({"answers": float("nan"), "answer_start": float("nan")}, []),
        ({"answers": "Ada"}, [("Ada", None)]),
        ({"answers": "Ada", "answer_start": ""}, [("Ada", None)]),
        ({"answers": [{"text": "Ada"}]}, [("Ada", None)]),
        ({"answers": []}, []),
        ({"answers": {"text": [], "answer_start": []}}, []),
        ({"answers": None}, []),
        ({}, []),
        ({"answers": [{"text": "  ", "answer_start": -1}]}, []),
        ({"answers": ""}, []),
        ({"answers": {}}, []),
        ({"answers": '{"text": ["Ada", "ink"], "answer_start": [0, 9]}'}, [("Ada", 0), ("ink", 9)]),
        ({"answers": "{'text': ['Ada'], 'answer_start': [0]}"}, [("Ada", 0)]),
        ({"answers": "{'text': array(['Ada'], dtype=object), 'answer_start': array([0], dtype=int32)}"}, [("Ada", 0)]),
        ({"answers": "[{'text': 'Ada', 'answer_start': 0}]"}, [("Ada", 0)]),
        ({"answers": '["Ada", "ink"]', "answer_start": "[0, 9]"}, [("Ada", 0), ("ink", 9)]),
        ({"answers": "['Ada' 'ink']", "answer_start": "[0 9]"}, [("Ada", 0), ("ink", 9)]),
        ({"answers": '["Ada"]', "answer_start": "7"}, [("Ada", 7)]),
        ({"answers": " [] ", "answer_start": "[]"}, []),
        ({"answers": '{"text": [], "answer_start": []}'}, []),
        ({"answers": "[1]", "answer_start": 3}, [("[1]", 3)]),
        ({"answers": "[sic]"}, [("[sic]", None)]),
    ],
)
def test_every_way_of_writing_answers_is_understood(values: dict[str, Any], expected: list[tuple[str, int]]) -> None:
    assert _answers(values) == expected
    assert _answers(values, None) == []


@pytest.mark.parametrize(
    "values",
    [
        {"answers": 7},
        {"answers": [{"text": 7, "answer_start": 0}]},
        {"answers": {"text": ["Ada"], "answer_start": [0, 9]}},
        {"answers": "Ada", "answer_start": "first"},
        {"answers": "Ada", "answer_start": True},
        {"answers": "Ada", "answer_start": 1.5},
        {"answers": "Ada", "answer_start": "1.5"},
        {"answers": "Ada", "answer_start": "1e2"},
        {"answers": "\ud83d", "answer_start": 0},
        {"answers": {"texts": ["Ada"], "starts": [0]}},
        {"answers": [{"answer": "Ada"}]},
        {"answers": '[{"answer": "Ada"}]'},
        {"answers": "{'text': array(['Ada', ..., 'Ada'], dtype=object), 'answer_start': array([0])}"},
        {"answers": "{'Ada'}"},
        {"answers": '["Ada"]', "answer_start": "[0, 9]"},
        {"answers": '["Ada"]', "answer_start": "[0, -]"},
    ],
)
def test_answers_that_are_none_are_refused_with_their_row(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"made\.jsonl, line 3"):
        _answers(values)


def test_an_answer_at_its_offset_stays() -> None:
    answer = GoldAnswer("boat", 8, 12)
    assert answer.placed("boat or boat") is answer


@pytest.mark.parametrize(
    ("context", "text", "start", "expected"),
    [
        ("the boat", "boat", 0, (4, 8)),
        ("the boat", "boat", -1, (4, 8)),
        ("the boat", "boat", 1000, (4, 8)),
        ("the boat", "boat", None, (4, 8)),
        ("boat a boat b boat", "boat", 6, (7, 11)),
        ("boat a boat b boat", "boat", 13, (14, 18)),
        ("aXaXaX", "aXaX", 1, (0, 4)),
        ("على يدِ الشاعر\u00a0خليل  مردم", "الشاعر خليل مردم", 3, (8, 25)),
        ("a (1921  - 26)", "(1921 - 26", 3, (2, 13)),
        ("the boat", " boat ", 4, (4, 8)),
        ("the boat", "ship", 4, None),
    ],
)
def test_a_misplaced_answer_is_found_at_the_nearest_place(
    context: str, text: str, start: int | None, expected: tuple[int, int] | None
) -> None:
    found = GoldAnswer(text, start, None if start is None else start + len(text)).placed(context)
    assert found.text == text
    assert (found.start, found.end) == (expected or (None, None))
    if expected:
        assert context[slice(*expected)].split() == text.split()


def test_a_question_without_an_answer_is_impossible_and_one_with_a_lost_answer_is_not() -> None:
    nothing = Question("line 1", "1", "Who?", "Rain.", ())
    lost = Question("line 1", "1", "Who?", "Rain.", (GoldAnswer("Snow", None, None), GoldAnswer("Rain", 0, 4)))
    assert nothing.is_impossible
    assert nothing.answer is None
    assert not lost.is_impossible
    assert lost.answer == GoldAnswer("Rain", 0, 4)
    assert lost.key == ("Who?", "Rain.")
