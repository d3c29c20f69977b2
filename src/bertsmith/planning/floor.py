"""The floor of a training step: what its matrix products take at the machine's own rate, and what an optimizer must
move through memory. No step is faster, and whatever it takes above that is for something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from bertsmith.batches.batch import Batch
from bertsmith.engine.part_clock import Part
from bertsmith.engine.rates import MachineRates
from bertsmith.model.config import ModelConfig
from bertsmith.model.encoder_config import EncoderConfig
from bertsmith.model.heads import Model
from bertsmith.objectives import bidirectional_lstm, causal, masked_language_model
from bertsmith.objectives.report import Counts, Objective
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.muon import ITERATIONS
from bertsmith.training.optimizer import weights_by_place
from bertsmith.training.stacked import apart

_VOCABULARY_TERMS = (masked_language_model.TERM, causal.TERM, bidirectional_lstm.TERM)
_PAIR_TERMS = ("nsp", "sop")
_TRAINED, _TRAINED_ON_FROZEN, _FROZEN = 3, 2, 1
"""Products of a step for each one of the forward pass: the backward one gives a gradient of the weights, and one of the
values where something below is trained too."""
_ADAM_MOVES, _MUON_MOVES = 7, 5
"""Numbers that an update moves for each weight. Adam reads the gradient and reads and writes the weight and two
moments; Muon has one."""

Operations = dict[Part, int]
"""Floating-point operations of matrix products by part of a step; a product and its sum are two."""


@dataclass(frozen=True)
class StepWork:
    """What a step cannot do without."""

    operations: Operations
    """Of the model."""
    optimizer_bytes: int
    """Read and written by the optimizer."""
    optimizer_operations: int
    """Of Muon's products, in bf16; 0 without it."""

    def seconds(self, rates: MachineRates) -> dict[Part, float]:
        """Of each part, at a machine's rates."""
        moving = self.optimizer_bytes / rates.bytes_per_second
        multiplying = self.optimizer_operations / rates.bf16_operations_per_second
        seconds: dict[Part, float] = {
            part: count / rates.operations_per_second for part, count in self.operations.items()
        }
        seconds["optimizer"] = moving + multiplying
        return seconds


def work_of_step(model: Model, batches: Sequence[Batch], objective: Objective, optimizer: OptimizerConfig) -> StepWork:
    """The work of one step.

    Args:
        model: what is trained; shapes are enough. Where its encoder is frozen, that goes forward alone.
        batches: the step's micro-batches.
        objective: decides which heads run.
        optimizer: decides what an update moves and multiplies.
    """
    is_trained = any(weight.requires_grad for weight in model.encoder.parameters())
    operations: Operations = {}
    for batch in batches:
        lengths = batch.packed.sequence_starts.diff().cpu().numpy()
        encoder = encoder_operations(model.config.encoder, lengths)
        head = head_operations(model.config, lengths, objective.counts(batch))
        for part, count in encoder.items():
            operations[part] = operations.get(part, 0) + (_TRAINED if is_trained else _FROZEN) * count
        passes = _TRAINED if is_trained else _TRAINED_ON_FROZEN
        operations["head_and_loss"] = operations.get("head_and_loss", 0) + passes * head
    return StepWork(operations, *_optimizer_work(model, optimizer))


def encoder_operations(config: EncoderConfig, lengths: Int[np.ndarray, " sequences"]) -> Operations:
    """Of an encoder's forward pass over sequences of these lengths."""
    tokens, width, hidden = int(lengths.sum()), config.embedding_width, config.hidden_size
    if config.family == "elmo":
        # Four gates of each direction read the token and the state before it.
        return {"recurrence": config.num_hidden_layers * 2 * tokens * 2 * 8 * width**2}
    matrices = 3 if config.family == "modern" else 2
    operations: Operations = {
        "attention": config.num_hidden_layers * 2 * tokens * 4 * hidden**2
        # A query is multiplied with a key, and the weight of both with a value.
        + sum(2 * 2 * hidden * _seen_pairs(config, number, lengths) for number in range(config.num_hidden_layers)),
        "feed_forward": config.num_hidden_layers * 2 * tokens * matrices * hidden * config.intermediate_size,
    }
    if config.embedding_size:
        operations["embedding"] = 2 * tokens * width * hidden
    return operations


def _seen_pairs(config: EncoderConfig, layer: int, lengths: Int[np.ndarray, " sequences"]) -> int:
    """Pairs of a query and a key that it sees, in one layer."""
    if config.causal:
        return int((lengths * (lengths + 1) // 2).sum())
    if config.rotary is None or layer % config.rotary.global_every == 0:
        return int((lengths**2).sum())
    # All pairs, less those of which one is too far to either side.
    beyond = np.maximum(lengths - config.rotary.window // 2 - 1, 0)
    return int((lengths**2 - beyond * (beyond + 1)).sum())


def head_operations(config: ModelConfig, lengths: Int[np.ndarray, " sequences"], counts: Counts) -> int:
    """Of the heads' forward pass.

    Args:
        config: the model.
        lengths: tokens of each sequence.
        counts: how many predictions each term of the objective asks for.
    """
    hidden, heads = config.encoder.hidden_size, config.heads
    operations = 0
    for term, count in counts.items():
        if term in _VOCABULARY_TERMS:
            operations += 2 * count * _vocabulary_weights(config)
        elif term in _PAIR_TERMS:
            operations += 2 * len(lengths) * (hidden**2 + 2 * hidden)
        elif heads.task_head == "classifier":
            operations += 2 * len(lengths) * (hidden**2 + hidden * heads.num_outputs)
        elif heads.task_head is not None:
            transform = hidden**2 if config.encoder.family == "modern" else 0
            operations += 2 * int(lengths.sum()) * (transform + hidden * heads.num_outputs)
    return operations


def _vocabulary_weights(config: ModelConfig) -> int:
    """Weights that each prediction of a token is multiplied with."""
    entered, vocabulary = config.vocabulary_input_size, config.encoder.vocab_size
    if config.heads.mlm_head == "linear":
        return entered * vocabulary
    return entered * config.encoder.embedding_width + config.encoder.embedding_width * vocabulary


def _optimizer_work(model: Model, config: OptimizerConfig) -> tuple[int, int]:
    """Bytes that are moved, and operations of Muon's products."""
    moved = multiplied = 0
    for place, weights in weights_by_place(model, config).items():
        moves = _MUON_MOVES if place.by_muon else _ADAM_MOVES
        moved += moves * sum(weight.numel() * weight.element_size() for weight in weights)
        if place.by_muon:
            for matrix in apart(weights, place.num_stacked):
                short, long = sorted(matrix.shape)
                # The Gram matrix, its square, and their product with the matrix.
                multiplied += ITERATIONS * 2 * (short**2 * long + short**3 + short**2 * long)
    return moved, multiplied
