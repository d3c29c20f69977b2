"""An encoder that exists goes on with the text of another domain, whose words it may be given."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import TINY_SETTINGS, FinishedRun, Outcome, one_sequence, refused
from transformers import AutoModelForMaskedLM, AutoTokenizer

from bertsmith.folders.model_folder import read_model
from bertsmith.model.heads import Model
from bertsmith.tokenization.tokenizer import Tokenizer

Command = Callable[..., Outcome]
WORDS = ("tachycardia", "stenosis", "angiogram", "thrombus")


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clinic") / "notes.txt"
    lines = [
        f"The patient with {WORDS[number % 4]} had an {WORDS[(number + 2) % 4]}. "
        f"The {WORDS[(number + 1) % 4]} was small.\n"
        f"On day {number} the {WORDS[number // 2 % 4]} was gone. Number {number} went home."
        for number in range(80)
    ]
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path


def adapt(command: Command, clinic: Path, model: Path, out: Path, *more: object) -> Outcome:
    return command("pretrain", clinic, "--model", model, "--out", out, *TINY_SETTINGS, "--json", *more)


def embedding(model: Model) -> torch.Tensor:
    return model.state_dict()["encoder.embeddings.token.weight"]


def test_added_words_begin_as_the_mean_of_their_pieces(
    mlm_run: FinishedRun, command: Command, clinic: Path, tmp_path: Path
) -> None:
    # One step at no rate to speak of leaves the weights as they began.
    still = ("--steps", "1", "--set", "training.optimizer.learning_rate=1e-12", "--set", "training.optimizer.eps=1.0")
    run = adapt(command, clinic, mlm_run.model, tmp_path / "run", "--extend-vocabulary", "4", *still)
    assert run.code == 0, run.err
    assert "4 words added" in run.err
    before, after = read_model(mlm_run.model).model, read_model(tmp_path / "run" / "model").model
    old, new = Tokenizer.from_folder(mlm_run.model), Tokenizer.from_folder(tmp_path / "run" / "model")
    assert set(new.added_words) == set(WORDS)
    assert new.vocab_size == old.vocab_size + 4
    assert len(embedding(after)) == len(embedding(before)) + 4
    torch.testing.assert_close(
        embedding(after)[: old.vocab_size], embedding(before)[: old.vocab_size], atol=1e-6, rtol=0
    )
    bias_before = before.state_dict()["masked_language_model.bias"]
    bias_after = after.state_dict()["masked_language_model.bias"]
    for word, pieces in zip(new.added_words, old.word_pieces(new.added_words), strict=True):
        (number,) = new.word_pieces([word])[0]
        assert len(pieces) > 1
        torch.testing.assert_close(embedding(after)[number], embedding(before)[pieces].mean(0), atol=1e-6, rtol=0)
        torch.testing.assert_close(bias_after[number], bias_before[pieces].mean(), atol=1e-6, rtol=0)
    head = after.masked_language_model
    assert head is not None
    assert head.projection is after.encoder.embeddings.token.weight


def test_an_adapted_model_opens_in_transformers_with_its_words(
    mlm_run: FinishedRun, command: Command, clinic: Path, tmp_path: Path
) -> None:
    run = adapt(command, clinic, mlm_run.model, tmp_path / "run", "--extend-vocabulary", "3")
    assert run.code == 0, run.err
    folder = tmp_path / "run" / "model"
    ours, our_tokenizer = read_model(folder).model, Tokenizer.from_folder(folder)
    theirs, their_tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    text = f"The {WORDS[0]} and the {WORDS[1]}s near the river."
    ids = our_tokenizer.encode(text).token_ids.tolist()
    assert their_tokenizer(text)["input_ids"] == ids
    assert ours.masked_language_model is not None
    with torch.inference_mode():
        logits = ours.masked_language_model(ours.head_input(one_sequence(ids, [0] * len(ids))))
        expected = theirs(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_an_adaptation_resumes_and_is_done_once(
    mlm_run: FinishedRun, command: Command, clinic: Path, tmp_path: Path
) -> None:
    first = adapt(command, clinic, mlm_run.model, tmp_path / "run", "--extend-vocabulary", "3")
    assert first.code == 0, first.err
    again = adapt(command, clinic, mlm_run.model, tmp_path / "run", "--extend-vocabulary", "3")
    assert again.code == 0, again.err
    assert "is finished" in again.err
    assert again.objects == first.objects


def test_a_trained_model_goes_on_at_a_lower_rate_unless_told_otherwise(
    mlm_run: FinishedRun, command: Command, clinic: Path, tmp_path: Path
) -> None:
    for number, (given, rate) in enumerate([((), 1e-4), (("--set", "training.optimizer.learning_rate=3e-3"), 3e-3)]):
        run = adapt(command, clinic, mlm_run.model, tmp_path / str(number), *given)
        assert run.code == 0, run.err
        log = (tmp_path / str(number) / "log.jsonl").read_text(encoding="utf-8").splitlines()
        rates = [entry["learning_rate"] for entry in map(json.loads, log) if entry["kind"] == "train"]
        assert rate / 3 < max(rates) <= rate


@pytest.mark.parametrize("kind", ["preset", "corpus", "tokenizer"])
def test_words_are_added_only_to_a_model_that_goes_on_with_text(
    kind: str, mlm_run: FinishedRun, command: Command, clinic: Path, tmp_path: Path
) -> None:
    source = mlm_run.folder / "corpus" if kind == "corpus" else clinic
    model = "bert-toy" if kind == "preset" else mlm_run.model
    more = ("--tokenizer", mlm_run.folder / "tokenizer") if kind == "tokenizer" else ()
    out = ("--out", tmp_path / "run", "--extend-vocabulary", "3")
    outcome = command("pretrain", source, "--model", model, *out, *more)
    refused(outcome, "--extend-vocabulary needs a model folder")
    assert not (tmp_path / "run").exists()


def test_sizes_of_a_model_folder_cannot_be_set(
    mlm_run: FinishedRun, command: Command, clinic: Path, tmp_path: Path
) -> None:
    outcome = adapt(command, clinic, mlm_run.model, tmp_path / "run", "--set", "model.num_hidden_layers=3")
    refused(outcome, "A model folder's sizes are what they are", "model.num_hidden_layers=3")
