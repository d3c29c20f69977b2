"""What training a tokenizer found in the text."""

from bertsmith.foundation.config import Config


class TrainingSummary(Config):
    """Counts from training, kept with the tokenizer."""

    num_characters: int
    """Characters read, after normalisation, whitespace aside."""
    num_distinct_characters: int
    """Different characters read, after normalisation, whitespace aside."""
    num_characters_left_out: int
    """Different characters that found no room in the vocabulary and become unknown. Byte-level BPE leaves out none."""
    share_left_out: float
    """The share of the text that these characters make up, from 0 to 1."""
