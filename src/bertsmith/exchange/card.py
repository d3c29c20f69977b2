"""The card of a model that came from elsewhere, and what a card must say before it goes to the Hub."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData, metadata_load

from bertsmith.folders.model_folder import CARD
from bertsmith.folders.offer import Offer, offer_of
from bertsmith.folders.tensors import HEADS
from bertsmith.foundation.errors import InputError
from bertsmith.model import ModelConfig

UNKNOWN_LICENSE = "unknown"
_TAG = "bertsmith"
_KEPT = ("license", "license_name", "license_link", "language", "datasets")


def imported_card(
    config: ModelConfig, *, origin: dict[str, str], notes: tuple[str, ...], published: dict[str, Any]
) -> str:
    """The card of an imported model, as Markdown with the Hub's front matter.

    Args:
        config: the model.
        origin: where it came from, as rows of a table.
        notes: what was found and done on the way.
        published: what `published_facts` found in the card that it had there.
    """
    encoder, offer = config.encoder, offer_of(config)
    data = ModelCardData(
        library_name=offer.library,
        pipeline_tag=offer.pipeline,
        tags=[encoder.family, _TAG],
        **{"license": UNKNOWN_LICENSE, **published},
    )
    lines = [
        "---",
        data.to_yaml(),
        "---",
        "",
        f"# {origin['source'].rsplit('/', 1)[-1]}, imported",
        "",
        f"{encoder.num_hidden_layers} layers, hidden size {encoder.hidden_size}, {encoder.num_attention_heads} heads, "
        f"{encoder.vocab_size:,} pieces. The weights were trained elsewhere and are unchanged.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in origin.items()),
        "",
    ]
    if encoder.family == "elmo":
        lines += ["No class in transformers computes this model; its weights have bertsmith's own names.", ""]
    elif offer.keeps_apart:
        lines += [
            f"What no class in transformers has a place for lies in `{HEADS}`, where bertsmith finds it. `config.json` "
            "names the class that computes the rest.",
            "",
        ]
    if notes:
        lines += ["## What was found on the way", "", *(f"- {note}" for note in notes), ""]
    return "\n".join(lines)


def published_facts(folder: Path) -> dict[str, Any]:
    """Licence, language and data sets, as the card in a folder tells them; empty where it tells nothing."""
    try:
        found = metadata_load(folder / CARD) or {}
    except Exception:  # The library lets its YAML reader's own errors through; a damaged card tells nothing.
        return {}
    return {name: found[name] for name in _KEPT if found.get(name)}


@dataclass(frozen=True)
class CompleteCard:
    """A card that may go to the Hub, and the licence that it tells."""

    text: str
    license: str


def complete_card(text: str, *, offer: Offer, license_id: str | None, language: str | None) -> CompleteCard:
    """A card with all that the Hub's page needs. What it says already stays, but for what is given here.

    Args:
        text: the card as it is; empty where there is none.
        offer: what the model is offered for.
        license_id: the licence's identifier on the Hub; where neither given nor told, it is `unknown`.
        language: the text's language, as its code.

    Raises:
        InputError: if the front matter is damaged.
    """
    try:
        card = ModelCard(text)
    except Exception as error:  # The library lets its YAML reader's own errors through.
        first_line = str(error).splitlines()[0]
        raise InputError(
            f"The front matter of {CARD} must be YAML that the Hub knows", first_line, f"Mend {CARD}."
        ) from error
    data = card.data
    told = data.to_dict()
    license_told = license_id or told.get("license") or UNKNOWN_LICENSE
    wanted = {
        "license": license_told,
        "language": language or told.get("language"),
        "library_name": told.get("library_name") or offer.library,
        "pipeline_tag": told.get("pipeline_tag") or offer.pipeline,
        "tags": told.get("tags") or [_TAG],
    }
    for name, value in wanted.items():
        data[name] = value
    return CompleteCard(text if data.to_dict() == told else str(card), str(license_told))
