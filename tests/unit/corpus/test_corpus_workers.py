"""The pool: bounded, free of torch and of the caller's script, and honest when a worker dies."""

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bertsmith.corpus.workers import POOL_FROM_BLOCKS, tokenize_blocks
from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.tokenizer import Tokenizer


@pytest.fixture
def tokenizer_folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    tokenizer.save(folder)
    return folder


def test_only_a_few_blocks_are_read_ahead_and_results_keep_their_order(
    tokenizer: Tokenizer, tokenizer_folder: Path
) -> None:
    read = 0

    def stream() -> Iterator[list[str]]:
        nonlocal read
        for number in range(60):
            read += 1
            yield ["The cat. " * (number + 1)]

    sentences = []
    for done, block in enumerate(tokenize_blocks(stream(), tokenizer, tokenizer_folder, seed=0, workers=2)):
        assert read - done <= max(2 * 2 + 1, POOL_FROM_BLOCKS)
        sentences.append(int(block.document_sentences[0]))
    assert sentences == list(range(1, 61))


def test_a_worker_that_dies_is_told_and_nothing_hangs(tokenizer: Tokenizer, tokenizer_folder: Path) -> None:
    def stream() -> Iterator[list[str]]:
        for number in range(1000):
            if number == 20:
                for child in multiprocessing.active_children():
                    child.kill()
            yield ["The cat went home."]

    with pytest.raises(InputError, match="one of 2 workers died"):
        list(tokenize_blocks(stream(), tokenizer, tokenizer_folder, seed=0, workers=2))
    assert multiprocessing.active_children() == []


def test_a_script_without_a_main_guard_prepares_and_is_not_run_again_by_its_workers(
    tmp_path: Path, tokenizer_folder: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""
print("imported", flush=True)
from pathlib import Path
from bertsmith.corpus.workers import tokenize_blocks
from bertsmith.tokenization.tokenizer import Tokenizer
folder = Path({str(tokenizer_folder)!r})
blocks = [["The cat went home."]] * 8
print(len(list(tokenize_blocks(blocks, Tokenizer.from_folder(folder), folder, seed=0, workers=2))))
"""
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout.split(), result.stderr) == (0, ["imported", "8"], "")


def test_what_a_worker_imports_holds_no_torch() -> None:
    check = "import sys, bertsmith.corpus.workers, bertsmith.corpus.prepare; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "False"
