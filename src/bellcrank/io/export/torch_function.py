"""`bellcrank.to_torch`: functions of a machine for PyTorch's autograd, by compiled code on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.io.export.host_function import HostFunction

__all__ = ["to_torch"]


def to_torch(system: System, function: str) -> Callable[..., Any]:
    """A method of a system as a function of PyTorch tensors on the CPU that autograd differentiates.

    Functions and inputs are those of `to_jax`: (q, u, tau) for "forward_dynamics", then `t` and `parameters` where the
    machine has them. Leading axes are batches, and are broadcast. ``backward`` is one vector-Jacobian product, which
    never makes the matrix: a few times the cost of the function, exact, with lanes and threads. Derivatives can be
    taken once; `torch.func.vmap` is not needed and not supported. Results have the widest precision of the inputs.
    Needs the package torch.

    >>> import pytest; torch = pytest.importorskip("torch")
    >>> import bellcrank as bc
    >>> f = bc.to_torch(bc.compile(bc.load("pendulum")), "potential_energy")
    >>> q = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    >>> f(q).backward()
    >>> print(round(float(q.grad[0]), 3))
    4.703
    """
    try:
        import torch
    except ImportError:
        raise ModelError("to_torch: the package torch is not installed; pip install \"bellcrank[torch]\"") from None
    host = HostFunction("to_torch", system, function)

    def forward(context: Any, *tensors: Any) -> Any:
        context.save_for_backward(*tensors)
        return _tensor(host.value(*(x.detach().numpy() for x in tensors)), _precision(tensors))

    def backward(context: Any, weights: Any) -> Any:
        tensors = context.saved_tensors
        found = host.weighted([x.detach().numpy() for x in tensors], weights.detach().numpy().astype(np.float64))
        return tuple(_tensor(slopes, x.dtype).sum_to_size(x.shape) if needed else None
                     for slopes, x, needed in zip(found, tensors, context.needs_input_grad, strict=True))

    once = torch.autograd.function.once_differentiable(backward)
    kind: Any = type("MachineFunction", (torch.autograd.Function,), {"forward": staticmethod(forward),
                                                                     "backward": staticmethod(once)})
    return _checked(kind.apply, function, host.inputs)


def _tensor(array: Any, precision: Any) -> Any:
    import torch

    return torch.from_numpy(np.array(array, order="C")).to(precision)


def _precision(tensors: tuple[Any, ...]) -> Any:
    import torch

    kind = tensors[0].dtype
    for x in tensors[1:]:
        kind = torch.promote_types(kind, x.dtype)
    return kind


def _checked(call: Callable[..., Any], name: str, inputs: dict[str, tuple[int, ...]]) -> Callable[..., Any]:
    """The function with a look at its arguments."""
    import torch

    def checked(*arrays: Any) -> Any:
        if len(arrays) != len(inputs):
            raise TypeError(f"{name} takes {', '.join(inputs)}, got {len(arrays)} tensors")
        tensors = [x if isinstance(x, torch.Tensor) and x.is_floating_point() else
                   torch.as_tensor(x, dtype=torch.float64) for x in arrays]
        for x, (label, shape) in zip(tensors, inputs.items(), strict=True):
            if x.device.type != "cpu":
                raise TypeError(f"{name}: {label} is on {x.device}; machines are computed on the CPU")
            if tuple(x.shape[x.ndim - len(shape):]) != shape or x.ndim < len(shape):
                raise TypeError(f"{name}: {label} needs the shape (..., {', '.join(map(str, shape))}), got "
                                f"{tuple(x.shape)}")
        return call(*tensors)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"{name}({', '.join(f'{x} (..., {shape})' for x, shape in inputs.items())})"
    return checked
