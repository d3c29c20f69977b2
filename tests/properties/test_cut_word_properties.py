"""Words that are cut once count as the words of the whole text do, whatever the text."""

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from bertsmith.tokenization import TokenizerConfig, cut_words
from bertsmith.tokenization.cut_words import CutWords
from bertsmith.tokenization.pipeline import build_normalizer, build_pre_tokenizer
from made_hard_texts import HARD_TEXTS

_SWITCHES: list[dict[str, Any]] = [
    {},
    {"lowercase": True, "strip_accents": True},
    {"strip_vowel_marks": True, "strip_tatweel": True, "compatibility": True},
]
_SURROGATE = re.compile("[\ud800-\udfff]")
_EXAMPLES = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", params=range(len(_SWITCHES)), ids=["plain", "accents", "marks"])
def switches(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _SWITCHES[request.param]


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "unigram"])
def config(request: pytest.FixtureRequest, switches: dict[str, Any]) -> TokenizerConfig:
    return TokenizerConfig.model_validate({"algorithm": request.param, **switches})


@_EXAMPLES
@given(texts=HARD_TEXTS)
def test_cut_words_count_as_those_of_the_whole_text(config: TokenizerConfig, texts: list[str]) -> None:
    texts = [_SURROGATE.sub("", text) for text in texts]  # Readers let none of them through.
    normalize = build_normalizer(config).normalize_str
    cut = build_pre_tokenizer(config.algorithm).pre_tokenize_str
    expected = Counter(part for text in texts for part, _ in cut(normalize(text)))
    for most_words in (1 << 18, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cut_words, "_MAX_WORDS", most_words)
            known = CutWords(config)
            assert Counter(part for text in known.texts(texts) for part in text.split(" ") if part) == expected
            assert len(known) <= most_words
