"""Classifying by prompt."""

import numpy as np
import pytest
import torch

from bertsmith.foundation.errors import InputError
from bertsmith.inference.prompting import label_by_prompt, label_pieces
from bertsmith.model import Model, PackedTokens
from made_corpora import made_tokenizer
from made_language_models import made_bert, made_gpt

TEXTS = ("The boat waited under the bridge.", "snow and wind", "Nobody opened the heavy wooden window again.")
LABELS = ("rain", "quiet morning", "bread")


def _mean_log_probability(model: Model, prefix: np.ndarray, label: np.ndarray) -> float:
    ids = np.concatenate([prefix, label])
    packed = PackedTokens.build(ids, np.zeros_like(ids), np.array([0, len(ids)]))
    assert model.masked_language_model is not None
    with torch.no_grad():
        scores = model.masked_language_model(model.head_input(packed)).log_softmax(-1)
    places = np.arange(len(prefix) - 1, len(ids) - 1)
    return float(scores[places, label].mean())


def test_the_label_is_the_one_that_gains_most_by_the_text() -> None:
    tokenizer = made_tokenizer()
    seen: set[int] = set()
    for seed in range(4):
        model = made_gpt(seed)
        pieces = [tokenizer.encode(label).token_ids[1:-1] for label in LABELS]
        empty = tokenizer.encode("it was").token_ids[:-1]
        expected: list[int] = []
        for text in TEXTS:
            prefix = tokenizer.encode(f"{text} it was").token_ids[:-1]
            gains = [
                _mean_log_probability(model, prefix, ids) - _mean_log_probability(model, empty, ids) for ids in pieces
            ]
            expected.append(int(np.argmax(gains)))
        assert label_by_prompt(model, tokenizer, TEXTS, LABELS, template="{text} it was {label}") == expected
        seen.update(expected)
    assert len(seen) > 1


def test_a_text_that_does_not_fit_loses_its_beginning() -> None:
    tokenizer, model = made_tokenizer(), made_gpt()
    long = " ".join(["river", "garden", "lamp"] * 12)
    label = tokenizer.encode("rain").token_ids[1:-1]
    room = model.config.encoder.num_positions - len(label) - 1
    whole = tokenizer.encode(long).token_ids[:-1]
    assert len(whole) > room
    end = tokenizer.decode(whole[-(room - 1) :])
    assert len(tokenizer.encode(end).token_ids) - 1 == room
    for seed in range(3):
        model = made_gpt(seed)
        assert label_by_prompt(model, tokenizer, [long], ["rain", "snow"]) == label_by_prompt(
            model, tokenizer, [end], ["rain", "snow"]
        )


@pytest.mark.parametrize("template", ["{label}", "{text}", "{label} {text}"])
def test_a_template_without_its_places_is_refused(template: str) -> None:
    with pytest.raises(InputError, match="template"):
        label_by_prompt(made_gpt(), made_tokenizer(), TEXTS, LABELS, template=template)


def test_a_label_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="must have words"):
        label_by_prompt(made_gpt(), made_tokenizer(), TEXTS, ["rain", " "])


def test_a_label_of_many_words_is_cut_to_half_a_window() -> None:
    tokenizer = made_tokenizer()
    whole, cut = label_pieces(tokenizer, ["rain", "snow " * 40], 24)
    assert whole.tolist() == tokenizer.encode("rain").token_ids[1:-1].tolist()
    assert cut.tolist() == tokenizer.encode("snow " * 40).token_ids[1:13].tolist()
    assert label_by_prompt(made_gpt(), tokenizer, TEXTS, ["rain", "snow " * 40])


def test_a_model_that_is_not_causal_is_refused() -> None:
    with pytest.raises(InputError, match="causal"):
        label_by_prompt(made_bert(), made_tokenizer(), TEXTS, LABELS)
