"""What stands out in the data is said."""

from pathlib import Path

import numpy as np
import pytest

from bertsmith.examples.choice_tables import ChoiceItem, ChoiceRow
from bertsmith.examples.data_look import (
    counts_note,
    cut_note,
    label_notes,
    length_note,
    long_word_note,
    row_lengths,
    table_notes,
    validation_label_notes,
)
from bertsmith.examples.embedding_tables import EmbedRow
from bertsmith.examples.task_columns import Columns
from bertsmith.examples.task_tables import TaskRow, TaskTable
from bertsmith.text.tagged import TaggedSentence
from made_corpora import made_tokenizer


def _rows(*pairs: tuple[str, str]) -> tuple[TaskRow, ...]:
    return tuple(TaskRow(text, None, label, f"line {number}") for number, (text, label) in enumerate(pairs, 2))


def _table(*pairs: tuple[str, str], skipped: tuple[str, ...] = ()) -> TaskTable:
    return TaskTable(Path("a.csv"), Columns("text", None, "label"), _rows(*pairs), skipped)


def test_clean_rows_give_no_notes() -> None:
    assert table_notes(_table(("a", "x"), ("b", "y"))) == []
    assert label_notes({"x": 20, "y": 30}) == []
    assert validation_label_notes({"x": 2, "y": 3}) == []
    assert cut_note(0, 10, 64, "head") is None


def test_repeated_texts_are_counted() -> None:
    notes = table_notes(_table(("a", "x"), ("a", "x"), ("b", "x"), ("b", "y"), ("c", "y")))
    assert notes == ["2 of 5 rows repeat the text of another"]


def test_rows_left_out_are_listed() -> None:
    places = tuple(f"line {number} (text)" for number in range(2, 9))
    (note,) = table_notes(_table(("a", "x"), ("b", "y"), skipped=places))
    assert note == f"7 rows left out, blank: {', '.join(places[:5])} and 2 more"


def test_the_size_and_the_labels_of_a_part_are_told() -> None:
    assert counts_note("training", 1200, {}) == "training: 1,200 rows"
    assert counts_note("training", 10, {"x": 3, "y": 7}) == "training: 10 rows, of “y” 7, “x” 3"
    many = {f"label{number}": number for number in range(8)}
    assert counts_note("validation", 28, many).endswith("“label3” 3 and 3 more")


def test_small_and_uneven_labels_are_said() -> None:
    small, uneven = label_notes({"x": 95, "y": 5})
    assert "fewer than 10 training rows: y 5" in small
    assert "95 rows of the commonest and 5 of the rarest" in uneven
    assert "class_weights=balanced" in uneven


def test_labels_that_validation_lacks_are_said() -> None:
    assert validation_label_notes({"x": 4, "y": 0, "z": 1, "w": 0}) == ["labels without a validation row: y, w"]
    (note,) = validation_label_notes({"x": 4, "y": 0})
    assert note.startswith("all validation rows have the label x")


def test_cut_rows_are_said_with_what_is_kept() -> None:
    assert cut_note(1, 2, 16, "windows") == "1 of 2 rows is longer than 16 tokens; its shorter text is cut at its end"
    assert cut_note(3, 1200, 64, "tail") == "3 of 1,200 rows are longer than 64 tokens; their tail is used"


def test_lengths_count_the_tokens_of_a_rows_sequences() -> None:
    tokenizer = made_tokenizer()
    short, long = "the old boat", "the old boat and a small boat"
    of = {text: len(tokenizer.encode(text)) for text in (short, long)}
    rows = [TaskRow(short, None, "x", "line 2"), TaskRow(short, long, "x", "line 3")]
    assert row_lengths(rows, tokenizer).tolist() == [of[short], len(tokenizer.encode(short, long))]
    apart = row_lengths([EmbedRow((short, long, short), None, "line 1")], tokenizer, apart=True)
    assert apart.tolist() == [of[long]]
    choices = row_lengths([ChoiceRow(ChoiceItem(short, (long, short)), 0, "line 1")], tokenizer)
    assert choices.tolist() == [len(tokenizer.encode(short, long))]
    sentence = row_lengths([TaggedSentence(tuple(short.split()), ("O",) * 3, "line 1")], tokenizer)
    assert sentence.tolist() == [of[short]]


def test_of_very_many_rows_some_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertsmith.examples.data_look._MOST_MEASURED", 10)
    rows = _rows(*[("the " * (1 + number), "x") for number in range(25)])
    assert np.array_equal(row_lengths(rows, made_tokenizer()), np.arange(1, 26, 3) + 2)


def test_lengths_are_told_by_their_quantiles() -> None:
    lengths = np.arange(1, 101)
    assert length_note("training", lengths) == (
        "training: a row has 51 tokens in the middle, 96 at the 95th percentile, 100 at most"
    )


def test_labels_that_look_alike_are_named_with_what_they_differ_by() -> None:
    counts = dict.fromkeys(["Pos", "caf\u00e9", "cafe\u0301", "neg", "pos", "very  good", "very good", "POS"], 20)
    assert label_notes(counts) == [
        "labels that look alike and are learned as different ones: “caf\u00e9” and “cafe\u0301” (by Unicode "
        "normalisation), “Pos” and “pos” and “POS” (by case), “very  good” and “very good” (by spaces)"
    ]
    assert label_notes(dict.fromkeys(["cafe", "caf\u00e9", "1", "1.0"], 20)) == []


def test_words_that_are_unknown_for_their_length_are_counted() -> None:
    tokenizer = made_tokenizer()
    limit = tokenizer.max_word_characters
    assert limit is not None
    long, short = "boat" * limit, "the old boat"
    assert long_word_note(_rows((short, "x"), ("boat, " * limit, "x")), tokenizer) is None
    rows = _rows((short, "x"), (f"{long} and {long}", "x"), (f"the {long}", "x"))
    longer = f"a word of more than {limit:,} characters, which becomes unknown"
    assert long_word_note(rows, tokenizer) == (
        f"2 of 3 rows have {longer} (3 such words; the tokenizer's max_word_characters)"
    )
    choice = ChoiceRow(ChoiceItem(short, (long, short)), 0, "line 1")
    assert long_word_note([choice], tokenizer) == (
        f"1 of 1 row has {longer} (1 such word; the tokenizer's max_word_characters)"
    )
    assert long_word_note(rows, made_tokenizer("unigram")) is None
