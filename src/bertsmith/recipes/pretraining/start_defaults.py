"""Settings that a run takes from where its model starts, unless a person sets them."""

from bertsmith.model.config import Family
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_model import is_model_folder, known_encoder
from bertsmith.recipes.text_sources import is_corpus
from bertsmith.tokenization.config import TokenizerConfig

_ALGORITHM: dict[Family, str] = {"roberta": "bpe", "albert": "unigram"}
"""Tokenizer of a family as it was published; WordPiece for the others."""
_CONTINUED_LEARNING_RATE = 1e-4
"""A trained encoder forgets what it knows at the rate that suits fresh weights."""


def with_start_defaults(config: PretrainConfig) -> PretrainConfig:
    """The same settings with those filled in that nobody gave and that the model's start decides.

    The tokenizer's algorithm follows the family, unless a prepared corpus has decided it. The learning rate is lower
    where a trained model goes on.
    """
    changes: dict[str, object] = {}
    algorithm = _ALGORITHM.get(known_encoder(config.model).family)
    is_decided = "algorithm" in config.tokenizer.model_fields_set or any(map(is_corpus, config.sources))
    if algorithm is not None and not is_decided:
        values = config.tokenizer.model_dump(exclude_unset=True)
        changes["tokenizer"] = TokenizerConfig.parse(
            values | {"algorithm": algorithm}, where="the tokenizer's settings"
        )
    optimizer = config.training.optimizer
    if is_model_folder(config.model.start) and "learning_rate" not in optimizer.model_fields_set:
        optimizer = optimizer.model_copy(update={"learning_rate": _CONTINUED_LEARNING_RATE})
        changes["training"] = config.training.model_copy(update={"optimizer": optimizer})
    return config.model_copy(update=changes)
