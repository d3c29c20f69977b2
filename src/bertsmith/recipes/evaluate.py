"""Evaluating a masked language model on text, with the same masks every time."""

import math
import tempfile
from pathlib import Path

from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import choose_device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from bertsmith.folders.model_folder import read_model, read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.recipes.predict import model_folder_of
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
    device: str = "auto",
    precision: str = "auto",
) -> Report:
    """Loss, accuracy and perplexity of a masked language model on text, 15 % of it hidden by a fixed draw.

    Args:
        folder: a model folder or a run.
        source: a text file or folder, or a prepared corpus, whose validation part is then used.
        max_length: tokens of a sequence; the model's positions, 512 at most, where not given.
        text: how text files are read.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``.

    Raises:
        InputError: if the model cannot fill masks or the text not be read.
    """
    path = model_folder_of(folder)
    chosen = choose_device(device, precision)
    model = read_model(path).model
    encoder = model.config.encoder
    if model.masked_language_model is None:
        raise InputError(
            "evaluate needs a head to evaluate", f"{path}, an encoder alone", "Use the folder of a trained model."
        )
    tokenizer = read_tokenizer(path, vocab_size=encoder.vocab_size)
    sequence_format = SequenceFormat.of(tokenizer)
    length = min(encoder.max_position_embeddings, 512) if max_length is None else max_length
    if not 8 <= length <= encoder.max_position_embeddings:
        raise InputError(
            f"--max-length must lie between 8 and the positions of the model, {encoder.max_position_embeddings}",
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
            masking=MaskingConfig(mask_rate=_MASK_RATE),
            batch_tokens=_BATCH_TOKENS,
            micro_batch_tokens=_BATCH_TOKENS,
            seed=_SEED,
        )
        batches = loader.epoch_batches(max_tokens=split.num_tokens * 2)
        metrics = evaluate(model.to(chosen.name), MaskedLanguageModel(), batches, chosen)
    metrics |= {"perplexity": math.exp(min(metrics["loss"], 700.0)), "precision": chosen.precision}
    return Report(path, Path(source), metrics)
