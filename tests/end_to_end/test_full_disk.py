"""Disks that are full: nothing is left half-written, and a run with a checkpoint goes on once there is room."""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from command_line import FinishedRun, Outcome, pretraining, refused

Command = Callable[..., Outcome]
Listing = Callable[[], dict[str, bytes | None]]
FullDisk = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def _after_syncs(number: int) -> Iterator[None]:
    """The disk is full from this call of `os.fsync` on, counted from 0."""
    left, sync = [number], os.fsync

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        yield


@contextmanager
def _mounted(folder: Path, size: str) -> Iterator[None]:
    """A disk of this size at `folder`; what it held in the end lies there afterwards."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    held = folder.with_name("held")
    try:
        yield
        shutil.copytree(folder, held)
    finally:
        # The corpus is still mapped by this process: the mount goes once it is not.
        subprocess.run(["umount", "--lazy", folder], check=True)
    shutil.copytree(held, folder, dirs_exist_ok=True)
    shutil.rmtree(held)


def _can_mount() -> bool:
    if os.name != "posix" or os.geteuid() != 0:
        return False
    # A container's root may mount nothing.
    tried = "mount -t tmpfs tmpfs /mnt && umount /mnt"
    return subprocess.run(["unshare", "--mount", "sh", "-c", tried], capture_output=True, check=False).returncode == 0


# A real full disk wherever one can be had; everywhere one whose writes are refused when they are to be made sure of.
EARLY: dict[str, FullDisk] = {f"{number} syncs": lambda _, number=number: _after_syncs(number) for number in (0, 2, 8)}
LATE: dict[str, FullDisk] = {"60 syncs": lambda _: _after_syncs(60)}
if _can_mount():
    EARLY |= {size: lambda disk, size=size: _mounted(disk, size) for size in ("12k", "60k", "200k")}
    LATE |= {size: lambda disk, size=size: _mounted(disk, size) for size in ("700k", "1100k")}


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The folder that a small disk is mounted at."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("fills_up", EARLY)
def test_a_disk_that_fills_up_while_a_run_begins_leaves_nothing(
    fills_up: str, disk: Path, command: Command, listing: Listing, text_file: Path, tiny_model: Path
) -> None:
    before = listing()
    with EARLY[fills_up](disk):
        outcome = command(*pretraining(text_file, tiny_model, disk / "run", "mlm"))
    refused(outcome, "no space left", "Free some space")
    assert listing() == before


@pytest.mark.parametrize("fills_up", LATE)
def test_a_disk_that_fills_up_while_training_costs_nothing_that_was_kept(
    fills_up: str, disk: Path, command: Command, mlm_run: FinishedRun, text_file: Path, tiny_model: Path
) -> None:
    arguments = pretraining(text_file, tiny_model, disk / "run", "mlm")
    with LATE[fills_up](disk):
        refused(command(*arguments), "no space left")
    assert not list(disk.rglob(".partial-*"))
    assert list((disk / "run" / "checkpoints").iterdir())
    whole = command("verify", disk / "run", "--json")
    assert whole.objects[0]["whole"], whole.out
    # With room again, the same command goes on, and ends where a run without the fault did.
    again = command(*arguments)
    assert again.code == 0, again.err
    assert "goes on from step" in again.err
    weights = [run / "model" / "model.safetensors" for run in (disk / "run", mlm_run.folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    log = [json.loads(line) for line in (disk / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [entry["step"] for entry in log if entry["kind"] == "train"] == [4, 8, 12]


@pytest.mark.parametrize("verb", ["tokenizer", "prepare"])
def test_a_full_disk_leaves_no_tokenizer_and_no_corpus(
    verb: str, tmp_path: Path, command: Command, listing: Listing, text_file: Path, mlm_run: FinishedRun
) -> None:
    before = listing()
    arguments = {
        "tokenizer": ("tokenizer", "train", text_file, "--vocab-size", "384"),
        "prepare": ("prepare", text_file, "--tokenizer", mlm_run.folder / "tokenizer", "--workers", "1"),
    }
    with _after_syncs(0):
        refused(command(*arguments[verb], "--out", tmp_path / "out"), "no space left")
    assert listing() == before
