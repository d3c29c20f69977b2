"""Which checkpoints stand, which are kept, which one a run goes on from."""

import json
from pathlib import Path

import pytest
import torch

from bertsmith.checkpoints.checkpoint import Checkpoint, CheckpointStore, TrainingState
from made_corpora import made_model, made_tokenizer, weights_of

TOKENIZER = made_tokenizer()


def write(store: CheckpointStore, step: int, *, best_step: int | None = None) -> Checkpoint:
    model = made_model(TOKENIZER.vocab_size, seed=step, dropout=0.1)
    state = TrainingState(step, {"tokens": 10 * step, "exact": 1 / 3}, {"weight/moment": torch.full((3,), step / 7)})
    return store.write(model, TOKENIZER, state, best_step=best_step)


def steps_of(root: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in root.glob("step-*"))


def test_a_checkpoint_comes_back_to_the_bit(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    write(store, 12)
    checkpoint = store.newest()
    assert checkpoint is not None
    read, state = checkpoint.read()
    expected = made_model(TOKENIZER.vocab_size, seed=12, dropout=0.1)
    weights = weights_of(expected)
    assert read.model.config == expected.config
    assert all(torch.equal(weights[name], value) for name, value in read.model.state_dict().items())
    assert (state.step, state.values) == (12, {"tokens": 120, "exact": 1 / 3})
    assert torch.equal(state.tensors["weight/moment"], torch.full((3,), 12 / 7))
    assert not list(checkpoint.folder.rglob("*.pkl"))
    assert not list(checkpoint.folder.rglob("*.pt"))


def test_the_newest_is_chosen_by_number(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=10)
    for step in (5, 100, 20):
        write(CheckpointStore(tmp_path / "apart" / str(step)), step)
        (tmp_path / "apart" / str(step) / f"step-{step:08d}").rename(tmp_path / f"step-{step:08d}")
    newest = store.newest()
    assert newest is not None
    assert newest.step == 100


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "unsealed", "manifest cut"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, damage: str) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    for step in (1, 2, 3):
        write(store, step)
    folder = tmp_path / "step-00000003"
    weights = folder / "training_state.safetensors"
    content = weights.read_bytes()
    match damage:
        case "cut":
            weights.write_bytes(content[:-1])
        case "flipped":
            weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "missing":
            weights.unlink()
        case "unsealed":
            (folder / "manifest.json").unlink()
        case _:
            manifest = (folder / "manifest.json").read_text(encoding="utf-8")
            (folder / "manifest.json").write_text(manifest[:40], encoding="utf-8")
    newest = store.newest()
    assert newest is not None
    assert newest.step == 2


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "absent").newest() is None
    (tmp_path / ".partial-abc-step-00000001").mkdir()
    assert CheckpointStore(tmp_path).newest() is None
    assert list(tmp_path.iterdir()) == []


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    for step in range(1, 4):
        write(store, step, best_step=1)
    assert steps_of(tmp_path) == [1, 2, 3]
    for step in range(4, 7):
        write(store, step, best_step=4)
    assert steps_of(tmp_path) == [4, 5, 6]
    write(store, 7, best_step=7)
    assert steps_of(tmp_path) == [6, 7]


@pytest.mark.parametrize("keep", [1, 2])
def test_a_damaged_later_checkpoint_never_costs_a_whole_one(tmp_path: Path, keep: int) -> None:
    store = CheckpointStore(tmp_path, keep=3)
    for step in (10, 20, 30):
        write(store, step)
    (tmp_path / "step-00000030" / "config.json").unlink()
    newest = store.newest()
    assert newest is not None
    assert newest.step == 20
    # The run goes on from step 20 and writes at step 25.
    kept = CheckpointStore(tmp_path, keep=keep)
    write(kept, 25)
    again = kept.newest()
    assert again is not None
    assert again.step == 25
    assert steps_of(tmp_path) == [20, 25][-keep:]


def test_a_copy_that_a_person_made_is_left_alone(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=1)
    (tmp_path / "step-00000003-copy").mkdir(parents=True)
    write(store, 4)
    write(store, 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000003-copy", "step-00000005"]
    newest = store.newest()
    assert newest is not None
    assert newest.step == 5


def test_the_state_beside_the_weights_is_plain_json_and_tensors(tmp_path: Path) -> None:
    checkpoint = write(CheckpointStore(tmp_path), 3)
    assert json.loads((checkpoint.folder / "training_state.json").read_text(encoding="utf-8"))["tokens"] == 30
    assert {path.suffix for path in checkpoint.folder.rglob("*") if path.is_file()} <= {".json", ".safetensors", ".txt"}
