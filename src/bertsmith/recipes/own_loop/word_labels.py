"""Words with labels as tokens with labels (Devlin et al. 2019, section 5.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from bertsmith.examples.tagging import WordCutter
from bertsmith.examples.targets import IGNORED
from bertsmith.foundation.errors import InputError, unknown_name
from bertsmith.recipes.own_loop.tokenizers import the_tokenizer
from bertsmith.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class AlignedLabels:
    """Words as a model sees them."""

    token_ids: Int[Tensor, " tokens"]
    """Special tokens included."""
    labels: Int[Tensor, " tokens"]
    """The label of each word at its first piece, else -100: labels of a `TaskModel` that tags."""
    word_ids: Int[Tensor, " tokens"]
    """Number of the word that begins at each token; -1 where none does."""
    num_words: int
    """Words that found room, from the first on."""


def aligned_labels(
    words: Sequence[str],
    labels: Sequence[int] | Sequence[str],
    tokenizer: Tokenizer | str | Path,
    *,
    names: Sequence[str] = (),
    max_length: int | None = None,
) -> AlignedLabels:
    """Tokenize words and carry their labels along: the first piece of a word has its label, all else -100.

    It works from word numbers, for every tokenizer, and each word is cut into pieces by itself, as in
    `bertsmith.finetune`.

    Args:
        words: of a sentence.
        labels: the number of each word's label, -100 for none; or its name, one of `names`.
        tokenizer: the model's, or a folder that holds it.
        names: names of the labels in the order of the model's head, where `labels` are names.
        max_length: at most so many tokens, special ones included; words that find no room are left out whole. What the
            tokenizer says its model takes, where not given.

    Raises:
        InputError: unless there is one label for each word, for an unknown label, words of which the tokenizer sees
            nothing, or a `max_length` without room for them.
    """
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InputError("words must be a list of texts", repr(words)[:60], 'For example ["Ann", "sings"].')
    if len(words) != len(labels):
        raise InputError(
            "There must be one label for each word", f"{len(words)} words, {len(labels)} labels", "Give both in pairs."
        )
    numbers = np.array([_number(label, names) for label in labels], np.int64)
    opened = the_tokenizer(tokenizer)
    num_special = len(opened.encode(""))
    length = max_length or opened.model_max_length
    if length is None:
        # Room for all of them.
        length = num_special + sum(map(len, opened.word_pieces(list(words)))) + 1
    cutter = WordCutter(opened, length)
    room = length - num_special
    sizes = np.array([len(pieces) for pieces in cutter.pieces(words)], np.int64)
    count = int(np.searchsorted(np.cumsum(np.minimum(sizes, room)), room, side="right"))
    windows, _ = cutter.windows(list(words[:count]))
    if not windows:
        raise InputError("The tokenizer must see a word", f"nothing in {list(words)[:5]}", "Give other words.")
    (window,) = windows
    found = np.where(window.words < 0, IGNORED, numbers[window.words])
    ids, wanted, places = (torch.tensor(part, dtype=torch.int64) for part in (window.token_ids, found, window.words))
    return AlignedLabels(ids, wanted, places, count)


def _number(label: Any, names: Sequence[str]) -> int:
    if isinstance(label, str):
        if label not in names:
            if not names:
                raise InputError("Labels that are names need names=…", label, 'For example names=("O", "B-PER").')
            raise unknown_name("A label", label, names)
        return list(names).index(label)
    number = int(label) if isinstance(label, int | np.integer) and not isinstance(label, bool) else None
    if number is None or (number < 0 and number != IGNORED) or (names and number >= len(names)):
        raise InputError(
            f"A label must be a number from 0 on, {IGNORED} for none, or a name",
            repr(label),
            "Number the labels as the model's head has them.",
        )
    return number
