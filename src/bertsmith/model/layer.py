"""Encoder layers, and the parts that they and the heads share."""

from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.kernels.activations import activate_gated
from bertsmith.kernels.linear import Linear, feed_forward
from bertsmith.kernels.residual_norm import Stream, add_and_norm, add_then_norm
from bertsmith.model.attention import ATTENTION, AttentionKind
from bertsmith.model.attention_reach import Reach
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.packed import AttentionLayout
from bertsmith.model.rotary import Rotation


def norm(config: EncoderConfig, width: int) -> nn.LayerNorm:
    """The encoder's norm over `width` columns."""
    return nn.LayerNorm(width, eps=config.layer_norm_eps, bias=config.has_biases)


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, on each token by itself."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.up = Linear(config.hidden_size, config.intermediate_size)
        self.activation = config.activation
        self.down = Linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens hidden"]:
        return feed_forward(hidden, self.up, self.down, self.activation)


class GatedFeedForward(nn.Module):
    """A feed-forward whose activated half is multiplied with a second one (Shazeer 2020), dropout before the way down.

    `up` holds both halves, one below the other: the activated one first.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.up = Linear(config.hidden_size, 2 * config.intermediate_size, bias=config.has_biases)
        self.activation = config.activation
        self.dropout = nn.Dropout(config.dropout.feed_forward)
        self.down = Linear(config.intermediate_size, config.hidden_size, bias=config.has_biases)

    def forward(self, hidden: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens hidden"]:
        return self.down(self.dropout(activate_gated(self.up(hidden), self.activation)))


def share(dropout: nn.Dropout) -> float:
    """Share of numbers that a dropout sets to zero as things are."""
    return dropout.p if dropout.training else 0.0


class PostNormLayer(nn.Module):
    """Attention and feed-forward, each followed by residual sum and norm (Devlin et al. 2019, figure 1)."""

    rotation_index = 0

    def __init__(self, config: EncoderConfig, attention: AttentionKind) -> None:
        super().__init__()
        self.attention = ATTENTION[attention](config, Reach(causal=config.causal))
        self.attention_dropout = nn.Dropout(config.dropout.attention_output)
        self.attention_norm = norm(config, config.hidden_size)
        self.feed_forward = FeedForward(config)
        self.feed_forward_dropout = nn.Dropout(config.dropout.feed_forward)
        self.feed_forward_norm = norm(config, config.hidden_size)

    def forward(self, stream: Stream, layout: AttentionLayout, rotation: Rotation | None) -> Stream:
        attended = self.attention(stream.matrix, layout, rotation)
        stream = add_then_norm(stream.exact, attended, self.attention_norm, share(self.attention_dropout))
        seen = self.feed_forward(stream.matrix)
        return add_then_norm(stream.exact, seen, self.feed_forward_norm, share(self.feed_forward_dropout))


class PreNormLayer(nn.Module):
    """Norm before attention and before a gated feed-forward, the residual stream left alone (Warner et al. 2024).

    Args:
        config: sizes.
        attention: which attention.
        number: place in the stack, from 0. The first layer has no norm before its attention, for the embeddings were
            normalised; and the place decides whether a token sees all of its sequence or a window.
    """

    def __init__(self, config: EncoderConfig, attention: AttentionKind, number: int) -> None:
        super().__init__()
        if config.rotary is None:
            raise ValueError("A pre-norm layer needs rotary positions. Received: none. Use family modern.")
        self.rotation_index = int(number % config.rotary.global_every > 0)
        half_window = config.rotary.window // 2 if self.rotation_index else None
        self.attention_norm = norm(config, config.hidden_size) if number else nn.Identity()
        self.attention = ATTENTION[attention](config, Reach(half_window=half_window))
        self.attention_dropout = nn.Dropout(config.dropout.attention_output)
        self.feed_forward_norm = norm(config, config.hidden_size)
        self.feed_forward = GatedFeedForward(config)

    def forward(self, stream: Stream, layout: AttentionLayout, rotation: Rotation | None) -> Stream:
        attended = self.attention(self.attention_norm(stream.exact), layout, rotation)
        stream = add_and_norm(stream.exact, attended, self.feed_forward_norm, share(self.attention_dropout))
        return Stream.of(stream.exact + self.feed_forward(stream.matrix))
