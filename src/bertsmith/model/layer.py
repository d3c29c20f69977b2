"""One encoder layer, and the parts that it and the heads share."""

from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.model.attention import ATTENTION, AttentionKind
from bertsmith.model.config import Activation, EncoderConfig
from bertsmith.model.packed import AttentionLayout


def activation(name: Activation) -> nn.Module:
    """The module for an activation's name."""
    match name:
        case "gelu":
            return nn.GELU()
        case "gelu_tanh":
            return nn.GELU(approximate="tanh")
        case "relu":
            return nn.ReLU()


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, on each token by itself."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = activation(config.activation)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens hidden"]:
        return self.down(self.activation(self.up(hidden)))


class PostNormLayer(nn.Module):
    """Attention and feed-forward, each followed by residual sum and norm (Devlin et al. 2019, figure 1)."""

    def __init__(self, config: EncoderConfig, attention: AttentionKind) -> None:
        super().__init__()
        self.attention = ATTENTION[attention](config)
        self.attention_dropout = nn.Dropout(config.dropout.attention_output)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_dropout = nn.Dropout(config.dropout.feed_forward)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(
        self, hidden: Float[Tensor, "tokens hidden"], layout: AttentionLayout
    ) -> Float[Tensor, "tokens hidden"]:
        attended = self.attention_dropout(self.attention(hidden, layout))
        hidden = self.attention_norm(hidden + attended)
        return self.feed_forward_norm(hidden + self.feed_forward_dropout(self.feed_forward(hidden)))
