"""An ELMo with about as many parameters as another model has, so that the two compare."""

from collections.abc import Callable

from bertsmith.model.build import meta_model, num_parameters
from bertsmith.model.config import HeadsConfig, ModelConfig
from bertsmith.model.encoder_config import EncoderConfig

_LAYERS = 2
"""As published (Peters et al. 2018)."""
_EMBEDDING_SPREAD = 0.3
"""An LSTM has no norm that would lift small embeddings: with BERT's 0.02 it learns much more slowly."""
_NEAR = 0.02


def elmo_of_like_size(like: ModelConfig) -> ModelConfig:
    """A two-layer ELMo over the same vocabulary, with its head.

    A direction's width is the roundest of those with which the numbers of parameters differ by 2 % at most, or else
    the one with which they differ least.
    """
    encoder, wanted = like.encoder, num_parameters(meta_model(like))
    count = _counter(encoder.vocab_size)
    width = 1
    while count(width + 1) <= wanted:
        width += 1
    nearest = min((width, width + 1), key=lambda size: abs(count(size) - wanted))
    for multiple in (64, 32, 16, 8, 4, 2):
        rounded = multiple * max(1, round(width / multiple))
        if abs(count(rounded) - wanted) <= _NEAR * wanted:
            nearest = rounded
            break
    return ModelConfig(
        encoder=EncoderConfig(
            family="elmo",
            vocab_size=encoder.vocab_size,
            hidden_size=2 * nearest,
            embedding_size=nearest,
            intermediate_size=nearest,
            num_hidden_layers=_LAYERS,
            num_attention_heads=1,
            max_position_embeddings=encoder.max_position_embeddings,
            type_vocab_size=0,
            initializer_range=_EMBEDDING_SPREAD,
            dropout=encoder.dropout,
            pad_token_id=encoder.pad_token_id,
        ),
        heads=HeadsConfig(mlm_head="linear"),
    )


def _counter(vocab_size: int) -> Callable[[int], int]:
    """From a direction's width to parameters: embedding and bias of the vocabulary, and two LSTMs a layer."""
    return lambda width: vocab_size * (width + 1) + _LAYERS * 2 * (8 * width * width + 8 * width)
