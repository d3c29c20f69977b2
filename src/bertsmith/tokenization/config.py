"""What decides a tokenizer: the algorithm, its size, and each change made to the text as a switch of its own."""

from typing import Literal

from pydantic import Field

from bertsmith.foundation.config import Config

Algorithm = Literal["wordpiece", "bpe", "unigram"]


class TokenizerConfig(Config):
    """How a tokenizer is trained, and what it does to text before cutting it into pieces."""

    algorithm: Algorithm = "wordpiece"
    """WordPiece as in BERT, byte-level BPE as in RoBERTa, or Unigram as in ALBERT."""
    vocab_size: int = Field(default=8000, ge=6)
    """How many pieces the vocabulary holds, special tokens included."""
    lowercase: bool = False
    """Write every letter small. Touches case alone."""
    strip_accents: bool = False
    """Take the accents off Latin, Greek and Cyrillic letters. Other scripts are left alone."""
    strip_vowel_marks: bool = False
    """Remove Arabic harakat and Hebrew points."""
    strip_tatweel: bool = False
    """Remove the Arabic letter stretcher."""
    compatibility: bool = False
    """Fold compatibility forms like ligatures and full-width letters (NFKC); otherwise text is only composed (NFC)."""
    max_word_characters: int = Field(default=1000, ge=1)
    """WordPiece only: a longer word becomes one unknown token."""
