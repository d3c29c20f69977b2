"""How well a tokenizer fits a text."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from bertsmith.tokenization.chunks import chunks
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.scripts import script_of
from bertsmith.tokenization.tokenizer import Tokenizer

_BATCH_TEXTS = 256
_NUM_LONGEST = 10


@dataclass(frozen=True)
class PieceCounts:
    """Counts over words; all plain values.

    Attributes:
        num_words: words, punctuation marks and emoji among them.
        num_pieces: pieces that the words were cut into.
        num_unknown_pieces: pieces that are the unknown token.
        num_unknown_words: words with at least one unknown piece.
        pieces_per_word: mean number of pieces a word; 0 where there is no word.
        unknown_share: unknown pieces among all pieces, from 0 to 1.
    """

    num_words: int
    num_pieces: int
    num_unknown_pieces: int
    num_unknown_words: int
    pieces_per_word: float
    unknown_share: float


@dataclass(frozen=True)
class TokenizerReport:
    """How a tokenizer cuts a text; `dataclasses.asdict` gives it as plain values, ready for JSON.

    Attributes:
        num_texts: texts read.
        overall: counts over all words.
        by_script: counts by the script of the word's first letter, largest first; "Other" for words without letters.
        num_words_too_long: words that became unknown because they are longer than the tokenizer allows.
        longest_words: the longest different words, longest first.
    """

    num_texts: int
    overall: PieceCounts
    by_script: dict[str, PieceCounts]
    num_words_too_long: int
    longest_words: tuple[str, ...]


@dataclass
class _Tally:
    words: int = 0
    pieces: int = 0
    unknown_pieces: int = 0
    unknown_words: int = 0

    def add(self, pieces: int, unknown: int) -> None:
        self.words += 1
        self.pieces += pieces
        self.unknown_pieces += unknown
        self.unknown_words += unknown > 0

    def counts(self) -> PieceCounts:
        return PieceCounts(
            num_words=self.words,
            num_pieces=self.pieces,
            num_unknown_pieces=self.unknown_pieces,
            num_unknown_words=self.unknown_words,
            pieces_per_word=self.pieces / self.words if self.words else 0.0,
            unknown_share=self.unknown_pieces / self.pieces if self.pieces else 0.0,
        )


@dataclass
class _Tallies:
    overall: _Tally = field(default_factory=_Tally)
    by_script: dict[str, _Tally] = field(default_factory=dict)
    too_long: int = 0
    longest: list[tuple[int, str]] = field(default_factory=list)

    def add(self, word: str, pieces: int, unknown: int, limit: int | None) -> None:
        self.overall.add(pieces, unknown)
        self.by_script.setdefault(script_of(word), _Tally()).add(pieces, unknown)
        self.too_long += unknown > 0 and limit is not None and len(word) > limit
        entry = (len(word), word)
        if (len(self.longest) < _NUM_LONGEST or entry > self.longest[0]) and entry not in self.longest:
            heapq.heappush(self.longest, entry)
            if len(self.longest) > _NUM_LONGEST:
                heapq.heappop(self.longest)


def report(tokenizer: Tokenizer, texts: Iterable[str]) -> TokenizerReport:
    """Cut every text and count; the texts are streamed."""
    num_texts = 0

    def counted() -> Iterator[str]:
        nonlocal num_texts
        for text in texts:
            num_texts += 1
            yield text

    tallies = _Tallies()
    pieces = chunks(counted())
    while batch := list(islice(pieces, _BATCH_TEXTS)):
        for text, encoding in zip(batch, tokenizer.encode_batch(batch), strict=True):
            _count_words(tallies, text, encoding, tokenizer)
    return TokenizerReport(
        num_texts=num_texts,
        overall=tallies.overall.counts(),
        by_script={
            script: tally.counts()
            for script, tally in sorted(tallies.by_script.items(), key=lambda entry: (-entry[1].words, entry[0]))
        },
        num_words_too_long=tallies.too_long,
        longest_words=tuple(word for _, word in sorted(tallies.longest, reverse=True)),
    )


def _count_words(tallies: _Tallies, text: str, encoding: Encoding, tokenizer: Tokenizer) -> None:
    limit = tokenizer.max_word_characters
    token_ids = encoding.token_ids.tolist()
    offsets = encoding.offsets.tolist()
    words = encoding.word_ids.tolist()
    at = 0
    while at < len(words):
        end = at + 1
        if words[at] >= 0:
            while end < len(words) and words[end] == words[at]:
                end += 1
            unknown = sum(token_id == tokenizer.unk_id for token_id in token_ids[at:end])
            tallies.add(text[offsets[at][0] : offsets[end - 1][1]], end - at, unknown, limit)
        at = end
