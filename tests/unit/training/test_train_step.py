"""One step: a function of state and batch."""

from dataclasses import replace

import made_training as made
import pytest
import torch

from bertsmith.batches.batch import Batch
from bertsmith.examples.targets import IGNORED
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.step import StepReport, TrainState, new_optimizer, restore_tensors, state_tensors
from made_corpora import weights_of


def _gradients(
    training: TrainState, batches: tuple[Batch, ...], *, pairs: bool
) -> tuple[dict[str, torch.Tensor], float]:
    """Gradients that the optimizer is given, and the loss."""
    taken: dict[str, torch.Tensor] = {}

    def take(optimizer: torch.optim.Optimizer, *rest: object) -> None:
        for name, weight in training.model.named_parameters():
            assert weight.grad is not None, name
            taken[name] = weight.grad.clone()

    training.optimizer.register_step_pre_hook(take)
    report = made.step(training, batches, pairs=pairs, clip_norm=1e9)
    return taken, _loss(report)


def _loss(report: StepReport) -> float:
    total = 0.0
    for term in report.parts[0].totals:
        count = sum(part.counts[term] for part in report.parts)
        total += sum(float(part.totals[term]) for part in report.parts) / count
    return total


@pytest.mark.parametrize("pairs", [False, True])
def test_one_step_moves_every_weight(pairs: bool) -> None:
    training = made.state(pairs=pairs)
    before = weights_of(training.model)
    batches = made.loader(pairs=pairs).micro_batches(0)
    report = made.step(training, batches, pairs=pairs)
    assert report.updated
    assert report.gradient_norm > 0
    unmoved = [name for name, value in training.model.state_dict().items() if torch.equal(before[name], value)]
    assert unmoved == []
    # Rows that no token of the batch uses have no gradient; weight decay alone moves them.
    (batch,) = batches
    assert (training.step, training.tokens) == (1, batch.packed.num_tokens)


@pytest.mark.parametrize("pairs", [False, True])
def test_one_batch_in_many_parts_gives_the_same_gradients_and_loss(pairs: bool) -> None:
    whole = made.loader(pairs=pairs, batch_tokens=240).micro_batches(0)
    parts = made.loader(pairs=pairs, batch_tokens=240, micro_batch_tokens=33).micro_batches(0)
    assert len(whole) == 1
    assert len(parts) >= 8
    assert len({batch.packed.num_tokens for batch in parts}) > 2
    expected, expected_loss = _gradients(made.state(pairs=pairs, double=True), whole, pairs=pairs)
    found, loss = _gradients(made.state(pairs=pairs, double=True), parts, pairs=pairs)
    assert loss == pytest.approx(expected_loss, abs=1e-12)
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, atol=1e-12, rtol=0), name


def test_parts_of_a_batch_give_the_same_run() -> None:
    whole, parts = made.loader(batch_tokens=120), made.loader(batch_tokens=120, micro_batch_tokens=40)
    one, other = made.state(double=True), made.state(double=True)
    for number in range(6):
        made.step(one, whole.micro_batches(number))
        made.step(other, parts.micro_batches(number))
    for name, value in one.model.state_dict().items():
        # Adam divides by the size of a gradient, which lifts rounding errors where it is almost zero.
        assert torch.allclose(value, other.model.state_dict()[name], atol=1e-8, rtol=0), name


def test_a_batch_without_targets_changes_no_weight_and_is_no_nan() -> None:
    training = made.state()
    made.step(training, made.loader().micro_batches(0))
    before, moments = weights_of(training.model), {k: v.clone() for k, v in state_tensors(training).items()}
    empty = tuple(
        replace(batch, target_ids=torch.full_like(batch.target_ids, IGNORED), num_targets=0)
        for batch in made.loader().micro_batches(1)
    )
    report = made.step(training, empty)
    assert (report.parts, report.gradient_norm, report.updated) == ((), 0.0, False)
    assert training.step == 2
    assert all(torch.equal(before[name], value) for name, value in training.model.state_dict().items())
    assert all(torch.equal(moments[name], value) for name, value in state_tensors(training).items())


def test_one_part_without_targets_does_not_disturb_the_others() -> None:
    batches = made.loader(batch_tokens=240, micro_batch_tokens=60).micro_batches(0)
    first = replace(batches[0], target_ids=torch.full_like(batches[0].target_ids, IGNORED), num_targets=0)
    one, other = made.state(double=True), made.state(double=True)
    made.step(one, (first, *batches[1:]))
    made.step(other, batches[1:])
    for name, value in one.model.state_dict().items():
        assert torch.allclose(value, other.model.state_dict()[name], atol=1e-12, rtol=0), name


def test_a_gradient_that_is_not_finite_changes_no_weight() -> None:
    training = made.state()
    made.step(training, made.loader().micro_batches(0))
    with torch.no_grad():
        training.model.encoder.layers[0].feed_forward.up.bias[3] = torch.inf
    before, moments = weights_of(training.model), {k: v.clone() for k, v in state_tensors(training).items()}
    report = made.step(training, made.loader().micro_batches(1))
    assert not report.updated
    assert len(report.parts) == 1
    assert all(torch.equal(before[name], value) for name, value in training.model.state_dict().items())
    assert all(torch.equal(moments[name], value) for name, value in state_tensors(training).items())
    assert all(weight.grad is None for weight in training.model.parameters())


def test_dropout_is_a_function_of_seed_step_and_part() -> None:
    batches = made.loader(batch_tokens=240, micro_batch_tokens=130).micro_batches(0)
    assert len(batches) > 1

    def losses(*, seed: int = 0, at_step: int = 0, global_seed: int = 0) -> list[float]:
        torch.manual_seed(global_seed)
        training = made.state(dropout=0.3)
        training.step = at_step
        # The same part twice: only its number can make a difference.
        report = made.step(training, (batches[0], batches[0]), seed=seed)
        return [float(part.totals["mlm"]) for part in report.parts]

    first = losses()
    assert first == losses(global_seed=99)
    assert first[0] != first[1]
    assert first != losses(seed=1)
    assert first != losses(at_step=1)


def test_a_step_leaves_the_global_random_state_as_it_was() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    made.step(made.state(dropout=0.3), made.loader().micro_batches(0))
    assert torch.equal(before, torch.get_rng_state())


def test_long_gradients_are_scaled_to_the_norm_and_short_ones_are_left() -> None:
    norms: list[float] = []
    for clip_norm in (1e9, 1e-3):
        training = made.state()

        def note(optimizer: torch.optim.Optimizer, *rest: object, kept: TrainState = training) -> None:
            norms.append(float(torch.cat([weight.grad.flatten() for weight in kept.model.parameters()]).norm()))

        training.optimizer.register_step_post_hook(note)
        report = made.step(training, made.loader().micro_batches(0), clip_norm=clip_norm)
        norms.append(report.gradient_norm)
    unclipped, told, clipped, told_again = norms
    assert unclipped == pytest.approx(told, rel=1e-5)
    assert told_again == pytest.approx(told, rel=1e-5)
    assert clipped == pytest.approx(1e-3, rel=1e-2)


def test_vectors_do_not_decay_and_matrices_do() -> None:
    model = made.state(pairs=True).model
    optimizer = new_optimizer(model, OptimizerConfig(weight_decay=0.3))
    decay = {id(weight): group["weight_decay"] for group in optimizer.param_groups for weight in group["params"]}
    for name, weight in model.named_parameters():
        is_vector = name.endswith("bias") or "norm" in name
        assert decay.pop(id(weight)) == (0.0 if is_vector else 0.3), name
    assert not decay


def test_a_step_takes_the_rate_that_it_is_given() -> None:
    slow, fast = made.state(), made.state()
    before = weights_of(slow.model)
    moved = []
    for training, rate in ((slow, 1e-5), (fast, 1e-2)):
        made.step(training, made.loader().micro_batches(0), learning_rate=rate)
        weight = training.model.encoder.layers[0].feed_forward.up.weight
        moved.append(float((weight.detach() - before["encoder.layers.0.feed_forward.up.weight"]).abs().max()))
    assert moved[1] == pytest.approx(1000 * moved[0], rel=0.02)


def test_an_optimizer_that_was_put_back_goes_on_to_the_bit() -> None:
    loader = made.loader(pairs=True)
    one = made.state(pairs=True)
    for number in range(3):
        made.step(one, loader.micro_batches(number), pairs=True)
    other = made.state(pairs=True)
    other.model.load_state_dict(weights_of(one.model))
    restore_tensors(other, {name: value.clone() for name, value in state_tensors(one).items()})
    other.step = one.step
    for number in range(3, 6):
        made.step(one, loader.micro_batches(number), pairs=True)
        made.step(other, loader.micro_batches(number), pairs=True)
    assert all(torch.equal(value, other.model.state_dict()[name]) for name, value in one.model.state_dict().items())
