"""How the files of a task are read, and what the commands that read them call these settings."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field, model_validator

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError
from bertsmith.text.decoding import HoldsNul, InUtf16, NotUtf8


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

    @model_validator(mode="after")
    def _columns_differ(self) -> "TableConfig":
        named = [(name, getattr(self, name)) for name in ("text", "pair", "label", "negative")]
        for (first, column), (second, other) in combinations(named, 2):
            if column is not None and column == other:
                raise InputError(
                    "Each column can hold one thing",
                    f"“{column}” for {first} and for {second}",
                    "Name two columns.",
                )
        return self


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

    @contextlib.contextmanager
    def mend_bytes(self) -> Iterator[None]:
        """What is wrong with a file's bytes is told with what mends it here: an encoding is named by its option, and
        no file can be left out."""
        try:
            yield
        except InUtf16 as error:
            given = self.encoding.replace("NAME", "utf-16") if "NAME" in self.encoding else f"{self.encoding} utf-16"
            raise InputError(error.rule, error.received, f"Read it with {given}.") from None
        except NotUtf8 as error:
            do = f"Name the file's encoding with {self.encoding}, for example latin-1."
            raise InputError(error.rule, error.received, do) from None
        except HoldsNul as error:
            do = f"Remove such bytes, or save the file as text; UTF-16 and UTF-32 are read with {self.encoding}."
            raise InputError(error.rule, error.received, do) from None
