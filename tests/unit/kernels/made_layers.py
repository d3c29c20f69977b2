"""Layers of an encoder with random weights, and the same by the book in float64."""

from collections.abc import Callable, Sequence

import torch
from dense_attention import dense_attention, made_packed
from exact_results import random
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.encoding import LayerWeights, LinearWeights, StackShape, WordPrecision, to_int8
from bertsmith.model.attention_reach import Reach

Product = Callable[[Tensor, LinearWeights], Tensor]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_tanh": lambda values: functional.gelu(values, approximate="tanh"),
    "relu": functional.relu,
}


def made_linear(out: int, into: int, precision: WordPrecision, *, bias: bool = True, seed: int = 0) -> LinearWeights:
    """With a weight that the precision can hold."""
    weight = random(out, into, seed=seed) * into**-0.5
    layer = LinearWeights(weight, random(out, seed=seed + 1) if bias else None)
    if precision == "int8":
        return of_eight_bits(layer)
    return layer if precision == "fp32" else LinearWeights(weight.bfloat16().float(), layer.bias)


def of_eight_bits(layer: LinearWeights) -> LinearWeights:
    weight, steps = to_int8(layer.weight)
    return LinearWeights(weight, layer.bias, steps)


def made_norm(width: int, *, bias: bool = True, seed: int = 0) -> nn.LayerNorm:
    norm = nn.LayerNorm(width, eps=1e-5, bias=bias)
    with torch.no_grad():
        norm.weight.copy_(1 + 0.3 * random(width, seed=seed))
        if bias:
            norm.bias.copy_(random(width, seed=seed + 1))
    return norm


def made_layer(
    shape: StackShape,
    between: int,
    precision: WordPrecision,
    *,
    bias: bool = True,
    half_window: int | None = None,
    seed: int = 0,
) -> LayerWeights:
    """A layer with `between` columns between the products of its feed-forward."""
    width, halves = shape.width, 2 if shape.gated else 1
    sizes = [(3 * width, width), (width, width), (halves * between, width), (width, between)]
    return LayerWeights(
        *(
            made_linear(out, into, precision, bias=bias, seed=seed + 10 * number)
            for number, (out, into) in enumerate(sizes)
        ),
        attention_norm=made_norm(width, bias=bias, seed=seed + 50),
        feed_forward_norm=made_norm(width, bias=bias, seed=seed + 60),
        half_window=half_window,
    )


def exact_product(values: Tensor, layer: LinearWeights) -> Tensor:
    """With the weight as the kernels hold it, and what goes in as it is."""
    weight = layer.weight.double()
    if layer.steps is not None:
        weight = weight * layer.steps.double()[:, None]
    return functional.linear(values, weight, None if layer.bias is None else layer.bias.double())


def counted_product(values: Tensor, layer: LinearWeights) -> Tensor:
    """With each row of what goes in counted in 255 steps."""
    low, high = values.amin(-1, keepdim=True).clamp(max=0), values.amax(-1, keepdim=True).clamp(min=0)
    step = (high - low) / 255
    return exact_product(((values - low) / step).round() * step + low, layer)


@torch.no_grad()
def by_the_book(
    layer: LayerWeights,
    shape: StackShape,
    hidden: Tensor,
    lengths: Sequence[int],
    *,
    angles: Tensor | None = None,
    product: Product = exact_product,
) -> Tensor:
    """A layer in float64; `angles` ``[tokens, head_size / 2]`` turn queries and keys."""

    def normed(values: Tensor, norm: nn.LayerNorm | None) -> Tensor:
        if norm is None:
            return values
        bias = None if norm.bias is None else norm.bias.double()
        return functional.layer_norm(values, (shape.width,), norm.weight.double(), bias, norm.eps)

    def first(values: Tensor, norm: nn.LayerNorm | None) -> Tensor:
        return normed(values, norm) if shape.norm_first else values

    def last(values: Tensor, norm: nn.LayerNorm | None) -> Tensor:
        return values if shape.norm_first else normed(values, norm)

    stream = hidden.double()
    rows = product(first(stream, layer.attention_norm), layer.query_key_value)
    rows = rows.view(len(rows), 3, shape.heads, shape.head_size)
    packed = made_packed(shape.heads, 2, lengths=lengths)
    packed = type(packed)(packed.rows, packed.lengths, packed.groups, angles)
    found = dense_attention(rows, packed, Reach(causal=shape.causal, half_window=layer.half_window)).flatten(1)
    stream = last(stream + product(found, layer.output), layer.attention_norm)
    between = product(first(stream, layer.feed_forward_norm), layer.up)
    activate = ACTIVATIONS[shape.activation]
    if shape.gated:
        activated, gate = between.chunk(2, dim=-1)
        between = activate(activated) * gate
    else:
        between = activate(between)
    return last(stream + product(between, layer.down), layer.feed_forward_norm)
