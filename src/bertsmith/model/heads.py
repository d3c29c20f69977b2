"""A model: an encoder with its heads, those of pre-training and that of a task."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from bertsmith.kernels.encoding import WordPrecision
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder import PackedEncoder
from bertsmith.model.packed import PackedTokens
from bertsmith.model.pooling import first_tokens, mean_tokens, pooled_tokens
from bertsmith.model.pretraining_heads import Pooler, VocabularyHead
from bertsmith.model.task_heads import Classifier, TokenHead
from bertsmith.model.token_embedding import TokenEmbedding


class Model(nn.Module):
    """An encoder with its heads.

    The heads are parts, None where the config has none; an objective calls those that it needs.
    """

    def __init__(self, config: ModelConfig, encoder: PackedEncoder, token_embedding: TokenEmbedding) -> None:
        super().__init__()
        heads = config.heads
        hidden_size = config.encoder.hidden_size
        self.config = config
        self.encoder = encoder
        self.pooler = Pooler(hidden_size) if heads.pooler else None
        self.masked_language_model = VocabularyHead(config, token_embedding) if heads.masked_language_model else None
        self.next_sentence = nn.Linear(hidden_size, 2) if heads.next_sentence else None
        self.sentence_order = nn.Linear(hidden_size, 2) if heads.sentence_order else None
        self.classifier = Classifier(config, self.pooler) if heads.task_head == "classifier" else None
        self.token_classifier = TokenHead(config) if heads.task_head == "token_classifier" else None
        self.spans = TokenHead(config) if heads.task_head == "spans" else None
        # A list hides it from torch, which would register it twice.
        self._token_embedding = [token_embedding]
        self.replace_encoder(encoder)
        self._classifier_input = first_tokens if heads.classifier_input == "first" else mean_tokens

    def replace_encoder(self, encoder: PackedEncoder) -> None:
        """Have the heads read another encoder of the same config."""
        self.encoder = encoder
        all_layers = self.config.heads.mlm_head_input == "all_layers"
        self._head_input = self._all_layers if all_layers else encoder.packed

    @property
    def precision(self) -> WordPrecision | None:
        """Of the encoder's products, where it is settled; None: as the device has it."""
        return self.encoder.precision

    @property
    def token_embedding(self) -> TokenEmbedding:
        """The encoder's embedding of the vocabulary."""
        return self._token_embedding[0]

    def head_input(self, packed: PackedTokens) -> Float[Tensor, "tokens input"]:
        """What the vocabulary head reads; its last `hidden_size` columns are always the last layer's output."""
        return self._head_input(packed)

    def _all_layers(self, packed: PackedTokens) -> Tensor:
        return torch.cat(list(self.encoder.layer_outputs(packed)), dim=-1)

    def pooled(self, hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
        """The pooler's output for each sequence.

        Raises:
            ValueError: if the model has no pooler.
        """
        if self.pooler is None:
            raise ValueError("The model has no pooler. Received: a call of pooled(). Build it with heads.pooler=true.")
        return self.pooler(first_tokens(hidden, packed))

    def classify(
        self, hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens
    ) -> Float[Tensor, "sequences outputs"]:
        """A score for each sequence and label, before softmax or sigmoid; one number for a regression or a choice.

        Raises:
            ValueError: if the model has no classifier.
        """
        if self.classifier is None:
            raise ValueError(
                "The model has no classifier. Received: a call of classify(). Build it with heads.labels=(…), or with "
                "heads.task regress or choose."
            )
        return self.classifier(self._classifier_input(hidden, packed))

    def tag(self, hidden: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens labels"]:
        """A score for each token and label, before softmax.

        Raises:
            ValueError: if the model has no head for labels of tokens.
        """
        if self.token_classifier is None:
            raise ValueError(
                "The model has no head for labels of tokens. Received: a call of tag(). "
                'Build it with heads.task="tag" and heads.labels=(…).'
            )
        return self.token_classifier(hidden)

    def answer_spans(self, hidden: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens 2"]:
        """For each token a score that an answer starts with it and one that it ends with it, before softmax.

        Raises:
            ValueError: if the model has no head for spans.
        """
        if self.spans is None:
            raise ValueError(
                "The model has no head for answers. Received: a call of answer_spans(). "
                'Build it with heads.task="answer".'
            )
        return self.spans(hidden)

    def embed(self, hidden: Float[Tensor, "tokens hidden"], packed: PackedTokens) -> Float[Tensor, "sequences hidden"]:
        """An embedding of each sequence as `heads.pooling` and `heads.normalize` say, in fp32 at least."""
        embeddings = pooled_tokens(hidden, packed, self.config.heads.pooling)
        return functional.normalize(embeddings, dim=-1) if self.config.heads.normalize else embeddings
