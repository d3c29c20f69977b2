"""Cards say what the Hub's page needs, and keep what a person wrote."""

from pathlib import Path

import pytest

from bertsmith.exchange.card import complete_card, imported_card, published_facts
from bertsmith.folders.offer import Offer
from bertsmith.foundation.errors import InputError
from bertsmith.model import EncoderConfig, HeadsConfig, ModelConfig

ENCODER = EncoderConfig(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20)
WRITTEN = """---
license: mit
language: [cy, en]
tags: [mine]
library_name: transformers
pipeline_tag: fill-mask
---

# Mine

Text --- with dashes.
"""


def completed(text: str, *, license_id: str | None = None, language: str | None = None) -> str:
    offer = Offer("transformers", "fill-mask", keeps_apart=False)
    return complete_card(text, offer=offer, license_id=license_id, language=language).text


def card_of(config: ModelConfig) -> str:
    return imported_card(config, origin={"source": "a"}, notes=(), published={})


def test_an_imported_card_tells_origin_notes_and_what_the_model_is_for() -> None:
    card = imported_card(
        ModelConfig(encoder=ENCODER, heads=HeadsConfig()),
        origin={"source": "somebody/bert", "commit": "abc"},
        notes=("one thing", "another"),
        published={"license": "apache-2.0", "language": "cy"},
    )
    front, text = card.split("---\n")[1:]
    assert set(front.splitlines()) == {
        "language: cy", "license: apache-2.0", "library_name: transformers", "pipeline_tag: fill-mask",
        "tags:", "- bert", "- bertsmith",
    }  # fmt: skip
    for line in ("# bert, imported", "| source | somebody/bert |", "| commit | abc |", "- one thing", "- another"):
        assert line in text.splitlines()


def test_an_encoder_without_a_vocabulary_head_is_not_offered_for_masks() -> None:
    card = card_of(ModelConfig(encoder=ENCODER, heads=HeadsConfig(masked_language_model=False)))
    assert "fill-mask" not in card
    assert "license: unknown" in card


def test_a_causal_model_is_offered_to_write_on_and_an_elmo_for_no_pipeline_of_transformers() -> None:
    causal = card_of(ModelConfig(encoder=ENCODER.model_copy(update={"causal": True})))
    assert "pipeline_tag: text-generation" in causal
    assert "library_name: transformers" in causal
    elmo = ENCODER.model_copy(update={"family": "elmo", "embedding_size": 6, "type_vocab_size": 0})
    card = card_of(ModelConfig(encoder=elmo, heads=HeadsConfig(mlm_head="linear", tie_embeddings=False)))
    assert "library_name: bertsmith" in card
    assert "fill-mask" not in card
    assert "No class in transformers computes this model" in card


def test_a_head_that_lies_apart_is_told() -> None:
    assert "bertsmith_heads.safetensors" in card_of(ModelConfig(encoder=ENCODER, heads=HeadsConfig(mlm_head="linear")))
    assert "bertsmith_heads.safetensors" not in card_of(ModelConfig(encoder=ENCODER))


def test_a_card_that_lacks_nothing_stays_byte_for_byte() -> None:
    assert completed(WRITTEN) == WRITTEN
    assert completed(WRITTEN, license_id="mit") == WRITTEN


def test_what_is_missing_is_added_and_the_text_stays() -> None:
    card = completed("# Mine\n\nText.\n")
    assert card.endswith("# Mine\n\nText.\n")
    for line in ("license: unknown", "library_name: transformers", "pipeline_tag: fill-mask", "- bertsmith"):
        assert line in card.splitlines()
    assert "license: unknown" in completed("")


def test_what_is_given_wins_over_what_is_written() -> None:
    card = completed(WRITTEN, license_id="apache-2.0", language="br")
    assert "license: apache-2.0" in card
    assert "language: br" in card
    assert "- mine" in card
    assert card.endswith("# Mine\n\nText --- with dashes.\n")


@pytest.mark.parametrize("front", ["license: [", "- a list"])
def test_damaged_front_matter_is_refused_when_pushed_and_tells_nothing_when_read(tmp_path: Path, front: str) -> None:
    text = f"---\n{front}\n---\n# Mine\n"
    with pytest.raises(InputError, match="front matter"):
        completed(text)
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert published_facts(tmp_path) == {}


def test_facts_are_read_where_they_stand(tmp_path: Path) -> None:
    assert published_facts(tmp_path) == {}
    (tmp_path / "README.md").write_text(WRITTEN, encoding="utf-8")
    assert published_facts(tmp_path) == {"license": "mit", "language": ["cy", "en"]}
