"""Raw scores ``s = projection @ rows.T`` of a vocabulary, never in memory as a whole: sums of their exponentials, and
what gradients need of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertsmith.kernels.library import TILE, call, multiplies
from bertsmith.kernels.vocabulary import add_exponential_sums, to_exponential_gradients

LEAST_BLOCK_WIDTH = 256
"""Narrower blocks would make the matrix products inefficient."""


class Scores(ABC):
    """Scores of all rows of a batch.

    Args:
        rows: vectors that are looked up in the vocabulary.
        projection: a vector for each token.
    """

    exact: torch.dtype
    """In which sums are kept and gradients given, fp32 at least."""
    rows: Float[Tensor, "rows width"]
    """As the matrix products see them."""

    @abstractmethod
    def sums(self, weights: Float[Tensor, " vocabulary"]) -> Float[Tensor, " rows"]:
        """``sum_j exp(s_ji) * weight_j`` of each row."""

    @abstractmethod
    def gradients(
        self, weights: Float[Tensor, " vocabulary"], row_weights: Float[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows width"], Float[Tensor, "vocabulary width"], Float[Tensor, " vocabulary"]]:
        """With ``g_ji = exp(s_ji) * weight_j * row_weight_i``: ``g.T @ projection``, ``g @ rows`` and the sums over
        rows."""

    @abstractmethod
    def vectors(self, tokens: Int[Tensor, " rows"]) -> Float[Tensor, "rows width"]:
        """Vectors of some tokens, as the matrix products see them, in the exact type."""

    @abstractmethod
    def of_tokens(self, tokens: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Each row's score of one token, rounded as the products round it, so that no probability exceeds 1."""


class BlockedScores(Scores):
    """A block of the vocabulary after the other, by torch's matrix products, in a buffer that is used again.

    Fresh memory would be faulted in anew for each block, which on a CPU costs more than the arithmetic.

    Args:
        rows: vectors that are looked up in the vocabulary.
        projection: a vector for each token.
        matrix_type: type of the matrix products.
        block_elements: scores held at a time.
    """

    def __init__(self, rows: Tensor, projection: Tensor, matrix_type: torch.dtype, block_elements: int) -> None:
        self.rows = rows.to(matrix_type)
        self.exact = torch.promote_types(projection.dtype, torch.float32)
        self._projection = projection
        self._matrix = projection.to(matrix_type)
        self._width = min(len(projection), max(LEAST_BLOCK_WIDTH, block_elements // max(1, len(rows))))

    def blocks(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yields the block's place in the vocabulary, its part of the projection, and its scores, free to overwrite."""
        num_rows, vocabulary = len(self.rows), len(self._matrix)
        buffer = torch.empty(num_rows * self._width, dtype=self._matrix.dtype, device=self.rows.device)
        for start in range(0, vocabulary, self._width):
            place = slice(start, min(start + self._width, vocabulary))
            shape = (place.stop - start, num_rows)
            scores = buffer[: shape[0] * shape[1]].view(shape)
            matrix = self._matrix[place]
            yield place, matrix, torch.mm(matrix, self.rows.T, out=scores)

    def sums(self, weights: Tensor) -> Tensor:
        sums = torch.zeros(len(self.rows), dtype=self.exact, device=weights.device)
        for place, _, scores in self.blocks():
            add_exponential_sums(scores, weights[place], sums)
        return sums

    def gradients(self, weights: Tensor, row_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        of_rows = torch.zeros(self.rows.shape, dtype=self.exact, device=self.rows.device)
        of_projection = torch.empty_like(self._projection)
        totals = torch.empty_like(weights, dtype=self._projection.dtype)
        for place, matrix, scores in self.blocks():
            totals[place] = to_exponential_gradients(scores, weights[place], row_weights)
            of_projection[place] = scores @ self.rows
            of_rows += scores.T @ matrix
        return of_rows, of_projection, totals

    def vectors(self, tokens: Tensor) -> Tensor:
        return self._matrix[tokens].to(self.exact)

    def of_tokens(self, tokens: Tensor) -> Tensor:
        dots = (self.rows.to(self.exact) * self.vectors(tokens)).sum(1)
        return dots.to(self.rows.dtype).to(self.exact)


class TiledScores(Scores):
    """By the kernels that multiply matrices themselves: a score lives in the first cache and is never rounded."""

    def __init__(self, rows: Tensor, projection: Tensor, matrix_type: torch.dtype) -> None:
        self.exact = torch.float32
        self.rows = rows.to(matrix_type)
        self._projection = projection.contiguous()

    @staticmethod
    def takes(rows: Tensor, projection: Tensor, matrix_type: torch.dtype) -> bool:
        """Whether these kernels are there for such scores: bf16 products of fp32 weights on a CPU."""
        return (
            rows.is_cpu
            and matrix_type == torch.bfloat16
            and projection.dtype == torch.float32
            and rows.shape[1] % TILE == 0
            and multiplies()
        )

    def sums(self, weights: Tensor) -> Tensor:
        sums = weights.new_empty(len(self.rows))
        call("vocabulary_sums", self._projection, self.rows.float(), weights, sums, *self._sizes)
        return sums

    def gradients(self, weights: Tensor, row_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows = self.rows.float()
        found = torch.empty_like(rows), torch.empty_like(self._projection), torch.empty_like(weights)
        of_rows, of_projection, totals = found
        call(
            "vocabulary_gradients", self._projection, rows, weights, row_weights.contiguous(), of_projection, totals,
            of_rows, *self._sizes,
        )  # fmt: skip
        return found

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return len(self._projection), len(self.rows), self.rows.shape[1]

    def vectors(self, tokens: Tensor) -> Tensor:
        return self._projection[tokens].to(self.rows.dtype).float()

    def of_tokens(self, tokens: Tensor) -> Tensor:
        return (self.rows.float() * self.vectors(tokens)).sum(1)
