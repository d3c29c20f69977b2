"""What every run writes down about itself."""

import platform
from typing import Any

import numpy as np
import tokenizers
import torch

import bertsmith


def versions() -> dict[str, Any]:
    """Versions of what computes, as an entry of a run's record."""
    return {
        "versions": {
            "bertsmith": bertsmith.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "tokenizers": tokenizers.__version__,
            "python": platform.python_version(),
        }
    }
