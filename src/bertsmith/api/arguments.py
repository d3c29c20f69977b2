"""What the functions that train are given, brought into the form that recipes take."""

import copy
import os
from pathlib import Path
from typing import Any

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.run_options import by_setting
from bertsmith.recipes.settings import given_settings


def given_values(
    places: dict[str, str],
    config: str | Path | None,
    options: dict[str, Any],
    settings: dict[str, Any] | None,
    *,
    by_name: bool = False,
) -> dict[str, Any]:
    """Values for a run's config: those of a file, options over them, and settings over both."""
    over_all = copy.deepcopy(settings or {})
    given = {key: value for key, value in by_setting(places, options).items() if key not in over_all}
    file = None if config is None else Path(str(path_of("config", config)))
    return given_settings(file, given | over_all, (), by_name=by_name)


def paths_of(name: str, given: Any) -> list[str | None]:
    """One path or several, as they were given; none where None was."""
    _refuse_table(name, given)
    if given is None or isinstance(given, str | os.PathLike):
        given = [] if given is None else [given]
    return [path_of(name, path) for path in given]


def path_of(name: str, given: Any) -> str | None:
    """A path as it was given; None where none was.

    Raises:
        InputError: for what is no path, such as a table in memory.
    """
    _refuse_table(name, given)
    if given is not None and not isinstance(given, str | os.PathLike):
        raise InputError(f"{name} must be a path", type(given).__name__, "Write it to a file, and give its path.")
    return None if given is None else str(given)


def folder_of(given: Any) -> str:
    """The folder of a run, which must be given."""
    path = path_of("out", given)
    if path is None:
        raise InputError("A run needs a folder of its own", "no out", 'For example out="my-run".')
    return path


def _refuse_table(name: str, given: Any) -> None:
    if hasattr(given, "columns"):
        raise InputError(
            f"{name} must be the path of a file",
            f"a {type(given).__name__}, which is a table in memory",
            'Write it to a file: table.to_csv("train.csv", index=False).',
        )
