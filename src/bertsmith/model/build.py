"""Making models with fresh weights."""

import numpy as np
import torch
from jaxtyping import Int
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


def new_model(
    config: ModelConfig,
    *,
    seed: int,
    token_counts: Int[np.ndarray, " vocabulary"] | None = None,
    attention: AttentionKind = "fused",
) -> Model:
    """A model with fresh weights, a pure function of the arguments.

    Matrices and embeddings are normal with standard deviation `initializer_range`, biases 0, norms 1 and 0, as in
    published BERT.

    Args:
        config: what to build.
        seed: decides the weights.
        token_counts: where given, the vocabulary head's bias begins as the logarithm of each token's frequency, one
            added to each count. A model then knows frequencies from the start. Without it, it spends its first
            thousands of steps on them, and all its embeddings turn the same way meanwhile.
        attention: which attention.
    """
    model = empty_model(config, attention=attention)
    generator = torch.Generator().manual_seed(seed)
    initialise(model, config.encoder.initializer_range, generator)
    if token_counts is not None and model.masked_language_model is not None:
        counts = np.ones(config.encoder.vocab_size)
        counts[: len(token_counts)] += token_counts
        with torch.no_grad():
            model.masked_language_model.bias.copy_(torch.from_numpy(np.log(counts / counts.sum())))
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
