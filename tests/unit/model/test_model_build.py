"""Making a model: shapes come first, without memory, and nothing is loaded that only a compiler needs."""

import subprocess
import sys

import pytest
from small_models import KINDS, encoder_config

from bertsmith.model import ModelConfig, new_model
from bertsmith.model.build import empty_model, meta_model


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_shapes_has_those_of_a_real_one_and_its_ties(kind: str) -> None:
    config = ModelConfig(encoder=encoder_config(**KINDS[kind]))
    real = new_model(config, seed=0)
    for device, model in (("meta", meta_model(config)), ("cpu", empty_model(config))):
        found = dict(model.named_parameters())
        assert {name: value.shape for name, value in found.items()} == {
            name: value.shape for name, value in real.named_parameters()
        }
        assert {value.device.type for value in found.values()} == {device}
        assert {buffer.device.type for buffer in model.buffers()} <= {device}


def test_making_a_model_loads_no_compiler() -> None:
    script = """
import sys
from bertsmith.model import ModelConfig, new_model, preset
new_model(ModelConfig(encoder=preset("bert-toy", vocab_size=100)), seed=0)
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
