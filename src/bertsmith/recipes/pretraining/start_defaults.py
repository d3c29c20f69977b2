"""Settings that a run takes from where its model starts, unless a person sets them."""

from bertsmith.model.encoder_config import Family
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_encoder import is_model_folder, known_encoder
from bertsmith.recipes.text_sources import is_corpus
from bertsmith.tokenization.config import TokenizerConfig

_ALGORITHM: dict[Family, str] = {"roberta": "bpe", "albert": "unigram"}
"""Tokenizer of a family as it was published; WordPiece for the others."""
_CONTINUED_RATES = {"learning_rate": 1e-4, "muon_learning_rate": 2e-3}
"""A tenth of what suits fresh weights, at which a trained encoder forgets what it knows."""


def with_start_defaults(config: PretrainConfig) -> PretrainConfig:
    """The same settings with those filled in that nobody gave and that the model's start decides.

    The algorithm of a tokenizer that is trained follows the family. The learning rates, Muon's among them, are lower
    where a trained model goes on.
    """
    changes: dict[str, object] = {}
    goes_on = is_model_folder(config.model.start)
    algorithm = _ALGORITHM.get(known_encoder(config.model).family)
    has_tokenizer = goes_on or config.tokenizer_folder is not None or any(map(is_corpus, config.sources))
    if algorithm is not None and not has_tokenizer and "algorithm" not in config.tokenizer.model_fields_set:
        values = config.tokenizer.model_dump(exclude_unset=True)
        changes["tokenizer"] = TokenizerConfig.parse(
            values | {"algorithm": algorithm}, where="the tokenizer's settings"
        )
    optimizer = config.training.optimizer
    used = {"learning_rate", "muon_learning_rate"} if optimizer.matrices == "muon" else {"learning_rate"}
    if goes_on and (not_given := used - optimizer.model_fields_set):
        rates = {name: _CONTINUED_RATES[name] for name in not_given}
        changes["training"] = config.training.model_copy(update={"optimizer": optimizer.model_copy(update=rates)})
    return config.model_copy(update=changes)
