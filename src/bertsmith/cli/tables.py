"""Tables and bars that only some commands need."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn
from rich.table import Table

from bertsmith.tokenization.report import TokenizerReport


def script_table(found: TokenizerReport) -> None:
    """A tokenizer's report as a table on standard output."""
    table = Table(box=None, pad_edge=False)
    for heading in ("script", "words", "pieces a word", "unknown pieces", "unknown words", "longest words"):
        table.add_column(heading, justify="left" if heading in ("script", "longest words") else "right")
    for script in (found.overall, *found.by_script):
        table.add_row(
            script.script,
            f"{script.num_words:,}",
            f"{script.pieces_per_word:.2f}",
            f"{script.unknown_share:.2%}",
            f"{script.num_unknown_words:,}",
            ", ".join(word if len(word) <= 24 else f"{word[:24]}…" for word in script.longest_words[:3]),
        )
    Console().print(table)


@contextlib.contextmanager
def byte_progress(what: str) -> Iterator[Callable[[int], None]]:
    """A live line that counts bytes on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    columns = (TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done: progress.update(task, completed=done)
