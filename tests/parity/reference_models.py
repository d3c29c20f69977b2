"""The reference's classes for random models, and how outputs are set side by side."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
import transformers
from random_models import Inputs, enlarge
from torch import Tensor
from transformers import (
    AlbertConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForNextSentencePrediction,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertConfig,
    DistilBertConfig,
    ModernBertConfig,
    PreTrainedConfig,
    PreTrainedModel,
    RobertaConfig,
)

from bertsmith.folders.config_json import architecture
from bertsmith.folders.formats import named_format
from bertsmith.model import Model, ModelConfig
from bertsmith.model.encoder import pack_padded

_OPENERS: dict[str, Any] = {
    "ForMaskedLM": AutoModelForMaskedLM,
    "LMHeadModel": AutoModelForCausalLM,
    "ForNextSentencePrediction": AutoModelForNextSentencePrediction,
    "ForPreTraining": AutoModelForPreTraining,
    "ForSequenceClassification": AutoModelForSequenceClassification,
    "ForMultipleChoice": AutoModelForMultipleChoice,
    "ForTokenClassification": AutoModelForTokenClassification,
    "ForQuestionAnswering": AutoModelForQuestionAnswering,
    "Model": AutoModel,
}
_ACTIVATION_NAMES = {"gelu": ("gelu",), "gelu_tanh": ("gelu_new", "gelu_pytorch_tanh"), "relu": ("relu",)}


def opener(class_name: str) -> Any:
    """The Auto class that opens a folder of this class."""
    return next(value for ending, value in _OPENERS.items() if class_name.endswith(ending))


def reference_config(config: ModelConfig, number: int, **more: object) -> PreTrainedConfig:
    """The reference's config for ours, each field under its own name."""
    encoder, heads = config.encoder, config.heads
    names = _ACTIVATION_NAMES[encoder.activation]
    activation = names[number % len(names)]
    shared = {
        "vocab_size": encoder.vocab_size,
        "hidden_size": encoder.hidden_size,
        "num_hidden_layers": encoder.num_hidden_layers,
        "num_attention_heads": encoder.num_attention_heads,
        "intermediate_size": encoder.intermediate_size,
        "max_position_embeddings": encoder.max_position_embeddings,
        "pad_token_id": encoder.pad_token_id,
        "tie_word_embeddings": heads.tie_embeddings,
        **({"id2label": dict(enumerate(heads.labels))} if heads.labels else {}),
        **more,
    }
    of_bert = {
        "hidden_act": activation,
        "type_vocab_size": encoder.type_vocab_size,
        "layer_norm_eps": encoder.layer_norm_eps,
        "hidden_dropout_prob": encoder.dropout.feed_forward,
        "attention_probs_dropout_prob": encoder.dropout.attention_weights,
    }
    match encoder.family:
        case "bert":
            decoder = {"is_decoder": True} if encoder.causal else {}
            return BertConfig(**shared, **of_bert, **decoder, classifier_dropout=heads.classifier_dropout)
        case "roberta":
            return RobertaConfig(**shared, **of_bert, classifier_dropout=heads.classifier_dropout)
        case "albert":
            return AlbertConfig(
                **shared,
                **of_bert,
                embedding_size=encoder.embedding_size,
                num_hidden_groups=encoder.num_hidden_groups,
                classifier_dropout_prob=heads.classifier_dropout,
            )
        case "distilbert":
            renamed = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
            renamed["intermediate_size"] = "hidden_dim"
            return DistilBertConfig(
                **{renamed.get(name, name): value for name, value in shared.items()},
                activation=activation,
                dropout=encoder.dropout.feed_forward,
                attention_dropout=encoder.dropout.attention_weights,
                seq_classif_dropout=heads.classifier_dropout,
            )
        case _:
            return _modern_config(config, activation, shared)


def _modern_config(config: ModelConfig, activation: str, shared: dict[str, Any]) -> ModernBertConfig:
    encoder, heads, rotary = config.encoder, config.heads, config.encoder.rotary
    assert rotary is not None
    return ModernBertConfig(
        **shared,
        hidden_activation=activation,
        classifier_activation=activation,
        norm_eps=encoder.layer_norm_eps,
        global_attn_every_n_layers=rotary.global_every,
        local_attention=rotary.window,
        global_rope_theta=rotary.global_theta,
        local_rope_theta=rotary.local_theta,
        embedding_dropout=encoder.dropout.embeddings,
        attention_dropout=encoder.dropout.attention_weights,
        mlp_dropout=encoder.dropout.feed_forward,
        classifier_dropout=heads.classifier_dropout,
        classifier_pooling="mean" if heads.classifier_input == "mean" else "cls",
    )


def reference_model(config: ModelConfig, number: int, **more: object) -> PreTrainedModel:
    """A model of the reference with large random weights and the heads of `config`."""
    name = architecture(config)
    assert name is not None
    kind = getattr(transformers, name)
    built = reference_config(config, number, **more)
    has_choice = "add_pooling_layer" in inspect.signature(kind.__init__).parameters
    model = kind(built, add_pooling_layer=config.heads.pooler) if has_choice else kind(built)
    enlarge(model, number)
    return model.eval()


def has_prefix(config: ModelConfig) -> bool:
    """Whether the encoder's weights stand below a prefix, as they do in every class with heads."""
    return architecture(config) != named_format(config).encoder_class


def our_outputs(model: Model, inputs: Inputs) -> dict[str, Tensor]:
    """Everything that `model` computes, at real tokens only: `[tokens, ...]`, or `[sequences, ...]`."""
    skip = model.config.encoder.family == "roberta"
    packed = pack_padded(inputs.token_ids, inputs.real, inputs.segment_ids, skip=skip)
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
    if model.sentence_order is not None:
        outputs["sentence order"] = model.sentence_order(model.pooled(layers[-1], packed))
    if model.classifier is not None:
        outputs["labels"] = model.classify(layers[-1], packed)
    return outputs


def named_for(model: PreTrainedModel, inputs: Inputs) -> dict[str, Tensor]:
    """The inputs that the class takes: not every family has segments."""
    takes = inspect.signature(model.forward).parameters
    return {name: value for name, value in inputs.named.items() if name in takes}


def reference_outputs(model: PreTrainedModel, inputs: Inputs) -> dict[str, Tensor]:
    """The same out of the reference.

    Its heads for whole texts read the first column. Where a row is padded from the left that is padding, so they are
    given the first real token instead.
    """
    result = model(**named_for(model, inputs), output_hidden_states=True)
    layers = result.hidden_states[1:]
    first = inputs.real.long().argmax(1)
    hidden = layers[-1][torch.arange(len(first)), first]
    kind = type(model).__name__
    outputs = {f"layer {number}": layer[inputs.real] for number, layer in enumerate(layers, 1)}
    outputs["padded view"] = (layers[-1] if result.get("last_hidden_state") is None else result.last_hidden_state)[
        inputs.real
    ]
    if getattr(model.base_model, "pooler", None) is not None:
        outputs["pooled"] = _pooled(model, hidden)
    if kind.endswith(("ForMaskedLM", "LMHeadModel", "ForPreTraining")):
        scores = result.logits if "logits" in result else result.prediction_logits
        outputs["vocabulary"] = scores[inputs.real]
    theirs: Tensor | None = None
    if hasattr(model, "cls") and hasattr(model.cls, "seq_relationship"):
        outputs["next sentence"] = model.cls.seq_relationship(outputs["pooled"])
        theirs = result.logits if "logits" in result else result.seq_relationship_logits
    elif hasattr(model, "cls") and kind.endswith("ForNextSentencePrediction"):
        outputs["next sentence"] = model.cls(outputs["pooled"])
        theirs = result.logits
    if hasattr(model, "sop_classifier"):
        outputs["sentence order"] = model.sop_classifier(outputs["pooled"])
        theirs = result.sop_logits
    if kind.endswith("ForSequenceClassification"):
        mean = getattr(model.config, "classifier_pooling", "cls") == "mean"
        outputs["labels"] = result.logits if mean else _CLASSIFIERS[model.config.model_type](model, hidden)
        theirs = result.logits
    if theirs is not None:
        last = list(outputs.values())[-1]
        torch.testing.assert_close(last[first == 0], theirs[first == 0])
    return outputs


def _pooled(model: PreTrainedModel, first: Tensor) -> Tensor:
    base = model.base_model
    if base.config.model_type == "albert":
        return base.pooler_activation(base.pooler(first))
    return base.pooler(first[:, None])


_CLASSIFIERS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "bert": lambda model, first: model.classifier(_pooled(model, first)),
    "albert": lambda model, first: model.classifier(_pooled(model, first)),
    "roberta": lambda model, first: model.classifier(first[:, None]),
    "distilbert": lambda model, first: model.classifier(torch.relu(model.pre_classifier(first))),
    "modernbert": lambda model, first: model.classifier(model.head(first)),
}


def assert_same_outputs(
    ours: dict[str, Tensor], theirs: dict[str, Tensor], tolerance: float, *, to_scale: bool = False
) -> None:
    """Compare every output; `to_scale` lets the tolerance grow with the largest number where that is above 1."""
    assert list(ours) == list(theirs)
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
