"""Evaluating a language model on text, with the same masks every time."""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.batches.targets import MaskedTargets, PlainTokens, TargetMaker
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from bertsmith.foundation.errors import InputError
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.bidirectional_lstm import BidirectionalLanguageModel
from bertsmith.objectives.causal import CausalLanguageModel
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import Objective
from bertsmith.recipes.results import Report
from bertsmith.recipes.text_sources import is_corpus, prepare_files
from bertsmith.text.documents import TextConfig, find_files
from bertsmith.tokenization.tokenizer import Tokenizer

_SEED = 15
_MASK_RATE = 0.15
_BATCH_TOKENS = 16_384


def evaluate_language_model(
    folder: Path,
    source: str | Path,
    opened: tuple[Model, Tokenizer, Device],
    *,
    max_length: int | None,
    text: TextConfig,
) -> Report:
    """Loss, accuracy and perplexity of a language model on all of a text.

    Args:
        folder: the model's folder.
        source: a text file or folder, or a prepared corpus, whose validation part is then used.
        opened: the model, its tokenizer and where it runs.
        max_length: tokens of a sequence; as in the model's training, 512 at most, where not given.
        text: how text files are read.

    Returns:
        a report whose metrics are those of `evaluate`, with ``perplexity`` and ``precision``.

    Raises:
        InputError: if the model is an encoder alone, or the text cannot be read.
    """
    model, tokenizer, device = opened
    if model.masked_language_model is None:
        raise InputError(
            "evaluate needs a head to evaluate", f"{folder}, an encoder alone", "Use the folder of a trained model."
        )
    objective, targets = _objective(model.config.encoder)
    sequence_format = SequenceFormat.of(tokenizer)
    length = _length(model.config.encoder, tokenizer, max_length)
    with _split(source, tokenizer, text) as split:
        examples = document_sentences(split, length - sequence_format.num_special(pairs=False))
        loader = PretrainingLoader(
            split,
            lambda epoch: examples,
            sequence_format,
            targets=targets,
            batch_tokens=_BATCH_TOKENS,
            micro_batch_tokens=_BATCH_TOKENS,
            seed=_SEED,
        )
        metrics = evaluate(model, objective, loader.epoch_batches(max_tokens=None), device)
    metrics |= {"perplexity": math.exp(min(metrics["loss"], 700.0)), "precision": device.precision}
    return Report(folder, Path(source), metrics)


def _length(encoder: EncoderConfig, tokenizer: Tokenizer, asked: int | None) -> int:
    length = min(tokenizer.longest_sequence(encoder.num_positions), 512) if asked is None else asked
    if not 8 <= length <= encoder.num_positions:
        raise InputError(
            f"--max-length must lie between 8 and the positions of the model, {encoder.num_positions}",
            length,
            "Leave it out to use what the model was trained with.",
        )
    return length


@contextmanager
def _split(source: str | Path, tokenizer: Tokenizer, text: TextConfig) -> Iterator[Split]:
    """The validation part of a corpus, or all text of files, whose tokens are there as long as the block lasts."""
    if is_corpus(str(source)):
        corpus = Corpus.open(source)
        if tokenizer.fingerprint != corpus.manifest.tokenizer_fingerprint:
            raise InputError(
                "A corpus must have been prepared with the model's tokenizer", source, "Give its text instead."
            )
        yield corpus.split("validation")
        return
    config = CorpusConfig(validation_fraction=0.0, workers=1)
    with tempfile.TemporaryDirectory(prefix="bertsmith-") as temporary:
        out = Path(temporary) / "corpus"
        yield prepare_files(find_files([source]), tokenizer, out, text=text, config=config).split("train")


def _objective(encoder: EncoderConfig) -> tuple[Objective, TargetMaker]:
    """What a model of this kind is asked to find."""
    if encoder.causal:
        return CausalLanguageModel(), PlainTokens()
    if encoder.family == "elmo":
        return BidirectionalLanguageModel(), PlainTokens()
    return MaskedLanguageModel(), MaskedTargets(MaskingConfig(mask_rate=_MASK_RATE))
