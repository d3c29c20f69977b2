"""What is drawn for tokens: joined letters, one line, bounded length."""

from itertools import pairwise

import pytest
from glyph_runs import glyphs

from bertsmith.pictures.token_labels import LONGEST, token_labels

ZWJ = "\u200d"
ARABIC_WORDS = ("المدرسات", "يكتبون", "مستشفى", "بيتنا", "قلعة", "پنجشنبه")


def test_tokens_of_other_scripts_are_drawn_as_they_are() -> None:
    tokens = ["[CLS]", "the", "walk", "##ing", "$x$", "▁cat", "猫 2/3", "é", "[UNK] 猫", "##京", "[SEP]"]
    assert token_labels(tokens) == tokens


def test_a_word_is_drawn_from_the_right_with_joined_letters() -> None:
    assert len(glyphs("كتاب")) == 4
    # Its last letter stands first, alone, since what is before it joins to nothing; its first letter, last, is joined.
    assert glyphs("كتاب")[0] == glyphs("ب")[0]
    assert glyphs("كتاب")[-1] == glyphs("كت")[-1] != glyphs("ك")[0]
    assert glyphs("كتاب") != [glyph for letter in "كتاب" for glyph in glyphs(letter)]


@pytest.mark.parametrize("word", ARABIC_WORDS)
@pytest.mark.parametrize("style", ["##", "▁"])
def test_pieces_of_an_arabic_word_have_the_letters_of_the_word(word: str, style: str) -> None:
    whole = glyphs(word)
    marks = {*glyphs("#"), *glyphs("▁")}
    for cut in range(1, len(word)):
        first, second = word[:cut], word[cut:]
        tokens = [first, f"##{second}"] if style == "##" else [f"▁{first}", second]
        labels = token_labels(tokens)
        # The second piece stands to the left of the first.
        drawn = [glyph for label in reversed(labels) for glyph in glyphs(label) if glyph not in marks]
        assert drawn == whole, (first, second)


def test_pieces_of_three_are_joined_on_both_sides() -> None:
    assert token_labels(["مس", "##تش", "##فى"]) == [f"مس{ZWJ}", f"##{ZWJ}تش{ZWJ}", f"##{ZWJ}فى"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("مدا", "##رس"),  # An alef is joined to nothing after it.
        ("كتاب", "مدرسة"),  # Words of their own.
        ("▁كتاب", "▁مدرسة"),
        ("abc", "##تاب"),
        ("كتاب", "##2"),
        ("[CLS]", "##تاب"),
    ],
)
def test_what_is_not_joined_in_the_word_is_not_joined_here(before: str, after: str) -> None:
    assert token_labels([before, after]) == [before, after]


def test_a_vowel_mark_does_not_part_letters() -> None:
    assert token_labels(["كِ", "##تاب"]) == [f"كِ{ZWJ}", f"##{ZWJ}تاب"]


def test_a_mark_alone_stands_on_something() -> None:
    assert token_labels(["ك", "##ِ"]) == ["ك", "##ـِ"]
    assert token_labels(["x", "##\u0301"]) == ["x", "##◌\u0301"]
    assert token_labels(["\u094d 1/2"]) == ["◌\u094d 1/2"]


def test_a_part_of_a_character_is_drawn_alone_and_its_neighbour_is_joined_to_it() -> None:
    assert token_labels(["▁درس", "ة 1/2", "ة 2/2"]) == [f"▁درس{ZWJ}", "ة 1/2", "ة 2/2"]


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("\n", "↵"),
        ("a\tb", "a⇥b"),
        ("\u2028", "↵"),
        ("\x07\x85", "U+0007↵"),
        ("\u200d 1/3", "U+200D 1/3"),
        ("\u200b\ufeff", "U+200BU+FEFF"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_a_label_is_one_visible_line(token: str, label: str) -> None:
    assert token_labels([token]) == [label]


@pytest.mark.parametrize("letter", ["x", "م"])
@pytest.mark.parametrize("mark", ["", "##"])
def test_long_tokens_are_shortened(letter: str, mark: str) -> None:
    fits, long = mark + letter * LONGEST, mark + letter * (LONGEST + 1)
    tokens = ["ab", fits, long]
    labels = token_labels(tokens)
    assert labels[1].strip(ZWJ) == fits
    assert labels[2].removeprefix(mark).strip(ZWJ) == letter * (LONGEST - 1) + "…"


def test_there_is_a_label_for_every_token() -> None:
    assert token_labels([]) == []
    for number in range(1, 4):
        assert len(token_labels(["##ا"] * number)) == number
    assert all(a != b for a, b in pairwise(token_labels(["a", "b", "c"])))
