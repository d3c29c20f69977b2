"""Labels of words: the loss, its weights, decoding, the scores."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from bertsmith.batches.batch import Batch
from bertsmith.batches.task_loader import TaskLoader
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.tag_schemes import Span
from bertsmith.examples.tagging import tag_ids, tagged_examples
from bertsmith.examples.targets import IGNORED
from bertsmith.model import HeadsConfig, ModelConfig, new_model
from bertsmith.objectives.classification import label_loss, label_scores
from bertsmith.objectives.report import Objective, add_counts
from bertsmith.objectives.tagging import (
    TERM,
    EntityCounts,
    Tagging,
    count_entities,
    decoded_entities,
    entity_details,
    entity_scores,
    tag_logits,
)
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import TrainState, new_optimizer, train_step
from made_corpora import made_model, made_tokenizer, weights_of
from made_sentences import ENTITY_LABELS, made_sentences, made_tagger

CPU = Device("cpu", "fp32")
SENTENCES = made_sentences(12)
NUM_WORDS = sum(len(one.words) for one in SENTENCES)


def _loader(*, micro_batch_tokens: int = 10_000) -> TaskLoader:
    ids = tag_ids(SENTENCES, ENTITY_LABELS, Path("a.conll"))
    examples = tagged_examples(SENTENCES, ids, made_tokenizer(), max_length=64)
    return TaskLoader(examples, batch_size=12, micro_batch_tokens=micro_batch_tokens, seed=0)


def _batch() -> Batch:
    (batch,) = _loader().micro_batches(0)
    return batch


def _labels(batch: Batch) -> torch.Tensor:
    assert batch.labels is not None
    return batch.labels[: batch.packed.num_tokens]


def test_it_is_an_objective_that_counts_words_and_not_tokens() -> None:
    objective = Tagging()
    assert isinstance(objective, Objective)
    assert objective.terms == (TERM,)
    batch = _batch()
    assert objective.counts(batch) == {TERM: NUM_WORDS}
    assert len(batch.packed.token_ids) > NUM_WORDS


def test_the_loss_is_the_cross_entropy_of_the_words_that_carry_a_label() -> None:
    model, batch = made_tagger().eval(), _batch()
    truth = _labels(batch)
    report = Tagging().report(model, batch, with_hits=True)
    logits = tag_logits(model, batch.packed)
    assert logits.shape == (batch.packed.num_tokens, len(ENTITY_LABELS))
    expected = functional.cross_entropy(logits[truth != IGNORED], truth[truth != IGNORED])
    assert report.counts == {TERM: NUM_WORDS}
    assert report.loss(report.counts).item() == pytest.approx(expected.item(), rel=1e-6)
    assert int(report.hits[TERM]) == int((logits.argmax(-1) == truth).sum())
    assert Tagging().report(model, batch, with_hits=False).hits == {}


def test_parts_of_a_batch_add_up_to_the_whole_with_weights_too() -> None:
    model = made_tagger().eval()
    for objective in (Tagging(), Tagging((0.5, 1.0, 2.0, 3.0, 0.1))):
        parts = _loader(micro_batch_tokens=80).micro_batches(0)
        assert len(parts) > 1
        counts = add_counts(objective.counts(part) for part in parts)
        together = sum(objective.report(model, part, with_hits=False).loss(counts).item() for part in parts)
        whole = objective.report(model, _batch(), with_hits=False).loss(counts).item()
        assert together == pytest.approx(whole, rel=1e-5)


def test_a_weight_counts_the_words_of_its_label_so_many_times() -> None:
    model, batch = made_tagger().eval(), _batch()
    weights, truth = (0.5, 1.0, 2.0, 3.0, 0.1), _labels(batch)
    carried = truth != IGNORED
    each = functional.cross_entropy(tag_logits(model, batch.packed)[carried], truth[carried], reduction="none")
    found = Tagging(weights).report(model, batch, with_hits=False).totals[TERM].item()
    assert found == pytest.approx((each * torch.tensor(weights)[truth[carried]]).sum().item(), rel=1e-6)


def test_a_model_or_batch_without_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a head for labels of tokens"):
        Tagging().report(made_model(made_tokenizer().vocab_size), _batch(), with_hits=False)
    batch = _batch()
    bare = Batch(batch.packed, batch.target_positions, batch.target_ids, 0)
    with pytest.raises(ValueError, match="needs the labels of tokens"):
        Tagging().counts(bare)


def test_one_step_moves_every_weight_that_is_used() -> None:
    encoder = made_model(made_tokenizer().vocab_size).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="tag", labels=ENTITY_LABELS)
    model = new_model(ModelConfig(encoder=encoder, heads=heads), seed=0).train()
    before = weights_of(model)
    state = TrainState(model, new_optimizer(model, OptimizerConfig()))
    train_step(state, _loader().micro_batches(0), Tagging(), device=CPU, learning_rate=1e-3, clip_norm=1.0, seed=0)
    assert {name for name, weight in weights_of(model).items() if torch.equal(weight, before[name])} == set()


def test_the_engine_counts_words_over_batches() -> None:
    found = evaluate(made_tagger(), Tagging(), _loader(micro_batch_tokens=80).in_order(), CPU)
    assert found[f"{TERM}_count"] == NUM_WORDS


def test_entities_are_counted_by_all_their_words_and_their_type() -> None:
    truth = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "I-LOC"]]
    predicted = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "O"]]
    counts = count_entities(truth, predicted)
    assert counts == {"LOC": EntityCounts(2, 1, 0), "PER": EntityCounts(1, 2, 1)}
    scores = entity_scores(counts)
    assert scores["micro_precision"] == scores["micro_recall"] == scores["f1"] == pytest.approx(1 / 3)
    assert scores["macro_precision"] == pytest.approx((0 + 1 / 2) / 2)
    assert scores["macro_recall"] == pytest.approx((0 + 1) / 2)
    assert scores["macro_f1"] == pytest.approx((0 + 2 / 3) / 2)
    assert entity_details(counts)["PER"] == pytest.approx({"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "rows": 1})


def test_a_word_of_several_pieces_is_one_entity() -> None:
    # The labels are those of words: what a word was cut into cannot multiply it.
    assert count_entities([["B-ORG", "O"]], [["B-ORG", "O"]]) == {"ORG": EntityCounts(1, 1, 1)}


def test_strictly_an_entity_must_be_written_properly() -> None:
    truth, predicted = [["B-X", "I-X", "O"]], [["I-X", "I-X", "O"]]
    assert count_entities(truth, predicted) == {"X": EntityCounts(1, 1, 1)}
    assert count_entities(truth, predicted, strict="BIO") == {"X": EntityCounts(1, 0, 0)}


def test_scores_are_zero_where_there_is_nothing() -> None:
    assert entity_scores(count_entities([["O"]], [["O"]])) == dict.fromkeys(
        ("f1", "micro_precision", "micro_recall", "macro_f1", "macro_precision", "macro_recall"), 0.0
    )
    assert EntityCounts(0, 2, 0).scores == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_labels_of_words_are_scored_by_hand() -> None:
    truth, predicted = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0])
    scores = label_scores(predicted, truth)
    assert scores["accuracy"] == pytest.approx(0.6)
    assert scores["macro_f1"] == pytest.approx((0.5 + 0.8 + 0.0) / 3)
    probabilities = np.array([[0.5, 0.5], [0.0, 1.0]])
    assert label_loss(probabilities, np.array([0, 1])) == pytest.approx(np.log(2) / 2)
    assert np.isfinite(label_loss(probabilities, np.array([0, 0])))


def test_an_entity_has_the_mean_of_its_words_scores() -> None:
    found = decoded_entities(["B-X", "I-X", "O", "I-Y"], np.array([0.9, 0.5, 0.8, 0.6]))
    assert found == [(Span(0, 2, "X"), pytest.approx(0.7)), (Span(3, 4, "Y"), pytest.approx(0.6))]
