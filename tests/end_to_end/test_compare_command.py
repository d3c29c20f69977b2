"""`bertsmith compare`: three tiny models on the small text, once, and what they leave behind."""

import json
import math
from pathlib import Path

import pytest
import torch
from command_line import Outcome, command, one_sequence, refused

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import Device
from bertsmith.folders.model_folder import read_model
from bertsmith.inference.features import layer_means
from bertsmith.inference.running import TokenWindow
from bertsmith.model import Model
from bertsmith.recipes.comparison.measures import scored_tokens
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.layer_probe import probe_layers
from bertsmith.training.log import read_log

_SETTINGS = (
    *("--max-length", "32", "--batch-tokens", "512", "--steps", "4", "--threads", "1", "--precision", "fp32"),
    *("--set", "task.most_train_texts=60", "--set", "task.most_test_texts=30", "--set", "task.epochs=1"),
)


@pytest.fixture(scope="module")
def arguments(text_file: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    out = tmp_path_factory.mktemp("compare") / "compared"
    chosen = ("compare", text_file, "--out", out, "--model", tiny_model, *_SETTINGS)
    return tuple(map(str, chosen))


@pytest.fixture(scope="module")
def folder(arguments: tuple[str, ...]) -> Path:
    return Path(arguments[arguments.index("--out") + 1])


@pytest.fixture(scope="module")
def outcome(arguments: tuple[str, ...]) -> Outcome:
    return command(*arguments, "--json")


def test_the_comparison_runs_and_leaves_its_files(outcome: Outcome, folder: Path) -> None:
    assert outcome.code == 0, outcome.err
    for name in ("comparison.json", "comparison.md", "comparison.png", "comparison.svg"):
        assert (folder / name).is_file()
    assert outcome.objects == [json.loads((folder / "comparison.json").read_text(encoding="utf-8"))]


def test_the_three_have_one_size_and_one_budget(outcome: Outcome, folder: Path) -> None:
    (values,) = outcome.objects
    models = values["models"]
    sizes = [model["parameters"] for model in models.values()]
    assert max(sizes) <= 1.05 * min(sizes)
    assert {model["steps"] for model in models.values()} == {4}
    assert len({model["tokens"] for model in models.values()}) == 1
    for kind, objective in (("bert", "mlm"), ("gpt", "causal"), ("elmo", "bilm")):
        assert models[kind]["objective"] == objective
        read = read_model(folder / kind / "model").model.config.encoder
        assert (read.causal, read.family == "elmo") == (kind == "gpt", kind == "elmo")


def test_directions_are_what_they_must_be(outcome: Outcome) -> None:
    (values,) = outcome.objects
    seen = {
        kind: (model["direction"]["sees_later"], model["direction"]["sees_earlier"])
        for kind, model in values["models"].items()
    }
    assert seen == {"bert": (True, True), "gpt": (False, True), "elmo": (True, True)}
    halves = values["models"]["elmo"]["direction"]
    assert not halves["forward_half"]["sees_later"]
    assert not halves["backward_half"]["sees_earlier"]


def test_everything_is_measured(outcome: Outcome, folder: Path) -> None:
    (values,) = outcome.objects
    assert values["task"]["train_texts"] == 60
    for kind, model in values["models"].items():
        speeds = [
            entry["tokens_per_second"] for entry in read_log(folder / kind / "log.jsonl") if entry["kind"] == "train"
        ]
        assert model["tokens_per_second"] in speeds
        assert ("prompt" in model, "writing" in model) == (kind == "gpt", kind == "gpt")
        tuned = json.loads((folder / f"{kind}-finetuned" / "evaluation.json").read_text(encoding="utf-8"))
        assert model["finetuned"] == {name: tuned[name] for name in ("accuracy", "macro_f1")}
        assert tuned["rows"] == len(_rows(folder, "test")) == 30
    assert values["models"]["gpt"]["writing"]["continuation"]
    assert values["models"]["elmo"]["context"] == {"longest": None, "tried": 128, "finite": True}
    assert values["models"]["bert"]["context"] == {"longest": 32}


def _rows(folder: Path, name: str) -> list[tuple[str, int]]:
    labels = json.loads((folder / "task" / "task.json").read_text(encoding="utf-8"))["labels"]
    lines = (folder / "task" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["text"], labels.index(row["label"])) for row in map(json.loads, lines)]


@torch.no_grad()
def _next_token_scores(model: Model, token_ids: list[int]) -> torch.Tensor:
    """Logarithms of the probabilities of what follows each token of one sequence."""
    assert model.masked_language_model is not None
    hidden = model.encoder.packed(one_sequence(token_ids, [0] * len(token_ids)))
    return model.masked_language_model(hidden).double().log_softmax(-1)


def test_perplexity_is_of_the_validation_tokens_that_were_scored(outcome: Outcome, folder: Path) -> None:
    (values,) = outcome.objects
    for model in values["models"].values():
        assert model["prediction"]["perplexity"] == pytest.approx(math.exp(model["prediction"]["loss"]))
    gpt, tokenizer = read_model(folder / "gpt" / "model").model, Tokenizer.from_folder(folder / "gpt" / "model")
    validation = Corpus.open(folder / "corpus").split("validation")
    windows, places = scored_tokens(validation, SequenceFormat.of(tokenizer), 32)
    scores: list[float] = []
    for window, asked in zip(windows, places, strict=True):
        found = _next_token_scores(gpt, window.token_ids.tolist())
        scores += [float(found[place - 1, window.token_ids[place]]) for place in asked.tolist()]
    told = values["models"]["gpt"]["prediction"]
    assert told["scored_tokens"] == len(scores)
    assert told["loss"] == pytest.approx(-sum(scores) / len(scores), abs=1e-4)


def test_a_prompt_is_answered_by_the_label_that_gains_most_by_the_text(outcome: Outcome, folder: Path) -> None:
    (values,) = outcome.objects
    gpt, tokenizer = read_model(folder / "gpt" / "model").model, Tokenizer.from_folder(folder / "gpt" / "model")

    def mean_score(text: str, label: str) -> float:
        before = tokenizer.encode(text).token_ids[:-1].tolist()
        words = tokenizer.encode(label).token_ids[1:-1].tolist()
        # What no longer fits loses its beginning behind the first token.
        before = [before[0], *before[1:][-(32 - len(words) - 2) :]]
        found = _next_token_scores(gpt, [*before, *words])
        return sum(float(found[len(before) - 1 + place, word]) for place, word in enumerate(words)) / len(words)

    labels, rows = values["task"]["labels"], _rows(folder, "test")
    gains = [[mean_score(text, label) - mean_score("", label) for label in labels] for text, _ in rows]
    right = [
        max(range(len(labels)), key=gain.__getitem__) == label for gain, (_, label) in zip(gains, rows, strict=True)
    ]
    assert values["models"]["gpt"]["prompt"]["accuracy"] == pytest.approx(sum(right) / len(right))


@pytest.mark.parametrize("kind", ["bert", "gpt", "elmo"])
def test_frozen_features_are_those_of_the_finished_model(kind: str, outcome: Outcome, folder: Path) -> None:
    (values,) = outcome.objects
    model, tokenizer = read_model(folder / kind / "model").model, Tokenizer.from_folder(folder / kind / "model")
    parts: list[tuple[torch.Tensor, torch.Tensor]] = []
    for name in ("train", "test"):
        rows = _rows(folder, name)
        encodings = tokenizer.encode_batch([text for text, _ in rows], 32)
        windows = [TokenWindow(encoding.token_ids, encoding.segment_ids) for encoding in encodings]
        features = layer_means(model, windows, Device("cpu", "fp32"))
        parts.append((features, torch.tensor([label for _, label in rows])))
    found = probe_layers(*parts, num_labels=len(values["task"]["labels"]))
    assert values["models"][kind]["frozen"]["accuracy"] == pytest.approx(found.accuracy)
    assert values["models"][kind]["frozen"]["layer_weights"] == pytest.approx(found.layer_weights, abs=1e-3)


def test_its_own_settings_give_it_again(outcome: Outcome, folder: Path) -> None:
    assert outcome.code == 0
    arguments = ("compare", "--config", folder / "run.toml", "--out", folder)
    again = command(*arguments)
    assert again.code == 0, again.err
    assert "is finished" in again.err
    refused(command(*arguments, "--steps", "5"), "length.steps was 4 and is now 5")
    refused(command("compare", "--out", folder), "text")


def test_it_is_no_single_model(outcome: Outcome, folder: Path) -> None:
    assert outcome.code == 0
    refused(command("fill", folder, "The [MASK] sees."), *(str(folder / kind) for kind in ("bert", "gpt", "elmo")))
    assert command("info", folder / "bert").code == 0


def test_a_finished_comparison_does_nothing_but_show_itself(
    outcome: Outcome, arguments: tuple[str, ...], folder: Path
) -> None:
    assert outcome.code == 0
    before = (folder / "comparison.json").stat().st_mtime_ns
    (folder / "comparison.png").unlink()
    again = command(*arguments)
    assert again.code == 0
    assert "is finished" in again.err
    assert again.out.startswith("# BERT, GPT and ELMo on the same text")
    assert (folder / "comparison.json").stat().st_mtime_ns == before
    # What was missing is drawn.
    assert (folder / "comparison.png").is_file()


def test_what_is_finished_is_not_done_again(outcome: Outcome, arguments: tuple[str, ...], folder: Path) -> None:
    assert outcome.code == 0
    (folder / "comparison.json").unlink()
    (folder / "measured" / "gpt-writing.json").unlink()
    kept = folder / "measured" / "bert-prediction.json"
    kept.write_text(
        kept.read_text(encoding="utf-8").replace('"scored_tokens": ', '"scored_tokens": 1'), encoding="utf-8"
    )
    again = command(*arguments, "--json")
    assert again.code == 0, again.err
    assert "training begins" not in again.err
    (values,) = again.objects
    (first,) = outcome.objects
    assert values["models"]["gpt"]["writing"] == first["models"]["gpt"]["writing"]
    assert values["models"]["bert"]["prediction"] != first["models"]["bert"]["prediction"]


def test_without_matplotlib_the_table_is_made_and_the_picture_asked_for(
    outcome: Outcome, arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome.code == 0
    (folder / "comparison.svg").unlink(missing_ok=True)
    monkeypatch.setattr("bertsmith.recipes.comparison.run.can_draw", lambda: False)
    again = command(*arguments)
    assert again.code == 0
    assert "matplotlib is not installed" in again.err
    assert not (folder / "comparison.svg").exists()


def test_the_same_folder_takes_no_other_comparison(outcome: Outcome, arguments: tuple[str, ...]) -> None:
    assert outcome.code == 0
    refused(command(*arguments, "--seed", "7"), "seed was 0 and is now 7")


def test_info_knows_a_comparison(outcome: Outcome, folder: Path) -> None:
    assert outcome.code == 0
    (found,) = command("info", folder, "--json").objects
    assert (found["kind"], found["finished"]) == ("comparison", True)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--model", "roberta-base"), "causal"),
        (("--model", "bert-tiny"), "bert-toy"),
        (("--batch-tokens", "40"), "--batch-tokens"),
        (("--labels", "nowhere.csv"), "nowhere.csv"),
        (("--template", "{label}"), "template"),
        (("--bert-objective", "causal"), "bert_objective"),
        (("--steps", "4", "--minutes", "2"), "only one of"),
        (("--set", "lerning_rate=1"), "learning_rate"),
        # Told when the corpus stands and the first training is about to begin.
        (("--minutes", "0.001", "--max-length", "32"), "--minutes"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    more: tuple[str, ...], told: str, text_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "compared"
    refused(command("compare", text_file, "--out", out, *more), told)
    assert not out.exists()
