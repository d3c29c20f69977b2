"""Named random streams: the same name under the same seed always gives the same numbers.

A stream is made where it is used and passed on as an argument. Nothing reads or changes numpy's global state, and no
stream depends on how many processes or threads there are.
"""

import hashlib

import numpy as np


def random_stream(seed: int, *name: str | int) -> np.random.Generator:
    """A generator that is a pure function of `seed` and `name`.

    Args:
        seed: the run's seed, any integer.
        name: what the numbers are for, for example ``"masks", step``.
    """
    return np.random.Generator(np.random.Philox(key=derived_seed(seed, *name)))


def derived_seed(seed: int, *name: str | int) -> int:
    """A 64-bit seed that is a pure function of `seed` and `name`, for generators that are not numpy's."""
    # An integer of numpy's is the integer that it equals.
    text = "\0".join(f"str:{part}" if isinstance(part, str) else f"int:{int(part)}" for part in (seed, *name))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
