"""torch's `Optimizer` for steps that nobody compiles."""

import inspect

import torch


class UncompiledOptimizer(torch.optim.Optimizer):
    """An optimizer that leaves torch's compiler alone.

    At their first call, torch's own methods load the compiler, a second of Python, to tell it that they are not to be
    compiled.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
