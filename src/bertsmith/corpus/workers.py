"""A pool of processes that tokenize blocks: results in order, a bounded number of blocks in flight."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from pathlib import Path

from bertsmith.corpus.blocks import TokenBlock, tokenize_block
from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.tokenizer import Tokenizer

# Starting a pool costs about half a second, and every process meets the words of the text anew: fewer blocks than this
# are done sooner in this process.
POOL_FROM_BLOCKS = 8
# Windows waits on at most 63 handles, two of which the pool needs.
_MAX_WORKERS = 61

_loaded: tuple[Tokenizer, int] | None = None


def tokenize_blocks(
    blocks: Iterable[list[str]], tokenizer: Tokenizer, tokenizer_folder: Path, *, seed: int, workers: int
) -> Generator[TokenBlock, None, None]:
    """Tokenize blocks of texts, in order. Close the generator to end its processes.

    Workers are spawned, on every system. Each one loads the tokenizer once from `tokenizer_folder`, and holds about
    80 MB. The caller's `__main__` is not imported again in them, so a script needs no ``if __name__ == "__main__"``
    and may have imported torch.

    Raises:
        InputError: if a worker process died.
    """
    stream = iter(blocks)
    first = list(islice(stream, POOL_FROM_BLOCKS))
    if workers == 1 or len(first) < POOL_FROM_BLOCKS:
        for block in chain(first, stream):
            yield tokenize_block(block, tokenizer, seed=seed)
    else:
        yield from _pooled(chain(first, stream), tokenizer_folder, seed=seed, workers=min(workers, _MAX_WORKERS))


def _pooled(blocks: Iterable[list[str]], tokenizer_folder: Path, *, seed: int, workers: int) -> Iterator[TokenBlock]:
    executor = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(tokenizer_folder, seed),
    )
    in_flight: deque[Future[TokenBlock]] = deque()
    try:
        for block in blocks:
            if len(in_flight) == 2 * workers:
                yield in_flight.popleft().result()
            with _undisturbed_start():
                in_flight.append(executor.submit(_tokenize_in_worker, block))
        while in_flight:
            yield in_flight.popleft().result()
    except BrokenProcessPool as error:
        raise InputError(
            "Every worker process must live until its work is done",
            f"one of {workers} workers died",
            "Was memory short? Give the same command again with --workers 1.",
        ) from error
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _undisturbed_start() -> Iterator[None]:
    """Let processes that start inside the block neither see Ctrl-C nor import the caller's `__main__`.

    A signal mask is inherited, so that not even a worker that is still importing prints a traceback. It keeps Ctrl-C
    from this thread alone, though: another one may take it and interrupt a half-done start, so it waits until the end
    of the block.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    can_mask = hasattr(signal, "pthread_sigmask")
    with _later_interrupt():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_mask else None
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _later_interrupt() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    # Python runs handlers in the main thread only, and cannot put back one that was not set from Python.
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


def _start_worker(tokenizer_folder: Path, seed: int) -> None:
    global _loaded
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The processes are the parallelism; threads of the tokenizer on top would only fight over the cores.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _loaded = Tokenizer.from_folder(tokenizer_folder), seed


def _end_with_parent() -> None:
    # Workers hold both ends of the pool's pipes, so a killed parent would leave them waiting for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tokenize_in_worker(texts: list[str]) -> TokenBlock:
    if _loaded is None:
        raise RuntimeError("the worker was not started by its initializer")
    tokenizer, seed = _loaded
    return tokenize_block(texts, tokenizer, seed=seed)
