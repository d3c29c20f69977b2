"""The report counts words, pieces and losses, by script."""

import dataclasses
import json

import pytest
from small_tokenizers import SENTENCES, trained

from bertsmith.tokenization import Tokenizer, report
from bertsmith.tokenization.scripts import script_of


def test_the_parts_by_script_add_up_to_the_whole(tokenizer: Tokenizer) -> None:
    result = report(tokenizer, iter(SENTENCES))
    assert result.num_texts == len(SENTENCES)
    assert result.overall.num_unknown_pieces == 0
    assert {"Latin", "Arabic", "Han", "Hangul", "Cyrillic", "Devanagari", "Hebrew", "Other"} <= set(result.by_script)
    for name in ("num_words", "num_pieces", "num_unknown_pieces", "num_unknown_words"):
        assert sum(getattr(counts, name) for counts in result.by_script.values()) == getattr(result.overall, name)
    assert result.overall.pieces_per_word == result.overall.num_pieces / result.overall.num_words
    assert json.loads(json.dumps(dataclasses.asdict(result)))["overall"]["num_words"] == result.overall.num_words


def test_unknown_words_and_words_over_the_limit_are_counted() -> None:
    tokenizer = trained("wordpiece", max_word_characters=20)
    long = "a" * 21
    result = report(tokenizer, [f"fox ภาษา {long} fox", "fox"])
    assert result.overall.num_words == 5
    assert result.overall.num_unknown_words == 2
    assert result.num_words_too_long == 1
    assert result.by_script["Thai"].num_unknown_words == 1
    assert result.by_script["Thai"].unknown_share == 1.0
    assert result.longest_words == (long, "ภาษา", "fox")


def test_no_text_gives_zeros(tokenizer: Tokenizer) -> None:
    result = report(tokenizer, [])
    assert (result.num_texts, result.overall.num_words, result.overall.pieces_per_word) == (0, 0, 0.0)
    assert result.by_script == {}
    assert result.longest_words == ()


@pytest.mark.parametrize(
    ("word", "script"),
    [
        ("fox", "Latin"),
        ("1st", "Latin"),
        ("كتاب", "Arabic"),
        ("東", "Han"),
        ("ＡＢ", "Latin"),
        ("42", "Other"),
        ("😊", "Other"),
    ],
)
def test_the_script_is_that_of_the_first_letter(word: str, script: str) -> None:
    assert script_of(word) == script
