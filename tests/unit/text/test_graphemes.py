"""What people see as one character is not parted."""

import pytest

from bertsmith.text.graphemes import parts_character, whole_characters


@pytest.mark.parametrize(
    "one",
    [
        "e\u0301",
        "عُ",
        "لّٰ",
        "👍🏽",
        "👨\u200d👩\u200d👧",
        "❤\ufe0f",
        "\u1112\u1161\u11ab",
        "한\u11ab",
        "🇩🇪",
        "कि",
        "\r\n",
        "🏴\U000e0067\U000e0062\U000e007f",
    ],
)
def test_one_character_is_not_parted_and_its_neighbours_are(one: str) -> None:
    text = f"a{one}b"
    inside = range(2, 1 + len(one))
    assert [place for place in range(len(text) + 1) if parts_character(text, place)] == list(inside)
    for start in range(1, 1 + len(one)):
        for end in range(start + 1, 2 + len(one)):
            assert whole_characters(text, start, end) == (1, 1 + len(one))


@pytest.mark.parametrize("text", ["ab", "سلام", "한국", "東京", "no spaces", "كـتاب", "می"])
def test_letters_stand_apart(text: str) -> None:
    assert not any(parts_character(text, place) for place in range(len(text) + 1))


def test_flags_go_in_pairs_and_a_joiner_holds_what_follows() -> None:
    flags = "🇩🇪🇫🇷"
    assert [parts_character(flags, place) for place in range(5)] == [False, True, False, True, False]
    assert parts_character("می\u200cخ", 2)
    assert not parts_character("می\u200cخ", 3)
    assert not parts_character("a \u0301b", 2)
