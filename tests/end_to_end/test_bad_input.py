"""What cannot be used is refused by its rule, what was received and what to do, and nothing is left behind."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import TINY_MODEL, FinishedRun, Outcome, refused, small_text
from tokenizers import Tokenizer as LibraryTokenizer

Command = Callable[..., Outcome]
Listing = Callable[[], dict[str, bytes | None]]
SMALL = ("--max-length", "32", "--batch-tokens", "512", "--steps", "2", "--set", "corpus.workers=1")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with a good text and a tiny model in it."""
    (tmp_path / "good.txt").write_text(small_text(), encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps(TINY_MODEL), encoding="utf-8")
    return tmp_path


SOURCES: dict[str, tuple[bytes | None, str]] = {
    "empty.txt": (b"", "no text in"),
    "blank.txt": (b" \n\t\n  \n", "no text in"),
    "control.txt": ("\u0000\u0001\u200b\u00ad \u0007\n".encode(), "control.txt"),
    "binary.txt": (bytes(range(256)) * 40, "binary.txt"),
    "invisible.txt": ("\u200b\u00ad \u2060\n".encode(), "invisible.txt"),
    "missing.txt": (None, "missing.txt"),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("verb", ["pretrain", "tokenizer", "prepare"])
def test_a_file_without_usable_text_is_refused(
    verb: str, name: str, work: Path, command: Command, listing: Listing, mlm_run: FinishedRun
) -> None:
    content, told = SOURCES[name]
    if content is not None:
        (work / name).write_bytes(content)
    before = listing()
    arguments = {
        "pretrain": ("pretrain", work / name, "--out", work / "out", "--model", work / "config.json", *SMALL),
        "tokenizer": ("tokenizer", "train", work / name, "--out", work / "out"),
        "prepare": ("prepare", work / name, "--tokenizer", mlm_run.folder / "tokenizer", "--out", work / "out"),
    }
    refused(command(*arguments[verb]), told)
    assert listing() == before


@pytest.mark.parametrize("verb", ["pretrain", "tokenizer", "prepare"])
def test_an_empty_folder_is_refused(
    verb: str, work: Path, command: Command, listing: Listing, mlm_run: FinishedRun
) -> None:
    (work / "nothing").mkdir()
    before = listing()
    arguments = {
        "pretrain": ("pretrain", work / "nothing", "--out", work / "out"),
        "tokenizer": ("tokenizer", "train", work / "nothing", "--out", work / "out"),
        "prepare": ("prepare", work / "nothing", "--tokenizer", mlm_run.folder / "tokenizer", "--out", work / "out"),
    }
    refused(command(*arguments[verb]), "nothing")
    assert listing() == before


OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "an unknown preset": (("--model", "bert-tony"), ("bert-tony", "Did you mean bert-toy?")),
    "a model that is not there": (("--model", "models/lost"), ("models/lost",)),
    "a length above the positions": (("--max-length", "512"), ("--max-length", "512", "48")),
    "a length that holds nothing": (("--max-length", "2"), ("max_length",)),
    "steps beside epochs": (("--epochs", "1"), ("epochs and steps",)),
    "steps below one": (("--steps", "0"), ("steps",)),
    "no assignment": (("--set", "training.seed"), ("--set takes key=value", "training.seed")),
    "an unknown key": (("--set", "training.bach_tokens=5"), ("bach_tokens", "Did you mean batch_tokens?")),
    "a key below a value": (("--set", "training.seed.more=5"), ("training.seed",)),
    "a value of another type": (("--set", "training.seed=maybe"), ("training.seed", "maybe")),
    "a percentage": (("--set", "masking.mask_rate=15"), ("mask_rate", "0.15")),
    "an unknown objective": (("--objective", "nsp"), ("objective", "nsp")),
    "an unknown precision": (("--precision", "fp8"), ("precision", "fp8")),
    "an unknown device": (("--device", "cuba"), ("--device", "cuba")),
    "a batch below two sequences": (("--batch-tokens", "40"), ("--batch-tokens", "40")),
    "a vocabulary larger than the text": (("--set", "tokenizer.vocab_size=30000"), ("vocab_size", "30000")),
    "a vocabulary below the alphabet": (("--set", "tokenizer.vocab_size=30"), ("vocab_size", "30")),
    "a tokenizer that is not there": (("--tokenizer", "lost"), ("lost",)),
    "a layout that is not there": (("--set", "text.layout=page"), ("layout", "page")),
    "minutes that are over": (("--minutes", "0.0001"), ("minutes",)),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_of_pretrain_is_refused(case: str, work: Path, command: Command, listing: Listing) -> None:
    given, told = OPTIONS[case]
    before = listing()
    settings = [part for part in SMALL if not (case.startswith("minutes") and part in ("--steps", "2"))]
    arguments = ("pretrain", work / "good.txt", "--out", work / "out", "--model", work / "config.json", *settings)
    refused(command(*arguments, *given), *told)
    assert listing() == before


def test_an_unknown_option_in_toml_is_told_its_neighbour(work: Path, command: Command, listing: Listing) -> None:
    settings = work / "settings.toml"
    settings.write_text("[training.optimizer]\nlearning_rat = 0.001\n", encoding="utf-8")
    before = listing()
    outcome = command("pretrain", work / "good.txt", "--out", work / "out", "--config", settings)
    refused(outcome, "settings.toml", "learning_rat", "Did you mean learning_rate?")
    assert listing() == before


@pytest.mark.parametrize("content", [None, "steps = = 3\n"])
def test_a_settings_file_that_cannot_be_read_is_refused(
    content: str | None, work: Path, command: Command, listing: Listing
) -> None:
    settings = work / "settings.toml"
    if content is not None:
        settings.write_text(content, encoding="utf-8")
    before = listing()
    refused(command("pretrain", work / "good.txt", "--out", work / "out", "--config", settings), "settings.toml")
    assert listing() == before


def test_pretrain_without_a_source_is_refused(work: Path, command: Command, listing: Listing) -> None:
    before = listing()
    refused(command("pretrain", "--out", work / "out"), "no source")
    assert listing() == before


def test_sentence_pairs_from_one_document_are_refused(work: Path, command: Command, listing: Listing) -> None:
    one = work / "one.txt"
    one.write_text(small_text().replace("\n\n", "\n"), encoding="utf-8")
    before = listing()
    arguments = ("pretrain", one, "--out", work / "out", "--model", work / "config.json", "--objective", "mlm+nsp")
    refused(command(*arguments, *SMALL), "two documents", "--objective mlm")
    assert listing() == before


def _without_mask(source: Path, target: Path) -> None:
    """A tokenizer folder that is like `source`, but has no mask token."""
    target.mkdir(exist_ok=True)
    library = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = library["model"]["vocab"]
    number = vocabulary.pop("[MASK]")
    vocabulary["maskless"] = number
    library["added_tokens"] = [token for token in library["added_tokens"] if token["content"] != "[MASK]"]
    LibraryTokenizer.from_str(json.dumps(library)).save(str(target / "tokenizer.json"))
    settings = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings.pop("mask_token")
    settings.pop("added_tokens_decoder", None)
    (target / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (target / "special_tokens_map.json").unlink(missing_ok=True)


def test_a_tokenizer_without_a_mask_token_is_refused(
    work: Path, command: Command, listing: Listing, mlm_run: FinishedRun
) -> None:
    _without_mask(mlm_run.folder / "tokenizer", work / "maskless")
    shutil.copytree(mlm_run.model, work / "model")
    _without_mask(mlm_run.model, work / "model")
    before = listing()
    arguments = ("pretrain", work / "good.txt", "--out", work / "out", "--model", work / "config.json")
    refused(command(*arguments, "--tokenizer", work / "maskless", *SMALL), "mask token")
    refused(command("fill", work / "model", "A [MASK]."), "mask token")
    refused(command("evaluate", work / "model", work / "good.txt"), "mask token")
    assert listing() == before


def test_a_tokenizer_larger_than_the_embeddings_is_refused(
    work: Path, command: Command, listing: Listing, mlm_run: FinishedRun
) -> None:
    small = work / "small.json"
    small.write_text(json.dumps(TINY_MODEL | {"vocab_size": 100}), encoding="utf-8")
    trained = command("tokenizer", "train", work / "good.txt", "--out", work / "larger", "--vocab-size", "400")
    assert trained.code == 0, trained.err
    shutil.copytree(mlm_run.model, work / "model")
    shutil.copytree(work / "larger", work / "model", dirs_exist_ok=True)
    before = listing()
    refused(command("pretrain", work / "good.txt", "--out", work / "out", "--model", small, *SMALL), "100 embeddings")
    arguments = ("pretrain", work / "good.txt", "--out", work / "out", "--tokenizer", work / "larger")
    refused(command(*arguments, "--model", mlm_run.model, *SMALL), "400 entries, 384 embeddings")
    refused(command("fill", work / "model", "A [MASK]."), "400 entries, 384 embeddings")
    assert listing() == before


def test_a_folder_that_holds_another_run_is_refused(
    work: Path, command: Command, listing: Listing, mlm_run: FinishedRun
) -> None:
    shutil.copytree(mlm_run.folder, work / "run")
    before = listing()
    arguments = [str(work / "run") if part == str(mlm_run.folder) else part for part in mlm_run.arguments]
    refused(command(*arguments, "--objective", "mlm+nsp"), "objective was mlm and is now mlm+nsp", "--restart")
    assert listing() == before


@pytest.mark.parametrize("mistake", [("--max-length", "512"), ("--device", "cuba")])
def test_restart_with_a_bad_option_keeps_the_earlier_run(
    mistake: tuple[str, str], work: Path, command: Command, listing: Listing, mlm_run: FinishedRun
) -> None:
    shutil.copytree(mlm_run.folder, work / "run")
    before = listing()
    arguments = [str(work / "run") if part == str(mlm_run.folder) else part for part in mlm_run.arguments]
    refused(command(*arguments, "--restart", *mistake), mistake[0])
    assert listing() == before


def test_a_refusal_leaves_an_empty_folder_empty(work: Path, command: Command, listing: Listing) -> None:
    (work / "out").mkdir()
    before = listing()
    arguments = ("pretrain", work / "good.txt", "--out", work / "out", "--model", work / "config.json", *SMALL)
    refused(command(*arguments, "--set", "tokenizer.vocab_size=30000"))
    assert listing() == before


def test_a_folder_that_holds_something_else_is_refused(work: Path, command: Command, listing: Listing) -> None:
    (work / "out").mkdir()
    (work / "out" / "thesis.txt").write_text("mine", encoding="utf-8")
    before = listing()
    for restart in ((), ("--restart",)):
        refused(command("pretrain", work / "good.txt", "--out", work / "out", *restart, *SMALL), "something else")
    refused(command("pretrain", work / "good.txt", "--out", work / "good.txt", *SMALL), "good.txt")
    refused(command("tokenizer", "train", work / "good.txt", "--out", work / "out"), "--out")
    assert listing() == before


def test_a_run_that_was_refused_can_be_mended_without_restart(work: Path, command: Command) -> None:
    arguments = ("pretrain", work / "good.txt", "--out", work / "out", "--model", work / "config.json", *SMALL)
    refused(command(*arguments, "--set", "tokenizer.vocab_size=30000"))
    assert command(*arguments).code == 0


def test_using_a_model_wrongly_is_refused(work: Path, command: Command, listing: Listing, mlm_run: FinishedRun) -> None:
    (work / "bare").mkdir()
    before = listing()
    refused(command("fill", mlm_run.model, "No gap."), "[MASK]")
    refused(command("fill", mlm_run.model, "A [MASK].", "--top-k", "0"), "--top-k")
    refused(command("fill", mlm_run.model, "A [MASK].", "--targets", "🦓"), "🦓")
    refused(command("fill", work / "lost", "A [MASK]."), "lost")
    refused(command("fill", mlm_run.folder.parent, "A [MASK]."), "config.json")
    refused(command("evaluate", mlm_run.model, work / "lost.txt"), "lost.txt")
    refused(command("evaluate", mlm_run.model, work / "good.txt", "--max-length", "512"), "--max-length", "48")
    refused(command("evaluate", mlm_run.model, work / "good.txt", "--encoding", "latin-1"), "UTF-8", "encoding for")
    refused(command("info", work / "lost"), "lost")
    refused(command("info", work / "bare"), "which is none")
    refused(command("verify", work / "lost"), "lost")
    refused(command("verify", work / "bare"), "manifest.json")
    refused(command("tokenizer", "report", work / "lost", work / "good.txt"), "lost")
    assert listing() == before
