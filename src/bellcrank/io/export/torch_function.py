"""`bellcrank.to_torch`: functions of a machine for PyTorch's autograd, by compiled code on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, NotYetError
from bellcrank.io.export.host_function import HostFunction

__all__ = ["to_torch"]


def to_torch(system: System, function: str) -> Callable[..., Any]:
    """A method of a system as a function of PyTorch tensors on the CPU that autograd differentiates.

    Functions and inputs are those of `to_jax`: (q, u, tau) for "forward_dynamics", then `t` and `parameters` where the
    machine has them. Leading axes are batches, and are broadcast. ``backward`` is one vector-Jacobian product, which
    never makes the matrix: a few times the cost of the function, exact, with lanes and threads. With
    ``create_graph=True`` derivatives can be taken twice, by products with second derivatives; machines of more than 48
    links and those with quaternions are refused then. `torch.func.vmap` is not needed and not supported. Results have
    the widest precision of the inputs. Needs the package torch.

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

    return _checked(_functions(host, torch.autograd.Function).apply, function, host.inputs)


def _functions(host: HostFunction, base: Any) -> Any:
    """The function for torch, as a class over its `base`; what differentiates it is such a class, too, so that it can
    be differentiated again."""
    def numbers(tensors: Any) -> list[Any]:
        return [x.detach().numpy().astype(np.float64) for x in tensors]

    def alike(arrays: Any, tensors: Any) -> tuple[Any, ...]:
        return tuple(_tensor(a, x.dtype).sum_to_size(x.shape) for a, x in zip(arrays, tensors, strict=True))

    def value(context: Any, *tensors: Any) -> Any:
        context.save_for_backward(*tensors)
        return _tensor(host.value(*numbers(tensors)), _precision(tensors))

    def slope(context: Any, weights: Any) -> Any:
        return _wanted(context, first.apply(weights, *context.saved_tensors))

    def gradient(context: Any, *tensors: Any) -> Any:
        context.save_for_backward(*tensors)
        weights, *arrays = numbers(tensors)
        return alike(host.weighted(arrays, weights), tensors[1:])

    def gradient_slope(context: Any, *ways: Any) -> Any:
        return _wanted(context, second.apply(*context.saved_tensors, *ways))

    def curvature(context: Any, *tensors: Any) -> Any:
        n = len(host.inputs) + 1
        weights, *arrays = numbers(tensors[:n])
        rates, slopes = host.curved(arrays, weights, numbers(tensors[n:]))
        return alike([rates, *slopes], tensors[:n])

    def no_slope(context: Any, *ways: Any) -> Any:
        raise NotYetError(f"to_torch: {host.name} can be differentiated twice, not three times")

    def differentiable(name: str, forward: Any, backward: Any) -> Any:
        return type(f"Machine{name}", (base,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    second = differentiable("Curvature", curvature, no_slope)
    first = differentiable("Gradient", gradient, gradient_slope)
    return differentiable("Function", value, slope)


def _wanted(context: Any, tensors: Any) -> tuple[Any, ...]:
    """Derivatives by those inputs that need them."""
    return tuple(x if needed else None for x, needed in zip(tensors, context.needs_input_grad, strict=True))


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
