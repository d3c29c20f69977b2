"""A task learned from frozen features."""

import pytest
import torch

from bertsmith.training.layer_probe import probe_layers


def _features(count: int, *, seed: int, informative: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Three layers of noise, of which one tells the label; scales and means differ widely."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 3
    layers = torch.randn(3, count, 8, generator=generator)
    layers[informative, :, :3] += 4 * torch.nn.functional.one_hot(labels, 3)
    return 100 * layers + 1000, labels


@pytest.mark.parametrize("informative", [0, 2])
def test_the_layer_that_knows_is_found_and_used(informative: int) -> None:
    train, test = (_features(count, seed=seed, informative=informative) for count, seed in ((150, 0), (90, 1)))
    found = probe_layers(train, test, num_labels=3)
    assert found.accuracy > 0.9
    assert max(range(3), key=lambda layer: found.layer_weights[layer]) == informative
    assert sum(found.layer_weights) == pytest.approx(1.0)


def test_labels_that_mean_nothing_are_not_learned() -> None:
    features, labels = _features(90, seed=1, informative=0)
    train = _features(150, seed=0, informative=0)
    shuffled = train[1][torch.randperm(150, generator=torch.Generator().manual_seed(3))]
    assert probe_layers((train[0], shuffled), (features, labels), num_labels=3).accuracy < 0.6


def test_nothing_is_drawn() -> None:
    train, test = (_features(count, seed=seed, informative=1) for count, seed in ((60, 0), (30, 1)))
    state = torch.get_rng_state()
    first = probe_layers(train, test, num_labels=3)
    assert probe_layers(train, test, num_labels=3) == first
    assert torch.equal(torch.get_rng_state(), state)
