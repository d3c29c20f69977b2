"""A look at the data of a task before anything is trained: what a person should know of it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bertsmith.examples.task_tables import TaskRow, TaskTable

_FEW_ROWS = 10
_UNEVEN = 10
_MOST_SHOWN = 5


def table_notes(table: TaskTable) -> list[str]:
    """What stands out in the rows themselves, one line each; empty where nothing does."""
    notes = skipped_notes(table.skipped)
    contradicting = _contradicting(table.rows)
    if doubles := sum(count - 1 for count in Counter(row.texts for row in table.rows).values()):
        notes.append(f"{doubles:,} of {len(table.rows):,} rows repeat the text of another")
    if contradicting:
        notes.append(f"{len(contradicting):,} texts have different labels in other rows: “{contradicting[0]:.60}” …")
    return notes


def skipped_notes(places: Sequence[str]) -> list[str]:
    """A line about rows that were left out because something in them is blank; none without any."""
    return [f"{len(places):,} rows left out, blank: {_some(places)}"] if places else []


def overlap_note(train: Sequence[Any], validation: Sequence[Any]) -> str | None:
    """A line about rows that stand in both, which make scores look better than they are; None without any.

    Args:
        train: rows with a `key`, the text or texts.
        validation: others.
    """
    known = {row.key for row in train}
    shared = sum(row.key in known for row in validation)
    return f"{shared:,} of {len(validation):,} validation texts stand in the training rows too" if shared else None


def label_notes(counts: dict[str, int]) -> list[str]:
    """What stands out in the number of rows of each label."""
    notes: list[str] = []
    small = [f"{name} {count}" for name, count in counts.items() if count < _FEW_ROWS]
    if small:
        notes.append(f"labels with fewer than {_FEW_ROWS} training rows: {_some(small)}")
    largest, smallest = max(counts.values()), min(counts.values())
    if largest >= _UNEVEN * max(smallest, 1):
        notes.append(
            f"labels are uneven, {largest:,} rows of the commonest and {smallest:,} of the rarest: look at the scores "
            "of each label, or weigh them alike with --set class_weights=balanced"
        )
    return notes


def cut_note(num_cut: int, num_rows: int, max_length: int, kept: str) -> str | None:
    """A line about rows that are longer than the model sees; None without any."""
    if not num_cut:
        return None
    return f"{num_cut:,} of {num_rows:,} rows are longer than {max_length} tokens; their {kept} is used"


def _contradicting(rows: Sequence[TaskRow]) -> list[str]:
    seen: dict[str | tuple[str, str], str] = {}
    found: dict[str, None] = {}
    for row in rows:
        if seen.setdefault(row.texts, str(row.label)) != str(row.label):
            found[row.text] = None
    return list(found)


def _some(items: Sequence[str]) -> str:
    more = len(items) - _MOST_SHOWN
    return ", ".join(items[:_MOST_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
