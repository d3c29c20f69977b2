"""Padded token ids as people give them, checked and packed."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int, Num
from torch import Tensor

from bertsmith.foundation.errors import InputError
from bertsmith.model import EncoderConfig, PackedTokens
from bertsmith.model.encoder import pack_padded

_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@dataclass(frozen=True)
class Padded:
    """Sequences that were padded to one length."""

    token_ids: Int[Tensor, "sequences length"]
    real: Bool[Tensor, "sequences length"]
    """False where a token is padding."""
    segment_ids: Int[Tensor, "sequences length"]

    @classmethod
    def checked(
        cls, config: EncoderConfig, token_ids: Any, attention_mask: Any = None, segment_ids: Any = None
    ) -> "Padded":
        """What was given, in one form.

        Args:
            config: of the encoder that will read them.
            token_ids: whole numbers ``[sequences, length]``.
            attention_mask: of the same shape, not 0 where a token is real; all are where it is None.
            segment_ids: of the same shape; 0 where None. Families without segments do not read them.

        Raises:
            InputError: for another type or shape, a sequence longer than the encoder's positions, or an id that the
                encoder has no embedding for.
        """
        ids = whole("token_ids", token_ids)
        if ids.ndim != 2:
            raise InputError(
                "token_ids must be [batch, sequence]", f"shape {tuple(ids.shape)}", "Give one text as token_ids[None]."
            )
        if ids.shape[1] > config.num_positions:
            raise InputError(
                "A sequence must not be longer than the encoder's positions",
                f"{ids.shape[1]} tokens, {config.num_positions} positions",
                "Cut it, or look at it in windows.",
            )
        real = torch.ones_like(ids, dtype=torch.bool)
        if attention_mask is not None:
            real = _of_shape("attention_mask", attention_mask, ids).bool()
        segments = torch.zeros_like(ids)
        if segment_ids is not None:
            segments = _of_shape("segment_ids", whole("segment_ids", segment_ids), ids).long()
        # Padding may hold any number: nobody looks it up.
        refuse_outside("token_ids", ids[real], config.vocab_size, "Was another tokenizer used?")
        if config.type_vocab_size > 1:
            refuse_outside("segment_ids", segments[real], config.type_vocab_size, "Give 0 or 1 for each token.")
        return cls(ids, real, segments)

    @property
    def places(self) -> Int[Tensor, "sequences length"]:
        """Place of each real token in its sequence, from 0."""
        return self.real.cumsum(1) - 1

    def packed(self, config: EncoderConfig) -> PackedTokens:
        """The same without padding."""
        return pack_padded(self.token_ids, self.real, self.segment_ids, skip=config.positions_skip_padding)

    def refuse_empty(self) -> None:
        """Raise an `InputError` for a sequence of which all is padding, or where there is no sequence."""
        empty = (~self.real.any(1)).nonzero()[:, 0].tolist()
        if empty or not len(self.real):
            raise InputError(
                "A sequence must have a token",
                f"only padding in row {empty[0]}" if empty else "no sequence",
                "Leave it out of the batch.",
            )

    def padded(self, rows: Num[Tensor, "tokens columns"], filling: float = 0.0) -> Num[Tensor, "sequences length _"]:
        """A row for each real token at its token's place, `filling` where there is padding."""
        found = rows.new_full((*self.token_ids.shape, rows.shape[1]), filling)
        return found.masked_scatter(self.real[..., None], rows)


def refuse_outside(name: str, ids: Tensor, count: int, do: str) -> None:
    """Raise an `InputError` unless all ids lie in ``[0, count)``."""
    wrong = ids[(ids < 0) | (ids >= count)]
    if len(wrong):
        raise InputError(f"{name} must lie in [0, {count})", int(wrong[0]), do)


def whole(name: str, value: Any, do: str = "Make one: torch.tensor(ids).") -> Tensor:
    """Whole numbers as int64; an `InputError` for anything else."""
    if not isinstance(value, Tensor) or value.dtype not in _WHOLE:
        kind = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise InputError(f"{name} must be a tensor of whole numbers", kind, do)
    return value.long()


def _of_shape(name: str, value: Any, like: Tensor) -> Tensor:
    if not isinstance(value, Tensor) or value.shape != like.shape:
        shape = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise InputError(
            f"{name} must have the shape of token_ids, {tuple(like.shape)}", shape, "Give one number for each token."
        )
    return value
