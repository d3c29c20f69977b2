"""A folder that one process at a time works in."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.foundation import folder_lock
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.folder_lock import locked_folder

HOLDER = """
import sys
from pathlib import Path
from bertsmith.foundation.folder_lock import locked_folder

with locked_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither such locks nor SIGKILL")
def test_a_folder_is_held_until_its_process_ends_even_by_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        # Some file systems show the system's table another device than they show a program.
        who = f"(process {process.pid}|another process)"
        with pytest.raises(InputError, match=f"One process at a time .*run, where {who} is at work"):
            locked_folder(folder).__enter__()
        assert list(folder.iterdir()) == []
        process.kill()
    with locked_folder(folder):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_a_lock_of_the_same_number_on_another_device_names_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = tmp_path / "locks"
    monkeypatch.setattr(folder_lock, "_LOCKS", locks)
    found = tmp_path.stat()
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    for place, holder in ((f"ff:ff:{found.st_ino}", "another process"), (f"{device}:{found.st_ino}", "process 17")):
        locks.write_text(f"1: FLOCK  ADVISORY  WRITE 17 {place} 0 EOF\n")
        with locked_folder(tmp_path), pytest.raises(InputError, match=f"where {holder} is at work"):
            locked_folder(tmp_path).__enter__()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_where_the_system_does_not_tell_the_holder_the_folder_is_refused_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "_LOCKS", tmp_path / "none")
    with locked_folder(tmp_path), pytest.raises(InputError, match="another process is at work"):
        locked_folder(tmp_path).__enter__()


def test_a_folder_inside_a_held_one_can_be_held_too(tmp_path: Path) -> None:
    with locked_folder(tmp_path), locked_folder(tmp_path / "seed-0"):
        assert (tmp_path / "seed-0").is_dir()


def test_a_folder_that_was_made_to_be_held_goes_if_nothing_came_into_it(tmp_path: Path) -> None:
    with pytest.raises(InputError), locked_folder(tmp_path / "new" / "run"):
        raise InputError("a rule", "something", "Do otherwise.")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "stood").mkdir()
    for name in ("stood", "kept"):
        with locked_folder(tmp_path / name):
            (tmp_path / "kept" / "run.toml").write_text("") if name == "kept" else None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "stood"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF])
def test_a_file_system_without_locks_is_worked_in_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refused)
    with locked_folder(tmp_path), locked_folder(tmp_path):
        pass


def test_a_file_is_left_to_whoever_works_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with locked_folder(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text() == "kept"
