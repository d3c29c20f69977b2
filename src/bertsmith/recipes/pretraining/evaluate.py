"""Evaluating a masked language model on text with the same masks every time, or a classifier on labelled rows."""

import math
import tempfile
from pathlib import Path

from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.batches.targets import MaskedTargets, PlainTokens, TargetMaker
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from bertsmith.examples.task_tables import TableConfig
from bertsmith.foundation.errors import InputError
from bertsmith.model.config import EncoderConfig
from bertsmith.objectives.bidirectional_lstm import BidirectionalLanguageModel
from bertsmith.objectives.causal import CausalLanguageModel
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import Objective
from bertsmith.recipes.finetuning.evaluate import evaluate_classifier
from bertsmith.recipes.predict import model_folder_of, open_model
from bertsmith.recipes.results import Report
from bertsmith.recipes.text_sources import is_corpus, prepare_files
from bertsmith.text.documents import TextConfig, find_files

_SEED = 15
_MASK_RATE = 0.15
_BATCH_TOKENS = 16_384


def evaluate_run(
    folder: str | Path,
    source: str | Path,
    *,
    max_length: int | None = None,
    text: TextConfig = TextConfig(),
    table: TableConfig = TableConfig(),
    device: str = "auto",
    precision: str = "auto",
) -> Report:
    """Evaluate what a model does.

    A masked language model: loss, accuracy and perplexity on text, 15 % of it hidden by a fixed draw. A causal one or
    an ELMo: the same of every next token, and for the ELMo of every one before too. A classifier:
    accuracy, macro F1, Matthews' coefficient, each class, the confusion counts and the worst errors, on labelled rows.

    Args:
        folder: a model folder or a run.
        source: a text file or folder, or a prepared corpus, whose validation part is then used; for a classifier, a
            file of rows.
        max_length: tokens of a sequence; the model's positions, 512 at most, where not given. For a classifier, what
            it was trained with.
        text: how text files are read.
        table: how a file of labelled rows is read.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``.

    Raises:
        InputError: if the model has no head to evaluate, the text cannot be read, or a label is unknown to the model.
    """
    path = model_folder_of(folder)
    model, tokenizer, chosen = open_model(path, device=device, precision=precision)
    if model.classifier is not None:
        return evaluate_classifier(path, source, (model, tokenizer, chosen), max_length=max_length, table=table)
    encoder = model.config.encoder
    if model.masked_language_model is None:
        raise InputError(
            "evaluate needs a head to evaluate", f"{path}, an encoder alone", "Use the folder of a trained model."
        )
    objective, targets = _objective(encoder)
    sequence_format = SequenceFormat.of(tokenizer)
    length = min(encoder.num_positions, 512) if max_length is None else max_length
    if not 8 <= length <= encoder.num_positions:
        raise InputError(
            f"--max-length must lie between 8 and the positions of the model, {encoder.num_positions}",
            length,
            "Leave it out to use what the model takes.",
        )
    with tempfile.TemporaryDirectory(prefix="bertsmith-") as temporary:
        if is_corpus(str(source)):
            corpus = Corpus.open(source)
            split = corpus.split("validation")
            if tokenizer.fingerprint != corpus.manifest.tokenizer_fingerprint:
                raise InputError(
                    "A corpus must have been prepared with the model's tokenizer", source, "Give its text instead."
                )
        else:
            config = CorpusConfig(validation_fraction=0.0, workers=1)
            out = Path(temporary) / "corpus"
            split = prepare_files(find_files([source]), tokenizer, out, text=text, config=config).split("train")
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
        batches = loader.epoch_batches(max_tokens=split.num_tokens * 2)
        metrics = evaluate(model, objective, batches, chosen)
    metrics |= {"perplexity": math.exp(min(metrics["loss"], 700.0)), "precision": chosen.precision}
    return Report(path, Path(source), metrics)


def _objective(encoder: EncoderConfig) -> tuple[Objective, TargetMaker]:
    """What a model of this kind is asked to find."""
    if encoder.causal:
        return CausalLanguageModel(), PlainTokens()
    if encoder.family == "elmo":
        return BidirectionalLanguageModel(), PlainTokens()
    return MaskedLanguageModel(), MaskedTargets(MaskingConfig(mask_rate=_MASK_RATE))
