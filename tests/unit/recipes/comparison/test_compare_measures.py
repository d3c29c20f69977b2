"""What a comparison measures and shows of a model."""

from pathlib import Path

import pytest

from bertsmith.recipes.comparison.measures import Subject, measure_direction
from made_corpora import made_corpus, made_model, made_tokenizer


@pytest.mark.parametrize(
    ("algorithm", "text", "shown"),
    [
        ("bpe", "قط {}.", {"ق 1/2", "ق 2/2"}),
        ("bpe", "the rain {}.", {"▁t", "he"}),
        ("wordpiece", "the old boat 猫 and {}.", {"old", "boat", "[UNK]"}),
    ],
)
def test_a_sentence_is_shown_as_people_read_it(algorithm: str, text: str, shown: set[str], tmp_path: Path) -> None:
    tokenizer = made_tokenizer(algorithm)
    corpus = made_corpus(
        tmp_path / "corpus", [text.format(number) for number in range(8)], algorithm=algorithm, held_out=0.5
    )
    model = made_model(tokenizer.vocab_size).eval()
    tokens = measure_direction(Subject(model, tokenizer, corpus, "cpu", 32))["tokens"]
    assert shown <= set(tokens), tokens
