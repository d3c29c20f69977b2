"""Words that came before are looked up: once encoded, never lost, and never more of them than there is room for."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small_tokenizers import SENTENCES, trained

from bertsmith.tokenization import Tokenizer, known_words
from bertsmith.tokenization.known_words import KnownWords


class _Counting:
    """Encodes, and counts the characters that it was given."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.characters = 0

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        self.characters += sum(map(len, texts))
        return self._tokenizer.piece_ids(list(texts))


def _known(tokenizer: Tokenizer, encode: _Counting, *marks: str) -> KnownWords:
    rule = tokenizer._text_view.lone_words
    assert rule is not None
    return KnownWords(encode, rule, iter([(mark, tokenizer.piece_ids([mark])[0][0]) for mark in marks]))


def _split(found: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    piece_ids, lengths = found
    return [part.tolist() for part in np.split(piece_ids, np.cumsum(lengths))[:-1]]


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return trained(request.param)


def test_texts_that_came_before_are_not_encoded_again(tokenizer: Tokenizer) -> None:
    encode = _Counting(tokenizer)
    known = _known(tokenizer, encode, "z")
    first = _split(known.piece_ids(SENTENCES))
    spent = encode.characters
    assert spent < 3 * sum(map(len, SENTENCES))
    assert _split(known.piece_ids(SENTENCES[::-1])) == first[::-1] == tokenizer.piece_ids(SENTENCES[::-1])
    assert encode.characters == spent


def test_what_is_kept_has_a_bound(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_words, "_MAX_WORDS", 40)
    known = _known(tokenizer, _Counting(tokenizer), "z")
    for number in range(0, 900, 9):
        texts = [f"word{at} walk{at}" for at in range(number, number + 9)]
        assert _split(known.piece_ids(texts)) == tokenizer.piece_ids(texts)
        assert len(known._numbers) <= 40 + 18


def test_long_words_are_kept_by_their_characters(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_words, "_MAX_CHARACTERS", 1000)
    known = _known(tokenizer, _Counting(tokenizer), "z")
    for number in range(20):
        texts = [f"{'abc' * 100}{number}"]
        assert _split(known.piece_ids(texts)) == tokenizer.piece_ids(texts)
        assert known._num_characters <= 1000 + 302


def test_words_that_come_again_outlive_those_that_came_once(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_words, "_MAX_WORDS", 40)
    encode = _Counting(tokenizer)
    known = _known(tokenizer, encode, "z")
    often = "walking talking read play"
    for number in range(60):
        texts = [f"{often} once{number} seldom{number}"]
        assert _split(known.piece_ids(texts)) == tokenizer.piece_ids(texts)
    spent = encode.characters
    known.piece_ids([often])
    assert encode.characters == spent


@pytest.mark.parametrize("marks", [(), ("a",), ("walking", "a")], ids=["none", "in the words", "of several pieces"])
def test_words_are_parted_whatever_the_mark(tokenizer: Tokenizer, marks: tuple[str, ...]) -> None:
    texts = ["a a1 1a a a-a (a) b a", "walking a walking-a", "a"]
    known = _known(tokenizer, _Counting(tokenizer), *marks)
    assert _split(known.piece_ids(texts)) == tokenizer.piece_ids(texts)


def test_a_tokenizer_finds_a_mark_among_its_pieces(tokenizer: Tokenizer) -> None:
    assert tokenizer._known_words is not None
    assert tokenizer._known_words._mark is not None


def test_no_text_and_empty_texts_have_no_pieces(tokenizer: Tokenizer) -> None:
    assert _split(tokenizer.flat_piece_ids([])) == []
    assert _split(tokenizer.flat_piece_ids(["", " ", "\n", ""])) == [[], [], [], []]


def test_an_interrupted_call_leaves_nothing_half_known(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    known = _known(tokenizer, _Counting(tokenizer), "z")
    known.piece_ids(["walk"])

    def interrupted(texts: Sequence[str]) -> list[list[int]]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(known, "_encode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            known.piece_ids(["talk play walk"])
    texts = ["read talk walk", "play"]
    assert _split(known.piece_ids(texts)) == tokenizer.piece_ids(texts)


def test_threads_may_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    known = _known(tokenizer, _Counting(tokenizer), "z")
    texts = [[f"walk{number} talk{number % 7}" for number in range(start, start + 40)] for start in range(0, 800, 20)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda some: _split(known.piece_ids(some)), texts))
    assert found == [tokenizer.piece_ids(some) for some in texts]
