"""Files and folders that are either whole or absent.

A file is written beside its place and renamed into it. A folder is filled under a temporary name, synced, sealed by a
manifest of SHA-256 sums that is written last, and renamed. So a power cut leaves the old state or the new one.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from typing import Any

from bertsmith.foundation.errors import InputError

MANIFEST = "manifest.json"
_TEMPORARY = ".partial-"
_REPLACED = "-old-"
_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def disk_room(where: Path) -> Iterator[None]:
    """Turn a full disk or a spent quota inside the block into an `InputError` that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            raise
        raise InputError(
            "The disk must have room for what is written",
            f"no space left while writing under {where}",
            "Free some space or choose another folder, then give the same command again.",
        ) from error


def place_of_file(path: Path) -> Path | None:
    """Where a file of this name is written: a link stays, and what it leads to is replaced.

    Returns:
        the place; None where no file can be renamed into it: a folder, a device, a pipe or a circle of links.
    """
    place = Path(os.path.realpath(path))
    is_something_else = path.exists() and not path.is_file()
    of_system = any(_is_of_system(way) for way in (Path(os.path.abspath(path)), place))
    return None if is_something_else or of_system or place.is_symlink() else place


def _is_of_system(path: Path) -> bool:
    """Whether a path names what the system runs by, such as /dev/stdout, which may well lead to a file."""
    return path.is_relative_to("/proc") or (path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm"))


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file, or leave what was there.

    Raises:
        InputError: if the disk is full, or there is something other than a file.
    """
    data = content.encode() if isinstance(content, str) else content
    place = place_of_file(path)
    if place is None:
        raise InputError("A file can replace only a file", f"{path}, which is none", "Choose another place.")
    temporary = place.with_name(f"{_TEMPORARY}{uuid.uuid4().hex[:8]}-{place.name}")
    try:
        with disk_room(path.parent):
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented UTF-8 JSON, whole or not at all."""
    write_file(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


@contextlib.contextmanager
def new_folder(path: Path, *, seal: dict[str, Any] | None = None) -> Iterator[Path]:
    """Fill a folder under a temporary name; it appears at `path` only when the block ended without an error.

    Args:
        path: where the folder is to appear. An existing folder there is moved away first; after a power cut between
            the two renames, `remove_leftovers` puts it back.
        seal: where given, `manifest.json` is written last, with these entries and the sums of every file.

    Yields:
        the temporary folder to write into.

    Raises:
        InputError: if the disk is full. Nothing is left behind.
    """
    with disk_room(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex[:8]}-{path.name}")
        temporary.mkdir()
        try:
            yield temporary
            if seal is not None:
                write_json(temporary / MANIFEST, {**seal, "files": file_sums(temporary)})
            _sync_tree(temporary)
            _swap_in(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(parent: Path, name: str = "*") -> None:
    """Remove what an interrupted write left in `parent`; a folder that was about to be replaced is put back.

    Args:
        parent: where to look.
        name: name of the file or folder that was written; whatever was written there where not given.
    """
    wanted = name if name == "*" else glob.escape(name)
    for leftover in parent.glob(f"{_TEMPORARY}????????{_REPLACED}{wanted}"):
        original = parent / leftover.name.split(_REPLACED, 1)[1]
        if not original.exists():
            os.replace(leftover, original)
    leftovers = {
        *parent.glob(f"{_TEMPORARY}????????-{wanted}"),
        *parent.glob(f"{_TEMPORARY}????????{_REPLACED}{wanted}"),
    }
    for leftover in leftovers:
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def sealed_folder_of(path: Path) -> Path | None:
    """The sealed folder that a file is part of by that folder's manifest, however deep; None where there is none."""
    for folder in path.parents:
        with contextlib.suppress(InputError, OSError):
            if path.relative_to(folder).as_posix() in read_manifest(folder)["files"]:
                return folder
    return None


def file_sums(folder: Path) -> dict[str, dict[str, Any]]:
    """SHA-256 and size in bytes of every file under `folder`, by POSIX path, in the order of their names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size} for path in paths
    }


def sha256(path: Path) -> str:
    """The SHA-256 sum of a file, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a sealed folder.

    Raises:
        InputError: if there is none, or it is no JSON object with sums, or it names a file that lies elsewhere.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"A finished folder holds {MANIFEST}", f"{folder} without it", "Was its writing interrupted? Make it anew."
        ) from None
    except ValueError:
        manifest = None
    files = manifest.get("files") if isinstance(manifest, dict) else None
    entries = files.values() if isinstance(files, dict) else [None]
    if not isinstance(manifest, dict) or not all(
        isinstance(e, dict) and {"sha256", "bytes"} <= e.keys() for e in entries
    ):
        raise InputError(f"{MANIFEST} must hold the sums of the files", path, "The folder is damaged: make it anew.")
    if outside := [name for name in manifest["files"] if not _lies_within(name)]:
        raise InputError(
            f"{MANIFEST} must name files inside its folder alone",
            f"{outside[0]!r} in {path}",
            "Do not use this folder.",
        )
    return manifest


def _lies_within(name: str) -> bool:
    """Whether a path of a manifest stays inside the folder, on every system: Windows knows both slashes."""
    path = PureWindowsPath(name)
    return bool(path.parts) and not path.anchor and ".." not in path.parts


def folder_faults(folder: Path) -> list[str]:
    """Compare a sealed folder with its manifest.

    Returns:
        one line for each missing, cut or altered file; empty where the folder is as it was written.

    Raises:
        InputError: if the folder has no readable manifest.
    """
    faults: list[str] = []
    for name, expected in read_manifest(folder)["files"].items():
        path = folder / name
        if not path.is_file():
            faults.append(f"{name}: missing")
        elif path.stat().st_size != expected["bytes"]:
            faults.append(f"{name}: {path.stat().st_size} bytes, was written with {expected['bytes']}")
        elif sha256(path) != expected["sha256"]:
            faults.append(f"{name}: content differs from what was written (SHA-256)")
    return faults


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            # Windows can sync only a handle that may write.
            with open(path, "rb+") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Folders cannot be opened there; a rename is journaled by the file system.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap_in(temporary: Path, path: Path) -> None:
    if path.exists():
        old = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex[:8]}{_REPLACED}{path.name}")
        os.replace(path, old)
        os.replace(temporary, path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(temporary, path)
    _sync_folder(path.parent)
