"""Small models with the head of a task, and batches for them, made from a seed."""

from typing import Any

import numpy as np

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.task_examples import TaskExamples
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from bertsmith.model.packed import PackedTokens
from made_corpora import made_model, made_tokenizer


def made_head(task: str, *, positions: int = 64, dropout: float = 0.0, seed: int = 0, **heads: Any) -> Model:
    """A model for a task with fresh weights that are spread widely, so that its outputs differ visibly."""
    encoder = made_model(made_tokenizer().vocab_size, positions=positions, dropout=dropout, spread=0.3).config.encoder
    values = {"masked_language_model": False, "pooler": True, "classifier_dropout": dropout, "task": task, **heads}
    return new_model(ModelConfig(encoder=encoder, heads=HeadsConfig.parse(values, where="a test")), seed=seed)


def one_batch(examples: TaskExamples) -> Batch:
    """All of some examples in their order."""
    (batch,) = TaskLoader(examples, batch_size=1000, micro_batch_tokens=100_000, seed=0).in_order()
    return batch


def packed_alone(text: str, pair: str | None = None) -> PackedTokens:
    """One text, or pair, as a model takes it."""
    encoding = made_tokenizer().encode(text, pair)
    return PackedTokens.build(encoding.token_ids, encoding.segment_ids, np.array([0, len(encoding)]))
