import time

import pytest

from bertsmith.text.sentences import MAX_SENTENCE_CHARACTERS, cut_place, sentence_spans, split_sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["He came.", "She went!", "Who stayed?", "Nobody…", "Then all was still."],
        ["Mr. Smith met Dr. A. B. Jones, e.g. in St. Louis, vs. nobody.", "They spoke."],
        ["She joined the U.S. Army in Jan. 2020.", "It rained."],
        ["He lives in the U.S.", "He likes it."],
        ["Pi is 3.14 in version 2.0.1 of notes.txt at www.x.org today.", "Yes."],
        ["See Fig. 3 and No. 5 on pp. 7.", "Next."],
        ["The case of Graham v. Connor was heard at 9 a.m. Monday.", "It ended."],
        ['"Stop!"', "He ran.", '"Why?" she asked.', "(It was late.)", "They left."],
        ["He was... tired.", "Well...", "So he slept . . . deeply."],
        ["He smiled (!) and left (really?).", "Done."],
        ["Yahoo! is a name.", "Good."],
        ["It is known.[12]", "It is old."],
        ["Fine!!\u2019", "Really?!", "Yes."],
    ],
)
def test_latin_sentences_end_where_a_reader_would_end_them(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["كيف حالك؟", "أنا بخير.", "الحمد لله!"],
        ["جاء؛ ثم ذهب، وعاد.", "نام."],
        ["قال د. محمد كلمة.", "وانصرف."],
        ["قُتِل سنة 1990 م.", "وقد دفن هناك."],
        ["قال: «من أنت؟»", "فلم يجب."],
        ["نقلت وكالة (تي.تي) الخبر.", "وانتهى."],
        ["بلغت النسبة 3.5 بالمائة.\u200f", "وارتفعت."],
        ["یہ ایک جملہ ہے۔", "وہ دوسرا ہے۔"],
        ["यह वाक्य है।", "वह भी॥", "ठीक"],
    ],
)
def test_arabic_urdu_and_hindi_sentences_end_at_their_own_marks(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["今日は晴れ。", "明日は？", "雨！"],
        ["「行くぞ！」と言った。", "それから帰った。"],
        ["「はい。」", "彼は笑った。"],
        ["كيف حالك؟", "أنا بخير"],
        ["في أحسن الظروف.", "وكانت كذلك"],
        ["ठीक है।", "हाँ"],
    ],
)
def test_marks_that_need_no_space_end_a_sentence_without_one(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == sentences


def test_a_line_break_ends_a_sentence() -> None:
    text = "= Title =\nFirst line\r\nand 2. Point two\r\rlast"
    assert split_sentences(text) == ["= Title =", "First line", "and 2.", "Point two", "last"]
    assert split_sentences("1. Point one\n2. Point two") == ["1. Point one", "2. Point two"]


def test_other_separators_are_white_space_and_end_nothing() -> None:
    assert split_sentences("one\u2028two\x0bthree\x0cfour\x85five") == ["one\u2028two\x0bthree\x0cfour\x85five"]


def test_text_without_capitals_is_split_all_the_same() -> None:
    assert split_sentences("hello there. it was late. why? no idea") == [
        "hello there.",
        "it was late.",
        "why?",
        "no idea",
    ]


def test_tokens_with_a_space_before_each_mark_are_split_before_lower_case() -> None:
    assert split_sentences("The film is good . it was Fun ! yes") == ["The film is good .", "it was Fun !", "yes"]


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\ufe0f", "\u200b\n\u200d\ufe0f \ufeff\n\u00ad", "\x00\x1f"])
def test_what_draws_nothing_gives_no_sentence(text: str) -> None:
    assert split_sentences(text) == []


def test_a_variation_selector_stays_with_its_mark() -> None:
    assert split_sentences("Wow!\ufe0f Good ❤\ufe0f.\nYes") == ["Wow!\ufe0f", "Good ❤\ufe0f.", "Yes"]


def test_spans_are_places_in_the_text_as_given() -> None:
    text = "  One. 😊 Two!\r\n ثلاثة؟ "
    assert [text[start:end] for start, end in sentence_spans(text)] == ["One.", "😊 Two!", "ثلاثة؟"]
    assert sentence_spans(text)[0] == (2, 6)


@pytest.mark.parametrize(("mark", "weak"), [("؛", "،"), (";", ","), ("；", "，")])
def test_a_long_sentence_is_cut_at_its_last_clause_mark(mark: str, weak: str) -> None:
    space = "" if mark == "；" else " "
    text = "كلمة " * 280 + f"كلمة{mark}{space}" + "كلمة " * 30 + f"كلمة{weak}{space}" + "كلمة " * 200
    first, second = split_sentences(text)
    assert first.endswith(f"كلمة{mark}")
    assert second.startswith("كلمة كلمة")


def test_a_long_sentence_without_clauses_is_cut_at_white_space_and_one_without_space_at_the_limit() -> None:
    assert [len(piece) for piece in split_sentences("word " * 500)] == [1_999, 499]
    assert [len(piece) for piece in split_sentences("x" * 4_500)] == [MAX_SENTENCE_CHARACTERS] * 2 + [500]


def test_a_hard_cut_parts_no_letter_from_its_accent_and_no_emoji_from_its_joiner() -> None:
    accented = "x" + "e\u0301" * 2_000
    assert all(not piece.startswith("\u0301") for piece in split_sentences(accented))
    joined = "x" * 1_998 + "👩\u200d👩\u200d👧" + "x" * 10
    assert split_sentences(joined)[1].startswith("👩\u200d👩\u200d👧")


def test_a_long_row_of_marks_takes_linear_time() -> None:
    started_at = time.perf_counter()
    for text in ("." * 100_000 + "x", ".)" * 50_000, ". " * 50_000, ". (" * 40_000, "a." * 50_000, "[1]" * 30_000):
        split_sentences(text)
    assert time.perf_counter() - started_at < 10


def test_half_a_megabyte_is_split_fast() -> None:
    text = "The quick brown fox, says Mr. Smith, jumps over 3.5 dogs. Does it? It does!\n" * 6_500
    started_at = time.perf_counter()
    assert len(split_sentences(text)) == 19_500
    assert time.perf_counter() - started_at < 5  # About 0.06 s where no annotation is checked.


def test_a_document_is_cut_before_its_last_sentence_else_at_space_else_at_the_limit() -> None:
    assert cut_place("One two. Three four five", 0, 20) == 9
    assert cut_place("One two three", 0, 9) == 8
    assert cut_place("x" * 30, 5, 20) == 20
    assert cut_place("xe\u0301" * 9, 0, 5) == 4
