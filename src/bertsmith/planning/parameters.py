"""Parameters of a model by part, counted on a model without memory, beside what was published."""

from dataclasses import dataclass

from bertsmith.model import ModelConfig, meta_model
from bertsmith.model.build import num_parameters


@dataclass(frozen=True)
class PublishedSize:
    """What the authors of a model say about its size."""

    vocab_size: int
    parameters: str
    """As published, rounded by its authors."""
    source: str


PUBLISHED = {
    "bert-base": PublishedSize(30_522, "110M", "Devlin et al. 2019"),
    "bert-large": PublishedSize(30_522, "340M", "Devlin et al. 2019"),
    "roberta-base": PublishedSize(50_265, "125M", "Liu et al. 2019"),
    "roberta-large": PublishedSize(50_265, "355M", "Liu et al. 2019"),
    "albert-base": PublishedSize(30_000, "12M", "Lan et al. 2020"),
    "albert-xxlarge": PublishedSize(30_000, "235M", "Lan et al. 2020"),
    "modern-base": PublishedSize(50_368, "149M", "Warner et al. 2024"),
}
"""By preset. The vocabulary is the one that the published count was made with."""


@dataclass(frozen=True)
class ParameterCount:
    """Numbers of parameters. A tied projection counts once, with the embeddings."""

    embeddings: int
    layers: int
    """Weights that layers share count once."""
    pooler: int
    heads: int

    @property
    def encoder(self) -> int:
        """Embeddings and layers."""
        return self.embeddings + self.layers

    @property
    def total(self) -> int:
        """All parameters."""
        return self.encoder + self.pooler + self.heads


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Count the parameters of a model of any size, without making it."""
    model = meta_model(config)
    embeddings, encoder = num_parameters(model.encoder.get_submodule("embeddings")), num_parameters(model.encoder)
    pooler = 0 if model.pooler is None else num_parameters(model.pooler)
    return ParameterCount(
        embeddings=embeddings,
        layers=encoder - embeddings,
        pooler=pooler,
        heads=num_parameters(model) - encoder - pooler,
    )
