"""Text that is hard on tokenizers: marks that join on to what stands before, invisible characters, control tokens."""

from hypothesis import strategies as st

FRAGMENTS = [
    *(
        "a",
        "S",
        "é",
        "e\u0301",
        "İ",
        "ß",
        "Σ",
        "ς",
        "ǰ",
        "й",
        "и\u0306",
        "≠",
        "=\u0338",
        "don't",
        "##a",
        "...",
        "``",
        "''",
    ),
    *("\u0301", "\u0338", "\u064e", "\u3099", "\uff9e", "\u0e33", "\u0903", "\u0600", "\u06dd", "\u200d", "\u200c"),
    *("\n", "\t", "\x0b", "\x85", "\xa0", "\u2000", "\u2028", "\u3000", "\x1c", "\x00", "\u200b", "\ufeff", "\xad"),
    *(
        "´",
        "¨",
        "\u037a",
        "\u0384",
        "\u2017",
        "ﷺ",
        "ﬁ",
        "①",
        "Ｆ",
        "㍿",
        "▁",
        "Ġ",
        "\u2063",
        "_",
        "\U000f0000",
        "\ud800",
    ),
    *("كِتَابـ", "آ", "ا\u0653", "ـ", "می\u200cخواهم", "مدرسة", "الكتاب،", "שָׁלוֹם", "क़", "हिन्दी", "नमस्ते"),
    *("한국", "한국어", "\u1112\u1161\u11ab", "ㅎㅏ", "東京", "東", "か\u3099", "ｶﾞ", "Москва", "ещё", "café", "naïve"),
    *("😊", "👨\u200d👩\u200d👧", "👍🏽", "🏽", "❤\ufe0f", "🇩🇪", "🇩", "1\ufe0f\u20e3"),
    *("[SEP]", "[MASK]", "[UNK]", "<s>", "</s>", "<mask>", "<pad>", "zzword", "<e1>"),
    *("the", "quick", "walking", "Walked", "played,", "(reading)", "fox.", "1,000.5", "x-y", "«", "—", "can't", "'s"),
    *("overwrite", "Overwrite", "overwrites", "مكتبتنا", "부산에서"),
]
# Mostly single spaces, as in running text.
_BETWEEN = st.sampled_from([" "] * 6 + ["", "", "  ", " \t", "\n"])
_WORD = st.one_of(
    st.sampled_from(FRAGMENTS),
    st.sampled_from(FRAGMENTS),
    st.text(alphabet="abcdefgh ABC.,", max_size=8),
    st.characters(),
)
HARD_TEXT = st.lists(st.tuples(_WORD, _BETWEEN), max_size=14).map(lambda parts: "".join(a + b for a, b in parts))
HARD_TEXTS = st.lists(HARD_TEXT, max_size=5)
