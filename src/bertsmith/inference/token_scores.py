"""How likely a language model finds tokens of a text, asked of each kind of model in its own way."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.foundation.errors import InputError
from bertsmith.inference.generate import causal_head
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.model.heads import Model
from bertsmith.model.pretraining_heads import VocabularyHead

Places = Sequence[Int[np.ndarray, " _"]]
"""For each window, the places of the tokens that are asked for: neither its first nor its last."""
ROWS_AT_A_TIME = 256
"""Tokens that are scored over the vocabulary at once: in double precision, 32,000 scores each are 64 MiB."""


def following_log_probabilities(
    model: Model, windows: Sequence[TokenWindow], places: Places, *, device: Device
) -> Float[np.ndarray, " tokens"]:
    """Natural logarithms of the probabilities of tokens given all before them, by a causal model.

    Raises:
        InputError: for a model that is not causal.
    """
    return _beside(model, causal_head(model), windows, places, device, offset=-1)


def token_log_probabilities(
    model: Model, windows: Sequence[TokenWindow], places: Places, *, mask_id: int, device: Device
) -> Float[np.ndarray, " tokens"]:
    """Natural logarithms of the probabilities of true tokens, windows one after the other.

    A causal model is asked for each token given all before it. An ELMo is asked twice, given all before and given all
    behind, and the mean of the two logarithms is taken. Any other model sees all but the token, which is masked: one
    run a token (Salazar et al. 2020); such numbers compare with each other, but are no probability of the whole text.

    Raises:
        InputError: if the model has no head over the vocabulary.
    """
    head = model.masked_language_model
    if head is None:
        raise InputError(
            "Scoring tokens needs a head over the vocabulary", "an encoder alone", "Use the folder of a trained model."
        )
    if model.config.encoder.causal:
        return following_log_probabilities(model, windows, places, device=device)
    if model.config.encoder.family == "elmo":
        width = model.config.encoder.embedding_width
        ahead = _beside(model, head, windows, places, device, offset=-1, columns=slice(width))
        back = _beside(model, head, windows, places, device, offset=1, columns=slice(width, None))
        return (ahead + back) / 2
    masked = [
        TokenWindow(np.where(np.arange(len(window.token_ids)) == place, mask_id, window.token_ids), window.segment_ids)
        for window, asked in zip(windows, places, strict=True)
        for place in asked
    ]
    read = [np.array([place]) for asked in places for place in asked]
    return _scored(model, head, masked, read, _truth(windows, places), device)


def perplexity(log_probabilities: Float[np.ndarray, " tokens"]) -> float:
    """The number of equally likely choices that would be as hard to guess from."""
    return float(np.exp(-log_probabilities.mean()))


def _truth(windows: Sequence[TokenWindow], places: Places) -> Int[np.ndarray, " tokens"]:
    return np.concatenate([window.token_ids[asked] for window, asked in zip(windows, places, strict=True)])


def _beside(
    model: Model,
    head: VocabularyHead,
    windows: Sequence[TokenWindow],
    places: Places,
    device: Device,
    *,
    offset: int,
    columns: slice = slice(None),
) -> Float[np.ndarray, " tokens"]:
    """Scores read off the states that stand `offset` beside the tokens asked for."""
    read = [asked + offset for asked in places]
    return _scored(model, head, windows, read, _truth(windows, places), device, columns=columns)


@torch.inference_mode()
def _scored(
    model: Model,
    head: VocabularyHead,
    windows: Sequence[TokenWindow],
    read: Places,
    truth: Int[np.ndarray, " tokens"],
    device: Device,
    *,
    columns: slice = slice(None),
) -> Float[np.ndarray, " tokens"]:
    """Log-probability of each true token at the place where its window is read."""
    first = np.concatenate([[0], np.cumsum([len(places) for places in read])])
    found = np.empty(len(truth))
    with evaluating(model):
        for members, packed in token_budget_batches(windows):
            starts = packed.sequence_starts[:-1].tolist()
            rows = np.concatenate([start + read[member] for start, member in zip(starts, members, strict=True)])
            order = np.concatenate([np.arange(first[member], first[member + 1]) for member in members])
            with device.matrix_precision():
                hidden = model.head_input(packed.to(device.name))[torch.from_numpy(rows).to(device.name), columns]
            for begin in range(0, len(order), ROWS_AT_A_TIME):
                block = slice(begin, begin + ROWS_AT_A_TIME)
                with device.matrix_precision():
                    logits: Tensor = head(hidden[block])
                scores = logits.double().log_softmax(-1)
                wanted = torch.from_numpy(truth[order[block]]).to(device.name)
                found[order[block]] = scores.gather(1, wanted[:, None])[:, 0].cpu().numpy()
    return found
