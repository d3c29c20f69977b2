"""Which words of a text are worth pieces of their own."""

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, pre_tokenizers

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.added_words import is_word
from bertsmith.tokenization.chunks import counted_words
from bertsmith.tokenization.tokenizer import Tokenizer

# What added words are found between: letters, marks, digits, joiners and the underscore hold together.
_RUN = Regex(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}]+")
MIN_OCCURRENCES = 5
"""How often a word must come, where nothing else is said: of a rarer one it could not be learned what it means."""
_MAX_WORDS = 1_000_000
_BATCH_WORDS = 10_000


def domain_words(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    count: int,
    *,
    min_occurrences: int = MIN_OCCURRENCES,
    max_words: int = _MAX_WORDS,
) -> list[str]:
    """The words whose adding saves the most pieces in a text, the most saving first, ready for `Tokenizer.with_words`.

    A word that comes n times and is now p pieces saves n (p - 1). Ties are broken by the word itself, so the same text
    gives the same words in whatever order it comes, as long as it has no more than `max_words` different ones.

    Args:
        tokenizer: the one that the words are for.
        texts: the domain's text, streamed.
        count: how many words at most; fewer where the text has no more that save a piece.
        min_occurrences: rarer words are left out.
        max_words: how many different words are counted at once. Past it the rarest are forgotten.

    Raises:
        InputError: if a number is less than 1.
    """
    for name, value in (("count", count), ("min_occurrences", min_occurrences), ("max_words", max_words)):
        if value < 1:
            raise InputError(f"{name} must be 1 or more", value, "Give a larger number.")
    totals = _count(tokenizer, texts, max_words)
    frequent = sorted(word for word, times in totals.items() if times >= min_occurrences)
    saved: dict[str, int] = {}
    for start in range(0, len(frequent), _BATCH_WORDS):
        batch = frequent[start : start + _BATCH_WORDS]
        for word, pieces in zip(batch, tokenizer.word_pieces(batch), strict=True):
            if len(pieces) > 1:
                saved[word] = totals[word] * (len(pieces) - 1)
    return sorted(saved, key=lambda word: (-saved[word], word))[:count]


def _count(tokenizer: Tokenizer, texts: Iterable[str], max_words: int) -> Counter[str]:
    runs = pre_tokenizers.Split(_RUN, "removed", invert=True)
    totals: Counter[str] = Counter()
    forgotten = 0
    for words in counted_words(texts):
        for stretch, times in words.items():
            for run, _ in runs.pre_tokenize_str(tokenizer.normalize(stretch)):
                if is_word(run):
                    totals[run] += times
        while len(totals) > max_words:
            forgotten += 1
            totals = Counter({word: times for word, times in totals.items() if times > forgotten})
    return totals
