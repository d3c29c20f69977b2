"""A folder that one process at a time works in. The system ends the lock with the process, however that ends, and with
those that it has forked."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from bertsmith.foundation.errors import InputError

_LOCKS = Path("/proc/locks")
"""Where Linux tells who holds what."""


@contextlib.contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Hold a folder while the block runs, so that no other process works in it; who only reads it asks for nothing.

    No file is left: the folder itself is locked. Where that cannot be done, as on Windows and some network file
    systems, the block runs without a lock.

    Args:
        path: the folder; made where it is not there, and removed again if the block leaves it empty.

    Raises:
        InputError: if another process holds it, which is named where the system tells.
    """
    made = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    with contextlib.suppress(OSError):  # Whoever writes there tells it better.
        path.mkdir(parents=True, exist_ok=True)
    descriptor = _lock(path)
    try:
        yield
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if descriptor is not None:
            os.close(descriptor)


def _lock(path: Path) -> int | None:
    """An open folder that is locked until it is closed; None where there are no such locks."""
    if os.name == "nt":  # Folders cannot be opened there.
        return None
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(os.fstat(descriptor))
        os.close(descriptor)
        raise InputError(
            "One process at a time may work in a folder",
            f"{path}, where {holder} is at work",
            "Wait until it has ended, stop it, or choose another folder.",
        ) from None
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _holder(folder: os.stat_result) -> str:
    """The process that holds the lock of a file, as far as the system tells."""
    lines = _LOCKS.read_text().splitlines() if _LOCKS.is_file() else []
    device = f"{os.major(folder.st_dev):02x}:{os.minor(folder.st_dev):02x}"
    for fields in map(str.split, lines):
        # A number, FLOCK, ADVISORY, WRITE, the process, device:inode and the range; one that waits has -> before it.
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == f"{device}:{folder.st_ino}":
            return f"process {fields[4]}"
    return "another process"
