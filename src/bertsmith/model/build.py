"""Making models with fresh weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import nn
from torch.overrides import TorchFunctionMode

from bertsmith.model.attention import AttentionKind
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder import Encoder
from bertsmith.model.heads import Model
from bertsmith.model.layer import PreNormLayer
from bertsmith.model.pretraining_heads import VocabularyHead
from bertsmith.model.recurrent import RecurrentEncoder, initialise_lstm


def empty_model(config: ModelConfig, *, attention: AttentionKind = "fused") -> Model:
    """A model whose weights are allocated but not set: for a reader that fills them all."""
    # As `to_empty` does it, which finds out the shape by way of torch's symbolic algebra, half a second to load.
    return meta_model(config, attention=attention)._apply(lambda value: torch.empty(value.shape, dtype=value.dtype))


def meta_model(config: ModelConfig, *, attention: AttentionKind = "fused") -> Model:
    """A model that has shapes and no memory, of any size: for counting."""
    with torch.device("meta"), _Unset():
        if config.encoder.family == "elmo":
            encoder = RecurrentEncoder(config.encoder)
        else:
            encoder = Encoder(config.encoder, attention=attention)
        return Model(config, encoder, encoder.embeddings.token)


class _Unset(TorchFunctionMode):
    """Leaves parameters as they are made.

    To draw numbers for a tensor without memory, torch loads its compiler, which takes a second.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return kwargs["tensor"] if kwargs and "tensor" in kwargs else args[0]
        return func(*args, **(kwargs or {}))


def num_parameters(module: nn.Module) -> int:
    """Parameters of a module; what is tied or shared counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


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
    _calm_residual_stream(model)
    if token_counts is not None and model.masked_language_model is not None:
        counts = np.ones(config.encoder.vocab_size)
        counts[: len(token_counts)] += token_counts
        with torch.no_grad():
            model.masked_language_model.bias.copy_(torch.from_numpy(np.log(counts / counts.sum())))
    return model


@torch.no_grad()
def _calm_residual_stream(model: Model) -> None:
    """Make what pre-norm layers add smaller by sqrt(2 x layers), so that their sum begins no larger with depth."""
    layers = [module for module in model.modules() if isinstance(module, PreNormLayer)]
    for layer in layers:
        for linear in (layer.attention.output, layer.feed_forward.down):
            linear.weight.mul_((2 * len(layers)) ** -0.5)


@torch.no_grad()
def initialise(model: nn.Module, standard_deviation: float, generator: torch.Generator) -> None:
    """Set every weight under `model` anew."""
    for module in model.modules():
        match module:
            case nn.Linear():
                module.weight.normal_(0.0, standard_deviation, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()
            case nn.Embedding():
                module.weight.normal_(0.0, standard_deviation, generator=generator)
            case nn.LayerNorm():
                module.weight.fill_(1.0)
                if module.bias is not None:
                    module.bias.zero_()
            case nn.LSTM():
                initialise_lstm(module, generator)
            case VocabularyHead():
                module.bias.zero_()
                if module.untied is not None:
                    module.untied.normal_(0.0, standard_deviation, generator=generator)
            case _:
                pass
