"""Tokens as a person reads them."""

import numpy as np
import pytest
from small_tokenizers import trained

from bertsmith.tokenization import Tokenizer
from bertsmith.tokenization.readable import readable_tokens


def _shown(tokenizer: Tokenizer, text: str, pair: str | None = None, *, mask: bool = False) -> list[str]:
    return readable_tokens(tokenizer, tokenizer.encode(text, pair, mask_is_special=mask), text, pair)


def test_pieces_of_wordpiece_are_as_the_vocabulary_writes_them(wordpiece: Tokenizer) -> None:
    text = "walking, كتابات [MASK]"
    encoding = wordpiece.encode(text, mask_is_special=True)
    shown = _shown(wordpiece, text, mask=True)
    assert shown == wordpiece.tokens(encoding.token_ids)
    assert shown[0] == "[CLS]"
    assert "##ing" in shown
    assert shown[-2:] == ["[MASK]", "[SEP]"]


def test_an_unknown_token_shows_what_it_stands_for(wordpiece: Tokenizer) -> None:
    assert _shown(wordpiece, "walk 猫 walk", "猫") == [
        "[CLS]",
        "walk",
        "[UNK] 猫",
        "walk",
        "[SEP]",
        "[UNK] 猫",
        "[SEP]",
    ]


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_a_space_before_a_word_is_one_mark_in_every_algorithm(algorithm: str) -> None:
    tokenizer = trained(algorithm)
    shown = _shown(tokenizer, "walking كتب ok.", "reading")
    texts = [token for token in shown if token not in ("<s>", "</s>", "[CLS]", "[SEP]")]
    assert "".join(texts) == "▁walking▁كتب▁ok.▁reading"
    assert all("Ġ" not in token for token in shown)


def test_bytes_of_one_character_show_the_character_and_their_number() -> None:
    tokenizer = trained("bpe")
    shown = _shown(tokenizer, "to 猫 ø")
    assert [token.lstrip("▁") for token in shown if "猫" in token] == ["猫 1/3", "猫 2/3", "猫 3/3"]
    assert [token.lstrip("▁") for token in shown if "ø" in token] == ["ø 1/2", "ø 2/2"]
    assert all(character.isprintable() for token in shown for character in token)


def test_bytes_in_the_second_text_show_its_characters() -> None:
    shown = _shown(trained("bpe"), "x", "猫")
    assert sum("猫" in token for token in shown) == 3
    assert shown.index("</s>") < next(number for number, token in enumerate(shown) if "猫" in token)


@pytest.mark.parametrize("text", ["glad 😊 to see São 東京", "مدرسة الكتاب كِتَابٌ", "한국어 👨‍👩‍👧 नमस्ते"])
def test_whole_pieces_join_to_the_text(text: str) -> None:
    tokenizer = trained("bpe")
    encoding = tokenizer.encode(text)
    shown = readable_tokens(tokenizer, encoding, text)
    assert len(shown) == len(encoding)
    whole = [
        (token, text[start:end])
        for token, (start, end), special in zip(shown, encoding.offsets, encoding.special_tokens_mask, strict=True)
        if not special and "/" not in token and token != "▁"
    ]
    assert whole
    assert all(token.removeprefix("▁") == part for token, part in whole)


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_an_added_word_is_a_word_of_its_own(algorithm: str) -> None:
    tokenizer = trained(algorithm).with_words(["كتابنا", "café2"])
    mark = "" if algorithm == "wordpiece" else "▁"
    shown = _shown(tokenizer, "walk كتابنا café2")
    assert shown[-3:-1] == [f"{mark}كتابنا", f"{mark}café2"]


def test_there_is_one_for_every_token_also_of_an_encoding_that_was_cut() -> None:
    tokenizer = trained("bpe")
    text = "to 東京"
    whole = tokenizer.encode(text)
    for length in range(3, len(whole) + 1):
        cut = tokenizer.encode(text, max_length=length)
        shown = readable_tokens(tokenizer, cut, text)
        assert len(shown) == length
        assert all(shown)
        assert np.array_equal(cut.token_ids[: length - 1], whole.token_ids[: length - 1])
