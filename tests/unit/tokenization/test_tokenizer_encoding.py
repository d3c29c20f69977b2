"""Encoding: words, offsets, masks and layouts, each for all three algorithms."""

import pickle

import numpy as np
import pytest
from small_tokenizers import trained

from bertsmith.foundation import errors
from bertsmith.tokenization import Encoding, Tokenizer
from bertsmith.tokenization.views import View


def words_of(text: str, encoding: Encoding) -> list[str]:
    """The slice of the text that each word's offsets give."""
    slices: list[str] = []
    for word in sorted(set(encoding.word_ids.tolist()) - {-1}):
        places = encoding.offsets[encoding.word_ids == word]
        slices.append(text[places[:, 0].min() : places[:, 1].max()])
    return slices


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("São 東 x", ["São", "東", "x"]),
        ("glad😊", ["glad", "😊"]),
        ("ok👨‍👩‍👧no", ["ok", "👨‍👩‍👧", "no"]),
        ("🇩🇪👍🏽", ["🇩🇪", "👍🏽"]),
        ("❤️ ok", ["❤️", "ok"]),
        ("a\u200b", ["a"]),
        ("\u200b", []),
        ("\ufeffa", ["a"]),
        ("note\nbook\tx\u3000y", ["note", "book", "x", "y"]),
        ("  two   words ", ["two", "words"]),
        ("don't (stop)", ["don", "'", "t", "(", "stop", ")"]),
        ("\u1112\u1161\u11ab국 cafe\u0301 x", ["\u1112\u1161\u11ab국", "cafe\u0301", "x"]),
        ("كِتَابٌ جميل", ["كِتَابٌ", "جميل"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("a \u200d b", ["a", "b"]),
        ("▁x Ġy", ["▁", "x", "Ġy"]),
    ],
)
def test_words_are_the_same_for_every_algorithm_and_slices_give_them(
    tokenizer: Tokenizer, text: str, words: list[str]
) -> None:
    assert words_of(text, tokenizer.encode(text)) == words


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_offsets_survive_every_switch_at_once(algorithm: str) -> None:
    tokenizer = trained(
        algorithm, lowercase=True, strip_accents=True, strip_vowel_marks=True, strip_tatweel=True, compatibility=True
    )
    text = "CAFE\u0301 كِتَـابـ \u1112\u1161\u11ab ﬁne ＡＢ ｶﾞ\u00a0İx"
    assert words_of(text, tokenizer.encode(text)) == text.replace("\u00a0", " ").split(" ")


def test_ideographs_stand_alone_in_wordpiece(wordpiece: Tokenizer) -> None:
    assert words_of("東京x", wordpiece.encode("東京x")) == ["東", "京", "x"]


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_each_switch_does_its_own_part_and_no_other(algorithm: str) -> None:
    def same(tokenizer: Tokenizer, left: str, right: str) -> bool:
        return tokenizer.piece_ids([left]) == tokenizer.piece_ids([right])

    plain, lower, accents, marks, tatweel = (
        trained(algorithm, **switch)
        for switch in (
            {},
            {"lowercase": True},
            {"strip_accents": True},
            {"strip_vowel_marks": True},
            {"strip_tatweel": True},
        )
    )
    for pair, switched in {
        ("hacía", "hacia"): accents,
        ("Йошкар", "Иошкар"): accents,
        ("Abc", "abc"): lower,
        ("كِتَابٌ", "كتاب"): marks,
        ("שָׁלוֹם", "שלום"): marks,
        ("كـتـاب", "كتاب"): tatweel,
    }.items():
        for tokenizer in (plain, lower, accents, marks, tatweel):
            assert same(tokenizer, *pair) == (tokenizer is switched), (pair, tokenizer.config)
    for kept in ("آ", "नमस्ते", "한"):
        for tokenizer in (lower, accents):
            assert tokenizer.decode(tokenizer.piece_ids([f"x{kept}"])[0]) == plain.decode(
                plain.piece_ids([f"x{kept}"])[0]
            )
    assert not same(accents, "≠", "=")


def test_special_tokens_in_text_are_text(tokenizer: Tokenizer) -> None:
    for literal in ("[MASK]", "[SEP]", "<s>", "</s>", "<mask>", "<pad>", "[CLS]", "<unk>", "[UNK]"):
        encoding = tokenizer.encode(f"a {literal} b{literal}")
        inner = set(encoding.token_ids[1:-1].tolist())
        assert not inner & (tokenizer.special_ids - {tokenizer.unk_id})
        assert encoding.special_tokens_mask.tolist() == [1, *[0] * (len(encoding) - 2), 1]
        assert not inner & tokenizer.special_ids


def test_the_mask_is_one_id_wherever_it_stands(tokenizer: Tokenizer) -> None:
    mask = tokenizer.mask_token
    x, y = tokenizer.piece_ids(["x", "y"])
    for text, expected in {
        f"{mask}": [tokenizer.mask_id],
        f"{mask} x": [tokenizer.mask_id, *x],
        f"x {mask} y": [*x, tokenizer.mask_id, *y],
        f"x{mask}": [*x, tokenizer.mask_id],
        f"x {mask}": [*x, tokenizer.mask_id],
        f"{mask}{mask}": [tokenizer.mask_id] * 2,
        f" {mask} ": [tokenizer.mask_id],
    }.items():
        encoding = tokenizer.encode(text, mask_is_special=True)
        assert encoding.token_ids.tolist() == [tokenizer.cls_id, *expected, tokenizer.sep_id]
        assert (encoding.special_tokens_mask == np.isin(encoding.token_ids, list(tokenizer.special_ids))).all()
        for start, end in encoding.offsets[encoding.token_ids == tokenizer.mask_id]:
            assert text[start:end] == mask


def test_only_the_mask_becomes_special_and_offsets_hold_around_it(tokenizer: Tokenizer) -> None:
    text = f"cafe\u0301 {tokenizer.mask_token} <pad>[SEP] \u1112\u1161\u11ab"
    encoding = tokenizer.encode(text, mask_is_special=True)
    assert set(encoding.token_ids[1:-1].tolist()) & tokenizer.special_ids == {tokenizer.mask_id}
    assert words_of(text, encoding) == ["cafe\u0301", "<", "pad", ">", "[", "SEP", "]", "\u1112\u1161\u11ab"]


def test_a_pair_has_the_layout_of_its_family() -> None:
    for algorithm, segments in {"wordpiece": [0, 0, 0, 1, 1], "unigram": [0, 0, 0, 1, 1], "bpe": [0] * 6}.items():
        tokenizer = trained(algorithm)
        encoding = tokenizer.encode("a", "b")
        a, b = tokenizer.piece_ids(["a", "b"])
        cls, sep = tokenizer.cls_id, tokenizer.sep_id
        between = [sep, sep] if algorithm == "bpe" else [sep]
        if len(a) == len(b) == 1:
            assert encoding.segment_ids.tolist() == segments
        assert encoding.token_ids.tolist() == [cls, *a, *between, *b, sep]
        assert encoding.sequence_ids.tolist() == [-1, *[0] * len(a), *[-1] * len(between), *[1] * len(b), -1]


def test_the_longer_text_of_a_pair_is_cut_first(wordpiece: Tokenizer) -> None:
    encoding = wordpiece.encode(". , . , . ,", "a b", max_length=7)
    assert wordpiece.tokens(encoding.token_ids) == ["[CLS]", ".", ",", "[SEP]", "a", "b", "[SEP]"]
    assert encoding.offsets.tolist() == [[0, 0], [0, 1], [2, 3], [0, 0], [0, 1], [2, 3], [0, 0]]


def test_a_length_without_room_for_control_tokens_is_refused(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("a b c", max_length=2)) == 2
    with pytest.raises(errors.InputError, match="max_length must leave room for 2 control tokens"):
        tokenizer.encode("a", max_length=1)


def test_cutting_one_text_leaves_the_next_one_whole(tokenizer: Tokenizer) -> None:
    whole = tokenizer.encode("a b c d e f").token_ids.tolist()
    tokenizer.encode("a b c d e f", max_length=4)
    assert tokenizer.encode("a b c d e f").token_ids.tolist() == whole


def test_a_long_word_is_cut_into_pieces_up_to_the_limit() -> None:
    address = "http://" + "a" * 123
    assert trained("wordpiece").unk_id not in trained("wordpiece").piece_ids([address])[0]
    strict = trained("wordpiece", max_word_characters=100)
    assert strict.unk_id in strict.piece_ids([address])[0]


def test_empty_text_and_lone_surrogates_encode(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("").token_ids.tolist() == [tokenizer.cls_id, tokenizer.sep_id]
    assert words_of("a \ud800 b", tokenizer.encode("a \ud800 b")) == ["a", "b"]


def test_bare_pieces_agree_with_encoding(tokenizer: Tokenizer) -> None:
    texts = ["The fox, São 東京", "", "glad😊 [MASK]"]
    for text, ids in zip(texts, tokenizer.piece_ids(texts), strict=True):
        assert tokenizer.encode(text).token_ids[1:-1].tolist() == ids


def test_continuing_pieces_tell_where_words_begin(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("The quick don't 東 fox")
    words = encoding.word_ids.tolist()
    continues = tokenizer.continues_word[encoding.token_ids]
    assert continues.shape == (len(encoding),)
    for at in range(1, len(encoding) - 1):
        assert not continues[at] or not continues[at - 1] or words[at] == words[at - 1]
        if continues[at] and tokenizer.token(int(encoding.token_ids[at - 1])) not in "'Ġ'":
            assert words[at] == words[at - 1]
    assert not continues[0]
    assert not tokenizer.continues_word[list(tokenizer.special_ids)].any()


def test_decoding_gives_back_the_words(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("The quick fox")
    assert tokenizer.decode(encoding.token_ids) == "The quick fox"
    assert tokenizer.cls_id is not None
    assert tokenizer.token(tokenizer.cls_id) in tokenizer.decode(encoding.token_ids, keep_special=True)


def test_an_id_outside_the_vocabulary_is_refused(tokenizer: Tokenizer) -> None:
    for token_id in (-1, tokenizer.vocab_size):
        with pytest.raises(errors.InputError, match="token id lies in"):
            tokenizer.token(token_id)


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_an_encoding_goes_elsewhere_with_its_places(algorithm: str) -> None:
    encoding = trained(algorithm).encode("São 東 x 👍🏽", "e\u0301 walking", max_length=14)
    copy = pickle.loads(pickle.dumps(trained(algorithm).encode("São 東 x 👍🏽", "e\u0301 walking", max_length=14)))
    for name in ("token_ids", "segment_ids", "special_tokens_mask", "sequence_ids", "offsets", "word_ids"):
        assert np.array_equal(getattr(copy, name), getattr(encoding, name))


def test_ids_are_given_without_looking_where_they_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    find = View.places

    def places(view: View, text: str) -> tuple[list[tuple[int, int]], list[int]]:
        asked.append(text)
        return find(view, text)

    monkeypatch.setattr(View, "places", places)
    first, second = trained("wordpiece").encode_batch(["São walking", ("東", "x")])
    assert len(first.token_ids) > 2
    assert first.segment_ids.sum() == 0
    assert asked == []
    assert second.word_ids.tolist() == [-1, 0, -1, 0, -1]
    assert second.offsets.tolist() == [[0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]
    assert asked == ["東", "x"]
