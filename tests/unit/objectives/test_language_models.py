"""The objectives that read their targets off the tokens themselves: causal, and both directions of an ELMo."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.engine.device import Device
from bertsmith.examples.targets import IGNORED
from bertsmith.folders.model_folder import read_model, write_model
from bertsmith.model import HeadsConfig, Model, ModelConfig, PackedTokens, new_model
from bertsmith.model.like_size import elmo_of_like_size
from bertsmith.objectives.bidirectional_lstm import BidirectionalLanguageModel
from bertsmith.objectives.causal import CausalLanguageModel, next_tokens, previous_tokens
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_tokenizer, weights_of

CPU = Device("cpu", "fp32")
LENGTHS = [7, 1, 20, 2, 11]


def batch_of(lengths: list[int], *, multiple: int = 1, seed: int = 0) -> Batch:
    ids = np.random.default_rng(seed).integers(5, 260, sum(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    none = torch.zeros(0, dtype=torch.int64)
    return Batch(PackedTokens.build(ids, np.zeros_like(ids), starts, multiple=multiple), none, none, 0)


def gpt() -> Model:
    config = made_model(260).config
    causal = config.encoder.model_copy(update={"causal": True})
    return new_model(ModelConfig(encoder=causal), seed=0).eval()


def elmo() -> Model:
    return new_model(elmo_of_like_size(made_model(260).config), seed=0).eval()


MODELS = {"causal": (gpt, CausalLanguageModel()), "bilm": (elmo, BidirectionalLanguageModel())}


def test_targets_are_the_neighbours_within_a_sequence() -> None:
    packed = batch_of([3, 1, 2], multiple=8).packed
    ids = packed.token_ids.tolist()
    none = [IGNORED]
    assert next_tokens(packed).tolist() == [*ids[1:3], *none, *none, ids[5], *none, *none, *none]
    assert previous_tokens(packed).tolist() == [*none, *ids[:2], *none, *none, ids[4], *none, *none]


def test_the_causal_loss_is_the_reference_implementations(tmp_path: Path) -> None:
    from transformers import BertLMHeadModel

    model = gpt()
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, model, made_tokenizer())
    reference = BertLMHeadModel.from_pretrained(folder).eval()
    assert reference.config.is_decoder
    batch = batch_of(LENGTHS)
    report = CausalLanguageModel().report(model, batch, with_hits=True)
    total, hits = 0.0, 0
    for start, end in pairwise(batch.packed.sequence_starts.tolist()):
        ids = batch.packed.token_ids[start:end][None]
        with torch.no_grad():
            logits = reference(ids).logits[0]
        total += float(functional.cross_entropy(logits[:-1], ids[0, 1:], reduction="sum")) if end - start > 1 else 0.0
        hits += int((logits[:-1].argmax(-1) == ids[0, 1:]).sum())
    assert float(report.totals["causal"].detach()) == pytest.approx(total, rel=1e-5)
    assert int(report.hits["causal"]) == hits
    assert report.counts == {"causal": sum(LENGTHS) - len(LENGTHS)}


def test_the_loss_of_both_directions_is_the_mean_of_all_their_predictions() -> None:
    model, batch = elmo(), batch_of(LENGTHS)
    report = BidirectionalLanguageModel().report(model, batch, with_hits=True)
    head = model.masked_language_model
    assert head is not None
    hidden, ids = model.encoder.packed(batch.packed), batch.packed.token_ids
    width = model.config.encoder.embedding_width
    losses: list[torch.Tensor] = []
    hits = 0
    for start, end in pairwise(batch.packed.sequence_starts.tolist()):
        for states, truth in (
            (hidden[start : end - 1, :width], ids[start + 1 : end]),
            (hidden[start + 1 : end, width:], ids[start : end - 1]),
        ):
            logits = states @ head.projection.T + head.bias
            losses.append(functional.cross_entropy(logits, truth, reduction="none"))
            hits += int((logits.argmax(-1) == truth).sum())
    expected = torch.cat(losses)
    assert report.counts == {"bilm": len(expected)}
    torch.testing.assert_close(report.loss(report.counts), expected.mean(), rtol=1e-5, atol=0)
    assert int(report.hits["bilm"]) == hits


@pytest.mark.parametrize("name", MODELS)
def test_what_fills_up_the_shape_is_not_predicted(name: str) -> None:
    make, objective = MODELS[name]
    model = make().double()
    plain, filled = batch_of(LENGTHS), batch_of(LENGTHS, multiple=64)
    assert len(filled.packed.token_ids) > filled.packed.num_tokens
    reports = [objective.report(model, batch, with_hits=True) for batch in (plain, filled)]
    assert reports[0].counts == reports[1].counts == objective.counts(filled)
    torch.testing.assert_close(reports[0].totals, reports[1].totals, rtol=0, atol=1e-10)
    assert reports[0].hits == reports[1].hits


@pytest.mark.parametrize("name", MODELS)
def test_parts_of_a_batch_add_up_to_the_whole(name: str) -> None:
    make, objective = MODELS[name]
    model = make().double()
    ids = batch_of(LENGTHS).packed.token_ids.numpy()
    bounds = np.cumsum([0, *LENGTHS])
    none = torch.zeros(0, dtype=torch.int64)

    def part(first: int, end: int) -> Batch:
        own = ids[bounds[first] : bounds[end]]
        starts = bounds[first : end + 1] - bounds[first]
        return Batch(PackedTokens.build(own, np.zeros_like(own), starts), none, none, 0)

    losses: list[float] = []
    for parts in ([part(0, 5)], [part(0, 2), part(2, 3), part(3, 5)]):
        counts = add_counts(objective.counts(batch) for batch in parts)
        losses.append(sum(float(objective.report(model, one, with_hits=False).loss(counts).detach()) for one in parts))
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_sequence_of_one_token_asks_for_nothing(name: str) -> None:
    make, objective = MODELS[name]
    report = objective.report(make(), batch_of([1]), with_hits=True)
    assert report.counts == {name: 0}
    assert float(report.loss(report.counts).detach()) == 0.0


@pytest.mark.parametrize("name", MODELS)
def test_one_step_moves_every_weight_that_can_matter(name: str) -> None:
    make, objective = MODELS[name]
    model = make().train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig(weight_decay=0.0)))
    batch = batch_of([30] * 8)
    report = train_step(state, [batch], objective, device=CPU, learning_rate=1e-2, clip_norm=1.0, seed=0)
    assert report.updated
    still = {key for key, value in model.state_dict().items() if torch.equal(value, before[key])}
    assert not still


@pytest.mark.parametrize(
    ("objective", "make", "told"),
    [
        (CausalLanguageModel(), lambda: made_model(260), "encoder.causal=true"),
        (BidirectionalLanguageModel(), gpt, "encoder.family='elmo'"),
    ],
)
def test_a_model_that_would_see_its_targets_is_refused(objective: Objective, make: object, told: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=told):
        objective.report(make(), batch_of([5]), with_hits=False)


def test_a_model_without_a_head_is_told() -> None:
    config = gpt().config
    headless = new_model(ModelConfig(encoder=config.encoder, heads=HeadsConfig(masked_language_model=False)), seed=0)
    with pytest.raises(ValueError, match="head over the vocabulary"):
        CausalLanguageModel().report(headless, batch_of([5]), with_hits=False)


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_gives_the_model_back(name: str, tmp_path: Path) -> None:
    make, objective = MODELS[name]
    model = make()
    write_model(tmp_path, model, made_tokenizer())
    read = read_model(tmp_path)
    assert read.model.config == model.config
    assert read.notes == ()
    batch = batch_of(LENGTHS)
    found, expected = (objective.report(each, batch, with_hits=False).totals for each in (read.model, model))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
