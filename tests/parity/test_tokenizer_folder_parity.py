"""Folders of other families give the ids, segments and offsets that `transformers` gives, opened and saved again."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_tokenizer_folders import FOLDERS
from transformers import AutoTokenizer

from bertsmith.tokenization import Tokenizer

WHOLE = [  # Here the normalisers keep every character in its place.
    "The quick brown fox, walking (reading) - don't stop!",
    "한국어 문장 하나",
    "東京 x",
    "كتاب جميل، الكتاب. وكتاب",
    "1,000,000 x-y [here] <there> _ 'q'",
    "Москва раз",
    "",
    "-",
    "((",
]
CHANGED = [
    "naïve café, São — cafe\u0301",
    "كِتَابٌ جميل كـتـاب",
    "\u1112\u1161\u11ab국 ｶﾞ ﬁ İ ß ＡＢ",
    "glad😊 👨‍👩‍👧 ❤️ 🇩🇪 ok",
    "a\u00a0b\u3000c\u200bd\te\nf  g \u2028h\x00i\ufeffj",
    "  two   spaces  ",
    "``quoted'' नमस्ते שָׁלוֹם zzword",
    "▁x Ġy ##z",
]
LITERAL = ["a [MASK] b", "[CLS][SEP]", "<s> x </s>", "x<mask>", "<pad> <unk> [UNK] <MASK>"]


@pytest.fixture(scope="module", params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FOLDERS[request.param](tmp_path_factory.mktemp("tokenizer") / request.param)


@pytest.fixture(scope="module")
def ours(folder: Path) -> Tokenizer:
    return Tokenizer.from_folder(folder)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def saved(ours: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    ours.save(folder)
    return folder


def assert_same(ours: Tokenizer, theirs: Any, *texts: str, max_length: int | None = None) -> None:
    expected = theirs(
        *([text] for text in texts),
        return_token_type_ids=True,
        return_special_tokens_mask=True,
        truncation=max_length is not None,
        max_length=max_length,
    )
    received = ours.encode(*texts, max_length=max_length)
    assert received.token_ids.tolist() == expected["input_ids"][0], texts
    assert received.segment_ids.tolist() == expected["token_type_ids"][0]
    assert received.special_tokens_mask.tolist() == expected["special_tokens_mask"][0]


def test_ids_and_segments_equal_those_of_transformers(ours: Tokenizer, theirs: Any) -> None:
    for text in (*WHOLE, *CHANGED):
        for texts in ((text,), (text, "a second text"), ("first", text)):
            for max_length in (None, 9):
                assert_same(ours, theirs, *texts, max_length=max_length)
        assert ours.piece_ids([text])[0] == theirs([text], add_special_tokens=False)["input_ids"][0]


def test_offsets_equal_those_of_transformers_or_reach_over_what_was_joined(ours: Tokenizer, theirs: Any) -> None:
    for text in (*WHOLE, *CHANGED):
        expected = theirs([text], return_offsets_mapping=True)["offset_mapping"][0]
        for (start, end), (their_start, their_end) in zip(ours.encode(text).offsets.tolist(), expected, strict=True):
            if text in WHOLE:
                assert (start, end) == (their_start, their_end)
            elif text[their_start:their_end].strip(" \u200b\u2028\x00\u00a0\u3000\n\t"):
                assert start <= their_start
                assert end >= their_end or not text[end:their_end].strip()


def test_what_is_saved_says_the_class_that_keeps_it_and_gives_the_same_there(ours: Tokenizer, saved: Path) -> None:
    assert json.loads((saved / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    again = AutoTokenizer.from_pretrained(saved)
    for text in (*WHOLE, *CHANGED):
        assert_same(ours, again, text)
        assert_same(ours, again, text, "a second text")
    assert Tokenizer.from_folder(saved).fingerprint == ours.fingerprint
    for role in ("mask", "pad", "cls", "sep", "unk"):
        assert getattr(again, f"{role}_token_id") == getattr(ours, f"{role}_id")
        assert getattr(again, f"{role}_token_id") is not None


def test_names_of_special_tokens_in_text_stay_text(ours: Tokenizer) -> None:
    for text in LITERAL:
        encoding = ours.encode(text)
        inner = set(encoding.token_ids[1:-1].tolist())
        assert not inner & (ours.special_ids - {ours.unk_id}), text
        assert encoding.special_tokens_mask.tolist() == [1, *[0] * (len(encoding) - 2), 1]


def test_the_mask_is_one_id_in_every_place_and_takes_the_space_before_it(ours: Tokenizer, saved: Path) -> None:
    again = AutoTokenizer.from_pretrained(saved)
    mask = ours.mask_token
    for text in ("{m}", "{m} the", "the {m} the", "the {m}", "the{m}", "{m}{m}", "({m})", "the {m}, {m} the"):
        filled = text.format(m=mask)
        encoding = ours.encode(filled, mask_is_special=True)
        assert (encoding.token_ids == ours.mask_id).sum() == filled.count(str(mask))
        assert {filled[a:b] for a, b in encoding.offsets[encoding.token_ids == ours.mask_id]} == {mask}
        assert encoding.token_ids.tolist() == again([filled])["input_ids"][0]
        # A space alone belongs to a word whose first letter has no piece with a space, and is never left over.
        blank = (encoding.offsets[:, 0] == encoding.offsets[:, 1]) & (encoding.special_tokens_mask == 0)
        assert not (blank[:-1] & ours.word_starts(encoding.token_ids)[1:]).any(), text


def test_words_begin_where_the_text_says(ours: Tokenizer) -> None:
    assert ours.has_word_bounds
    for text in ("The quick brown fox, walking (reading) stop!", "كتاب جميل، الكتاب", "한국어 (문장) 하나", "x.y"):
        encoding = ours.encode(text)
        inner = encoding.sequence_ids == 0
        starts = encoding.offsets[inner][ours.word_starts(encoding.token_ids[inner])][:, 0].tolist()
        letters = "".join(character if character.isalnum() else " " for character in text)
        apart = [at for at, character in enumerate(text) if letters[at] == " " and not character.isspace()]
        begun = [at for at in range(len(text)) if letters[at] != " " and (at == 0 or letters[at - 1] == " ")]
        # A run of punctuation may be one word or several.
        assert set(begun) <= set(starts) <= {*begun, *apart}


def test_added_words_give_the_same_ids_in_transformers(ours: Tokenizer, tmp_path: Path) -> None:
    words = ["overwrite", "rw", "مكتبتنا", "부산에서"]
    extended = ours.with_words([word.upper() if ours.normalize("A") == "a" else word for word in words])
    extended.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    new = set(range(ours.vocab_size, extended.vocab_size))
    for text in (
        *("rw", "rw overwrite rw", "a (rw) overwrite, x", "x rw", "rw\nrw", "مكتبتنا، مكتبتنا", "부산에서 rw"),
        *WHOLE,
        *CHANGED,
    ):
        assert_same(extended, theirs, text)
        encoding = extended.encode(text)
        assert encoding.token_ids[1:-1].tolist() == extended.piece_ids([text])[0]
        found = [
            text[a:b] for (a, b), number in zip(encoding.offsets, encoding.token_ids, strict=True) if number in new
        ]
        assert sorted(found) == sorted(
            word for word in "".join(c if c.isalpha() else " " for c in text).split() if word in words
        )
    with_mark = "مكتبتناً"
    for text in (
        "overwritten rwx",
        "ومكتبتنا",
        "부산에서는",
        *([with_mark] if ours.normalize(with_mark) == with_mark else []),
    ):
        assert not new & set(extended.piece_ids([text])[0])
        assert extended.piece_ids([text]) == ours.piece_ids([text])
