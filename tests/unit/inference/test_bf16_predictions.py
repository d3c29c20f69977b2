"""In bf16 a prediction depends on its neighbours within two hundredths, and no label that is clear depends on them."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from bertsmith.engine.device import Device
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.tag import TagPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from made_corpora import made_model, made_texts, made_tokenizer
from made_sentences import made_tagger
from made_tasks import made_classifier

BF16 = Device("cpu", "bf16")
LABELS = ("sunny", "rainy", "bad")
MARGIN = 0.02
TEXTS = made_texts(24, sentences=(1, 6))


def _orders(texts: Sequence[str]) -> list[list[int]]:
    """All together, backwards, and mixed."""
    count = len(texts)
    shuffled = random.Random(3).sample(range(count), count)
    return [list(range(count)), list(range(count))[::-1], shuffled]


def _close(ours: np.ndarray, other: np.ndarray) -> bool:
    """Within the margin, relative to the largest entry."""
    return float(np.abs(ours - other).max()) <= MARGIN * float(np.abs(ours).max())


def _is_clear(scores: np.ndarray) -> bool:
    first, second = np.sort(scores)[::-1][:2]
    return first - second > MARGIN * first


def test_classes() -> None:
    predictor = ClassifyPredictor(TorchEngine(made_classifier(LABELS), BF16), made_tokenizer())
    alone = [predictor([text])[0] for text in TEXTS]
    clear = 0
    for order in _orders(TEXTS):
        for number, found in zip(order, predictor([TEXTS[number] for number in order]), strict=True):
            expected = np.array([alone[number].scores[label] for label in LABELS])
            assert _close(expected, np.array([found.scores[label] for label in LABELS]))
            if _is_clear(expected):
                clear += 1
                assert found.label == alone[number].label
    assert clear > len(TEXTS)


def test_tags() -> None:
    tagger = made_tagger()
    predictor = TagPredictor(TorchEngine(tagger, BF16), made_tokenizer())
    alone = [predictor([text])[0] for text in TEXTS]
    for order in _orders(TEXTS):
        for number, found in zip(order, predictor([TEXTS[number] for number in order]), strict=True):
            for one, same in zip(alone[number].words, found.words, strict=True):
                assert one.score == pytest.approx(same.score, rel=MARGIN)
                # The likeliest of several labels is clear where it has more than half.
                assert one.label == same.label or one.score < 0.5 * (1 + MARGIN)


@pytest.mark.parametrize("normalize", [True, False])
def test_vectors(normalize: bool) -> None:
    encoder = made_model(made_tokenizer().vocab_size, spread=0.3).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="embed", normalize=normalize)
    model = new_model(ModelConfig(encoder=encoder, heads=heads), seed=0)
    predictor = EmbedPredictor(TorchEngine(model, BF16), made_tokenizer())
    alone = np.concatenate([predictor.vectors([text]) for text in TEXTS])
    for order in _orders(TEXTS):
        for number, vector in zip(order, predictor.vectors([TEXTS[number] for number in order]), strict=True):
            assert _close(alone[number], vector)
