"""Choosing what fits a context."""

from pathlib import Path
from typing import Any

import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.examples.choice_tables import ChoiceItem
from bertsmith.foundation.errors import InputError
from bertsmith.inference.choose import ChoosePredictor
from bertsmith.inference.predictor import Prediction
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.objectives.choice import choice_scores
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import made_texts, made_tokenizer
from made_heads import made_head, packed_alone

CPU = Device("cpu", "fp32")
PREDICTOR = ChoosePredictor(TorchEngine(made_head("choose"), CPU), made_tokenizer())
LONG = " ".join(["The old river carried every small boat"] * 20)
CHOICES = ["It sank.", "A quiet harbour.", "Nobody sang."]


@torch.no_grad()
def _by_the_book(text: str, choices: list[str]) -> list[float]:
    model = made_head("choose").eval()
    scores = torch.stack([choice_scores(model, packed_alone(text, choice))[0, 0] for choice in choices])
    return scores.softmax(0).tolist()


def test_scores_are_probabilities_among_the_choices_in_their_order() -> None:
    (found,) = PREDICTOR([("The old boat.", CHOICES)])
    assert found.scores == pytest.approx(_by_the_book("The old boat.", CHOICES), abs=1e-6)
    assert sum(found.scores) == pytest.approx(1.0)
    assert found.score == max(found.scores) == found.scores[found.index]
    assert found.choice == CHOICES[found.index]
    assert not found.cut


def test_a_start_stands_before_each_choice() -> None:
    item = ChoiceItem("The old boat.", tuple(CHOICES), "Then")
    (found,) = PREDICTOR([item])
    assert found.scores == pytest.approx(_by_the_book("The old boat.", [f"Then {one}" for one in CHOICES]), abs=1e-6)
    assert (found.start, found.choices) == ("Then", tuple(CHOICES))
    assert list(found.values) == ["text", "start", "choices", "choice", "index", "score", "scores", "cut"]


def test_the_values_are_those_of_the_interface() -> None:
    (found,) = PREDICTOR([("Rain.", ("It fell.", "It rose."))])
    assert isinstance(found, Prediction)
    assert found.values == {
        "text": "Rain.",
        "choices": ["It fell.", "It rose."],
        "choice": found.choice,
        "index": found.index,
        "score": found.score,
        "scores": list(found.scores),
        "cut": False,
    }


def test_a_choice_depends_neither_on_other_items_nor_on_order() -> None:
    texts = made_texts(24, sentences=(1, 5))
    items = [(texts[n], texts[6 + n : 8 + 2 * n]) for n in range(6)] + [(LONG, CHOICES)]
    alone = [PREDICTOR([item])[0] for item in items]
    for one, beside, turned in zip(alone, PREDICTOR(items), PREDICTOR(items[::-1])[::-1], strict=True):
        assert one.scores == pytest.approx(beside.scores, abs=1e-5)
        assert one.scores == pytest.approx(turned.scores, abs=1e-5)
        assert one.text == beside.text == turned.text


def test_equal_choices_are_as_likely_and_the_first_one_is_taken() -> None:
    (found,) = PREDICTOR([("Rain.", ["It fell.", "It fell."])])
    assert found.scores == pytest.approx((0.5, 0.5), abs=1e-6)
    assert found.choice == "It fell."


def test_a_long_context_is_cut_at_the_side_that_the_tokenizer_was_saved_with(tmp_path: Path) -> None:
    (found,) = PREDICTOR([(LONG, CHOICES)])
    assert found.cut
    made_tokenizer().seeing(24, "tail").save(tmp_path)
    predictor = ChoosePredictor(TorchEngine(made_head("choose"), CPU), Tokenizer.from_folder(tmp_path))
    found, expected = predictor([(f"Something else. {LONG}", CHOICES), (" ".join(LONG.split()[-30:]), CHOICES)])
    assert found.cut
    assert found.scores == pytest.approx(expected.scores, abs=1e-6)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (("Rain.", ["It fell."]), "two choices at least.*item 2 with 1"),
        (("Rain.", []), "two choices at least.*item 2 with 0"),
        ("Rain.", "must be a text with its choices.*item 2"),
        (("Rain.", "It fell."), "must be a text with its choices.*item 2"),
        (("Rain.", ["It fell.", " "]), "must not be blank.*item 2: ' '"),
        ((" ", ["It fell.", "It rose."]), "must not be blank.*item 2: ' '"),
        (("Rain.", ["It fell.", 3]), "must be text.*item 2: 3"),
    ],
)
def test_an_item_that_cannot_be_used_is_refused_by_its_number(item: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        PREDICTOR.prepare([("Rain.", ["It fell.", "It rose."]), item])


def test_a_model_for_another_task_is_refused() -> None:
    with pytest.raises(InputError, match=r"a model trained to regress.*bertsmith regress"):
        ChoosePredictor(TorchEngine(made_head("regress"), CPU), made_tokenizer())
