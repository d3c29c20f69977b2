"""How far an exported graph is from the model that it was made of, in every shape of batch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from bertsmith.inference.engine import Engine, job_of
from bertsmith.inference.running import TokenWindow
from bertsmith.model.encoder_config import EncoderConfig

LARGEST_DIFFERENCE = 1e-4
"""By which a graph in fp32 may differ from its model, as a share of the largest number where that is above 1."""
_SHAPES = ((16,), (7, 24, 15))
_MOST_SCORES = 1 << 28
"""Attention scores of one sequence in a layer, 1 GiB: a longer sequence is not tried."""
_MOST_PLACES = 64
"""Places of a sequence whose scores over the vocabulary are compared."""


@dataclass(frozen=True)
class ShapeDifference:
    """What was found in one shape of batch."""

    rows: int
    lengths: tuple[int, ...]
    """Tokens of each row; all but the longest are padded."""
    largest_difference: float
    """Of any number of the output."""
    largest_value: float
    """Of any number of the model's own output, signs aside."""

    @property
    def share(self) -> float:
        """The difference as it is judged."""
        return self.largest_difference / max(1.0, self.largest_value)

    @property
    def values(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"lengths": list(self.lengths)}


def differences(exact: Engine, exported: Engine, *, longest: int) -> list[ShapeDifference]:
    """Compare two engines on random tokens: one row, three rows of different lengths, and the longest sequence.

    Args:
        exact: the model itself.
        exported: its graph.
        longest: tokens of the longest sequence that predictors make.
    """
    encoder = exact.config.encoder
    longest = min(longest, int((_MOST_SCORES / encoder.num_attention_heads) ** 0.5))
    shapes = [*_SHAPES, (longest,)]
    return [_difference(exact, exported, [min(length, longest) for length in lengths]) for lengths in shapes]


def refuse_difference(found: Sequence[ShapeDifference]) -> None:
    """Raise an `InputError` where a graph in fp32 is too far from its model."""
    worst = max(found, key=lambda one: one.share if np.isfinite(one.share) else np.inf)
    if not worst.share <= LARGEST_DIFFERENCE:  # So that NaN is refused too.
        raise InputError(
            f"An exported model must give what the model gives, within {LARGEST_DIFFERENCE:g}",
            f"a difference of {worst.largest_difference:.3g} with rows of {_listed(worst.lengths)} tokens",
            "Nothing was written. Use the model folder as it is, and tell us of the model: this is a fault of ours.",
        )


def _listed(lengths: Sequence[int]) -> str:
    return " and ".join(map(str, lengths))


def _difference(exact: Engine, exported: Engine, lengths: Sequence[int]) -> ShapeDifference:
    windows = _windows(exact.config.encoder, lengths)
    ours, theirs = (_outputs(engine, windows) for engine in (exact, exported))
    pairs = list(zip(ours, theirs, strict=True))
    # numpy's largest of anything with NaN is NaN, which no limit lets pass.
    largest = np.max([np.abs(one - other).max() for one, other in pairs])
    return ShapeDifference(
        len(lengths), tuple(lengths), float(largest), float(np.max([np.abs(one).max() for one in ours]))
    )


def _windows(encoder: EncoderConfig, lengths: Sequence[int]) -> list[TokenWindow]:
    stream = random_stream(0, "export", *map(str, lengths))
    has_segments = encoder.type_vocab_size > 1
    return [
        TokenWindow(
            stream.integers(0, encoder.vocab_size, length),
            (np.arange(length) >= (length + 1) // 2).astype(np.int64) * has_segments,
        )
        for length in lengths
    ]


def _outputs(engine: Engine, windows: Sequence[TokenWindow]) -> list[np.ndarray]:
    job = job_of(engine.config)
    if job != "fill":
        return engine.outputs(job, windows)
    lengths = [len(window.token_ids) for window in windows]
    places = [np.unique(np.linspace(0, length - 1, _MOST_PLACES).astype(int)).tolist() for length in lengths]
    return engine.vocabulary(windows, places)
