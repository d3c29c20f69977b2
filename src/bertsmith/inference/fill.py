"""Filling masks, in three phases: prepare the windows, run the model, decode the scores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float

from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import Engine
from bertsmith.inference.masks import MaskRequest, window_around
from bertsmith.inference.objects import plain_item
from bertsmith.inference.predictor import listed
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.targets import TargetRequest, listed_targets, target_request
from bertsmith.objectives.softmax import softmax
from bertsmith.text.shown import shortened
from bertsmith.tokenization.tokenizer import Tokenizer

HUB_MASK = "[MASK]"
"""How a mask may be written whatever the tokenizer's own mask token is."""
_MOST_SCORES = 1 << 24
"""Scores over the vocabulary that are held at once: 128 MiB of probabilities in double precision."""


@dataclass(frozen=True)
class Completion:
    """One way to fill a mask."""

    token: str
    """The piece as the vocabulary writes it; for a target, the target."""
    token_id: int
    """-1 for a target of several pieces."""
    score: float
    """Probability. For a target of several pieces: of all of them, each given those before it."""
    sequence: str
    """The text with this mask filled."""
    rank: int | None
    """Place among all pieces but the special ones, the likeliest being 1; None for a target of several pieces."""


@dataclass(frozen=True)
class MaskPrediction:
    """What may stand in one mask of a text."""

    text: str
    mask_index: int
    """Which of the text's masks, counted from 0."""
    predictions: tuple[Completion, ...]
    """The best pieces, or the targets, the best first."""
    words: tuple[Completion, ...]
    """The best pieces that are words by themselves; empty where targets were given."""


class FillPredictor:
    """Fills masks by a masked language model.

    Args:
        engine: runs a model with a head over the vocabulary.
        tokenizer: the one it was trained with. Its ``model_max_length`` says how wide the window around a mask is.

    Raises:
        InputError: if the model has no such head or sees one side of a mask only, or the tokenizer has no mask token.
    """

    def __init__(self, engine: Engine, tokenizer: Tokenizer) -> None:
        engine.refuse_other("fill")
        encoder = engine.config.encoder
        if encoder.causal or encoder.family == "elmo":
            raise InputError(
                "Filling masks needs a model that sees all of the text around a mask",
                "a causal model" if encoder.causal else "an ELMo",
                "Use a model that was trained with --objective mlm.",
            )
        if tokenizer.mask_token is None:
            raise InputError(
                "Filling masks needs a mask token", "a tokenizer without one", "Use the tokenizer of the model."
            )
        self._engine = engine
        self._tokenizer = tokenizer
        self._max_length = tokenizer.longest_sequence(encoder.num_positions)
        self._mask = tokenizer.mask_token

    def __call__(
        self,
        texts: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]],
        *,
        top_k: int = 5,
        targets: str | Iterable[str] = (),
    ) -> list[MaskPrediction]:
        """Predict every mask of every text, in order.

        Args:
            texts: each with at least one ``[MASK]``, or the tokenizer's own mask token; or one such text, or
                ``{"text": …}``. A text longer than the model takes is seen through a window around each mask.
            top_k: how many completions are given.
            targets: where given, these are scored instead: words in a list, or parted by commas in one string, as the
                command has them. One that splits into pieces is scored whole.

        Raises:
            InputError: for a text without a mask, something else than texts, `top_k` below 1, or a target that the
                vocabulary cannot write.
        """
        # What is a pair elsewhere are two texts here.
        given = list(texts) if isinstance(texts, tuple) else listed(texts)
        wanted = listed_targets(targets)
        if not 1 <= top_k <= self._tokenizer.vocab_size:
            raise InputError(
                f"--top-k must lie between 1 and the size of the vocabulary, {self._tokenizer.vocab_size}",
                top_k,
                "Use 5, for example.",
            )
        requests = [request for number, text in enumerate(given, 1) for request in self.prepare(text, number)]
        if wanted:
            return self._scored(requests, wanted)
        rows = self._rows([(request.window, request.position) for request in requests])
        return [self.decode(request, row, top_k) for request, row in zip(requests, rows, strict=True)]

    def prepare(self, text: Any, number: int = 1) -> list[MaskRequest]:
        """The window around each mask of a text, which errors call by its number.

        Raises:
            InputError: if it holds none, or is no text.
        """
        text = _text(text, number).replace(HUB_MASK, self._mask)
        encoding = self._tokenizer.encode(text, mask_is_special=True)
        positions = np.flatnonzero(encoding.token_ids == self._tokenizer.mask_id)
        if not len(positions):
            raise InputError(f"The text must hold a mask, {HUB_MASK}", f"“{shortened(text)}”", "Put one into it.")
        spans = [(start, start + len(self._mask)) for start in _occurrences(text, self._mask)]
        whole = TokenWindow(encoding.token_ids, encoding.segment_ids)
        requests: list[MaskRequest] = []
        for index, position in enumerate(positions):
            window, place = window_around(whole, int(position), self._max_length)
            requests.append(MaskRequest(text, index, spans[index], window, place))
        return requests

    def run(
        self, windows: Sequence[TokenWindow], positions: Sequence[Sequence[int]]
    ) -> list[Float[np.ndarray, "masks vocabulary"]]:
        """Probabilities over the vocabulary at some positions of each window."""
        return [softmax(scores) for scores in self._engine.vocabulary(windows, positions)]

    def _rows(self, asked: Sequence[tuple[TokenWindow, int]]) -> Iterator[Float[np.ndarray, " vocabulary"]]:
        """Probabilities over the vocabulary at a place of each window, so many at a time as memory is meant for."""
        at_once = max(1, _MOST_SCORES // self._engine.config.encoder.vocab_size)
        for first in range(0, len(asked), at_once):
            windows: list[TokenWindow] = []
            places: list[list[int]] = []
            for window, place in asked[first : first + at_once]:
                # The masks of one text, or targets of one piece each: the model need not run again.
                if not windows or not np.array_equal(windows[-1].token_ids, window.token_ids):
                    windows.append(window)
                    places.append([])
                places[-1].append(place)
            for scores in self.run(windows, places):
                yield from scores

    def decode(self, request: MaskRequest, scores: Float[np.ndarray, " vocabulary"], top_k: int) -> MaskPrediction:
        """The best completions of a mask."""
        scores = scores[: self._tokenizer.vocab_size]
        common = self._is_common
        pieces = self._completions(request, scores, common, top_k)
        words = self._completions(request, scores, common & ~self._tokenizer.continues_word & self._is_word, top_k)
        return MaskPrediction(request.text, request.mask_index, pieces, words)

    @cached_property
    def _is_common(self) -> np.ndarray:
        """Which pieces are not special."""
        common = np.ones(self._tokenizer.vocab_size, bool)
        common[list(self._tokenizer.special_ids)] = False
        return common

    def _rank(self, scores: Float[np.ndarray, " vocabulary"], token_id: int) -> int:
        return int((scores[: len(self._is_common)][self._is_common] > scores[token_id]).sum()) + 1

    @cached_property
    def _is_word(self) -> np.ndarray:
        """Which pieces hold a letter, so that they can be a word."""
        texts = [self._tokenizer.decode([number]) for number in range(self._tokenizer.vocab_size)]
        return np.array([any(character.isalpha() for character in text) for text in texts])

    def _completions(
        self, request: MaskRequest, scores: np.ndarray, allowed: np.ndarray, top_k: int
    ) -> tuple[Completion, ...]:
        candidates = np.flatnonzero(allowed)
        best = candidates[np.argsort(-scores[candidates], kind="stable")[:top_k]]
        return tuple(
            Completion(
                self._tokenizer.token(int(number)),
                int(number),
                float(scores[number]),
                self._filled(request, int(number)),
                self._rank(scores, int(number)),
            )
            for number in best
        )

    def _filled(self, request: MaskRequest, token_id: int) -> str:
        start, end = request.span
        before, after = request.text[:start], request.text[end:]
        piece = self._tokenizer.decode([token_id]).strip().removeprefix("##")
        # A piece that goes on with a word stands directly behind it.
        before = before.rstrip() if self._tokenizer.continues_word[token_id] else before
        return f"{before}{piece}{after}"

    def _scored(self, requests: Sequence[MaskRequest], targets: Sequence[str]) -> list[MaskPrediction]:
        """Targets in the place of each mask, the likeliest first."""
        asked = [
            [target_request(request, target, self._tokenizer, self._max_length) for target in dict.fromkeys(targets)]
            for request in requests
        ]
        rows = self._rows([step for one in asked for target in one for step in target.steps])
        found: list[MaskPrediction] = []
        for request, one in zip(requests, asked, strict=True):
            completions = [self._completion(target, islice(rows, len(target.steps))) for target in one]
            ranked = sorted(completions, key=lambda completion: -completion.score)
            found.append(MaskPrediction(request.text, request.mask_index, tuple(ranked), ()))
        return found

    def _completion(self, asked: TargetRequest, rows: Iterable[Float[np.ndarray, " vocabulary"]]) -> Completion:
        score, rank = 1.0, None
        for piece, row in zip(asked.pieces.tolist(), rows, strict=True):
            # As Python floats: a product of many small fp32 numbers is soon 0.
            score *= float(row[piece])
            rank = self._rank(row, piece)
        is_one = len(asked.pieces) == 1
        return Completion(
            asked.target, int(asked.pieces[0]) if is_one else -1, score, asked.filled, rank if is_one else None
        )


def _text(given: Any, number: int) -> str:
    text = plain_item("fill", given, number)
    if not isinstance(text, str):
        raise InputError("Filling masks takes texts", f"text {number}: {text!r:.60}", "Give several in a list.")
    return text


def _occurrences(text: str, part: str) -> list[int]:
    found: list[int] = []
    place = text.find(part)
    while place >= 0:
        found.append(place)
        place = text.find(part, place + len(part))
    return found
