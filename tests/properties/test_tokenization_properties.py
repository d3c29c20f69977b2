"""Over random text of many scripts: the same ids as `AutoTokenizer`, and offsets that give back the words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers
from transformers import AutoTokenizer

from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer
from bertsmith.tokenization.pipeline import build_normalizer, build_pre_tokenizer

_STEMS = ("walk", "talk", "play", "stay", "look", "read", "lead", "sing", "كتب", "درس", "한국", "사람", "дом", "Café")
_ENDINGS = ("", "ing", "ed", "er", "s", "ات", "ов", "이")
_TEXTS = [
    *(" ".join(f"{stem}{ending}" for stem in _STEMS) for ending in _ENDINGS),
    "كِتَابـ שָׁלוֹם हिन्दी 東京 😊 ❤️ ok 👨‍👩‍👧 🇩🇪 não ß İ ﬁ ABCDEFGH abcdefgh 0123 .,#[]<>/'",
] * 3
_FRAGMENTS = [
    *("a", "S", "é", "e\u0301", "İ", "ß", "Σ", "ǰ", "й", "и\u0306", "≠", "=\u0338", "\u0301", "don't", "##a", "..."),
    *(" ", "\n", "\t", "\u3000", "\x1c", "\x00", "\u200b", "\u200c", "\u200d", "\ufeff", "\xad", " x "),
    *("كِتَابـ", "آ", "ا\u0653", "ـ", "می\u200cخواهم", "ﷺ", "שָׁלוֹם", "क़", "हिन्दी"),
    *("한국", "\u1112\u1161\u11ab", "ㅎㅏ", "東京", "か\u3099", "ｶﾞ", "Ｆ", "ﬁ", "①", "▁", "Ġ"),
    *("😊", "👨\u200d👩\u200d👧", "👍🏽", "❤\ufe0f", "🇩🇪", "1\ufe0f\u20e3"),
    *("[SEP]", "[MASK]", "<s>", "</s>", "<mask>", "<pad>"),
]
TEXT = st.lists(
    st.one_of(
        st.sampled_from(_FRAGMENTS),
        st.characters(exclude_categories=["Cs"]),
        st.text(alphabet="abcdefgh ABC.,", max_size=8),
    ),
    max_size=12,
).map("".join)
_SWITCHES: list[dict[str, bool]] = [
    {},
    {"lowercase": True},
    {"strip_accents": True},
    {"strip_vowel_marks": True, "strip_tatweel": True},
    {"compatibility": True},
    {"lowercase": True, "strip_accents": True, "strip_vowel_marks": True, "strip_tatweel": True, "compatibility": True},
]
_EXAMPLES = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Both:
    """One tokenizer as we load it and as `transformers` does."""

    ours: Tokenizer
    theirs: Any
    config: TokenizerConfig


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "unigram"])
def algorithm(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=range(len(_SWITCHES)), ids=lambda number: "+".join(_SWITCHES[number]) or "plain")
def both(algorithm: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    size = {"wordpiece": 230, "bpe": 330, "unigram": 105}[algorithm]
    config = TokenizerConfig.model_validate({"algorithm": algorithm, "vocab_size": size, **_SWITCHES[request.param]})
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(lambda: _TEXTS, config).seeing(64).save(folder)
    theirs = AutoTokenizer.from_pretrained(folder, split_special_tokens=True)
    return Both(Tokenizer.from_folder(folder), theirs, config)


def _assert_equal(both: Both, texts: Sequence[str], max_length: int | None) -> None:
    # In lists: of a lone pair, `transformers` drops an empty second text.
    theirs = both.theirs(
        *([text] for text in texts),
        truncation=max_length is not None,
        max_length=max_length,
        return_token_type_ids=True,
        return_special_tokens_mask=True,
    )
    ours = both.ours.encode(*texts, max_length=max_length)
    assert ours.token_ids.tolist() == theirs["input_ids"][0]
    assert ours.segment_ids.tolist() == theirs["token_type_ids"][0]
    assert ours.special_tokens_mask.tolist() == theirs["special_tokens_mask"][0]
    assert theirs["attention_mask"][0] == [1] * len(ours)
    assert ours.sequence_ids.tolist() == [-1 if number is None else number for number in theirs.sequence_ids(0)]


@_EXAMPLES
@given(text=TEXT, pair=TEXT, max_length=st.integers(4, 20))
def test_ids_segments_and_masks_equal_those_of_auto_tokenizer(
    both: Both, text: str, pair: str, max_length: int
) -> None:
    for texts in ((text,), (text, pair)):
        for length in (None, max_length):
            _assert_equal(both, texts, length)


@_EXAMPLES
@given(text=TEXT)
def test_offsets_are_monotone_within_the_text_and_free_of_outer_whitespace(both: Both, text: str) -> None:
    offsets = both.ours.encode(text).offsets[1:-1]
    assert ((offsets >= 0) & (offsets <= len(text))).all()
    assert (offsets[:, 0] <= offsets[:, 1]).all()
    assert (offsets[1:] >= offsets[:-1]).all()
    for start, end in offsets.tolist():
        assert text[start:end] == text[start:end].strip()


@_EXAMPLES
@given(text=TEXT)
def test_slices_by_offsets_give_the_words_and_nothing_visible_is_left_over(both: Both, text: str) -> None:
    if both.config.compatibility:  # One character may hold several words there.
        text = "".join(character for character in text if character not in "ﷺ")
    text = text.replace("▁", "_")  # The mark by which the words are told apart below.
    normalize = build_normalizer(both.config).normalize_str
    cut = build_pre_tokenizer("wordpiece" if both.config.algorithm == "wordpiece" else "unigram").pre_tokenize_str
    expected = [word.removeprefix("▁") for word, _ in cut(normalize(text))]
    encoding = both.ours.encode(text)
    words = encoding.word_ids.tolist()
    spans: list[list[int]] = []
    for (start, end), word in zip(encoding.offsets.tolist(), words, strict=True):
        if word >= len(spans):
            spans.append([start, end])
        elif word >= 0:
            spans[word][1] = end
    assert len(spans) == len(expected)
    if not both.config.compatibility:
        # Out of its place, a joiner at the edge of a word joins nothing.
        joiners = "\u200c\u200d"
        sliced = [normalize(text[start:end]).strip().strip(joiners) for start, end in spans]
        assert sliced == [word.strip(joiners) for word in expected]
    ends = [0, *(end for _, end in spans)]
    for end, start in zip(ends, [*(start for start, _ in spans), len(text)], strict=True):
        assert normalize(text[end:start]).strip() == ""


@_EXAMPLES
@given(parts=st.lists(TEXT, min_size=2, max_size=3))
def test_every_opted_in_mask_is_one_id_and_all_other_text_stays_text(both: Both, parts: list[str]) -> None:
    mask = both.ours.mask_token
    assert mask is not None
    parts = [part.replace(mask, "") for part in parts]
    text = f" {mask} ".join(parts)
    encoding = both.ours.encode(text, mask_is_special=True)
    inner = encoding.token_ids[1:-1].tolist()
    assert inner.count(both.ours.mask_id) == text.count(mask)
    assert not set(inner) & (both.ours.special_ids - {both.ours.mask_id, both.ours.unk_id})
    assert [text[a:b] for a, b in encoding.offsets[encoding.token_ids == both.ours.mask_id]] == [mask] * text.count(
        mask
    )
    if text.count(mask) == len(parts) - 1:
        pieces = both.ours.piece_ids(parts)
        joined = [*pieces[0], *(number for ids in pieces[1:] for number in (both.ours.mask_id, *ids))]
        assert inner == joined


_ADDED = ["rw", "overwrite", "مكتبتنا", "부산에서", "café2"]
# What holds together with letters, as the library that finds added words has it.
_RUN = Regex(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}]+")
_KNOWN = st.lists(
    st.one_of(
        st.sampled_from(["😊", "❤️", "👨‍👩‍👧", " 🇩🇪 ", "שָׁלוֹם", "हिन्दी", "東京", "كِتَابـ", "não", "[", ".,", "'", " "]),
        st.sampled_from([f"{stem}{ending}" for stem in _STEMS for ending in _ENDINGS]),
        st.text(alphabet="abcdefgh ABC.,0123", max_size=6),
    ),
    max_size=10,
).map("".join)
_WORDLIKE = st.lists(
    st.one_of(st.sampled_from([*_ADDED, " ", " ", "-", "x", "\u064b", "é", "_", "\u200c", "2", "، "]), TEXT), max_size=8
).map("".join)


@pytest.fixture(scope="module")
def extended(both: Both, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("extended")
    both.ours.with_words(_ADDED).seeing(64).save(folder)
    theirs = AutoTokenizer.from_pretrained(folder, split_special_tokens=True)
    return Both(Tokenizer.from_folder(folder), theirs, both.config)


@_EXAMPLES
@given(text=_WORDLIKE)
def test_added_words_are_found_whole_alike_here_and_there_and_change_nothing_else(
    both: Both, extended: Both, text: str
) -> None:
    _assert_equal(extended, (text,), None)
    encoding = extended.ours.encode(text)
    inner = encoding.token_ids[1:-1]
    assert inner.tolist() == extended.ours.piece_ids([text])[0]
    new = inner >= both.ours.vocab_size
    normalize = build_normalizer(both.config).normalize_str
    runs = [run for run, _ in pre_tokenizers.Split(_RUN, "removed", invert=True).pre_tokenize_str(normalize(text))]
    entries = {normalize(word) for word in _ADDED}
    assert [extended.ours.token(int(number)) for number in inner[new]] == [run for run in runs if run in entries]
    for start, end in encoding.offsets[1:-1][new].tolist():
        assert normalize(text[start:end]).strip("\u200c\u200d") in entries
    if not new.any():
        assert extended.ours.piece_ids([text]) == both.ours.piece_ids([text])


@_EXAMPLES
@given(text=_KNOWN)
def test_words_begin_by_the_ids_alone_where_they_begin_by_the_text(both: Both, text: str) -> None:
    encoding = both.ours.encode(text)
    # An unknown word is one piece in WordPiece; in Unigram an unknown letter parts a word.
    assert both.config.algorithm == "wordpiece" or both.ours.unk_id not in encoding.token_ids
    words = encoding.word_ids[1:-1]
    told = [*([True] if len(words) else []), *(words[1:] != words[:-1])]
    assert both.ours.word_starts(encoding.token_ids[1:-1]).tolist() == told
