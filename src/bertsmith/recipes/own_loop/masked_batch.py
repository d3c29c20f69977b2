"""Making a masked batch: what a masked language model sees, and what it must find (Devlin et al. 2019, section 3.1)."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.examples.masking import MaskingConfig, mask_tokens
from bertsmith.examples.targets import IGNORED
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from bertsmith.recipes.own_loop.padded import refuse_outside
from bertsmith.recipes.own_loop.tokenizers import the_tokenizer
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class MaskedBatch:
    """Both are new tensors."""

    token_ids: Int[Tensor, "batch sequence"]
    """What the model sees."""
    labels: Int[Tensor, "batch sequence"]
    """The true token where one was selected, else -100: labels of a `TaskModel` that fills."""


@dataclass(frozen=True)
class _Vocabulary:
    size: int
    mask_id: int
    special_ids: Int[np.ndarray, " specials"]
    random_ids: Int[np.ndarray, " candidates"]


def masked_batch(
    token_ids: Any,
    tokenizer: Tokenizer | str | Path | None = None,
    *,
    seed: int | np.random.Generator,
    mask_id: int | None = None,
    special_ids: Iterable[int] | None = None,
    vocab_size: int | None = None,
    mask_rate: float = 0.15,
    mask_token_share: float = 0.8,
    random_token_share: float = 0.1,
    selection: Literal["exact", "bernoulli"] = "exact",
) -> MaskedBatch:
    """Select tokens of padded sequences and hide them. The input is not changed.

    Of each sequence `mask_rate` of the tokens that are not special are selected, one at least: 80 % become the mask,
    10 % a random token, never a special one, and 10 % stay as they are.

    Args:
        token_ids: whole numbers ``[batch, sequence]``, padded by a special token: a tensor, an array or lists.
        tokenizer: the model's, or a folder that holds it; tells the next three.
        seed: decides the draws. Give another one for each batch, or a numpy generator, which goes on by itself.
        mask_id: in place of a tokenizer, the mask token's id.
        special_ids: in place of a tokenizer, ids that are never selected and never drawn, that of padding among them.
        vocab_size: in place of a tokenizer, how many ids there are.
        mask_rate: share of the tokens that is selected.
        mask_token_share: share of the selected ones that the mask replaces.
        random_token_share: share of the selected ones that a random token replaces.
        selection: ``exact``: a budget for each sequence, whose fraction of a token is drawn. ``bernoulli``: each token
            by itself.

    Returns:
        tensors, on the device of `token_ids` where that is one.

    Raises:
        InputError: for another shape or type, an id outside the vocabulary, shares outside [0, 1], a tokenizer without
            a mask, or neither a tokenizer nor all that stands in its place.
    """
    vocabulary = _vocabulary(tokenizer, mask_id, special_ids, vocab_size)
    config = MaskingConfig.parse(
        {
            "mask_rate": mask_rate,
            "mask_token_share": mask_token_share,
            "random_token_share": random_token_share,
            "selection": selection,
        },
        where="the arguments",
    )
    ids = _rows(token_ids, vocabulary.size)
    eligible: Bool[np.ndarray, " tokens"] = ~np.isin(ids.ravel(), vocabulary.special_ids)
    found = mask_tokens(
        ids.ravel(),
        eligible,
        np.arange(len(ids) + 1) * ids.shape[1],
        mask_id=vocabulary.mask_id,
        random_ids=vocabulary.random_ids,
        config=config,
        stream=seed if isinstance(seed, np.random.Generator) else random_stream(seed, "masked batch"),
    )
    labels = np.full(ids.size, IGNORED, np.int64)
    labels[found.target_positions] = found.target_ids
    device = token_ids.device if isinstance(token_ids, Tensor) else "cpu"
    seen, wanted = (torch.from_numpy(part.reshape(ids.shape)).to(device) for part in (found.token_ids, labels))
    return MaskedBatch(seen, wanted)


def _vocabulary(
    tokenizer: Tokenizer | str | Path | None,
    mask_id: int | None,
    special_ids: Iterable[int] | None,
    vocab_size: int | None,
) -> _Vocabulary:
    if tokenizer is not None:
        if (mask_id, special_ids, vocab_size) != (None, None, None):
            raise InputError(
                "mask_id, special_ids and vocab_size stand in a tokenizer's place", "both", "Leave one of them out."
            )
        opened = the_tokenizer(tokenizer)
        own = SequenceFormat.of(opened)
        return _Vocabulary(opened.vocab_size, own.mask_id, np.array(sorted(opened.special_ids)), own.random_ids)
    if mask_id is None or special_ids is None or vocab_size is None:
        raise InputError(
            "A masked batch needs a tokenizer, or mask_id, special_ids and vocab_size",
            "neither",
            "Give the tokenizer, or the folder of its model.",
        )
    specials = np.array(sorted({*special_ids, mask_id}), np.int64)
    candidates = np.setdiff1d(np.arange(vocab_size), specials)
    if not len(candidates) or not 0 <= mask_id < vocab_size:
        raise InputError(
            "A vocabulary must hold the mask and a token that is not special",
            f"mask_id {mask_id}, {len(specials)} special ids of {vocab_size}",
            "Check vocab_size and special_ids.",
        )
    return _Vocabulary(vocab_size, mask_id, specials, candidates)


def _rows(token_ids: Any, vocab_size: int) -> Int[np.ndarray, "batch sequence"]:
    try:
        ids = token_ids.detach().cpu().numpy() if isinstance(token_ids, Tensor) else np.asarray(token_ids)
    except ValueError:
        raise InputError(
            "token_ids must be padded to one length", "rows of several lengths", "Fill the shorter ones up."
        ) from None
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
        raise InputError(
            "token_ids must be whole numbers [batch, sequence]",
            f"{ids.dtype} of shape {ids.shape}",
            "Give one text as a list of one row.",
        )
    ids = ids.astype(np.int64)
    refuse_outside("token_ids", torch.from_numpy(ids), vocab_size, "Was another tokenizer used?")
    return ids
