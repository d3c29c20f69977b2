"""Each family trains from raw text by the settings it was published with, made small, and opens in transformers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import Outcome, one_sequence, refused
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining, AutoTokenizer

from bertsmith.folders.model_folder import read_model
from bertsmith.recipes.settings import read_settings
from bertsmith.tokenization.tokenizer import Tokenizer

Command = Callable[..., Outcome]
CLASSES = {
    "bert-base": "BertForPreTraining",
    "roberta-base": "RobertaForMaskedLM",
    "albert-base": "AlbertForPreTraining",
    "modern-base": "ModernBertForMaskedLM",
}
SMALL = (
    *("--max-length", "48", "--batch-tokens", "512", "--steps", "6", "--threads", "1", "--precision", "fp32"),
    *("--set", "model.num_hidden_layers=2", "--set", "model.hidden_size=32", "--set", "model.num_attention_heads=2"),
    *("--set", "model.intermediate_size=40", "--set", "corpus.workers=1", "--set", "training.log_every_steps=2"),
)
VOCABULARY = {"unigram": 140, "bpe": 400, "wordpiece": 300}
TEXTS = ("The cat sees the dog near the river.", "Café, naïve!", "ذهب القط إلى البيت.")


@pytest.mark.parametrize("name", CLASSES)
def test_a_family_trains_as_it_was_published_and_opens_elsewhere(
    name: str, command: Command, text_file: Path, tmp_path: Path
) -> None:
    algorithm = read_settings(Path(name))["tokenizer"]["algorithm"]
    size = ("--set", f"tokenizer.vocab_size={VOCABULARY[algorithm]}")
    run = command("pretrain", text_file, "--config", name, "--out", tmp_path / "run", *SMALL, *size, "--json")
    assert run.code == 0, run.err
    (found,) = run.objects
    assert found["steps"] == 6
    folder = tmp_path / "run" / "model"
    ours, our_tokenizer = read_model(folder).model, Tokenizer.from_folder(folder)
    opener = AutoModelForPreTraining if CLASSES[name].endswith("PreTraining") else AutoModelForMaskedLM
    theirs, loading = opener.from_pretrained(folder, output_loading_info=True)
    assert type(theirs).__name__ == CLASSES[name]
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    their_tokenizer = AutoTokenizer.from_pretrained(folder)
    assert ours.masked_language_model is not None
    for text in TEXTS:
        encoding = our_tokenizer.encode(text, text[:9])
        batch = their_tokenizer(text, text[:9], return_tensors="pt")
        assert batch["input_ids"][0].tolist() == encoding.token_ids.tolist()
        with torch.inference_mode():
            packed = one_sequence(encoding.token_ids.tolist(), encoding.segment_ids.tolist())
            logits = ours.masked_language_model(ours.head_input(packed))
            result = theirs(**batch)
        expected = result.get("prediction_logits", result.get("logits"))
        torch.testing.assert_close(logits, expected[0], atol=1e-4, rtol=0)


def test_the_family_decides_the_tokenizer_unless_one_is_named(
    command: Command, text_file: Path, tmp_path: Path
) -> None:
    small = ("--set", "model.num_hidden_layers=1", *SMALL[10:], "--steps", "2", "--max-length", "32")
    small = (*small, "--batch-tokens", "256", "--json")
    for model, wanted, chosen in (("roberta-base", "bpe", ()), ("roberta-base", "wordpiece", ("wordpiece",))):
        out = tmp_path / f"{model}-{wanted}"
        named = ("--set", f"tokenizer.algorithm={chosen[0]}") if chosen else ()
        run = command("pretrain", text_file, "--model", model, "--out", out, *small, *named)
        assert run.code == 0, run.err
        config = Tokenizer.from_folder(out / "model").config
        assert config is not None
        assert config.algorithm == wanted


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--model", "roberta-bas"), "Did you mean roberta-base?"),
        (("--model", "modern-small", "--set", "model.num_attention_heads=5"), "num_attention_heads must divide"),
        (("--model", "modern-small", "--objective", "causal"), "objective causal needs"),
        (("--model", "roberta-base", "--max-length", "513"), "has 512"),
    ],
)
def test_what_cannot_be_is_refused_before_work_begins(
    given: tuple[str, ...], told: str, command: Command, text_file: Path, tmp_path: Path
) -> None:
    outcome = command("pretrain", text_file, "--out", tmp_path / "run", *given)
    refused(outcome, told)
    assert not (tmp_path / "run").exists()
