"""A loader over a made split, and what its batches hold without what only fills up their shapes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.targets import MaskedTargets, TargetMaker
from bertsmith.corpus.corpus import Split
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from bertsmith.examples.sentence_pairs import sentence_pairs
from bertsmith.foundation.random_streams import random_stream
from made_corpora import made_format


def loader_of(
    split: Split,
    *,
    pairs: bool = False,
    room: int = 30,
    batch_tokens: int = 120,
    micro_batch_tokens: int = 100_000,
    targets: TargetMaker = MaskedTargets(MaskingConfig()),
    seed: int = 0,
) -> PretrainingLoader:
    single = None if pairs else document_sentences(split, room)
    return PretrainingLoader(
        split,
        lambda epoch: single or sentence_pairs(split, room, random_stream(seed, "pairs", epoch)),
        made_format(),
        targets=targets,
        batch_tokens=batch_tokens,
        micro_batch_tokens=micro_batch_tokens,
        seed=seed,
    )


@dataclass(frozen=True)
class Content:
    """What one or more micro-batches hold, one after the other."""

    token_ids: np.ndarray
    segment_ids: np.ndarray
    position_ids: np.ndarray
    lengths: np.ndarray
    target_positions: np.ndarray
    target_ids: np.ndarray
    labels: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def content(batches: Sequence[Batch]) -> Content:
    before = np.concatenate([[0], np.cumsum([batch.packed.num_tokens for batch in batches])])
    packed = [batch.packed for batch in batches]
    return Content(
        np.concatenate([part.token_ids[: part.num_tokens].numpy() for part in packed]),
        np.concatenate([part.segment_ids[: part.num_tokens].numpy() for part in packed]),
        np.concatenate([part.position_ids[: part.num_tokens].numpy() for part in packed]),
        np.concatenate([np.diff(part.sequence_starts.numpy()) for part in packed]),
        np.concatenate(
            [
                batch.target_positions[: batch.num_targets].numpy() + start
                for batch, start in zip(batches, before[:-1], strict=True)
            ]
        ),
        np.concatenate([batch.target_ids[: batch.num_targets].numpy() for batch in batches]),
        np.concatenate([[] if batch.pair_labels is None else batch.pair_labels for batch in batches]),
    )
