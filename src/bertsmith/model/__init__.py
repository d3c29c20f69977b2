"""The encoder: config, presets, embeddings, attention, layers, heads, and the packed batch it takes."""

from bertsmith.model.build import empty_model, meta_model, new_model
from bertsmith.model.config import HeadsConfig, ModelConfig
from bertsmith.model.encoder import Encoder
from bertsmith.model.encoder_config import Dropout, EncoderConfig, RotaryConfig
from bertsmith.model.heads import Model
from bertsmith.model.packed import PackedTokens
from bertsmith.model.presets import PRESETS, preset

__all__ = [
    "PRESETS",
    "Dropout",
    "Encoder",
    "EncoderConfig",
    "HeadsConfig",
    "Model",
    "ModelConfig",
    "PackedTokens",
    "RotaryConfig",
    "empty_model",
    "meta_model",
    "new_model",
    "preset",
]
