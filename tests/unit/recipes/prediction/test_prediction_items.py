"""Which column holds what a predictor takes."""

from pathlib import Path
from typing import Any

import datasets
import pytest

from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.prediction.items import Given, file_input, num_characters
from made_tasks import write_rows


def _items(task: str, path: Path, config: TableConfig = TableConfig()) -> list[Any]:
    return [row.item for part in file_input(task, path, config).parts for row in part]


def test_errors_name_the_options_of_the_commands(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"one": "red", "two": "blue"}])
    with pytest.raises(InputError, match="Name it with --text-column"):
        file_input("classify", path)
    with pytest.raises(InputError, match="--pair-column must be one of"):
        file_input("classify", path, TableConfig(text="one", pair="three"))
    with pytest.raises(InputError, match="--question-column"):
        file_input("answer", path)
    with pytest.raises(InputError, match="--context-column must be one of"):
        file_input("answer", path, TableConfig(text="one", pair="three"))
    with pytest.raises(InputError, match="--start-column must be one of"):
        file_input("choose", path, TableConfig(pair="three"))
    with pytest.raises(InputError, match="--input must name a file"):
        file_input("classify", tmp_path / "none.csv")


def test_pairs_are_read_from_their_columns_where_a_task_takes_them(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"sentence1": "red", "sentence2": "blue"}])
    assert _items("classify", path) == [("red", "blue")]
    assert _items("regress", path, TableConfig(text="sentence2")) == ["blue"]
    with pytest.raises(InputError, match=r"embed reads one column.*--text-column"):
        file_input("embed", path)
    assert _items("embed", path, TableConfig(text="sentence2")) == ["blue"]


@pytest.mark.parametrize("expected", [True, False])
def test_a_file_that_is_unlike_what_a_model_was_trained_on_is_refused(tmp_path: Path, expected: bool) -> None:
    path = write_rows(tmp_path / "a.csv", [{"sentence1": "red", "sentence2": "blue"}])
    both, alone = file_input("classify", path), file_input("classify", path, TableConfig(text="sentence1"))
    fits, other = (both, alone) if expected else (alone, both)
    for found in (fits, file_input("tag", path, TableConfig(text="sentence1"))):
        found.refuse_unless_pairs_are(expected)
    other.refuse_unless_pairs_are(None)
    told = "both columns with --text-column and --pair-column" if expected else "with --text-column alone"
    with pytest.raises(InputError, match=told):
        other.refuse_unless_pairs_are(expected)


def test_words_are_read_from_lists_from_columns_and_out_of_texts(tmp_path: Path) -> None:
    lists = write_rows(tmp_path / "a.jsonl", [{"tokens": ["the", "boat"], "ner_tags": ["O", "O"]}])
    assert _items("tag", lists) == [["the", "boat"]]
    columns = tmp_path / "a.conll"
    columns.write_text("the O\nboat O\n\nrain B-ACT\n")
    assert _items("tag", columns) == [["the", "boat"], ["rain"]]
    texts = write_rows(tmp_path / "b.csv", [{"id": "1", "text": "the boat"}])
    assert _items("tag", texts) == ["the boat"]
    plain = tmp_path / "a.txt"
    plain.write_text("the boat\nrain\n")
    assert _items("tag", plain) == ["the boat", "rain"]


def test_line_ends_of_texts_in_which_places_are_told_are_left_as_they_are(tmp_path: Path) -> None:
    row = {"question": "who?", "context": "one\r\ntwo", "text": "one\r\ntwo"}
    path = write_rows(tmp_path / "a.jsonl", [row])
    assert _items("answer", path) == [("who?", "one\r\ntwo")]
    assert _items("tag", path, TableConfig(text="text")) == ["one\r\ntwo"]
    assert _items("classify", path, TableConfig(text="text")) == ["one\ntwo"]


def test_about_how_many_rows_there_are_is_known_where_a_line_is_a_row(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.csv", [{"text": "one"}, {"text": "two"}])
    for task in ("classify", "tag"):
        assert file_input(task, path).about_rows == 2
    words = tmp_path / "a.conll"
    words.write_text("the O\nboat O\n")
    assert file_input("tag", words).about_rows is None


def test_questions_come_out_of_squad(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"data": [{"paragraphs": [{"context": "a text", "qas": [{"id": "1", "question": "who?"}]}]}]}')
    assert _items("answer", path) == [("who?", "a text")]


def test_a_saved_data_set_is_an_input(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"text": ["one", "two"]}).save_to_disk(str(tmp_path / "rows"))
    found = file_input("classify", tmp_path / "rows")
    assert found.columns == "text “text”"
    assert [row.place for part in found.parts for row in part] == ["row 1", "row 2"]


def test_the_size_of_an_item_counts_all_of_its_texts() -> None:
    assert num_characters("four") == 4
    assert num_characters(("four", "five5")) == 9
    assert num_characters(["a", "bc"]) == 3
    assert num_characters(None) == 0


def test_a_table_that_is_not_separated_by_commas_is_read_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sep=;\nText;Label\nred;a\nblue;b\n")
    found = file_input("classify", path)
    assert found.columns == "text “Text”, separated by “;”"
    assert found.about_rows == 2
    assert _items("classify", path) == ["red", "blue"]


@pytest.mark.parametrize("task", ["classify", "regress", "multilabel", "choose", "answer", "embed"])
def test_a_file_whose_ending_tells_nothing_is_no_input(tmp_path: Path, task: str) -> None:
    path = tmp_path / "a.dat"
    path.write_text("text,label\nred,a\n")
    with pytest.raises(InputError, match=r"must be one of: \.txt.*ending \.dat"):
        file_input(task, path)


def test_a_question_beside_a_file_that_has_its_own_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(InputError, match=r"questions of its own.*Leave --question out"):
        file_input("answer", path, given=Given("What?"))
