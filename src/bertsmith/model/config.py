"""What a model is: the encoder's sizes and the heads on it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from bertsmith.foundation.config import Config

Activation = Literal["gelu", "gelu_tanh", "relu"]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class Dropout(Config):
    """Share of values set to zero while training, by place. Published BERT has 0.1 in all four."""

    embeddings: Rate = 0.0
    """After the sum of the embeddings is normalised."""
    attention_weights: Rate = 0.0
    """On the attention weights, after the softmax."""
    attention_output: Rate = 0.0
    """After the attention's output projection, before the residual sum."""
    feed_forward: Rate = 0.0
    """After the feed-forward's second projection, before the residual sum."""

    @classmethod
    def everywhere(cls, rate: float) -> "Dropout":
        """The same rate in all four places."""
        return cls(embeddings=rate, attention_weights=rate, attention_output=rate, feed_forward=rate)


class EncoderConfig(Config):
    """Sizes and parts of one encoder (Devlin et al. 2019, section 3)."""

    vocab_size: Count
    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    activation: Activation = "gelu"
    max_position_embeddings: Count = 512
    type_vocab_size: Count = 2
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-12
    initializer_range: Annotated[float, Field(gt=0.0)] = 0.02
    dropout: Dropout = Dropout()
    pad_token_id: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _heads_divide_hidden_size(self) -> "EncoderConfig":
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"num_attention_heads must divide hidden_size, and {self.num_attention_heads} "
                f"does not divide {self.hidden_size}"
            )
        return self

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads


class HeadsConfig(Config):
    """Which heads stand on the encoder, and how the one over the vocabulary is built."""

    masked_language_model: bool = True
    mlm_head: Literal["transform", "linear"] = "transform"
    """transform: dense, activation, norm, then the vocabulary, as published. linear: the vocabulary at once."""
    mlm_head_input: Literal["last", "all_layers"] = "last"
    """all_layers: the outputs of all layers side by side, [tokens, num_layers x hidden]."""
    tie_embeddings: bool = True
    """Whether the vocabulary projection is the token embedding itself."""
    pooler: bool = False
    next_sentence: bool = False

    @model_validator(mode="after")
    def _parts_fit(self) -> "HeadsConfig":
        if self.next_sentence and not self.pooler:
            raise ValueError("next_sentence reads the pooler's output, so pooler must be true with it")
        if self.tie_embeddings and self.mlm_head == "linear" and self.mlm_head_input == "all_layers":
            raise ValueError(
                "tie_embeddings must be false where a linear head reads all layers: the projection is as wide as "
                "all layers together, the embedding as one"
            )
        return self

    @property
    def as_published(self) -> bool:
        """Whether the head over the vocabulary is one that the Hugging Face classes know, or there is none."""
        known = self.mlm_head == "transform" and self.mlm_head_input == "last"
        return known or not self.masked_language_model


class ModelConfig(Config):
    """An encoder and its heads."""

    encoder: EncoderConfig
    heads: HeadsConfig = HeadsConfig()
