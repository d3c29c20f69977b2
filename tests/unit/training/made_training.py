"""A tiny training: model, batches and one step of it."""

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.targets import MaskedTargets
from bertsmith.corpus.corpus import Split
from bertsmith.engine.device import Device
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from bertsmith.examples.sentence_pairs import sentence_pairs
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model import Model
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import Objective
from bertsmith.objectives.sentence_pairs import MaskedLanguageModelWithPairs
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import StepReport, TrainState, new_optimizer, train_step
from made_corpora import made_format, made_model, made_split

CPU = Device("cpu", "fp32")
VOCABULARY = 260
OPTIMIZER = OptimizerConfig()


def uneven_split() -> Split:
    """Eleven documents of uneven sentences; token ids stay within the vocabulary."""
    lengths = random_stream(0, "lengths")
    return made_split([lengths.integers(1, 5, size=8).tolist() for _ in range(11)])


def loader(
    *, pairs: bool = False, batch_tokens: int = 100, micro_batch_tokens: int = 10_000, seed: int = 0
) -> PretrainingLoader:
    split = uneven_split()
    single = None if pairs else document_sentences(split, 27)
    return PretrainingLoader(
        split,
        lambda epoch: single or sentence_pairs(split, 27, random_stream(seed, "pairs", epoch)),
        made_format(),
        targets=MaskedTargets(MaskingConfig(mask_rate=0.3)),
        batch_tokens=batch_tokens,
        micro_batch_tokens=micro_batch_tokens,
        seed=seed,
    )


def objective(*, pairs: bool) -> Objective:
    return MaskedLanguageModelWithPairs("nsp") if pairs else MaskedLanguageModel()


def state(
    *, pairs: bool = False, dropout: float = 0.0, double: bool = False, optimizer: OptimizerConfig = OPTIMIZER
) -> TrainState:
    model: Model = made_model(VOCABULARY, pairs=pairs, dropout=dropout)
    model = (model.double() if double else model).train()
    return TrainState(model, new_optimizer(model, optimizer))


def step(
    training: TrainState,
    batches: tuple[Batch, ...],
    *,
    pairs: bool = False,
    learning_rate: float = 1e-3,
    clip_norm: float = 1.0,
    seed: int = 0,
) -> StepReport:
    return train_step(
        training,
        batches,
        objective(pairs=pairs),
        device=CPU,
        learning_rate=learning_rate,
        clip_norm=clip_norm,
        seed=seed,
    )
