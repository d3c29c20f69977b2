"""Kills, Ctrl-C, full disks and damaged files: a corpus is whole, or absent, or told to be damaged."""

import errno
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bertsmith.corpus import writer
from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.prepare import CorpusConfig, prepare_corpus
from bertsmith.corpus.verify import verify_corpus
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import file_sums, read_manifest, write_json
from bertsmith.text.documents import Document
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer

TEXTS = [f"The cat saw {number} dogs. It went home. Rain fell on {number} roofs." for number in range(30)]

ENDLESS_RUN = """
import sys
import time
from pathlib import Path
from bertsmith.corpus import blocks
from bertsmith.corpus.prepare import CorpusConfig, prepare_corpus
from bertsmith.text.documents import Document
from bertsmith.tokenization.tokenizer import Tokenizer

blocks.BLOCK_CHARACTERS = 2_000

def endless():
    for _ in range(400):
        yield Document(text="The cat saw a dog. It went home. " * 20, source="made.txt")
    time.sleep(1_000)

try:
    tokenizer = Tokenizer.from_folder(Path(sys.argv[1]))
    prepare_corpus(endless(), tokenizer, Path(sys.argv[2]), CorpusConfig(workers=2, shard_tokens=10_000))
except KeyboardInterrupt:
    sys.exit(3)
"""


def _documents() -> list[Document]:
    return [Document(text=text, source="made.txt") for text in TEXTS]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(lambda: TEXTS, TokenizerConfig(vocab_size=60))


@pytest.fixture
def corpus(tmp_path: Path, tokenizer: Tokenizer) -> Corpus:
    return prepare_corpus(_documents(), tokenizer, tmp_path / "out", CorpusConfig(workers=1, shard_tokens=100))


def _start_endless_run(tmp_path: Path, tokenizer: Tokenizer, out: Path) -> subprocess.Popen[bytes]:
    """Start a run that has workers, writes some tokens, and then waits for more text that never comes."""
    (tmp_path / "tokenizer").mkdir()
    tokenizer.save(tmp_path / "tokenizer")
    command = [sys.executable, "-c", ENDLESS_RUN, str(tmp_path / "tokenizer"), str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def _wait_for_children(run: subprocess.Popen[bytes], until: Callable[[list[Any]], bool]) -> list[Any]:
    """The child processes of a run, as soon as `until` is content."""
    deadline = time.monotonic() + 30
    while not until(children := psutil.Process(run.pid).children(recursive=True)):
        assert run.poll() is None, run.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return children


def _has_tokens(out: Path) -> bool:
    return any(out.parent.glob(".partial-*/train/tokens-00001.bin"))


def _assert_ended(children: list[Any]) -> None:
    # Where nobody collects orphans, an ended process stays listed as a zombie.
    _, alive = psutil.wait_procs(children, timeout=10)
    running = [child for child in alive if child.status() != psutil.STATUS_ZOMBIE]
    assert running == []


def test_a_killed_run_leaves_nothing_that_opens_no_workers_and_the_next_run_succeeds(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    folder = tmp_path / "corpora"
    folder.mkdir()
    (folder / ".partial-0123abcd-other").mkdir()
    out = folder / "out"
    run = _start_endless_run(tmp_path, tokenizer, out)
    children = _wait_for_children(run, lambda _: _has_tokens(out))
    assert len(children) >= 2
    time.sleep(0.5)  # By now the workers have nothing to do, and would not notice on their own.
    run.kill()
    assert b"Traceback" not in run.communicate(timeout=30)[1]
    _assert_ended(children)
    assert not out.exists()
    (leftover,) = folder.glob(".partial-????????-out")
    for left in (out, leftover):
        with pytest.raises(InputError):
            Corpus.open(left)
    corpus = prepare_corpus(_documents(), tokenizer, out, CorpusConfig(workers=1))
    assert verify_corpus(out) == []
    assert corpus.split("train").num_documents > 20
    assert {path.name for path in folder.iterdir()} == {"out", ".partial-0123abcd-other"}


if os.name == "posix":  # Elsewhere a terminal's Ctrl-C cannot be sent to one group of processes.

    @pytest.mark.parametrize("seconds_after_start", [0.0, 0.1, 0.3, None])
    def test_ctrl_c_leaves_no_output_no_workers_and_no_tracebacks(
        tmp_path: Path, tokenizer: Tokenizer, seconds_after_start: float | None
    ) -> None:
        folder = tmp_path / "corpora"
        folder.mkdir()
        out = folder / "out"
        run = _start_endless_run(tmp_path, tokenizer, out)
        # At first workers are only being started; at last tokens are being written.
        if seconds_after_start is None:
            children = _wait_for_children(run, lambda _: _has_tokens(out))
        else:
            children = _wait_for_children(run, lambda found: len(found) >= 2)
            time.sleep(seconds_after_start)
        os.killpg(run.pid, signal.SIGINT)
        output, errors = run.communicate(timeout=30)
        assert (run.returncode, output, errors) == (3, b"", b"")
        _assert_ended(children)
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("room", [0, 20, 300, 700])
def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    written = 0

    class FullDisk(io.FileIO):
        def write(self, data: Any) -> int:
            nonlocal written
            written += len(data)
            if written > room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(writer, "open", FullDisk, raising=False)
    with pytest.raises(InputError, match=r"The disk must have room .* choose another folder"):
        prepare_corpus(_documents(), tokenizer, tmp_path / "out", CorpusConfig(workers=1, shard_tokens=100))
    assert written > room
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_bit_anywhere_is_found(corpus: Corpus) -> None:
    stream = random.Random(0)
    paths = sorted(path for path in corpus.folder.rglob("*") if path.is_file())
    assert len(paths) > 10
    for path in paths:
        whole = path.read_bytes()
        for _ in range(60 if path.name == "manifest.json" else 3):
            damaged = bytearray(whole)
            damaged[stream.randrange(len(whole))] ^= 1 << stream.randrange(8)
            path.write_bytes(damaged)
            assert _is_found(corpus.folder), (path, damaged)
        path.write_bytes(whole)
    assert verify_corpus(corpus.folder) == []


def _is_found(folder: Path) -> bool:
    try:
        return verify_corpus(folder) != []
    except InputError:
        return True


@pytest.mark.parametrize("name", ["characters", "bytes", "unknown_tokens", "longest_sentence"])
def test_a_changed_number_in_the_manifest_is_found(corpus: Corpus, name: str) -> None:
    entries = read_manifest(corpus.folder)
    entries["train"][name] += 1
    write_json(corpus.folder / "manifest.json", entries)
    assert verify_corpus(corpus.folder) == ["manifest.json: an entry differs from what was written (SHA-256)"]


def test_a_cut_file_is_found_when_the_corpus_is_opened(corpus: Corpus) -> None:
    path = corpus.folder / "train" / "tokens-00001.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(InputError, match=r"tokens-00001\.bin.*`bertsmith verify "):
        Corpus.open(corpus.folder)
    (fault,) = verify_corpus(corpus.folder)
    assert fault.startswith("train/tokens-00001.bin: 198 bytes")


def test_a_missing_file_is_found_when_the_corpus_is_opened(corpus: Corpus) -> None:
    (corpus.folder / "validation" / "document_starts.bin").unlink()
    with pytest.raises(InputError, match=r"document_starts\.bin.*`bertsmith verify "):
        Corpus.open(corpus.folder)
    assert verify_corpus(corpus.folder) == ["validation/document_starts.bin: missing"]


def _rewrite(corpus: Corpus, name: str, dtype: str, change: dict[int, int]) -> None:
    """Change entries of a file and seal the folder again, so that only its structure tells the fault."""
    path = corpus.folder / "train" / name
    values = np.fromfile(path, dtype=dtype)
    for place, value in change.items():
        values[place] = value
    values.tofile(path)
    entries = read_manifest(corpus.folder)
    write_json(corpus.folder / "manifest.json", {**entries, "files": file_sums(corpus.folder)})


def test_an_id_outside_the_vocabulary_is_found(corpus: Corpus, tokenizer: Tokenizer) -> None:
    _rewrite(corpus, "tokens-00001.bin", "<u2", {7: tokenizer.vocab_size})
    assert verify_corpus(corpus.folder) == [f"train: token 107 is not in the vocabulary of {tokenizer.vocab_size}"]


def test_bounds_that_do_not_rise_are_found(corpus: Corpus) -> None:
    starts = corpus.split("train").sentence_starts.tolist()
    _rewrite(corpus, "sentence_starts.bin", "<i8", {5: starts[4]})
    assert verify_corpus(corpus.folder) == ["train: sentence_starts.bin does not rise at entry 5"]


def test_bounds_that_end_elsewhere_are_found(corpus: Corpus) -> None:
    sentences = corpus.split("train").num_sentences
    _rewrite(corpus, "document_starts.bin", "<i8", {-1: sentences + 1})
    (fault,) = verify_corpus(corpus.folder)
    assert fault.startswith(f"train: document_starts.bin must run from 0 to {sentences}")


def test_counts_that_do_not_count_the_tokens_are_found(corpus: Corpus) -> None:
    _rewrite(corpus, "token_counts.bin", "<i8", {0: 1})
    assert verify_corpus(corpus.folder) == ["train: token_counts.bin does not count the tokens"]
