"""Writing on with a causal language model: one token after the other, each drawn given all before it."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluating
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.model.pretraining_heads import VocabularyHead
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Generation:
    """A prompt and what a model wrote behind it."""

    text: str
    """Both, as the tokenizer writes its pieces."""
    continuation: str
    """What was written, alone."""
    token_ids: tuple[int, ...]
    """Ids of the continuation, without the separator that ended it."""
    ended: bool
    """Whether the model ended the text itself, by a separator."""


def generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: str,
    *,
    device: Device = Device("cpu", "fp32"),
    max_new_tokens: int = 40,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> Generation:
    """Write on from a prompt, a pure function of the arguments.

    No more is seen than a sequence that the model was trained on: its window slides, the first token of all sequences
    kept.

    Args:
        model: a causal language model on `device`.
        tokenizer: the one it was trained with.
        prompt: the beginning; may be empty.
        device: where and how it runs.
        max_new_tokens: at most so many tokens are written.
        temperature: below 1 favours what is likely, above 1 what is not. 0 is greedy: always the likeliest.
        top_k: draw from the `top_k` likeliest tokens only.
        seed: decides the draws.

    Raises:
        InputError: for a model that is not causal, or an argument outside its rule.
    """
    head = causal_head(model)
    _refuse_outside(max_new_tokens, temperature, top_k)
    prefix = prompt_ids(tokenizer, prompt)
    never = np.array(sorted(tokenizer.special_ids - {tokenizer.sep_id}), np.int64)
    stream = random_stream(seed, "generation")
    longest = tokenizer.longest_sequence(model.config.encoder.num_positions)
    written: list[int] = []
    ended = False
    with evaluating(model):
        while len(written) < max_new_tokens and not ended:
            window = _window(np.append(prefix, written).astype(np.int64), longest)
            scores = _next_scores(model, head, window, device)[: tokenizer.vocab_size]
            scores[never] = -np.inf
            chosen = _choose(scores, temperature, top_k, stream)
            ended = chosen == tokenizer.sep_id
            if not ended:
                written.append(chosen)
    return Generation(
        tokenizer.decode([*prefix.tolist(), *written]).strip(), tokenizer.decode(written), tuple(written), ended
    )


def causal_head(model: Model) -> VocabularyHead:
    """The head with which a causal model predicts.

    Raises:
        InputError: if the model reads in both directions, or has no such head.
    """
    if not model.config.encoder.causal or model.masked_language_model is None:
        raise InputError(
            "Writing on needs a causal language model",
            "a model that is none",
            "Train one: bertsmith pretrain FILES --objective causal --out DIR.",
        )
    return model.masked_language_model


def prompt_ids(tokenizer: Tokenizer, prompt: str) -> Int[np.ndarray, " tokens"]:
    """Ids of a prompt behind the token that begins every sequence, and without the separator that would end it."""
    return tokenizer.encode(prompt).token_ids[:-1]


def beginning(tokenizer: Tokenizer, token_ids: Int[np.ndarray, " tokens"], most: int) -> str:
    """The first tokens of a text, at most so many, up to the end of a word where one ends there."""
    continues = tokenizer.continues_word[token_ids]
    ends = [place for place in range(1, most + 1) if place >= len(token_ids) or not continues[place]]
    return tokenizer.decode(token_ids[: ends[-1] if ends else most]).strip()


def _refuse_outside(max_new_tokens: int, temperature: float, top_k: int | None) -> None:
    if max_new_tokens < 1:
        raise InputError("max_new_tokens must be 1 or more", max_new_tokens, "Use 40, for example.")
    if not 0.0 <= temperature < float("inf"):
        raise InputError("temperature must be 0 or more", temperature, "Use 0.8, or 0 for the likeliest tokens.")
    if top_k is not None and top_k < 1:
        raise InputError("top_k must be 1 or more", top_k, "Use 40, for example, or leave it out.")


def _window(token_ids: Int[np.ndarray, " tokens"], longest: int) -> Int[np.ndarray, " window"]:
    return token_ids if len(token_ids) <= longest else np.append(token_ids[:1], token_ids[1 - longest :])


@torch.inference_mode()
def _next_scores(
    model: Model, head: VocabularyHead, window: Int[np.ndarray, " window"], device: Device
) -> Float[np.ndarray, " vocabulary"]:
    packed = PackedTokens.build(window, np.zeros_like(window), np.array([0, len(window)]))
    with device.matrix_precision():
        logits: Tensor = head(model.head_input(packed.to(device.name))[-1:])
    return logits[0].double().cpu().numpy()


def _choose(
    scores: Float[np.ndarray, " vocabulary"], temperature: float, top_k: int | None, stream: np.random.Generator
) -> int:
    if temperature == 0.0:
        return int(scores.argmax())
    if top_k is not None and top_k < len(scores):
        # Equal scores at the border: the lower ids stay.
        dropped = np.argsort(-scores, kind="stable")[top_k:]
        scores[dropped] = -np.inf
    weights = np.exp((scores - scores.max()) / temperature)
    return int(stream.choice(len(scores), p=weights / weights.sum()))
