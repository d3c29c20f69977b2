"""What an objective reports, compared with the reference implementation."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.batches.batch import Batch
from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.targets import MaskedTargets
from bertsmith.engine.device import Device
from bertsmith.engine.evaluation import evaluate
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.sentence_pairs import sentence_pairs
from bertsmith.examples.targets import IGNORED
from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model import new_model
from bertsmith.model.heads import Model
from bertsmith.objectives.masked_language_model import MaskedLanguageModel
from bertsmith.objectives.report import add_counts
from bertsmith.objectives.sentence_pairs import MaskedLanguageModelWithPairs
from made_corpora import made_format, made_model, made_split, made_tokenizer, weights_of

CPU = Device("cpu", "fp32")


def pair_batches(micro_batch_tokens: int = 10_000) -> tuple[Batch, ...]:
    lengths = random_stream(0, "lengths")
    # Token ids run to 249, within the small vocabulary.
    split = made_split([lengths.integers(1, 5, size=8).tolist() for _ in range(11)])
    assert split.num_tokens <= 240
    examples = sentence_pairs(split, 27, random_stream(0, "pairs"))
    loader = PretrainingLoader(
        split,
        lambda epoch: examples,
        made_format(),
        targets=MaskedTargets(MaskingConfig(mask_rate=0.3)),
        batch_tokens=200,
        micro_batch_tokens=micro_batch_tokens,
        seed=0,
    )
    return loader.micro_batches(0)


def _padded(batch: Batch) -> dict[str, torch.Tensor]:
    """The batch as padded tensors with labels, as the reference takes it."""
    packed = batch.packed
    starts = packed.sequence_starts.tolist()
    shape = (packed.num_sequences, max(end - start for start, end in pairwise(starts)))
    labels = torch.full((packed.num_tokens,), IGNORED)
    labels[batch.target_positions[: batch.num_targets]] = batch.target_ids[: batch.num_targets]
    padded = {
        "input_ids": torch.zeros(shape, dtype=torch.int64),
        "token_type_ids": torch.zeros(shape, dtype=torch.int64),
        "attention_mask": torch.zeros(shape, dtype=torch.int64),
        "labels": torch.full(shape, IGNORED),
    }
    for row, (start, end) in enumerate(pairwise(starts)):
        padded["input_ids"][row, : end - start] = packed.token_ids[start:end]
        padded["token_type_ids"][row, : end - start] = packed.segment_ids[start:end]
        padded["attention_mask"][row, : end - start] = 1
        padded["labels"][row, : end - start] = labels[start:end]
    return padded


def _written(model: Model, folder: Path) -> Path:
    folder.mkdir()
    write_model(folder, model, made_tokenizer())
    return folder


def test_the_masked_loss_is_the_reference_implementations(tmp_path: Path) -> None:
    from transformers import BertForMaskedLM

    model = made_model(260).eval()
    reference = BertForMaskedLM.from_pretrained(_written(model, tmp_path / "model")).eval()
    (batch,) = pair_batches()
    report = MaskedLanguageModel().report(model, batch, with_hits=True)
    with torch.no_grad():
        expected = reference(**_padded(batch))
    loss = float(report.loss(report.counts).detach())
    assert loss == pytest.approx(float(expected.loss), rel=1e-5)
    labels = _padded(batch)["labels"]
    assert int(report.hits["mlm"]) == int((expected.logits.argmax(-1) == labels).sum())
    assert report.counts == MaskedLanguageModel().counts(batch) == {"mlm": int((labels >= 0).sum())}


def test_the_loss_with_next_sentence_is_the_reference_implementations(tmp_path: Path) -> None:
    from transformers import BertForPreTraining

    model = made_model(260, pairs=True).eval()
    reference = BertForPreTraining.from_pretrained(_written(model, tmp_path / "model")).eval()
    (batch,) = pair_batches()
    objective = MaskedLanguageModelWithPairs("nsp")
    report = objective.report(model, batch, with_hits=True)
    assert batch.pair_labels is not None
    with torch.no_grad():
        expected = reference(**_padded(batch), next_sentence_label=batch.pair_labels)
    assert float(report.loss(report.counts).detach()) == pytest.approx(float(expected.loss), rel=1e-5)
    right = expected.seq_relationship_logits.argmax(-1) == batch.pair_labels
    assert int(report.hits["nsp"]) == int(right.sum())
    assert report.counts == objective.counts(batch)
    assert report.counts["nsp"] == batch.packed.num_sequences
    assert set(report.totals) == set(objective.terms) == {"mlm", "nsp"}


def test_next_sentence_sums_are_as_exact_as_the_weights() -> None:
    model = made_model(260, pairs=True).double().eval()
    (batch,) = pair_batches()
    report = MaskedLanguageModelWithPairs("nsp").report(model, batch, with_hits=False)
    assert report.totals["mlm"].dtype == report.totals["nsp"].dtype == torch.float64


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    model = made_model(260, pairs=True).double().eval()
    objective = MaskedLanguageModelWithPairs("nsp")
    whole, parts = pair_batches(), pair_batches(micro_batch_tokens=45)
    assert len(parts) > 3
    losses = []
    for batches in (whole, parts):
        counts = add_counts(objective.counts(batch) for batch in batches)
        losses.append(
            sum(float(objective.report(model, batch, with_hits=False).loss(counts).detach()) for batch in batches)
        )
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)


def _ordering_model(model: Model) -> Model:
    """A copy of a model with pairs whose head of sentence order has the weights of its head of next sentences."""
    heads = model.config.heads.model_copy(update={"next_sentence": False, "sentence_order": True})
    ordering = new_model(model.config.model_copy(update={"heads": heads}), seed=1)
    weights = {name.replace("next_sentence.", "sentence_order."): value for name, value in model.state_dict().items()}
    ordering.load_state_dict(weights)
    return ordering.train(model.training)


def test_sentence_order_is_told_apart_by_its_own_head_as_next_sentences_are_by_theirs() -> None:
    model = made_model(260, pairs=True).double().eval()
    ordering = _ordering_model(model).double().eval()
    (batch,) = pair_batches()
    nsp = MaskedLanguageModelWithPairs("nsp").report(model, batch, with_hits=True)
    objective = MaskedLanguageModelWithPairs("sop")
    sop = objective.report(ordering, batch, with_hits=True)
    assert objective.terms == ("mlm", "sop")
    assert set(sop.totals) == set(sop.counts) == set(sop.hits) == {"mlm", "sop"}
    assert sop.counts == objective.counts(batch)
    for name, same in (("mlm", "mlm"), ("sop", "nsp")):
        assert float(sop.totals[name].detach()) == pytest.approx(float(nsp.totals[same].detach()), abs=1e-12)
        assert int(sop.hits[name]) == int(nsp.hits[same])
    with pytest.raises(ValueError, match=r"sentence_order=true"):
        objective.report(model, batch, with_hits=False)
    with pytest.raises(ValueError, match=r"next_sentence=true"):
        MaskedLanguageModelWithPairs("nsp").report(ordering, batch, with_hits=False)


def _without_targets(batch: Batch) -> Batch:
    return replace(batch, target_ids=torch.full_like(batch.target_ids, IGNORED), num_targets=0)


@pytest.mark.parametrize("empty", [False, True])
def test_a_batch_without_targets_has_loss_zero_and_gradients_of_zero(empty: bool) -> None:
    model = made_model(260)
    (batch,) = pair_batches()
    batch = _without_targets(batch)
    if empty:
        none = torch.zeros(0, dtype=torch.int64)
        batch = replace(batch, target_ids=none, target_positions=none)
    report = MaskedLanguageModel().report(model, batch, with_hits=True)
    loss = report.loss(report.counts)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert int(report.hits["mlm"]) == 0
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert gradients
    assert all((gradient == 0).all() for gradient in gradients)


def test_a_head_that_is_missing_is_told() -> None:
    (batch,) = pair_batches()
    with pytest.raises(ValueError, match=r"next_sentence=true"):
        MaskedLanguageModelWithPairs("nsp").report(made_model(260), batch, with_hits=False)
    with pytest.raises(ValueError, match=r"sentence pairs"):
        MaskedLanguageModelWithPairs("nsp").report(
            made_model(260, pairs=True), replace(batch, pair_labels=None), with_hits=False
        )


def test_evaluation_is_the_same_in_any_parts_and_leaves_the_model_alone() -> None:
    model = made_model(260, pairs=True, dropout=0.5).train()
    before = weights_of(model)
    objective = MaskedLanguageModelWithPairs("nsp")
    whole = evaluate(model, objective, pair_batches(), CPU)
    parts = evaluate(model, objective, pair_batches(micro_batch_tokens=45), CPU)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert whole == pytest.approx(parts, rel=1e-5)
    assert whole["loss"] == pytest.approx(whole["mlm_loss"] + whole["nsp_loss"])
    assert whole["mlm_accuracy"] <= 1.0
    assert np.isfinite(list(whole.values())).all()


def test_evaluation_of_no_target_is_zero_and_not_nan() -> None:
    (batch,) = pair_batches()
    found = evaluate(made_model(260), MaskedLanguageModel(), [_without_targets(batch)], CPU)
    assert found == {"loss": 0.0, "mlm_loss": 0.0, "mlm_accuracy": 0.0, "mlm_count": 0}
