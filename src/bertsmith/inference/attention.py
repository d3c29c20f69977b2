"""Attention weights of a text or a pair, with the tokens that they stand between."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.engine.device import Device
from bertsmith.examples.task_examples import kept_windows
from bertsmith.foundation.errors import InputError
from bertsmith.inference.fill import HUB_MASK
from bertsmith.inference.predictor import refuse_blank, text_values
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.model.recording import attention_weights, recording_twin
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.readable import readable_tokens
from bertsmith.tokenization.tokenizer import Tokenizer

MAX_TOKENS = 512
"""Most tokens that are looked at: weights grow with the square of their number, 4 bytes each in every head."""
_DECIMALS = 7


@dataclass(frozen=True)
class AttentionMap:
    """Who looks at whom in a text or a pair of texts, in every layer and head."""

    text: str
    pair: str | None
    tokens: tuple[str, ...]
    """As a person reads them, special ones included; see `readable_tokens`."""
    offsets: Int[np.ndarray, "tokens 2"]
    """Where each stands, half-open, in code points of its own text; (0, 0) for those that the layout added."""
    words: Int[np.ndarray, " tokens"]
    """Number of each one's word within its own text; -1 for special tokens."""
    sequences: Int[np.ndarray, " tokens"]
    """0 for tokens of the text, 1 for those of the pair, -1 for those that the layout added."""
    weights: Float[np.ndarray, "layers heads tokens tokens"]
    """How much of the last axis's token goes into the vector of the token of the axis before it. Rows sum to 1."""
    cut: bool
    """Whether there is more text than was looked at."""

    @property
    def border(self) -> int | None:
        """The first token of the second text; None where there is one text alone."""
        second = np.flatnonzero(self.sequences == 1)
        return int(second[0]) if len(second) else None

    def chosen(self, layer: int | None = None, head: int | None = None) -> tuple[range, range]:
        """Numbers of the layers and heads that are meant; see `chosen_heads`."""
        num_layers, num_heads = self.weights.shape[:2]
        return chosen_heads(num_layers, num_heads, layer, head)

    def values(self, layer: int | None = None, head: int | None = None) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them: all heads, those of a layer, or one."""
        layers, heads = self.chosen(layer, head)
        weights = self.weights[layers.start : layers.stop, heads.start : heads.stop]
        return text_values(self.text, self.pair) | {
            "tokens": list(self.tokens),
            "offsets": self.offsets.tolist(),
            "words": self.words.tolist(),
            "sequences": self.sequences.tolist(),
            "layers": list(layers),
            "heads": list(heads),
            "weights": weights.astype(np.float64).round(_DECIMALS).tolist(),
            "cut": self.cut,
        }


class AttentionViewer:
    """Shows where the heads of an encoder look.

    The weights are those of the model's own attention, made in fp32 whatever the device's precision.

    Args:
        model: any model with attention, trained for a task or not.
        tokenizer: the one it was trained with. Its ``truncation_side`` says which part of a longer text is seen.
        device: where it runs.
        max_tokens: most tokens that are looked at, if the model takes so many.

    Raises:
        InputError: if the model has no attention.
    """

    def __init__(self, model: Model, tokenizer: Tokenizer, device: Device, *, max_tokens: int = MAX_TOKENS) -> None:
        refuse_without_attention(model.config.encoder)
        self._encoder = recording_twin(model.encoder)
        self._tokenizer = tokenizer
        self._device = Device(device.name, "fp32")
        self.max_length = min(tokenizer.longest_sequence(model.config.encoder.num_positions), max_tokens)
        """Most tokens of a sequence."""

    def __call__(self, text: str, pair: str | None = None) -> AttentionMap:
        """Look at a text, or at a pair as the model is given pairs.

        Args:
            text: the text. ``[MASK]``, or the tokenizer's own mask token, is the mask where there is one.
            pair: the second text. Of two long ones the longer is cut first.

        Raises:
            InputError: for a blank text.
        """
        refuse_blank([text if pair is None else (text, pair)])
        mask = self._tokenizer.mask_token
        if mask is not None:
            text = text.replace(HUB_MASK, mask)
            pair = None if pair is None else pair.replace(HUB_MASK, mask)
        encoding = self._tokenizer.encode(text, pair, mask_is_special=mask is not None)
        (kept,) = kept_windows(encoding, self.max_length, self._tokenizer.long_texts)
        tokens = readable_tokens(self._tokenizer, encoding, text, pair)
        return AttentionMap(
            text,
            pair,
            tuple(tokens[place] for place in kept),
            encoding.offsets[kept],
            encoding.word_ids[kept],
            encoding.sequence_ids[kept],
            self._weights(encoding, kept),
            cut=len(kept) < len(encoding),
        )

    def _weights(
        self, encoding: Encoding, kept: Int[np.ndarray, " kept"]
    ) -> Float[np.ndarray, "layers heads kept kept"]:
        starts = np.array([0, len(kept)])
        packed = PackedTokens.build(encoding.token_ids[kept], encoding.segment_ids[kept], starts)
        with self._device.matrix_precision():
            return attention_weights(self._encoder, packed.to(self._device.name)).cpu().numpy()


def refuse_without_attention(config: EncoderConfig) -> None:
    """Raise an `InputError` for an encoder that has no attention."""
    if config.family == "elmo":
        raise InputError(
            "Attention weights need a model with attention",
            "an ELMo, which reads by LSTMs and has none",
            "Use a model of another family.",
        )


def chosen_heads(num_layers: int, num_heads: int, layer: int | None, head: int | None) -> tuple[range, range]:
    """Numbers of the layers and heads that are meant: all of them, those of one layer, or one head.

    Raises:
        InputError: for a number that the model does not have, or a head without its layer.
    """
    for name, number, count in (("layer", layer, num_layers), ("head", head, num_heads)):
        if number is not None and not 0 <= number < count:
            raise InputError(
                f"--{name} must lie in [0, {count - 1}], for the model has {count} and they count from 0",
                number,
                f"Give another {name}, or leave it out to see all.",
            )
    if head is not None and layer is None:
        raise InputError(
            "--head needs --layer, since each layer has heads of its own", f"--head {head} alone", "Add --layer L."
        )
    layers = range(num_layers) if layer is None else range(layer, layer + 1)
    return layers, range(num_heads) if head is None else range(head, head + 1)
