"""What is refused before a pre-training begins."""

from pathlib import Path

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.engine.device import choose_device
from bertsmith.folders.model_folder import read_tokenizer
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.pretraining.data import refuse_unfit_examples
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_encoder import (
    is_model_folder,
    known_encoder,
    refuse_larger_vocabulary,
    refuse_unknown_start,
)
from bertsmith.recipes.pretraining.start_model import refuse_unfit_start
from bertsmith.recipes.pretraining.vocabulary import words_beyond
from bertsmith.recipes.text_sources import (
    given_tokenizer,
    is_corpus,
    refuse_mixed_sources,
    refuse_settings_of_text,
    refuse_settings_of_tokenizer,
)
from bertsmith.text.documents import find_files
from bertsmith.tokenization.tokenizer import Tokenizer


def refuse_early(config: PretrainConfig, *, has_begun: bool = False) -> None:
    """Refuse what can be refused before anything is written. No weight is read.

    Args:
        config: what is to run.
        has_begun: whether there is a checkpoint to go on from. What the model begins with then counts no more.

    Raises:
        InputError: if settings do not fit each other, the model or the tokenizer, or a source is not there.
    """
    if not config.sources:
        raise InputError("There must be text to train on", "no source", "Name files, folders or a prepared corpus.")
    refuse_mixed_sources(config.sources)
    refuse_settings_of_text(
        config.sources,
        tokenizer_folder=config.tokenizer_folder,
        tokenizer=config.tokenizer,
        text=config.text,
        corpus=config.corpus,
    )
    refuse_unknown_start(config.model)
    if not has_begun:
        refuse_unfit_start(config.model, config.objective)
    if config.extend_vocabulary:
        _refuse_unfit_extension(config)
    choose_device(config.runtime.device, "fp32")
    refuse_unfit(config, _tokenizer_that_exists(config))
    if config.training.batch_tokens < 2 * config.max_length:
        raise InputError(
            "--batch-tokens must hold two sequences at least",
            f"{config.training.batch_tokens} with --max-length {config.max_length}",
            f"Use --batch-tokens {2 * config.max_length} or more.",
        )
    if not is_corpus(config.sources[0]):
        find_files(config.sources)


def refuse_unfit(config: PretrainConfig, tokenizer: Tokenizer | None) -> None:
    """Refuse a model and examples that cannot be made as asked, with a tokenizer where there is one."""
    refuse_larger_vocabulary(config.model, tokenizer, config.tokenizer)
    positions = known_encoder(config.model, tokenizer).num_positions
    if config.max_length > positions:
        raise InputError(
            "--max-length must not exceed the positions of the model",
            f"{config.max_length}, and {config.model.start} has {positions}",
            f"Use --max-length {positions} or less.",
        )
    refuse_unfit_examples(
        None if tokenizer is None else SequenceFormat.of(tokenizer),
        objective=config.objective,
        sequences=config.sequences,
        masking=config.masking,
    )


def _tokenizer_that_exists(config: PretrainConfig) -> Tokenizer | None:
    """The tokenizer of a prepared corpus, the one that was named, or that of the model that goes on; else None.

    Raises:
        InputError: if it is another than that of the model that goes on, or settings ask for another.
    """
    tokenizer = given_tokenizer(config.sources, config.tokenizer_folder, config.tokenizer)
    if not is_model_folder(config.model.start):
        return tokenizer
    num_embeddings = known_encoder(config.model).vocab_size
    own = read_tokenizer(Path(config.model.start), vocab_size=num_embeddings)
    if tokenizer is None:
        brought_by = f"--model {config.model.start}, a folder with its tokenizer"
        refuse_settings_of_tokenizer(own, config.tokenizer, brought_by=brought_by)
        return own
    words_beyond(own, tokenizer, num_embeddings=num_embeddings)
    return tokenizer


def _refuse_unfit_extension(config: PretrainConfig) -> None:
    goes_on = is_model_folder(config.model.start)
    if not goes_on or is_corpus(config.sources[0]) or config.tokenizer_folder is not None:
        tokenizer = "" if config.tokenizer_folder is None else f", --tokenizer {config.tokenizer_folder}"
        raise InputError(
            "--extend-vocabulary needs a model folder to go on from, its tokenizer, and text that is not yet tokens",
            f"--model {config.model.start}, {config.sources[0]}{tokenizer}",
            "Name a model folder with --model, no tokenizer, and text files.",
        )
