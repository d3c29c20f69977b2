"""Embeddings: the losses, what is no negative, the scores of retrieval and of ranking."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.examples.embedding import embedding_examples
from bertsmith.examples.embedding_tables import EmbedKind, EmbedRow
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from bertsmith.objectives.embedding import (
    TERM,
    InBatchNegatives,
    RankedPairs,
    contrastive_losses,
    pair_cosines,
    ranking_loss,
    retrieval,
    sentence_vectors,
    validation_loss,
)
from bertsmith.objectives.report import Objective
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_texts, made_tokenizer, weights_of

CPU = Device("cpu", "fp32")
TEXTS = made_texts(16, sentences=(1, 3))


def _model(*, dropout: float = 0.0) -> Model:
    encoder = made_model(made_tokenizer().vocab_size, dropout=dropout, spread=0.3).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="embed", normalize=True)
    return new_model(ModelConfig(encoder=encoder, heads=heads), seed=0)


def _batch(kind: EmbedKind = "pairs", rows: list[EmbedRow] | None = None) -> Batch:
    if rows is None:
        score = {"scored": 1.0}.get(kind)
        rows = [EmbedRow((TEXTS[at], TEXTS[at + 8]), score and at / 2, f"line {at}") for at in range(8)]
    examples = embedding_examples(rows, kind, made_tokenizer(), max_length=64)
    (batch,) = TaskLoader(examples, batch_size=100, micro_batch_tokens=100_000, seed=0).in_order()
    return batch


def _vectors(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _losses(vectors: torch.Tensor, starts: list[int], texts: list[int], *, both: bool = False) -> list[float]:
    found, _ = contrastive_losses(vectors, torch.tensor(starts), torch.tensor(texts), temperature=1.0, both=both)
    return found.tolist()


def test_they_are_objectives() -> None:
    kinds: tuple[EmbedKind, EmbedKind] = ("pairs", "scored")
    for objective, kind in zip((InBatchNegatives(), RankedPairs()), kinds, strict=True):
        assert isinstance(objective, Objective)
        assert objective.terms == (TERM,)
        assert objective.counts(_batch(kind)) == {TERM: 8}


def test_a_text_looks_for_its_partner_among_all_partners_of_the_batch() -> None:
    model, batch = _model().eval(), _batch()
    vectors = sentence_vectors(model, batch.packed)
    cosines = functional.normalize(vectors[0::2]) @ functional.normalize(vectors[1::2]).T
    there = functional.cross_entropy(20 * cosines, torch.arange(8))
    back = functional.cross_entropy(20 * cosines.T, torch.arange(8))
    for objective, expected in ((InBatchNegatives(both=False), there), (InBatchNegatives(), (there + back) / 2)):
        report = objective.report(model, batch, with_hits=True)
        assert report.loss(report.counts).item() == pytest.approx(expected.item(), rel=1e-5)
        assert int(report.hits[TERM]) == int((cosines.argmax(1) == torch.arange(8)).sum())
    assert InBatchNegatives().report(model, batch, with_hits=False).hits == {}


def test_the_temperature_divides_cosines_and_lengths_of_vectors_do_not_count() -> None:
    vectors = _vectors([1, 0], [2, 1], [0, 3], [-1, 2])
    starts, texts = torch.tensor([0, 2, 4]), torch.arange(4)
    units = functional.normalize(vectors, dim=-1)
    logits = units[[0, 2]] @ units[[1, 3]].T / 0.5
    expected = functional.cross_entropy(logits, torch.arange(2), reduction="none").tolist()
    for scaled in (vectors, 7 * vectors):
        found, _ = contrastive_losses(scaled, starts, texts, temperature=0.5, both=False)
        assert found.tolist() == pytest.approx(expected)


def test_negatives_of_any_row_are_looked_through_and_rows_may_lack_one() -> None:
    # Two rows, the second with a negative: the candidates are sequences 1, 3 and 4.
    vectors = _vectors([1, 0], [1, 1], [0, 1], [1, 2], [1, -1])
    units = functional.normalize(vectors, dim=-1)
    logits = units[[0, 2]] @ units[[1, 3, 4]].T
    expected = functional.cross_entropy(logits, torch.tensor([0, 1]), reduction="none").tolist()
    assert _losses(vectors, [0, 2, 5], [0, 1, 2, 3, 4]) == pytest.approx(expected)


def test_back_again_a_partner_looks_among_first_texts_alone() -> None:
    vectors = _vectors([1, 0], [1, 1], [0, 1], [1, 2], [1, -1])
    units = functional.normalize(vectors, dim=-1)
    there = functional.cross_entropy(units[[0, 2]] @ units[[1, 3, 4]].T, torch.tensor([0, 1]), reduction="none")
    back = functional.cross_entropy(units[[1, 3]] @ units[[0, 2]].T, torch.tensor([0, 1]), reduction="none")
    assert _losses(vectors, [0, 2, 5], [0, 1, 2, 3, 4], both=True) == pytest.approx(((there + back) / 2).tolist())


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ([0, 1, 2, 1], "the same partner again"),
        ([0, 1, 0, 3], "another partner of the same text"),
        ([0, 1, 2, 0], "the text itself, as another's partner"),
    ],
)
def test_what_belongs_to_a_text_is_none_of_its_negatives(texts: list[int], why: str) -> None:
    vectors = _vectors([1, 0], [1, 1], [0, 1], [1, 2])
    assert _losses(vectors, [0, 2, 4], texts)[0] == 0.0, why
    assert _losses(vectors, [0, 2, 4], [0, 1, 2, 3])[0] > 0.1


@pytest.mark.parametrize("texts", [[0, 1, 0, 3], [0, 1, 2, 1], [0, 1, 1, 3]])
def test_back_again_what_belongs_to_a_partner_is_none_of_its_negatives(texts: list[int]) -> None:
    vectors = _vectors([1, 0], [1, 1], [0, 1], [1, 2])
    there = _losses(vectors, [0, 2, 4], texts)[0]
    assert _losses(vectors, [0, 2, 4], texts, both=True)[0] == pytest.approx(there / 2)


def test_a_row_stays_its_own_positive_where_both_texts_are_the_same() -> None:
    # Two readings of each text, as without labels: the loss is that of finding one's own, and not zero.
    vectors = _vectors([1, 0], [1, 0.1], [0, 1], [0.1, 1])
    losses = _losses(vectors, [0, 2, 4], [0, 0, 1, 1])
    units = functional.normalize(vectors, dim=-1)
    logits = units[[0, 2]] @ units[[1, 3]].T
    expected = functional.cross_entropy(logits, torch.arange(2), reduction="none").tolist()
    assert losses == pytest.approx(expected)
    assert min(losses) > 0.1


def test_a_row_alone_costs_nothing_and_has_no_gradient() -> None:
    vectors = _vectors([1, 0], [1, 1]).requires_grad_()
    losses, hits = contrastive_losses(vectors, torch.tensor([0, 2]), torch.tensor([0, 1]))
    losses.sum().backward()
    assert losses.tolist() == [0.0]
    assert hits.tolist() == [True]
    assert vectors.grad is not None
    assert vectors.grad.abs().max() == 0.0


def test_texts_alone_are_read_twice_with_other_dropout() -> None:
    rows = [EmbedRow((text,), None, "") for text in TEXTS]
    model, batch = _model(dropout=0.3), _batch("texts", rows)
    vectors = sentence_vectors(model.train(), batch.packed)
    assert (vectors[0::2] - vectors[1::2]).abs().max() > 0.01
    vectors = sentence_vectors(model.eval(), batch.packed)
    assert (vectors[0::2] - vectors[1::2]).abs().max() < 1e-5
    assert InBatchNegatives().report(model.train(), batch, with_hits=False).counts == {TERM: 16}


def test_cosines_are_compared_in_full_precision_under_autocast() -> None:
    vectors = torch.randn(20, 64, generator=torch.Generator().manual_seed(0))
    starts, texts = torch.arange(0, 21, 2), torch.arange(20)
    expected, _ = contrastive_losses(vectors, starts, texts)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = contrastive_losses(vectors, starts, texts)
    assert torch.equal(found, expected)


def test_pairs_that_stand_in_the_order_of_their_scores_cost_little() -> None:
    scores = torch.tensor([0.0, 1.0, 5.0])
    assert ranking_loss(torch.tensor([-0.9, 0.0, 0.9]), scores).item() < 1e-6
    assert ranking_loss(torch.tensor([0.9, 0.0, -0.9]), scores).item() > 30
    # Their unit does not count.
    cosines = torch.tensor([0.3, 0.1, 0.2])
    assert ranking_loss(cosines, scores).item() == ranking_loss(cosines, 100 * scores - 7).item()


def test_the_ranking_loss_by_hand() -> None:
    cosines, scores = [0.5, 0.1, 0.2], [1.0, 1.0, 2.0]
    # Only the third pair has a higher score than others, the first two.
    expected = np.log(1 + np.exp((0.5 - 0.2) / 0.1) + np.exp((0.1 - 0.2) / 0.1))
    found = ranking_loss(torch.tensor(cosines), torch.tensor(scores), temperature=0.1)
    assert found.item() == pytest.approx(expected, rel=1e-6)
    assert ranking_loss(torch.tensor(cosines), torch.ones(3)).item() == 0.0


def test_graded_pairs_are_weighed_by_their_number() -> None:
    model, batch = _model().eval(), _batch("scored")
    assert batch.labels is not None
    report = RankedPairs().report(model, batch, with_hits=True)
    vectors = sentence_vectors(model, batch.packed)
    cosines = functional.cosine_similarity(vectors[0::2], vectors[1::2])
    assert report.loss(report.counts).item() == pytest.approx(ranking_loss(cosines, batch.labels).item(), rel=1e-5)
    assert report.hits == {}


@pytest.mark.parametrize("kind", ["pairs", "scored"])
def test_one_step_moves_every_weight(kind: EmbedKind) -> None:
    model = _model().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    objective = RankedPairs() if kind == "scored" else InBatchNegatives()
    train_step(state, [_batch(kind)], objective, device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0)
    still = {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])}
    assert still == set()


def test_batches_without_groups_or_targets_are_refused() -> None:
    model, batch = _model(), _batch()
    for objective in (InBatchNegatives(), RankedPairs()):
        with pytest.raises(ValueError, match="groups of texts"):
            objective.report(model, replace(batch, group_starts=None), with_hits=False)
    with pytest.raises(ValueError, match="number of each text"):
        InBatchNegatives().report(model, _batch("scored"), with_hits=False)
    with pytest.raises(ValueError, match="a score each"):
        RankedPairs().report(model, batch, with_hits=False)


def test_retrieval_by_hand() -> None:
    # First texts stand at 0, 2, 4 and partners at 1, 3, 5.
    angles = np.radians([0, 10, 20, 100, 90, 95])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    starts, texts = np.array([0, 2, 4, 6]), np.arange(6)
    found = retrieval(vectors, starts, texts)
    # The second finds 1 (10 degrees away), 5 (75) and at last its own, 3 (80).
    assert found.ranks.tolist() == [1, 3, 1]
    assert found.nearest.tolist() == [1, 1, 5]
    assert found.cosines == pytest.approx(np.cos(np.radians([10, 10, 5])), abs=1e-6)
    assert found.num_candidates == 3
    assert found.scores == pytest.approx(
        {"recall_at_1": 2 / 3, "recall_at_5": 1.0, "recall_at_10": 1.0, "mrr": (1 + 1 / 3 + 1) / 3}
    )


def test_retrieval_passes_over_the_text_itself_and_its_other_partners() -> None:
    vectors = np.array([[1, 0], [1, 1], [1, 0], [1, 0.1], [0, 1], [1, 0]], np.float32)
    # Rows 0 and 1 have the same first text; row 2 has it as its partner.
    found = retrieval(vectors, np.array([0, 2, 4, 6]), np.array([0, 1, 0, 3, 4, 0]))
    assert found.ranks.tolist() == [1, 1, 3]
    # Were the texts different ones, the first would find its partner last.
    assert retrieval(vectors, np.array([0, 2, 4, 6]), np.arange(6)).ranks[0] == 3


def test_the_same_partner_of_two_rows_is_one_candidate() -> None:
    vectors = np.array([[1, 0], [1, 0.5], [0.9, 0], [1, 0.5], [0, 1], [0.1, 1]], np.float32)
    found = retrieval(vectors, np.array([0, 2, 4, 6]), np.array([0, 1, 2, 1, 4, 5]))
    assert found.num_candidates == 2
    assert found.ranks.tolist() == [1, 1, 1]


def test_embeddings_that_are_all_equal_find_nothing() -> None:
    found = retrieval(np.ones((40, 4), np.float32), np.arange(0, 41, 2), np.arange(40))
    assert found.ranks.tolist() == [20] * 20
    assert found.scores["recall_at_10"] == 0.0


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_embeddings_that_are_no_numbers_find_nothing_and_are_not_found(broken: float) -> None:
    vectors = np.full((40, 4), broken, np.float32)
    found = retrieval(vectors, np.arange(0, 41, 2), np.arange(40))
    assert found.ranks.tolist() == [20] * 20
    assert found.scores["recall_at_10"] == 0.0
    assert found.scores["mrr"] == pytest.approx(1 / 20)
    vectors = np.eye(6, dtype=np.float32)[[0, 0, 1, 1, 2, 2]]
    vectors[3] = broken
    assert retrieval(vectors, np.array([0, 2, 4, 6]), np.arange(6)).ranks.tolist() == [2, 3, 2]


def test_retrieval_in_blocks_gives_the_same() -> None:
    vectors = np.random.default_rng(0).normal(size=(90, 8)).astype(np.float32)
    starts, texts = np.arange(0, 91, 3), np.random.default_rng(1).integers(0, 50, 90)
    whole = retrieval(vectors, starts, texts)
    for block_elements in (1, 100, 333):
        found = retrieval(vectors, starts, texts, block_elements=block_elements)
        assert found.ranks.tolist() == whole.ranks.tolist()
        assert found.nearest.tolist() == whole.nearest.tolist()


def test_cosines_of_pairs() -> None:
    vectors = np.array([[3, 0], [0, 2], [1, 1], [2, 2], [0, 0], [1, 0]], np.float32)
    assert pair_cosines(vectors, np.array([0, 2, 4])) == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)


def test_the_loss_of_a_validation_is_that_of_blocks_of_64_rows() -> None:
    vectors = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    starts, texts = np.arange(0, 201, 2), np.arange(200)
    blocks = [
        contrastive_losses(torch.from_numpy(vectors[2 * first : 2 * end]), bounds, torch.arange(2 * (end - first)))[0]
        for first, end in ((0, 64), (64, 100))
        if (bounds := torch.arange(0, 2 * (end - first) + 1, 2)) is not None
    ]
    expected = torch.cat(blocks).mean().item()
    assert validation_loss(vectors, starts, texts=texts) == pytest.approx(expected, rel=1e-6)


def test_the_loss_of_graded_pairs_is_that_of_blocks_too() -> None:
    vectors = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    scores = np.random.default_rng(1).normal(size=100).astype(np.float32)
    cosines = torch.from_numpy(pair_cosines(vectors, np.arange(0, 200, 2)))
    parts = [float(ranking_loss(cosines[part], torch.from_numpy(scores)[part])) for part in (slice(64), slice(64, 100))]
    found = validation_loss(vectors, np.arange(0, 201, 2), scores=scores)
    assert found == pytest.approx((64 * parts[0] + 36 * parts[1]) / 100, rel=1e-5)
