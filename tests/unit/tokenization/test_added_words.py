"""Words added to a tokenizer: found whole, in their place, and nowhere else."""

import json
import pickle
from pathlib import Path

import pytest
from small_tokenizers import trained

from bertsmith.foundation import errors
from bertsmith.tokenization import Tokenizer

WORDS = ["rw", "overwrite", "كتابنا", "café2", "می\u200cخواهم"]


@pytest.fixture(scope="module")
def extended(tokenizer: Tokenizer) -> Tokenizer:
    return tokenizer.with_words(WORDS)


def added_in(extended: Tokenizer, old: Tokenizer, text: str) -> list[str]:
    return [extended.token(number) for number in extended.piece_ids([text])[0] if number >= old.vocab_size]


def test_new_ids_follow_in_the_order_given_and_the_old_stay(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    assert extended.vocab_size == tokenizer.vocab_size + len(WORDS)
    assert [extended.token(tokenizer.vocab_size + number) for number in range(len(WORDS))] == WORDS
    assert extended.added_words == tuple(WORDS)
    assert tokenizer.added_words == ()
    assert all(extended.token(number) == tokenizer.token(number) for number in range(tokenizer.vocab_size))
    assert extended.special_ids == tokenizer.special_ids
    assert extended.config == tokenizer.config
    assert extended.fingerprint != tokenizer.fingerprint
    assert extended.word_pieces(WORDS) == [[tokenizer.vocab_size + number] for number in range(len(WORDS))]


def test_a_word_is_found_in_every_place_where_it_stands_whole(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    for text in (
        "rw",
        "rw x",
        "x rw",
        "x rw y",
        "(rw)",
        "rw,",
        '"rw"',
        "x\nrw",
        "rw\u3000x",
        "rw-x",
        "x's rw's",
        "rw😊",
    ):
        assert added_in(extended, tokenizer, text) == ["rw"], text
    assert added_in(extended, tokenizer, "rw rw rw") == ["rw"] * 3
    assert added_in(extended, tokenizer, "cafe\u03012 كتابنا") == ["café2", "كتابنا"]


def test_a_word_within_another_is_left_alone(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    for text in (
        *("overwrites rwx xrw rw2 2rw rw_x x_rw", "rẃ rw\u0301", "Rw RW", "overwritten"),
        *("وكتابنا كتابناه", "كتابناً", "كتابنا\u064b", "كتابناـ", "ـكتابنا", "نمی\u200cخواهم", "می\u200cخواهم\u200cها"),
        *("rw\u200dx", "東rw", "한rw국"),
    ):
        assert added_in(extended, tokenizer, text) == [], text
        assert extended.piece_ids([text]) == tokenizer.piece_ids([text])


def test_all_around_a_word_is_cut_as_before(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    parts = ["The quick fox", "jumps. (over)", "São 東京"]
    expected = list(tokenizer.piece_ids(parts[:1])[0])
    for part in parts[1:]:
        expected += [tokenizer.vocab_size + 1, *tokenizer.piece_ids([part])[0]]
    assert extended.piece_ids([" overwrite ".join(parts)])[0] == expected


def test_offsets_word_numbers_and_bounds_are_those_of_the_word(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    text = "Séance walking (overwrite) cafe\u03012 rw كتابنا. rw"
    encoding = extended.encode(text)
    new = encoding.token_ids >= tokenizer.vocab_size
    assert [text[start:end] for start, end in encoding.offsets[new]] == [
        *("overwrite", "cafe\u03012", "rw", "كتابنا", "rw"),
    ]
    assert len(set(encoding.word_ids[new].tolist())) == 5
    for word in encoding.word_ids[new]:
        assert (encoding.word_ids == word).sum() == 1
    assert not extended.continues_word[tokenizer.vocab_size :].any()
    starts = extended.word_starts(encoding.token_ids)
    after = [at + 1 for at in range(len(new) - 1) if new[at]]
    assert starts[new].all()
    assert starts[after].all()
    assert encoding.token_ids[1:-1].tolist() == extended.piece_ids([text])[0]
    assert not encoding.special_tokens_mask[new].any()


def test_decoding_gives_the_spaces_back(extended: Tokenizer) -> None:
    for text in (
        "The fox rw walking overwrite the dog",
        "rw café2 rw",
        "كتابنا جميل كتابنا",
        "rw walking overwrite",
        "می\u200cخواهم rw",
    ):
        encoding = extended.encode(text)
        assert extended.decode(encoding.token_ids) == text
        kept = extended.decode(encoding.token_ids, keep_special=True)
        assert all(word in kept for word in text.split())
    assert extended.decode(extended.encode("rw, rw").token_ids).replace(" ,", ",") == "rw, rw"


def test_the_mask_beside_an_added_word_is_one_id(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    mask = extended.mask_token
    rw = tokenizer.vocab_size
    encoding = extended.encode(f"rw {mask} rw", mask_is_special=True)
    assert encoding.token_ids[1:-1].tolist() == [rw, extended.mask_id, rw]
    assert not set(extended.piece_ids([f"rw {mask} [SEP]</s>"])[0]) & extended.special_ids


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_case_and_marks_are_as_the_normaliser_has_them(algorithm: str) -> None:
    old = trained(algorithm, lowercase=True, strip_vowel_marks=True, strip_tatweel=True, strip_accents=True)
    new = old.with_words(["Zürich", "كِتابنا"])
    assert new.added_words == ("zurich", "كتابنا")
    for text in ("zürich", "ZÜRICH", "Zu\u0308rich", "zurich"):
        assert new.piece_ids([text]) == [[old.vocab_size]]
    for text in ("كتابنا", "كِتَابُنَا", "كـتابنا"):
        assert new.piece_ids([text]) == [[old.vocab_size + 1]]
    text = "in ZU\u0308RICH, كِتَابُنَا."
    encoding = new.encode(text)
    found = [text[start:end] for start, end in encoding.offsets[encoding.token_ids >= old.vocab_size]]
    assert found == ["ZU\u0308RICH", "كِتَابُنَا"]
    with pytest.raises(errors.InputError, match="must differ after normalisation"):
        old.with_words(["Zürich", "ZURICH"])


def test_words_can_be_added_in_turn(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    assert tokenizer.with_words(WORDS[:2]).with_words(WORDS[2:]).fingerprint == extended.fingerprint
    assert tokenizer.with_words([]).vocab_size == tokenizer.vocab_size


def test_no_words_change_nothing(tmp_path: Path) -> None:
    trained("bpe").save(tmp_path)
    path = tmp_path / "tokenizer.json"
    # As in RoBERTa's own file: a word's mark would have to be hidden by a normaliser that is not there yet.
    values = json.loads(path.read_text(encoding="utf-8")) | {"normalizer": None}
    path.write_text(json.dumps(values), encoding="utf-8")
    bare = Tokenizer.from_folder(tmp_path)
    assert bare.with_words(["overwrite"]).fingerprint != bare.fingerprint
    assert bare.with_words([]).fingerprint == bare.fingerprint


def test_an_extended_tokenizer_is_saved_loaded_and_sent_alike(extended: Tokenizer, tmp_path: Path) -> None:
    extended.save(tmp_path)
    text = "x rw (overwrite) كتابنا"
    for copy in (Tokenizer.from_folder(tmp_path), pickle.loads(pickle.dumps(extended))):
        assert copy.fingerprint == extended.fingerprint
        assert copy.added_words == extended.added_words
        assert copy.encode(text).token_ids.tolist() == extended.encode(text).token_ids.tolist()


@pytest.mark.parametrize(
    "word", ["", "two words", "rw-x", "[MASK]", "a_b", " rw", "rw\u200d", "\u0301a", "x²", "❤"], ids=ascii
)
def test_what_is_no_word_is_refused(tokenizer: Tokenizer, word: str) -> None:
    with pytest.raises(errors.InputError, match="must be letters and digits"):
        tokenizer.with_words(["overwrite", word])


def test_a_word_that_has_a_piece_or_comes_twice_is_refused(tokenizer: Tokenizer, extended: Tokenizer) -> None:
    for word in ("rw", "overwrite"):
        with pytest.raises(errors.InputError, match="must be more than one piece"):
            extended.with_words([word])
    with pytest.raises(errors.InputError, match="must differ"):
        tokenizer.with_words(["overwrite", "overwrite"])


def test_a_word_spelled_like_a_piece_within_words_gets_an_id_of_its_own() -> None:
    tokenizer = trained("bpe")
    piece = next(
        tokenizer.token(number)
        for number in np_flat(tokenizer)
        if len(tokenizer.token(number)) > 1
        and tokenizer.token(number).isascii()
        and tokenizer.token(number).isalpha()
        and len(tokenizer.word_pieces([tokenizer.token(number)])[0]) > 1
    )
    extended = tokenizer.with_words([piece])
    assert extended.word_pieces([piece]) == [[tokenizer.vocab_size]]
    assert extended.piece_ids([f"x{piece}"]) == tokenizer.piece_ids([f"x{piece}"])
    assert extended.decode(extended.piece_ids([f"a {piece} b{piece}"])[0]) == f"a {piece} b{piece}"


def np_flat(tokenizer: Tokenizer) -> list[int]:
    return [int(number) for number in tokenizer.continues_word.nonzero()[0]]


def test_the_old_pieces_of_a_word_are_those_of_running_text(tokenizer: Tokenizer) -> None:
    before, after = tokenizer.piece_ids(["x ."])[0], tokenizer.piece_ids(["x overwrite ."])[0]
    pieces = tokenizer.word_pieces(["overwrite"])[0]
    assert len(pieces) > 1
    first = next(at for at, number in enumerate(after) if after[at : at + len(pieces)] == pieces)
    assert after[:first] + after[first + len(pieces) :] == before
