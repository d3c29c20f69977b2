"""Which of two engines is faster on this machine, now: a probe of about a second."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.inference.engine import Engine, Job
from bertsmith.inference.running import TokenWindow
from bertsmith.model.config import ModelConfig

_KINDS = ((32, 24), (8, 96))
"""How many windows of about how many tokens: sentences, and short paragraphs."""
_FIRST_SHARE, _LARGER_SHARES = 8, (4, 2, 1)
"""It begins with an eighth of the windows, which the largest models take about a second for."""
_LONG_ROUND_SECONDS = 0.1
"""Of both engines: long enough to be timed."""
_MORE_ROUNDS = 4
_PROBE_SECONDS = 0.8
_CLEARLY = 0.9

Clock = Callable[[], float]


@dataclass(frozen=True)
class Speeds:
    """How long two engines took for the same windows, each in its fastest round.

    Attributes:
        tokens: of the windows.
        usual_seconds: of the engine that is taken unless the other one is clearly faster.
        other_seconds: of the other one.
    """

    tokens: int
    usual_seconds: float
    other_seconds: float

    @property
    def other_is_clearly_faster(self) -> bool:
        """Whether the other one takes less than nine tenths of the time: a smaller difference is not worth a change."""
        return self.other_seconds < _CLEARLY * self.usual_seconds


def probe_speeds(usual: Engine, other: Engine, job: Job, *, clock: Clock = time.perf_counter) -> Speeds:
    """Let two engines run the same windows in turn.

    The windows are sentences and short paragraphs, batched by length as both engines batch many texts. There are more
    of them from round to round, up to 1,440 tokens, until a round takes long enough to be timed, and rounds with as
    many follow. Where something else keeps the machine busy, the fastest round of each is least disturbed.

    Args:
        usual: one engine, which runs first.
        other: another one that gives the same.
        job: what both do.
        clock: tells seconds.
    """
    batches = probe_batches(usual.config)

    def in_turn(part: Sequence[Sequence[TokenWindow]]) -> tuple[float, float]:
        return _seconds(usual, job, part, clock), _seconds(other, job, part, clock)

    # What is made ready at an engine's first use counts for neither.
    in_turn([batches[0][:1]])
    ends_at = clock() + _PROBE_SECONDS
    part = _share(batches, _FIRST_SHARE)
    rounds = [in_turn(part)]
    for share in _LARGER_SHARES:
        if sum(rounds[0]) > _LONG_ROUND_SECONDS:
            break
        part = _share(batches, share)
        rounds = [in_turn(part)]
    for _ in range(_MORE_ROUNDS):
        rounds.append(in_turn(part))
        if clock() > ends_at:
            break
    tokens = sum(len(window.token_ids) for batch in part for window in batch)
    return Speeds(tokens, min(one for one, _ in rounds), min(another for _, another in rounds))


def probe_batches(config: ModelConfig) -> list[list[TokenWindow]]:
    """Windows to time a model by, those of like length together. Their ids are spread over the vocabulary."""
    vocabulary, longest = config.encoder.vocab_size, config.encoder.num_positions
    batches: list[list[TokenWindow]] = []
    for count, most in _KINDS:
        lengths = [max(1, min(longest, most - most * (number % 4) // 24)) for number in range(count)]
        batches.append([_window(length, number, vocabulary) for number, length in enumerate(lengths)])
    return batches


def _share(batches: Sequence[Sequence[TokenWindow]], parts: int) -> list[Sequence[TokenWindow]]:
    return [batch[: len(batch) // parts] for batch in batches]


def _window(length: int, number: int, vocabulary: int) -> TokenWindow:
    # A prime step reaches rows of the embedding all over the table, as words do.
    token_ids = (np.arange(length, dtype=np.int64) + 1_000 * number) * 7_919 % vocabulary
    return TokenWindow(token_ids, np.zeros(length, np.int64))


def _seconds(engine: Engine, job: Job, batches: Sequence[Sequence[TokenWindow]], clock: Clock) -> float:
    started_at = clock()
    for batch in batches:
        if job == "fill":
            # One mask a text, in its middle.
            engine.vocabulary(batch, [[len(window.token_ids) // 2] for window in batch])
        else:
            engine.outputs(job, batch)
    return clock() - started_at
