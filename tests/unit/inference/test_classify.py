"""Classifying texts and pairs."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.classify import ClassifyPredictor, ClassPrediction
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import PackedTokens
from bertsmith.objectives.classification import class_logits
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_model, made_texts, made_tokenizer
from made_tasks import made_classifier

CPU = Device("cpu", "fp32")
LABELS = ("sunny", "rainy", "bad")
POSITIONS = 64
PREDICTOR = ClassifyPredictor(TorchEngine(made_classifier(LABELS, positions=POSITIONS), CPU), made_tokenizer())
LONG = " ".join(["The old river carried every small boat"] * 20)


@torch.no_grad()
def _by_the_book(text: str, pair: str | None = None) -> dict[str, float]:
    encoding = made_tokenizer().encode(text, pair)
    packed = PackedTokens.build(encoding.token_ids, encoding.segment_ids, np.array([0, len(encoding)]))
    rows = torch.softmax(class_logits(made_classifier(LABELS, positions=POSITIONS).eval(), packed), -1)[0]
    return dict(zip(LABELS, rows.tolist(), strict=True))


def test_scores_are_the_models_probabilities_the_best_first() -> None:
    for item in ("The old boat.", ("The old boat.", "A quiet harbour.")):
        text, pair = (item, None) if isinstance(item, str) else item
        (found,) = PREDICTOR([item])
        expected = _by_the_book(text, pair)
        assert found.scores == pytest.approx(expected, abs=1e-6)
        assert list(found.scores.values()) == sorted(found.scores.values(), reverse=True)
        assert (found.label, found.score) == next(iter(found.scores.items()))
        assert sum(found.scores.values()) == pytest.approx(1.0, abs=1e-5)
        assert (found.text, found.pair, found.cut) == (text, pair, False)


def test_a_prediction_depends_neither_on_neighbours_nor_on_order() -> None:
    texts = [*made_texts(30, sentences=(1, 6)), LONG]
    alone = [PREDICTOR([text])[0] for text in texts]
    together = PREDICTOR(texts)
    backwards = PREDICTOR(texts[::-1])[::-1]
    for one, beside, turned in zip(alone, together, backwards, strict=True):
        assert beside.scores == pytest.approx(one.scores, abs=1e-5)
        assert turned.scores == pytest.approx(one.scores, abs=1e-5)
        assert one.text == beside.text == turned.text


def test_results_come_back_in_the_order_given() -> None:
    texts = [LONG, "Rain.", "The old boat.", LONG, "Snow."]
    assert [found.text for found in PREDICTOR(texts)] == texts


def test_a_long_text_is_cut_and_said() -> None:
    (found,) = PREDICTOR([LONG])
    assert found.cut
    words = LONG.split()
    beginning = PREDICTOR([" ".join(words[:60])])[0]
    assert found.scores == pytest.approx(beginning.scores, abs=1e-6)


def test_length_and_kept_part_are_those_the_tokenizer_was_saved_with(tmp_path: Path) -> None:
    made_tokenizer().seeing(16, "tail").save(tmp_path)
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.long_texts == "tail"
    predictor = ClassifyPredictor(TorchEngine(made_classifier(LABELS), CPU), tokenizer)
    assert predictor.max_length == 16
    ending = " ".join(LONG.split()[-30:])
    found, expected = predictor([f"Something else. {LONG}", ending])
    assert found.cut
    assert found.scores == pytest.approx(expected.scores, abs=1e-6)


@pytest.mark.parametrize("texts", [[""], ["  \n"], ["The boat.", ""], [("The boat.", " ")], [("", "The boat.")]])
def test_a_blank_text_is_refused_by_its_number(texts: list[str | tuple[str, str]]) -> None:
    with pytest.raises(InputError, match=rf"must not be blank.*text {len(texts)}:"):
        PREDICTOR(texts)


def test_a_single_string_is_one_text() -> None:
    assert PREDICTOR("The old boat.") == PREDICTOR(["The old boat."])


def test_a_very_long_text_and_odd_characters_are_classified() -> None:
    for text in ("river " * 100_000, "東京 😊 \u200b", "[SEP] [CLS] [MASK]", "\ud800 half a pair"):
        (found,) = PREDICTOR([text])
        assert all(np.isfinite(score) for score in found.scores.values())


def test_a_model_trained_with_windows_reads_all_of_a_long_text() -> None:
    model = made_classifier(LABELS, positions=POSITIONS)
    model.config = model.config.model_copy(update={"heads": model.config.heads.model_copy(update={"windows": True})})
    predictor = ClassifyPredictor(TorchEngine(model, CPU), made_tokenizer())
    (request,) = predictor.prepare([LONG])
    assert len(request.windows) > 1
    (found,) = predictor([LONG])
    assert not found.cut
    logits = np.mean(predictor.run(request.windows), axis=0)
    expected = np.exp(logits) / np.exp(logits).sum()
    assert found.scores == pytest.approx(dict(zip(LABELS, expected.tolist(), strict=True)), abs=1e-6)
    changed = predictor([f"{LONG} A sudden storm of snow and rain."])[0]
    assert changed.scores != pytest.approx(found.scores, abs=1e-6)
    assert PREDICTOR([f"{LONG} A sudden storm of snow and rain."])[0].scores == pytest.approx(
        PREDICTOR([LONG])[0].scores, abs=1e-6
    )


def test_an_encoder_without_a_trained_classifier_is_refused() -> None:
    with pytest.raises(InputError, match=r"trained for it.*without a trained head.*bertsmith finetune classify"):
        ClassifyPredictor(TorchEngine(made_model(made_tokenizer().vocab_size), CPU), made_tokenizer())


def test_classifying_leaves_a_model_in_training_as_it_was() -> None:
    model = made_classifier(LABELS, dropout=0.5).train()
    predictor = ClassifyPredictor(TorchEngine(model, CPU), made_tokenizer())
    first, second = (predictor(["The old boat."]) for _ in range(2))
    assert first == second
    assert isinstance(first[0], ClassPrediction)
    assert model.training
