"""Random small models and batches of every family."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.foundation.random_streams import derived_seed, random_stream
from bertsmith.model import Dropout, EncoderConfig, HeadsConfig, ModelConfig, RotaryConfig

LABELS = ("no", "perhaps", "yes")
ENCODER = HeadsConfig(masked_language_model=False)
POOLER = HeadsConfig(masked_language_model=False, pooler=True)
TIED, UNTIED = HeadsConfig(tie_embeddings=True), HeadsConfig(tie_embeddings=False)
CLASSIFIER = HeadsConfig(masked_language_model=False, labels=LABELS)
POOLED_CLASSIFIER = HeadsConfig(masked_language_model=False, pooler=True, labels=LABELS)
HEADS: dict[str, tuple[HeadsConfig, ...]] = {
    "bert": (
        ENCODER,
        POOLER,
        HeadsConfig(masked_language_model=False, pooler=True, next_sentence=True),
        TIED,
        UNTIED,
        HeadsConfig(tie_embeddings=True, pooler=True, next_sentence=True),
        HeadsConfig(tie_embeddings=False, pooler=True, next_sentence=True),
        POOLED_CLASSIFIER,
    ),
    "causal": (ENCODER, POOLER, TIED, UNTIED),
    "roberta": (ENCODER, POOLER, TIED, UNTIED, CLASSIFIER),
    "albert": (
        ENCODER,
        POOLER,
        TIED,
        UNTIED,
        HeadsConfig(tie_embeddings=True, pooler=True, sentence_order=True),
        HeadsConfig(tie_embeddings=False, pooler=True, sentence_order=True),
        POOLED_CLASSIFIER,
    ),
    "distilbert": (ENCODER, TIED, UNTIED, CLASSIFIER),
    "modern": (ENCODER, TIED, UNTIED, CLASSIFIER, CLASSIFIER.model_copy(update={"classifier_input": "mean"})),
}
"""The heads that a class of the reference has, by kind of model; `causal` is BERT as a decoder."""
KINDS = tuple(HEADS)
ACTIVATIONS = ("gelu", "gelu_tanh", "relu")
SMALLEST_VOCABULARY = 12


@dataclass(frozen=True)
class Inputs:
    """One padded batch. Padding holds arbitrary tokens, so that whoever looks at it gives other outputs."""

    token_ids: Tensor
    real: Tensor
    segment_ids: Tensor

    @property
    def named(self) -> dict[str, Tensor]:
        return {
            "input_ids": self.token_ids,
            "attention_mask": self.real.long(),
            "token_type_ids": self.segment_ids,
        }


def random_config(kind: str, number: int) -> ModelConfig:
    """The config of a case. Kinds of heads follow one another; all else is drawn."""
    stream = random_stream(number, "parity config", kind)
    num_heads = int(stream.integers(1, 5))
    layers = int(stream.integers(1, 5))
    values: dict[str, Any] = {
        "family": "bert" if kind == "causal" else kind,
        "vocab_size": int(stream.integers(SMALLEST_VOCABULARY, 90)),
        "hidden_size": num_heads * int(stream.integers(-(-8 // num_heads), 11)),
        "num_hidden_layers": layers,
        "num_attention_heads": num_heads,
        "intermediate_size": int(stream.integers(1, 60)),
        "activation": str(stream.choice(ACTIVATIONS)),
        "max_position_embeddings": int(stream.integers(1, 40)),
        "type_vocab_size": int(stream.integers(1, 4)),
        "layer_norm_eps": float(stream.choice([1e-12, 1e-5])),
        "dropout": Dropout.everywhere(float(stream.choice([0.0, 0.1]))),
    }
    values |= _own_fields(kind, values, stream)
    heads = HEADS[kind]
    return ModelConfig(encoder=EncoderConfig.parse(values, where="a case"), heads=heads[number % len(heads)])


def _own_fields(kind: str, drawn: dict[str, Any], stream: np.random.Generator) -> dict[str, Any]:
    """The fields in which a kind of model differs from BERT."""
    layers, rate = drawn["num_hidden_layers"], drawn["dropout"].feed_forward
    match kind:
        case "causal":
            return {"causal": True}
        case "roberta":
            padding = int(stream.integers(0, 4))
            return {
                "pad_token_id": padding,
                "max_position_embeddings": drawn["max_position_embeddings"] + padding + 1,
            }
        case "albert":
            groups = [number for number in range(1, layers + 1) if layers % number == 0]
            width = drawn["hidden_size"] if stream.random() < 0.3 else int(stream.integers(2, 50))
            return {"num_hidden_groups": int(stream.choice(groups)), "embedding_size": width}
        case "distilbert":
            rates = Dropout(embeddings=rate, attention_weights=float(stream.choice([0.0, 0.2])), feed_forward=rate)
            return {"type_vocab_size": 0, "layer_norm_eps": 1e-12, "dropout": rates}
        case "modern":
            # Windows from far narrower than the sequences to wider than all of them.
            rotary = RotaryConfig(
                global_every=int(stream.integers(1, 4)),
                window=2 * int(stream.choice([1, 2, 4, 8, 40])),
                global_theta=float(stream.choice([160_000.0, 500.0])),
                local_theta=float(stream.choice([10_000.0, 30.0])),
            )
            width = 2 * drawn["num_attention_heads"] * int(stream.integers(2, 6))
            dropout = Dropout(embeddings=rate, feed_forward=float(stream.choice([0.0, 0.2])))
            return {"type_vocab_size": 0, "rotary": rotary, "hidden_size": width, "dropout": dropout}
        case _:
            return {}


@torch.no_grad()
def enlarge(model: nn.Module, number: int) -> None:
    """Draw every weight so large that one in a wrong place shows."""
    generator = torch.Generator().manual_seed(derived_seed(number, "parity weights"))
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        is_norm = "norm" in name.lower() and name.endswith("weight")
        parameter.copy_(1.0 + 0.3 * drawn if is_norm else 0.2 * drawn)


def random_inputs(config: EncoderConfig, number: int) -> Inputs:
    """Rows of lengths from 1 to all positions, padded on one side or the other, the longest with no padding.

    RoBERTa's positions in the reference count what is not its padding token, so there padding is that, and nothing else
    is.
    """
    stream = random_stream(number, "parity inputs")
    batch = int(stream.integers(1, 6))
    width = config.num_positions if number % 3 else int(stream.integers(1, config.num_positions + 1))
    lengths = stream.integers(1, width + 1, batch)
    lengths[stream.integers(batch)] = width
    if number % 4 == 0:
        lengths[stream.integers(batch)] = 1
    columns = np.arange(width)
    from_the_left = stream.random(batch) < 0.3
    real = np.where(from_the_left[:, None], columns >= width - lengths[:, None], columns < lengths[:, None])
    turns = np.sort(stream.integers(0, width + 1, (batch, max(config.type_vocab_size, 1) - 1)), axis=1)
    segment_ids = (columns[None, :, None] >= turns[:, None, :]).sum(-1)
    token_ids = stream.integers(0, config.vocab_size, (batch, width))
    if config.family == "roberta":
        token_ids = np.where(real, _without(config, token_ids), config.pad_token_id)
    return Inputs(torch.from_numpy(token_ids), torch.from_numpy(real), torch.from_numpy(segment_ids))


def without_padding_token(config: EncoderConfig, inputs: Inputs) -> Inputs:
    """The same with another token wherever the padding token is a real one.

    The reference keeps the embedding of its padding token out of every gradient.
    """
    other = torch.from_numpy(_without(config, inputs.token_ids.numpy()))
    return Inputs(other.where(inputs.real, inputs.token_ids), inputs.real, inputs.segment_ids)


def _without(config: EncoderConfig, token_ids: np.ndarray) -> np.ndarray:
    return np.where(token_ids == config.pad_token_id, (config.pad_token_id + 1) % config.vocab_size, token_ids)
