"""Fine-tuning an embedder: on pairs, on graded pairs, and on texts alone."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finetune_parts import QUICK, config_of

import bertsmith
from bertsmith.engine.device import Device
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.foundation.errors import InputError
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.objectives.embedding import retrieval
from bertsmith.recipes.finetuning.options import FinetuneConfig, default_batch_size
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.finetuning.task import TaskRows
from bertsmith.recipes.finetuning.tasks import TASKS
from bertsmith.recipes.finetuning.tasks.embed import Embed
from bertsmith.recipes.predict import load, load_predictor
from bertsmith.recipes.results import Run
from made_corpora import WORDS, made_model, made_texts, made_tokenizer
from made_tasks import made_encoder, write_rows

_NAMES = WORDS[:24]
_FILLING = WORDS[24:]


def _pairs(count: int, seed: int) -> list[dict[str, Any]]:
    """Texts and partners that have two words in common, each at another place."""
    stream = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        names = stream.sample(_NAMES, 2)
        sides = [[*names, *stream.choices(_FILLING, k=2)] for _ in range(2)]
        for side in sides:
            stream.shuffle(side)
        rows.append({"anchor": f"{' '.join(sides[0])} {number}", "positive": " ".join(sides[1])})
    return rows


def _graded(count: int) -> list[dict[str, Any]]:
    """Pairs that have 0 to 4 words in common, which is their score."""
    stream = random.Random(7)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        first, shared = stream.sample(_NAMES, 4), number % 5
        second = [*first[:shared], *stream.sample(_FILLING, 4 - shared)]
        rows.append({"sentence1": " ".join(first), "sentence2": " ".join(second), "score": shared})
    return rows


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder, and rows of each kind."""
    folder = tmp_path_factory.mktemp("embedders")
    made_encoder(folder / "encoder")
    write_rows(folder / "pairs.csv", _pairs(160, seed=0))
    write_rows(folder / "held-out.csv", _pairs(40, seed=1))
    write_rows(folder / "graded.csv", _graded(100))
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in made_texts(60, sentences=(2, 4))))
    return folder


def _config(work: Path, train: str, **more: Any) -> FinetuneConfig:
    return config_of(work, **({"task": "embed", "train": str(work / train), "length": {"steps": 4}} | more))


@pytest.fixture(scope="module")
def learned(work: Path) -> tuple[Run, list[str]]:
    """An embedder that was trained on pairs for long enough to learn, and what was said."""
    notes: list[str] = []
    config = _config(work, "pairs.csv", validation=str(work / "held-out.csv"), length={"steps": 40}, dropout=0.0)
    return finetune_run(config, work / "learned", notify=notes.append), notes


def _mrr(folder: Path, rows: list[dict[str, Any]]) -> float:
    embed = load_predictor("embed", folder, device="cpu", precision="fp32")
    assert isinstance(embed, EmbedPredictor)
    vectors = embed.vectors([row[side] for row in rows for side in ("anchor", "positive")])
    return retrieval(vectors, np.arange(0, len(vectors) + 1, 2), np.arange(len(vectors))).scores["mrr"]


def test_pairs_are_learned(learned: tuple[Run, list[str]], work: Path) -> None:
    run, _ = learned
    rows = _pairs(40, seed=1)
    assert list(run.metrics) == ["mrr", "recall_at_1", "recall_at_5", "recall_at_10", "loss"]
    assert run.metrics["mrr"] == pytest.approx(_mrr(run.model_folder, rows), abs=1e-4)
    assert run.metrics["mrr"] > _mrr(work / "encoder", rows) + 0.1


def test_the_finished_folder_embeds_and_says_what_it_is(learned: tuple[Run, list[str]]) -> None:
    run, notes = learned
    embed = load(run.model_folder, device="cpu", precision="fp32")
    assert isinstance(embed, EmbedPredictor)
    assert embed.notes == ()
    assert np.linalg.norm(embed.vectors(["rain"])[0]) == pytest.approx(1.0, abs=1e-5)
    heads = read_model(run.model_folder).model.config.heads
    assert (heads.task, heads.pooling, heads.normalize, heads.masked_language_model) == ("embed", "mean", True, False)
    assert (run.model_folder / "1_Pooling" / "config.json").is_file()
    assert bertsmith.verify(run.folder).faults == ()
    assert any("text “anchor”, what belongs to it “positive”" in note for note in notes)
    evaluation = json.loads((run.folder / "evaluation.json").read_text())
    assert evaluation["rows"] == 40
    for error in evaluation["worst_errors"]:
        assert {"place", "text", "label", "predicted"} == set(error)
        assert error["label"] != error["predicted"]
    assert "Worst errors" in (run.folder / "report.html").read_text()


def test_an_evaluation_gives_the_scores_of_the_training(learned: tuple[Run, list[str]], work: Path) -> None:
    run, _ = learned
    report = bertsmith.evaluate(run.folder, work / "held-out.csv", device="cpu", precision="fp32")
    assert {name: report.metrics[name] for name in run.metrics} == pytest.approx(run.metrics, abs=1e-5)


def test_graded_pairs_are_learned_and_judged_by_their_order(work: Path) -> None:
    config = _config(work, "graded.csv", length={"steps": 40}, dropout=0.0)
    run = finetune_run(config, work / "graded")
    assert list(run.metrics) == ["spearman", "loss"]
    assert run.metrics["spearman"] > 0.5
    (worst, *_) = json.loads((run.folder / "evaluation.json").read_text())["worst_errors"]
    assert {"place", "text", "pair", "label", "predicted"} == set(worst)
    assert worst["predicted"].startswith("cosine ")


def test_pairs_of_equal_scores_are_ranked_alike_among_the_worst_errors(tmp_path: Path) -> None:
    rows = [{"text": name, "pair": "boat", "score": score} for name, score in (("one", 2), ("two", 2), ("three", 0.25))]
    read = Embed().read(write_rows(tmp_path / "a.csv", rows), TableConfig(), like=None, options=OptionNames())
    heads = HeadsConfig(task="embed", pooling="mean", masked_language_model=False)
    examples = Embed().examples(read, (), made_tokenizer(), max_length=16, long_texts="head", heads=heads)
    angles = np.arccos([1.0, 1.0, 1.0, 0.6, 1.0, 0.8])
    outputs = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    errors = Embed().evaluation(outputs, examples, read, heads)["worst_errors"]
    # Ranks of the scores are 2.5, 2.5 and 1, and those of the cosines 3, 1 and 2.
    assert [(error["text"], error["label"]) for error in errors] == [("two", "2"), ("three", "0.25"), ("one", "2")]


def test_texts_alone_are_learned_from_and_judged_by_their_halves(work: Path) -> None:
    notes: list[str] = []
    run = finetune_run(_config(work, "texts.txt"), work / "alone", notify=notes.append)
    assert 0.0 < run.metrics["mrr"] <= 1.0
    assert any("each alone: learned from two readings" in note for note in notes)
    assert any("are few to learn from" in note for note in notes)


def test_texts_alone_may_be_judged_by_graded_pairs(work: Path) -> None:
    notes: list[str] = []
    config = _config(work, "texts.txt", validation=str(work / "graded.csv"))
    run = finetune_run(config, work / "mixed", notify=notes.append)
    assert list(run.metrics) == ["spearman", "loss"]
    assert "graded.csv: read as texts “sentence1” and “sentence2”, score “score”" in notes


def test_a_held_out_text_is_never_compared_with_itself(work: Path) -> None:
    task = TASKS["embed"]
    rows = task.read(work / "texts.txt", TableConfig(), like=None, options=OptionNames())
    assert isinstance(rows, TaskRows)
    heads = read_model(work / "encoder").model.config.heads
    for held_out, same in ((False, 60), (True, 0)):
        part = TaskRows(rows.path, rows.items, rows.columns, layout=rows.layout, held_out=held_out)
        examples = task.examples(part, (), made_tokenizer(), max_length=64, long_texts="head", heads=heads)
        assert int((examples.targets[0::2] == examples.targets[1::2]).sum()) == same


def test_settings_decide_the_vectors(work: Path) -> None:
    settings = {"pooling": "max", "normalize": False, "temperature": 0.1, "direction": "forward"}
    run = finetune_run(_config(work, "pairs.csv", embed=settings), work / "set")
    heads = read_model(run.model_folder).model.config.heads
    assert (heads.pooling, heads.normalize) == ("max", False)
    assert "temperature = 0.1" in (run.folder / "run.toml").read_text()


def test_a_batch_that_is_cut_into_parts_is_said(work: Path) -> None:
    notes: list[str] = []
    config = _config(work, "pairs.csv", length={"steps": 1}, training=QUICK["training"] | {"micro_batch_tokens": 300})
    finetune_run(config, work / "parts", notify=notes.append)
    assert any("compared within a part alone" in note for note in notes)


def test_batches_hold_64_rows_unless_told() -> None:
    assert default_batch_size(500, "embed") == default_batch_size(1_000_000, "embed") == 64


@pytest.mark.parametrize(
    ("rows", "more", "told"),
    [
        ("pairs.csv", {"freeze": "encoder"}, r"no weights beside its encoder's.*bertsmith embed"),
        (
            "pairs.csv",
            {"long_texts": "windows"},
            r"long_texts must be head or tail: an embedding is made of one reading",
        ),
        ("pairs.csv", {"class_weights": "balanced"}, r"class_weights must be none for embed: texts have no classes"),
        (
            "graded.csv",
            {"embed": {"direction": "forward"}},
            r"pairs without grades.*direction=forward, and .*graded\.csv",
        ),
        ("texts.txt", {"dropout": 0.0}, r"two readings that dropout makes differ.*dropout=0, and .*texts\.txt"),
    ],
)
def test_what_an_embedder_cannot_do_is_refused_before_work(
    work: Path, rows: str, more: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        finetune_run(_config(work, rows, **more), work / "refused")
    assert not (work / "refused").exists()


def test_the_first_token_of_a_model_that_reads_one_way_is_refused(work: Path, tmp_path: Path) -> None:
    tokenizer = made_tokenizer()
    encoder = made_model(tokenizer.vocab_size).config.encoder.model_copy(update={"causal": True})
    (tmp_path / "gpt").mkdir()
    write_model(tmp_path / "gpt", new_model(ModelConfig(encoder=encoder), seed=0), tokenizer)
    config = _config(work, "pairs.csv", model=str(tmp_path / "gpt"), embed={"pooling": "first"})
    with pytest.raises(InputError, match=r"has read nothing.*mean or max"):
        finetune_run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_settings_of_embeddings_belong_to_the_task(work: Path) -> None:
    values = {"train": "a.csv", "model": "b", "embed": {"pooling": "max"}}
    with pytest.raises(InputError, match=r"embed\.… belong to task embed alone.*task classify"):
        FinetuneConfig.parse(values, where="a test")
    with pytest.raises(InputError, match=r"embed\.pooling"):
        FinetuneConfig.parse(values | {"task": "embed", "embed": {"pooling": "median"}}, where="a test")


def test_the_task_gives_its_predictor(work: Path) -> None:
    read = read_model(work / "encoder")
    engine = TorchEngine(read.model, Device("cpu", "fp32"))
    assert isinstance(Embed().predictor(engine, made_tokenizer()), EmbedPredictor)
