"""Values of texts and pairs."""

from typing import Any

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference.predictor import Prediction
from bertsmith.inference.regress import RegressPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.objectives.regression import sequence_values
from made_corpora import made_model, made_texts, made_tokenizer
from made_heads import made_head, packed_alone

CPU = Device("cpu", "fp32")
PREDICTOR = RegressPredictor(TorchEngine(made_head("regress"), CPU), made_tokenizer())
LONG = " ".join(["The old river carried every small boat"] * 20)


@torch.no_grad()
@pytest.mark.parametrize("scale", [None, (40.0, 3.0)])
def test_a_value_is_what_the_head_gives(scale: tuple[float, float] | None) -> None:
    predictor = RegressPredictor(TorchEngine(made_head("regress", value_scale=scale), CPU), made_tokenizer())
    for item in ("The old boat.", ("The old boat.", "A quiet harbour.")):
        text, pair = (item, None) if isinstance(item, str) else item
        (found,) = predictor([item])
        mean, spread = scale or (0.0, 1.0)
        expected = sequence_values(made_head("regress").eval(), packed_alone(text, pair)).item() * spread + mean
        assert found.value == pytest.approx(expected, abs=1e-5)
        assert (found.text, found.pair, found.cut) == (text, pair, False)


def test_the_values_are_those_of_the_interface() -> None:
    alone, paired = PREDICTOR(["Rain.", ("Rain.", "Snow.")])
    assert isinstance(alone, Prediction)
    assert alone.values == {"text": "Rain.", "value": alone.value, "cut": False}
    assert paired.values == {"text": "Rain.", "pair": "Snow.", "value": paired.value, "cut": False}


def test_a_value_depends_neither_on_neighbours_nor_on_order() -> None:
    texts = [*made_texts(20, sentences=(1, 6)), LONG]
    alone = [PREDICTOR([text])[0].value for text in texts]
    assert [found.value for found in PREDICTOR(texts)] == pytest.approx(alone, abs=1e-5)
    assert [found.value for found in PREDICTOR(texts[::-1])][::-1] == pytest.approx(alone, abs=1e-5)
    assert [found.text for found in PREDICTOR(texts)] == texts


def test_the_windows_of_a_long_text_are_averaged() -> None:
    predictor = RegressPredictor(TorchEngine(made_head("regress", windows=True), CPU), made_tokenizer())
    (request,) = predictor.prepare([LONG])
    assert len(request.windows) > 1
    (found,) = predictor([LONG])
    assert found.value == pytest.approx(float(np.mean(predictor.run(request.windows))), abs=1e-6)
    assert not found.cut
    assert PREDICTOR([LONG])[0].cut


@pytest.mark.parametrize("items", [[""], ["The boat.", " "], [("The boat.", "")]])
def test_a_blank_text_is_refused(items: list[Any]) -> None:
    with pytest.raises(InputError, match=rf"must not be blank.*text {len(items)}"):
        PREDICTOR(items)


def test_a_model_for_another_task_is_refused() -> None:
    with pytest.raises(InputError, match="bertsmith finetune regress"):
        RegressPredictor(TorchEngine(made_model(made_tokenizer().vocab_size), CPU), made_tokenizer())
    with pytest.raises(InputError, match=r"a model trained to choose.*bertsmith choose"):
        RegressPredictor(TorchEngine(made_head("choose"), CPU), made_tokenizer())
