"""Completions while a model trains: the same few validation sentences each time, with one word hidden or cut short."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from jaxtyping import Int

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.corpus import Split
from bertsmith.engine.device import Device
from bertsmith.foundation.random_streams import random_stream
from bertsmith.inference.fill import FillPredictor
from bertsmith.inference.generate import beginning, generate
from bertsmith.inference.running import TokenWindow
from bertsmith.model.heads import Model
from bertsmith.tokenization.tokenizer import Tokenizer

_NUM_LINES = 3
_FEWEST_TOKENS, _MOST_TOKENS = 6, 24
_NUM_COMPLETIONS = 3
_NUM_WRITTEN = 16


@dataclass(frozen=True)
class _Line:
    before: str
    word: str
    after: str
    window: TokenWindow
    position: int


class Sampler:
    """Shows what the model thinks of hidden words that it never trained on.

    Args:
        split: validation text.
        predictor: the model in training.
        tokenizer: its tokenizer.
        sequence_format: how sequences are framed.
    """

    def __init__(
        self, split: Split, predictor: FillPredictor, tokenizer: Tokenizer, sequence_format: SequenceFormat
    ) -> None:
        self._predictor = predictor
        self._tokenizer = tokenizer
        self._lines = _choose_lines(split, tokenizer, sequence_format)

    def __call__(self) -> list[str]:
        """One line a sentence: the text with its gap, the best completions, and the true word."""
        if not self._lines:
            return []
        scores = self._predictor.run([line.window for line in self._lines], [[line.position] for line in self._lines])
        shown: list[str] = []
        for line, row in zip(self._lines, scores, strict=True):
            best = np.argsort(-row[0], kind="stable")[:_NUM_COMPLETIONS]
            guesses = ", ".join(f"{self._tokenizer.token(int(piece))} {row[0][piece]:.0%}" for piece in best)
            shown.append(f"{line.before} [{line.word}?] {line.after}  →  {guesses}")
        return shown


class WritingSampler:
    """Shows how a causal model writes on, greedily, from the beginnings of sentences that it never trained on.

    Args:
        split: validation text.
        model: the model in training.
        tokenizer: its tokenizer.
        device: where it runs.
    """

    def __init__(self, split: Split, model: Model, tokenizer: Tokenizer, device: Device) -> None:
        self._model, self._tokenizer, self._device = model, tokenizer, device
        sentences = islice(_sentences(split, random_stream(0, "samples")), _NUM_LINES)
        self._prompts = [beginning(tokenizer, ids, _FEWEST_TOKENS - 1) for ids in sentences]

    def __call__(self) -> list[str]:
        """One line a sentence: its beginning, and what the model writes behind it."""
        written = [
            generate(
                self._model,
                self._tokenizer,
                prompt,
                device=self._device,
                max_new_tokens=_NUM_WRITTEN,
                temperature=0.0,
            )
            for prompt in self._prompts
        ]
        return [f"{prompt}  →  {found.continuation}" for prompt, found in zip(self._prompts, written, strict=True)]


def _sentences(split: Split, stream: np.random.Generator) -> Iterator[Int[np.ndarray, " tokens"]]:
    """Sentences of a fitting length, in random order."""
    starts = np.asarray(split.sentence_starts)
    lengths = np.diff(starts)
    fitting = np.flatnonzero((lengths >= _FEWEST_TOKENS) & (lengths <= _MOST_TOKENS))
    for sentence in stream.permutation(fitting)[: 20 * _NUM_LINES]:
        yield split.tokens(int(starts[sentence]), int(starts[sentence + 1]))


def _choose_lines(split: Split, tokenizer: Tokenizer, sequence_format: SequenceFormat) -> list[_Line]:
    stream = random_stream(0, "samples")
    lines: list[_Line] = []
    for ids in _sentences(split, stream):
        places = _whole_words(ids, tokenizer)
        if len(places) and len(lines) < _NUM_LINES:
            lines.append(_line(ids, int(stream.choice(places)), tokenizer, sequence_format))
    return lines


def _whole_words(ids: np.ndarray, tokenizer: Tokenizer) -> np.ndarray:
    """Places of words that are one piece of three letters or more, the first and last piece left out."""
    continues = tokenizer.continues_word[ids]
    places = [
        place
        for place in range(1, len(ids) - 1)
        if not continues[place] and not continues[place + 1] and len(_letters(tokenizer, int(ids[place]))) >= 3
    ]
    return np.array(places, np.int64)


def _letters(tokenizer: Tokenizer, token_id: int) -> str:
    text = tokenizer.decode([token_id]).strip()
    return text if text.isalpha() else ""


def _line(ids: np.ndarray, place: int, tokenizer: Tokenizer, sequence_format: SequenceFormat) -> _Line:
    window = np.concatenate([[sequence_format.first_id], ids, [sequence_format.separator_id]])
    window[place + 1] = sequence_format.mask_id
    return _Line(
        before=tokenizer.decode(ids[:place]).strip(),
        word=tokenizer.decode([int(ids[place])]).strip(),
        after=tokenizer.decode(ids[place + 1 :]).strip(),
        window=TokenWindow(window, np.zeros_like(window)),
        position=place + 1,
    )
