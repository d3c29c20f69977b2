"""Predicting files: in order, bad rows reported, in bounded memory, the same however it is done."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from prediction_parts import close

from bertsmith.examples.table_config import TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.prediction import rows as rows_module
from bertsmith.recipes.prediction.items import Given, file_input
from bertsmith.recipes.prediction.rows import ItemRow, RowResult, held_together, predict_rows
from made_corpora import made_texts, made_tokenizer
from made_predictors import TASKS, as_rows, made_items, made_predictor
from made_tasks import write_rows


def _results(path: Path, task: str = "classify", config: TableConfig = TableConfig()) -> list[RowResult]:
    return list(predict_rows(made_predictor(task), file_input(task, path, config).parts))


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_rows_of_every_task_are_what_the_predictor_says_of_each(
    tmp_path: Path, task: str, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "_ROWS_AT_ONCE", 3)
    items = made_items(task, 11)
    path = write_rows(tmp_path / "a.jsonl", as_rows(task, items))
    found = list(predict_rows(made_predictor(task), file_input(task, path).parts, ahead=ahead))
    assert [result.number for result in found] == list(range(1, 12))
    for result, item in zip(found, items, strict=True):
        (expected,) = made_predictor(task)([item])
        assert close(result.values, expected.values), result.place


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl"])
def test_rows_of_every_layout_come_back_in_order(tmp_path: Path, name: str) -> None:
    texts = made_items("classify", 25)
    path = tmp_path / name
    if name == "a.txt":
        path.write_text("".join(f"{text}\n" for text in texts))
    else:
        write_rows(path, [{"text": text} for text in texts])
    assert [result.values["text"] for result in _results(path)] == texts


def test_a_bad_row_is_reported_by_its_number_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n{\n{"text": ""}\n{"text": 4}\n{"other": "x"}\n{"text": "six"}\n')
    found = _results(path)
    assert [result.fault is None for result in found] == [True, False, False, False, False, True]
    told = [str(result.fault) for result in found if result.fault is not None]
    assert "line 2: not JSON" in told[0]
    assert "must not be blank" in told[1]
    assert "line 4: text=4" in told[2]
    assert set(found[1].values) == {"row", "place", "error"}
    assert set(found[1].values["error"]) == {"rule", "received", "do"}
    assert found[1].values["row"] == 2


@pytest.mark.parametrize("ahead", [True, False])
def test_a_row_that_only_the_predictor_refuses_costs_itself_alone(ahead: bool) -> None:
    rows = [ItemRow(number, f"line {number}", item, 1) for number, item in enumerate(["one", " ", "three"], 1)]
    first, bad, last = predict_rows(made_predictor("classify"), [rows], ahead=ahead)
    assert "must not be blank. Received: text 2:" in str(bad.fault)
    assert (first.values["text"], last.values["text"]) == ("one", "three")


@pytest.mark.parametrize(
    ("task", "items", "told"),
    [
        ("answer", [("who?", " "), ("who?", "a boat")], "item 8,"),
        ("choose", [("a", ("b", "c")), ("a", ("b", "c"), "d")], "item 9:"),
        ("embed", ["a boat", ("a", "b")], "text 9, a pair"),
        ("tag", ["a boat", []], "text 9: none"),
        ("regress", ["a boat", ("a", "b", "c")], "text 9:"),
        ("multilabel", [("a", "\t"), "a boat"], "text 8:"),
    ],
)
def test_what_a_predictor_refuses_is_called_by_the_number_of_its_row(task: str, items: list[Any], told: str) -> None:
    rows = [ItemRow(number, f"line {2 * number}", item, 1) for number, item in enumerate(items, 8)]
    (fault,) = (one.fault for one in predict_rows(made_predictor(task), [rows]) if one.fault is not None)
    assert told in fault.received


def test_ragged_rows_and_half_characters_do_not_stop_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,id\none,1\ntwo,2,3\nthree,3\n")
    assert [result.fault is None for result in _results(path)] == [True, False, True]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in ("one", "two \ud83d", "three")))
    assert [result.fault is None for result in _results(path)] == [True, False, True]


@pytest.mark.parametrize(
    ("task", "row"),
    [
        ("answer", {"question": " ", "context": "a text"}),
        ("answer", {"question": "who?", "context": 4}),
        ("choose", {"text": "it rained", "choices": ["one"]}),
        ("choose", {"text": "it rained", "choices": "one"}),
    ],
)
def test_a_row_without_what_its_task_needs_is_reported(tmp_path: Path, task: str, row: dict[str, Any]) -> None:
    (good,) = as_rows(task, made_items(task, 1))
    path = write_rows(tmp_path / "a.jsonl", [good, row, good])
    assert [result.fault is None for result in _results(path, task)] == [True, False, True]


def test_one_question_is_asked_of_every_context_of_a_file(tmp_path: Path) -> None:
    texts = made_items("classify", 2)
    given = Given(question="who walked?")
    for rows in ([{"text": text} for text in texts], [{"question": "what?", "context": text} for text in texts]):
        path = write_rows(tmp_path / "a.jsonl", rows)
        results = predict_rows(made_predictor("answer"), file_input("answer", path, given=given).parts)
        assert [result.values["question"] for result in results] == ["who walked?"] * 2


def test_rows_are_held_by_their_number_and_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_ROWS_AT_ONCE", 4)
    monkeypatch.setattr(rows_module, "_CHARACTERS_AT_ONCE", 100)
    lengths = [1] * 9 + [500, 1, 60, 60, 60]
    rows = [ItemRow(number, "", "", length) for number, length in enumerate(lengths)]
    assert [[row.num_characters for row in part] for part in held_together(rows)] == [
        *([1] * 4, [1] * 4, [1, 500], [1, 60, 60], [60])
    ]


def test_few_parts_are_read_ahead_and_no_thread_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_ROWS_AT_ONCE", 2)
    before = threading.active_count()
    num_read = 0

    def endless() -> Any:
        nonlocal num_read
        while True:
            num_read += 1
            yield ItemRow(num_read, f"line {num_read}", "the old boat", 12)

    results = predict_rows(made_predictor("classify"), held_together(endless()))
    for _ in range(20):
        next(results)
    assert num_read <= 20 + 2 * 3
    results.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert threading.active_count() == before


def test_a_fault_in_a_thread_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = made_predictor("classify")

    def broken(windows: Sequence[Any]) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(predictor, "run", broken)
    before = threading.active_count()
    with pytest.raises(MemoryError, match="no room"):
        list(predict_rows(predictor, [[ItemRow(1, "line 1", "the old boat", 12)]]))
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("task", "num_words"),
    [
        ("classify", 100_000),
        ("answer", 100_000),
        ("tag", 10_000),
        pytest.param("tag", 100_000, marks=pytest.mark.soak),
        pytest.param("embed", 100_000, marks=pytest.mark.soak),
    ],
)
def test_a_very_long_text_is_read(tmp_path: Path, task: str, num_words: int) -> None:
    words = " ".join(made_texts(40, sentences=(10, 14))).split()
    text = " ".join((words * (1 + num_words // len(words)))[:num_words])
    row = {"question": "who walked?", "context": text} if task == "answer" else {"text": text}
    (found,) = _results(write_rows(tmp_path / "a.jsonl", [row]), task)
    values = found.values
    if task == "tag":
        # All of it is seen, a label for each word.
        assert " ".join(word["word"] for word in values["words"]).replace(" .", ".") == text
        assert not values["cut"]
    elif task == "answer":
        assert not values["cut"]
        assert text[values["start"] : values["end"]] == values["answer"] != ""
    else:
        assert values["cut"]


@pytest.mark.parametrize("task", TASKS)
def test_no_items_give_no_predictions(task: str) -> None:
    assert made_predictor(task)([]) == []


@pytest.mark.parametrize("task", TASKS)
def test_a_single_item_counts_as_a_list_of_one(task: str) -> None:
    item, other = made_items(task, 2)
    predictor = made_predictor(task)
    (expected,) = predictor([item])
    for given in (item, iter([item])):
        (found,) = predictor(given)
        assert close(found.values, expected.values)
    assert len(predictor([item, other])) == 2


@pytest.mark.parametrize("task", ["classify", "regress", "multilabel"])
def test_a_single_pair_is_one_item_and_a_list_of_two_is_two_texts(task: str) -> None:
    predictor = made_predictor(task)
    (found,) = predictor(("a boat", "the rain"))
    assert (found.values["text"], found.values["pair"]) == ("a boat", "the rain")
    assert [one.values["text"] for one in predictor(["a boat", "the rain"])] == ["a boat", "the rain"]
    with pytest.raises(InputError, match=r"a pair of two texts\. Received: text 1: \('a', 'b', 'c'\)"):
        predictor(("a", "b", "c"))


@pytest.mark.parametrize("task", ["classify", "answer"])
def test_control_tokens_in_a_text_are_its_letters(task: str) -> None:
    sep = made_tokenizer().encode("[SEP]")
    assert len(sep) > 3
    text = "the old boat [SEP] a [MASK] river"
    item = ("what is [SEP]?", text) if task == "answer" else text
    plain = ("what is it?", "the old boat") if task == "answer" else "the old boat"
    special = set(sep.token_ids[sep.sequence_ids < 0].tolist())
    for one, other in zip(*(made_predictor(task).prepare([each]) for each in (item, plain)), strict=True):
        (expected,), counts = (
            [sum(token_id in special for token_id in window.token_ids.tolist()) for window in request.windows]
            for request in (other, one)
        )
        assert counts == [expected] * len(one.windows)


@pytest.mark.parametrize("task", TASKS)
def test_words_that_became_unknown_for_their_length_are_counted(tmp_path: Path, task: str) -> None:
    long = "a" * (1 + (made_tokenizer().max_word_characters or 0))
    plain, other = made_items(task, 2)
    rows = as_rows(task, [plain, other])
    name = next(name for name in ("text", "context", "sent1", "words", "tokens") if name in rows[0])
    value = rows[1][name]
    rows[1] = rows[1] | {name: [*value, long] if isinstance(value, list) else f"{value} {long}"}
    found = _results(write_rows(tmp_path / "a.jsonl", rows), task)
    assert [result.num_long_words for result in found] == [0, 1]


def test_rows_of_which_none_can_be_used_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n \n")
    with pytest.raises(InputError, match="2 rows, and none can"):
        _results(path)
