"""Small tagged sentences, and taggers with fresh weights, made from a seed."""

import random
from collections.abc import Sequence
from functools import cache

from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from bertsmith.text.tagged import TaggedSentence
from made_corpora import WORDS, made_model, made_tokenizer

ENTITY_LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
_NAMES = {"PER": ("Anna", "Bolivar", "Catherine"), "LOC": ("Oslo", "Damascus", "Xanthi")}


def tagged(words: Sequence[str], tags: Sequence[str], line: int = 1) -> TaggedSentence:
    """A sentence that stands in a file from a line on."""
    return TaggedSentence(tuple(words), tuple(tags), f"line {line}", range(line, line + len(words)))


def made_sentences(count: int, *, words: tuple[int, int] = (4, 12), seed: int = 0) -> list[TaggedSentence]:
    """Sentences with some entities of one to three words, whose names occur nowhere else."""
    stream = random.Random(seed)
    found: list[TaggedSentence] = []
    line = 1
    for _ in range(count):
        one: list[tuple[str, str]] = []
        while len(one) < stream.randint(*words):
            kind = stream.choice([None, None, *_NAMES])
            if kind is None:
                one += [(stream.choice(WORDS), "O")]
            else:
                names = stream.choices(_NAMES[kind], k=stream.randint(1, 3))
                one += [(name, f"{'I' if place else 'B'}-{kind}") for place, name in enumerate(names)]
                one += [(stream.choice(WORDS), "O")]
        found.append(tagged([word for word, _ in one], [tag for _, tag in one], line))
        line += len(one) + 1
    return found


@cache
def made_tagger(
    labels: tuple[str, ...] = ENTITY_LABELS, *, positions: int = 64, dropout: float = 0.0, seed: int = 0
) -> Model:
    """A tagger with fresh weights that are spread widely, so that its scores differ visibly."""
    encoder = made_model(made_tokenizer().vocab_size, positions=positions, dropout=dropout, spread=0.3).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="tag", labels=labels, classifier_dropout=dropout)
    return new_model(ModelConfig(encoder=encoder, heads=heads), seed=seed)
