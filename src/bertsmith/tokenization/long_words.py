"""Words that are longer than a tokenizer allows, each of which becomes one unknown token."""

import re
from collections.abc import Sequence

import numpy as np

from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.tokenizer import Tokenizer


def long_word_counts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    """How many words of each text became unknown because they have more than `max_word_characters`.

    Texts without so long a stretch between spaces, nearly all, are not encoded.
    """
    counts = [0] * len(texts)
    limit = tokenizer.max_word_characters
    if limit is None:
        return counts
    stretch = re.compile(rf"\S{{{limit + 1}}}")
    suspects = [number for number, text in enumerate(texts) if stretch.search(text)]
    for number, encoding in zip(suspects, tokenizer.encode_batch([texts[one] for one in suspects]), strict=True):
        counts[number] = _num_long(encoding, tokenizer.unk_id, limit)
    return counts


def _num_long(encoding: Encoding, unk_id: int | None, limit: int) -> int:
    unknown = np.flatnonzero(encoding.token_ids == unk_id)
    if not len(unknown):
        return 0
    lengths = encoding.offsets[unknown] @ np.array([-1, 1])
    return int((lengths > limit).sum())
