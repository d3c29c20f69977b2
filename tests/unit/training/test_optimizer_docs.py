"""The settings in docs/optimizers.md can be used as they stand and are those that were published."""

import re
import tomllib
from pathlib import Path

import pytest

from bertsmith.training.config import OptimizerConfig, TrainingConfig
from bertsmith.training.optimizer import new_optimizer
from made_corpora import made_model

_PAGE = (Path(__file__).parents[3] / "docs" / "optimizers.md").read_text(encoding="utf-8")
_FRAGMENTS = {
    section.partition("\n")[0]: re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    for section in re.split(r"^#+ ", _PAGE, flags=re.MULTILINE)
    if "```toml" in section
}
PUBLISHED = {
    "BERT": ("adam_published", 1e-4, 0.999, "linear", 256 * 512, 10_000 / 1_000_000),
    "RoBERTa": ("adamw", 6e-4, 0.98, "linear", 8_000 * 512, 24_000 / 500_000),
    "ALBERT": ("lamb", 1.76e-3, 0.999, "linear", 4_096 * 512, 3_125 / 125_000),
    "ModernBERT": ("stable_adamw", 8e-4, 0.98, "stable_then_decay", 4_608 * 1_024, 3 / 2_000),
}


def _settings(family: str) -> TrainingConfig:
    (fragment,) = _FRAGMENTS[family]
    values = tomllib.loads(fragment)
    assert list(values) == ["training"]
    return TrainingConfig.parse(values["training"], where="docs/optimizers.md")


def test_every_family_has_its_settings_and_no_other_block_of_toml_goes_untested() -> None:
    assert {family: len(fragments) for family, fragments in _FRAGMENTS.items()} == dict.fromkeys(PUBLISHED, 1)


@pytest.mark.parametrize("family", PUBLISHED)
def test_settings_are_the_published_ones_and_make_an_optimizer(family: str) -> None:
    settings = _settings(family)
    optimizer, schedule = settings.optimizer, settings.schedule
    found = (optimizer.kind, optimizer.learning_rate, optimizer.beta2, schedule.shape, settings.batch_tokens)
    assert (*found, pytest.approx(schedule.warmup_share)) == PUBLISHED[family]
    assert (optimizer.eps, optimizer.layer_decay, optimizer.matrices) == (1e-6, 1.0, "same")
    assert new_optimizer(made_model(40), optimizer).param_groups


def test_modern_decay_is_the_published_one_at_the_highest_rate() -> None:
    optimizer = _settings("ModernBERT").optimizer
    assert optimizer.weight_decay * optimizer.learning_rate == pytest.approx(1e-5)


def test_every_setting_of_the_optimizer_is_told_on_the_page() -> None:
    assert [name for name in OptimizerConfig.model_fields if name not in _PAGE] == []
