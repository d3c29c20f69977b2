"""The encoder: embeddings and a stack of layers, without any head."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertsmith.kernels.encoding import WordPrecision
from bertsmith.kernels.residual_norm import Stream
from bertsmith.model.attention import AttentionKind, RecordingSelfAttention
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.layer import PostNormLayer, PreNormLayer, norm
from bertsmith.model.packed import PackedTokens
from bertsmith.model.rotary import LearnedPositions, RotaryPositions
from bertsmith.model.token_embedding import TokenEmbedding


class Embeddings(nn.Module):
    """Sum of the embeddings that a family has, normalised (Devlin et al. 2019, figure 2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.embedding_width
        self.token = TokenEmbedding(config.vocab_size, width)
        self.position = None if config.rotary else nn.Embedding(config.max_position_embeddings, width)
        self.segment = nn.Embedding(config.type_vocab_size, width) if config.type_vocab_size else None
        self.norm = norm(config, width)
        self.dropout = nn.Dropout(config.dropout.embeddings)
        self.projection = nn.Linear(width, config.hidden_size) if config.embedding_size else nn.Identity()
        self._position_offset = config.position_offset
        added: list[Callable[[PackedTokens], Tensor]] = []
        if config.type_vocab_size:
            added.append(self._segments if config.type_vocab_size > 1 else self._one_segment)
        if config.rotary is None:
            added.append(self._positions)
        self._added = tuple(added)

    def forward(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        total = self.token(packed.token_ids)
        for part in self._added:
            total = total + part(packed)
        return self.projection(self.dropout(self.norm(total)))

    def _segments(self, packed: PackedTokens) -> Tensor:
        return self.segment(packed.segment_ids)  # pyright: ignore[reportOptionalCall]

    def _one_segment(self, packed: PackedTokens) -> Tensor:
        return self.segment.weight[0]  # pyright: ignore[reportOptionalMemberAccess]

    def _positions(self, packed: PackedTokens) -> Tensor:
        return self.position(packed.position_ids + self._position_offset)  # pyright: ignore[reportOptionalCall]


class PackedEncoder(nn.Module, ABC):
    """What every encoder offers: packed tokens in, one vector a token out, from the last layer or from each."""

    config: EncoderConfig
    precision: WordPrecision | None = None
    """Of the layers' products, where it is settled; None: as the device has it."""

    @abstractmethod
    def layer_outputs(self, packed: PackedTokens) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """The output of each layer in turn, from the first to the last."""

    @abstractmethod
    def packed(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        """The last layer's output for every token."""

    def forward(
        self,
        token_ids: Int[Tensor, "batch sequence"],
        attention_mask: Int[Tensor, "batch sequence"] | Bool[Tensor, "batch sequence"] | None = None,
        segment_ids: Int[Tensor, "batch sequence"] | None = None,
    ) -> Float[Tensor, "batch sequence hidden"]:
        """Encode padded sequences.

        Args:
            token_ids: tokens, padded to one length.
            attention_mask: not 0 where a token is real; all are where not given.
            segment_ids: segment of each token; 0 where not given.

        Returns:
            the last layer's output; 0 where a token is padding, also in a sequence that is nothing else.

        Raises:
            ValueError: if a sequence is longer than the encoder has positions.
        """
        real = torch.ones_like(token_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        if segment_ids is None:
            segment_ids = torch.zeros_like(token_ids)
        outputs = next(self.parameters()).new_zeros((*token_ids.shape, self.config.hidden_size))
        if not real.any():
            return outputs
        if token_ids.shape[1] > self.config.num_positions:
            raise ValueError(
                "A sequence must not be longer than the encoder's positions. "
                f"Received: {token_ids.shape[1]} tokens, {self.config.num_positions} positions. "
                "Cut it, or look at it in windows."
            )
        hidden = self.packed(pack_padded(token_ids, real, segment_ids, skip=self.config.positions_skip_padding))
        # The encoder may run in a lower precision than its weights have.
        return outputs.to(hidden.dtype).masked_scatter(real[..., None], hidden)


class Encoder(PackedEncoder):
    """A transformer encoder of any family; which parts it has, its config says.

    Call it with padded tokens, as people think of them, or call `packed` with packed ones, as training does.
    """

    def __init__(self, config: EncoderConfig, *, attention: AttentionKind = "fused") -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(_own_layers(config, attention))
        self.final_norm = norm(config, config.hidden_size) if config.rotary else nn.Identity()
        self.rotations = RotaryPositions(config) if config.rotary else LearnedPositions()
        self._run: Callable[..., Stream] = _run

    def recompute_activations(self, on: bool) -> None:
        """Whether a layer's inner values are made again in the backward pass and not kept: less memory, more time."""
        self._run = _run_and_forget if on else _run

    def packed(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        """The last layer's output for every token."""
        last = deque(self._residual_stream(packed), maxlen=1)
        return self.final_norm(last[0])

    def layer_outputs(self, packed: PackedTokens) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """The output of each layer in turn, from the first to the last; that is normalised where the family does."""
        stream = self._residual_stream(packed)
        hidden = next(stream)
        for following in stream:
            yield hidden
            hidden = following
        yield self.final_norm(hidden)

    def attention_weights(
        self, packed: PackedTokens
    ) -> Iterator[list[Float[Tensor, "sequences heads longest longest"]]]:
        """The attention weights of each layer in turn, one block for each group of sequences in the layout.

        A layer that serves several times gives the weights of every call.

        Raises:
            ValueError: if the attention is of a kind that keeps no weights.
        """
        for layer in self.layers:
            if not isinstance(layer.attention, RecordingSelfAttention):
                raise ValueError(
                    "Attention weights need an encoder that keeps them. Received: one with fused attention. "
                    'Build it with attention="recording".'
                )
        return self._recorded(packed)

    def _recorded(self, packed: PackedTokens) -> Iterator[list[Tensor]]:
        for layer, _ in zip(self.calls, self._residual_stream(packed), strict=True):
            yield layer.attention.recorded  # pyright: ignore[reportAttributeAccessIssue, reportReturnType]

    @property
    def calls(self) -> list[nn.Module]:
        """The layers in the order in which they are called."""
        served = self.config.num_hidden_layers // len(self.layers)
        return [layer for layer in self.layers for _ in range(served)]

    def _residual_stream(self, packed: PackedTokens) -> Iterator[Tensor]:
        stream = Stream.of(self.embeddings(packed))
        rotations = self.rotations(packed.position_ids)
        for layer in self.calls:
            stream = self._run(layer, stream, packed.layout, rotations[layer.rotation_index])
            yield stream.exact


def _own_layers(config: EncoderConfig, attention: AttentionKind) -> Iterator[nn.Module]:
    """The layers that have weights of their own."""
    for number in range(config.num_hidden_groups or config.num_hidden_layers):
        yield PreNormLayer(config, attention, number) if config.rotary else PostNormLayer(config, attention)


def _run(layer: nn.Module, *inputs: Any) -> Stream:
    return layer(*inputs)


def _run_and_forget(layer: nn.Module, *inputs: Any) -> Stream:
    return checkpoint(layer, *inputs, use_reentrant=False)  # pyright: ignore[reportReturnType]


def pack_padded(
    token_ids: Int[Tensor, "batch sequence"],
    real: Bool[Tensor, "batch sequence"],
    segment_ids: Int[Tensor, "batch sequence"],
    *,
    skip: bool = False,
) -> PackedTokens:
    """Pack padded sequences; empty ones are left out.

    Args:
        token_ids: tokens.
        real: False where a token is padding.
        segment_ids: segment of each token.
        skip: whether positions skip padding, as RoBERTa counts them; otherwise a token's column is its position.
    """
    lengths = real.sum(1)
    lengths = lengths[lengths > 0]
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    columns = torch.arange(token_ids.shape[1], device=token_ids.device).expand_as(token_ids)
    positions = real.cumsum(1) - 1 if skip else columns
    packed = PackedTokens.build(
        token_ids[real].cpu().numpy(),
        segment_ids[real].cpu().numpy(),
        starts.cpu().numpy(),
        positions[real].cpu().numpy(),
    )
    return packed.to(token_ids.device)
