"""Random access to a prepared corpus through memory maps."""

import functools
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Int, Integer

from bertsmith.corpus.manifest import CorpusManifest, SplitStatistics
from bertsmith.corpus.writer import DOCUMENT_STARTS, SENTENCE_STARTS, TOKEN_COUNTS, shard_name
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, sha256

SplitName = Literal["train", "validation"]


@final
class Split:
    """One side of a corpus. It can be pickled: another process maps the files again.

    Args:
        folder: the split's folder.
        statistics: its counts from the manifest.
        dtype: name of the type of the token ids on disk.
        shard_tokens: tokens in each token file but the last.
    """

    def __init__(self, folder: Path, *, statistics: SplitStatistics, dtype: str, shard_tokens: int) -> None:
        self.folder = folder
        self.statistics = statistics
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shard_tokens = shard_tokens

    def __getstate__(self) -> dict[str, Any]:
        maps = ("sentence_starts", "document_starts", "token_counts", "_shards")
        return {name: value for name, value in self.__dict__.items() if name not in maps}

    @property
    def num_documents(self) -> int:
        return self.statistics.documents

    @property
    def num_sentences(self) -> int:
        return self.statistics.sentences

    @property
    def num_tokens(self) -> int:
        return self.statistics.tokens

    @functools.cached_property
    def sentence_starts(self) -> Int[np.ndarray, " sentence_bounds"]:
        """[sentences + 1]: where each sentence starts among the tokens; the last is `num_tokens`. Read-only."""
        return _mapped(self.folder / SENTENCE_STARTS, np.dtype("<i8"))

    @functools.cached_property
    def document_starts(self) -> Int[np.ndarray, " document_bounds"]:
        """[documents + 1]: where each document starts among the sentences; the last is `num_sentences`. Read-only."""
        return _mapped(self.folder / DOCUMENT_STARTS, np.dtype("<i8"))

    @functools.cached_property
    def token_counts(self) -> Int[np.ndarray, " vocabulary"]:
        """How often each token id stands in the split. Read-only."""
        return _mapped(self.folder / TOKEN_COUNTS, np.dtype("<i8"))

    def tokens(self, start: int, end: int) -> Int[np.ndarray, " tokens"]:
        """The token ids from position `start` up to but not including `end`, as int64, across token files.

        Raises:
            IndexError: unless ``0 <= start <= end <= num_tokens``.
        """
        if not 0 <= start <= end <= self.num_tokens:
            raise IndexError(f"tokens {start} to {end} of a split with {self.num_tokens}")
        found = np.empty(end - start, dtype=np.int64)
        position = start
        while position < end:
            number, offset = divmod(position, self._shard_tokens)
            part = self._shards[number][offset : offset + end - position]
            found[position - start : position - start + len(part)] = part
            position += len(part)
        return found

    def tokens_of(
        self, starts: Integer[np.ndarray, " ranges"], ends: Integer[np.ndarray, " ranges"]
    ) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " ranges"]]:
        """The token ids of many half-open ranges in one read, for one batch.

        Returns:
            the ids of all ranges one after another, as int64, and the length of each range.

        Raises:
            IndexError: unless ``0 <= start <= end <= num_tokens`` holds for each range.
        """
        lengths = (ends - starts).astype(np.int64)
        if len(lengths) and (starts.min() < 0 or lengths.min() < 0 or ends.max() > self.num_tokens):
            raise IndexError(f"a range that ends before it starts or lies outside of {self.num_tokens} tokens")
        bounds = np.cumsum(lengths)
        total = int(bounds[-1]) if len(bounds) else 0
        positions = np.repeat(starts - (bounds - lengths), lengths) + np.arange(total)
        if total == 0:
            return np.empty(0, dtype=np.int64), lengths
        if len(self._shards) == 1:
            return self._shards[0][positions].astype(np.int64), lengths
        found = np.empty(total, dtype=np.int64)
        numbers, offsets = np.divmod(positions, self._shard_tokens)
        for number in np.unique(numbers):
            here = numbers == number
            found[here] = self._shards[number][offsets[here]]
        return found, lengths

    @functools.cached_property
    def _shards(self) -> list[Integer[np.ndarray, " _"]]:
        count = -(-self.num_tokens // self._shard_tokens)
        return [_mapped(self.folder / shard_name(number), self._dtype) for number in range(count)]


@final
class Corpus:
    """A prepared corpus. It can be pickled: another process maps the files again."""

    def __init__(self, folder: Path, manifest: CorpusManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self.fingerprint = sha256(folder / MANIFEST)
        """SHA-256 of the manifest, which holds the sums of all files."""

    @classmethod
    def open(cls, folder: Path | str) -> "Corpus":
        """Open a corpus folder. Contents are not read here, only the sizes of the files are compared.

        Raises:
            InputError: if the folder is no corpus, or a file is missing or has another size than when it was written.
        """
        folder = Path(folder)
        manifest = CorpusManifest.read(folder)
        for name, expected in manifest.files.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != expected.bytes:
                raise InputError(
                    "The files of a corpus must be as they were written",
                    f"{path}, which is missing or of another size",
                    f"To list everything that is damaged: `bertsmith verify {folder}`",
                )
        return cls(folder, manifest)

    @property
    def tokenizer_folder(self) -> Path:
        """The tokenizer that the tokens were made with."""
        return self.folder / "tokenizer"

    def split(self, name: SplitName) -> Split:
        """One side of the corpus; the validation side is empty where nothing was held out."""
        return Split(
            self.folder / name,
            statistics=self.manifest.train if name == "train" else self.manifest.validation,
            dtype=self.manifest.token_dtype,
            shard_tokens=self.manifest.config.shard_tokens,
        )

    @property
    def warnings(self) -> list[str]:
        """What a person should know before training on this corpus, one sentence or two each."""
        manifest = self.manifest
        found: list[str] = []
        documents = manifest.train.documents + manifest.validation.documents
        one_sentence = manifest.train.one_sentence_documents + manifest.validation.one_sentence_documents
        if manifest.held_out != "last_sentences" and one_sentence == documents:
            found.append(
                f"Every document has one sentence ({documents} documents), so there are no sentence pairs and no "
                "context beyond a sentence. Is there a blank line after each sentence?"
            )
        tokens = manifest.train.tokens + manifest.validation.tokens
        unknown = manifest.train.unknown_tokens + manifest.validation.unknown_tokens
        if unknown > 0.01 * tokens:
            found.append(
                f"{unknown / tokens:.1%} of the tokens are unknown to the tokenizer. Was it trained on text like this? "
                "See `bertsmith tokenizer report`."
            )
        if manifest.held_out == "last_sentences":
            found.append("There is one document: its last sentences are the validation document.")
        elif manifest.validation.tokens > 2 * manifest.config.validation_fraction * tokens:
            found.append(
                f"The validation split holds {manifest.validation.tokens / tokens:.0%} of the tokens, though "
                f"{manifest.config.validation_fraction:.0%} of the documents were to be held out: there are few "
                "documents, or some are very long."
            )
        elif manifest.held_out == "nothing" and manifest.config.validation_fraction > 0:
            found.append("Nothing is held out for validation: there is only one sentence, or copies of one document.")
        return found


def _mapped(path: Path, dtype: np.dtype[Any]) -> np.ndarray:
    # A plain view: indexing the memmap class itself costs several times as much.
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)
