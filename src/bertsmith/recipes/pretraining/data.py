"""The loaders of a pre-training run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import ExamplesOfEpoch, PretrainingLoader
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.batches.targets import MaskedTargets, PlainTokens
from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import PretrainingExamples, blocks, document_sentences, full_sentences
from bertsmith.examples.sentence_pairs import sentence_order_pairs, sentence_pairs
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.random_streams import random_stream
from bertsmith.objectives.bidirectional_lstm import BidirectionalLanguageModel
from bertsmith.objectives.causal import CausalLanguageModel
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import Objective
from bertsmith.objectives.sentence_pairs import MaskedLanguageModelWithPairs
from bertsmith.training.config import TrainingConfig

OBJECTIVES: dict[str, Objective] = {
    "mlm": MaskedLanguageModel(),
    "mlm+nsp": MaskedLanguageModelWithPairs("nsp"),
    "mlm+sop": MaskedLanguageModelWithPairs("sop"),
    "causal": CausalLanguageModel(),
    "bilm": BidirectionalLanguageModel(),
}
Sequences = Literal["document_sentences", "full_sentences", "blocks"]
_PAIRS = {"mlm+nsp": sentence_pairs, "mlm+sop": sentence_order_pairs}
_SEQUENCES = {"document_sentences": document_sentences, "full_sentences": full_sentences, "blocks": blocks}
_VALIDATION_SEED = 15
"""Validation shows the same sequences with the same masks, whatever the run's seed, so that losses compare."""


@dataclass(frozen=True)
class PretrainingData:
    """Training batches by step, and the fixed validation."""

    train: PretrainingLoader
    validation: PretrainingLoader
    pair_facts: dict[str, float]
    """What to know about the pairs of the first epoch, by the name under which it is told; empty without pairs."""

    def validation_batches(self, max_tokens: int) -> Iterator[Batch]:
        """The validation, at most so many tokens."""
        return self.validation.epoch_batches(max_tokens=max_tokens)


def refuse_unfit_examples(
    sequence_format: SequenceFormat | None, *, objective: str, sequences: Sequences, masking: MaskingConfig
) -> None:
    """Refuse settings that do not go together, or not with a tokenizer; it is None while there is none.

    Raises:
        InputError: if tokens are to be masked and the tokenizer has no mask token, or whole words and it does not tell
            them; if settings of masks are given to an objective without masks, or settings of sequences to one with
            pairs.
    """
    if objective in _PAIRS and sequences != "document_sentences":
        raise InputError(
            f"sequences={sequences} must be given with an objective of single sequences",
            f"--objective {objective}, whose sequences are pairs",
            "Leave it out, or train with --objective mlm.",
        )
    if not _is_masked(objective) and masking != MaskingConfig():
        raise InputError(
            "Settings of masking must be given with an objective that masks",
            f"--objective {objective}",
            "Leave them out, or train with --objective mlm.",
        )
    if sequence_format is not None and _is_masked(objective):
        _ = sequence_format.mask_id  # A tokenizer without one is refused.
    if sequence_format is not None and masking.unit != "token" and not sequence_format.has_word_bounds:
        raise InputError(
            f"masking.unit={masking.unit} needs a tokenizer that tells where words begin",
            "one whose pieces do not",
            "Use --set masking.unit=token, or another tokenizer.",
        )


def pretraining_data(
    corpus: Corpus,
    sequence_format: SequenceFormat,
    *,
    objective: str,
    max_length: int,
    masking: MaskingConfig,
    training: TrainingConfig,
    sequences: Sequences = "document_sentences",
) -> PretrainingData:
    """Loaders over both parts of a corpus.

    Raises:
        InputError: if the corpus holds nothing to validate on, or an objective needs what it has not.
    """
    refuse_unfit_examples(sequence_format, objective=objective, sequences=sequences, masking=masking)
    room = max_length - sequence_format.num_special(pairs=objective in _PAIRS)
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
            _examples(split, room, kind=objective if objective in _PAIRS else sequences, seed=seed, masking=shown),
            sequence_format,
            targets=MaskedTargets(shown) if _is_masked(objective) else PlainTokens(),
            batch_tokens=training.batch_tokens,
            micro_batch_tokens=training.micro_batch_tokens,
            seed=seed,
        )

    train_loader = loader(train, training.seed, masking)
    validation_loader = loader(validation, _VALIDATION_SEED, MaskingConfig(mask_rate=0.15))
    return PretrainingData(train_loader, validation_loader, _pair_facts(objective, train_loader.examples(0)))


def _is_masked(objective: str) -> bool:
    return objective.split("+")[0] == "mlm"


def _examples(split: Split, room: int, *, kind: str, seed: int, masking: MaskingConfig) -> ExamplesOfEpoch:
    if kind in _SEQUENCES:
        examples = _SEQUENCES[kind](split, room)
        return lambda epoch: examples
    # An epoch of pairs takes a while to draw: the one in use and the one made ahead are kept.
    drawn = lru_cache(maxsize=2)(lambda turn: _PAIRS[kind](split, room, random_stream(seed, "pairs", turn)))
    return lambda epoch: drawn(epoch if masking.duplicates is None else epoch % masking.duplicates)


def _pair_facts(objective: str, examples: PretrainingExamples) -> dict[str, float]:
    if examples.pair_labels is None:
        return {}
    share = float(examples.pair_labels.mean())
    if objective == "mlm+nsp":
        return {"nsp_negative_share": share}
    return {"sop_swapped_share": share, "sop_left_out": float(examples.num_left_out)}
