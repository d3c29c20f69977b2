"""What a language model is evaluated on."""

from pathlib import Path

import pytest

from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.files import new_folder
from bertsmith.recipes.evaluate import evaluate_run
from bertsmith.recipes.pretraining import evaluate
from made_corpora import WORDS, made_tokenizer
from made_language_models import made_gpt


def test_all_of_a_text_is_seen_however_short_its_documents_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each document is a token between two special ones.
    words = [WORDS[number % len(WORDS)] for number in range(60)]
    (tmp_path / "words.txt").write_text("\n\n".join(words), encoding="utf-8")
    with new_folder(tmp_path / "model", seal={"kind": "model"}) as temporary:
        write_model(temporary, made_gpt(), made_tokenizer())

    def found() -> dict[str, float]:
        return evaluate_run(tmp_path / "model", tmp_path / "words.txt", device="cpu", precision="fp32").metrics

    at_once = found()
    monkeypatch.setattr(evaluate, "_BATCH_TOKENS", 24)
    in_small_batches = found()
    assert in_small_batches["causal_count"] == at_once["causal_count"] >= 60
    assert in_small_batches["loss"] == pytest.approx(at_once["loss"], rel=1e-4)
