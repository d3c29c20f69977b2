"""Words of a running text."""

import time

import pytest

from bertsmith.text.words import word_spans


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ann lives in Oslo.", ["Ann", "lives", "in", "Oslo", "."]),
        ("al-Qaida, O'Brien & AT&T", ["al-Qaida", ",", "O'Brien", "&", "AT&T"]),
        ("at 10:30 for $1,000.50 on 1/2/2020", ["at", "10:30", "for", "$", "1,000.50", "on", "1/2/2020"]),
        ("Ann's and Ann\u2019s, don't", ["Ann", "'s", "and", "Ann", "\u2019s", ",", "do", "n't"]),
        ("They'VE I'd N't", ["They", "'VE", "I", "'d", "N't"]),
        ("@user #tag_1 # x@ C#", ["@user", "#tag_1", "#", "x", "@", "C", "#"]),
        (
            "(https://t.co/a,b?c=1), www.x.org. www. x",
            [
                "(",
                "https://t.co/a,b?c=1",
                ")",
                ",",
                "www.x.org",
                ".",
                "www",
                ".",
                "x",
            ],
        ),
        ("The U.S. and the U.S.A. met J. Doe", ["The", "U.S.", "and", "the", "U.S.A.", "met", "J", ".", "Doe"]),
        ("wait... what?! --- no", ["wait", "...", "what", "?", "!", "---", "no"]),
        ("a@b.co x/y e-mail -x x-", ["a@b.co", "x", "/", "y", "e-mail", "-", "x", "x", "-"]),
        ("東京 is x語", ["東", "京", "is", "x", "語"]),
        ("ok👍🏽❤️ 👨‍👩‍👧🇩🇪", ["ok", "👍🏽", "❤️", "👨‍👩‍👧", "🇩🇪"]),
    ],
)
def test_words_by_the_stated_rule(text: str, words: list[str]) -> None:
    assert _words(text) == words


def test_marks_are_repeated_with_what_modifies_them_and_long_runs_are_read_at_once() -> None:
    assert _words("?\u0301?\u0301!! 哈哈") == ["?\u0301?\u0301", "!!", "哈哈"]
    started_at = time.perf_counter()
    assert _words("-" * 40_000) == ["-" * 40_000]
    assert time.perf_counter() - started_at < 5  # A minute where each mark is compared with all before it.


def test_arabic_words_keep_their_clitics_marks_and_tatweel() -> None:
    assert _words("وقال محمدٌ: للكتابِ وبالقلم، كـتـاب؟") == [
        "وقال",
        "محمدٌ",
        ":",
        "للكتابِ",
        "وبالقلم",
        "،",
        "كـتـاب",
        "؟",
    ]
    assert _words("١٢٫٥ ١٬٠٠٠") == ["١٢٫٥", "١٬٠٠٠"]


def test_invisible_characters_part_no_word_and_end_none() -> None:
    assert _words("می\u200cخواهم \u200fمحمد\u200f.") == ["می\u200cخواهم", "محمد", "."]
    assert _words("one\u200btwo") == ["one", "two"]
    assert _words(" \u200b\u200f \t\n") == []
