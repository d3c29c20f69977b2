"""The comparison's page."""

import copy
from typing import Any

from bertsmith.reports.comparison import comparison_page, scores_for_people

_BOTH = {"later_to_earlier": 0.2, "earlier_to_later": 0.3, "sees_later": True, "sees_earlier": True}
_FORWARD = {"later_to_earlier": 0.0, "earlier_to_later": 0.3, "sees_later": False, "sees_earlier": True}
_BACKWARD = {"later_to_earlier": 0.2, "earlier_to_later": 0.0, "sees_later": True, "sees_earlier": False}


def _model(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "objective": "mlm",
        "family": "bert",
        "layers": 4,
        "hidden_size": 128,
        "heads": 4,
        "parameters": 1_234_567,
        "steps": 100,
        "tokens": 51_200,
        "tokens_per_second": 900.0,
        "metrics": {"loss": 3.0, "mlm_loss": 3.0, "mlm_accuracy": 0.4},
        "prediction": {"perplexity": 20.0, "loss": 3.0, "scored_tokens": 1000},
        "direction": {"tokens": ["the", "cat"], "moved": [[0.5, 0.2], [0.3, 0.5]], **_BOTH},
        "context": {"longest": 128},
        "frozen": {"accuracy": 0.71, "layer_weights": [0.4, 0.6]},
        "finetuned": {"accuracy": 0.81},
        **more,
    }


VALUES: dict[str, Any] = {
    "sources": ["news|today.txt"],
    "corpus": {"train_tokens": 90_000, "validation_tokens": 5_000, "vocab_size": 4_000},
    "task": {
        "description": "the labels of topics.csv, column topic",
        "labels": ["a|b", "c"],
        "train_texts": 400,
        "test_texts": 200,
        "commonest_share": 0.515,
    },
    "models": {
        "bert": _model("BERT"),
        "gpt": _model(
            "GPT",
            objective="causal",
            direction={"tokens": ["the", "cat"], "moved": [[0.5, 0.2], [0.0, 0.5]], **_FORWARD},
            prediction={"perplexity": 15.0, "loss": 2.7, "scored_tokens": 1000},
            prompt={"accuracy": 0.55, "template": "{text} {label}"},
            writing={
                "prompt": "The cat",
                "continuation": "sat",
                "text": "The cat <b>sat</b>\n# on | it",
                "temperature": 0.8,
                "top_k": 40,
            },
        ),
        "elmo": _model(
            "ELMo",
            objective="bilm",
            family="elmo",
            layers=2,
            hidden_size=300,
            context={"longest": None, "tried": 512, "finite": True},
            direction={
                "tokens": ["the", "cat"],
                "moved": [[0.5, 0.2], [0.3, 0.5]],
                **_BOTH,
                "forward_half": _FORWARD,
                "backward_half": _BACKWARD,
            },
            tokens_per_second=1500.0,
        ),
    },
}


def _row(page: str, name: str, number: int = 0) -> list[str]:
    rows = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in rows[number].strip("|").split(" | ")]


def test_every_row_of_the_documents_has_a_measured_cell_for_each_model() -> None:
    page = comparison_page(VALUES)
    documents = {
        "Architecture": ("Encoder only", "Decoder only", "BiLSTM"),
        "Direction": ("Bidirectional", "Left-to-right", "Bidirectional"),
        "Pre-training": ("MLM + NSP", "Language modeling", "Language modeling"),
        "Fine-tuning": ("Add task head", "Prompting", "Feature extraction"),
        "Context window": ("512 tokens", "Variable", "Variable"),
        "Best for": ("Understanding", "Generation", "Feature extraction"),
    }
    for name, said in documents.items():
        row = _row(page, name)
        assert len(row) == 7
        assert tuple(row[1::2]) == said
        assert all(row[2::2])


def test_measured_cells_say_what_was_found() -> None:
    page = comparison_page(VALUES)
    assert _row(page, "Architecture")[6] == "2 LSTM layers a direction, each 150 wide: 1,234,567 parameters"
    direction = _row(page, "Direction")
    assert direction[2] == "a change moves vectors before and behind it"
    assert direction[4] == "a change moves vectors behind it alone"
    assert direction[6].endswith("each half of a vector in its own direction alone")
    assert _row(page, "Pre-training")[4] == "objective causal: validation loss mlm 3.000; perplexity 15.0"
    assert _row(page, "Fine-tuning")[4] == "fine-tuned 81.0%, frozen features 71.0%, by prompt 55.0%"
    assert _row(page, "Context window")[2::2] == [
        "128 tokens, the positions it has here",
        "128 tokens, the positions it has here",
        "no limit: 512 tokens read",
    ]
    best = _row(page, "Best for")
    assert "guessing a token" in best[4]
    assert "guessing a token" not in best[2]
    assert "writing" in best[4]
    assert "speed of training" in best[6]
    assert _row(page, "by prompt") == ["by prompt", "–", "55.0%", "–"]
    assert _row(page, "ELMo, forward half") == ["ELMo, forward half", "no", "yes, 0.300"]


def test_an_elmo_whose_halves_leak_would_be_told() -> None:
    values = copy.deepcopy(VALUES)
    values["models"]["elmo"]["direction"]["forward_half"] = _BOTH
    assert "in both directions" in _row(comparison_page(values), "Direction")[6]


def test_equal_steps_and_equal_time_are_told_apart() -> None:
    assert "trained for 100 steps" in comparison_page(VALUES)
    values = copy.deepcopy(VALUES)
    values["models"]["elmo"]["steps"] = 140
    assert "for the same time" in comparison_page(values)


def test_sequences_are_called_the_same_only_where_they_are() -> None:
    same = "over the same sequences."
    assert same in comparison_page(VALUES)
    values = copy.deepcopy(VALUES)
    values["models"]["bert"]["objective"] = "mlm+nsp"
    page = comparison_page(values)
    assert same not in page
    assert "100 steps of about as many tokens" in page
    assert "BERT over pairs" in page


def test_text_of_the_data_is_no_markup() -> None:
    page = comparison_page(VALUES)
    assert "<b>" not in page
    assert "\n# on" not in page
    assert "The cat \\<b\\>sat\\</b\\> \\# on \\| it" in page
    assert "news\\|today.txt" in page
    assert "a\\|b, c" in page


def test_scores_carry_the_names_that_people_read() -> None:
    assert scores_for_people(VALUES["models"]["bert"]) == {
        "fine-tuned": 0.81,
        "frozen features": 0.71,
        "by prompt": None,
    }
