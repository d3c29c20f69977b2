"""The trainings of a comparison: one corpus, three models."""

import time
from collections.abc import Callable, Sequence

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.pretraining.data import pretraining_data
from bertsmith.recipes.pretraining.options import ModelChoice, PretrainConfig
from bertsmith.recipes.pretraining.run import pretrain_run
from bertsmith.recipes.pretraining.start_encoder import named_vocab_size
from bertsmith.recipes.results import Run
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.recipes.text_sources import is_corpus, prepare_files, tokenizer_for
from bertsmith.text.documents import find_files
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.config import LengthConfig
from bertsmith.training.events import Observer

Notify = Callable[[str], None]
NAMES = {"bert": "BERT", "gpt": "GPT", "elmo": "ELMo"}
"""The three kinds, as people write them."""
_TRAINING_SHARE = 0.75
"""Share of the minutes that the three trainings take together; measuring takes the rest."""
_DEFAULT_EPOCHS = 3.0
"""Passes over the text where no length is given."""


def comparison_corpus(config: CompareConfig, run: RunFolder, notify: Notify) -> tuple[Corpus, Tokenizer]:
    """The corpus that was named, or tokenizer and corpus made in the comparison's folder."""
    if is_corpus(config.sources[0]):
        corpus = Corpus.open(config.sources[0])
        return corpus, Tokenizer.from_folder(corpus.tokenizer_folder)
    files = find_files(config.sources)
    if config.tokenizer_folder is not None:
        tokenizer = Tokenizer.from_folder(config.tokenizer_folder)
    else:
        room = named_vocab_size(ModelChoice(start=config.model))
        tokenizer = tokenizer_for(files, config.text, config.tokenizer, run.tokenizer, room=room)
        notify(f"tokenizer: {config.tokenizer.algorithm}, {tokenizer.vocab_size:,} pieces")
    corpus = prepare_files(files, tokenizer, run.corpus, text=config.text, config=CorpusConfig())
    for warning in corpus.warnings:
        notify(f"note: {warning}")
    return corpus, tokenizer


def objectives_of(config: CompareConfig) -> dict[str, str]:
    """What each kind is trained to do."""
    return {"bert": config.bert_objective, "gpt": "causal", "elmo": "bilm"}


def train_kinds(
    config: CompareConfig,
    run: RunFolder,
    corpus: Corpus,
    *,
    started_at: float,
    observers: Sequence[Observer],
    notify: Notify,
) -> dict[str, Run]:
    """Pre-train the three, each as a run of its own in the comparison's folder.

    Args:
        config: what is compared.
        run: the comparison's folder.
        corpus: the text of all three.
        started_at: when the comparison began, on the monotonic clock. Minutes are shared equally; otherwise all three
            take as many steps.
        observers: are told of progress.
        notify: is told in a line what is being done.

    Raises:
        InputError: if the minutes leave no time to train.
        Stopped: if a stop was asked for.
    """
    length = _length(config, run, corpus, started_at)
    runs: dict[str, Run] = {}
    for kind, objective in objectives_of(config).items():
        notify(f"{NAMES[kind]}: pre-training, objective {objective}")
        settings = _settings(config, corpus, objective, length)
        runs[kind] = pretrain_run(settings, run.path / kind, observers=observers, notify=notify)
    return runs


def _length(config: CompareConfig, run: RunFolder, corpus: Corpus, started_at: float) -> LengthConfig:
    """How long each of the three is trained."""
    if config.length.minutes is None:
        return LengthConfig(steps=config.length.steps or _steps(config, corpus))
    # Written down, since a resume must ask for the same.
    left = config.length.minutes - (time.monotonic() - started_at) / 60
    each = run.record().get("minutes_each", _TRAINING_SHARE * left / len(NAMES))
    if each <= 0:
        raise InputError(
            "--minutes must leave time to train", f"{config.length.minutes:g} minutes", "Give more minutes."
        )
    run.write(run.record() | {"minutes_each": each})
    return LengthConfig(minutes=each)


def _steps(config: CompareConfig, corpus: Corpus) -> int:
    """Steps of all three, counted over the sequences of GPT and ELMo.

    BERT's pairs may make more or fewer batches of an epoch. As many steps are about as many tokens, since all batches
    are of one size.
    """
    settings = _settings(config, corpus, "causal", LengthConfig())
    data = pretraining_data(
        corpus,
        SequenceFormat.of(Tokenizer.from_folder(corpus.tokenizer_folder)),
        objective=settings.objective,
        max_length=settings.max_length,
        masking=settings.masking,
        training=settings.training,
    )
    return max(1, round((config.length.epochs or _DEFAULT_EPOCHS) * data.train.batches_per_epoch))


def _settings(config: CompareConfig, corpus: Corpus, objective: str, length: LengthConfig) -> PretrainConfig:
    """The pre-training of one of the three."""
    values = {
        "sources": (str(corpus.folder),),
        "objective": objective,
        "max_length": config.max_length,
        "model": {"start": config.model, "max_position_embeddings": config.max_length},
        "length": length.model_dump(exclude_none=True),
        # The same for all three, as published: what is best for one alone would not compare them.
        "masking": {"mask_rate": 0.15},
        "training": {
            "batch_tokens": config.batch_tokens,
            "seed": config.seed,
            "optimizer": {"kind": "adamw", "learning_rate": config.learning_rate},
        },
        "runtime": config.runtime.model_dump(exclude_none=True),
    }
    return PretrainConfig.parse(values, where="the comparison")
