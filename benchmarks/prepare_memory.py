"""Peak memory and speed of corpus preparation, for a small and a large text.

    python benchmarks/prepare_memory.py                       # 10 MB and 1 GB
    python benchmarks/prepare_memory.py --megabytes 10        # the small one alone

Text is made up, the same on every run, and written to a temporary file. The memory is that of the whole process tree,
resident pages summed, so that pages which processes share count once for each of them.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.prepare import CorpusConfig, prepare_corpus
from bertsmith.foundation.files import write_json
from bertsmith.foundation.random_streams import random_stream
from bertsmith.text.documents import TextConfig, read_documents
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer

MEGABYTE = 1_000_000
LIMIT_MEGABYTES = 600
_SYLLABLES = ("ba", "den", "fi", "gor", "hul", "ka", "lem", "mi", "nos", "pra", "ru", "sil", "ta", "ven", "wo", "zu")
_NUM_WORDS = 20_000
_WORDS_AT_ONCE = 50_000
_SAMPLE_SECONDS = 0.05


def write_babble(path: Path, size: int) -> None:
    """Write at least `size` bytes of words with Zipf's frequencies, in sentences and documents of mixed lengths."""
    stream = random_stream(0, "babble")
    words = np.array(["".join(stream.choice(_SYLLABLES, size=length)) for length in stream.integers(1, 5, _NUM_WORDS)])
    weights = 1 / np.arange(2, _NUM_WORDS + 2)
    weights /= weights.sum()
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        while written < size:
            drawn = stream.choice(words, size=_WORDS_AT_ONCE, p=weights)
            ends = np.cumsum(stream.integers(4, 30, _WORDS_AT_ONCE // 30))
            sentences = [f"{' '.join(part).capitalize()}." for part in np.split(drawn, ends) if len(part)]
            breaks = stream.random(len(sentences)) < 0.08
            text = "".join(s + ("\n\n" if is_last else " ") for s, is_last in zip(sentences, breaks, strict=True))
            written += file.write(text)


def prepare_once(text: Path, tokenizer: Path, out: Path, workers: int) -> None:
    """The work that is measured, in a process of its own."""
    documents = read_documents([text], TextConfig())
    prepare_corpus(documents, Tokenizer.from_folder(tokenizer), out, CorpusConfig(workers=workers))


def measure(folder: Path, megabytes: int, workers: int) -> dict[str, Any]:
    """Prepare a text of `megabytes`, and tell the peak of the process tree's memory and the speed."""
    text, out = folder / "text.txt", folder / f"corpus-{megabytes}"
    write_babble(text, megabytes * MEGABYTE)
    size = text.stat().st_size
    paths = [str(path) for path in (text, folder / "tokenizer", out)]
    started_at = time.monotonic()
    run = subprocess.Popen([sys.executable, __file__, "--once", *paths, "--workers", str(workers)])
    peak, most_processes = 0, 0
    while run.poll() is None:
        sizes = tree_sizes(run.pid)
        peak, most_processes = max(peak, sum(sizes)), max(most_processes, len(sizes))
        time.sleep(_SAMPLE_SECONDS)
    elapsed_seconds = time.monotonic() - started_at
    if run.returncode:
        raise SystemExit(f"preparing {megabytes} MB ended with exit code {run.returncode}")
    manifest = Corpus.open(out).manifest
    text.unlink()
    return {
        "text_megabytes": round(size / MEGABYTE, 1),
        "workers": workers,
        "processes": most_processes,
        "peak_megabytes": round(peak / MEGABYTE, 1),
        "elapsed_seconds": round(elapsed_seconds, 1),
        "megabytes_per_second": round(size / MEGABYTE / elapsed_seconds, 2),
        "documents": manifest.train.documents + manifest.validation.documents,
        "sentences": manifest.train.sentences + manifest.validation.sentences,
        "tokens": manifest.train.tokens + manifest.validation.tokens,
    }


def tree_sizes(pid: int) -> list[int]:
    """Resident bytes of a process and of each process below it; empty where it has just ended."""
    try:
        root = psutil.Process(pid)
        return [process.memory_info().rss for process in (root, *root.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def machine_facts() -> dict[str, Any]:
    """What the numbers depend on besides the code."""
    return {
        "platform": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_megabytes": round(psutil.virtual_memory().total / MEGABYTE),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "tokenizers")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 1000], help="sizes of text to prepare")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--out", type=Path, default=Path("docs/soak/prepare.json"), help="where the numbers go")
    parser.add_argument("--once", type=Path, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        text, tokenizer_folder, out = options.once
        prepare_once(text, tokenizer_folder, out, options.workers)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample = folder / "sample.txt"
        write_babble(sample, 2 * MEGABYTE)
        config = TokenizerConfig(vocab_size=8000)
        tokenizer = train_tokenizer(lambda: (found.text for found in read_documents([sample], TextConfig())), config)
        tokenizer.save(folder / "tokenizer")
        results = [measure(folder, megabytes, options.workers) for megabytes in options.megabytes]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, {"machine": machine_facts(), "limit_megabytes": LIMIT_MEGABYTES, "results": results})
    print(json.dumps(results, indent=2))
    if any(result["peak_megabytes"] > LIMIT_MEGABYTES for result in results):
        raise SystemExit(f"more than {LIMIT_MEGABYTES} MB at the peak")


if __name__ == "__main__":
    main()
