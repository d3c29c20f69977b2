"""Writing a corpus while its documents stream by: two splits, their bounds and their counts.

Layout of a corpus folder, all numbers little-endian:

    manifest.json                       what it is, how it was made, statistics, SHA-256 of every file below
    tokenizer/                          the tokenizer folder that the tokens were made with
    train/tokens-00000.bin …            token ids, uint16 or uint32; every file but the last has `shard_tokens` of them
    train/sentence_starts.bin           int64 [sentences + 1]: where each sentence starts among all tokens of the split
    train/document_starts.bin           int64 [documents + 1]: where each document starts among all sentences
    train/token_counts.bin              int64 [vocab_size]: how often each token stands in the split
    validation/…                        the same
"""

from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from jaxtyping import Bool, Int, UInt

from bertsmith.corpus.blocks import TokenBlock, token_dtype
from bertsmith.corpus.manifest import SplitStatistics

SENTENCE_STARTS = "sentence_starts.bin"
DOCUMENT_STARTS = "document_starts.bin"
TOKEN_COUNTS = "token_counts.bin"


def shard_name(number: int) -> str:
    """Name of a token file."""
    return f"tokens-{number:05d}.bin"


class SplitWriter:
    """Appends documents to the files of one split; it holds a count a vocabulary entry and nothing that grows."""

    def __init__(self, folder: Path, files: ExitStack, *, vocab_size: int, shard_tokens: int) -> None:
        folder.mkdir()
        self._folder = folder
        self._files = files
        self._dtype = np.dtype(token_dtype(vocab_size)).newbyteorder("<")
        self._shard_tokens = shard_tokens
        self._shard: BinaryIO | None = None
        self._sentence_starts = self._open(SENTENCE_STARTS)
        self._document_starts = self._open(DOCUMENT_STARTS)
        for file in (self._sentence_starts, self._document_starts):
            file.write(bytes(8))
        self.counts = np.zeros(vocab_size, dtype=np.int64)
        self.statistics = SplitStatistics()

    def add(self, block: TokenBlock) -> None:
        """Append the documents of a block, each of which must have a token."""
        if block.num_documents == 0:
            return
        told = self.statistics
        self._append_tokens(block.token_ids)
        _append_starts(self._sentence_starts, told.tokens, block.sentence_lengths)
        _append_starts(self._document_starts, told.sentences, block.document_sentences)
        self.counts += np.bincount(block.token_ids, minlength=len(self.counts))
        self.statistics = SplitStatistics(
            documents=told.documents + block.num_documents,
            sentences=told.sentences + len(block.sentence_lengths),
            tokens=told.tokens + len(block.token_ids),
            characters=told.characters + int(block.sentence_characters.sum()),
            bytes=told.bytes + int(block.sentence_bytes.sum()),
            longest_sentence=max(told.longest_sentence, int(block.sentence_lengths.max())),
            one_sentence_documents=told.one_sentence_documents + int((block.document_sentences == 1).sum()),
        )

    def finish(self, unknown_id: int | None) -> SplitStatistics:
        """Write the counts; the statistics are complete then."""
        self._open(TOKEN_COUNTS).write(self.counts.astype("<i8").tobytes())
        unknown = 0 if unknown_id is None else int(self.counts[unknown_id])
        return self.statistics.model_copy(update={"unknown_tokens": unknown})

    def _open(self, name: str) -> BinaryIO:
        return self._files.enter_context(open(self._folder / name, "wb"))

    def _append_tokens(self, token_ids: UInt[np.ndarray, " tokens"]) -> None:
        written = self.statistics.tokens
        done = 0
        while done < len(token_ids):
            number, used = divmod(written + done, self._shard_tokens)
            if used == 0:
                if self._shard is not None:
                    self._shard.close()
                self._shard = self._open(shard_name(number))
            assert self._shard is not None
            part = token_ids[done : done + self._shard_tokens - used]
            self._shard.write(part.astype(self._dtype, copy=False).tobytes())
            done += len(part)


class CorpusWriter:
    """Deals documents out to the train and the validation split.

    The side is a function of the seed and the document's text, so copies of a document fall on the same side. Where
    anything is held out, the first document always trains and the first one that differs from it always validates:
    neither side can come out empty, and nothing has to be moved afterwards. A document that stays alone is held back
    until the end, where its last sentences become the validation document.

    Args:
        folder: where the folders of the splits are made.
        files: closes the files; they are complete when it has.
        vocab_size: how many token ids there can be.
        shard_tokens: tokens in each token file but the last.
        validation_fraction: share of the documents that are held out.
    """

    def __init__(
        self, folder: Path, files: ExitStack, *, vocab_size: int, shard_tokens: int, validation_fraction: float
    ) -> None:
        self.train = SplitWriter(folder / "train", files, vocab_size=vocab_size, shard_tokens=shard_tokens)
        self.validation = SplitWriter(folder / "validation", files, vocab_size=vocab_size, shard_tokens=shard_tokens)
        self.dropped_documents = 0
        self._fraction = validation_fraction
        self._alone: TokenBlock | None = None
        self._first_key: np.uint64 | None = None
        self._second_key: np.uint64 | None = None

    def add(self, block: TokenBlock) -> None:
        """Take the documents of a block, in their order; those without a token are dropped and counted."""
        has_tokens = block.document_sentences > 0
        self.dropped_documents += int((~has_tokens).sum())
        block = block.where(has_tokens)
        if self._alone is not None:
            block = self._alone.then(block)
            self._alone = None
        if self.train.statistics.documents == 0 and block.num_documents < 2:
            self._alone = block if block.num_documents else None
            return
        held_out = self._held_out(block.document_keys)
        self.train.add(block.where(~held_out))
        self.validation.add(block.where(held_out))

    def finish_documents(self) -> Literal["documents", "last_sentences", "nothing"]:
        """Deal out the document that stayed alone, and tell what the validation split is made of."""
        if self._alone is not None:
            sentences = int(self._alone.document_sentences[0])
            if self._fraction > 0 and sentences > 1:
                last = min(max(1, round(self._fraction * sentences)), sentences - 1)
                train, validation = self._alone.cut(sentences - last)
                self.train.add(train)
                self.validation.add(validation)
                return "last_sentences"
            self.train.add(self._alone)
        return "documents" if self.validation.statistics.documents else "nothing"

    def _held_out(self, keys: UInt[np.ndarray, " documents"]) -> Bool[np.ndarray, " documents"]:
        if self._fraction == 0:
            return np.zeros(len(keys), dtype=bool)
        if self._first_key is None:
            self._first_key = keys[0]
        first = keys == self._first_key
        if self._second_key is None and not first.all():
            self._second_key = keys[~first][0]
        second = np.zeros_like(first) if self._second_key is None else keys == self._second_key
        return ((keys < np.uint64(int(self._fraction * 2**64))) & ~first) | second


def unigram_losses(
    train: Int[np.ndarray, " vocabulary"], validation: Int[np.ndarray, " vocabulary"]
) -> tuple[float, float | None]:
    """Two losses that know no context, in nats a token, rounded to a millionth.

    Returns:
        the entropy of the train counts, and the cross-entropy of the validation counts under the train counts plus
        one; None where there is no validation token.
    """
    shares = train[train > 0] / train.sum()
    entropy = round(float(-(shares * np.log(shares)).sum()) + 0.0, 6)
    if validation.sum() == 0:
        return entropy, None
    smoothed = np.log((train + 1) / (train.sum() + len(train)))
    return entropy, round(float(-(validation * smoothed).sum() / validation.sum()), 6)


def _append_starts(file: BinaryIO, before: int, lengths: Int[np.ndarray, " items"]) -> None:
    file.write((before + np.cumsum(lengths)).astype("<i8").tobytes())
