"""Retrieval and in-batch negatives over random groups, set side by side with the plainest way to say the same."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.engine.device import Device
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.objectives.embedding import contrastive_losses, retrieval
from made_corpora import WORDS, made_model, made_tokenizer

GROUPS = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=3), min_size=1, max_size=12)
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40).map(" ".join)


def _unit_vectors(texts: list[int], seed: int) -> np.ndarray:
    """The same vector for the same text."""
    vectors = np.random.default_rng(seed).normal(size=(10, 6))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[texts]


def _related(groups: list[list[int]], text: int) -> set[int]:
    """A text, and what it is paired with."""
    return {text, *(group[1] for group in groups if group[0] == text)}


@given(groups=GROUPS, seed=st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_ranks_are_those_of_sorting_all_candidates(groups: list[list[int]], seed: int) -> None:
    texts = [text for group in groups for text in group]
    vectors = _unit_vectors(texts, seed)
    starts = np.cumsum([0, *map(len, groups)])
    found = retrieval(vectors.astype(np.float32), starts, np.array(texts), block_elements=20)
    by_text = dict(zip(texts, vectors, strict=True))
    candidates = {text for group in groups for text in group[1:]}
    assert found.num_candidates == len(candidates)
    for group, rank in zip(groups, found.ranks.tolist(), strict=True):
        looked_through = (candidates - _related(groups, group[0])) | {group[1]}
        cosines = {text: float(by_text[group[0]] @ by_text[text]) for text in looked_through}
        better = sum(cosine > cosines[group[1]] + 1e-6 for cosine in cosines.values())
        level = sum(abs(cosine - cosines[group[1]]) <= 1e-6 for cosine in cosines.values())
        assert better + 1 <= rank <= better + level


@given(groups=GROUPS, seed=st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_losses_are_those_of_a_softmax_over_what_may_be_a_negative(groups: list[list[int]], seed: int) -> None:
    texts = [text for group in groups for text in group]
    vectors = _unit_vectors(texts, seed)
    starts = np.cumsum([0, *map(len, groups)])
    found, _ = contrastive_losses(
        torch.from_numpy(vectors), torch.from_numpy(starts), torch.tensor(texts), temperature=0.5, both=False
    )
    others = sorted(set(range(len(texts))) - set(starts.tolist()))
    for number, group in enumerate(groups):
        first, own = int(starts[number]), int(starts[number]) + 1
        known = _related(groups, group[0]) | {group[1]}
        allowed = [own, *(other for other in others if texts[other] not in known)]
        logits = [float(vectors[first] @ vectors[other]) / 0.5 for other in allowed]
        expected = math.log(sum(map(math.exp, logits))) - logits[0]
        assert found[number].item() == pytest.approx(expected, abs=1e-9)


@given(texts=st.lists(TEXT, min_size=2, max_size=6))
@settings(max_examples=25, deadline=None)
def test_a_vector_never_depends_on_its_neighbours(texts: list[str]) -> None:
    encoder = made_model(made_tokenizer().vocab_size, positions=64, spread=0.3).config.encoder
    for pooling in ("mean", "max"):
        heads = HeadsConfig(masked_language_model=False, task="embed", pooling=pooling)
        embed = EmbedPredictor(
            TorchEngine(new_model(ModelConfig(encoder=encoder, heads=heads), seed=0), Device("cpu", "fp32")),
            made_tokenizer(),
        )
        together = embed.vectors(texts)
        for text, vector in zip(texts, together, strict=True):
            assert vector == pytest.approx(embed.vectors([text])[0], abs=1e-5)
