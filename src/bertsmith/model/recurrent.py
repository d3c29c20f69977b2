"""The ELMo encoder: a stack of LSTMs in each reading direction, over the same packed tokens as every other encoder.

Source: Peters et al. 2018, section 3. Two things are ours. Tokens are pieces of our tokenizers and not words built from
characters. And a cell is as wide as its direction, where the published model projects cells of 4096 to 512: LSTMs with
such a projection have no fast kernel on a CPU.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertsmith.model.attention import from_blocks, to_blocks
from bertsmith.model.encoder import PackedEncoder
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.packed import AttentionLayout, PackedTokens
from bertsmith.model.token_embedding import TokenEmbedding


class RecurrentEmbeddings(nn.Module):
    """Token embeddings, as wide as one direction. An LSTM needs no positions."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.token = TokenEmbedding(config.vocab_size, config.embedding_width)

    def forward(self, packed: PackedTokens) -> Float[Tensor, "tokens direction"]:
        return self.token(packed.token_ids)


class RecurrentLayer(nn.Module):
    """One LSTM in each direction. Neither sees the other."""

    def __init__(self, config: EncoderConfig, *, residual: bool) -> None:
        super().__init__()
        width = config.embedding_width
        self.forwards = nn.LSTM(width, width, batch_first=True)
        self.backwards = nn.LSTM(width, width, batch_first=True)
        self.dropout = nn.Dropout(config.dropout.feed_forward if residual else config.dropout.embeddings)
        self._residual = residual

    def forward(
        self,
        ahead: Float[Tensor, "tokens direction"],
        back: Float[Tensor, "tokens direction"],
        layout: AttentionLayout,
    ) -> tuple[Float[Tensor, "tokens direction"], Float[Tensor, "tokens direction"]]:
        """Both directions one layer further, each in its own order of reading."""
        return self._read(self.forwards, ahead, layout), self._read(self.backwards, back, layout)

    def _read(self, lstm: nn.LSTM, rows: Tensor, layout: AttentionLayout) -> Tensor:
        blocks = to_blocks(self.dropout(rows), layout)
        sizes = [group.sequences * group.longest for group in layout.groups]
        # Padding stands behind a sequence's last token, so no state that anyone reads has seen it.
        states = [
            lstm(block.view(group.sequences, group.longest, -1))[0].reshape(size, -1)
            for block, group, size in zip(blocks.split(sizes), layout.groups, sizes, strict=True)
        ]
        read = from_blocks(states[0] if len(states) == 1 else torch.cat(states), layout)
        return rows + read if self._residual else read


class RecurrentEncoder(PackedEncoder):
    """Forward and backward LSTMs over the same token embeddings (ELMo).

    The first half of an output is the forward direction's state, which has seen its token and those before it; the
    second half is the backward direction's, which has seen its token and those after it. Layers above the first add
    their input to their output.

    Args:
        config: `embedding_size` is the width of one direction, `hidden_size` that of both together.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = RecurrentEmbeddings(config)
        self.layers = nn.ModuleList(
            RecurrentLayer(config, residual=number > 0) for number in range(config.num_hidden_layers)
        )

    def packed(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        """The last layer's output for every token."""
        *_, last = self.layer_outputs(packed)
        return last

    def layer_outputs(self, packed: PackedTokens) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """The output of each layer in turn, from the first to the last."""
        yield from self._outputs(packed, self.embeddings(packed))

    def representations(self, packed: PackedTokens) -> list[Float[Tensor, "tokens hidden"]]:
        """What a `LayerMix` mixes: layer 0, which is the embedding twice, and the output of each layer."""
        embedded = self.embeddings(packed)
        return [torch.cat([embedded, embedded], dim=-1), *self._outputs(packed, embedded)]

    def _outputs(
        self, packed: PackedTokens, embedded: Float[Tensor, "tokens direction"]
    ) -> Iterator[Float[Tensor, "tokens hidden"]]:
        order = reading_backwards(packed)
        ahead, back = embedded, _Permute.apply(embedded, order)
        for layer in self.layers:
            ahead, back = layer(ahead, back, packed.layout)
            # The order undoes itself.
            yield torch.cat([ahead, _Permute.apply(back, order)], dim=-1)


@torch.no_grad()
def initialise_lstm(lstm: nn.LSTM, generator: torch.Generator) -> None:
    """Set the weights of an LSTM anew: matrices uniform within 1 / sqrt(width), biases 0, the forget gate's 1.

    So a cell begins by keeping what it holds (Jozefowicz et al. 2015, section 2.2), as the published ELMo does.
    """
    width = lstm.hidden_size
    for name, weight in lstm.named_parameters():
        if weight.ndim > 1:
            weight.uniform_(-(width**-0.5), width**-0.5, generator=generator)
        else:
            weight.zero_()
            # torch adds two biases, and keeps its gates in the order input, forget, cell, output.
            weight[width : 2 * width] = 1.0 if name == "bias_ih_l0" else 0.0


class LayerMix(nn.Module):
    """A learned mean of layers, scaled: what a task reads of a frozen ELMo (Peters et al. 2018, equation 1).

    Args:
        num_layers: how many layers there are to mix, the embedding counted.
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(num_layers))
        self.gamma = nn.Parameter(torch.ones(()))

    @property
    def weights(self) -> Float[Tensor, " layers"]:
        """The share of each layer."""
        return self.scores.softmax(0)

    def forward(self, layers: Float[Tensor, "layers rows hidden"]) -> Float[Tensor, "rows hidden"]:
        return self.gamma * torch.tensordot(self.weights, layers, dims=1)


def reading_backwards(packed: PackedTokens) -> Int[Tensor, " tokens"]:
    """For each place in the reversed reading, the token that stands there: each sequence turned round by itself.

    What only fills up the shape stays in its place.
    """
    starts = packed.sequence_starts
    places = torch.arange(len(packed.token_ids), device=starts.device)
    first_and_last = torch.repeat_interleave(starts[:-1] + starts[1:] - 1, starts.diff(), output_size=packed.num_tokens)
    places[: packed.num_tokens] = first_and_last - places[: packed.num_tokens]
    return places


class _Permute(torch.autograd.Function):
    """Rows in an order that undoes itself; backward is the same gather and no scatter-add, slow on a CPU."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor, order: Tensor) -> Tensor:
        ctx.save_for_backward(order)
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> tuple[Tensor, None]:
        (order,) = ctx.saved_tensors  # pyright: ignore[reportAttributeAccessIssue]
        return gradients[0].index_select(0, order), None
