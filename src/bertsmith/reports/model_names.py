"""What the cards call a model."""

from bertsmith.folders.formats import named_format
from bertsmith.model.config import ModelConfig

_TITLES = {
    "bert": "A BERT encoder",
    "roberta": "A RoBERTa encoder",
    "albert": "An ALBERT encoder",
    "distilbert": "A DistilBERT encoder",
    "modern": "A modern encoder, in ModernBERT's format",
    "elmo": "An ELMo of LSTMs",
}


def model_title(config: ModelConfig) -> str:
    """The kind of model, for people."""
    return "A causal language model (GPT)" if config.encoder.causal else _TITLES[config.encoder.family]


def model_tag(config: ModelConfig) -> str:
    """The kind of model, as the Hub's tags write it."""
    return "gpt" if config.encoder.causal else named_format(config).model_type
