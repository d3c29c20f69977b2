"""What a card offers a model for on the Hub, and which program opens it."""

from dataclasses import dataclass

from bertsmith.folders.formats import named_format, published_class
from bertsmith.model.config import ModelConfig, TaskName

_OTHERS = "transformers"
_EMBEDDERS = "sentence-transformers"
_OURS = "bertsmith"
_PIPELINES: dict[TaskName, str] = {
    "classify": "text-classification",
    "multilabel": "text-classification",
    "regress": "text-classification",
    "choose": "multiple-choice",
    "tag": "token-classification",
    "answer": "question-answering",
}


@dataclass(frozen=True)
class Offer:
    """What the Hub's page of a model says about its use.

    Attributes:
        library: the program that computes all of it: transformers where a class there does, sentence-transformers for
            embeddings out of an encoder that transformers has, else bertsmith.
        pipeline: the Hub's name for what it does.
        keeps_apart: whether some of its weights lie in a file that other programs don't read.
    """

    library: str
    pipeline: str
    keeps_apart: bool


def offer_of(config: ModelConfig) -> Offer:
    """What a model is offered for."""
    if config.heads.task == "embed" and named_format(config).encoder_class:
        library = _EMBEDDERS
    else:
        library = _OURS if published_class(config) is None else _OTHERS
    pipeline = "sentence-similarity" if library == _EMBEDDERS else _pipeline(config)
    return Offer(library, pipeline, any(lies_apart(f"{part}.", config) for part in _parts(config)))


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
    }
    parts = [name for name, is_there in there.items() if is_there]
    return parts if heads.task_head is None else [*parts, heads.task_head]


def _pipeline(config: ModelConfig) -> str:
    encoder, heads = config.encoder, config.heads
    if heads.task in _PIPELINES:
        return _PIPELINES[heads.task]
    if heads.task == "embed":
        return "feature-extraction"
    # An ELMo's head scores what follows on either side, and neither fills a mask nor writes on.
    if not heads.masked_language_model or encoder.family == "elmo":
        return "feature-extraction"
    return "text-generation" if encoder.causal else "fill-mask"
