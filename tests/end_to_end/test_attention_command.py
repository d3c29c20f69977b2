"""`bertsmith attention`: pictures and weights of a model in a folder."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import FinishedRun, Outcome, refused

import bertsmith
from bertsmith.folders.model_folder import write_model
from made_corpora import made_tokenizer
from made_language_models import made_elmo

Command = Callable[..., Outcome]
Listing = Callable[[], dict[str, bytes | None]]
TEXT = "The cat sees the dog near the river."


@pytest.mark.parametrize("name", ["one.png", "one.svg"])
@pytest.mark.parametrize("chosen", [(), ("--layer", "1"), ("--layer", "0", "--head", "1")])
def test_a_picture_is_written(
    name: str, chosen: tuple[str, ...], command: Command, mlm_run: FinishedRun, tmp_path: Path
) -> None:
    outcome = command("attention", mlm_run.folder, TEXT, "ذهب القط إلى البيت.", "--out", tmp_path / name, *chosen)
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    assert outcome.err == f"written: {tmp_path / name}\n"
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_json_has_tokens_and_weights(command: Command, mlm_run: FinishedRun, tmp_path: Path) -> None:
    (whole,) = command("attention", mlm_run.model, TEXT, "It rains.", "--json").objects
    assert (whole["text"], whole["pair"]) == (TEXT, "It rains.")
    assert whole["tokens"][0] == "[CLS]"
    assert len(whole["offsets"]) == len(whole["words"]) == len(whole["tokens"])
    weights = np.array(whole["weights"])
    assert weights.shape == (2, 2, len(whole["tokens"]), len(whole["tokens"]))
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    found = bertsmith.attention(mlm_run.model, TEXT, "It rains.")
    assert list(found.tokens) == whole["tokens"]
    np.testing.assert_allclose(found.weights, weights, atol=1e-6)

    picture = ("--out", tmp_path / "one.svg")
    outcome = command("attention", mlm_run.model, TEXT, *picture, "--json", "--layer", "1", "--head", "0")
    (one,) = outcome.objects
    assert (one["layers"], one["heads"], "pair" in one) == ([1], [0], False)
    assert (tmp_path / "one.svg").is_file()


def test_a_long_text_is_cut_and_that_is_said(command: Command, mlm_run: FinishedRun) -> None:
    outcome = command("attention", mlm_run.model, TEXT * 30, "--json", "--layer", "0", "--head", "0")
    assert "32 tokens of it are shown" in outcome.err
    assert len(outcome.objects[0]["tokens"]) == 32


def test_characters_without_a_glyph_are_named(command: Command, mlm_run: FinishedRun, tmp_path: Path) -> None:
    outcome = command("attention", mlm_run.model, "The cat \U00100abc", "--out", tmp_path / "one.png", "--layer", "0")
    assert outcome.code == 0
    assert "no font of this machine has \U00100abc" in outcome.err
    assert len(outcome.err.splitlines()) == 2


REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a page": (("--out", "{}/one.html"), (".png or .svg", "one.html")),
    "another picture": (("--out", "{}/one.pdf"), (".png or .svg", "one.pdf")),
    "no folder for it": (("--out", "{}/lost/one.png"), ("a folder that exists", "lost")),
    "neither picture nor json": ((), ("--out", "--json")),
    "a layer too many": (("--out", "{}/one.png", "--layer", "2"), ("--layer must lie in [0, 1]", "2")),
    "a layer below": (("--out", "{}/one.png", "--layer", "-1"), ("--layer must lie in [0, 1]", "-1")),
    "a head too many": (("--out", "{}/one.png", "--layer", "0", "--head", "7"), ("--head must lie in [0, 1]", "7")),
    "a head of no layer": (("--json", "--head", "0"), ("--head needs --layer",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_shown_is_refused(
    case: str, command: Command, mlm_run: FinishedRun, tmp_path: Path, listing: Listing
) -> None:
    arguments, told = REFUSED[case]
    before = listing()
    refused(command("attention", mlm_run.model, TEXT, *(part.format(tmp_path) for part in arguments)), *told)
    assert listing() == before


def test_folders_without_attention_are_refused(command: Command, tmp_path: Path, listing: Listing) -> None:
    (tmp_path / "elmo").mkdir()
    write_model(tmp_path / "elmo", made_elmo(), made_tokenizer())
    (tmp_path / "empty").mkdir()
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "run.toml").touch()
    before = listing()
    picture = ("--out", tmp_path / "one.png")
    refused(command("attention", tmp_path / "elmo", TEXT, *picture), "an ELMo")
    refused(command("attention", tmp_path / "empty", TEXT, *picture), "config.json")
    refused(command("attention", tmp_path / "lost", TEXT, *picture), "lost")
    refused(command("attention", tmp_path / "unfinished", TEXT, *picture), "not finished")
    assert listing() == before


def test_a_blank_text_is_refused(command: Command, mlm_run: FinishedRun, tmp_path: Path, listing: Listing) -> None:
    before = listing()
    refused(command("attention", mlm_run.model, " ", "--out", tmp_path / "one.png"), "must not be blank")
    refused(command("attention", mlm_run.model, TEXT, "", "--out", tmp_path / "one.png"), "must not be blank")
    assert listing() == before
