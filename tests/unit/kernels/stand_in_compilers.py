"""Programs that stand in for a compiler, and looking for kernels anew."""

from pathlib import Path

from bertsmith.kernels import library

GNU = "g++ 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc."


def stand_in(path: Path, work: str, *, about: str = GNU) -> Path:
    """A program that tells what it is, and otherwise does some work in the shell; ``$target`` is what it should make.

    It notes each compilation as a line of the file ``calls`` beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then printf "%s\\n" "{about}"; exit 0; fi\n'
        f'echo "$*" >> "{path.parent}/calls"\nfor target; do :; done\n{work}\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def num_calls(path: Path) -> int:
    """How often a stand-in has compiled."""
    calls = path.parent / "calls"
    return len(calls.read_text(encoding="utf-8").splitlines()) if calls.exists() else 0


def forget_kernels() -> None:
    """Let this process find out anew about its kernels, at its next call."""
    for known in vars(library).values():
        if hasattr(known, "cache_clear"):
            known.cache_clear()
