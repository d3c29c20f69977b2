from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError, field_validator, model_validator

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError


class _Sample(Config):
    mask_rate: float = Field(default=0.15, ge=0, le=1)
    """Share of tokens that are masked."""
    mode: Literal["fast", "exact"] = "fast"
    steps: int = 1

    @field_validator("steps")
    @classmethod
    def _is_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("Steps must be odd")
        return value


def _message(values: dict[str, Any]) -> str:
    with pytest.raises(InputError) as error:
        _Sample.parse(values, where="run.toml")
    return str(error.value)


def test_good_values_are_taken_and_defaults_fill_the_rest() -> None:
    assert _Sample.parse({"mask_rate": 0.4}, where="run.toml") == _Sample(mask_rate=0.4, mode="fast", steps=1)


def test_an_unknown_option_is_refused_with_its_nearest_or_the_whole_list() -> None:
    assert _message({"mask_rat": 0.1}) == (
        "run.toml may hold only known options. Received: mask_rat. Did you mean mask_rate?"
    )
    assert _message({"zzz": 1}).endswith("Received: zzz. Known options: mask_rate, mode, steps.")


def test_a_bad_value_is_told_with_its_option_its_rule_and_its_place() -> None:
    assert _message({"mask_rate": 15}) == (
        "mask_rate: input should be less than or equal to 1. Received: mask_rate=15. Change it in run.toml."
    )
    assert "'fast' or 'exact'. Received: mode='quick'" in _message({"mode": "quick"})
    assert _message({"steps": 4}).startswith("steps: steps must be odd. Received: steps=4.")


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        _Sample().steps = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_the_docstring_below_an_option_is_its_description() -> None:
    assert _Sample.model_fields["mask_rate"].description == "Share of tokens that are masked."


def test_a_name_off_a_closed_list_is_answered_with_the_nearest() -> None:
    class Shaped(Config):
        shape: Literal["round", "square"] = "round"

    with pytest.raises(InputError, match=r"'round' or 'square'.*shape='sqare'. Did you mean square\?"):
        Shaped.parse({"shape": "sqare"}, where="a test")
    with pytest.raises(InputError, match=r"shape='xyz'. Change it in a test"):
        Shaped.parse({"shape": "xyz"}, where="a test")


def test_what_a_validator_tells_in_full_is_told_as_it_is() -> None:
    class Ranged(Config):
        low: int = 0
        high: int = 1

        @model_validator(mode="after")
        def _are_in_order(self) -> "Ranged":
            if self.low > self.high:
                raise InputError("low must not exceed high", f"{self.low} and {self.high}", "Swap them.")
            return self

    with pytest.raises(InputError) as error:
        Ranged.parse({"low": 2}, where="a test")
    assert str(error.value) == "low must not exceed high. Received: 2 and 1. Swap them."
