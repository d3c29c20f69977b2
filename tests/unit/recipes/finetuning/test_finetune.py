"""Fine-tuning from beginning to end: what it leaves, and how it goes on."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from finetune_parts import QUICK, config_of, fill_work, same_weights, weights_of

import bertsmith
from bertsmith.examples.table_config import TableConfig
from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.model import Dropout
from bertsmith.model.packed import PackedTokens
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.start_model import open_source, start_model
from bertsmith.recipes.results import Run
from bertsmith.training.events import Event, Progress, Validated
from bertsmith.training.log import read_log
from made_corpora import made_tokenizer
from made_tasks import made_classifier, made_encoder, made_rows, write_rows


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder and a table."""
    return fill_work(tmp_path_factory.mktemp("finetune"))


@pytest.fixture(scope="module")
def learned(work: Path) -> tuple[Run, list[str], list[Event]]:
    """A run that was long enough to learn, with what was said and told."""
    notes: list[str] = []
    events: list[Event] = []
    run = finetune_run(
        config_of(work, length={"epochs": 12}), work / "learned", notify=notes.append, observers=[events.append]
    )
    return run, notes, events


def test_it_learns_and_leaves_a_run_folder(learned: tuple[Run, list[str], list[Event]]) -> None:
    run, _, events = learned
    assert run.metrics["accuracy"] > 0.9
    assert {"loss", "accuracy", "macro_f1", "matthews"} <= set(run.metrics)
    assert next(iter(run.metrics)) == "accuracy"
    assert {path.name for path in run.folder.iterdir()} == {
        *("run.toml", "log.jsonl", "checkpoints", "model", "report.html", "evaluation.json")
    }
    kinds = {entry["kind"] for entry in read_log(run.folder / "log.jsonl")}
    assert kinds == {"train", "validation"}
    assert any(isinstance(event, Progress) for event in events)
    validations = [event for event in events if isinstance(event, Validated)]
    best = max(validations, key=lambda event: (event.metrics["accuracy"], -event.metrics["loss"]))
    assert best.metrics == run.metrics
    assert bertsmith.verify(run.folder).faults == ()


def test_what_stands_out_is_said(learned: tuple[Run, list[str], list[Event]]) -> None:
    _, notes, _ = learned
    said = "\n".join(notes)
    assert "columns of train.csv: text “text”, label “label”" in said
    assert "no --validation: 10 of 100 rows are held out" in said
    assert "has no pooler" in said


def test_the_evaluation_agrees_with_the_scores(learned: tuple[Run, list[str], list[Event]]) -> None:
    run, _, _ = learned
    found = run.evaluation
    assert found == json.loads((run.folder / "evaluation.json").read_text())
    assert found["labels"] == ["dry", "wet"]
    confusion = found["confusion"]
    assert sum(map(sum, confusion)) == found["rows"] == 10
    assert (confusion[0][0] + confusion[1][1]) / 10 == pytest.approx(run.metrics["accuracy"])
    assert len(found["worst_errors"]) == 10 - confusion[0][0] - confusion[1][1]
    assert {name: entry["rows"] for name, entry in found["per_class"].items()} == {"dry": 4, "wet": 6}


def test_the_folder_is_a_predictor_that_evaluates_alike(
    learned: tuple[Run, list[str], list[Event]], work: Path
) -> None:
    run, _, _ = learned
    classify = bertsmith.load(run.folder, device="cpu", precision="fp32")
    assert isinstance(classify, ClassifyPredictor)
    assert classify.labels == ("dry", "wet")
    rows = made_rows({"wet": 20, "dry": 20}, seed=1)
    found = classify([row["text"] for row in rows])
    right = sum(one.label == row["label"] for one, row in zip(found, rows, strict=True)) / len(rows)
    path = write_rows(work / "test.jsonl", rows)
    report = bertsmith.evaluate(run.folder, path, device="cpu", precision="fp32")
    assert report.metrics["accuracy"] == pytest.approx(right)
    assert right > 0.8
    for error in report.metrics["worst_errors"]:
        line = int(error["place"].removeprefix("line ")) - 1
        assert (error["text"], error["label"]) == (rows[line]["text"], rows[line]["label"])


def test_a_label_unknown_to_the_model_is_named(learned: tuple[Run, list[str], list[Event]], work: Path) -> None:
    rows = [*made_rows({"wet": 3}), {"text": "a river", "label": "cold"}]
    with pytest.raises(InputError, match=r"dry, wet.*“cold” in .*line 4"):
        bertsmith.evaluate(learned[0].folder, write_rows(work / "cold.jsonl", rows), device="cpu")


def test_report_and_card_hold_scores_and_labels(learned: tuple[Run, list[str], list[Event]]) -> None:
    run, _, _ = learned
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "http" not in page.replace("http://www.w3.org", "")
    for part in ("Each class", "What was taken for what", "Worst errors", "macro F1"):
        assert part in page
    card = (run.model_folder / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-classification" in card
    assert f"| accuracy | {run.metrics['accuracy']:.4f} |" in card
    assert "| wet |" in card


def test_a_finished_run_is_not_run_again(learned: tuple[Run, list[str], list[Event]], work: Path) -> None:
    again = finetune_run(config_of(work, length={"epochs": 12}), work / "learned")
    assert again.already_finished
    assert (again.metrics, again.evaluation) == (learned[0].metrics, learned[0].evaluation)


def test_a_frozen_encoder_is_that_of_the_source(work: Path) -> None:
    run = finetune_run(config_of(work, freeze="encoder"), work / "frozen")
    before, after = weights_of(work / "encoder"), weights_of(run.model_folder)
    encoder = [name for name in after if name.startswith("encoder.")]
    assert all(torch.equal(before[name], after[name]) for name in encoder)
    assert len(after) > len(encoder)


def test_a_frozen_encoder_has_no_dropout_while_the_head_learns(work: Path) -> None:
    run = finetune_run(config_of(work, freeze="encoder", dropout=0.5), work / "frozen-still")
    checkpoints = [path.parent for path in (run.folder / "checkpoints").rglob("config.json")]
    for folder in (*checkpoints, run.model_folder):
        config = read_model(folder).model.config
        assert config.encoder.dropout == Dropout()
        assert config.heads.classifier_dropout == 0.5
    assert checkpoints
    task = {"task": "classify", "labels": ("dry", "wet")}
    source = open_source(str(work / "encoder"))
    model, _ = start_model(source, task, dropout=0.5, fresh_weights=False, seed=0, frozen=True)
    packed = PackedTokens.build(np.array([2, 9, 10, 3]), np.zeros(4, np.int64), np.array([0, 4]))
    still = model.eval().encoder.packed(packed)
    assert torch.equal(model.train().encoder.packed(packed), still)


def test_fresh_weights_are_not_those_of_the_source(work: Path) -> None:
    run = finetune_run(config_of(work, fresh_weights=True), work / "fresh")
    before, after = weights_of(work / "encoder"), weights_of(run.model_folder)
    assert not torch.allclose(before["encoder.embeddings.token.weight"], after["encoder.embeddings.token.weight"])


def test_balanced_weights_change_what_is_learned(work: Path) -> None:
    runs = [
        finetune_run(config_of(work, class_weights=kind), work / f"weights-{kind}") for kind in ("none", "balanced")
    ]
    assert not same_weights(runs[0].model_folder, runs[1].model_folder)


def test_pairs_and_a_validation_file_with_labels_as_numbers(work: Path) -> None:
    made_encoder(work / "pairs", pairs=True)
    for name, seed in (("train", 0), ("dev", 1)):
        rows = made_rows({"wet": 30, "dry": 30}, seed=seed, pairs=True)
        numbered = [row | {"label": 5 if row["label"] == "wet" else 1} for row in rows]
        write_rows(work / f"pairs-{name}.jsonl", numbered)
    notes: list[str] = []
    values = {"train": str(work / "pairs-train.jsonl"), "validation": str(work / "pairs-dev.jsonl")}
    config = config_of(work, **values, model=str(work / "pairs"))
    run = finetune_run(config, work / "paired", notify=notes.append)
    assert run.evaluation["rows"] == 60
    assert run.evaluation["labels"] == ["1", "5"]
    assert "pair “sentence2”" in notes[0]
    assert not any("pooler" in note for note in notes)
    classify = bertsmith.load(run.folder, device="cpu", precision="fp32")
    assert isinstance(classify, ClassifyPredictor)
    ((one,), (other,)) = (classify([pair]) for pair in (("a boat", "rain"), ("a boat", "bread")))
    assert one.scores != other.scores
    # It knows that it reads pairs.
    with pytest.raises(InputError, match=r"trained on pairs of texts.*text 2, which stands alone.*--pair"):
        classify([("a boat", "rain"), "a boat"])
    alone = write_rows(work / "alone.jsonl", [{"text": "a boat", "label": 1}, {"text": "rain", "label": 5}])
    with pytest.raises(InputError, match=r"trained on pairs of texts.*alone\.jsonl.*--text and --pair"):
        bertsmith.evaluate(run.folder, alone, device="cpu", precision="fp32")


def test_a_model_of_texts_that_stand_alone_is_given_no_pairs(
    learned: tuple[Run, list[str], list[Event]], work: Path
) -> None:
    folder = learned[0].folder
    classify = bertsmith.load(folder, device="cpu", precision="fp32")
    with pytest.raises(InputError, match=r"stand alone must be given such.*text 1, which is a pair"):
        classify(("a boat", "rain"))
    rows = made_rows({"wet": 3, "dry": 3}, pairs=True)
    path = write_rows(work / "both.jsonl", rows)
    with pytest.raises(InputError, match=r"stand alone.*pair “sentence2”.*with --text alone"):
        bertsmith.evaluate(folder, path, device="cpu", precision="fp32")
    table = TableConfig(text="sentence1")
    assert bertsmith.evaluate(folder, path, table=table, device="cpu", precision="fp32").metrics["rows"] == 6


def test_a_trained_classifier_goes_on_with_its_labels_in_its_order(
    learned: tuple[Run, list[str], list[Event]], work: Path
) -> None:
    notes: list[str] = []
    slow = {"optimizer": {"learning_rate": 1e-6}}
    config = config_of(work, model=str(learned[0].folder), length={"steps": 1}, training=slow)
    run = finetune_run(config, work / "on", notify=notes.append)
    assert any("goes on with the head" in note for note in notes)
    assert run.metrics["accuracy"] > 0.8
    three = write_rows(work / "three.csv", made_rows({"wet": 20, "dry": 20, "cold": 20}))
    config = config_of(work, model=str(learned[0].folder), train=str(three), length={"steps": 1})
    run = finetune_run(config, work / "three", notify=notes.append)
    assert any("other labels (2), so a new one begins" in note for note in notes)
    assert run.evaluation["labels"] == ["cold", "dry", "wet"]


def test_labels_of_the_source_keep_their_places_in_whatever_order_they_stand(work: Path) -> None:
    folder = work / "turned"
    with new_folder(folder, seal={"kind": "model"}) as temporary:
        write_model(temporary, made_classifier(("wet", "dry")), made_tokenizer())
    before = bertsmith.evaluate(folder, work / "train.csv", device="cpu", precision="fp32").metrics
    training = {"optimizer": {"learning_rate": 1e-12}}
    config = config_of(work, model=str(folder), training=training, validation=str(work / "train.csv"), dropout=0.0)
    run = finetune_run(config, work / "turned-on")
    assert read_model(run.model_folder).model.config.heads.labels == ("wet", "dry")
    assert run.evaluation["labels"] == before["labels"] == ["wet", "dry"]
    assert run.evaluation["confusion"] == before["confusion"]
    assert run.metrics["loss"] == pytest.approx(before["loss"], abs=1e-6)


def test_long_rows_are_counted_and_the_kept_part_is_saved(work: Path) -> None:
    path = write_rows(work / "long.csv", made_rows({"wet": 20, "dry": 20}, words=(30, 40)))
    notes: list[str] = []
    config = config_of(work, train=str(path), max_length=16, long_texts="tail")
    run = finetune_run(config, work / "long", notify=notes.append)
    assert any(note == "training: 36 of 36 rows are longer than 16 tokens; their tail is used" for note in notes)
    settings = json.loads((run.model_folder / "tokenizer_config.json").read_text())
    assert (settings["model_max_length"], settings["truncation_side"]) == (16, "left")


def test_positions_that_the_source_never_learned_are_not_used(work: Path, tmp_path: Path) -> None:
    made_tokenizer().seeing(20).save(made_encoder(tmp_path / "model"))
    run = finetune_run(config_of(work, model=str(tmp_path / "model"), length={"steps": 1}), tmp_path / "out")
    (checkpoint,) = (run.folder / "checkpoints").iterdir()
    for folder in (run.model_folder, checkpoint):
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        assert settings["model_max_length"] == 20


def test_long_texts_in_windows_are_seen_whole_in_training_and_after(work: Path) -> None:
    stream = random.Random(5)
    rows = []
    for row in made_rows({"wet": 40, "dry": 40}):
        filling = " ".join(stream.choices(("the", "old", "small", "garden"), k=40))
        rows.append(row | {"text": stream.choice((f"{filling} {row['text']}", f"{row['text']} {filling}"))})
    path = write_rows(work / "windows.csv", rows)
    notes: list[str] = []
    # The encoder is a made one, and has as much to learn below as above.
    training = QUICK["training"] | {"optimizer": QUICK["training"]["optimizer"] | {"layer_decay": 1.0}}
    values = {"train": str(path), "validation": str(path), "long_texts": "windows", "training": training}
    config = config_of(work, **values, max_length=24, length={"epochs": 12})
    run = finetune_run(config, work / "windows", notify=notes.append)
    assert any("rows are read in" in note for note in notes)
    assert run.metrics["accuracy"] > 0.85
    assert read_model(run.model_folder).model.config.heads.windows
    report = bertsmith.evaluate(run.folder, path, device="cpu", precision="fp32")
    assert report.metrics["accuracy"] == run.metrics["accuracy"]


def test_python_predicts_as_the_command_does_unless_told_otherwise(learned: tuple[Run, list[str], list[Event]]) -> None:
    text = ["the old rain walked"]
    found = bertsmith.load(learned[0].folder, device="cpu")
    exact = bertsmith.load(learned[0].folder, device="cpu", precision="fp32")
    assert isinstance(found, ClassifyPredictor)
    assert isinstance(exact, ClassifyPredictor)
    assert found(text)[0].scores == exact(text)[0].scores
