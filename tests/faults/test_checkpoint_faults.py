"""Kills and full disks while a checkpoint is written."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from bertsmith.checkpoints import checkpoint as module
from bertsmith.checkpoints.checkpoint import CheckpointStore, TrainingState
from bertsmith.folders import tensors
from bertsmith.foundation import files
from bertsmith.foundation.errors import InputError
from made_corpora import made_model, made_tokenizer

_PLACES = {
    "model": (module, "write_model"),
    "tensors": (module, "write_tensors"),
    "state": (module, "write_json"),
    "seal": (files, "file_sums"),
    "swap": (files, "_swap_in"),
    "prune": (module, "_remove"),
}
_WRITER = """
import os, signal, sys
from pathlib import Path
import test_checkpoint_faults as here

def die_half_way(path, tensors):
    path.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

root = Path(sys.argv[1])
here.write(root, 1)
here.write(root, 2)
here.module.write_tensors = die_half_way
here.write(root, 3)
"""


class _Killed(BaseException):
    """In place of a kill: what stands on the disk is taken down at this moment, before anything can clean up."""


def write(root: Path, step: int, *, keep: int = 2) -> None:
    tokenizer = made_tokenizer()
    state = TrainingState(step, {"tokens": step}, {"weight/moment": torch.zeros(50)})
    CheckpointStore(root, keep=keep).write(
        made_model(tokenizer.vocab_size, seed=step), tokenizer, state, best_step=None
    )


def _assert_goes_on_from(root: Path, step: int) -> None:
    newest = CheckpointStore(root).newest()
    assert newest is not None
    assert newest.step == step
    read, state = newest.read()
    expected = made_model(made_tokenizer().vocab_size, seed=step).state_dict()
    assert state.values == {"tokens": step}
    assert all(torch.equal(expected[name], value) for name, value in read.model.state_dict().items())
    assert not list(root.glob(".partial-*"))


@pytest.mark.parametrize("place", _PLACES)
def test_an_end_anywhere_in_a_write_leaves_earlier_checkpoints_usable(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, left = tmp_path / "checkpoints", tmp_path / "left"
    for step in (1, 2):
        write(root, step)

    def end_here(*arguments: object, **named: object) -> None:
        if place == "prune":
            # Removing a checkpoint takes its manifest first.
            (root / "step-00000001" / files.MANIFEST).unlink()
        shutil.copytree(root, left)
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(*_PLACES[place], end_here)
        with pytest.raises(_Killed):
            write(root, 3)
    assert len(list(left.iterdir())) == 3
    # Once the new folder has its name, it counts.
    _assert_goes_on_from(left, 3 if place == "prune" else 2)
    write(left, 4)
    assert max(path.name for path in left.iterdir()) == "step-00000004"
    assert len(list(left.iterdir())) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_kill_in_the_middle_of_a_write_leaves_earlier_checkpoints_usable(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parent)])
    ended = subprocess.run(
        [sys.executable, "-c", _WRITER, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    (partial,) = tmp_path.glob(".partial-*")
    assert (partial / "training_state.safetensors").read_bytes() == b"half"
    _assert_goes_on_from(tmp_path, 2)


def _full(*arguments: object, **named: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _full_in_the_tensor_library(*arguments: object, **named: object) -> None:
    # The words with which the library tells it; it has no number.
    raise SafetensorError(f"Error while serializing: I/O error: {os.strerror(errno.ENOSPC)} (os error {errno.ENOSPC})")


@pytest.mark.parametrize(
    ("owner", "attribute", "fault"),
    [
        (tensors, "save_file", _full_in_the_tensor_library),
        (module, "write_tensors", _full),
        (module, "write_json", _full),
        (files, "_sync_tree", _full),
    ],
)
def test_a_full_disk_is_told_and_leaves_earlier_checkpoints_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, attribute: str, fault: object
) -> None:
    write(tmp_path, 1, keep=1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, fault)
        with pytest.raises(InputError, match="disk must have room"):
            write(tmp_path, 2, keep=1)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    write(tmp_path, 2, keep=1)
    _assert_goes_on_from(tmp_path, 2)


def test_an_error_of_the_tensor_library_that_is_no_full_disk_stays_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*arguments: object, **named: object) -> None:
        raise SafetensorError("tensors share memory")

    monkeypatch.setattr(tensors, "save_file", refuses)
    with pytest.raises(SafetensorError, match="share memory"):
        write(tmp_path, 1)
    assert list(tmp_path.iterdir()) == []
