"""What the setting that saves memory does to a run."""

from typing import Any

import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.model import Encoder, EncoderConfig, ModelConfig, RotaryConfig, new_model
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.model.packed import PackedTokens
from bertsmith.recipes.pretraining.begin import new_state
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.training.config import TrainingConfig

CPU = Device("cpu", "fp32")


def _config(**training: Any) -> PretrainConfig:
    return PretrainConfig(sources=("text.txt",), training=TrainingConfig(**training))


def _model_config(**changes: Any) -> ModelConfig:
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
    return ModelConfig(encoder=EncoderConfig(**{**sizes, "intermediate_size": 16, **changes}))


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("family", [{}, {"family": "modern", "type_vocab_size": 0, "rotary": RotaryConfig()}])
def test_layers_are_made_anew_in_the_backward_pass_where_it_is_set(on: bool, family: dict[str, Any]) -> None:
    state = new_state(new_model(_model_config(**family), seed=0), _config(recompute_activations=on), CPU)
    assert isinstance(state.model.encoder, Encoder)
    runs: list[str] = []
    for number, layer in enumerate(state.model.encoder.layers):
        layer.register_forward_pre_hook(lambda *_, number=number: runs.append(str(number)))
    token_ids = torch.arange(9).numpy()
    packed = PackedTokens.build(token_ids, token_ids * 0, torch.tensor([0, 9]).numpy())
    state.model.encoder.packed(packed).sum().backward()
    assert runs == (["0", "1", "2", "2", "1", "0"] if on else ["0", "1", "2"])


def test_it_is_off_unless_set() -> None:
    assert _config().training.recompute_activations is False


def test_an_elmo_has_no_such_layers() -> None:
    model = new_model(elmo_of_like_size(_model_config()), seed=0)
    with pytest.raises(InputError, match="needs an encoder of transformer layers"):
        new_state(model, _config(recompute_activations=True), CPU)
    new_state(model, _config(), CPU)
