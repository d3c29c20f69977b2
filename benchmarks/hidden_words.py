"""What a hidden character costs a model, which can be compared where vocabularies differ.

    python -m benchmarks.hidden_words MODEL [MODEL …] --text HELD_OUT.txt

Of each of 1,500 lines one word of at least three letters is hidden whole, every piece of it masked, the same words for
every model. What counts is the negative logarithm of the probability of its pieces, in nats, by the number of its
characters: a vocabulary of many small pieces wins nothing by having more of them to guess.
"""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.engine.evaluation import evaluating
from bertsmith.foundation.random_streams import random_stream
from bertsmith.inference.running import TokenWindow, token_budget_batches
from bertsmith.model.heads import Model
from bertsmith.recipes.predict import open_model
from bertsmith.tokenization.tokenizer import Tokenizer

WORDS = 1500
_WORD = re.compile(r"[^\W\d_]{3,}")
_MOST_CHARACTERS = 400
"""Of a line, so that what one model sees, every model sees."""


@dataclass(frozen=True)
class HiddenWord:
    """A line, and the word of it that is hidden: ``[start, end)`` in characters."""

    text: str
    start: int
    end: int


def hidden_words(lines: list[str], count: int = WORDS) -> list[HiddenWord]:
    """One word of each line that has one and is not too long, spread over the whole of the text."""
    stream = random_stream(0, "hidden words")
    fitting = [line.strip() for line in lines if len(line.strip()) <= _MOST_CHARACTERS]
    found = [(line, list(_WORD.finditer(line))) for line in fitting]
    found = [(line, words) for line, words in found if len(words) > 1]
    chosen = sorted(stream.choice(len(found), size=min(count, len(found)), replace=False).tolist())
    hidden: list[HiddenWord] = []
    for line, words in (found[number] for number in chosen):
        word = words[int(stream.integers(len(words)))]
        hidden.append(HiddenWord(line, word.start(), word.end()))
    return hidden


def nats_a_character(folder: Path, words: list[HiddenWord]) -> float:
    """Mean negative log-probability of the hidden words' pieces, by the number of their characters."""
    model, tokenizer, _ = open_model(folder, precision="fp32")
    return nats_of_model(model, tokenizer, words)


def nats_of_model(model: Model, tokenizer: Tokenizer, words: list[HiddenWord]) -> float:
    """The same of a model that is in memory, in its own precision."""
    windows, places, truth = _masked(words, tokenizer)
    losses = _losses(model, windows, places, truth)
    return sum(losses) / sum(word.end - word.start for word in words)


def _masked(
    words: list[HiddenWord], tokenizer: Tokenizer
) -> tuple[list[TokenWindow], list[np.ndarray], list[np.ndarray]]:
    mask_id = SequenceFormat.of(tokenizer).mask_id
    windows: list[TokenWindow] = []
    places: list[np.ndarray] = []
    truth: list[np.ndarray] = []
    for word, encoding in zip(words, tokenizer.encode_batch([word.text for word in words]), strict=True):
        starts, ends = encoding.offsets[:, 0], encoding.offsets[:, 1]
        inside = (starts < word.end) & (ends > word.start) & (encoding.sequence_ids == 0)
        token_ids = np.where(inside, mask_id, encoding.token_ids)
        windows.append(TokenWindow(token_ids, encoding.segment_ids))
        places.append(np.flatnonzero(inside))
        truth.append(encoding.token_ids[inside])
    return windows, places, truth


@torch.inference_mode()
def _losses(model: Model, windows: list[TokenWindow], places: list[np.ndarray], truth: list[np.ndarray]) -> list[float]:
    """Nats of each word, in no order."""
    head = model.masked_language_model
    if head is None:
        raise SystemExit("A model that fills masks is needed, and this one has no head for it.")
    losses: list[float] = []
    with evaluating(model):
        for members, packed in token_budget_batches(windows, max_tokens=4096):
            hidden = model.head_input(packed)
            for start, member in zip(packed.sequence_starts[:-1].tolist(), members, strict=True):
                rows = torch.from_numpy(start + places[member])
                scores = head(hidden[rows]).double().log_softmax(-1)
                wanted = torch.from_numpy(truth[member].astype(np.int64))
                losses.append(-float(scores.gather(1, wanted[:, None]).sum()))
    return losses


def main() -> None:
    """Score each model on the same words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="Lines that no model was trained on.")
    args = parser.parse_args()
    words = hidden_words(args.text.read_text(encoding="utf-8").splitlines())
    found = {str(model): round(nats_a_character(model, words), 4) for model in args.models}
    print(json.dumps({"words": len(words), "nats a hidden character": found}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
