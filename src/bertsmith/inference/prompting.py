"""Classifying with a causal language model and no training: which label's words would stand behind the text?"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.generate import prompt_ids
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.token_scores import following_log_probabilities
from bertsmith.model.heads import Model
from bertsmith.tokenization.tokenizer import Tokenizer

TEXT, LABEL = "{text}", "{label}"


def label_by_prompt(
    model: Model,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    template: str = f"{TEXT} {LABEL}",
    device: Device = Device("cpu", "fp32"),
) -> list[int]:
    """For each text, the number of the label whose words the model finds the likeliest there.

    The words' mean log-probability behind the text is lessened by what it is behind the template without a text, so
    that a label does not win by being a common word (Holtzman et al. 2021).

    Args:
        model: a causal language model on `device`.
        tokenizer: the one it was trained with.
        texts: what is classified. A text that does not fit beside the label loses its beginning.
        labels: words for each label; of many, as many as fill half of what the model takes.
        template: how text and label stand together; it holds ``{text}`` and ends with ``{label}``.
        device: where and how it runs.

    Raises:
        InputError: for a model that is not causal, a template without its places, or a label without words.
    """
    if TEXT not in template or not template.endswith(LABEL):
        raise InputError(
            f"A template must hold {TEXT} and end with {LABEL}", template, f"For example: “{TEXT} Topic: {LABEL}”."
        )
    longest = tokenizer.longest_sequence(model.config.encoder.num_positions)
    pieces = label_pieces(tokenizer, labels, longest)
    frame = template.removesuffix(LABEL).rstrip()
    windows: list[TokenWindow] = []
    places: list[np.ndarray] = []
    for text in ("", *texts):
        prefix = prompt_ids(tokenizer, frame.replace(TEXT, text).strip())
        for ids in pieces:
            room = longest - len(ids) - 1
            kept = prefix if len(prefix) <= room else np.append(prefix[:1], prefix[len(prefix) - room + 1 :])
            whole = np.concatenate([kept, ids])
            windows.append(TokenWindow(whole, np.zeros_like(whole)))
            places.append(len(kept) + np.arange(len(ids)))
    scores = following_log_probabilities(model, windows, places, device=device)
    bounds = np.cumsum([len(place) for place in places])[:-1]
    means = np.array([part.mean() for part in np.split(scores, bounds)]).reshape(1 + len(texts), len(labels))
    return (means[1:] - means[0]).argmax(1).tolist()


def label_pieces(tokenizer: Tokenizer, labels: Sequence[str], longest: int) -> list[Int[np.ndarray, " _"]]:
    """The pieces of each label, cut to half of what a model takes.

    Args:
        tokenizer: the model's.
        labels: words for each label.
        longest: tokens that the model takes.

    Raises:
        InputError: for a label of which no piece is left.
    """
    pieces = [prompt_ids(tokenizer, label)[1 : 1 + longest // 2] for label in labels]
    for label, ids in zip(labels, pieces, strict=True):
        if not len(ids):
            raise InputError("A label must have words", f"“{label}”, which has none", "Rename it.")
    return pieces
