"""Settings that a run takes from where its model starts, unless a person sets them."""

from typing import Any

from bertsmith.examples.masking import MaskingConfig
from bertsmith.model.encoder_config import Family
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_encoder import is_model_folder, known_encoder
from bertsmith.recipes.text_sources import is_corpus
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.training.config import OptimizerConfig

_ALGORITHM: dict[Family, str] = {"roberta": "bpe", "albert": "unigram"}
"""Tokenizer of a family as it was published; WordPiece for the others."""
_CONTINUED_RATES = {"learning_rate": 1e-4, "muon_learning_rate": 2e-3}
"""A tenth of what suits fresh weights, at which a trained encoder forgets what it knows."""
_START_OF_OTHERS = "bert-toy"
"""Of a run with another objective than masks alone, where no model is named."""
_FRESH_OPTIMIZER = {"matrices": "muon", "muon_learning_rate": 0.03, "weight_decay": 0.1}
"""With less decay Muon leaves weights so large that a fine-tuning hardly moves them."""
_FRESH_RATE, _WIDTH_OF_RATE = 5e-3, 128
"""Of all else than the matrices, and the width up to which it suits; beyond, it falls as the width grows."""
_FRESH_MASK_RATE = 0.3
_FRESH_BATCH_TOKENS = 4096
"""What fresh weights learn most from in few tokens; docs/lab-notes.md has what lost."""


def with_start_defaults(config: PretrainConfig) -> PretrainConfig:
    """The same settings with those filled in that nobody gave and that the model's start decides.

    The algorithm of a tokenizer that is trained follows the family. Fresh weights of a transformer are trained by the
    recipe that gives most in few tokens: Muon for the matrices inside the layers, small batches, and 30 % masked. Who
    names another optimizer has a recipe already, and so has who says anything about masks. AdamW's rate is lower for
    a wide model, Muon's is not; both are lower where a trained model goes on.
    """
    changes: dict[str, object] = {}
    if "start" not in config.model.model_fields_set and config.objective != "mlm":
        # A modern encoder has no segments for pairs, and reads in both directions.
        config = config.model_copy(update={"model": config.model.model_copy(update={"start": _START_OF_OTHERS})})
    goes_on = is_model_folder(config.model.start)
    algorithm = _ALGORITHM.get(known_encoder(config.model).family)
    has_tokenizer = goes_on or config.tokenizer_folder is not None or any(map(is_corpus, config.sources))
    if algorithm is not None and not has_tokenizer and "algorithm" not in config.tokenizer.model_fields_set:
        values = config.tokenizer.model_dump(exclude_unset=True)
        changes["tokenizer"] = TokenizerConfig.parse(
            values | {"algorithm": algorithm}, where="the tokenizer's settings"
        )
    changes |= _rates_to_go_on(config) if goes_on else _fresh_recipe(config)
    return config.model_copy(update=changes)


def _rates_to_go_on(config: PretrainConfig) -> dict[str, Any]:
    optimizer = config.training.optimizer
    used = {"learning_rate", "muon_learning_rate"} if optimizer.matrices == "muon" else {"learning_rate"}
    rates = {name: _CONTINUED_RATES[name] for name in used - optimizer.model_fields_set}
    if not rates:
        return {}
    return {"training": config.training.model_copy(update={"optimizer": optimizer.model_copy(update=rates)})}


def _fresh_recipe(config: PretrainConfig) -> dict[str, Any]:
    if config.objective == "bilm":
        return {}
    training: dict[str, Any] = {}
    optimizer = config.training.optimizer
    names_another = "kind" in optimizer.model_fields_set or (
        "matrices" in optimizer.model_fields_set and optimizer.matrices != "muon"
    )
    if not names_another:
        given = optimizer.model_dump(exclude_unset=True)
        rates = _FRESH_OPTIMIZER | {"learning_rate": _fresh_rate(known_encoder(config.model).hidden_size)}
        training["optimizer"] = OptimizerConfig.parse(rates | given, where="the optimizer's settings")
    if "batch_tokens" not in config.training.model_fields_set:
        training["batch_tokens"] = max(_FRESH_BATCH_TOKENS, 2 * config.max_length)
    changes: dict[str, Any] = {"training": config.training.model_copy(update=training)} if training else {}
    if config.objective != "causal" and not config.masking.model_fields_set:
        changes["masking"] = MaskingConfig(mask_rate=_FRESH_MASK_RATE)
    return changes


def _fresh_rate(hidden_size: int) -> float:
    return _FRESH_RATE * min(1.0, _WIDTH_OF_RATE / hidden_size)
