"""Any number of labels for texts and pairs."""

import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.multilabel import MultilabelPredictor
from bertsmith.inference.predictor import Prediction
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.objectives.classification import class_logits
from made_corpora import made_texts, made_tokenizer
from made_heads import made_head, packed_alone

CPU = Device("cpu", "fp32")
LABELS = ("rain", "snow", "wind", "sun")
LONG = " ".join(["The old river carried every small boat"] * 20)


def _predictor(**heads: object) -> MultilabelPredictor:
    return MultilabelPredictor(TorchEngine(made_head("multilabel", labels=LABELS, **heads), CPU), made_tokenizer())


PREDICTOR = _predictor()


@torch.no_grad()
def _by_the_book(text: str, pair: str | None = None) -> dict[str, float]:
    logits = class_logits(made_head("multilabel", labels=LABELS).eval(), packed_alone(text, pair))
    return dict(zip(LABELS, logits[0].sigmoid().tolist(), strict=True))


def test_scores_are_each_labels_own_probability_the_likeliest_first() -> None:
    for item in ("The old boat.", ("The old boat.", "A quiet harbour.")):
        text, pair = (item, None) if isinstance(item, str) else item
        (found,) = PREDICTOR([item])
        expected = _by_the_book(text, pair)
        assert found.scores == pytest.approx(expected, abs=1e-6)
        assert list(found.scores.values()) == sorted(found.scores.values(), reverse=True)
        assert found.labels == tuple(name for name, score in found.scores.items() if score >= 0.5)
        assert (found.text, found.pair, found.cut) == (text, pair, False)


def test_a_label_is_given_from_its_own_threshold_on() -> None:
    scores = _by_the_book("The old boat.")
    assert PREDICTOR.thresholds == (0.5,) * 4
    thresholds = tuple(scores[name] + (1e-4 if name == "snow" else -1e-4) for name in LABELS)
    (found,) = _predictor(thresholds=thresholds)(["The old boat."])
    assert set(found.labels) == {"rain", "wind", "sun"}
    (none,) = _predictor(thresholds=(1.0,) * 4)(["The old boat."])
    assert none.labels == ()
    (all_of_them,) = _predictor(thresholds=(0.0,) * 4)(["The old boat."])
    assert list(all_of_them.labels) == list(all_of_them.scores)


def test_the_values_are_those_of_the_interface() -> None:
    alone, paired = PREDICTOR(["Rain.", ("Rain.", "Snow.")])
    assert isinstance(alone, Prediction)
    assert alone.values == {"text": "Rain.", "labels": list(alone.labels), "scores": alone.scores, "cut": False}
    assert list(paired.values)[:2] == ["text", "pair"]


def test_a_prediction_depends_neither_on_neighbours_nor_on_order() -> None:
    texts = [*made_texts(20, sentences=(1, 6)), LONG]
    alone = [PREDICTOR([text])[0] for text in texts]
    for one, beside, turned in zip(alone, PREDICTOR(texts), PREDICTOR(texts[::-1])[::-1], strict=True):
        assert one.scores == pytest.approx(beside.scores, abs=1e-5)
        assert one.scores == pytest.approx(turned.scores, abs=1e-5)
        assert one.text == beside.text == turned.text


def test_all_windows_of_a_long_text_count() -> None:
    predictor = _predictor(windows=True)
    whole, changed = predictor([LONG, f"{LONG} A sudden storm of snow and rain."])
    assert not whole.cut
    assert whole.scores != pytest.approx(changed.scores, abs=1e-6)


def test_a_model_for_another_task_is_refused() -> None:
    with pytest.raises(InputError, match=r"a model trained to classify.*bertsmith classify"):
        MultilabelPredictor(TorchEngine(made_head("classify", labels=LABELS), CPU), made_tokenizer())
