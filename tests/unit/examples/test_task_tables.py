"""Which column holds what, and rows that cannot be used."""

import gzip
import json
from pathlib import Path

import pytest

from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.task_columns import Columns
from bertsmith.examples.task_tables import read_task_table, read_texts, task_row
from bertsmith.foundation.errors import InputError
from made_tasks import write_rows


def _columns(folder: Path, *names: str, config: TableConfig = TableConfig(), suffix: str = ".csv") -> Columns:
    values = {"label": "yes", "id": "7", "score": "0.5"}
    rows = [{name: values.get(name, f"some {name} {number}") for name in names} for number in range(3)]
    return read_task_table(write_rows(folder / f"a{suffix}", rows), config).columns


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("text", "label"), Columns("text", None, "label")),
        (("id", "sentence", "label"), Columns("sentence", None, "label")),
        (("Text", "Label"), Columns("Text", None, "Label")),
        (("text", "category"), Columns("text", None, "category")),
        (("utterance", "intent"), Columns("utterance", None, "intent")),
        (("id", "words", "label"), Columns("words", None, "label")),
        (("text", "kind"), Columns("text", None, "kind")),
        (("sentence1", "sentence2", "label"), Columns("sentence1", "sentence2", "label")),
        (("id", "premise", "hypothesis", "label"), Columns("premise", "hypothesis", "label")),
        (("question", "sentence", "label"), Columns("question", "sentence", "label")),
        (("sentence", "text", "label"), Columns("text", None, "label")),
    ],
)
def test_columns_are_guessed(tmp_path: Path, names: tuple[str, ...], expected: Columns) -> None:
    assert _columns(tmp_path, *names) == expected
    assert _columns(tmp_path, *names, suffix=".jsonl") == expected


def test_named_columns_are_taken_over_a_guess(tmp_path: Path) -> None:
    config = TableConfig(text="title", label="kind")
    assert _columns(tmp_path, "text", "title", "label", "kind", config=config) == Columns("title", None, "kind")
    config = TableConfig(text="sentence2", pair="sentence1")
    assert _columns(tmp_path, "sentence1", "sentence2", "label", config=config) == Columns(
        "sentence2", "sentence1", "label"
    )
    config = TableConfig(pair="title")
    assert _columns(tmp_path, "text", "title", "label", config=config) == Columns("text", "title", "label")
    # A text that was named stands alone, though a second one is there.
    config = TableConfig(text="sentence1")
    assert _columns(tmp_path, "sentence1", "sentence2", "label", config=config) == Columns("sentence1", None, "label")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("words", "phrases", "label"), r"holds the text.*words, phrases, label.*--text.*header"),
        (("text", "kind", "sort"), r"holds the label.*text, kind, sort.*--label.*header"),
    ],
)
def test_columns_that_cannot_be_told_are_asked_for(tmp_path: Path, names: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _columns(tmp_path, *names)


@pytest.mark.parametrize("option", ["text", "pair", "label"])
def test_a_named_column_that_is_missing_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(InputError, match=rf"--{option} must be one of.*Did you mean text\?"):
        _columns(tmp_path, "text", "label", config=TableConfig.parse({option: "texts"}, where="a test"))


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_cells_are_refused_with_their_places_or_skipped(tmp_path: Path, blank: str) -> None:
    rows = [{"text": "one", "label": "a"}, {"text": blank, "label": "b"}, {"text": "three", "label": blank}]
    path = write_rows(tmp_path / "a.csv", rows)
    with pytest.raises(InputError, match=r"2 blank in .*line 3 \(text\), line 4 \(label\)"):
        read_task_table(path)
    table = read_task_table(path, TableConfig(blank_rows="skip"))
    assert [row.text for row in table.rows] == ["one"]
    assert table.skipped == ("line 3 (text)", "line 4 (label)")


def test_a_null_and_a_missing_key_count_as_blank(tmp_path: Path) -> None:
    lines = [{"text": "one", "label": 1}, {"text": None, "label": 1}, {"text": "three"}]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"2 blank in .*line 2 \(text\), line 3 \(label\)"):
        read_task_table(path)


def test_a_number_where_text_should_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one", "label": 1}\n{"text": 12, "label": 1}\n')
    with pytest.raises(InputError, match=r"must be text.*line 2: text=12"):
        read_task_table(path)


@pytest.mark.parametrize("row", [{"text": "x \ud83d", "label": "a"}, {"text": "x", "label": "\udc00"}])
def test_half_a_surrogate_pair_is_a_fault_of_its_row(tmp_path: Path, row: dict[str, str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"text": "one", "label": "a"}, row])))
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: half of a surrogate pair"):
        read_task_table(path)
    # Where nothing of it is used, it is no fault.
    path.write_text("\n".join(json.dumps({"other": "\ud83d", "text": "one", "label": "a"}) for _ in range(2)))
    assert [found.text for found in read_task_table(path).rows] == ["one", "one"]


def test_half_a_surrogate_pair_leaves_the_other_rows_to_be_predicted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ("one", "\ud83d", "three")))
    columns, rows = read_texts(path)
    first, bad, last = rows
    assert [task_row(path, row, columns).text for row in (first, last)] == ["one", "three"]
    with pytest.raises(InputError, match="line 2: half of a surrogate pair"):
        task_row(path, bad, columns)


def test_errors_name_the_options_of_the_command(tmp_path: Path) -> None:
    options = OptionNames(text="--words", pair="--second", encoding="--letters", skip_blank="--skip")
    path = write_rows(tmp_path / "a.csv", [{"words": "one", "phrases": "two", "label": "a"}])
    with pytest.raises(InputError, match="Name it with --words"):
        read_task_table(path, options=options)
    with pytest.raises(InputError, match="--second must be one of"):
        read_texts(path, TableConfig(text="words", pair="none"), options=options)
    path = write_rows(tmp_path / "blank.csv", [{"text": "", "label": "a"}])
    with pytest.raises(InputError, match="or leave them out with --skip"):
        read_task_table(path, options=options)
    with pytest.raises(InputError, match=r"remove the rows\.$"):
        read_task_table(path)
    path = tmp_path / "latin.csv"
    path.write_bytes("text,label\ncaf\xe9,a\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"line 2, with the byte 0xE9.*with --letters, for example latin-1"):
        read_task_table(path, options=options)
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": 4}\n')
    columns, rows = read_texts(path, options=options)
    with pytest.raises(InputError, match="another column with --words"):
        task_row(path, next(rows), columns, options=options)


def test_numeric_text_of_a_separated_file_is_text(tmp_path: Path) -> None:
    table = read_task_table(write_rows(tmp_path / "a.csv", [{"text": "12", "label": "a"}]))
    assert table.rows[0].text == "12"


def test_a_ragged_row_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\none,a\ntwo, with a comma,b\n")
    with pytest.raises(InputError, match=r"line 3: 3 fields where the header has 2"):
        read_task_table(path)


@pytest.mark.parametrize("content", ["", "text,label\n"])
def test_a_table_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="must hold rows"):
        read_task_table(path)
    with pytest.raises(InputError, match="must hold some"):
        read_texts(path)


def test_texts_to_predict_need_no_label_and_may_have_one(tmp_path: Path) -> None:
    for rows in ([{"text": "one"}], [{"words": "one", "label": "many words"}], [{"text": "one", "label": "a"}]):
        columns, found = read_texts(write_rows(tmp_path / "a.csv", rows))
        assert columns.label is None
        assert [row.values[columns.text] for row in found] == ["one"]


@pytest.mark.parametrize(
    ("name", "task"), [("squad.json", "answer"), ("words.conll", "tag"), ("words.conllu.gz", "tag")]
)
def test_files_of_other_tasks_are_not_taken_for_lines_of_text(tmp_path: Path, name: str, task: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"Rain\tO\n")
    with pytest.raises(InputError, match=rf"must be one of: \.txt.*\.csv.*a file for the task {task}"):
        read_texts(path)
    with pytest.raises(InputError, match=rf"a file for the task {task}"):
        read_task_table(path)


def test_utf_16_is_told_with_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text;label\none;a\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"in UTF-16\. Read it with --encoding utf-16\."):
        read_task_table(path)
    with pytest.raises(InputError, match=r"Read it with --set table\.encoding=utf-16\."):
        read_task_table(path, options=OptionNames(encoding="--set table.encoding=NAME"))
    assert read_task_table(path, TableConfig(encoding="utf-16")).columns == Columns("text", None, "label")


def test_nul_bytes_are_told_with_their_line_and_what_mends_the_only_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\none,a\ntw\0o,b\n")
    with pytest.raises(InputError, match=r"a\.csv, line 3, .*NUL byte.*Remove such bytes.*--encoding") as told:
        read_task_table(path)
    assert "Leave the file out" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.dat", r"must be one of: \.txt.*\.csv.*a\.dat, whose ending \.dat tells no layout"),
        ("a.xlsx", r"a\.xlsx, a spreadsheet\. Save its sheet as CSV"),
        ("a.ODS", "a spreadsheet"),
        ("a.parquet.gz", r"ending \.parquet"),
    ],
)
def test_a_file_whose_ending_tells_no_table_is_not_taken_for_lines_of_text(
    tmp_path: Path, name: str, told: str
) -> None:
    path = tmp_path / name
    path.write_text("text,label\none,a\n")
    for read in (read_texts, read_task_table):
        with pytest.raises(InputError, match=told):
            read(path)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "plain", "a.txt.gz"])
def test_plain_text_gives_texts_and_is_told_to_have_no_labels(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"one\n") if name.endswith(".gz") else b"one\n")
    _, rows = read_texts(path)
    assert [row.values for row in rows] == [{"text": "one"}]
    for config in (TableConfig(), TableConfig(label="kind")):
        with pytest.raises(InputError, match=r"a column, which \.jsonl, \.csv.*each line is a text") as told:
            read_task_table(path, config)
        assert "--label" not in str(told.value)
    assert ("give it the ending" in str(told.value)) == (name == "plain")


def test_rows_that_are_all_blank_are_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\none,\n,b\n")
    with pytest.raises(InputError, match=r"without any but blank ones: line 2 \(label\), line 3 \(text\)"):
        read_task_table(path, TableConfig(blank_rows="skip"))


def test_named_columns_do_not_hide_that_a_table_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n")
    with pytest.raises(InputError, match=r"^A table must hold rows"):
        read_task_table(path, TableConfig(text="text", label="label"))


@pytest.mark.parametrize("names", [("text", "label"), ("text", "pair"), ("pair", "negative")])
def test_no_column_holds_two_things(names: tuple[str, str]) -> None:
    with pytest.raises(InputError, match=f"“review” for {names[0]} and for {names[1]}"):
        TableConfig.parse(dict.fromkeys(names, "review"), where="a test")
