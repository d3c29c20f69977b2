"""Rows for embeddings as groups of sequences."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from bertsmith.examples.embedding import embed_notes, embedding_examples, halves, refuse_unlearnable
from bertsmith.examples.embedding_tables import EmbedColumns, EmbedKind, EmbedRow, EmbedTable
from bertsmith.examples.task_examples import TaskExamples
from bertsmith.foundation.errors import InputError
from made_corpora import made_tokenizer

TOKENIZER = made_tokenizer()
LONG = " ".join(["The old river carried every small boat"] * 20)


def _rows(*texts: tuple[str, ...], scores: tuple[float, ...] = ()) -> list[EmbedRow]:
    return [EmbedRow(one, scores[at] if scores else None, f"line {at + 1}") for at, one in enumerate(texts)]


def _examples(rows: list[EmbedRow], kind: EmbedKind = "pairs", *, in_halves: bool = False) -> TaskExamples:
    return embedding_examples(rows, kind, TOKENIZER, max_length=32, in_halves=in_halves)


def _sequences(examples: TaskExamples) -> list[str]:
    bounds = examples.sequence_starts
    return [TOKENIZER.decode(examples.token_ids[start:end]) for start, end in itertools.pairwise(bounds)]


def test_each_row_is_a_group_of_its_texts_one_after_the_other() -> None:
    examples = _examples(_rows(("the boat", "a bridge", "rain"), ("snow", "wind")))
    assert _sequences(examples) == ["the boat", "a bridge", "rain", "snow", "wind"]
    assert examples.group_starts is not None
    assert examples.group_starts.tolist() == [0, 3, 5]
    assert examples.rows.tolist() == [0, 0, 0, 1, 1]
    assert examples.targets.tolist() == [0, 1, 2, 3, 4]
    assert (examples.targets_by, examples.num_cut) == ("sequence", 0)


def test_texts_that_show_the_same_tokens_have_the_same_number() -> None:
    examples = _examples(_rows(("the boat", "a bridge"), ("rain", "the  boat"), ("a bridge", "snow")))
    assert examples.targets.tolist() == [0, 1, 2, 0, 1, 3]


def test_graded_pairs_have_a_score_each() -> None:
    examples = _examples(_rows(("rain", "snow"), ("rain", "rain"), scores=(0.5, 4.0)), "scored")
    assert examples.targets.tolist() == [0.5, 4.0]
    assert examples.targets.dtype == np.float32
    assert examples.targets_by == "group"


def test_a_text_alone_stands_there_twice() -> None:
    examples = _examples(_rows(("the old boat",), ("rain",)), "texts")
    assert _sequences(examples) == ["the old boat", "the old boat", "rain", "rain"]
    assert examples.targets.tolist() == [0, 0, 1, 1]


def test_a_text_alone_is_judged_by_its_halves() -> None:
    examples = _examples(_rows(("the old boat waited",), ("rain",)), "texts", in_halves=True)
    assert _sequences(examples) == ["the old", "boat waited", "ra", "in"]
    # Nothing changes for pairs.
    assert _sequences(_examples(_rows(("rain", "snow")), in_halves=True)) == ["rain", "snow"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a b c", ("a", "b c")), ("  one   two ", ("one", "two")), ("東京都市", ("東京", "都市")), ("x", ("x", "x"))],
)
def test_halves_part_between_words_where_there_are_two(text: str, expected: tuple[str, str]) -> None:
    assert halves(text) == expected


def test_a_long_text_is_cut_at_either_end_and_its_row_counted_once() -> None:
    rows = _rows((LONG, LONG), ("rain", "snow"))
    for long_texts, expected in (("head", LONG.split()[:5]), ("tail", LONG.split()[-5:])):
        examples = embedding_examples(rows, "pairs", TOKENIZER, max_length=12, long_texts=long_texts)
        assert examples.lengths.tolist()[:2] == [12, 12]
        assert examples.num_cut == 1
        kept = _sequences(examples)[0].lower().split()
        assert [word.lower() for word in expected][0 if long_texts == "head" else -1] in kept


def test_windows_are_refused() -> None:
    with pytest.raises(InputError, match="head or tail"):
        embedding_examples(_rows(("a", "b")), "pairs", TOKENIZER, max_length=32, long_texts="windows")


@pytest.mark.parametrize(
    ("kind", "rows", "told"),
    [
        ("scored", _rows(("a", "b"), ("c", "d"), scores=(2.0, 2.0)), r"Scores must differ.*2 in all 2"),
        ("pairs", _rows(("a", "b"), ("c", "b")), r"two different texts.*“b” in all 2"),
        ("texts", _rows(("a",), ("a",)), r"two different texts.*“a” in all 2"),
    ],
)
def test_rows_that_teach_nothing_are_refused(kind: EmbedKind, rows: list[EmbedRow], told: str) -> None:
    with pytest.raises(InputError, match=told):
        refuse_unlearnable(rows, kind, Path("rows.csv"))
    refuse_unlearnable(_rows(("a", "b"), ("b", "c"), scores=(1.0, 2.0)), kind, Path("rows.csv"))


def test_what_stands_out_in_rows_is_noted() -> None:
    rows = _rows(("a", "b"), ("a", "b"), ("c", "c"))
    table = EmbedTable(Path("rows.csv"), EmbedColumns("x", "y"), tuple(rows), ("line 9 (x)",))
    assert embed_notes(table) == [
        "1 row left out, blank: line 9 (x)",
        "1 of 3 rows repeats the texts of another",
        "1 of 3 rows has the same text on both sides",
    ]
    assert embed_notes(EmbedTable(Path("rows.csv"), EmbedColumns("x", "y"), tuple(rows[:1]), ())) == []
