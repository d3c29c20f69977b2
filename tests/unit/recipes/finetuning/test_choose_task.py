"""The task choose: from rows with choices to a model folder that chooses."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import assert_refused, config_of

import bertsmith
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.inference.choose import ChoosePredictor
from bertsmith.model import HeadsConfig
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.task import Task, TaskRows
from bertsmith.recipes.finetuning.tasks.choose import Choose
from bertsmith.recipes.results import Run
from made_corpora import made_tokenizer
from made_tasks import made_encoder, write_rows

TASK = Choose()
OTHERS = ["the", "old", "small", "river", "harbour", "garden", "morning", "teacher", "sailor", "walked", "waited"]


def _rows(count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Contexts whose right ending is the one with rain in it."""
    stream = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        endings = [" ".join(stream.choices(OTHERS, k=stream.randint(2, 5))) for _ in range(4)]
        right = stream.randrange(4)
        endings[right] += " rain"
        context = f"{' '.join(stream.choices(OTHERS, k=4))} {number}"
        row = {"sent1": context, "sent2": "then", **{f"ending{place}": text for place, text in enumerate(endings)}}
        rows.append(row | {"label": right})
    return rows


def _config(work: Path, **more: Any) -> FinetuneConfig:
    return config_of(work, **({"task": "choose", "length": {"steps": 60}} | more))


def _read(path: Path, **more: Any) -> TaskRows:
    return TASK.read(path, TableConfig(**more), like=None, options=OptionNames())


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and rows."""
    folder = tmp_path_factory.mktemp("choose")
    made_encoder(folder / "encoder")
    write_rows(folder / "train.csv", _rows(120))
    write_rows(folder / "validation.csv", _rows(30, seed=1))
    return folder


@pytest.fixture(scope="module")
def run(work: Path) -> Run:
    """A run that learns."""
    return finetune_run(_config(work, validation=str(work / "validation.csv")), work / "run")


def test_it_is_a_task_without_labels(work: Path) -> None:
    rows = _read(work / "train.csv")
    assert isinstance(TASK, Task)
    assert TASK.labels(rows) == ()
    assert TASK.facts(rows, ()) == {"train_choices": 480}
    assert TASK.notes(rows, ())[0] == "4 choices a row, of which guessing finds the right one in 25.0%"
    assert set(TASK.strata(rows, ()).tolist()) == {0}
    assert all(isinstance(row.label, int) for row in rows.items)


def test_the_right_choice_is_learned(work: Path, run: Run) -> None:
    assert run.evaluation["rows"] == 30
    assert run.evaluation["accuracy"] > 0.8
    assert run.evaluation["loss"] < 0.8
    choose = bertsmith.load(run.model_folder, device="cpu", precision="fp32")
    assert isinstance(choose, ChoosePredictor)
    rows = _read(work / "validation.csv").items
    found = choose([row.item for row in rows])
    right = np.mean([one.index == row.label for one, row in zip(found, rows, strict=True)])
    assert right == pytest.approx(run.evaluation["accuracy"])


def test_evaluating_the_folder_gives_the_scores_of_the_run(work: Path, run: Run) -> None:
    report = bertsmith.evaluate(run.model_folder, work / "validation.csv", device="cpu", precision="fp32")
    assert report.metrics["accuracy"] == pytest.approx(run.evaluation["accuracy"])
    assert report.metrics["loss"] == pytest.approx(run.evaluation["loss"], rel=1e-5)


def test_rows_with_unlike_numbers_of_choices_train_together(work: Path, tmp_path: Path) -> None:
    rows = [{"text": f"rain {n}", "choices": OTHERS[: 2 + n % 4], "label": OTHERS[n % 2]} for n in range(20)]
    path = write_rows(tmp_path / "train.jsonl", rows)
    run = finetune_run(_config(work, train=str(path), length={"steps": 2}), tmp_path / "run")
    assert run.evaluation["rows"] == 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"label": 4}, r"place of the right choice, from 0 to 3.*line 2: label='4', with 4 choices"),
        ({"label": ""}, r"1 blank in .*line 2 \(label\)"),
        ({"ending1": "", "ending2": "", "ending3": ""}, r"two choices at least.*line 2 with 1"),
        ({"ending1": ""}, r"none may be left out.*line 2: choice 1"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_before_training(
    work: Path, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    first, *others = _rows(5)
    path = write_rows(tmp_path / "train.csv", [first | changes, *others])
    assert_refused(_config(work, train=str(path)), tmp_path / "run", told)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"class_weights": "balanced"}, "class_weights must be none for choose"),
        ({"long_texts": "windows"}, "long_texts must be head or tail: choices"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    work: Path, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    assert_refused(_config(work, **changes), tmp_path / "run", told)


def test_labels_mean_the_same_in_a_part_of_the_rows(tmp_path: Path) -> None:
    rows = [{"text": "a", "choices": ["1", "0"], "label": "0"}, {"text": "b", "choices": ["12", "14"], "label": "14"}]
    read = _read(write_rows(tmp_path / "a.jsonl", rows))
    assert [row.label for row in read.items] == [1, 1]
    heads = HeadsConfig(task="choose", masked_language_model=False)
    part = read.some(np.array([0]))
    examples = TASK.examples(part, (), made_tokenizer(), max_length=16, long_texts="head", heads=heads)
    assert examples.targets.tolist() == [1]


def test_labels_mean_the_same_in_the_validation_file_and_in_another(tmp_path: Path) -> None:
    def rows(*labels: str) -> list[dict[str, str]]:
        return [{"text": "how many?", "choice1": "1", "choice2": "2", "choice3": "3", "label": one} for one in labels]

    train = _read(write_rows(tmp_path / "train.csv", rows("3", "1")))
    path = write_rows(tmp_path / "validation.csv", rows("1", "2"))
    validation = TASK.read(path, TableConfig(), like=train, options=OptionNames())
    assert [row.label for row in train.items] == [2, 0]
    assert [row.label for row in validation.items] == [0, 1]
    with pytest.raises(InputError, match="whether labels are the places of the right choices"):
        _read(path)


def test_the_worst_errors_are_the_most_certain_ones(tmp_path: Path) -> None:
    rows = _read(write_rows(tmp_path / "a.jsonl", [
        {"sent1": "one", "sent2": "so", "choices": ["a", "b"], "label": 0},
        {"sent1": "two", "sent2": " ", "choices": ["a", "b", "c"], "label": 1},
        {"sent1": "three", "choices": ["a", "b"], "label": 1},
    ]))  # fmt: skip
    heads = HeadsConfig(task="choose", masked_language_model=False)
    examples = TASK.examples(rows, (), made_tokenizer(), max_length=16, long_texts="head", heads=heads)
    scores = np.array([0.0, 1.0, 5.0, 1.0, 0.0, 0.0, 2.0], np.float32)[:, None]
    found = TASK.evaluation(scores, examples, rows, heads)
    assert found["accuracy"] == pytest.approx(1 / 3)
    first, second = found["worst_errors"]
    assert (first["text"], first["label"], first["predicted"]) == ("two", "b", "a")
    assert "pair" not in first
    assert (second["text"], second["pair"], second["score"]) == ("one", "so", pytest.approx(1 / (1 + np.exp(-1.0))))
