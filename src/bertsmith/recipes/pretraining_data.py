"""The loaders of a pre-training run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import ExamplesOfEpoch, PretrainingLoader
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import PretrainingExamples, document_sentences
from bertsmith.examples.sentence_pairs import sentence_pairs
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.next_sentence import MaskedLanguageModelWithNextSentence
from bertsmith.objectives.report import Objective
from bertsmith.training.config import TrainingConfig

OBJECTIVES: dict[str, Objective] = {
    "mlm": MaskedLanguageModel(),
    "mlm+nsp": MaskedLanguageModelWithNextSentence(),
}
_VALIDATION_SEED = 15
"""Validation shows the same sequences with the same masks, whatever the run's seed, so that losses compare."""


@dataclass(frozen=True)
class PretrainingData:
    """Training batches by step, and the fixed validation."""

    train: PretrainingLoader
    validation: PretrainingLoader
    negative_share: float | None
    """Share of random second sentences in the first epoch; None without sentence pairs."""

    def validation_batches(self, max_tokens: int) -> Iterator[Batch]:
        """The validation, at most so many tokens."""
        return self.validation.epoch_batches(max_tokens=max_tokens)


def pretraining_data(
    corpus: Corpus,
    sequence_format: SequenceFormat,
    *,
    objective: str,
    max_length: int,
    masking: MaskingConfig,
    training: TrainingConfig,
) -> PretrainingData:
    """Loaders over both parts of a corpus.

    Raises:
        InputError: if the corpus holds nothing to validate on, or an objective needs what it has not.
    """
    pairs = objective == "mlm+nsp"
    room = max_length - sequence_format.num_special(pairs=pairs)
    train, validation = corpus.split("train"), corpus.split("validation")
    if validation.num_tokens == 0:
        raise InputError(
            "A corpus must have a validation part to train on",
            f"{corpus.folder} without one",
            "Prepare it with --validation 0.05, for example, from text with two sentences at least.",
        )

    def loader(split: Split, seed: int, shown: MaskingConfig) -> PretrainingLoader:
        return PretrainingLoader(
            split,
            _examples(split, room, pairs=pairs, seed=seed),
            sequence_format,
            masking=shown,
            batch_tokens=training.batch_tokens,
            micro_batch_tokens=training.micro_batch_tokens,
            seed=seed,
        )

    train_loader = loader(train, training.seed, masking)
    validation_loader = loader(validation, _VALIDATION_SEED, MaskingConfig(mask_rate=0.15))
    labels = train_loader.examples(0).next_sentence_labels
    return PretrainingData(train_loader, validation_loader, None if labels is None else float(labels.mean()))


def _examples(split: Split, room: int, *, pairs: bool, seed: int) -> ExamplesOfEpoch:
    if pairs:
        # An epoch of pairs takes a while to draw: the one in use and the one made ahead are kept.
        return lru_cache(maxsize=2)(lambda epoch: sentence_pairs(split, room, random_stream(seed, "pairs", epoch)))
    examples: PretrainingExamples = document_sentences(split, room)
    return lambda epoch: examples
