"""Self-attention over packed tokens, in two parts that are chosen when a model is built and share their weights.

`fused` is the fast one. `recording` computes the same by the book and keeps the weights, for people who want to look.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.attention import attend
from bertsmith.kernels.library import usable
from bertsmith.kernels.linear import Linear
from bertsmith.model.attention_reach import Reach
from bertsmith.model.blocked_attention import blocked_attention
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.packed import AttentionLayout, SequenceGroup
from bertsmith.model.rotary import Rotation, rotate

AttentionKind = Literal["fused", "recording"]


class _Rearrange(torch.autograd.Function):
    """Take rows by index, where backward is a plain gather or placement too.

    The general backward of an index is a scatter-add, slow on a CPU. Here every row that carries a gradient stands in
    exactly one place, so none is added to another.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, inverse: Tensor, inverse_covers_all: bool) -> Tensor:
        ctx.save_for_backward(index, inverse)
        ctx.inverse_covers_all = inverse_covers_all
        ctx.num_rows = len(rows)
        return rows.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = gradients
        index, inverse = ctx.saved_tensors
        if ctx.inverse_covers_all:
            return gradient.index_select(0, inverse), None, None, None
        spread = gradient.new_zeros((ctx.num_rows, *gradient.shape[1:]))
        return spread.index_copy_(0, index, gradient), None, None, None


def to_blocks(rows: Float[Tensor, "tokens width"], layout: AttentionLayout) -> Float[Tensor, "rows width"]:
    """The padded blocks of a layout, one after the other. What is computed for padding must not be read."""
    # Padding rows receive no gradient: their keys are masked and nobody reads what their queries find. So the gradient
    # of a token is that of its one real row.
    if layout.to_blocks is None:
        return rows
    return _Rearrange.apply(rows, layout.to_blocks, layout.from_blocks, True)  # pyright: ignore[reportReturnType]


def from_blocks(rows: Float[Tensor, "rows width"], layout: AttentionLayout) -> Float[Tensor, "tokens width"]:
    """The rows of the tokens out of a layout's blocks."""
    if layout.from_blocks is None:
        return rows
    return _Rearrange.apply(rows, layout.from_blocks, layout.to_blocks, False)  # pyright: ignore[reportReturnType]


def _seen(
    group: SequenceGroup, reach: Reach, device: torch.device
) -> Bool[Tensor, "#sequences 1 #longest longest"] | None:
    """True where a query may look at a key; None where each may look at all."""
    near = reach.mask(group.longest, device)
    if near is None:
        return group.key_mask
    if group.key_mask is None:
        return near[None, None]
    # A padding query may have nothing real in its window; it sees itself then, since nothing at all would give NaN.
    return group.key_mask & near | torch.eye(group.longest, dtype=torch.bool, device=device)


class SelfAttention(nn.Module, ABC):
    """Multi-head self-attention in which a token sees its own sequence and nothing else.

    Source: Vaswani et al. 2017, section 3.2; Devlin et al. 2019, section 3.

    Args:
        config: sizes.
        reach: how far a token sees in its sequence.
    """

    def __init__(self, config: EncoderConfig, reach: Reach) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.head_size = config.head_size
        self.reach = reach
        self.weights_dropout = config.dropout.attention_weights
        self.query_key_value = Linear(config.hidden_size, 3 * config.hidden_size, bias=config.has_biases)
        self.output = Linear(config.hidden_size, config.hidden_size, bias=config.has_biases)

    def forward(
        self, hidden: Float[Tensor, "tokens hidden"], layout: AttentionLayout, rotation: Rotation | None
    ) -> Float[Tensor, "tokens hidden"]:
        rows = self.query_key_value(hidden)
        return self.output(self._contexts(rows, layout, rotation))

    def _contexts(self, rows: Tensor, layout: AttentionLayout, rotation: Rotation | None) -> Tensor:
        """What each token finds, ``[tokens, hidden]``, from query, key and value side by side."""
        if not layout.groups:
            return rows[:, : self.num_heads * self.head_size]
        if rotation is not None:
            rows = rotate(rows.view(len(rows), 3, self.num_heads, self.head_size), rotation).view(rows.shape)
        rows = to_blocks(rows, layout)
        sizes = [group.sequences * group.longest for group in layout.groups]
        contexts = [
            self._attend(block.view(group.sequences, group.longest, 3, self.num_heads, self.head_size), group)
            for block, group in zip(rows.split(sizes), layout.groups, strict=True)
        ]
        flat = [context.reshape(size, -1) for context, size in zip(contexts, sizes, strict=True)]
        return from_blocks(flat[0] if len(flat) == 1 else torch.cat(flat), layout)

    @abstractmethod
    def _attend(
        self, query_key_value: Float[Tensor, "sequences longest 3 heads head_size"], group: SequenceGroup
    ) -> Float[Tensor, "sequences longest heads head_size"]: ...


class FusedSelfAttention(SelfAttention):
    """Attention by the fastest kernel there is, none of which holds the weights of a whole batch.

    On a CPU, torch's kernel is the fastest forward, but its backward in bf16 takes ten times as long as matrix products
    do; so where a gradient is wanted there, our own takes over. So it does where a token sees a small part of a long
    sequence, since torch's kernel would make all scores and hide most.
    """

    def _contexts(self, rows: Tensor, layout: AttentionLayout, rotation: Rotation | None) -> Tensor:
        if not usable(rows):
            return super()._contexts(rows, layout, rotation)
        split = rows.view(len(rows), 3, self.num_heads, self.head_size)
        tables = (None, None) if rotation is None else (rotation.cosine.flatten(1), rotation.sine.flatten(1))
        dropout = self.weights_dropout if self.training else 0.0
        return attend(split, [group.block for group in layout.groups], self.reach, dropout, *tables).flatten(1)

    def _attend(
        self, query_key_value: Float[Tensor, "sequences longest 3 heads head_size"], group: SequenceGroup
    ) -> Float[Tensor, "sequences longest heads head_size"]:
        dropout = self.weights_dropout if self.training else 0.0
        if query_key_value.is_cpu and (query_key_value.requires_grad or self.reach.sees_little_of(group.longest)):
            return blocked_attention(query_key_value, group.key_mask, dropout, self.reach)
        query, key, value = query_key_value.transpose(1, 3).unbind(2)
        mask = _seen(group, self.reach, query.device)
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        return context.transpose(1, 2)


class RecordingSelfAttention(SelfAttention):
    """Attention by the book. `recorded` holds the weights of the last call, a block a group of sequences."""

    def __init__(self, config: EncoderConfig, reach: Reach) -> None:
        super().__init__(config, reach)
        self.recorded: list[Float[Tensor, "sequences heads longest longest"]] = []

    def forward(
        self, hidden: Float[Tensor, "tokens hidden"], layout: AttentionLayout, rotation: Rotation | None
    ) -> Float[Tensor, "tokens hidden"]:
        self.recorded = []
        return super().forward(hidden, layout, rotation)

    def _attend(
        self, query_key_value: Float[Tensor, "sequences longest 3 heads head_size"], group: SequenceGroup
    ) -> Float[Tensor, "sequences longest heads head_size"]:
        query, key, value = query_key_value.transpose(1, 3).unbind(2)
        scores = query @ key.transpose(-1, -2) / self.head_size**0.5
        mask = _seen(group, self.reach, query.device)
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        self.recorded.append(weights.detach())
        return (functional.dropout(weights, self.weights_dropout, self.training) @ value).transpose(1, 2)


ATTENTION: dict[AttentionKind, type[SelfAttention]] = {
    "fused": FusedSelfAttention,
    "recording": RecordingSelfAttention,
}
