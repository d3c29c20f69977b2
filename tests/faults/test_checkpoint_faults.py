"""Kills and full disks while a checkpoint is written."""

import errno
import os
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

_KILLED_AT = ("model", "tensors", "state", "seal", "swap", "prune")
_WRITER = """
import os, signal, sys
sys.path[:0] = sys.argv[2:3]
from pathlib import Path
import torch
from made_corpora import made_model, made_tokenizer
from bertsmith.checkpoints import checkpoint as module
from bertsmith.foundation import files

tokenizer = made_tokenizer()
places = {
    "model": (module, "write_model"),
    "tensors": (module, "write_tensors"),
    "state": (module, "write_json"),
    "seal": (files, "file_sums"),
    "swap": (files, "_swap_in"),
    "prune": (module, "_remove"),
}

def write(root, step):
    state = module.TrainingState(step, {"tokens": step}, {"weight/moment": torch.zeros(50)})
    module.CheckpointStore(root, keep=2).write(
        made_model(tokenizer.vocab_size, seed=step), tokenizer, state, best_step=None
    )

def die_half_way(function):
    def dying(*arguments, **named):
        if function.__name__ == "_remove":
            (arguments[0] / files.MANIFEST).unlink()
        elif function.__name__ == "write_tensors":
            Path(arguments[0]).write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return dying

for name, (owner, attribute) in places.items():
    root = Path(sys.argv[1]) / name
    for step in (1, 2):
        write(root, step)
    child = os.fork()
    if child == 0:
        setattr(owner, attribute, die_half_way(getattr(owner, attribute)))
        write(root, 3)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, name
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL to send on Windows")
def test_a_kill_in_the_middle_of_a_write_leaves_earlier_checkpoints_usable(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", _WRITER, str(tmp_path), str(tests)], check=True, timeout=120)
    for name in _KILLED_AT:
        root = tmp_path / name
        newest = CheckpointStore(root, keep=2).newest()
        assert newest is not None, name
        # Once the folder has its name, the new one counts.
        assert newest.step == (3 if name == "prune" else 2), name
        read, state = newest.read()
        expected = made_model(made_tokenizer().vocab_size, seed=newest.step).state_dict()
        assert state.values == {"tokens": newest.step}
        assert all(torch.equal(expected[key], value) for key, value in read.model.state_dict().items())
        assert not list(root.glob(".partial-*")), name


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
    tokenizer = made_tokenizer()
    model = made_model(tokenizer.vocab_size)
    store = CheckpointStore(tmp_path, keep=1)

    def write(step: int) -> None:
        store.write(model, tokenizer, TrainingState(step, {}, {"weight/moment": torch.zeros(50)}), best_step=None)

    write(1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, fault)
        with pytest.raises(InputError, match="disk must have room"):
            write(2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    write(2)
    newest = store.newest()
    assert newest is not None
    assert newest.step == 2


def test_an_error_of_the_tensor_library_that_is_no_full_disk_stays_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*arguments: object, **named: object) -> None:
        raise SafetensorError("tensors share memory")

    monkeypatch.setattr(tensors, "save_file", refuses)
    tokenizer = made_tokenizer()
    with pytest.raises(SafetensorError, match="share memory"):
        CheckpointStore(tmp_path).write(
            made_model(tokenizer.vocab_size), tokenizer, TrainingState(1, {}, {}), best_step=None
        )
    assert list(tmp_path.iterdir()) == []
