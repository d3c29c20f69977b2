"""Making models with fresh weights."""

import torch
from torch import nn

from bertsmith.model.attention import AttentionKind
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder import Encoder
from bertsmith.model.heads import Model, VocabularyHead


def empty_model(config: ModelConfig, *, attention: AttentionKind = "fused") -> Model:
    """A model whose weights are allocated but not set: for a reader that fills them all."""
    with torch.device("meta"):
        model = Model(config, Encoder(config.encoder, attention=attention))
    return model.to_empty(device="cpu")


def new_model(config: ModelConfig, *, seed: int, attention: AttentionKind = "fused") -> Model:
    """A model with fresh weights, a pure function of the config and the seed.

    Matrices and embeddings are normal with standard deviation `initializer_range`, biases 0, norms 1 and 0, as in
    published BERT.
    """
    model = empty_model(config, attention=attention)
    generator = torch.Generator().manual_seed(seed)
    initialise(model, config.encoder.initializer_range, generator)
    return model


@torch.no_grad()
def initialise(model: nn.Module, standard_deviation: float, generator: torch.Generator) -> None:
    """Set every weight under `model` anew."""
    for module in model.modules():
        match module:
            case nn.Linear():
                module.weight.normal_(0.0, standard_deviation, generator=generator)
                module.bias.zero_()
            case nn.Embedding():
                module.weight.normal_(0.0, standard_deviation, generator=generator)
            case nn.LayerNorm():
                module.weight.fill_(1.0)
                module.bias.zero_()
            case VocabularyHead():
                module.bias.zero_()
                if module.untied is not None:
                    module.untied.normal_(0.0, standard_deviation, generator=generator)
            case _:
                pass
