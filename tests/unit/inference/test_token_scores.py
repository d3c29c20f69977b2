"""How likely a model finds tokens, compared with its scores one place at a time."""

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.direction import influence, reach
from bertsmith.inference.features import layer_means
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.token_scores import (
    ROWS_AT_A_TIME,
    following_log_probabilities,
    perplexity,
    token_log_probabilities,
)
from bertsmith.model import HeadsConfig, Model, ModelConfig, PackedTokens, new_model
from made_corpora import made_format
from made_language_models import MADE, made_bert, made_elmo, made_gpt

CPU = Device("cpu", "fp32")
LENGTHS = (9, 24, 5)
PLACES = (np.array([1, 3, 7]), np.array([22]), np.array([], np.int64))


def _windows() -> list[TokenWindow]:
    stream = np.random.default_rng(0)
    return [TokenWindow(stream.integers(5, 250, length), np.zeros(length, np.int64)) for length in LENGTHS]


def _packed(ids: np.ndarray) -> PackedTokens:
    return PackedTokens.build(ids, np.zeros_like(ids), np.array([0, len(ids)]))


def _log_softmax(model: Model, ids: np.ndarray, place: int, columns: slice = slice(None)) -> torch.Tensor:
    assert model.masked_language_model is not None
    with torch.no_grad():
        return model.masked_language_model(model.encoder.packed(_packed(ids))[place : place + 1, columns])[
            0
        ].log_softmax(0)


def _expected(kind: str, model: Model) -> list[float]:
    found: list[float] = []
    for window, places in zip(_windows(), PLACES, strict=True):
        for place in places.tolist():
            ids, truth = window.token_ids, int(window.token_ids[place])
            match kind:
                case "bert":
                    masked = ids.copy()
                    masked[place] = made_format().mask_id
                    found.append(float(_log_softmax(model, masked, place)[truth]))
                case "gpt":
                    # What follows cannot matter, so it is not even there.
                    found.append(float(_log_softmax(model, ids[:place], place - 1)[truth]))
                case _:
                    width = model.config.encoder.embedding_width
                    ahead = _log_softmax(model, ids[:place], place - 1, slice(width))[truth]
                    back = _log_softmax(model, ids[place + 1 :], 0, slice(width, None))[truth]
                    found.append(float(ahead + back) / 2)
    return found


@pytest.mark.parametrize("kind", MADE)
def test_each_kind_is_asked_in_its_own_way(kind: str) -> None:
    model = MADE[kind]()
    found = token_log_probabilities(model, _windows(), PLACES, mask_id=made_format().mask_id, device=CPU)
    np.testing.assert_allclose(found, _expected(kind, model), atol=1e-4)
    assert perplexity(found) == pytest.approx(np.exp(-np.mean(found)))


def test_the_vocabulary_is_scored_for_a_few_tokens_at_a_time() -> None:
    stream = np.random.default_rng(1)
    windows = [TokenWindow(stream.integers(5, 250, 24), np.zeros(24, np.int64)) for _ in range(30)]
    places = [np.arange(1, 23) for _ in windows]
    model = made_gpt()
    rows: list[int] = []
    assert model.masked_language_model is not None
    model.masked_language_model.register_forward_hook(lambda head, given, scores: rows.append(len(scores)))
    found = following_log_probabilities(model, windows, places, device=CPU)
    assert (max(rows), sum(rows)) == (ROWS_AT_A_TIME, 30 * 22)
    for window, asked, scores in zip(windows, places, np.split(found, 30), strict=True):
        alone = following_log_probabilities(model, [window], [asked], device=CPU)
        np.testing.assert_allclose(scores, alone, atol=1e-5)


def test_scores_of_following_tokens_need_a_causal_model() -> None:
    windows = _windows()
    found = following_log_probabilities(made_gpt(), windows, PLACES, device=CPU)
    np.testing.assert_allclose(found, _expected("gpt", made_gpt()), atol=1e-4)
    with pytest.raises(InputError, match="causal"):
        following_log_probabilities(made_bert(), windows, PLACES, device=CPU)


def test_a_model_without_a_head_is_refused() -> None:
    config = ModelConfig(encoder=made_bert().config.encoder, heads=HeadsConfig(masked_language_model=False))
    with pytest.raises(InputError, match="head over the vocabulary"):
        token_log_probabilities(new_model(config, seed=0), _windows(), PLACES, mask_id=4, device=CPU)


@pytest.mark.parametrize(
    ("kind", "later_to_earlier", "earlier_to_later"), [("bert", True, True), ("gpt", False, True), ("elmo", True, True)]
)
def test_a_trial_shows_which_way_a_model_reads(kind: str, later_to_earlier: bool, earlier_to_later: bool) -> None:
    ids = _windows()[0].token_ids
    moved = influence(MADE[kind](), ids, replacement=4)
    assert moved.shape == (9, 9)
    assert (np.diag(moved) > 0).all()
    found = reach(moved)
    assert (found["sees_later"], found["sees_earlier"]) == (later_to_earlier, earlier_to_later)
    assert (found["later_to_earlier"] > 0) == later_to_earlier


def test_each_half_of_an_elmo_reads_one_way() -> None:
    model, ids = made_elmo(), _windows()[0].token_ids
    width = model.config.encoder.embedding_width
    ahead = reach(influence(model, ids, replacement=4, columns=slice(width)))
    back = reach(influence(model, ids, replacement=4, columns=slice(width, None)))
    assert (ahead["sees_later"], ahead["sees_earlier"]) == (False, True)
    assert (back["sees_later"], back["sees_earlier"]) == (True, False)


def test_movement_is_told_by_the_token_changed_and_the_vector_looked_at() -> None:
    model, ids = made_gpt(), _windows()[0].token_ids
    moved = influence(model, ids, replacement=int(ids[2]))
    assert not moved[2].any()  # Its own token takes its place.
    other = ids.copy()
    other[3] = ids[2]
    with torch.no_grad():
        before, after = model.encoder.packed(_packed(ids))[6], model.encoder.packed(_packed(other))[6]
    assert moved[3, 6] == pytest.approx(float((after - before).norm() / before.norm()), rel=1e-4)


@pytest.mark.parametrize(("kind", "layers"), [("bert", 2), ("gpt", 2), ("elmo", 3)])
def test_features_are_the_means_of_each_layer(kind: str, layers: int) -> None:
    model, windows = MADE[kind](), _windows()
    found = layer_means(model, windows, CPU)
    assert found.shape == (layers, 3, model.config.encoder.hidden_size)
    for number, window in enumerate(windows):
        with torch.no_grad():
            outputs = list(model.encoder.layer_outputs(_packed(window.token_ids)))
        for layer, output in enumerate(outputs, layers - len(outputs)):
            torch.testing.assert_close(found[layer, number], output.mean(0), rtol=0, atol=1e-5)
    assert not found.requires_grad
