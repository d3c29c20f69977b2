"""What a run with a time trains, where nobody said it: chosen once, written down, and the same when it goes on."""

from collections.abc import Callable
from typing import Any

from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import Device
from bertsmith.engine.rates import MachineRates, measured_rates
from bertsmith.planning.choice import SIZES, Asked, Choice, Size, choose
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.settings import put_given
from bertsmith.recipes.text_sources import given_tokenizer, is_corpus
from bertsmith.text.documents import find_files

_TRAINING_SHARE = 0.9
"""Of the time that is asked for, what is left after the tokenizer, the corpus and the validations."""
_LEAST_SECONDS = 20.0
"""In less time nothing is measured, and the smallest is chosen."""


def is_to_be_chosen(config: PretrainConfig) -> bool:
    """Whether the size of the model is to follow from a time: neither a model nor a size was given."""
    named = "start" in config.model.model_fields_set or bool(config.model.sizes)
    return config.length.minutes is not None and config.objective == "mlm" and not named


def chosen_settings(
    config: PretrainConfig,
    device: Device,
    notify: Callable[[str], None],
    *,
    measure: Callable[[Device], MachineRates] = measured_rates,
) -> dict[str, Any]:
    """Settings by dotted key that a time, a text and a machine suggest; why, is told in three lines.

    Args:
        config: what was asked for, with a time.
        device: where it will be trained.
        notify: is told why.
        measure: how fast the device is.
    """
    minutes = config.length.minutes or 0.0
    seconds = 60 * minutes * _TRAINING_SHARE
    if seconds < _LEAST_SECONDS:
        return _settings(SIZES[0])
    rates = measure(device)
    asked = _asked(config, seconds)
    found = choose(asked, rates)
    for line in _reasons(asked, found, minutes, rates, device):
        notify(line)
    of_training = {"batch_tokens": found.batch_tokens, "validation_tokens": found.validation_tokens}
    not_given = of_training.keys() - config.training.model_fields_set
    return _settings(found.size) | {f"training.{name}": of_training[name] for name in sorted(not_given)}


def with_settings(config: PretrainConfig, settings: dict[str, Any]) -> PretrainConfig:
    """The same with some settings by dotted key."""
    values = config.model_dump(mode="json", exclude_unset=True)
    put_given(values, settings)
    return PretrainConfig.parse(values, where="what was chosen")


def _settings(size: Size) -> dict[str, Any]:
    return {f"model.{name}": value for name, value in size.settings.items()}


def _asked(config: PretrainConfig, seconds: float) -> Asked:
    if is_corpus(config.sources[0]):
        text_bytes = Corpus.open(config.sources[0]).manifest.train.bytes
    else:
        text_bytes = sum(path.stat().st_size for path in find_files(config.sources))
    tokenizer = given_tokenizer(config.sources, config.tokenizer_folder, config.tokenizer)
    asked_size = config.tokenizer.vocab_size if "vocab_size" in config.tokenizer.model_fields_set else None
    return Asked(
        seconds=seconds,
        text_bytes=text_bytes,
        vocab_size=asked_size if tokenizer is None else tokenizer.vocab_size,
        batch_tokens=config.training.batch_tokens if "batch_tokens" in config.training.model_fields_set else None,
        max_length=config.max_length,
        validations=config.training.num_validations,
        mask_rate=with_start_defaults(config).masking.mask_rate,
    )


def _reasons(asked: Asked, found: Choice, minutes: float, rates: MachineRates, device: Device) -> list[str]:
    size = found.size
    why = "as given" if asked.vocab_size else "which a text of this size fills"
    return [
        f"chosen: {size.layers} layers of {size.hidden}, about what {minutes:g} minutes train best at "
        f"{rates.operations_per_second / 1e9:,.0f} GFLOP/s in {device.precision}, measured here",
        f"chosen: about {found.vocab_size:,} pieces, {why}",
        f"chosen: batches of {found.batch_tokens:,} tokens; about {found.tokens_per_second:,.0f} tokens a second make "
        f"{found.steps:,} steps, {found.passes:.1f} passes over the text",
    ]
