"""Errors that tell the rule, what was received and what to do.

Two kinds leave the package on purpose: `InputError`, which the command line turns into exit code 2, and `Stopped`,
which becomes exit code 3. Anything else is a fault of ours.
"""

import difflib
from collections.abc import Iterable


class BertsmithError(Exception):
    """Base of every error that bertsmith raises on purpose."""


class InputError(BertsmithError, ValueError):
    """Something that a person gave cannot be used.

    Args:
        rule: the rule that was broken, as a sentence without its full stop.
        received: what came instead, short enough to be read.
        do: what to do next, as a sentence.
    """

    def __init__(self, rule: str, received: object, do: str) -> None:
        self.rule = rule.rstrip(".")
        self.received = str(received)
        self.do = do if do.endswith((".", "?", "`", "!")) else f"{do}."
        super().__init__(f"{self.rule}. Received: {self.received}. {self.do}")

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str]]:
        # An exception is pickled by its message alone, which cannot build this one anew in another process.
        return type(self), (self.rule, self.received, self.do)


class Stopped(BertsmithError):
    """A run was asked to stop, has written its state, and goes on when the same command is given again."""


def near_match(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was most likely meant to be, or None where nothing is near."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not on a closed list: it shows the list and the nearest entry."""
    names = sorted(known)
    near = near_match(name, names)
    do = f"Did you mean {near}?" if near else f"Use one of: {', '.join(names)}."
    return InputError(f"{kind} must be one of: {', '.join(names)}", name, do)
