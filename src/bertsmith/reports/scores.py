"""How scores are written for people: by name, as a percentage or a plain number."""

_TITLES = {
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "f1": "F1",
    "mae": "mean absolute error",
    "mse": "mean squared error",
    "r2": "R²",
    "mrr": "mean reciprocal rank",
}
_OBJECTIVES = ("mlm", "nsp", "sop")
_PLAIN = ("loss", "matthews", "pearson", "spearman", "mae", "mse", "r2", "mrr", "temperature", "brier", "threshold")
"""Names that hold one of these are no shares."""


def score_title(name: str) -> str:
    """A score's name in words."""
    if name in _TITLES:
        return _TITLES[name]
    first, *rest = name.split("_")
    return " ".join([first.upper() if first in _OBJECTIVES else first, *rest])


def score_text(name: str, value: float) -> str:
    """A score's value: a share as a percentage, anything else as a number."""
    if any(part in name.split("_") for part in _PLAIN):
        return f"{value:.3f}"
    return f"{value:.1%}"
