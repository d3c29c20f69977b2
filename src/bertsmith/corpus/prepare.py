"""From documents to a corpus folder: tokenized by many processes, written by one, whole or absent."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bertsmith.corpus.blocks import document_blocks, token_dtype
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.manifest import FORMAT, FORMAT_VERSION, CorpusManifest, Source, entries_sum
from bertsmith.corpus.workers import tokenize_blocks
from bertsmith.corpus.writer import CorpusWriter, unigram_losses
from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder, remove_leftovers
from bertsmith.text.documents import Document
from bertsmith.tokenization.tokenizer import Tokenizer

__all__ = ["CorpusConfig", "prepare_corpus"]


def prepare_corpus(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    out: Path,
    config: CorpusConfig,
    *,
    sources: Sequence[Source] = (),
    reading: Config | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Corpus:
    """Tokenize a stream of documents into a corpus folder; `writer.py` shows its layout.

    Documents are read one at a time, and memory does not grow with their number. The same documents give the same
    bytes, whatever the number of workers.

    Args:
        documents: the text, in the order in which it is to stand.
        tokenizer: what turns sentences into tokens; it is copied into the folder.
        out: the folder to make. A corpus there of the same sources, reading, settings and tokenizer is returned as
            it is, and nothing is read.
        config: the split, the seed, the workers.
        sources: the files behind the documents (`describe_sources`), to recognise the work when it is asked for again.
        reading: how the documents were read out of those files, for the same purpose.
        on_progress: called with the bytes of text that are done so far, after each block of about a megabyte.

    Raises:
        InputError: if there is nothing to tokenize, `out` holds anything else, or the disk is full. Nothing is left
            behind then.
    """
    entries = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tokenizer_fingerprint": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        "token_dtype": token_dtype(tokenizer.vocab_size),
        "config": config.recorded,
        "reading": reading.model_dump(mode="json") if reading is not None else {},
        "sources": [source.model_dump() for source in sources],
    }
    done = _finished_before(out, entries)
    if done is not None:
        return done
    remove_leftovers(out.parent, out.name)
    with new_folder(out, seal=entries) as folder:
        entries |= _write(documents, tokenizer, folder, config, on_progress)
        entries["entries_sha256"] = entries_sum(entries)
    return Corpus.open(out)


def _write(
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    folder: Path,
    config: CorpusConfig,
    on_progress: Callable[[int], None] | None,
) -> dict[str, Any]:
    tokenizer_folder = folder / "tokenizer"
    tokenizer_folder.mkdir()
    tokenizer.save(tokenizer_folder)
    blocks = tokenize_blocks(
        document_blocks(documents), tokenizer, tokenizer_folder, seed=config.seed, workers=config.num_workers
    )
    bytes_done = 0
    with contextlib.ExitStack() as files, contextlib.closing(blocks):
        writer = CorpusWriter(
            folder,
            files,
            vocab_size=tokenizer.vocab_size,
            shard_tokens=config.shard_tokens,
            validation_fraction=config.validation_fraction,
        )
        for block in blocks:
            writer.add(block)
            bytes_done += int(block.sentence_bytes.sum())
            if on_progress is not None:
                on_progress(bytes_done)
        held_out = writer.finish_documents()
        train = writer.train.finish(tokenizer.unk_id)
        validation = writer.validation.finish(tokenizer.unk_id)
    if train.documents == 0:
        raise InputError(
            "There must be text to tokenize",
            f"{writer.dropped_documents} documents, none of which gives a token",
            "Name files that hold text.",
        )
    entropy, context_free_loss = unigram_losses(writer.train.counts, writer.validation.counts)
    return {
        "held_out": held_out,
        "dropped_documents": writer.dropped_documents,
        "train": train.model_dump(),
        "validation": validation.model_dump(),
        "train_entropy": entropy,
        "context_free_loss": context_free_loss,
    }


def _finished_before(out: Path, wanted: dict[str, Any]) -> Corpus | None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    rule = "The output folder must be new, empty, or hold the corpus of the same texts, settings and tokenizer"
    do = "Choose another folder."
    try:
        before = _identity(CorpusManifest.read(out).model_dump(mode="json"))
    except (InputError, NotADirectoryError):
        raise InputError(rule, f"{out}, which holds something else", do) from None
    now = _identity(wanted)
    different = [name for name in now if now[name] != before[name]]
    if not wanted["sources"]:
        different.append("texts")
    if different:
        raise InputError(rule, f"{out}, whose corpus differs in: {', '.join(different)}", do)
    return Corpus.open(out)


def _identity(entries: dict[str, Any]) -> dict[str, Any]:
    """What two preparations must share to be the same work; the paths of the files may differ."""
    config = CorpusConfig(**entries["config"])
    return {
        "texts": [source["sha256"] for source in entries["sources"]],
        "reading": entries["reading"],
        "tokenizer": entries["tokenizer_fingerprint"],
        **config.recorded,
    }
