"""Random small BERTs and batches, and how their outputs are set beside those of the reference classes."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertModel,
    PreTrainedModel,
)

from bertsmith.folders.config_json import architecture
from bertsmith.foundation.random_streams import derived_seed, random_stream
from bertsmith.model import Dropout, EncoderConfig, HeadsConfig, Model, ModelConfig
from bertsmith.model.encoder import pack_padded

REFERENCE: dict[str, type[PreTrainedModel]] = {
    "BertModel": BertModel,
    "BertForMaskedLM": BertForMaskedLM,
    "BertForNextSentencePrediction": BertForNextSentencePrediction,
    "BertForPreTraining": BertForPreTraining,
}
HEADS = (
    HeadsConfig(masked_language_model=False),
    HeadsConfig(masked_language_model=False, pooler=True),
    HeadsConfig(masked_language_model=False, pooler=True, next_sentence=True),
    HeadsConfig(tie_embeddings=True),
    HeadsConfig(tie_embeddings=False),
    HeadsConfig(tie_embeddings=True, pooler=True, next_sentence=True),
    HeadsConfig(tie_embeddings=False, pooler=True, next_sentence=True),
)
REFERENCE_ACTIVATIONS = {"gelu": ("gelu",), "gelu_tanh": ("gelu_new", "gelu_pytorch_tanh"), "relu": ("relu",)}
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


def random_config(number: int) -> ModelConfig:
    """The config of a case. Kinds of heads follow one another; all else is drawn."""
    stream = random_stream(number, "parity config")
    num_heads = int(stream.integers(1, 5))
    dropout = float(stream.choice([0.0, 0.1]))
    encoder = EncoderConfig(
        vocab_size=int(stream.integers(SMALLEST_VOCABULARY, 90)),
        hidden_size=num_heads * int(stream.integers(-(-8 // num_heads), 11)),
        num_hidden_layers=int(stream.integers(1, 5)),
        num_attention_heads=num_heads,
        intermediate_size=int(stream.integers(1, 60)),
        activation=stream.choice(list(REFERENCE_ACTIVATIONS)).item(),
        max_position_embeddings=int(stream.integers(1, 40)),
        type_vocab_size=int(stream.integers(1, 4)),
        layer_norm_eps=float(stream.choice([1e-12, 1e-5])),
        dropout=Dropout.everywhere(dropout),
    )
    return ModelConfig(encoder=encoder, heads=HEADS[number % len(HEADS)])


def reference_config(config: ModelConfig, number: int, **more: object) -> BertConfig:
    encoder = config.encoder
    names = REFERENCE_ACTIVATIONS[encoder.activation]
    return BertConfig(
        vocab_size=encoder.vocab_size,
        hidden_size=encoder.hidden_size,
        num_hidden_layers=encoder.num_hidden_layers,
        num_attention_heads=encoder.num_attention_heads,
        intermediate_size=encoder.intermediate_size,
        hidden_act=names[number // len(HEADS) % len(names)],
        max_position_embeddings=encoder.max_position_embeddings,
        type_vocab_size=encoder.type_vocab_size,
        layer_norm_eps=encoder.layer_norm_eps,
        hidden_dropout_prob=encoder.dropout.feed_forward,
        attention_probs_dropout_prob=encoder.dropout.attention_weights,
        tie_word_embeddings=config.heads.tie_embeddings,
        **more,
    )


def reference_model(config: ModelConfig, number: int, **more: object) -> PreTrainedModel:
    """A model of the reference with large random weights and the heads of `config`."""
    kind = REFERENCE[architecture(config.heads)]
    built = reference_config(config, number, **more)
    model = kind(built, add_pooling_layer=config.heads.pooler) if kind is BertModel else kind(built)
    enlarge(model, number)
    return model.eval()


@torch.no_grad()
def enlarge(model: nn.Module, number: int) -> None:
    """Draw every weight so large that one in a wrong place shows."""
    generator = torch.Generator().manual_seed(derived_seed(number, "parity weights"))
    for name, parameter in model.named_parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        is_norm = "norm" in name.lower() and name.endswith("weight")
        parameter.copy_(1.0 + 0.3 * drawn if is_norm else 0.2 * drawn)


def random_inputs(config: EncoderConfig, number: int) -> Inputs:
    """Rows of lengths from 1 to all positions, padded on one side or the other, the longest with no padding."""
    stream = random_stream(number, "parity inputs")
    batch = int(stream.integers(1, 6))
    width = (
        config.max_position_embeddings if number % 3 else int(stream.integers(1, config.max_position_embeddings + 1))
    )
    lengths = stream.integers(1, width + 1, batch)
    lengths[stream.integers(batch)] = width
    if number % 4 == 0:
        lengths[stream.integers(batch)] = 1
    columns = np.arange(width)
    from_the_left = stream.random(batch) < 0.3
    real = np.where(from_the_left[:, None], columns >= width - lengths[:, None], columns < lengths[:, None])
    turns = np.sort(stream.integers(0, width + 1, (batch, config.type_vocab_size - 1)), axis=1)
    segment_ids = (columns[None, :, None] >= turns[:, None, :]).sum(-1)
    token_ids = stream.integers(0, config.vocab_size, (batch, width))
    return Inputs(torch.from_numpy(token_ids), torch.from_numpy(real), torch.from_numpy(segment_ids))


def our_outputs(model: Model, inputs: Inputs) -> dict[str, Tensor]:
    """Everything that `model` computes, at real tokens only: `[tokens, ...]`, or `[sequences, ...]`."""
    packed = pack_padded(inputs.token_ids, inputs.real, inputs.segment_ids)
    layers = list(model.encoder.layer_outputs(packed))
    outputs = {f"layer {number}": hidden for number, hidden in enumerate(layers, 1)}
    padded = model.encoder(inputs.token_ids, inputs.real.long(), inputs.segment_ids)
    outputs["padded view"] = padded[inputs.real]
    if model.pooler is not None:
        outputs["pooled"] = model.pooled(layers[-1], packed)
    if model.masked_language_model is not None:
        outputs["vocabulary"] = model.masked_language_model(layers[-1])
    if model.next_sentence is not None:
        outputs["next sentence"] = model.next_sentence(model.pooled(layers[-1], packed))
    return outputs


def reference_outputs(model: PreTrainedModel, inputs: Inputs) -> dict[str, Tensor]:
    """The same out of the reference.

    Its pooler reads the first column. Where a row is padded from the left that is padding, so pooler and next-sentence
    head are given the first real token instead.
    """
    first = inputs.real.long().argmax(1)
    rows = torch.arange(len(first))
    result = model(**inputs.named, output_hidden_states=True)
    layers = result.hidden_states[1:]
    outputs = {f"layer {number}": hidden[inputs.real] for number, hidden in enumerate(layers, 1)}
    outputs["padded view"] = layers[-1][inputs.real]
    pooler = model.base_model.pooler
    if pooler is not None:
        outputs["pooled"] = pooler(layers[-1][rows, first][:, None])
    scores = result.get("prediction_logits", None if pooler is not None else result.get("logits"))
    if scores is not None:
        outputs["vocabulary"] = scores[inputs.real]
    if pooler is not None and hasattr(model, "cls"):
        outputs["next sentence"] = model.cls.seq_relationship(outputs["pooled"])
        theirs = result.get("seq_relationship_logits", result.get("logits"))
        torch.testing.assert_close(outputs["next sentence"][first == 0], theirs[first == 0])
    return outputs


def assert_same_outputs(
    ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float, *, to_scale: bool = False
) -> None:
    """Compare every output; `to_scale` lets the tolerance grow with the largest number where that is above 1."""
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert ours[name].dtype == expected.dtype
        assert ours[name].shape == expected.shape
        assert torch.isfinite(expected).all()
        difference = (ours[name] - expected).abs().max().item()
        scale = max(1.0, expected.abs().max().item()) if to_scale else 1.0
        assert difference <= tolerance * scale, f"{name} differs by {difference:.2g}"


def assert_parity(
    ours: Model, theirs: PreTrainedModel, inputs: Inputs, *, single: float, double: float, to_scale: bool = False
) -> None:
    """Compare in fp32 and in float64, with and without a gradient, for which attention has kernels of its own.

    Both models are float64 afterwards.
    """
    for model in (ours, theirs):
        model.eval()
    for tolerance in (single, double):
        with torch.no_grad():
            expected = reference_outputs(theirs, inputs)
        for with_gradient in (False, True):
            with torch.set_grad_enabled(with_gradient):
                assert_same_outputs(our_outputs(ours, inputs), expected, tolerance, to_scale=to_scale)
        ours.double()
        theirs.double()
