"""What a model of whole texts was trained on, pairs or texts that stand alone, and what it is given."""

from bertsmith.foundation.errors import InputError


def refuse_unlike_training(expected: bool | None, pairs: bool | None, received: str, both: str, alone: str) -> None:
    """Raise an `InputError` for pairs where a model was trained on texts that stand alone, and the other way round.

    Args:
        expected: whether it was trained on pairs; None where that is not known.
        pairs: whether what it is given are pairs; None where that is not known.
        received: what it is given, to be told.
        both: what to do where it needs pairs.
        alone: what to do where it needs texts that stand alone.
    """
    if expected is None or pairs is None or pairs == expected:
        return
    rule = "pairs of texts must be given pairs" if expected else "texts that stand alone must be given such"
    raise InputError(f"A model that was trained on {rule}", received, both if expected else alone)
