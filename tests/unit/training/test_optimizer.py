"""Which weight is updated how, and that a stopped run's optimizer goes on as it was."""

import itertools
import math
import os
import subprocess
import sys
import tomllib
from typing import Any

import made_training as made
import pytest
import tomli_w
import torch
from safetensors.torch import load, save

from bertsmith.foundation.errors import InputError
from bertsmith.model import Model
from bertsmith.recipes.settings import with_assignments
from bertsmith.training.config import OptimizerConfig, TrainingConfig
from bertsmith.training.optimizer import RATE_RATIO, new_optimizer, size_of_layer_weights
from bertsmith.training.stacked import NUM_STACKED, num_stacked
from bertsmith.training.step import TrainState, restore_tensors, state_tensors
from made_corpora import made_model, weights_of

KINDS = ("adamw", "adam_published", "lamb", "stable_adamw")
CONFIGS = {
    **{kind: OptimizerConfig(kind=kind) for kind in KINDS},
    "adamw with muon": OptimizerConfig(matrices="muon"),
    "stable_adamw with muon and layer decay": OptimizerConfig(kind="stable_adamw", matrices="muon", layer_decay=0.8),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


def _groups_by_name(model: Model, config: OptimizerConfig) -> dict[str, dict[str, Any]]:
    """The parameter group of each weight; each must be in exactly one."""
    names = {id(weight): name for name, weight in model.named_parameters()}
    pairs = [(names[id(w)], group) for group in new_optimizer(model, config).param_groups for w in group["params"]]
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


@each_config
def test_one_step_of_any_optimizer_moves_every_weight(config: OptimizerConfig) -> None:
    training = made.state(pairs=True, optimizer=config)
    before = weights_of(training.model)
    made.step(training, made.loader(pairs=True).micro_batches(0), pairs=True)
    assert [n for n, value in training.model.state_dict().items() if torch.equal(before[n], value)] == []


@each_config
def test_any_optimizer_lowers_the_loss_of_a_batch(config: OptimizerConfig) -> None:
    training = made.state(optimizer=config)
    batches = made.loader().micro_batches(0)
    losses = []
    for _ in range(30):
        (part,) = made.step(training, batches, learning_rate=1e-2).parts
        losses.append(float(part.totals["mlm"]) / part.counts["mlm"])
    assert losses[-1] < 0.8 * losses[0]


@each_config
def test_any_optimizer_that_was_put_back_goes_on_to_the_bit(config: OptimizerConfig) -> None:
    loader = made.loader(pairs=True)

    def go_on(training: TrainState, numbers: range) -> None:
        for number in numbers:
            made.step(training, loader.micro_batches(number), pairs=True, learning_rate=1e-2 / (1 + number))

    one = made.state(pairs=True, optimizer=config)
    go_on(one, range(3))
    other = made.state(pairs=True, optimizer=config)
    other.model.load_state_dict(weights_of(one.model))
    restore_tensors(other, load(save(state_tensors(one))))
    other.step = one.step
    go_on(one, range(3, 6))
    go_on(other, range(3, 6))
    assert all(torch.equal(value, other.model.state_dict()[name]) for name, value in one.model.state_dict().items())
    tensors, others = state_tensors(one), state_tensors(other)
    assert tensors.keys() == others.keys()
    assert {name.rpartition("/")[0] for name in tensors} == {name for name, _ in one.model.named_parameters()}
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())


@each_config
def test_an_optimizer_that_was_not_put_back_goes_elsewhere(config: OptimizerConfig) -> None:
    loader = made.loader()
    one = made.state(optimizer=config)
    made.step(one, loader.micro_batches(0))
    other = made.state(optimizer=config)
    other.model.load_state_dict(weights_of(one.model))
    other.step = one.step
    for training in (one, other):
        made.step(training, loader.micro_batches(1))
    assert not any(torch.equal(v, other.model.state_dict()[name]) for name, v in one.model.state_dict().items())


@each_config
def test_vectors_never_decay(config: OptimizerConfig) -> None:
    model = made_model(40, pairs=True)
    for name, group in _groups_by_name(model, config.model_copy(update={"weight_decay": 0.3})).items():
        assert group["weight_decay"] == (0.0 if name.endswith("bias") or "norm" in name else 0.3), name


@pytest.mark.parametrize("kind", ["adamw", "stable_adamw"])
def test_muon_takes_the_matrices_of_the_layers_and_nothing_else(kind: str) -> None:
    training = made.state(pairs=True, optimizer=OptimizerConfig(kind=kind, matrices="muon"))
    made.step(training, made.loader(pairs=True).micro_batches(0), pairs=True)
    by_muon = {name.rpartition("/")[0] for name in state_tensors(training) if name.endswith("/momentum_buffer")}
    inner = ("attention.query_key_value", "attention.output", "feed_forward.up", "feed_forward.down")
    assert by_muon == {f"encoder.layers.{n}.{part}.weight" for n, part in itertools.product(range(2), inner)}
    assert not any(name.rpartition("/")[0] in by_muon for name in state_tensors(training) if "exp_avg" in name)


@pytest.mark.parametrize("kind", ["lamb", "adam_published"])
def test_muon_beside_a_kind_that_had_none_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match=f"kind is {kind}, which is there to train as a published model was"):
        OptimizerConfig.parse({"kind": kind, "matrices": "muon"}, where="--set")


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'adamw', 'adam_published', 'lamb' or 'stable_adamw'"):
        OptimizerConfig.parse({"kind": "adagrad"}, where="--set")


def test_settings_come_from_the_command_line_and_come_back_from_a_file() -> None:
    values = {"kind": "stable_adamw", "matrices": "muon", "layer_decay": 0.9, "clip_norm": math.inf}
    assignments = [f"training.optimizer.{name}={value}" for name, value in values.items()]
    optimizer = TrainingConfig.parse(with_assignments({}, assignments)["training"], where="--set").optimizer
    assert {name: getattr(optimizer, name) for name in values} == values
    written = tomli_w.dumps(optimizer.model_dump(mode="json"))
    assert OptimizerConfig.parse(tomllib.loads(written), where="run.toml") == optimizer


@pytest.mark.parametrize("layer_decay", [0.0, -0.5, 1.5])
def test_a_layer_decay_outside_its_rule_is_refused(layer_decay: float) -> None:
    with pytest.raises(InputError, match="layer_decay"):
        OptimizerConfig.parse({"layer_decay": layer_decay}, where="--set")


def _expected_distance(name: str) -> int:
    """Of two layers."""
    if name.startswith("encoder.embeddings."):
        return 3
    return {"encoder.layers.0.": 2, "encoder.layers.1.": 1}.get(name[: len("encoder.layers.0.")], 0)


@pytest.mark.parametrize("matrices", ["same", "muon"])
def test_layer_decay_lowers_the_rate_with_the_distance_from_the_heads(matrices: str) -> None:
    rate = {"muon_learning_rate": 4e-2} if matrices == "muon" else {}
    config = OptimizerConfig(layer_decay=0.5, matrices=matrices, learning_rate=1e-2, **rate)
    model = made_model(40, pairs=True)
    for name, group in _groups_by_name(model, config).items():
        muon = matrices == "muon" and "encoder.layers" in name and model.get_parameter(name).ndim == 2
        assert group[RATE_RATIO] == pytest.approx(0.5 ** _expected_distance(name) * (4.0 if muon else 1.0)), name


def test_layer_decay_moves_lower_layers_less() -> None:
    training = made.state(pairs=True, optimizer=OptimizerConfig(layer_decay=0.5, weight_decay=0.0))
    before = weights_of(training.model)
    made.step(training, made.loader(pairs=True).micro_batches(0), pairs=True, learning_rate=1e-3)
    for name, weight in training.model.named_parameters():
        # AdamW's first step is as long as the rate where a gradient is well above eps.
        moved = float((weight.detach() - before[name]).abs().max())
        assert moved == pytest.approx(1e-3 * 0.5 ** _expected_distance(name), rel=0.05), name


def test_without_layer_decay_all_have_the_same_rate() -> None:
    groups = _groups_by_name(made_model(40, pairs=True), OptimizerConfig())
    assert {group[RATE_RATIO] for group in groups.values()} == {1.0}


@each_config
def test_a_frozen_weight_stays_out(config: OptimizerConfig) -> None:
    model = made_model(40)
    for weight in model.encoder.parameters():
        weight.requires_grad_(False)
    assert set(_groups_by_name(model, config)) == {n for n, _ in model.named_parameters() if "encoder." not in n}


@each_config
def test_a_weight_without_a_gradient_stays_as_it_is(config: OptimizerConfig) -> None:
    # The pooler, which nothing reads without pairs.
    training = made.state(pairs=True, optimizer=config)
    before = weights_of(training.model)
    made.step(training, made.loader().micro_batches(0))
    unmoved = {name for name, value in training.model.state_dict().items() if torch.equal(before[name], value)}
    assert unmoved == {f"{part}.{kind}" for part in ("pooler.dense", "next_sentence") for kind in ("weight", "bias")}


def test_stacked_matrices_are_told_by_name_and_shape() -> None:
    model = made_model(40)
    model.encoder.layers[1].feed_forward.up = torch.nn.Linear(16, 64)  # A gate beside the value, 32 wide each.
    stacked = {name: num_stacked(model, name) for name, _ in model.named_parameters()}
    assert {name: number for name, number in stacked.items() if number != 1} == {
        "encoder.layers.0.attention.query_key_value.weight": 3,
        "encoder.layers.1.attention.query_key_value.weight": 3,
        "encoder.layers.1.feed_forward.up.weight": 2,
    }
    groups = _groups_by_name(model, OptimizerConfig(kind="lamb"))
    assert all(groups[name][NUM_STACKED] == number for name, number in stacked.items())


def test_a_gated_matrix_is_made_orthogonal_half_by_half() -> None:
    model = made_model(40)
    gated = torch.nn.Linear(16, 64)
    model.encoder.layers[1].feed_forward.up = gated
    optimizer = new_optimizer(model, OptimizerConfig(matrices="muon", weight_decay=0.0))
    before = gated.weight.detach().clone()
    gradient = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    gradient[:32] *= 1e-3  # Would be all but lost beside the other half.
    gated.weight.grad = gradient
    optimizer.step()
    moved = before - gated.weight.detach()
    for half, along in zip(moved.chunk(2), gradient.chunk(2), strict=True):
        assert float(torch.linalg.svdvals(half).min()) > 0.5 * 0.02 * math.sqrt(2)
        assert float((half * along).sum()) > 0


def test_the_size_of_the_layers_weights_leaves_embeddings_vectors_and_heads_out() -> None:
    model = made_model(40)
    for name, weight in model.named_parameters():
        inside = name.startswith("encoder.layers.") and weight.ndim == 2
        torch.nn.init.constant_(weight, -0.5 if inside else 100.0)
    assert size_of_layer_weights(model) == pytest.approx(0.5)


def test_without_a_largest_norm_gradients_stay_as_they_are() -> None:
    norms = []
    config = OptimizerConfig.parse({"clip_norm": math.inf}, where="--set")
    for clip_norm in (1e9, config.clip_norm):
        training = made.state(optimizer=config)

        def note(optimizer: torch.optim.Optimizer, *rest: object, kept: TrainState = training) -> None:
            norms.append(float(torch.cat([weight.grad.flatten() for weight in kept.model.parameters()]).norm()))

        training.optimizer.register_step_pre_hook(note)
        assert made.step(training, made.loader().micro_batches(0), clip_norm=clip_norm).updated
    assert norms[0] == norms[1] > 0


@pytest.mark.parametrize("kind", ["lamb", "adam_published"])
def test_the_state_of_the_published_kinds_is_two_means_and_no_count(kind: str) -> None:
    training = made.state(optimizer=OptimizerConfig(kind=kind))
    made.step(training, made.loader().micro_batches(0))
    assert {name.rpartition("/")[2] for name in state_tensors(training)} == {"exp_avg", "exp_avg_sq"}


def test_no_optimizer_loads_torchs_compiler() -> None:
    """It takes a second, and nothing here is compiled by it. A process of its own, since others may have loaded it."""
    code = """
import sys
from bertsmith.training.config import OptimizerConfig
from bertsmith.training.optimizer import new_optimizer
from made_corpora import made_model
for kind, matrices in (("adamw", "muon"), ("adamw", "same"), ("adam_published", "same"), ("lamb", "same")):
    model = made_model(40)
    optimizer = new_optimizer(model, OptimizerConfig(kind=kind, matrices=matrices))
    sum(weight.sum() for weight in model.parameters()).backward()
    optimizer.step()
    optimizer.zero_grad()
print("torch._dynamo" in sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert found.stdout == "False\n"
