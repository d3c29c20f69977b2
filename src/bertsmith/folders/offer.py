"""What a card offers a model for on the Hub, and which program opens it."""

from dataclasses import dataclass

from bertsmith.folders.formats import named_format, published_class
from bertsmith.model.config import ModelConfig

_OTHERS = "transformers"
_OURS = "bertsmith"


@dataclass(frozen=True)
class Offer:
    """What the Hub's page of a model says about its use.

    Attributes:
        library: the program that computes all of it: transformers where a class there does, else bertsmith.
        pipeline: the Hub's name for what it does.
        keeps_apart: whether some of its weights lie in a file that other programs don't read.
    """

    library: str
    pipeline: str
    keeps_apart: bool


def offer_of(config: ModelConfig) -> Offer:
    """What a model is offered for."""
    published = published_class(config)
    library = _OURS if published is None else _OTHERS
    return Offer(library, _pipeline(config), any(lies_apart(f"{part}.", config) for part in _parts(config)))


def lies_apart(name: str, config: ModelConfig) -> bool:
    """Whether a weight lies beside the others in bertsmith's own file, since no published class has a place for it.

    Args:
        name: its name in our model, or that name's beginning up to the part's dot.
        config: the model that it belongs to.
    """
    if name.startswith("encoder."):
        return False
    if name.startswith("pooler."):
        return "pooler.dense.weight" not in named_format(config).names(config, "")
    return published_class(config) is None


def _parts(config: ModelConfig) -> list[str]:
    heads = config.heads
    there = {
        "pooler": heads.pooler,
        "masked_language_model": heads.masked_language_model,
        "next_sentence": heads.next_sentence,
        "sentence_order": heads.sentence_order,
        "classifier": bool(heads.labels),
    }
    return [name for name, is_there in there.items() if is_there]


def _pipeline(config: ModelConfig) -> str:
    encoder, heads = config.encoder, config.heads
    if heads.labels:
        return "text-classification"
    # An ELMo's head scores what follows on either side, and neither fills a mask nor writes on.
    if not heads.masked_language_model or encoder.family == "elmo":
        return "feature-extraction"
    return "text-generation" if encoder.causal else "fill-mask"
