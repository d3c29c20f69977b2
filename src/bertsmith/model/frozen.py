"""Models for inference alone, whose layers are laid out once for the kernels of a CPU: in fp32, bf16 or of 8 bits."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertsmith.kernels.encoding import (
    LayerWeights,
    LinearWeights,
    LookUp,
    PackedLayers,
    StackShape,
    WordPrecision,
    embed,
    encodes,
)
from bertsmith.model.encoder import Encoder, PackedEncoder
from bertsmith.model.heads import Model
from bertsmith.model.int8 import Int8Linear, to_int8_layers
from bertsmith.model.packed import PackedTokens


def frozen(model: Model, precision: WordPrecision) -> Model:
    """A model for inference on a CPU with the weights that `model` has now. Neither knows of the other afterwards.

    Embeddings and norms stay in fp32, attention multiplies in bf16 unless all is in fp32, and heads in what the device
    has. A text's result depends on no other text, to the bit. Where the kernels cannot multiply in `precision`, torch
    does it: in fp32 or bf16 as the device has it, or with the same whole numbers of 8 bits, about as fast as in fp32.

    Args:
        model: with a transformer encoder; it stays as it is.
        precision: of the layers' products. `fp32`: within 1e-5 of what torch gives. `int8`: as in `Int8Linear`.

    Raises:
        ValueError: if the encoder is of another kind, or frozen.
    """
    if not isinstance(model.encoder, Encoder) or model.precision is not None:
        known = "" if model.precision is None else f", frozen in {model.precision}"
        raise ValueError(
            "Only a transformer encoder that is not frozen can be frozen. Received: one of family "
            f"{model.encoder.config.family}{known}. Use the model as it is."
        )
    with torch.inference_mode(False), torch.no_grad():
        twin = copy.deepcopy(model).cpu().float().eval().requires_grad_(False)
        encoder = twin.encoder
        assert isinstance(encoder, Encoder)
        encoder.embeddings.token.rows = None
        if precision == "int8":
            to_int8_layers(encoder.layers)
        if encodes(precision):
            twin.replace_encoder(FrozenEncoder(encoder, precision))
        encoder.precision = precision
        twin.encoder.register_state_dict_pre_hook(_refuse_to_save)
    return twin


class FrozenEncoder(PackedEncoder):
    """A transformer encoder whose layers are as they were when it was made.

    Args:
        encoder: on the CPU, whose embeddings it takes over. Its linear layers are all of 8 bits where `precision` is
            `int8`.
        precision: of the layers' products.
    """

    def __init__(self, encoder: Encoder, precision: WordPrecision) -> None:
        super().__init__()
        self.config, self.precision = encoder.config, precision
        self.embeddings, self.rotations, self.final_norm = encoder.embeddings, encoder.rotations, encoder.final_norm
        calls: list[Any] = encoder.calls
        own = {id(layer): _weights(layer) for layer in calls}
        self._rotation_of_layer = [layer.rotation_index for layer in calls]
        self._layers = PackedLayers([own[id(layer)] for layer in calls], _shape(encoder), precision)

    @torch.no_grad()
    def packed(self, packed: PackedTokens) -> Float[Tensor, "tokens hidden"]:
        """The last layer's output for every token."""
        return self.final_norm(self._run(self._embedded(packed), packed, slice(None)))

    def layer_outputs(self, packed: PackedTokens) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """The output of each layer in turn, from the first to the last; that is normalised where the family does."""
        with torch.no_grad():
            hidden = self._embedded(packed)
        last = len(self._layers) - 1
        for number in range(last + 1):
            with torch.no_grad():
                hidden = self._run(hidden, packed, slice(number, number + 1))
                seen = self.final_norm(hidden) if number == last else hidden
            yield seen

    def _embedded(self, packed: PackedTokens) -> Tensor:
        if not packed.token_ids.is_cpu:
            raise ValueError(
                f"A frozen encoder runs on the CPU. Received: tokens on {packed.token_ids.device}. "
                "Leave them there, or use the model that it was made of."
            )
        parts, config = self.embeddings, self.config
        ids: dict[nn.Embedding | None, Tensor | None] = {
            parts.token: packed.token_ids,
            parts.segment: packed.segment_ids if config.type_vocab_size > 1 else None,
            parts.position: packed.position_ids + config.position_offset,
        }
        tables = {table: found for table, found in ids.items() if table is not None}
        if not all(found is None or _holds(table, found) for table, found in tables.items()):
            return parts(packed)  # Which says what is wrong.
        return parts.projection(embed([LookUp(found, table.weight) for table, found in tables.items()], parts.norm))

    def _run(self, hidden: Tensor, packed: PackedTokens, layers: slice) -> Tensor:
        return self._layers.encode(hidden, packed.bounds, self._tables(packed, layers), layers=layers)

    def _tables(self, packed: PackedTokens, layers: slice) -> list[tuple[Tensor, Tensor]] | None:
        if self.config.rotary is None:
            return None
        made = [(turn.cosine.flatten(1), turn.sine.flatten(1)) for turn in self.rotations(packed.position_ids)]
        return [made[number] for number in self._rotation_of_layer[layers]]


def _refuse_to_save(module: nn.Module, prefix: str, keep_vars: bool) -> None:
    raise ValueError(
        "A frozen model has no weights to save. Received: a call of state_dict(). Save the model that it was made of."
    )


def _holds(table: nn.Embedding, ids: Tensor) -> bool:
    """Whether each id is a row of a table."""
    return not len(ids) or bool(ids.amin() >= 0 and ids.amax() < table.num_embeddings)


def _shape(encoder: Encoder) -> StackShape:
    config, modern = encoder.config, encoder.config.rotary is not None
    return StackShape(
        config.hidden_size, config.num_attention_heads, config.activation, gated=modern, norm_first=modern,
        causal=config.causal, eps=config.layer_norm_eps,
    )  # fmt: skip


def _weights(layer: Any) -> LayerWeights:
    attention, feed_forward = layer.attention, layer.feed_forward
    linears = (attention.query_key_value, attention.output, feed_forward.up, feed_forward.down)
    return LayerWeights(
        *(_linear(linear) for linear in linears),
        attention_norm=layer.attention_norm if isinstance(layer.attention_norm, nn.LayerNorm) else None,
        feed_forward_norm=layer.feed_forward_norm,
        half_window=attention.reach.half_window,
    )


def _linear(layer: nn.Module) -> LinearWeights:
    if isinstance(layer, Int8Linear):
        return layer.weights
    assert isinstance(layer, nn.Linear)
    return LinearWeights(layer.weight, layer.bias)
