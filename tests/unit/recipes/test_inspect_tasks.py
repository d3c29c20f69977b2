"""`info` tells for what a model was fine-tuned, its labels in their order, and which head it has."""

from pathlib import Path

import pytest

from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.files import new_folder
from bertsmith.recipes.inspect_folder import info
from made_corpora import made_model, made_tokenizer
from made_heads import made_head

LABELS = ["b", "c", "a"]


@pytest.mark.parametrize(
    ("task", "labels", "head"),
    [
        ("classify", LABELS, ["classifier"]),
        ("multilabel", LABELS, ["classifier"]),
        ("regress", [], ["classifier"]),
        ("choose", [], ["classifier"]),
        ("tag", LABELS, ["token classifier"]),
        ("answer", [], ["answer spans"]),
        ("embed", [], []),
    ],
)
def test_info_tells_the_task_and_its_labels(task: str, labels: list[str], head: list[str], tmp_path: Path) -> None:
    write_model(tmp_path, made_head(task, labels=tuple(labels)), made_tokenizer())
    found = info(tmp_path)
    assert (found["task"], found["labels"], found["heads"]) == (task, labels, [*head, "pooler"])
    assert found["opens_in_transformers"] == "as it is"


def test_info_of_a_model_without_a_task_tells_none(tmp_path: Path) -> None:
    write_model(tmp_path, made_model(made_tokenizer().vocab_size, positions=16), made_tokenizer())
    found = info(tmp_path)
    assert (found["task"], found["labels"], found["heads"]) == (None, [], ["masked language model"])


@pytest.mark.parametrize("checkpoint", [98, 80])
def test_info_of_a_stopped_run_tells_the_step_that_it_goes_on_from(tmp_path: Path, checkpoint: int) -> None:
    (tmp_path / "run.toml").write_text("")
    (tmp_path / "log.jsonl").write_text('{"kind": "train", "step": 90}\n')
    for step in (5, checkpoint):
        with new_folder(tmp_path / "checkpoints" / f"step-{step:08d}", seal={"kind": "checkpoint", "step": step}):
            pass
    # One that is being removed has no manifest any more, and what else people leave there is none.
    (tmp_path / "checkpoints" / "step-00000099").mkdir()
    (tmp_path / "checkpoints" / "step-notes.txt").write_text("")
    assert info(tmp_path)["steps"] == checkpoint


@pytest.mark.parametrize("seed", [None, 16])
def test_info_of_a_fine_tuning_tells_the_scores_of_the_model_that_was_kept(tmp_path: Path, seed: int | None) -> None:
    seeds = "" if seed is None else f"kept_seed = {seed}\n"
    record = f"[record]\nkept_step = 20\n{seeds}[record.metrics]\naccuracy = 0.5\nloss = 0.7\n"
    (tmp_path / "run.toml").write_text(record)
    (tmp_path / "evaluation.json").write_text('{"rows": 9, "accuracy": 0.9, "loss": 0.4, "per_class": {}}')
    logged = tmp_path if seed is None else tmp_path / f"seed-{seed}"
    logged.mkdir(exist_ok=True)
    (logged / "log.jsonl").write_text('{"kind": "validation", "step": 40, "accuracy": 0.8, "loss": 0.6}\n')
    found = info(tmp_path)
    of_seed = {} if seed is None else {"seed": seed}
    assert found["kept_validation"] == of_seed | {"step": 20, "accuracy": 0.9, "loss": 0.4}
    assert found["last_validation"]["step"] == 40


def test_info_of_a_run_that_kept_none_tells_none(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[record]\nsteps = 4\n")
    (tmp_path / "log.jsonl").write_text("")
    assert "kept_validation" not in info(tmp_path)
