"""What a pre-training run is made of, as one frozen config: the same in TOML, on the command line and in Python."""

from typing import Annotated, Any, Literal

from pydantic import Field

from bertsmith.corpus.config import CorpusConfig
from bertsmith.examples.masking import MaskingConfig
from bertsmith.foundation.config import Config
from bertsmith.model.encoder_config import Activation, Count, Dropout
from bertsmith.recipes.settings import RuntimeConfig
from bertsmith.text.documents import TextConfig
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.training.config import LengthConfig, TrainingConfig


class ModelChoice(Config):
    """Where the model comes from, and in what it differs from there."""

    start: str = "modern-toy"
    """A preset's name or a config.json, for fresh weights; or a model folder, to go on from its weights. Where none is
    named and the objective needs what a modern encoder has not, it is bert-toy."""
    num_hidden_layers: Count | None = None
    hidden_size: Count | None = None
    num_attention_heads: Count | None = None
    intermediate_size: Count | None = None
    activation: Activation | None = None
    max_position_embeddings: Count | None = None
    dropout: Dropout | None = None
    """None: no dropout with a preset; with a config.json or a model folder what that says, and one of BERT's that names
    no rates means the published 0.1."""
    mlm_head: Literal["transform", "linear"] = "transform"
    mlm_head_input: Literal["last", "all_layers"] = "last"
    tie_embeddings: bool = True
    bias_from_frequencies: bool = True
    """Begin the vocabulary's bias at the logarithm of each token's frequency, as published BERT does not."""

    @property
    def sizes(self) -> dict[str, Any]:
        """Fields of the encoder's config in which a fresh model differs from its preset or file."""
        names = (
            "num_hidden_layers",
            "hidden_size",
            "num_attention_heads",
            "intermediate_size",
            "activation",
            "max_position_embeddings",
        )
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class PretrainConfig(Config):
    """Everything that decides a pre-training run."""

    sources: tuple[str, ...]
    objective: Literal["mlm", "mlm+nsp", "mlm+sop", "causal", "bilm"] = "mlm"
    sequences: Literal["document_sentences", "full_sentences", "blocks"] = "document_sentences"
    """Whole sentences of one document; of several, with a further separator between them; or text in a row, cut
    wherever a sequence is full."""
    max_length: Annotated[int, Field(ge=8)] = 128
    """Most tokens of a sequence, special ones included."""
    tokenizer_folder: str | None = None
    """A tokenizer that exists; otherwise one is trained on the text."""
    extend_vocabulary: Annotated[int, Field(ge=0)] = 0
    """Words of the text that are added to the vocabulary of the model that the run goes on from."""
    length: LengthConfig = LengthConfig()
    model: ModelChoice = ModelChoice()
    tokenizer: TokenizerConfig = TokenizerConfig()
    text: TextConfig = TextConfig()
    corpus: CorpusConfig = CorpusConfig()
    masking: MaskingConfig = MaskingConfig()
    training: TrainingConfig = TrainingConfig()
    runtime: RuntimeConfig = RuntimeConfig()

    @property
    def written(self) -> dict[str, Any]:
        """Plain values from which the same run can be begun again; a size that the text decides is left out."""
        values = self.model_dump(mode="json", exclude_none=True)
        if "vocab_size" not in self.tokenizer.model_fields_set:
            del values["tokenizer"]["vocab_size"]
        return values
