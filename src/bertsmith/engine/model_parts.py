"""Which part of a model runs, told to a clock while a step goes forward and backward.

Modules tell when they begin and end. Backward, a part begins when the gradient of what it made is there, and it ends
where that of another begins. So nothing need be known of how a part computes: by kernels or by torch, in one operation
or in many. What runs in a layer beside its attention and its feed-forward are its norms, which no module may hold, as
they are added up and normalised in one.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from bertsmith.engine.part_clock import PARTS, Part, PartClock, Segment
from bertsmith.kernels.residual_norm import Stream
from bertsmith.model.heads import Model
from bertsmith.model.recurrent import RecurrentLayer

_AROUND_LAYERS: dict[str, Part] = {"embeddings": "embedding", "rotations": "attention", "final_norm": "norms"}
_IN_LAYERS: dict[str, Part] = {"attention": "attention", "feed_forward": "feed_forward"}


@contextlib.contextmanager
def parts_told(model: Model, clock: PartClock) -> Iterator[None]:
    """Inside the block, the clock is told which part of the model's encoder runs, and when its head begins.

    Whether the model goes forward or backward, whoever runs it tells the clock. Layers that are run again in the
    backward pass, to make their inner values anew, count there.
    """
    watch = _Watch(model, clock)
    handles = [handle for module, part in _modules(model) for handle in watch.hooks(module, part)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _modules(model: Model) -> Iterator[tuple[nn.Module, Part]]:
    encoder = model.encoder
    for name, part in _AROUND_LAYERS.items():
        if hasattr(encoder, name):
            yield encoder.get_submodule(name), part
    for layer in encoder.get_submodule("layers").children():
        yield layer, "recurrence" if isinstance(layer, RecurrentLayer) else "norms"
        for name, part in _IN_LAYERS.items():
            if hasattr(layer, name):
                yield layer.get_submodule(name), part


class _Watch:
    """Hooks that are called a hundred times in a step, and so do little."""

    def __init__(self, model: Model, clock: PartClock) -> None:
        self._clock = clock
        self._layers = {*model.encoder.get_submodule("layers").children()}
        self._embeddings = model.encoder.get_submodule("embeddings")
        self._num_calls = model.encoder.config.num_hidden_layers
        self._calls_left = 0
        self._around: list[Part] = []
        """Parts inside which the present one runs."""
        self._layer_inputs: tuple[Tensor, ...] = ()
        self._segments = {(part, backward): Segment(part, backward) for part in PARTS for backward in (False, True)}
        self._backward = {part: self._enters(self._segments[part, True]) for part in PARTS}
        """Hooks on gradients."""

    def hooks(self, module: nn.Module, part: Part) -> tuple[Any, Any]:
        """Handles of the hooks on a module."""
        is_layer, is_first = module in self._layers, module is self._embeddings

        def begin(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            around = self._clock.now.part
            if is_first:
                self._calls_left = self._num_calls
            elif is_layer:
                self._layer_inputs = _tensors(inputs)
            elif around == "norms" and not any(inputs[0] is known for known in self._layer_inputs):
                # What the norms made; the input of a layer was made by what came before it, and tells of that.
                self._tell_backward(inputs[0], around)
            self._around.append(around)
            self._enter(part)

        def end(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            after = self._around.pop()
            for made in _tensors(output):
                self._tell_backward(made, part)
            if is_layer:
                self._layer_inputs = ()
                self._calls_left -= 1
                if self._calls_left == 0:
                    after = "head_and_loss"
            self._enter(after)

        # Also where the call is broken off, as the one that makes inner values anew is once it has all of them.
        return module.register_forward_pre_hook(begin), module.register_forward_hook(end, always_call=True)

    def _enter(self, part: Part) -> None:
        self._clock.enter(self._segments[part, self._clock.now.backward])

    def _enters(self, segment: Segment) -> Callable[[Tensor], None]:
        return lambda gradient: self._clock.enter(segment)

    def _tell_backward(self, made: Tensor, part: Part) -> None:
        if made.requires_grad:
            made.register_hook(self._backward[part])


def _tensors(values: Any) -> tuple[Tensor, ...]:
    """The tensors among some values, of a stream both where they are two."""
    if isinstance(values, Tensor):
        return (values,)
    if isinstance(values, Stream):
        return values if values.exact is not values.matrix else (values.exact,)
    if isinstance(values, tuple):
        return tuple(tensor for value in values for tensor in _tensors(value))
    return ()
