"""Finding what is damaged in a corpus folder."""

from pathlib import Path

import numpy as np

from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.corpus.manifest import CorpusManifest, entries_sum
from bertsmith.foundation.files import folder_faults, read_manifest

_CHUNK = 1 << 20


def verify_corpus(folder: Path) -> list[str]:
    """Compare a corpus with its manifest, and its bounds and tokens with each other, in flat memory.

    Returns:
        one line for each fault; empty where the corpus is whole.

    Raises:
        InputError: if the folder has no readable corpus manifest.
    """
    manifest = CorpusManifest.read(folder)
    faults = folder_faults(folder)
    if entries_sum(read_manifest(folder)) != manifest.entries_sha256:
        faults.append("manifest.json: an entry differs from what was written (SHA-256)")
    if faults:
        return faults
    corpus = Corpus(folder, manifest)
    for name in ("train", "validation"):
        faults += [f"{name}: {fault}" for fault in _split_faults(corpus.split(name), manifest.vocab_size)]
    return faults


def _split_faults(split: Split, vocab_size: int) -> list[str]:
    faults = [
        *_bound_faults("sentence_starts.bin", split.sentence_starts, split.num_sentences, split.num_tokens),
        *_bound_faults("document_starts.bin", split.document_starts, split.num_documents, split.num_sentences),
    ]
    counts = np.zeros(vocab_size, dtype=np.int64)
    for start in range(0, split.num_tokens, _CHUNK):
        token_ids = split.tokens(start, min(start + _CHUNK, split.num_tokens))
        if token_ids.max() >= vocab_size:
            position = start + int(np.argmax(token_ids >= vocab_size))
            return [*faults, f"token {position} is not in the vocabulary of {vocab_size}"]
        counts += np.bincount(token_ids, minlength=vocab_size)
    if not np.array_equal(counts, split.token_counts):
        faults.append("token_counts.bin does not count the tokens")
    return faults


def _bound_faults(name: str, starts: np.ndarray, num_items: int, total: int) -> list[str]:
    if len(starts) != num_items + 1:
        return [f"{name} has {len(starts)} entries, must have {num_items + 1}"]
    if starts[0] != 0 or starts[-1] != total:
        return [f"{name} must run from 0 to {total}, runs from {starts[0]} to {starts[-1]}"]
    for begin in range(0, num_items, _CHUNK):
        steps = np.diff(starts[begin : begin + _CHUNK + 1])
        if steps.min() < 1:
            return [f"{name} does not rise at entry {begin + int(np.argmax(steps < 1)) + 1}"]
    return []
