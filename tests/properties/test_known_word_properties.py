"""Whatever the text, looking words up gives the pieces that encoding the whole text gives, text by text."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from bertsmith.tokenization import Tokenizer, TokenizerConfig, known_words, train_tokenizer
from made_hard_texts import HARD_TEXTS

_STEMS = ("walk", "talk", "play", "stay", "look", "read", "lead", "sing", "درس", "كتب", "한국", "사람", "дом")
_TEXTS = [
    *(" ".join(f"{stem}{ending}" for stem in _STEMS) for ending in ("", "ing", "ed", "er", "s", "ات", "ов", "이")),
    *(["the quick brown fox jumps over the lazy dog and sleeps, reading walking talking played"] * 3),
    "كِتَابـ שָׁלוֹם हिन्दी 東京 😊 ❤️ ok 👨‍👩‍👧 🇩🇪 não ß İ ﬁ ABCDEFGH abcdefgh 0123 .,#[]<>/' 한국어 Москва z",
] * 3
_ALL = {
    "lowercase": True,
    "strip_accents": True,
    "strip_vowel_marks": True,
    "strip_tatweel": True,
    "compatibility": True,
}
_SWITCHES: list[dict[str, Any]] = [{}, {"lowercase": True, "strip_accents": True}, _ALL]
_EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", autouse=True)
def _little_room() -> Iterator[None]:
    """So that words are forgotten on the way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_words, "_MAX_WORDS", 200)
        yield


@pytest.fixture(scope="module", params=["plain", "accents", "all"])
def switches(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(zip(["plain", "accents", "all"], _SWITCHES, strict=True))[request.param]


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "unigram"])
def trained(request: pytest.FixtureRequest, switches: dict[str, Any]) -> Tokenizer:
    size = {"wordpiece": 190, "bpe": 330, "unigram": 105}[request.param]
    config = TokenizerConfig.model_validate({"algorithm": request.param, "vocab_size": size, **switches})
    return train_tokenizer(lambda: _TEXTS, config)


@pytest.fixture(scope="module", params=["as trained", "with words"])
def tokenizer(request: pytest.FixtureRequest, trained: Tokenizer) -> Tokenizer:
    return (
        trained if request.param == "as trained" else trained.with_words(["overwrite", "zzword", "مكتبتنا", "부산에서"])
    )


@_EXAMPLES
@given(texts=HARD_TEXTS)
def test_our_tokenizers_look_up_every_word(tokenizer: Tokenizer, texts: list[str]) -> None:
    piece_ids, lengths = tokenizer.flat_piece_ids(texts)
    assert [part.tolist() for part in np.split(piece_ids, np.cumsum(lengths))[:-1]] == tokenizer.piece_ids(texts)
    assert tokenizer._known_words is not None
