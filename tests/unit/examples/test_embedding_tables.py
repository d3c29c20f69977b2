"""Which columns hold texts that belong together, graded pairs or texts alone, and rows that cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertsmith.examples.embedding_tables import EmbedColumns, EmbedTable, read_embed_table
from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.errors import InputError
from made_tasks import write_rows

PAIRS = EmbedColumns("anchor", "positive")
SCORED = EmbedColumns("sentence1", "sentence2", None, "score")


def _read(folder: Path, rows: list[dict[str, Any]], config: TableConfig = TableConfig(), **more: Any) -> EmbedTable:
    return read_embed_table(write_rows(folder / "rows.jsonl", rows), config, **more)


def _rows(*names: str, count: int = 3, **values: Any) -> list[dict[str, Any]]:
    return [{name: values.get(name, f"some {name} {number}") for name in names} for number in range(count)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("anchor", "positive"), PAIRS),
        (("anchor", "positive", "negative"), EmbedColumns("anchor", "positive", "negative")),
        (("Query", "Passage"), EmbedColumns("Query", "Passage")),
        (("query", "positive", "negative", "score"), EmbedColumns("query", "positive", "negative")),
        (("question", "answer"), EmbedColumns("question", "answer")),
        (("text", "pair"), EmbedColumns("text", "pair")),
        (("id", "sentence1", "sentence2"), EmbedColumns("sentence1", "sentence2")),
        (("id", "sentence1", "sentence2", "score"), SCORED),
        (("text1", "text2", "similarity"), EmbedColumns("text1", "text2", None, "similarity")),
        (("text",), EmbedColumns("text")),
        (("id", "words"), EmbedColumns("words")),
    ],
)
def test_columns_are_guessed(tmp_path: Path, names: tuple[str, ...], expected: EmbedColumns) -> None:
    assert _read(tmp_path, _rows(*names, id="7", score=0.5, similarity="0.5")).columns == expected


def test_kinds_follow_from_the_columns_and_are_said(tmp_path: Path) -> None:
    assert (PAIRS.kind, SCORED.kind, EmbedColumns("text").kind) == ("pairs", "scored", "texts")
    assert str(PAIRS) == "text “anchor”, what belongs to it “positive”"
    assert str(EmbedColumns("a", "b", "c")) == "text “a”, what belongs to it “b”, and “c”, which does not"
    assert str(SCORED) == "texts “sentence1” and “sentence2”, score “score”"
    assert "two readings of it, judged by its two halves" in str(EmbedColumns("text"))


def test_named_columns_are_taken_over_a_guess(tmp_path: Path) -> None:
    rows = _rows("anchor", "positive", "title", "body", "far", label=1)
    assert _read(tmp_path, rows, TableConfig(text="title", pair="body")).columns == EmbedColumns("title", "body")
    assert _read(tmp_path, rows, TableConfig(text="title")).columns == EmbedColumns("title")
    assert _read(tmp_path, rows, TableConfig(pair="positive")).columns == PAIRS
    found = _read(tmp_path, rows, TableConfig(text="title", pair="body", negative="far")).columns
    assert found == EmbedColumns("title", "body", "far")
    graded = _rows("sentence1", "sentence2", "label", label=1)
    assert _read(tmp_path, graded, TableConfig(label="label")).columns.score == "label"


def test_a_plain_file_holds_texts_alone_and_blank_lines_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("Rain fell.\n\n  \nThe boat waited.\n", encoding="utf-8")
    table = read_embed_table(path)
    assert table.columns == EmbedColumns("text")
    assert [row.texts for row in table.rows] == [("Rain fell.",), ("The boat waited.",)]
    assert [row.place for row in table.rows] == ["line 1", "line 4"]
    assert len(table.skipped) == 2


def test_rows_hold_their_texts_and_scores(tmp_path: Path) -> None:
    rows = [{"sentence1": "a b", "sentence2": "c", "score": score} for score in (1, "2.5", -3.0)]
    table = _read(tmp_path, rows)
    assert [row.score for row in table.rows] == [1.0, 2.5, -3.0]
    assert table.rows[0].texts == table.rows[0].key == ("a b", "c")
    triples = [{"anchor": "a", "positive": "b", "negative": "c"}, {"anchor": "d", "positive": "e", "negative": ""}]
    assert [row.texts for row in _read(tmp_path, triples).rows] == [("a", "b", "c"), ("d", "e")]


@pytest.mark.parametrize("score", ["near", None, True, "nan", "inf", [1]])
def test_a_score_that_is_no_number_is_refused_by_its_place(tmp_path: Path, score: Any) -> None:
    rows = [*_rows("sentence1", "sentence2", "score", score=1), {"sentence1": "a", "sentence2": "b", "score": score}]
    with pytest.raises(InputError, match="line 4"):
        _read(tmp_path, rows)


@pytest.mark.parametrize("label", ["entailment", 0, "1", 2])
def test_pairs_with_labels_that_may_be_no_scores_are_refused(tmp_path: Path, label: Any) -> None:
    with pytest.raises(InputError, match=r"which belong together.*column label.*--label.*without that column"):
        _read(tmp_path, _rows("premise", "hypothesis", "label", label=label))


@pytest.mark.parametrize(
    ("name", "values", "is_refused"),
    [
        ("is_duplicate", [1, 1, 1], True),
        ("same", [0, 1, 0], True),
        ("same", ["True", "False", "True"], True),
        ("same", [True, False, True, None], True),
        ("kind", [0, 1, 2, 1], True),
        ("share", ["0.5", "1.0", "0.5"], True),
        ("row", [0, 1, 2], False),
        ("row", [1, 2, 3, 4, 1], False),
        ("part", [0, 0, 0], False),
        ("source", ["a", "b", "a"], False),
    ],
)
def test_a_column_of_few_numbers_beside_pairs_is_taken_for_labels_whatever_its_name(
    tmp_path: Path, name: str, values: list[Any], is_refused: bool
) -> None:
    rows = [{"id": number, "question1": "a", "question2": "b", name: value} for number, value in enumerate(values)]
    if is_refused:
        with pytest.raises(InputError, match=rf"which belong together.*column {name}\. "):
            _read(tmp_path, rows)
    else:
        assert _read(tmp_path, rows).columns == EmbedColumns("question1", "question2")


def test_labels_with_fractions_are_scores(tmp_path: Path) -> None:
    table = _read(tmp_path, _rows("sentence1", "sentence2", "label", label=2.4))
    assert table.columns == EmbedColumns("sentence1", "sentence2", None, "label")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (TableConfig(text="anchro"), r"--text must be one of.*Did you mean anchor\?"),
        (TableConfig(negative="positiv"), r"data.negative must be one of.*positive"),
        (TableConfig(text="anchor", label="id"), r"second text of each pair.*--pair"),
        (TableConfig(label="id", negative="positive"), r"scores or negatives, not both"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, config: TableConfig, told: str) -> None:
    with pytest.raises(InputError, match=told):
        _read(tmp_path, _rows("id", "anchor", "positive"), config)


def test_two_unknown_columns_of_text_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds the text.*left, right.*--text, and.*--pair"):
        _read(tmp_path, _rows("left", "right"))


@pytest.mark.parametrize("values", [{"positive": " "}, {"anchor": None}])
def test_a_blank_side_is_refused_or_left_out(tmp_path: Path, values: dict[str, Any]) -> None:
    rows = [*_rows("anchor", "positive"), {"anchor": "a", "positive": "b"} | values]
    with pytest.raises(InputError, match="line 4"):
        _read(tmp_path, rows)
    table = _read(tmp_path, rows, TableConfig(blank_rows="skip"))
    assert (len(table.rows), len(table.skipped)) == (3, 1)


def test_a_text_that_is_none_is_refused(tmp_path: Path) -> None:
    rows = [*_rows("anchor", "positive"), {"anchor": "a", "positive": 5}]
    with pytest.raises(InputError, match=r"must be text.*line 4: positive=5"):
        _read(tmp_path, rows)


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="must hold rows"):
        read_embed_table(tmp_path / "rows.jsonl")


def test_a_second_file_is_read_by_the_columns_of_the_first(tmp_path: Path) -> None:
    rows = _rows("title", "body", "anchor", "positive")
    assert _read(tmp_path, rows, like=EmbedColumns("title", "body")).columns == EmbedColumns("title", "body")
    # It need not have negatives.
    like = EmbedColumns("anchor", "positive", "negative")
    assert _read(tmp_path, _rows("anchor", "positive"), like=like).columns == PAIRS


def test_a_second_file_of_another_kind_is_looked_at_for_itself(tmp_path: Path) -> None:
    graded = _rows("sentence1", "sentence2", "score", score=0.5)
    assert _read(tmp_path, graded, like=PAIRS).columns == SCORED
    assert _read(tmp_path, graded, like=EmbedColumns("text")).columns == SCORED
    # What was named is meant where it is there.
    config = TableConfig(text="anchor", pair="positive")
    assert _read(tmp_path, graded, config, like=PAIRS).columns == SCORED


def test_a_row_that_is_no_object_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(["a"]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="one JSON object a line"):
        read_embed_table(path)
