"""Answers as spans of a text: loss, and the best spans over all windows (Devlin et al. 2019, sections 4.2 and 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertsmith.batches.batch import Batch
from bertsmith.examples.targets import IGNORED
from bertsmith.examples.text_windows import TextPart, TextWindows
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.report import Counts, LossReport

TERM = "answer"


@dataclass(frozen=True)
class Answering:
    """Mean negative log-probability, in nats, of the token that the answer starts with and of the one that it ends
    with, both among all tokens of their sequence."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of sequences that something is asked of."""
        return {TERM: int((_targets(batch)[:, 0] != IGNORED).sum())}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss of a batch, and the sequences in which both tokens are the likeliest ones."""
        targets = _targets(batch)
        logits = span_logits(model, batch.packed)
        highest, log_sums = _by_sequence(logits, batch.packed)
        asked = targets[:, 0] != IGNORED
        wanted = logits.gather(0, batch.packed.sequence_starts[:-1, None] + targets.clamp(min=0))
        losses = (log_sums - wanted).mean(-1)
        # Where nothing is asked, the loss counts nothing and carries no gradient.
        total = torch.where(asked, losses, 0.0).sum()
        hits = {TERM: (asked & (wanted >= highest).all(-1)).sum()} if with_hits else {}
        return LossReport({TERM: total}, self.counts(batch), hits)


def span_logits(model: Model, packed: PackedTokens) -> Float[Tensor, "tokens 2"]:
    """Score of each real token as the first and as the last one of an answer, before softmax, in fp32 at least."""
    logits = model.answer_spans(model.encoder.packed(packed))[: packed.num_tokens]
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


@dataclass(frozen=True)
class Span:
    """Tokens of a text that may be an answer."""

    first: int
    last: int
    """Number of its last token, which belongs to it."""
    probability: float


@dataclass(frozen=True)
class FoundSpans:
    """What a model says of a question, over all windows of its text."""

    spans: tuple[Span, ...]
    """The likeliest ones, all different, the likeliest first."""
    no_answer: float
    """Probability that the text does not answer."""


def best_spans(
    windows: TextWindows, logits: Sequence[Float[np.ndarray, "_ 2"]], *, max_answer: int, count: int
) -> FoundSpans:
    """The likeliest answers.

    In a window, a span is as likely as its first token is to start the answer times its last one is to end it, and the
    window's first token, twice, stands for no answer. A span that several windows hold is taken from the one in which
    it is the likeliest; the text does not answer where no window says so, so the least of them counts. All spans and no
    answer together then have probability one.

    Args:
        windows: the text and its parts in the windows.
        logits: of `span_logits`, for each window.
        max_answer: most tokens of an answer.
        count: most spans that are given.

    Returns:
        spans inside the text, of which none parts a character. Of equally likely ones that which begins first comes
        first, and of these the shortest, also where only some of them are given and whatever windows they stand in.
    """
    found = _Best(count)
    carried = np.empty((0, max_answer))
    nothing = np.inf
    for number, (part, scores) in enumerate(zip(windows.parts, logits, strict=True)):
        log_probabilities = _log_softmax(scores.astype(np.float64))
        nothing = float(np.minimum(nothing, log_probabilities[0].sum()))  # NaN stays NaN.
        spans = _spans(log_probabilities, part, windows, max_answer)
        # What the window before this one says of spans that begin here too.
        spans[: len(carried)] = np.maximum(spans[: len(carried)], carried)
        is_last = number == len(windows.parts) - 1
        settled = len(spans) if is_last else windows.parts[number + 1].start - part.start
        found.add(spans[:settled], part.start)
        carried = spans[settled:]
    with np.errstate(invalid="ignore"):
        total = np.logaddexp.reduce([nothing, *found.log_sums])
    spans = tuple(Span(first, last, float(np.exp(score - total))) for score, first, last in found.ranked)
    return FoundSpans(spans, float(np.exp(nothing - total)))


def answer_loss(
    outputs: Float[np.ndarray, "tokens 2"],
    sequence_starts: Int[np.ndarray, " sequences_plus_one"],
    targets: Int[np.ndarray, "sequences 2"],
) -> float:
    """The loss of `Answering` from logits; 0 where nothing is asked."""
    losses = [
        -float(np.diagonal(_log_softmax(outputs[start:end].astype(np.float64))[wanted]).mean())
        for start, end, wanted in zip(sequence_starts[:-1], sequence_starts[1:], targets, strict=True)
        if wanted[0] != IGNORED
    ]
    return float(np.mean(losses)) if losses else 0.0


class _Best:
    """The best spans so far, and how much all of them weigh."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.ranked: list[tuple[float, int, int]] = []
        """Log-probability, first and last token; the likeliest first, and of equal ones that which begins first."""
        self.log_sums: list[float] = []

    def add(self, spans: Float[np.ndarray, "tokens lengths"], first_token: int) -> None:
        """Take in spans by first token and length less one, the first of them that of number `first_token`."""
        scores = spans.ravel()
        possible = np.flatnonzero(scores > -np.inf)
        if not len(possible):
            return
        scores = scores[possible]
        self.log_sums.append(float(_log_sum(scores)))
        # Those that may be among the best alone are sorted.
        least = np.partition(scores, -self._count)[-self._count] if len(scores) > self._count else -np.inf
        good = np.flatnonzero(scores >= least)
        best = possible[good[np.argsort(-scores[good], kind="stable")[: self._count]]]
        firsts, longer = np.divmod(best, spans.shape[1])
        firsts += first_token
        new = zip(spans.ravel()[best].tolist(), firsts.tolist(), (firsts + longer).tolist(), strict=True)
        self.ranked = sorted([*self.ranked, *new], key=lambda span: (-span[0], span[1:]))[: self._count]


def _spans(
    log_probabilities: Float[np.ndarray, "tokens 2"], part: TextPart, windows: TextWindows, max_answer: int
) -> Float[np.ndarray, "part lengths"]:
    """Log-probability of each span of a window by its first token and its length less one; -inf for what is none."""
    context = windows.context
    size = part.end - part.start
    inside = log_probabilities[part.place : part.place + size]
    starts = _where(context.begins[part.start : part.end], inside[:, 0])
    ends = np.full(size + max_answer, -np.inf)
    ends[:size] = _where(context.ends[part.start : part.end], inside[:, 1])
    return starts[:, None] + np.lib.stride_tricks.sliding_window_view(ends, max_answer)[:size]


def _where(possible: Bool[np.ndarray, " tokens"], scores: Float[np.ndarray, " tokens"]) -> Float[np.ndarray, " tokens"]:
    return np.where(possible, scores, -np.inf)


def _log_softmax(logits: Float[np.ndarray, "tokens 2"]) -> Float[np.ndarray, "tokens 2"]:
    """Over the tokens of a sequence."""
    return logits - _log_sum(logits)


def _log_sum(logarithms: Float[np.ndarray, "values ..."]) -> Float[np.ndarray, "..."]:
    """The logarithm of the sum, over the first axis, of what these are logarithms of."""
    highest = logarithms.max(axis=0)
    return np.asarray(highest + np.log(np.exp(logarithms - highest).sum(axis=0)))


def _by_sequence(
    logits: Float[Tensor, "tokens 2"], packed: PackedTokens
) -> tuple[Float[Tensor, "sequences 2"], Float[Tensor, "sequences 2"]]:
    """The highest logit of each sequence, and the logarithm of the sum of all that they are exponents of."""
    lengths = packed.sequence_starts.diff()
    sequence = torch.arange(packed.num_sequences, device=logits.device).repeat_interleave(lengths)
    places = sequence[:, None].expand(-1, 2)
    fixed = logits.detach()
    lowest = fixed.new_full((packed.num_sequences, 2), -torch.inf)
    highest = lowest.scatter_reduce(0, places, fixed, "amax")
    sums = logits.new_zeros((packed.num_sequences, 2)).index_add(0, sequence, (logits - highest[sequence]).exp())
    return highest, highest + sums.log()


def _targets(batch: Batch) -> Int[Tensor, "sequences 2"]:
    if batch.labels is None or batch.labels.shape != (batch.packed.num_sequences, 2):
        raise ValueError(
            "Answering needs a first and a last token for each sequence. Received: a batch without them. "
            "Make the batch from AnswerExamples."
        )
    return batch.labels
