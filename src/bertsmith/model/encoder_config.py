"""What an encoder is: its sizes and its parts."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from bertsmith.foundation.config import Config

Activation = Literal["gelu", "gelu_tanh", "relu"]
Family = Literal["bert", "roberta", "albert", "distilbert", "modern", "elmo"]
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


class RotaryConfig(Config):
    """Positions as rotations of queries and keys (Su et al. 2021), and which layers see how far (ModernBERT)."""

    global_every: Count = 3
    """Layers 0, n, 2n … see all of a sequence, the others a window."""
    window: Annotated[int, Field(ge=2, multiple_of=2)] = 128
    """Width of the window: half of it to each side of a token."""
    global_theta: Annotated[float, Field(gt=0.0)] = 160_000.0
    local_theta: Annotated[float, Field(gt=0.0)] = 10_000.0
    """Base of the rotations' wavelengths, in layers that see all and in those that see a window."""


class EncoderConfig(Config):
    """Sizes and parts of one encoder (Devlin et al. 2019, section 3, and the families that followed)."""

    family: Family = "bert"
    """The published family whose format this encoder has on disk."""
    vocab_size: Count
    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    activation: Activation = "gelu"
    max_position_embeddings: Count = 512
    """Rows of the position table; for rotary positions, the longest sequence."""
    type_vocab_size: Annotated[int, Field(ge=0)] = 2
    """Rows of the segment table; 0 for no table, 1 for one that tells nothing apart."""
    layer_norm_eps: Annotated[float, Field(gt=0.0)] = 1e-12
    initializer_range: Annotated[float, Field(gt=0.0)] = 0.02
    dropout: Dropout = Dropout()
    pad_token_id: Annotated[int, Field(ge=0)] = 0
    embedding_size: Count | None = None
    """Width of the embeddings where it is not the hidden size: ALBERT's factorised ones, one direction of ELMo."""
    num_hidden_groups: Count | None = None
    """ALBERT: how many layers have weights of their own; each serves as many layers in a row as the others."""
    rotary: RotaryConfig | None = None
    """Modern: rotary positions. None: a table of positions."""
    causal: bool = False
    """Whether a token sees only itself and what stands before it, as in a GPT."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> "EncoderConfig":
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"num_attention_heads must divide hidden_size, and {self.num_attention_heads} "
                f"does not divide {self.hidden_size}"
            )
        if self.num_hidden_groups is not None and self.num_hidden_layers % self.num_hidden_groups:
            raise ValueError(
                f"num_hidden_groups must divide num_hidden_layers, and {self.num_hidden_groups} "
                f"does not divide {self.num_hidden_layers}"
            )
        if self.rotary is not None and self.head_size % 2:
            raise ValueError(f"rotary positions need heads of even width, and hidden_size / heads is {self.head_size}")
        if self.num_positions < 1:
            raise ValueError(
                f"max_position_embeddings must exceed the {self.position_offset} rows that no token uses, "
                f"and it is {self.max_position_embeddings}"
            )
        return self

    @model_validator(mode="after")
    def _parts_fit_the_family(self) -> "EncoderConfig":
        rules: list[tuple[bool, str]] = [
            (
                (self.rotary is not None) == (self.family == "modern"),
                "rotary belongs to family modern, and to it alone",
            ),
            (
                (self.num_hidden_groups is not None) == (self.family == "albert"),
                "num_hidden_groups belongs to family albert, and to it alone",
            ),
            (
                (self.embedding_size is not None) == (self.family in ("albert", "elmo")),
                "embedding_size belongs to families albert and elmo, and to them alone",
            ),
            (not self.causal or self.family == "bert", "causal belongs to family bert"),
            (
                self.family not in ("distilbert", "modern", "elmo") or self.type_vocab_size == 0,
                f"type_vocab_size must be 0 in family {self.family}, which has no segments",
            ),
            (
                self.family != "distilbert" or self.layer_norm_eps == 1e-12,
                "layer_norm_eps must be 1e-12 in family distilbert, whose format has no other",
            ),
            (
                self.family != "elmo" or self.embedding_size == self.hidden_size / 2,
                "embedding_size must be half of hidden_size in family elmo: one direction's width",
            ),
        ]
        for holds, rule in rules:
            if not holds:
                raise ValueError(rule)
        return self

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def embedding_width(self) -> int:
        """Width of the token embedding."""
        return self.embedding_size or self.hidden_size

    @property
    def position_offset(self) -> int:
        """Row of the position table where position 0 stands: RoBERTa leaves out those up to the padding id."""
        return self.pad_token_id + 1 if self.family == "roberta" else 0

    @property
    def positions_skip_padding(self) -> bool:
        """Whether a token's position counts real tokens alone, as RoBERTa's does; else it is its column."""
        return self.family == "roberta"

    @property
    def num_positions(self) -> int:
        """Tokens in the longest sequence that the encoder takes."""
        return self.max_position_embeddings - self.position_offset

    @property
    def has_biases(self) -> bool:
        """Whether linear layers and norms of the encoder have biases."""
        return self.family != "modern"
