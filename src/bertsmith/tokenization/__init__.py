"""Training, loading, saving and running tokenizers, with offsets into the original text."""

from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.domain_words import domain_words
from bertsmith.tokenization.encoding import Encoding
from bertsmith.tokenization.report import PieceCounts, TokenizerReport, report
from bertsmith.tokenization.summary import TrainingSummary
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.tokenization.training import train_tokenizer

__all__ = [
    "Encoding",
    "PieceCounts",
    "Tokenizer",
    "TokenizerConfig",
    "TokenizerReport",
    "TrainingSummary",
    "domain_words",
    "report",
    "train_tokenizer",
]
