"""Features of a frozen encoder, and a linear classifier on them."""

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.inference.probe import probe_accuracy
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.sequence_outputs import frozen_features
from bertsmith.model import PackedTokens
from made_corpora import made_model, made_texts, made_tokenizer, weights_of

CPU = Device("cpu", "fp32")
TOKENIZER = made_tokenizer()


def _windows(texts: list[str]) -> list[TokenWindow]:
    encodings = TOKENIZER.encode_batch(texts, 64)
    return [TokenWindow(encoding.token_ids, encoding.segment_ids) for encoding in encodings]


def test_features_are_means_over_the_real_tokens_whatever_stands_beside() -> None:
    model = made_model(TOKENIZER.vocab_size, dropout=0.3).train()
    before = weights_of(model)
    windows = _windows(made_texts(12, sentences=(1, 5)))
    found = frozen_features(model, windows, CPU)
    assert found.shape == (12, 16)
    assert model.training
    assert all(torch.equal(weight, before[name]) for name, weight in weights_of(model).items())
    model.eval()
    for window, row in zip(windows, found, strict=True):
        packed = PackedTokens.build(window.token_ids, window.segment_ids, np.array([0, len(window.token_ids)]))
        with torch.no_grad():
            expected = model.encoder.packed(packed).mean(0).numpy()
        assert row == pytest.approx(expected, abs=1e-5)


def test_a_probe_finds_what_the_features_hold_and_nothing_else() -> None:
    stream = np.random.default_rng(0)
    ids = np.arange(400) % 2
    features = stream.normal(size=(400, 5))
    assert 0.3 < probe_accuracy(features[:300], ids[:300], features[300:], ids[300:]) < 0.7
    features[:, 3] = 1000.0 + ids + 0.1 * features[:, 3]
    assert probe_accuracy(features[:300], ids[:300], features[300:], ids[300:]) == 1.0


def test_a_probe_on_features_tells_texts_of_different_words() -> None:
    texts = [" ".join([word] * count) for count in range(1, 21) for word in ("rain", "bread")]
    features = frozen_features(made_model(TOKENIZER.vocab_size, spread=0.3), _windows(texts), CPU)
    ids = np.arange(len(texts)) % 2
    found = probe_accuracy(features[:20], ids[:20], features[20:], ids[20:])
    assert found == probe_accuracy(features[:20], ids[:20], features[20:], ids[20:])
    assert found > 0.9
