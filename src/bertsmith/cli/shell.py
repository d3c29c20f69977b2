"""Words of a command that a person is shown to type."""

import os
import shlex
from pathlib import Path


def typed(path: Path) -> str:
    """A path as it is typed: in quotes where a shell would read it otherwise."""
    if os.name == "nt":  # Its shell knows double quotes alone, and a path there holds none.
        return f'"{path}"' if " " in str(path) else str(path)
    return shlex.quote(str(path))
