"""All layers of an encoder at once for inference, in fp32, in bf16 or with numbers of 8 bits, on a CPU that multiplies
those.

Weights are laid out once, as the kernels read them, and nothing is kept for a backward pass. A thread takes a few
sequences through every layer before it turns to the next ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.activations import KINDS
from bertsmith.kernels.library import call, kernels

WordPrecision = Literal["fp32", "bf16", "int8"]
_NUMBERS: tuple[WordPrecision, ...] = ("fp32", "bf16", "int8")
"""The kinds of numbers in the order of `encoding.cpp`."""
_PANEL, _STEP = 32, 16
"""Columns of a panel, and of how many words a row is a multiple: those of `words.h`."""
_LARGEST = 127


def encodes(precision: WordPrecision) -> bool:
    """Whether the kernels are there: in fp32 where the processor has AVX-512, in bf16 where it has AMX or AVX-512 for
    bf16, with numbers of 8 bits where it has AMX or AVX-512's VNNI."""
    library = kernels().library
    return library is not None and bool(library.encodes(_NUMBERS.index(precision)))


def to_int8(weight: Float[Tensor, "out in"]) -> tuple[Int8[Tensor, "out in"], Float[Tensor, " out"]]:
    """A weight as whole numbers from -127 to 127, and what each row counts in."""
    steps = weight.abs().amax(1) / _LARGEST
    return (weight / steps.where(steps > 0, 1.0)[:, None]).round().to(torch.int8), steps


@dataclass(frozen=True)
class LinearWeights:
    """A linear layer, its weight in fp32 or of 8 bits."""

    weight: Float[Tensor, "out in"] | Int8[Tensor, "out in"]
    bias: Float[Tensor, " out"] | None
    steps: Float[Tensor, " out"] | None = None
    """Of a weight of 8 bits: what each row counts in."""


@dataclass(frozen=True)
class LayerWeights:
    """A layer of an encoder."""

    query_key_value: LinearWeights
    output: LinearWeights
    up: LinearWeights
    down: LinearWeights
    attention_norm: nn.LayerNorm | None
    feed_forward_norm: nn.LayerNorm
    half_window: int | None
    """How far a token sees to each side; None: to the end of its sequence."""


@dataclass(frozen=True)
class StackShape:
    """What all layers have in common."""

    width: int
    heads: int
    activation: str
    gated: bool
    norm_first: bool
    causal: bool
    eps: float

    @property
    def head_size(self) -> int:
        """Width of a head."""
        return self.width // self.heads


class PackedLayers:
    """Layers laid out for the kernels, as they were when this was made.

    Args:
        layers: in the order in which they are called; one that is named again is laid out once.
        shape: what they have in common.
        precision: of their products, and of attention, which with `int8` is in bf16. With `int8`, each linear layer
            is of 8 bits already.
    """

    def __init__(self, layers: Sequence[LayerWeights], shape: StackShape, precision: WordPrecision) -> None:
        self._shape, self._precision = shape, precision
        self._kept: list[Tensor] = []
        rows = {number: self._row(layer) for number, layer in {id(layer): layer for layer in layers}.items()}
        self._table = torch.tensor([rows[id(layer)] for layer in layers], dtype=torch.int64)

    def __len__(self) -> int:
        return len(self._table)

    def encode(
        self,
        hidden: Float[Tensor, "tokens width"],
        starts: Int[Tensor, " bounds"],
        angles: Sequence[tuple[Float[Tensor, "tokens head_size"], Float[Tensor, "tokens head_size"]]] | None = None,
        *,
        layers: slice = slice(None),
    ) -> Float[Tensor, "tokens width"]:
        """The residual stream after some layers, in fp32.

        Args:
            hidden: the stream before them.
            starts: first token of each sequence, from 0, and at the end the number of tokens.
            angles: cosines and sines for each of the layers, the sines negative in the first half of the columns; None
                where positions are no rotations.
            layers: which of them.
        """
        hidden, starts = hidden.float().contiguous(), starts.to(torch.int64).contiguous()
        table, shape = self._table[layers], self._shape
        tables = [part.float().contiguous() for pair in angles or () for part in pair]
        if tables:
            places = torch.tensor([part.data_ptr() for part in tables]).view(-1, 2)
            table = torch.cat([table[:, :-2], places], dim=1)
        out = torch.empty_like(hidden)
        call(
            "encode_tokens", _NUMBERS.index(self._precision), table.contiguous(), len(table), hidden, out, starts,
            len(starts) - 1, shape.width, shape.heads, shape.head_size, KINDS[shape.activation], shape.gated,
            shape.norm_first, shape.causal, shape.eps,
        )  # fmt: skip
        return out

    def _row(self, layer: LayerWeights) -> list[int]:
        """The fields of `Layer` in `encoding.cpp`."""
        shape = self._shape
        width, head = (_filled(size, _PANEL) for size in (shape.width, shape.head_size))
        halves = 2 if shape.gated else 1
        # Heads are filled up to whole panels, and so is what the next product reads of them; so is a gate's half.
        query_key_value = _rows_filled(layer.query_key_value, 3 * shape.heads, head)
        up = _rows_filled(layer.up, halves, _filled(len(layer.up.weight) // halves, _PANEL // halves))
        matrices = (
            _columns_filled(query_key_value, 1, width),
            _columns_filled(layer.output, shape.heads, head),
            _columns_filled(_interleaved(up) if shape.gated else up, 1, width),
            _columns_filled(layer.down, 1, len(up.weight) // halves),
        )
        norms = [
            part
            for norm in (layer.attention_norm, layer.feed_forward_norm)
            for part in ((None, None) if norm is None else (norm.weight, norm.bias))
        ]
        return [
            *(field for matrix in matrices for field in self._matrix(matrix)),
            *(0 if part is None else self._keep(_filled_up(part.float(), width)) for part in norms),
            -1 if layer.half_window is None else layer.half_window,
            *(0, 0),
        ]

    def _matrix(self, layer: LinearWeights) -> list[int]:
        weight, steps = layer.weight, layer.steps
        weight = weight.to({"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}[self._precision])
        in_word = 4 // weight.element_size()
        rows, columns = _filled(len(weight), _PANEL), _filled(weight.shape[1], _STEP * in_word)
        filled = _padded(weight, 0, columns - weight.shape[1], 0, rows - len(weight))
        panels = filled.view(rows // _PANEL, _PANEL, columns // in_word, in_word).transpose(1, 2)
        counted = [0, 0]
        if steps is not None:
            sums = weight.sum(1, dtype=torch.int64) * steps
            counted = [self._keep(_filled_up(part, rows)) for part in (steps, sums)]
        bias = torch.zeros(rows) if layer.bias is None else _filled_up(layer.bias.float(), rows)
        return [self._keep(panels), *counted, self._keep(bias), *panels.shape[:2]]

    def _keep(self, values: Tensor) -> int:
        # A copy in any case: the kernels must not read what an optimizer changes.
        self._kept.append(values.detach().clone(memory_format=torch.contiguous_format))
        return self._kept[-1].data_ptr()


@dataclass(frozen=True)
class LookUp:
    """Rows of a table, one for each token."""

    ids: Int[Tensor, " tokens"] | None
    """Each the number of a row; None: the first row for all."""
    table: Float[Tensor, "rows width"]


def embed(look_ups: Sequence[LookUp], norm: nn.LayerNorm) -> Float[Tensor, "tokens width"]:
    """The norm of the sum of the embeddings that a token has.

    Args:
        look_ups: in fp32, three at most, added up in their order. The first has ids.
        norm: of what is added up.
    """
    (ids, table), size = (look_ups[0].ids, look_ups[0].table), _filled(look_ups[0].table.shape[1], _STEP)
    assert ids is not None
    pairs = [(None if part.ids is None else part.ids.long(), part.table.contiguous()) for part in look_ups]
    pairs += [(None, None)] * (3 - len(pairs))
    weight, bias = (None if part is None else _filled_up(part, size) for part in (norm.weight, norm.bias))
    out = table.new_empty(len(ids), table.shape[1])
    call("embed_tokens", *(part for pair in pairs for part in pair), weight, bias, norm.eps, out, *out.shape)
    return out


def _filled_up(vector: Float[Tensor, " some"], size: int) -> Float[Tensor, " size"]:
    return _padded(vector, 0, size - len(vector))


def _padded(values: Tensor, *behind: int) -> Tensor:
    """As `functional.pad`, which copies also where there is nothing to add."""
    return functional.pad(values, behind) if any(behind) else values


def _filled(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _rows_filled(layer: LinearWeights, parts: int, size: int) -> LinearWeights:
    """Each of some equal parts of the outputs filled up with zeros."""

    def filled(values: Tensor) -> Tensor:
        split = values.detach().unflatten(0, (parts, -1))
        behind = (0, size - split.shape[1])
        return _padded(split, *(behind if split.ndim == 2 else (0, 0, *behind))).flatten(0, 1)

    return _changed(layer, filled)


def _columns_filled(layer: LinearWeights, parts: int, size: int) -> LinearWeights:
    """Each of some equal parts of the inputs filled up with zeros."""
    split = layer.weight.detach().unflatten(1, (parts, -1))
    return replace(layer, weight=_padded(split, 0, size - split.shape[2]).flatten(1))


def _interleaved(layer: LinearWeights) -> LinearWeights:
    """Both halves of a gated layer's outputs by turns, half a panel of each."""
    return _changed(layer, lambda values: values.unflatten(0, (2, -1, _PANEL // 2)).transpose(0, 1).flatten(0, 2))


def _changed(layer: LinearWeights, change: Callable[[Tensor], Tensor]) -> LinearWeights:
    """The same done to all that has a number or a row for each output."""
    bias, steps = (None if part is None else change(part) for part in (layer.bias, layer.steps))
    return LinearWeights(change(layer.weight), bias, steps)
