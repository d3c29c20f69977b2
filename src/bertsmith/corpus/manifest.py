"""What a corpus folder says of itself."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from bertsmith.corpus.config import CorpusConfig
from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import read_manifest, sha256

FORMAT = "bertsmith-corpus"
FORMAT_VERSION = 1


class Source(Config):
    """A file that the documents came from."""

    path: str
    bytes: int
    sha256: str


class FileSum(Config):
    """What a file of the folder must be."""

    sha256: str
    bytes: int


class SplitStatistics(Config):
    """Counts over one split; characters and bytes are those of the sentences that are kept."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    characters: int = 0
    bytes: int = 0
    longest_sentence: int = 0
    """In tokens."""
    one_sentence_documents: int = 0

    @property
    def one_sentence_share(self) -> float:
        """Share of the documents that have one sentence, 0 where there is no document."""
        return self.one_sentence_documents / self.documents if self.documents else 0.0

    @property
    def unknown_share(self) -> float:
        """Share of the tokens that are the unknown token, 0 where there is no token."""
        return self.unknown_tokens / self.tokens if self.tokens else 0.0


class CorpusManifest(Config):
    """The entries of a corpus's `manifest.json`."""

    format: Literal["bertsmith-corpus"]
    format_version: int
    tokenizer_fingerprint: str
    vocab_size: int
    token_dtype: Literal["uint16", "uint32"]
    config: CorpusConfig
    reading: dict[str, Any]
    """How the documents were read out of their files, as far as the caller told it."""
    sources: tuple[Source, ...]
    held_out: Literal["documents", "last_sentences", "nothing"]
    """What the validation split is made of."""
    dropped_documents: int
    """Documents without a single token."""
    train: SplitStatistics
    validation: SplitStatistics
    train_entropy: float
    """Entropy in nats of the train tokens' unigram distribution."""
    context_free_loss: float | None
    """Nats a validation token under the train unigram counts plus one: the loss that knows no context."""
    entries_sha256: str
    files: dict[str, FileSum]

    @classmethod
    def read(cls, folder: Path) -> "CorpusManifest":
        """Read the manifest of a corpus folder.

        Raises:
            InputError: if the folder is no finished corpus, or one of another version.
        """
        entries = read_manifest(folder)
        if entries.get("format") != FORMAT:
            raise InputError(
                "A corpus folder is one that `bertsmith prepare` made", folder, "Prepare one from text files."
            )
        if entries.get("format_version") != FORMAT_VERSION:
            raise InputError(
                f"The corpus must have format version {FORMAT_VERSION}",
                f"version {entries.get('format_version')} in {folder}",
                "Prepare it again with this version of bertsmith.",
            )
        try:
            return cls(**entries)
        except ValidationError as error:
            raise InputError(
                "The manifest of a corpus must be as it was written",
                f"{folder} ({error.errors()[0]['loc'][0]} is wrong)",
                "The folder is damaged: prepare it again.",
            ) from None


def describe_sources(paths: Sequence[Path]) -> list[Source]:
    """Size and SHA-256 of each file, with its path as given; what is no UTF-8 in a name becomes a question mark."""
    return [
        Source(path=path.as_posix().encode("utf-8", "replace").decode(), bytes=path.stat().st_size, sha256=sha256(path))
        for path in paths
    ]


def entries_sum(entries: dict[str, Any]) -> str:
    """SHA-256 of the manifest's own entries, which the sums of the files do not cover."""
    own = {name: value for name, value in entries.items() if name not in ("files", "entries_sha256")}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
