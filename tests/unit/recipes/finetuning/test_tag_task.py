"""The task tag: from files of tagged words to a model folder that labels words."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import config_of

from bertsmith.engine.device import Device
from bertsmith.examples.repeated_rows import KeyedRow
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.tagging import TaggedExamples
from bertsmith.folders.model_folder import read_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.tag import TagPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig
from bertsmith.objectives.tagging import Tagging
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.task import Task, TaskRows
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.finetuning.tasks.tag import Tag
from bertsmith.text.tagged import TaggedSentence
from made_corpora import made_tokenizer
from made_sentences import ENTITY_LABELS, made_sentences
from made_tasks import made_encoder

TASK = Tag()
PLAIN = ("ADJ", "NOUN", "X")


def _written(sentences: Sequence[TaggedSentence]) -> str:
    lines = ["".join(f"{w}\t{t}\n" for w, t in zip(one.words, one.tags, strict=True)) for one in sentences]
    return "\n".join(lines)


def _rows(folder: Path, content: str, **settings: Any) -> TaskRows:
    path = folder / "a.conll"
    path.write_text(content, encoding="utf-8")
    return TASK.read(path, TableConfig(**settings), like=None, options=OptionNames())


def _heads(labels: Sequence[str]) -> HeadsConfig:
    return HeadsConfig(masked_language_model=False, task="tag", labels=tuple(labels))


def _examples(rows: TaskRows, labels: Sequence[str], *, max_length: int = 32) -> TaggedExamples:
    return TASK.examples(rows, labels, made_tokenizer(), max_length=max_length, long_texts="head", heads=_heads(labels))


def _certain(examples: TaggedExamples, num_labels: int, *, seed: int | None = None) -> np.ndarray:
    """Outputs of a model that knows every label; with a seed, of one that errs."""
    outputs = np.zeros((len(examples.token_ids), num_labels), np.float32)
    carried = np.flatnonzero(examples.words >= 0)
    outputs[carried, examples.targets[carried]] = 9.0
    if seed is not None:
        outputs += np.random.default_rng(seed).normal(0, 4, outputs.shape).astype(np.float32)
    return outputs


def test_it_is_a_task_that_the_recipe_knows() -> None:
    assert isinstance(TASK, Task)
    assert isinstance(TASKS["tag"], Tag)
    assert isinstance(made_sentences(1)[0], KeyedRow)


def test_what_counts_first_depends_on_the_labels(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "a\tO\n")
    assert next(iter(TASK.metrics(rows, ENTITY_LABELS))) == "f1"
    assert list(TASK.metrics(rows, PLAIN)) == ["accuracy", "macro_f1", "loss"]
    assert TASK.metrics(rows, PLAIN)["loss"] == TASK.metrics(rows, ENTITY_LABELS)["loss"] == "lower"


def test_rows_labels_and_notes_come_from_the_file(tmp_path: Path) -> None:
    sentences = made_sentences(40)
    rows = _rows(tmp_path, _written(sentences))
    assert [(one.words, one.tags) for one in rows.items] == [(one.words, one.tags) for one in sentences]
    labels = TASK.labels(rows)
    assert labels == ENTITY_LABELS
    assert TASK.facts(rows, labels)["train_words"] == sum(len(one.words) for one in sentences)
    assert TASK.notes(rows, labels)[0] == "labels are taken for those of entities, in BIO"
    assert TASK.heads(rows, labels, _config(tmp_path)) == {"labels": labels}


@pytest.mark.parametrize("long_texts", ["tail", "windows"])
def test_a_treatment_of_long_texts_that_would_do_nothing_is_refused(tmp_path: Path, long_texts: str) -> None:
    rows = _rows(tmp_path, "a\tO\nb\tB-X\n")
    with pytest.raises(InputError, match=r"long_texts must be head: sentences are read in windows always"):
        TASK.heads(rows, TASK.labels(rows), _config(tmp_path, long_texts=long_texts))


def test_numbers_are_said_to_tell_no_entities(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "a\t0\nb\t12\n")
    labels = TASK.labels(rows)
    assert labels == ("0", "12")
    assert "numbers tell no entities" in TASK.notes(rows, labels)[0]


def test_held_out_rows_have_their_share_of_rare_labels(tmp_path: Path) -> None:
    content = "a\tO\nb\tB-X\n\n" * 4 + "a\tO\n\n" * 60 + "a\tO\nb\tB-Y\n\n" * 10
    rows = _rows(tmp_path, content)
    strata = TASK.strata(rows, TASK.labels(rows))
    assert [len(np.unique(part)) for part in (strata[:4], strata[4:64], strata[64:])] == [1, 1, 1]
    assert len(np.unique(strata)) == 3


def test_a_label_that_the_model_does_not_know_is_named_with_its_line(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "Ann\tB-PER\n\nBeirut\tB-LOK\n")
    with pytest.raises(InputError, match=r"“B-LOK” of “Beirut” in .*a\.conll, line 3.*Did you mean B-LOC"):
        TASK.check(rows, ENTITY_LABELS)
    TASK.check(rows, (*ENTITY_LABELS, "B-LOK"))


def test_evaluation_of_entities_finds_everything_where_the_model_does(tmp_path: Path) -> None:
    rows = _rows(tmp_path, _written(made_sentences(30)))
    examples = _examples(rows, ENTITY_LABELS)
    found = TASK.evaluation(_certain(examples, 5), examples, rows, _heads(ENTITY_LABELS))
    assert set(TASK.metrics(rows, ENTITY_LABELS)) <= set(found)
    assert {found[name] for name in TASK.metrics(rows, ENTITY_LABELS) if name != "loss"} == {1.0}
    assert 0 < found["loss"] < 0.01
    assert found["worst_errors"] == []
    assert sum(one["rows"] for one in found["per_class"].values()) == sum(
        tag.startswith("B-") for one in rows.items for tag in one.tags
    )
    assert found["rows"] == 30


@pytest.mark.parametrize("max_length", [12, 64])
def test_evaluation_reads_each_word_at_its_own_token_also_in_windows(tmp_path: Path, max_length: int) -> None:
    sentences = made_sentences(10, words=(8, 16), seed=3)
    rows = _rows(tmp_path, _written(sentences))
    examples = _examples(rows, ENTITY_LABELS, max_length=max_length)
    assert (len(examples) > 10) == (max_length == 12)
    found = TASK.evaluation(_certain(examples, 5), examples, rows, _heads(ENTITY_LABELS))
    assert (found["accuracy"], found["f1"], found["words"]) == (1.0, 1.0, sum(len(one.words) for one in sentences))


def test_words_without_pieces_count_as_the_stated_label(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "Anna\tB-PER\n\u200b\tI-PER\nOslo\tB-LOC\n\n\u200b\tO\n")
    examples = _examples(rows, ENTITY_LABELS)
    found = TASK.evaluation(_certain(examples, 5), examples, rows, _heads(ENTITY_LABELS))
    assert found["accuracy"] == pytest.approx(3 / 4)
    assert found["per_class"]["PER"]["f1"] == 0.0
    assert found["per_class"]["LOC"]["f1"] == 1.0
    assert found["counted"] == "entities"
    (error,) = found["worst_errors"]
    assert (error["place"], error["label"], error["predicted"], error["score"]) == (
        "line 2, “\u200b”",
        "I-PER",
        "O",
        0.0,
    )


def test_plain_labels_are_scored_word_by_word(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "old\tADJ\nboat\tNOUN\nbread\tNOUN\n\nrain\tNOUN\n")
    examples = _examples(rows, PLAIN)
    outputs = _certain(examples, 3)
    outputs[np.flatnonzero(examples.words >= 0)[1]] = [5.0, 0.0, 0.0]
    found = TASK.evaluation(outputs, examples, rows, _heads(PLAIN))
    assert found["accuracy"] == pytest.approx(3 / 4)
    assert found["per_class"]["NOUN"] == pytest.approx({"precision": 1.0, "recall": 2 / 3, "f1": 0.8, "rows": 3})
    assert found["confusion"] == [[1, 0, 0], [1, 2, 0], [0, 0, 0]]
    assert found["labels"] == list(PLAIN)
    assert found["counted"] == "words"
    assert "f1" not in found
    (error,) = found["worst_errors"]
    assert error | {"score": 0} == {
        "place": "line 2, “boat”",
        "text": "old boat bread",
        "word": "boat",
        "label": "NOUN",
        "predicted": "ADJ",
        "score": 0,
    }


def test_the_most_certain_errors_come_first_and_long_sentences_are_cut_around_them(tmp_path: Path) -> None:
    rows = _rows(tmp_path, _written(made_sentences(40, words=(60, 80))))
    examples = _examples(rows, ENTITY_LABELS)
    found = TASK.evaluation(_certain(examples, 5, seed=0), examples, rows, _heads(ENTITY_LABELS))
    scores = [error["score"] for error in found["worst_errors"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 20
    for error in found["worst_errors"]:
        assert f"{error['word']}" in error["text"]
        assert error["place"].endswith(f"“{error['word']}”")
        assert len(error["text"]) < 340


def test_every_word_of_a_long_sentence_may_be_wrong(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "boat\tNOUN\n" * 30_000)
    examples = _examples(rows, PLAIN)
    outputs = np.tile(np.array([1, 0, 0], np.float32), (len(examples.token_ids), 1))
    started_at = time.perf_counter()
    found = TASK.evaluation(outputs, examples, rows, _heads(PLAIN), most_errors=None)
    assert time.perf_counter() - started_at < 8  # Many times that where the sentence is joined for each of them.
    texts = [error["text"] for error in found["worst_errors"]]
    assert len(texts) == 30_000
    assert (texts[15_000][0], texts[15_000][-1], len(texts[15_000])) == ("…", "…", 2 * 151 + len(" boat "))
    assert texts[0].startswith("boat boat")


def test_labels_in_another_order_give_the_same_evaluation(tmp_path: Path) -> None:
    rows = _rows(tmp_path, _written(made_sentences(20)))
    examples = _examples(rows, ENTITY_LABELS)
    outputs = _certain(examples, 5, seed=1)
    order = [3, 0, 4, 1, 2]
    turned = tuple(ENTITY_LABELS[place] for place in order)
    found = TASK.evaluation(outputs, examples, rows, _heads(ENTITY_LABELS))
    other = TASK.evaluation(outputs[:, order], _examples(rows, turned), rows, _heads(turned))
    for one, same in ((found, other), *zip(found["worst_errors"], other["worst_errors"], strict=True)):
        assert {name: value for name, value in one.items() if name not in ("worst_errors", "score", "loss")} == {
            name: value for name, value in same.items() if name not in ("worst_errors", "score", "loss")
        }
        assert [one.get("score", 0.0), one.get("loss", 0.0)] == pytest.approx(
            [same.get("score", 0.0), same.get("loss", 0.0)], abs=1e-9
        )


def test_weights_are_those_of_the_words(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "a\tO\nb\tO\nc\tO\nd\tB-X\n")
    labels = TASK.labels(rows)
    assert TASK.objective(rows, labels, _config(tmp_path)) == Tagging()
    balanced = TASK.objective(rows, labels, _config(tmp_path, class_weights="balanced"))
    assert balanced.label_weights == pytest.approx((2.0, 2 / 3))


def test_validation_rows_are_read_by_the_columns_of_training(tmp_path: Path) -> None:
    row = {"tokens": ["Ann"], "ner_tags": ["B-X"], "pos_tags": ["NOUN"]}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    train = TASK.read(path, TableConfig(label="pos_tags"), like=None, options=OptionNames())
    again = TASK.read(path, TableConfig(), like=train, options=OptionNames())
    assert again.items[0].tags == ("NOUN",)
    assert again.columns == train.columns == "words “tokens”, tags “pos_tags”"


def _config(work: Path, **more: Any) -> FinetuneConfig:
    return config_of(work, **({"task": "tag", "train": str(work / "train.conll"), "length": {"steps": 60}} | more))


def test_a_tagger_learns_names_and_is_read_again(tmp_path: Path) -> None:
    made_encoder(tmp_path / "encoder")
    (tmp_path / "train.conll").write_text(_written(made_sentences(120)), encoding="utf-8")
    finetune_run(_config(tmp_path, max_length=32), tmp_path / "run")
    evaluation = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))
    assert evaluation["f1"] > 0.5
    model = read_model(tmp_path / "run" / "model").model
    assert model.config.heads.labels == ENTITY_LABELS
    TagPredictor(TorchEngine(model, Device("cpu", "fp32")), made_tokenizer())
