"""What is of no type that a function takes is refused in the house's words.

In a process of its own: the checks of annotations, which all tests run with, would speak first.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from made_tasks import made_encoder

_SCRIPT = """
import bertsmith, sys, torch
folder = sys.argv[1]
class Table:
    columns = ("text",)
text = "The [MASK] was old."
fill = bertsmith.load(folder, device="cpu")
for call in (
    lambda: bertsmith.load(None),
    lambda: bertsmith.Encoder.from_folder(None),
    lambda: bertsmith.TaskModel.from_folder(7),
    lambda: bertsmith.evaluate(None, "a.txt"),
    lambda: bertsmith.finetune("classify", Table(), model=folder, out="out"),
    lambda: bertsmith.finetune("classify", ["a.csv"], model=folder, out="out"),
    lambda: bertsmith.pretrain(Table(), "out"),
    lambda: bertsmith.pretrain([Table()], "out"),
    lambda: bertsmith.profile("pretrain", Table()),
    lambda: bertsmith.Encoder.from_folder(folder)([[1, 2]]),
    lambda: bertsmith.TaskModel.from_folder(folder)([[1, 2]]),
    lambda: bertsmith.TaskModel.from_folder(folder, task="choose")([[[1, 2]]]),
    lambda: bertsmith.TaskModel.from_folder(folder, task="choose")(torch.ones(1, 2, 3).long(), [[[1, 1, 1]] * 2]),
    lambda: bertsmith.masked_batch([[1]], object(), seed=0),
    lambda: bertsmith.masked_batch([[1]], folder, seed=0, mask_rate=15),
    lambda: bertsmith.next_sentence_example("a", "b", folder, is_next=1),
    lambda: bertsmith.next_sentence_example(["a"], ["b"], folder, is_next=True),
    lambda: bertsmith.aligned_labels(["a"], [0.5], folder),
    lambda: bertsmith.draw_head([1, 2], [[1, 0], [0, 1]], "a.png"),
    lambda: fill([text, 7]),
    lambda: fill(None),
    lambda: fill(text, targets=[7]),
):
    try:
        call()
    except bertsmith.InputError as error:
        print(error)
    else:
        raise SystemExit("not refused")
"""
_SAID = (
    "A model folder must be told by its path. Received: NoneType",
    "A model folder must be told by its path. Received: NoneType",
    "A model folder must be told by its path. Received: int",
    "A model folder must be told by its path. Received: NoneType",
    "train must be the path of a file. Received: a Table, which is a table in memory. Write it to a file: table.to_csv",
    "train must be a path. Received: list",
    "sources must be the path of a file. Received: a Table",
    "sources must be the path of a file. Received: a Table",
    "source must be the path of a file. Received: a Table",
    "token_ids must be a tensor of whole numbers. Received: list. Make one: torch.tensor(ids).",
    "token_ids must be a tensor of whole numbers. Received: list",
    "token_ids must be a tensor of whole numbers. Received: list",
    "attention_mask must have the shape of token_ids, (2, 3). Received: list",
    "tokenizer must be a bertsmith.Tokenizer, or the folder of one or of a model. Received: object",
    "mask_rate: must lie in [0, 1] (Did you mean 0.15?)",
    "is_next must be True or False. Received: 1",
    "An item must be a text, or a pair of two texts",
    "A label must be a number from 0 on, -100 for none, or a name. Received: 0.5",
    "A token must be a text. Received: token 0: 1",
    "Filling masks takes texts. Received: text 2: 7",
    "Filling masks takes texts. Received: text 1: None",
    "Targets must be texts. Received: 7",
)


def test_every_function_says_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_encoder(tmp_path / "model")
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "model")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert [line[: len(said)] for line, said in zip(lines, _SAID, strict=True)] == list(_SAID)
    assert not (tmp_path / "out").exists()
