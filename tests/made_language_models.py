"""A BERT, a GPT and an ELMo of a few thousand weights over the vocabulary of `made_tokenizer`."""

from collections.abc import Callable

from bertsmith.model import Model, ModelConfig, new_model
from bertsmith.model.like_size import elmo_of_like_size
from made_corpora import made_model, made_tokenizer


def made_bert(seed: int = 0) -> Model:
    return made_model(made_tokenizer().vocab_size, seed=seed, positions=24, spread=0.3).eval()


def made_gpt(seed: int = 0) -> Model:
    encoder = made_bert().config.encoder.model_copy(update={"causal": True})
    return new_model(ModelConfig(encoder=encoder), seed=seed).eval()


def made_elmo(seed: int = 0) -> Model:
    return new_model(elmo_of_like_size(made_bert().config), seed=seed).eval()


MADE: dict[str, Callable[..., Model]] = {"bert": made_bert, "gpt": made_gpt, "elmo": made_elmo}
