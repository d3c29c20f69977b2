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
