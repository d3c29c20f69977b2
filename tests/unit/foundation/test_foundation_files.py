import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import (
    MANIFEST,
    disk_room,
    folder_faults,
    new_folder,
    place_of_file,
    read_manifest,
    remove_leftovers,
    sealed_folder_of,
    sha256,
    write_file,
    write_json,
)

_SUM = {"sha256": "0" * 64, "bytes": 1}
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

# Kills its own process, with no chance to clean up, at the n-th sync or rename: each is a place where power may go.
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path

target, kind, fatal_call = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls = 0

def fatal(original):
    def call(*arguments):
        global calls
        calls += 1
        if calls == fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments)
    return call

from bertsmith.foundation.files import new_folder, write_file
os.fsync, os.replace = fatal(os.fsync), fatal(os.replace)
if kind == "file":
    write_file(target, "new" * 100_000)
else:
    with new_folder(target, seal={"version": "new"}) as folder:
        for name in ("a", "b"):
            (folder / name).write_text("new" * 1_000)
"""


def _kill_at_every_step(target: Path, kind: str, check: Callable[[], None], *, prepare: Callable[[], None]) -> int:
    """How often the writer was killed before it came to its end; `check` runs after each kill."""
    for fatal_call in range(1, 30):
        prepare()
        done = subprocess.run([sys.executable, "-c", KILLED_WRITER, str(target), kind, str(fatal_call)], check=False)
        if done.returncode == 0:
            return fatal_call - 1
        assert done.returncode == -signal.SIGKILL
        check()
        remove_leftovers(target.parent)
        assert not list(target.parent.glob(".*"))
    raise AssertionError("the writer never came to its end")


def test_a_writer_killed_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"

    def check() -> None:
        assert target.read_text() in ("old", "new" * 100_000)

    assert _kill_at_every_step(target, "file", check, prepare=lambda: write_file(target, "old")) >= 2
    assert target.read_text() == "new" * 100_000


def test_a_writer_killed_at_any_step_leaves_a_whole_folder_or_none(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    killed_with_folder = 0

    def check() -> None:
        nonlocal killed_with_folder
        if target.exists():
            killed_with_folder += 1
            assert folder_faults(target) == []
            assert sorted(read_manifest(target)["files"]) == ["a", "b"]

    def prepare() -> None:
        if target.exists():
            for path in target.iterdir():
                path.unlink()
            target.rmdir()

    assert _kill_at_every_step(target, "folder", check, prepare=prepare) >= 5
    assert killed_with_folder == 1  # The rename stands, only the sync of the folder above it was still to come.
    assert folder_faults(target) == []


def _no_space(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    target = tmp_path / "file.txt"
    write_file(target, "old")
    monkeypatch.setattr(os, call, _no_space)
    with pytest.raises(InputError, match=f"must have room.*no space left while writing under {tmp_path}"):
        write_file(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_folder_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    target = tmp_path / "folder"
    with new_folder(target, seal={}) as folder:
        (folder / "a").write_text("old")
    monkeypatch.setattr(os, call, _no_space)
    with pytest.raises(InputError, match="Free some space"), new_folder(target, seal={}) as folder:
        (folder / "a").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert (target / "a").read_text() == "old"
    assert folder_faults(target) == []


def test_a_spent_quota_is_told_like_a_full_disk_and_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(InputError), disk_room(tmp_path):
        raise OSError(getattr(errno, "EDQUOT", errno.ENOSPC), "quota")
    with pytest.raises(PermissionError), disk_room(tmp_path):
        raise PermissionError(errno.EACCES, "denied")


def test_a_write_is_utf_8_or_bytes_and_json_keeps_its_letters(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "é كلمة\n")
    assert (tmp_path / "a").read_bytes() == "é كلمة\n".encode()
    write_file(tmp_path / "a", b"\r\n\xff")
    assert (tmp_path / "a").read_bytes() == b"\r\n\xff"
    write_json(tmp_path / "b", {"word": "كلمة"})
    assert "كلمة" in (tmp_path / "b").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "b").read_bytes()) == {"word": "كلمة"}


def test_an_error_inside_the_block_leaves_no_folder(tmp_path: Path) -> None:
    def write() -> None:
        with new_folder(tmp_path / "deep" / "folder") as folder:
            (folder / "a").write_text("x")
            raise KeyError("fault")

    with pytest.raises(KeyError):
        write()
    assert list((tmp_path / "deep").iterdir()) == []


def test_a_folder_appears_only_after_its_block_and_replaces_the_old_one_whole(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for names in (["a", "sub/b"], ["c"]):
        with new_folder(target, seal={"kind": "corpus"}) as folder:
            assert not target.exists() or names == ["c"]
            for name in names:
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(name)
        assert sorted(read_manifest(target)["files"]) == names
        assert read_manifest(target)["kind"] == "corpus"
    assert sorted(path.name for path in target.iterdir()) == ["c", MANIFEST]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_without_a_seal_has_no_manifest(tmp_path: Path) -> None:
    with new_folder(tmp_path / "folder") as folder:
        (folder / "a").touch()
    with pytest.raises(InputError, match="Was its writing interrupted"):
        read_manifest(tmp_path / "folder")


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"files": 1}', "{"])
def test_a_damaged_manifest_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(InputError, match="must hold the sums"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "name", ["../outside", "a/../../outside", "/etc/outside", "C:\\outside", "..\\outside", "", "."]
)
def test_a_manifest_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    write_json(tmp_path / MANIFEST, {"files": {"a/inside": _SUM, name: _SUM}})
    with pytest.raises(InputError, match="inside its folder alone"):
        read_manifest(tmp_path)
    write_json(tmp_path / MANIFEST, {"files": {"a/inside": _SUM, "..a": _SUM}})
    assert list(read_manifest(tmp_path)["files"]) == ["a/inside", "..a"]


def test_a_missing_a_cut_and_an_altered_file_are_each_found(tmp_path: Path) -> None:
    with new_folder(tmp_path / "folder", seal={}) as folder:
        for name in ("whole", "missing", "cut", "altered"):
            (folder / name).write_text("content")
    target = tmp_path / "folder"
    assert folder_faults(target) == []
    (target / "missing").unlink()
    (target / "cut").write_text("cont")
    (target / "altered").write_text("cOntent")
    faults = folder_faults(target)
    assert [fault.split(":")[0] for fault in faults] == ["altered", "cut", "missing"]
    assert "SHA-256" in faults[0]
    assert "4 bytes, was written with 7" in faults[1]


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".partial-12345678-folder").mkdir()
    (tmp_path / ".partial-12345678-folder" / "a").touch()
    (tmp_path / ".partial-12345678-file").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "partial-kept").touch()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "partial-kept"]


def test_a_sum_is_the_sha_256_of_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert sha256(tmp_path / "empty") == EMPTY_SHA256
    (tmp_path / "big").write_bytes(b"a" * 1_000_000 + b"\0" * 1_000_000)
    (tmp_path / "other").write_bytes(b"a" * 1_000_000 + b"\0" * 999_999 + b"\1")
    assert sha256(tmp_path / "big") != sha256(tmp_path / "other")


@pytest.mark.skipif(os.name == "nt", reason="Windows gives links to administrators alone")
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old.txt").write_text("old")
    for name in ("old.txt", "new.txt"):
        link = tmp_path / name
        link.symlink_to(Path("there") / name)
        write_file(link, "written")
        assert link.is_symlink()
        assert (tmp_path / "there" / name).read_text() == "written"
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["new.txt", "old.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither such devices nor such pipes")
def test_only_a_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "folder").mkdir()
    before = {path.name: path.lstat().st_ino for path in tmp_path.iterdir()}
    for name in before:
        assert place_of_file(tmp_path / name) is None
        with pytest.raises(InputError, match=f"A file can replace only a file.*{name}, which is none"):
            write_file(tmp_path / name, "new")
    assert {path.name: path.lstat().st_ino for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such places")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/new.csv", "/proc/self/fd/1", "/dev/../dev/fd/1"])
def test_what_the_system_runs_by_is_no_place_for_a_file_even_where_it_leads_to_one(name: str, tmp_path: Path) -> None:
    assert place_of_file(Path(name)) is None
    (tmp_path / "alias").symlink_to("/dev/new.csv")
    assert place_of_file(tmp_path / "alias") is None
    assert place_of_file(Path("/dev/shm/new.csv")) == Path(os.path.realpath("/dev/shm/new.csv"))


def test_a_file_is_part_of_the_folder_whose_manifest_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    with new_folder(folder, seal={}) as temporary:
        (temporary / "train").mkdir()
        (temporary / "train" / "tokens.bin").write_text("ids")
    write_json(tmp_path / MANIFEST, {"name": "of another program"})
    assert sealed_folder_of(folder / "train" / "tokens.bin") == folder
    assert sealed_folder_of(folder / "train" / "new.csv") is None
    assert sealed_folder_of(tmp_path / "new.csv") is None
