"""Settings of any run: where it runs, and how files, options and assignments become the values of its config."""

import copy
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from bertsmith.foundation.config import Config
from bertsmith.foundation.errors import InputError

_NAMED = Path(__file__).parent / "configs"
_LENGTHS = ("length.epochs", "length.steps", "length.minutes")


class RuntimeConfig(Config):
    """Where a run runs. Nothing here is part of what the run is, so a resume may change it, precision excepted."""

    device: str = "auto"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    threads: Annotated[int, Field(ge=1)] | None = None


def given_settings(
    file: Path | None, options: dict[str, Any], assignments: Sequence[str], *, by_name: bool = False
) -> dict[str, Any]:
    """Values for a run's config out of a file, options over it, and assignments over both.

    Args:
        file: a TOML file, or None.
        options: values by dotted key; None says that an option was not given. A length takes the place of the file's.
        assignments: ``key=value``. A length takes the place of the file's here too.
        by_name: whether `file` may be the name of settings that come with the package, as those of a pre-training may.

    Raises:
        InputError: if the file is none, or an assignment is none.
    """
    values = read_settings(file, by_name=by_name) if file is not None else {}
    given = {key for key, value in options.items() if value is not None}
    given |= {assignment.partition("=")[0].strip() for assignment in assignments}
    if not given.isdisjoint(_LENGTHS):
        values["length"] = {}
    put_given(values, options)
    return with_assignments(values, assignments)


def named_settings() -> list[str]:
    """Names of the settings that come with the package, all of pre-trainings: published ones, and experiments."""
    return sorted(path.stem for path in _NAMED.glob("*.toml"))


def read_settings(path: Path, *, by_name: bool = True) -> dict[str, Any]:
    """Settings out of a TOML file, such as a run's `run.toml`, or those of a name where there is no such file.

    Args:
        path: the file, or the name.
        by_name: whether a name will do.

    Raises:
        InputError: if there is neither, or the file is no TOML.
    """
    if by_name and not path.is_file() and str(path) in named_settings():
        path = _NAMED / f"{path}.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise _no_settings(path, by_name=by_name) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be TOML", error, "Mend the line that is named.") from None
    values.pop("record", None)
    return values


def _no_settings(path: Path, *, by_name: bool) -> InputError:
    rule, known = "--config must name a TOML file", named_settings()
    if by_name:
        do = f"Check the path, or use one of: {', '.join(known)}."
        return InputError(f"{rule}, or settings that come with the package", f"no file {path}", do)
    what = f"{path}, the name of settings of a pre-training" if str(path) in known else f"no file {path}"
    return InputError(rule, what, "Check the path.")


def with_assignments(values: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Values with ``key=value`` assignments put in; dots in a key lead into tables.

    Raises:
        InputError: for one that is no assignment.
    """
    merged = copy.deepcopy(values)
    for assignment in assignments:
        key, sign, text = (part.strip() for part in assignment.partition("="))
        if not sign or not key:
            raise InputError("--set takes key=value", assignment, "For example: --set training.seed=1.")
        put(merged, key, _value(text))
    return merged


def told_where(config: str | Path | None, beside: str) -> str:
    """What an error of settings names: `beside`, such as the options of a command, and perhaps the file before them."""
    return beside if config is None else f"{config} or {beside}"


def put_given(values: dict[str, Any], options: dict[str, Any]) -> None:
    """Set the dotted keys whose value was given; None says that it was not."""
    for key, value in options.items():
        if value is not None:
            put(values, key, value)


def put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key, making the tables that lead to it."""
    *tables, last = key.split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise InputError("--set must lead to an option", f"{key}, where {table} is no table", "Check the key.")
    # TOML, in which a run is written down, knows no numbers of numpy's.
    values[last] = value.item() if isinstance(value, np.generic) else value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
