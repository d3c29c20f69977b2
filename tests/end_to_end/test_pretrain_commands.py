"""Raw text to a model in one command, and what the other commands say about it."""

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import FinishedRun, Outcome, one_sequence
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining, AutoTokenizer

from bertsmith.folders.model_folder import read_model
from bertsmith.tokenization.tokenizer import Tokenizer

Command = Callable[..., Outcome]
TEXTS = ("The cat sees the dog near the river.", "Café, naïve — élan!", "ذهب القط إلى البيت.", "zebra 🦓 x" * 3)


def test_a_run_leaves_everything_that_its_folder_promises(mlm_run: FinishedRun) -> None:
    names = {path.name for path in mlm_run.folder.iterdir()}
    assert names == {"run.toml", "log.jsonl", "tokenizer", "corpus", "checkpoints", "model", "report.html"}
    assert (mlm_run.model / "README.md").read_text(encoding="utf-8").startswith("---\n")


def test_pretrain_prints_one_result_with_its_last_validation(mlm_run: FinishedRun) -> None:
    (found,) = mlm_run.outcome.objects
    assert found["folder"] == str(mlm_run.folder)
    assert found["model"] == str(mlm_run.model)
    assert found["steps"] == 12
    assert found["tokens"] > 10 * 512 * 0.8
    assert 0 < found["loss"] < 10
    assert found["mlm_loss"] == found["loss"]
    assert 0 <= found["mlm_accuracy"] <= 1
    assert found["context_free_loss"] > 1


def test_sentence_pairs_add_their_own_loss_and_accuracy(pairs_run: FinishedRun) -> None:
    (found,) = pairs_run.outcome.objects
    assert found["loss"] == pytest.approx(found["mlm_loss"] + found["nsp_loss"])
    assert 0 <= found["nsp_accuracy"] <= 1
    assert 0.3 < found["nsp_negative_share"] < 0.7


def test_the_log_has_the_promised_fields_and_each_step_once(mlm_run: FinishedRun) -> None:
    log = [json.loads(line) for line in (mlm_run.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    train = [entry for entry in log if entry["kind"] == "train"]
    assert [entry["step"] for entry in train] == [4, 8, 12]
    for entry in train:
        named = {"step", "epoch", "tokens", "loss", "learning_rate", "tokens_per_second", "seconds_left"}
        assert named <= entry.keys()
    validations = [entry for entry in log if entry["kind"] == "validation"]
    assert validations[-1]["step"] == 12
    assert validations[-1]["loss"] == mlm_run.outcome.objects[0]["loss"]
    assert len({entry["step"] for entry in validations}) == len(validations)


def test_a_run_begun_from_its_own_run_toml_gives_the_same_model(
    mlm_run: FinishedRun, command: Command, tmp_path: Path
) -> None:
    again = command("pretrain", "--config", mlm_run.folder / "run.toml", "--out", tmp_path / "again", "--json")
    assert again.code == 0, again.err
    weights = [folder / "model.safetensors" for folder in (mlm_run.model, tmp_path / "again" / "model")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_finished_run_asked_again_says_so_and_changes_nothing(mlm_run: FinishedRun, command: Command) -> None:
    before = {path: path.stat().st_mtime_ns for path in mlm_run.folder.rglob("*")}
    again = command(*mlm_run.arguments)
    assert again.code == 0
    assert "is finished" in again.err
    assert again.objects == mlm_run.outcome.objects
    assert {path: path.stat().st_mtime_ns for path in mlm_run.folder.rglob("*")} == before


def test_restart_begins_anew(mlm_run: FinishedRun, command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(mlm_run.folder, folder)
    arguments = [str(folder) if part == str(mlm_run.folder) else part for part in mlm_run.arguments]
    again = command(*arguments, "--restart", "--seed", "5")
    assert again.code == 0, again.err
    assert "begins" in again.err
    assert tomllib.loads((folder / "run.toml").read_text(encoding="utf-8"))["training"]["seed"] == 5


def test_a_model_folder_is_trained_further_from_its_weights(
    mlm_run: FinishedRun, command: Command, text_file: Path, tmp_path: Path
) -> None:
    settings = ("--steps", "1", "--max-length", "32", "--batch-tokens", "512", "--set", "corpus.workers=1", "--json")
    more = command("pretrain", text_file, "--out", tmp_path / "more", "--model", mlm_run.model, *settings)
    assert more.code == 0, more.err
    assert "goes on from the weights of" in more.err
    # One step with the rate still warming up hardly moves the loss; fresh weights would stand at ln(vocabulary).
    assert more.objects[0]["loss"] == pytest.approx(mlm_run.outcome.objects[0]["loss"], abs=0.3)


def test_fill_gives_one_object_a_mask(mlm_run: FinishedRun, command: Command) -> None:
    text = "The [MASK] waits for the [MASK]."
    found = command("fill", mlm_run.model, text, "--top-k", "3", "--json")
    assert found.code == 0, found.err
    assert [(mask["text"], mask["mask_index"]) for mask in found.objects] == [(text, 0), (text, 1)]
    for mask in found.objects:
        scores = [best["score"] for best in mask["predictions"]]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        for best in mask["predictions"]:
            assert best.keys() == {"token", "token_id", "score", "sequence", "rank"}
            assert best["sequence"].count("[MASK]") == 1


def test_arabic_goes_in_and_comes_out_as_it_is(mlm_run: FinishedRun, command: Command) -> None:
    found = command("fill", mlm_run.model, "ذهب [MASK] إلى البيت.", "--targets", "القط,الكلب", "--json")
    assert found.code == 0, found.err
    assert "ذهب القط إلى البيت." in found.out
    assert {best["sequence"] for best in found.objects[0]["predictions"]} == {
        "ذهب القط إلى البيت.",
        "ذهب الكلب إلى البيت.",
    }


def test_fill_scores_the_targets_that_were_asked_for(mlm_run: FinishedRun, command: Command) -> None:
    found = command("fill", mlm_run.folder, "The [MASK] waits.", "--targets", "dog,cat", "--json")
    assert found.code == 0, found.err
    (mask,) = found.objects
    assert {best["token"] for best in mask["predictions"]} == {"dog", "cat"}


def test_fill_for_people_shows_a_line_a_completion(mlm_run: FinishedRun, command: Command) -> None:
    found = command("fill", mlm_run.model, "The [MASK] waits.", "--top-k", "2")
    assert found.code == 0
    assert found.out.splitlines()[0].startswith("The [MASK] waits.")
    assert sum("%" in line and " waits." in line for line in found.out.splitlines()) == 2


def test_evaluate_gives_the_same_metrics_each_time(mlm_run: FinishedRun, command: Command, text_file: Path) -> None:
    first, second = (command("evaluate", mlm_run.model, text_file, "--json") for _ in range(2))
    assert first.code == 0, first.err
    assert first.objects == second.objects
    (found,) = first.objects
    assert {"loss", "mlm_loss", "mlm_accuracy", "mlm_count", "perplexity"} <= found.keys()
    corpus = command("evaluate", mlm_run.model, mlm_run.folder / "corpus", "--json")
    assert corpus.code == 0, corpus.err


@pytest.mark.parametrize("kind", ["run", "model", "corpus", "tokenizer"])
def test_info_tells_what_a_folder_holds(kind: str, mlm_run: FinishedRun, command: Command) -> None:
    found = command("info", mlm_run.folder / ("" if kind == "run" else kind), "--json")
    assert found.code == 0, found.err
    assert found.objects[0]["kind"] == kind
    model = {"run": found.objects[0].get("model"), "model": found.objects[0]}.get(kind)
    if model:
        assert model["family"] == "bert"
        assert model["layers"] == 2
        assert model["hidden_size"] == 32
        assert model["heads"] == ["masked language model"]
        assert model["labels"] == []


@pytest.mark.parametrize("part", ["", "model", "corpus", "tokenizer", "checkpoints/step-00000012"])
def test_verify_finds_what_a_run_made_whole(part: str, mlm_run: FinishedRun, command: Command) -> None:
    found = command("verify", mlm_run.folder / part, "--json")
    assert found.code == 0, found.err
    assert found.objects[0]["whole"] is True
    assert found.objects[0]["faults"] == []


def test_verify_names_a_flipped_bit(mlm_run: FinishedRun, command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(mlm_run.model, folder)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-7] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    found = command("verify", folder, "--json")
    assert found.code == 2
    assert found.objects[0]["whole"] is False
    assert "model.safetensors" in found.objects[0]["faults"][0]


@pytest.mark.parametrize("objective", ["mlm_run", "pairs_run"])
def test_transformers_opens_the_model_with_equal_ids_and_logits(objective: str, request: pytest.FixtureRequest) -> None:
    run: FinishedRun = request.getfixturevalue(objective)
    ours, our_tokenizer = read_model(run.model).model.eval(), Tokenizer.from_folder(run.model)
    theirs, their_tokenizer = (
        AutoModelForMaskedLM.from_pretrained(run.model).eval(),
        AutoTokenizer.from_pretrained(run.model),
    )
    assert ours.masked_language_model is not None
    for text in TEXTS:
        encoding = our_tokenizer.encode(text, text[:9])
        batch = their_tokenizer(text, text[:9], return_tensors="pt")
        assert batch["input_ids"][0].tolist() == encoding.token_ids.tolist()
        assert batch["token_type_ids"][0].tolist() == encoding.segment_ids.tolist()
        packed = one_sequence(encoding.token_ids.tolist(), encoding.segment_ids.tolist())
        with torch.inference_mode():
            logits = ours.masked_language_model(ours.head_input(packed))
            expected = theirs(**batch).logits[0]
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_transformers_finds_the_next_sentence_head(pairs_run: FinishedRun) -> None:
    ours, tokenizer = read_model(pairs_run.model).model.eval(), AutoTokenizer.from_pretrained(pairs_run.model)
    theirs = AutoModelForPreTraining.from_pretrained(pairs_run.model).eval()
    batch = tokenizer("The cat waits.", "It rains.", return_tensors="pt")
    packed = one_sequence(batch["input_ids"][0].tolist(), batch["token_type_ids"][0].tolist())
    assert ours.next_sentence is not None
    with torch.inference_mode():
        logits = ours.next_sentence(ours.pooled(ours.head_input(packed), packed))
        expected = theirs(**batch).seq_relationship_logits
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_a_corpus_prepared_beforehand_trains_like_its_text(
    mlm_run: FinishedRun, command: Command, text_file: Path, tiny_model: Path, tmp_path: Path
) -> None:
    tokenizer, corpus = tmp_path / "tokenizer", tmp_path / "corpus"
    trained = command("tokenizer", "train", text_file, "--out", tokenizer, "--vocab-size", "384", "--json")
    assert trained.code == 0, trained.err
    assert trained.objects[0]["vocab_size"] == 384
    prepared = command("prepare", text_file, "--tokenizer", tokenizer, "--out", corpus, "--workers", "1", "--json")
    assert prepared.code == 0, prepared.err
    assert prepared.objects[0]["train"]["tokens"] > 1000
    run = command("pretrain", corpus, "--out", tmp_path / "run", "--model", tiny_model, *mlm_run.arguments[8:])
    assert run.code == 0, run.err
    assert run.objects[0]["loss"] == pytest.approx(mlm_run.outcome.objects[0]["loss"], abs=1e-6)


def test_a_tokenizer_report_names_both_scripts(mlm_run: FinishedRun, command: Command, text_file: Path) -> None:
    found = command("tokenizer", "report", mlm_run.folder / "tokenizer", text_file, "--json")
    assert found.code == 0, found.err
    assert found.objects[0]["by_script"].keys() >= {"Latin", "Arabic"}
    table = command("tokenizer", "report", mlm_run.folder / "tokenizer", text_file)
    assert "Arabic" in table.out
