"""What to train in a given time: size, vocabulary and batch, from the text, the time and the speed of the machine."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from bertsmith.batches.batch import Batch
from bertsmith.engine.rates import MachineRates
from bertsmith.model import ModelConfig, meta_model, preset
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.planning.floor import work_of_step
from bertsmith.training.config import OptimizerConfig

_START = "modern-toy"
_HEAD_SIZE = 64
_SHARE_OF_FLOOR, _SECONDS_BESIDE = 0.68, 0.01
"""Of a step of these sizes, as docs/lab-notes.md has them: what its floor takes of it, and what it takes beside."""
_WEIGHTS_AT_ONE, _GROWTH = 0.15e6, 0.5
"""Weights inside the layers that are best for 10^13 operations, and the power by which they grow with the operations;
found by the runs in docs/lab-notes.md."""
_BYTES_A_PIECE, _BYTES_A_TOKEN = 500, 5
_SMALLEST_VOCABULARY, _LARGEST_VOCABULARY = 384, 32_000
_FEWEST_STEPS, _MANY_STEPS = 600, 10_000
_SMALL_BATCH, _BATCH, _LARGE_BATCH = 2048, 4096, 8192
_VALIDATING_SHARE, _FEWEST_VALIDATED = 0.05, 10_000
MOST_VALIDATED = 200_000
"""Tokens of a validation, of however long a run."""


@dataclass(frozen=True)
class Size:
    """A modern encoder's depth and width."""

    layers: int
    hidden: int

    @property
    def settings(self) -> dict[str, int]:
        """Fields of the encoder's config."""
        return {
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden,
            "num_attention_heads": self.hidden // _HEAD_SIZE,
            "intermediate_size": 3 * self.hidden // 2,
        }

    @property
    def weights(self) -> int:
        """Of the matrices inside the layers."""
        return self.layers * 17 * self.hidden**2 // 2


SIZES = (
    Size(2, 128),
    Size(4, 128),
    Size(4, 192),
    Size(4, 256),
    Size(6, 320),
    Size(8, 384),
    Size(8, 512),
    Size(12, 512),
    Size(12, 768),
    Size(22, 768),
    Size(28, 1024),
)
"""From the smallest to that of ModernBERT-large."""


@dataclass(frozen=True)
class Asked:
    """What a run is to be made of, as far as it is known."""

    seconds: float
    """Time to train in."""
    text_bytes: int
    vocab_size: int | None
    """Of a tokenizer that is there or was asked for; None where it is to be chosen."""
    batch_tokens: int | None
    max_length: int
    mask_rate: float
    validations: int
    """Over the run."""


@dataclass(frozen=True)
class Choice:
    """What to train, and what to expect of it."""

    size: Size
    vocab_size: int
    """As asked, or what the text can fill."""
    batch_tokens: int
    tokens_per_second: float
    steps: int
    passes: float
    """Over the text."""
    validation_tokens: int
    """Of a validation, so that all of them take a small share of the time."""


def choose(asked: Asked, rates: MachineRates) -> Choice:
    """Choose what was not asked for.

    The weights inside the layers grow with the square root of the operations that the time holds, as do the tokens that
    they see (Hoffmann et al. 2022, whose law this is; its constant is measured here). The vocabulary is as large as the
    text can fill, whatever the time: by what a hidden character costs, a smaller one loses even in a minute, though it
    makes more steps. Batches are small where there would be few steps, and large where there are many.
    """
    operations = asked.seconds * rates.operations_per_second * _SHARE_OF_FLOOR
    best = _WEIGHTS_AT_ONE * (operations / 1e13) ** _GROWTH
    size = min(SIZES, key=lambda known: abs(math.log(known.weights / best)))
    vocab_size = asked.vocab_size or text_vocab_size(asked.text_bytes)
    batch_tokens = asked.batch_tokens
    if batch_tokens is None:
        steps = asked.seconds / step_seconds(size, vocab_size, _BATCH, asked, rates)
        batch_tokens = _SMALL_BATCH if steps < _FEWEST_STEPS else _BATCH if steps < _MANY_STEPS else _LARGE_BATCH
        batch_tokens = max(batch_tokens, 2 * asked.max_length)
    seconds = step_seconds(size, vocab_size, batch_tokens, asked, rates)
    steps = max(1, int(asked.seconds / seconds))
    passes = steps * batch_tokens / max(1, asked.text_bytes / _BYTES_A_TOKEN)
    shown = validation_tokens(asked.seconds * batch_tokens / seconds, asked.validations)
    return Choice(size, vocab_size, batch_tokens, batch_tokens / seconds, steps, passes, shown)


def validation_tokens(train_tokens: float, validations: int) -> int:
    """Tokens of each validation of a run, so that all of them take a twentieth of it.

    Args:
        train_tokens: that the run trains on, over all passes.
        validations: over the run.
    """
    # Forward alone is a third of a step.
    return int(min(max(3 * _VALIDATING_SHARE * train_tokens / validations, _FEWEST_VALIDATED), MOST_VALIDATED))


def text_vocab_size(num_bytes: int) -> int:
    """A vocabulary that a text of this size can fill: a piece for every 500 bytes, within 384 and 32,000."""
    return int(min(max(num_bytes // _BYTES_A_PIECE, _SMALLEST_VOCABULARY), _LARGEST_VOCABULARY)) // 64 * 64


def step_seconds(size: Size, vocab_size: int, batch_tokens: int, asked: Asked, rates: MachineRates) -> float:
    """What a step takes, by its floor."""
    starts = np.arange(0, batch_tokens + 1, asked.max_length)
    tokens = np.zeros(int(starts[-1]), np.int64)
    selected = torch.arange(round(asked.mask_rate * len(tokens)))
    batch = Batch(PackedTokens.build(tokens, tokens, starts), selected, selected, len(selected))
    work = work_of_step(
        meta_model(ModelConfig(encoder=_encoder(size, vocab_size))),
        [batch],
        MaskedLanguageModel(),
        OptimizerConfig(matrices="muon"),
    )
    return sum(work.seconds(rates).values()) / _SHARE_OF_FLOOR + _SECONDS_BESIDE


def _encoder(size: Size, vocab_size: int) -> EncoderConfig:
    return preset(_START, vocab_size=vocab_size, **size.settings)
