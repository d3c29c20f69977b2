"""Making an example of next sentence prediction (Devlin et al. 2019, section 3.1)."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from bertsmith.foundation.errors import InputError
from bertsmith.inference.predictor import refuse_blank
from bertsmith.recipes.own_loop.tokenizers import the_tokenizer
from bertsmith.tokenization.tokenizer import Tokenizer

_NEXT, _RANDOM = 0, 1


@dataclass(frozen=True)
class NextSentenceExample:
    """Two sentences as a model sees them, and whether the second follows the first."""

    tokens: tuple[str, ...]
    """``[CLS]`` first ``[SEP]`` second ``[SEP]``, or as the tokenizer has it."""
    token_ids: Int[Tensor, " tokens"]
    segment_ids: Int[Tensor, " tokens"]
    """0 up to and including the first separator, 1 behind it; 0 throughout where the family has no segments."""
    label: int
    """0: the second really follows; 1: it is random. So published BERT and the Hub's models have it."""


def next_sentence_example(
    first: str,
    second: str,
    tokenizer: Tokenizer | str | Path,
    *,
    is_next: bool,
    max_length: int | None = None,
) -> NextSentenceExample:
    """Frame two sentences for next sentence prediction.

    Args:
        first: a sentence, or several.
        second: what follows it, or a random one.
        tokenizer: the model's, or a folder that holds it.
        is_next: whether `second` really follows `first`.
        max_length: at most so many tokens, special ones included; the longer sentence is cut at its end until both are
            equal. What the tokenizer says its model takes, where not given.

    Raises:
        InputError: for a blank sentence, something else than texts, or a `max_length` without room for them.
    """
    refuse_blank([(first, second)])
    if not isinstance(is_next, bool):
        raise InputError("is_next must be True or False", repr(is_next), "Say whether the second follows the first.")
    opened = the_tokenizer(tokenizer)
    encoding = opened.encode(first, second, max_length=max_length or opened.model_max_length)
    return NextSentenceExample(
        tuple(opened.tokens(encoding.token_ids)),
        torch.tensor(encoding.token_ids, dtype=torch.int64),
        torch.tensor(encoding.segment_ids, dtype=torch.int64),
        _NEXT if is_next else _RANDOM,
    )
