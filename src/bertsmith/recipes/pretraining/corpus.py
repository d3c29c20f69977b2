"""The corpus of a pre-training and the tokenizer that wrote it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bertsmith.corpus.corpus import Corpus
from bertsmith.folders.model_folder import read_tokenizer
from bertsmith.recipes.pretraining.checks import refuse_unfit
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_encoder import is_model_folder, known_encoder, named_vocab_size
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.recipes.text_sources import extended_tokenizer, is_corpus, prepare_files, tokenizer_for
from bertsmith.text.documents import find_files
from bertsmith.tokenization.domain_words import MIN_OCCURRENCES
from bertsmith.tokenization.tokenizer import Tokenizer


def corpus_of_run(config: PretrainConfig, run: RunFolder, notify: Callable[[str], None]) -> tuple[Corpus, Tokenizer]:
    """Open the corpus that was named, or make tokenizer and corpus in the run's folder.

    Raises:
        InputError: if the text cannot be used, or examples cannot be made with the tokenizer as asked.
    """
    if is_corpus(config.sources[0]):
        corpus = Corpus.open(config.sources[0])
        tokenizer = Tokenizer.from_folder(corpus.tokenizer_folder)
        refuse_unfit(config, tokenizer)
        return corpus, tokenizer
    files = find_files(config.sources)
    if config.tokenizer_folder is not None:
        tokenizer = Tokenizer.from_folder(config.tokenizer_folder)
    elif is_model_folder(config.model.start):
        tokenizer = _tokenizer_that_goes_on(config, files, run, notify)
    else:
        room = named_vocab_size(config.model)
        tokenizer = tokenizer_for(files, config.text, config.tokenizer, run.tokenizer, room=room)
        notify(f"tokenizer: {config.tokenizer.algorithm}, {tokenizer.vocab_size:,} pieces")
    refuse_unfit(config, tokenizer)
    notify(f"corpus: {len(files)} file{'s' if len(files) != 1 else ''}")
    return prepare_files(files, tokenizer, run.corpus, text=config.text, config=config.corpus), tokenizer


def tokenizer_of_model(config: PretrainConfig, tokenizer: Tokenizer) -> Tokenizer:
    """The run's tokenizer, which says how long the sequences are that its model was trained on.

    They are the run's own; where it goes on with a model that had longer ones, that model's.
    """
    length, start = config.max_length, config.model.start
    if is_model_folder(start):
        length = max(length, Tokenizer.from_folder(start).longest_sequence(known_encoder(config.model).num_positions))
    return tokenizer.seeing(length)


def _tokenizer_that_goes_on(
    config: PretrainConfig, files: Sequence[Path], run: RunFolder, notify: Callable[[str], None]
) -> Tokenizer:
    """The tokenizer of the model that goes on, with words of the text where they are asked for."""
    own = read_tokenizer(Path(config.model.start), vocab_size=known_encoder(config.model).vocab_size)
    wanted = config.extend_vocabulary
    if not wanted:
        return own
    extended = extended_tokenizer(own, files, config.text, wanted, run.tokenizer)
    found = len(extended.added_words) - len(own.added_words)
    if found < wanted:
        notify(
            f"note: {found:,} words to add in place of {wanted:,}: the text has no more that come {MIN_OCCURRENCES} "
            "times and are several pieces now"
        )
    return extended
