"""Where words begin, told from ids alone, for every algorithm; and tokenizers whose pieces do not tell it."""

from pathlib import Path

import numpy as np
import pytest
from small_tokenizers import SENTENCES, trained
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.tokenization import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def opened(folder: Path, library: LibraryTokenizer) -> Tokenizer:
    library.save(str(folder / "tokenizer.json"))
    return Tokenizer.from_folder(folder)


def byte_level(folder: Path, *, add_prefix_space: bool, merged: tuple[tuple[str, str], ...] = ()) -> Tokenizer:
    pieces = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *(left + right for left, right in merged)]
    library = LibraryTokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, list(merged)))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    library.add_special_tokens(["<s>", "</s>"])
    return opened(folder, library)


def words_by_ids(tokenizer: Tokenizer, text: str) -> list[str]:
    """The slices of the text between the starts that the ids alone tell."""
    encoding = tokenizer.encode(text)
    inner = encoding.sequence_ids == 0
    starts = tokenizer.word_starts(encoding.token_ids[inner])
    words: list[list[int]] = []
    for (start, end), begins in zip(encoding.offsets[inner].tolist(), starts, strict=True):
        if begins:
            words.append([start, end])
        else:
            words[-1] = [min(start, words[-1][0]), max(end, words[-1][1])]
    return [text[start:end] for start, end in words]


def test_ids_alone_tell_the_words_that_the_text_tells(tokenizer: Tokenizer) -> None:
    assert tokenizer.has_word_bounds
    for text in [*SENTENCES, "(quick) [fox]. the 東京 x", "don't\nstop"]:
        encoding = tokenizer.encode(text)
        words = encoding.word_ids
        told = np.array([True, *(words[1:] != words[:-1])]) | (words < 0)
        assert tokenizer.word_starts(encoding.token_ids).tolist() == told.tolist(), text


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_byte_level_words_begin_at_spaces_punctuation_and_the_text_and_not_within_letters(
    tmp_path: Path, add_prefix_space: bool
) -> None:
    tokenizer = byte_level(tmp_path, add_prefix_space=add_prefix_space, merged=(("Ġ", "a"), ("a", "b")))
    assert tokenizer.has_word_bounds
    assert words_by_ids(tokenizer, "ab (ab) كِتَابٌ東，ab 1ab Москва") == [
        *("ab", "(", "ab", ")", "كِتَابٌ東", "，", "ab", "1ab", "Москва"),
    ]
    assert words_by_ids(tokenizer, "glad😊 ok…no") == ["glad", "😊", "ok", "…", "no"]
    assert words_by_ids(tokenizer, "a\nb") == ["a", "", "b"]


def test_a_piece_of_half_a_letter_goes_on_with_a_word(tmp_path: Path) -> None:
    tokenizer = byte_level(tmp_path, add_prefix_space=False)
    continues = {piece: tokenizer.continues_word[tokenizer.token_id(piece)] for piece in ("Ð", "Ù", "ĺ", "a", "(", "Ċ")}
    assert continues == {"Ð": True, "Ù": True, "ĺ": True, "a": True, "(": False, "Ċ": False}
    cut_short = np.array([tokenizer.token_id(piece) for piece in ("ĺ", "Ð", "a")])
    assert tokenizer.word_starts(cut_short).tolist() == [True, True, False]


def test_control_tokens_part_words(tokenizer: Tokenizer) -> None:
    ids = tokenizer.word_pieces(["walking"])[0]
    assert tokenizer.sep_id is not None
    between = np.array([*ids, tokenizer.sep_id, *ids])
    whole = tokenizer.word_starts(np.array(ids)).tolist()
    assert whole[0]
    assert tokenizer.word_starts(between).tolist() == [*whole, True, *whole]
    assert tokenizer.word_starts(np.array([], dtype=np.int64)).tolist() == []


def unigram(pieces: list[str]) -> LibraryTokenizer:
    return LibraryTokenizer(models.Unigram([("<unk>", 0.0), *((piece, -2.0) for piece in pieces)], unk_id=0))


def test_unigram_with_the_space_mark_tells_words_even_letter_by_letter(tmp_path: Path) -> None:
    library = unigram(["▁", *LETTERS])
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer = opened(tmp_path, library)
    assert tokenizer.has_word_bounds
    assert tokenizer.word_starts(tokenizer.encode("ab c").token_ids).tolist() == [True, False, False, True, False]


def without_marks() -> LibraryTokenizer:
    library = unigram(list(LETTERS))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    return library


def without_any_words() -> LibraryTokenizer:
    return unigram([*LETTERS, " "])


def across_words() -> LibraryTokenizer:
    library = unigram(["▁", *LETTERS, "in▁the"])
    library.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return library


def character_by_character() -> LibraryTokenizer:
    vocabulary = {"[UNK]": 0, **{letter: number for number, letter in enumerate(LETTERS + " ", 1)}}
    library = LibraryTokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return library


def marked_at_the_end() -> LibraryTokenizer:
    model = models.BPE({"a</w>": 0, "a": 1}, [], end_of_word_suffix="</w>")
    library = LibraryTokenizer(model)
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    return library


def wordpiece_over_whole_lines() -> LibraryTokenizer:
    return LibraryTokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##a": 2}, unk_token="[UNK]"))


def wordpiece_without_a_prefix() -> LibraryTokenizer:
    model = models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]", continuing_subword_prefix="")
    library = LibraryTokenizer(model)
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    return library


@pytest.mark.parametrize(
    "build",
    [
        without_marks,
        without_any_words,
        across_words,
        character_by_character,
        marked_at_the_end,
        wordpiece_over_whole_lines,
        wordpiece_without_a_prefix,
    ],
)
def test_a_tokenizer_whose_pieces_do_not_tell_words_is_told_apart(tmp_path: Path, build: type) -> None:
    tokenizer = opened(tmp_path, build())
    assert not tokenizer.has_word_bounds
    assert not tokenizer.continues_word.any()


def test_whole_words_have_bounds_though_none_goes_on(tmp_path: Path) -> None:
    library = LibraryTokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = opened(tmp_path, library)
    assert tokenizer.has_word_bounds
    assert not tokenizer.continues_word.any()


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_korean_seen_composed_has_pieces_in_every_form_and_case_setting(algorithm: str) -> None:
    for switches in ({}, {"lowercase": True}, {"lowercase": True, "strip_accents": True, "compatibility": True}):
        tokenizer = trained(algorithm, **switches)
        composed, decomposed = tokenizer.piece_ids(["한국어 문장", "\u1112\u1161\u11ab국어 문장"])
        assert composed == decomposed
        assert tokenizer.unk_id not in composed
        assert tokenizer.decode(composed) == "한국어 문장"
