"""Embeddings: texts that belong together come to lie near each other, and apart from the rest.

Pairs are learned from the other rows of a batch (van den Oord et al. 2018; Henderson et al. 2017, section 4.4), raw
texts from two readings of themselves under dropout (SimCSE, Gao et al. 2021), and graded pairs by the order of their
grades (CoSENT, Huang et al. 2024).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.foundation.config import Config
from bertsmith.model.config import Pooling
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.objectives.report import Counts, LossReport

TERM = "embed"
RECALL_AT = (1, 5, 10)
_ROWS_OF_LOSS = 64
"""Rows that are compared with each other for the loss of a validation, whatever a batch of training has."""
_BLOCK_ELEMENTS = 1 << 22
"""Cosines held at a time: 16 MiB."""
TEMPERATURE = 0.05
"""A cosine is divided by it before the softmax: a scale of 20, as in SimCSE and in sentence-transformers."""


class EmbedConfig(Config):
    """What an embedding is made of, and how it is learned."""

    pooling: Pooling = "mean"
    """What is taken of a text's tokens: their mean, the first one, or the largest value of each column."""
    normalize: bool = True
    """Whether embeddings have length one, so that a dot product is a cosine."""
    temperature: Annotated[float, Field(gt=0.0)] = TEMPERATURE
    """The lower it is, the more the nearest of the others count."""
    direction: Literal["both", "forward"] = "both"
    """Of pairs: both texts must find each other among a batch's, or the first the second alone."""


@dataclass(frozen=True)
class InBatchNegatives:
    """Mean negative log-probability, in nats, of a row's second text among all of the batch.

    A batch's groups are a text, the one that belongs to it and perhaps one that does not; its labels give each text a
    number, equal texts the same. Whatever is known to belong to a text is none of its negatives: the same text again,
    its own partner again, and the partners that it has in other rows.

    The others are those of one forward pass: parts of a batch do not see each other.
    """

    temperature: float = TEMPERATURE
    both: bool = True
    """Whether the second text must find the first too; the two losses are averaged."""

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of groups."""
        return {TERM: len(_groups(batch)) - 1}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss of a batch; a hit is a text whose partner is nearer to it than all others."""
        starts = _groups(batch)
        if batch.labels is None or len(batch.labels) != batch.packed.num_sequences:
            raise ValueError(
                "In-batch negatives need the number of each text. Received: a batch without them. Build it from "
                "examples of pairs."
            )
        vectors = sentence_vectors(model, batch.packed)
        losses, hits = contrastive_losses(vectors, starts, batch.labels, temperature=self.temperature, both=self.both)
        return LossReport({TERM: losses.sum()}, {TERM: len(losses)}, {TERM: hits.sum()} if with_hits else {})


@dataclass(frozen=True)
class RankedPairs:
    """CoSENT: every pair that has the higher score of two should have the higher cosine (Huang et al. 2024).

    Only the order of the scores counts, as in Spearman's coefficient, so they may be in any unit; a regression of the
    cosine would first have to move all cosines to where the scores happen to lie.
    """

    temperature: float = TEMPERATURE

    @property
    def terms(self) -> tuple[str, ...]:
        """One term."""
        return (TERM,)

    def counts(self, batch: Batch) -> Counts:
        """Number of pairs."""
        return {TERM: len(_groups(batch)) - 1}

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        """Loss of a batch, counted once for each of its pairs. There is nothing to hit."""
        firsts = _groups(batch)[:-1]
        if batch.labels is None or len(batch.labels) != len(firsts):
            raise ValueError(
                "Graded pairs need a score each. Received: a batch without. Build it from examples of scored pairs."
            )
        vectors = sentence_vectors(model, batch.packed)
        cosines = functional.cosine_similarity(vectors[firsts], vectors[firsts + 1])
        loss = ranking_loss(cosines, batch.labels, temperature=self.temperature)
        return LossReport({TERM: loss * len(firsts)}, {TERM: len(firsts)}, {})


def sentence_vectors(model: Model, packed: PackedTokens) -> Float[Tensor, "sequences size"]:
    """The embedding of each sequence as the model's config has it, in fp32 at least."""
    return model.embed(model.encoder.packed(packed), packed)


def contrastive_losses(
    vectors: Float[Tensor, "sequences size"],
    group_starts: Int[Tensor, " groups_plus_one"],
    texts: Int[Tensor, " sequences"],
    *,
    temperature: float = TEMPERATURE,
    both: bool = True,
) -> tuple[Float[Tensor, " groups"], Bool[Tensor, " groups"]]:
    """Negative log-probability of each group's second text among the batch's, and whether it is the nearest.

    Args:
        vectors: of the sequences, of any length: cosines are compared.
        group_starts: first sequence of each group; a group is a text, its partner and perhaps negatives.
        texts: a number for each sequence, the same for the same text.
        temperature: of the softmax.
        both: whether the second texts look for the first ones too.
    """
    firsts = group_starts[:-1]
    is_first = torch.zeros(len(vectors), dtype=torch.bool, device=vectors.device)
    is_first[firsts] = True
    candidates = (~is_first).nonzero()[:, 0]
    groups = torch.arange(len(firsts), device=vectors.device)
    own = firsts - groups  # Where a group's second text stands among the candidates: as many firsts are left out.
    with torch.autocast(vectors.device.type, enabled=False):
        units = functional.normalize(vectors, dim=-1)
        cosines = units[firsts] @ units[candidates].T / temperature
    text, partner, candidate = texts[firsts], texts[firsts + 1], texts[candidates]
    known = _joined(text[:, None] == text, partner[:, None] == candidate) | (text[:, None] == candidate)
    known[groups, own] = False
    logits = cosines.masked_fill(known, -torch.inf)
    forward, hits = functional.cross_entropy(logits, own, reduction="none"), logits.argmax(1) == own
    if not both:
        return forward, hits
    known = _joined(partner[:, None] == partner, text[:, None] == text) | (partner[:, None] == text)
    known[groups, groups] = False
    back = functional.cross_entropy(cosines[:, own].T.masked_fill(known, -torch.inf), groups, reduction="none")
    return (forward + back) / 2, hits


def ranking_loss(
    cosines: Float[Tensor, " pairs"], scores: Float[Tensor, " pairs"], *, temperature: float = TEMPERATURE
) -> Float[Tensor, ""]:
    """The logarithm of one plus the sum, over all pairs i that should rank below j, of exp((cos i - cos j) / t)."""
    gaps = (cosines[:, None] - cosines) / temperature
    return torch.cat([gaps.new_zeros(1), gaps[scores[:, None] < scores]]).logsumexp(0)


@dataclass(frozen=True)
class Retrieval:
    """Which places the second texts take when the first ones look for them among all."""

    ranks: Int[np.ndarray, " groups"]
    """From 1; what does not lie farther off counts as nearer, so that embeddings find nothing that are all equal, or no
    numbers."""
    nearest: Int[np.ndarray, " groups"]
    """The sequence that was found first."""
    cosines: Float[np.ndarray, " groups"]
    """How near it is."""
    num_candidates: int
    """Different texts that were looked through."""

    @property
    def scores(self) -> dict[str, float]:
        """``recall_at_1``, ``…_5`` and ``…_10``: share of the rows whose partner is among so many; ``mrr``: the mean of
        one over the rank."""
        return {
            **{f"recall_at_{most}": float((self.ranks <= most).mean()) for most in RECALL_AT},
            "mrr": float((1 / self.ranks).mean()),
        }


def retrieval(
    vectors: Float[np.ndarray, "sequences size"],
    group_starts: Int[np.ndarray, " groups_plus_one"],
    texts: Int[np.ndarray, " sequences"],
    *,
    block_elements: int = _BLOCK_ELEMENTS,
) -> Retrieval:
    """Look for each group's second text among those of all groups and their negatives.

    A text itself, and partners that it has in other groups, are passed over. Cosines are made for a block of rows at a
    time, so that memory grows with the number of texts and not with its square.

    Args:
        vectors: of the sequences, of any length.
        group_starts: first sequence of each group.
        texts: a number for each sequence, the same for the same text.
        block_elements: cosines held at a time, if a row has no more.
    """
    firsts = group_starts[:-1]
    others = np.setdiff1d(np.arange(len(vectors)), firsts)
    numbers, places = np.unique(texts[others], return_index=True)
    members = others[places]
    pool = _unit(vectors[members])
    column_of = {number: column for column, number in enumerate(numbers.tolist())}
    partners: dict[int, set[int]] = {}
    for first in firsts.tolist():
        partners.setdefault(int(texts[first]), set()).add(column_of[int(texts[first + 1])])
    ranks, nearest = np.empty(len(firsts), np.int64), np.empty(len(firsts), np.int64)
    best = np.empty(len(firsts), np.float32)
    rows_at_once = max(1, block_elements // len(pool))
    for start in range(0, len(firsts), rows_at_once):
        rows = np.arange(start, min(start + rows_at_once, len(firsts)))
        with np.errstate(invalid="ignore"):
            cosines = _unit(vectors[firsts[rows]]) @ pool.T
        own = np.array([column_of[number] for number in texts[firsts[rows] + 1].tolist()])
        for row, (number, column) in enumerate(zip(texts[firsts[rows]].tolist(), own.tolist(), strict=True)):
            passed_over = partners[number] | ({column_of[number]} if number in column_of else set())
            cosines[row, list(passed_over - {column})] = -np.inf
        within = np.arange(len(rows))
        ranks[rows] = (~(cosines < cosines[within, own][:, None])).sum(1)
        found = cosines.argmax(1)
        nearest[rows], best[rows] = members[found], cosines[within, found]
    return Retrieval(ranks, nearest, best, len(pool))


def pair_cosines(
    vectors: Float[np.ndarray, "sequences size"], firsts: Int[np.ndarray, " pairs"]
) -> Float[np.ndarray, " pairs"]:
    """The cosine of each pair: of the sequence at each place of `firsts` and the one after it."""
    return (_unit(vectors[firsts]) * _unit(vectors[firsts + 1])).sum(1)


def validation_loss(
    vectors: Float[np.ndarray, "sequences size"],
    group_starts: Int[np.ndarray, " groups_plus_one"],
    *,
    texts: Int[np.ndarray, " sequences"] | None = None,
    scores: Float[np.ndarray, " groups"] | None = None,
) -> float:
    """The mean loss over groups, 64 of them at a time, at the usual temperature: so losses of different runs compare.

    Args:
        vectors: of the sequences.
        group_starts: first sequence of each group.
        texts: for pairs, a number for each sequence.
        scores: for graded pairs, the score of each; one of the two must be given.
    """
    total, num_groups = 0.0, len(group_starts) - 1
    for first in range(0, num_groups, _ROWS_OF_LOSS):
        starts = group_starts[first : first + _ROWS_OF_LOSS + 1]
        sequences, count = slice(int(starts[0]), int(starts[-1])), len(starts) - 1
        some = torch.from_numpy(np.ascontiguousarray(vectors[sequences]))
        if texts is not None:
            numbers, bounds = torch.from_numpy(texts[sequences]), torch.from_numpy(starts - starts[0])
            total += float(contrastive_losses(some, bounds, numbers)[0].sum())
        elif scores is not None:
            cosines = functional.cosine_similarity(some[0::2], some[1::2])
            total += count * float(ranking_loss(cosines, torch.from_numpy(scores[first : first + count])))
        else:
            raise ValueError("validation_loss needs texts or scores. Received: neither. Give the one that fits.")
    return total / num_groups


def _unit(vectors: Float[np.ndarray, "rows size"]) -> Float[np.ndarray, "rows size"]:
    """Each row at length one; one with an infinite number is no number, without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt((vectors.astype(np.float32) ** 2).sum(1, keepdims=True))
        return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)


def _joined(first: Bool[Tensor, "rows rows"], second: Bool[Tensor, "rows columns"]) -> Bool[Tensor, "rows columns"]:
    """Whether some row is linked with a row by the first and with a column by the second."""
    return (first.float() @ second.float()) > 0


def _groups(batch: Batch) -> Int[Tensor, " groups_plus_one"]:
    if batch.group_starts is None:
        raise ValueError(
            "Embeddings are learned from groups of texts. Received: a batch without groups. Build it from examples of "
            "pairs."
        )
    return batch.group_starts
