"""The encoder: embeddings and a stack of layers, without any head."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertsmith.model.attention import AttentionKind
from bertsmith.model.config import EncoderConfig
from bertsmith.model.layer import PostNormLayer
from bertsmith.model.packed import PackedTokens


class Embeddings(nn.Module):
    """Sum of token, position and segment embeddings, normalised (Devlin et al. 2019, figure 2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segment = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout.embeddings)

    def forward(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        total = self.token(packed.token_ids) + self.segment(packed.segment_ids) + self.position(packed.position_ids)
        return self.dropout(self.norm(total))


class Encoder(nn.Module):
    """A bidirectional transformer encoder.

    Call it with padded tokens, as people think of them, or call `packed` with packed ones, as training does.
    """

    def __init__(self, config: EncoderConfig, *, attention: AttentionKind = "fused") -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(PostNormLayer(config, attention) for _ in range(config.num_hidden_layers))

    def packed(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        """The last layer's output for every token."""
        hidden = self.embeddings(packed)
        for layer in self.layers:
            hidden = layer(hidden, packed.layout)
        return hidden

    def layer_outputs(self, packed: PackedTokens) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """The output of each layer in turn, from the first to the last."""
        hidden = self.embeddings(packed)
        for layer in self.layers:
            hidden = layer(hidden, packed.layout)
            yield hidden

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
        outputs = self.embeddings.token.weight.new_zeros((*token_ids.shape, self.config.hidden_size))
        if not real.any():
            return outputs
        if token_ids.shape[1] > self.config.max_position_embeddings:
            raise ValueError(
                "A sequence must not be longer than the encoder's positions. "
                f"Received: {token_ids.shape[1]} tokens, {self.config.max_position_embeddings} positions. "
                "Cut it, or look at it in windows."
            )
        hidden = self.packed(pack_padded(token_ids, real, segment_ids))
        # The encoder may run in a lower precision than its weights have.
        return outputs.to(hidden.dtype).masked_scatter(real[..., None], hidden)


def pack_padded(
    token_ids: Int[Tensor, "batch sequence"],
    real: Bool[Tensor, "batch sequence"],
    segment_ids: Int[Tensor, "batch sequence"],
) -> PackedTokens:
    """Pack padded sequences. Positions stay what they were in the padded ones; empty sequences are left out."""
    lengths = real.sum(1)
    lengths = lengths[lengths > 0]
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    positions = torch.arange(token_ids.shape[1], device=token_ids.device).expand_as(token_ids)
    packed = PackedTokens.build(
        token_ids[real].cpu().numpy(),
        segment_ids[real].cpu().numpy(),
        starts.cpu().numpy(),
        positions[real].cpu().numpy(),
    )
    return packed.to(token_ids.device)
