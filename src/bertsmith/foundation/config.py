"""The base of every config: frozen, closed, and with messages that name the option a person typed."""

import re
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from bertsmith.foundation.errors import InputError, near_match

_Config = TypeVar("_Config", bound="Config")


class Config(BaseModel):
    """A frozen pydantic model that refuses unknown keys and names the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def parse(cls: type[_Config], values: dict[str, Any], *, where: str) -> _Config:
        """Build the config from plain values.

        Args:
            values: keys and values as TOML, JSON or the command line gave them.
            where: what a person would recognise as the place they came from, such as a file's name.

        Raises:
            InputError: for an unknown key or a value outside its rule; the first fault found is told. What a validator
                raises as an `InputError` is told as it is.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise _first_fault(cls, error, where) from None


def _first_fault(cls: type[BaseModel], error: ValidationError, where: str) -> InputError:
    fault = error.errors()[0]
    raised = fault.get("ctx", {}).get("error")
    if isinstance(raised, InputError):
        return raised
    name = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        known = _fields_beside(cls, fault["loc"])
        near = near_match(str(fault["loc"][-1]), known)
        do = f"Did you mean {near}?" if near else f"Known options: {', '.join(sorted(known))}."
        return InputError(f"{where} may hold only known options", name, do)
    message = fault["msg"].removeprefix("Value error, ")
    rule = f"{name or where}: {message[0].lower()}{message[1:]}"
    # For a name off a closed list pydantic writes the list into its message alone, each name in quotes.
    known = (
        re.findall(r"'([^']+)'", fault.get("ctx", {}).get("expected", "")) if fault["type"] == "literal_error" else ()
    )
    near = near_match(str(fault["input"]), known)
    do = f"Did you mean {near}?" if near else f"Change it in {where}."
    return InputError(rule, f"{name}={fault['input']!r}" if name else where, do)


def _fields_beside(cls: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """Names of the fields of the config in which the last part of `place` stands."""
    for part in place[:-1]:
        field = cls.model_fields.get(str(part))
        annotation = field.annotation if field is not None else None
        # A table that may be left out is written as `Table | None`.
        tables = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
        tables = [kind for kind in tables if issubclass(kind, BaseModel)]
        if not tables:
            return []
        cls = tables[0]
    return list(cls.model_fields)
