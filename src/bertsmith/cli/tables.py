"""Tables and bars that only some commands need."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn
from rich.table import Table

from bertsmith.reports.profile_words import milliseconds, part_title
from bertsmith.tokenization.report import TokenizerReport

_LONGEST_SHOWN = 24


def script_table(found: TokenizerReport) -> None:
    """A tokenizer's report as a table on standard output."""
    table = Table(box=None, pad_edge=False)
    for heading in ("script", "words", "pieces a word", "unknown pieces", "unknown words"):
        table.add_column(heading, justify="left" if heading == "script" else "right")
    for name, counts in {**found.by_script, "all": found.overall}.items():
        table.add_row(
            name,
            f"{counts.num_words:,}",
            f"{counts.pieces_per_word:.2f}",
            f"{counts.unknown_share:.2%}",
            f"{counts.num_unknown_words:,}",
        )
    console = Console()
    console.print(table)
    longest = (word if len(word) <= _LONGEST_SHOWN else f"{word[:_LONGEST_SHOWN]}…" for word in found.longest_words)
    # What stands in a text is not markup.
    console.print(f"\nlongest words: {', '.join(longest)}", markup=False, highlight=False)
    if found.num_words_too_long:
        console.print(f"unknown because they are too long: {found.num_words_too_long:,} words")


def part_table(parts: Sequence[Mapping[str, Any]]) -> None:
    """The parts of a step as a table on standard output.

    Args:
        parts: of a profile, as plain values.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "forward", "backward", "ms", "share", "floor, ms"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    for part in parts:
        directions = (milliseconds(part[name]) for name in ("forward_ms", "backward_ms", "ms"))
        floor = milliseconds(part["floor_ms"] or None)
        table.add_row(part_title(part["part"]), *directions, f"{part['share']:.1%}", floor)
    table.add_section()
    total = {name: math.fsum(part[name] for part in parts) for name in ("ms", "share", "floor_ms")}
    table.add_row(
        "step, watched", "", "", milliseconds(total["ms"]), f"{total['share']:.1%}", milliseconds(total["floor_ms"])
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
