"""Cards of models: what a stranger copies out of them works, and the family has its own name."""

from typing import Any

import pytest

from bertsmith.model import EncoderConfig, HeadsConfig, ModelConfig, preset
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.reports.finetune_report import finetune_report
from bertsmith.reports.model_card import model_card
from bertsmith.reports.task_card import task_card

RECORD = {"tokens": 1000, "steps": 10, "max_length": 64, "train_rows": 90, "metrics": {"accuracy": 0.5}}
EVALUATION: dict[str, Any] = {"rows": 10, "accuracy": 0.5, "macro_f1": 0.5, "matthews": 0.0, "per_class": {}}
FAMILIES = {
    "bert-toy": ("A BERT encoder", "bert"),
    "roberta-base": ("A RoBERTa encoder", "roberta"),
    "albert-base": ("An ALBERT encoder", "albert"),
    "modern-small": ("A modern encoder, in ModernBERT's format", "modernbert"),
}


def _gpt() -> ModelConfig:
    return ModelConfig(encoder=preset("bert-toy", vocab_size=500).model_copy(update={"causal": True}))


def _elmo() -> ModelConfig:
    return elmo_of_like_size(ModelConfig(encoder=preset("bert-toy", vocab_size=500)))


def _classifier(encoder: EncoderConfig, reads: str) -> ModelConfig:
    heads = {
        "masked_language_model": False,
        "pooler": encoder.family in ("bert", "albert"),
        "mlm_head": "linear",
        "labels": ("a", "b"),
        "classifier_input": reads,
    }
    return ModelConfig(encoder=encoder, heads=HeadsConfig.parse(heads, where="a test"))


def _card(config: ModelConfig, mask_token: str | None = "[MASK]", objective: str = "mlm") -> str:
    return model_card(config, objective=objective, max_length=64, mask_token=mask_token, record=RECORD)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_has_its_name(name: str) -> None:
    title, tag = FAMILIES[name]
    encoder = preset(name, vocab_size=500)
    card = _card(ModelConfig(encoder=encoder))
    assert f"# {title}, pre-trained from raw text" in card
    assert f"tags: [{tag}, bertsmith]" in card
    card = task_card(_classifier(encoder, "first"), RECORD, EVALUATION)
    assert f"{title}: {encoder.num_hidden_layers} layers" in card
    assert f"tags: [{tag}, bertsmith]" in card
    assert "library_name: transformers" in card


@pytest.mark.parametrize(
    ("encoder", "told"),
    [
        (preset("bert-base", vocab_size=500), '({"text": "Some text.", "text_pair": "Another one."}, truncation=True)'),
        (_elmo().encoder, '([("Some text.", "Another one.")])'),
    ],
)
def test_a_model_of_pairs_is_shown_with_one(encoder: EncoderConfig, told: str) -> None:
    config = _classifier(encoder, "mean" if encoder.family == "elmo" else "first")
    heads = config.heads.model_copy(update={"pairs": True})
    assert told in task_card(config.model_copy(update={"heads": heads}), RECORD, EVALUATION)


@pytest.mark.parametrize("mask_token", ["[MASK]", "<mask>"])
@pytest.mark.parametrize("mlm_head", ["transform", "linear"])
def test_the_mask_of_the_example_is_the_tokenizers(mask_token: str, mlm_head: str) -> None:
    heads = HeadsConfig.parse({"mlm_head": mlm_head}, where="a test")
    card = _card(ModelConfig(encoder=preset("roberta-base", vocab_size=500), heads=heads), mask_token)
    assert f'fill("A text with a {mask_token} in it.")' in card
    assert ("pipeline(" in card) == ("library_name: transformers" in card) == (mlm_head == "transform")


def test_a_gpt_and_an_elmo_are_called_by_their_names() -> None:
    card = _card(_gpt(), None, "causal")
    assert "# A causal language model (GPT), " in card
    assert "tags: [gpt, bertsmith]" in card
    assert "library_name: transformers" in card
    card = _card(_elmo(), None, "bilm")
    assert "# An ELMo of LSTMs, " in card
    assert "library_name: bertsmith" in card


@pytest.mark.parametrize(("config", "tag"), [(_gpt(), "gpt"), (_elmo(), "elmo")])
def test_a_classifier_without_a_published_class_is_used_by_bertsmith(config: ModelConfig, tag: str) -> None:
    card = task_card(_classifier(config.encoder, "mean"), RECORD, EVALUATION)
    assert "library_name: bertsmith" in card
    assert "import bertsmith" in card
    assert "transformers" not in card
    assert f"tags: [{tag}, bertsmith]" in card
    assert (" heads," in card) == (tag == "gpt")


def test_a_label_with_a_comma_stands_in_quotes() -> None:
    config = _classifier(preset("bert-toy", vocab_size=500), "first")
    heads = config.heads.model_copy(update={"labels": ("film", "long, really")})
    card = task_card(config.model_copy(update={"heads": heads}), RECORD, EVALUATION)
    assert 'Its labels: film, "long, really".' in card


@pytest.mark.parametrize("task", ["classify", "answer", "embed"])
def test_the_report_of_a_fine_tuning_names_its_task(task: str) -> None:
    settings = {"task": task, "train": "train.csv", "model": "my-bert"}
    page = finetune_report("my-run", settings, RECORD, EVALUATION, [])
    assert f"Fine-tuning for {task} on train.csv, from my-bert" in page
