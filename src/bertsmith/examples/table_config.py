"""How the files of a task are read, and what the commands that read them call these settings."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from bertsmith.foundation.config import Config


class TableConfig(Config):
    """How the files of a task are read."""

    text: str | None = None
    """Column of the text; guessed, and said, where not given. The same holds for the next two."""
    pair: str | None = None
    """Column of the second text."""
    label: str | None = None
    negative: str | None = None
    """For embeddings: column of a text that does not belong to the first, where there is one."""
    encoding: Annotated[str, Field(min_length=1)] = "utf-8"
    blank_rows: Literal["refuse", "skip"] = "refuse"
    """What becomes of a row with a blank text or label."""
    strict: bool = False
    """Refuse what is otherwise only said: rows that contradict each other, rows of validation that stand in training
    too, broken labels of words, answers that are not where they should be. It lets no blank row be skipped."""


@dataclass(frozen=True)
class OptionNames:
    """How a command takes what stands in `TableConfig`, so that errors name options that it has."""

    text: str = "--text"
    pair: str = "--pair"
    label: str = "--label"
    encoding: str = "--encoding"
    skip_blank: str | None = None
    """What leaves blank rows out, where something does."""
    strict: str = "--strict"
