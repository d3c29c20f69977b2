"""Packed tokens: the sequences of a batch one after the other, without padding.

Embedding, linear layers, norms and loss see a plain ``[tokens, hidden]`` matrix. Only attention needs to know where
sequences begin, and it finds it in the `AttentionLayout`: sequences of like length stand in a group, so that a group's
padded view wastes little.

Shapes come from a short list. Each new shape makes a CPU compile kernels and keep them, which for thousands of shapes
costs gigabytes and most of the time; so lengths of groups are rounded up, and a batch may be filled up to a round
number of tokens.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bertsmith.kernels.attention import SequenceBlock

_GROUP_LENGTHS = np.array([16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192])
"""Lengths to which the sequences of a group are padded inside attention. Longer ones are padded to their own length."""
_FILLING_LENGTH = 16


@dataclass(frozen=True)
class SequenceGroup:
    """Sequences that attention takes as one padded block ``[sequences, longest]``."""

    sequences: int
    longest: int
    key_mask: Bool[Tensor, "sequences 1 1 longest"] | None
    """True where a key is real; None where no row is padding."""
    block: SequenceBlock
    """The same, as the kernels for a CPU read it."""


@dataclass(frozen=True)
class AttentionLayout:
    """How packed tokens become the padded blocks of attention, and back."""

    groups: tuple[SequenceGroup, ...]
    to_blocks: Int[Tensor, " rows"] | None
    """Token of each row of all blocks, blocks one after the other. None where rows are the tokens as they stand."""
    from_blocks: Int[Tensor, " tokens"] | None
    """Row of each token. None with `to_blocks`."""

    @classmethod
    def of(cls, sequence_starts: Int[np.ndarray, " bounds"]) -> "AttentionLayout":
        """The layout for sequences that begin and end at `sequence_starts`."""
        lengths = np.diff(sequence_starts)
        groups: list[SequenceGroup] = []
        to_blocks: list[np.ndarray] = []
        from_blocks = np.empty(int(sequence_starts[-1]), np.int64)
        first_row = 0
        for longest, members in _groups_of_like_length(lengths):
            columns = np.arange(longest)
            real = columns < lengths[members][:, None]
            # A padding row points at its sequence's first token: a real row, so that what attention computes there is
            # finite, and nobody reads it.
            token = sequence_starts[members][:, None] + np.where(real, columns, 0)
            rows = first_row + np.arange(token.size).reshape(token.shape)
            from_blocks[token[real]] = rows[real]
            to_blocks.append(token.ravel())
            mask = None if real.all() else torch.from_numpy(real[:, None, None, :])
            starts, own_lengths = (
                torch.from_numpy(values[members].astype(np.int64)) for values in (sequence_starts[:-1], lengths)
            )
            groups.append(SequenceGroup(len(members), longest, mask, SequenceBlock(starts, own_lengths, longest)))
            first_row += token.size
        gathered = np.concatenate(to_blocks) if to_blocks else np.empty(0, np.int64)
        if np.array_equal(gathered, np.arange(len(from_blocks))):
            return cls(tuple(groups), None, None)
        return cls(tuple(groups), torch.from_numpy(gathered), torch.from_numpy(from_blocks))

    def to(self, device: torch.device | str) -> "AttentionLayout":
        """The same layout on `device`."""
        if self.to_blocks is None or self.from_blocks is None:
            return self if all(group.key_mask is None for group in self.groups) else self._masks_to(device)
        moved = replace(
            self,
            to_blocks=self.to_blocks.to(device, non_blocking=True),
            from_blocks=self.from_blocks.to(device, non_blocking=True),
        )
        return moved._masks_to(device)

    def _masks_to(self, device: torch.device | str) -> "AttentionLayout":
        groups = tuple(
            group if group.key_mask is None else replace(group, key_mask=group.key_mask.to(device, non_blocking=True))
            for group in self.groups
        )
        return replace(self, groups=groups)


def _groups_of_like_length(
    lengths: Int[np.ndarray, " sequences"],
) -> list[tuple[int, Int[np.ndarray, " members"]]]:
    """The length that each group of sequences is padded to, and the group's members; short groups first."""
    if len(lengths) and (lengths == lengths[0]).all():
        return [(int(lengths[0]), np.arange(len(lengths)))]
    place = np.searchsorted(_GROUP_LENGTHS, lengths)
    rounded = np.where(place < len(_GROUP_LENGTHS), _GROUP_LENGTHS[np.minimum(place, len(_GROUP_LENGTHS) - 1)], lengths)
    return [(int(length), np.flatnonzero(rounded == length)) for length in np.unique(rounded)]


@dataclass(frozen=True)
class PackedTokens:
    """The sequences of a batch, one after the other, without padding. Sequences never attend to each other."""

    token_ids: Int[Tensor, " tokens"]
    segment_ids: Int[Tensor, " tokens"]
    position_ids: Int[Tensor, " tokens"]
    sequence_starts: Int[Tensor, " sequences_plus_one"]
    layout: AttentionLayout
    num_tokens: int
    """Tokens of all sequences together; what follows them only fills up the shape."""

    def __post_init__(self) -> None:
        for name in ("token_ids", "segment_ids", "position_ids", "sequence_starts"):
            value = getattr(self, name)
            if value.dtype not in (torch.int32, torch.int64) or value.ndim != 1:
                raise ValueError(
                    f"{name} must be a vector of int32 or int64. Received: {value.dtype} of shape {tuple(value.shape)}."
                )
        if not len(self.token_ids) == len(self.segment_ids) == len(self.position_ids):
            raise ValueError(
                "token_ids, segment_ids and position_ids must have one entry a token. Received: "
                f"{len(self.token_ids)}, {len(self.segment_ids)} and {len(self.position_ids)}."
            )

    @classmethod
    def build(
        cls,
        token_ids: Int[np.ndarray, " tokens"],
        segment_ids: Int[np.ndarray, " tokens"],
        sequence_starts: Int[np.ndarray, " sequences_plus_one"],
        position_ids: Int[np.ndarray, " tokens"] | None = None,
        *,
        multiple: int = 1,
    ) -> "PackedTokens":
        """Pack arrays.

        Args:
            token_ids: the tokens of all sequences.
            segment_ids: 0 or 1 for each token.
            sequence_starts: first token of each sequence, and at the end the number of tokens.
            position_ids: place of each token in its sequence; counted from 0 where not given.
            multiple: fill the tokens up to a multiple of this with a sequence of zeros that no count includes.
        """
        starts = np.asarray(sequence_starts, np.int64)
        if not len(starts) or starts[0] or starts[-1] != len(token_ids) or (np.diff(starts) < 1).any():
            raise ValueError(
                "sequence_starts must rise from 0 to the number of tokens. "
                f"Received: {starts[:8].tolist()} … for {len(token_ids)} tokens."
            )
        if position_ids is None:
            position_ids = np.arange(len(token_ids)) - np.repeat(starts[:-1], np.diff(starts))
        num_tokens = int(starts[-1])
        filling = -num_tokens % multiple
        # The filling attends to itself in pieces, so that it never makes a group of its own length.
        filling_starts = num_tokens + np.append(np.arange(_FILLING_LENGTH, filling, _FILLING_LENGTH), filling)
        return cls(
            torch.from_numpy(np.pad(np.asarray(token_ids, np.int64), (0, filling))),
            torch.from_numpy(np.pad(np.asarray(segment_ids, np.int64), (0, filling))),
            torch.from_numpy(np.pad(np.asarray(position_ids, np.int64), (0, filling))),
            torch.from_numpy(starts),
            AttentionLayout.of(np.concatenate([starts, filling_starts]) if filling else starts),
            num_tokens,
        )

    @property
    def num_sequences(self) -> int:
        """Number of sequences."""
        return len(self.sequence_starts) - 1

    @property
    def bounds(self) -> Int[Tensor, " bounds"]:
        """Where sequences begin, and the number of tokens; what fills up the shape counts as a sequence."""
        filling = len(self.token_ids) > self.num_tokens
        ends = self.sequence_starts.new_full((1,), len(self.token_ids))
        return torch.cat([self.sequence_starts, ends]) if filling else self.sequence_starts

    def to(self, device: torch.device | str) -> "PackedTokens":
        """The same tokens on `device`."""
        return replace(
            self,
            token_ids=self.token_ids.to(device, non_blocking=True),
            segment_ids=self.segment_ids.to(device, non_blocking=True),
            position_ids=self.position_ids.to(device, non_blocking=True),
            sequence_starts=self.sequence_starts.to(device, non_blocking=True),
            layout=self.layout.to(device),
        )
