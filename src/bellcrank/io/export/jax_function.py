"""`bellcrank.to_jax`: functions of a machine for JAX, by compiled code or in JAX's own operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.io.export.host_function import HostFunction
from bellcrank.system.traced_functions import traced_function

__all__ = ["to_jax"]


def to_jax(system: System, function: str, *, inline: bool = False, reverse_only: bool = False) -> Callable[..., Any]:
    """A method of a system as a function of JAX arrays, for `jax.jit`, `jax.grad`, `jax.jvp` and `jax.vmap`.

    It takes the inputs of the method, (q, u, tau) for "forward_dynamics", then `t` if anything is moved by a law of
    time, and `parameters` (in the order of `system.parameters`) if there are some; of a body or frame "pose:BODY" (nine
    entries of the rotation, three of the position), "velocity:BODY" and so on, with `point` after the others.
    Coordinates change entry by entry; along unit quaternions, what would change their length is left out.

    Values and derivatives are computed on the CPU by the compiled code of the library: `vmap` becomes a batch, with
    lanes and threads. Derivatives can be taken once, exactly, forward or in reverse; both use the matrices.
    ``reverse_only=True``: by vector-Jacobian products, which are quicker, the more so the more speeds there are, but
    not for `jax.jvp` and `jax.jacfwd`.

    With ``inline=True`` the graph is written in JAX's own operations: on any device, differentiated as often as wanted,
    but compiled by JAX, which takes seconds from some thousand operations on, and slower; with loops it follows one
    plan, as in `to_casadi`, and all functions of `to_casadi` are there.

    Results have JAX's precision: ``jax.config.update("jax_enable_x64", True)`` for doubles. Needs the package jax.

    >>> import pytest; jax = pytest.importorskip("jax")
    >>> import bellcrank as bc
    >>> f = bc.to_jax(bc.compile(bc.load("pendulum")), "potential_energy")
    >>> print(round(float(jax.grad(f)(jax.numpy.array([0.5]))[0]), 3))
    4.703
    """
    try:
        import jax  # noqa: F401
    except ImportError:
        raise ModelError("to_jax: the package jax is not installed; pip install \"bellcrank[jax]\"") from None
    if inline and reverse_only:
        raise ModelError("to_jax: inline=True is differentiated by JAX, in any way; leave out reverse_only")
    if inline:
        return _inline(system, function)
    host = HostFunction("to_jax", system, function)
    return _checked(_called_back(host, reverse_only), function, host.inputs)


def _called_back(host: HostFunction, reverse_only: bool) -> Callable[..., Any]:
    """A function of JAX that calls compiled code of the library, with its derivatives."""
    import jax

    def result(*shapes: tuple[int, ...]) -> Any:
        kind = jax.numpy.result_type(float)
        return [jax.ShapeDtypeStruct(shape, kind) for shape in shapes]

    def value(*arrays: Any) -> Any:
        return jax.pure_callback(lambda *a: [_as_jax(host.value(*a))], result(host.shape), *arrays,
                                 vmap_method="expand_dims")[0]

    def rule(arrays: Any, rates: Any) -> Any:
        shapes = [(*host.shape, *own) for own in host.inputs.values()]
        slopes = jax.pure_callback(lambda *a: [_as_jax(x) for x in host.slopes(*a)], result(*shapes), *arrays,
                                   vmap_method="expand_dims")
        total = sum(jax.numpy.tensordot(slope, rate, len(own)) for slope, rate, own in
                    zip(slopes, rates, host.inputs.values(), strict=True))
        return call(*arrays), total

    def backward(arrays: Any, weights: Any) -> Any:
        return tuple(jax.pure_callback(
            lambda *a: [_as_jax(x) for x in host.weighted(a[:-1], np.asarray(a[-1], dtype=np.float64))],
            result(*host.inputs.values()), *arrays, weights, vmap_method="expand_dims"))

    call = (jax.custom_vjp if reverse_only else jax.custom_jvp)(value)
    if reverse_only:
        call.defvjp(lambda *arrays: (value(*arrays), arrays), backward)
    else:
        call.defjvp(rule)
    return cast(Callable[..., Any], call)


def _as_jax(array: Any) -> Any:
    import jax

    return np.array(array, dtype=jax.numpy.result_type(float), order="C")


def _checked(call: Callable[..., Any], name: str, inputs: dict[str, tuple[int, ...]]) -> Callable[..., Any]:
    """The function with a look at its arguments."""
    import jax

    def checked(*arrays: Any) -> Any:
        if len(arrays) != len(inputs):
            raise TypeError(f"{name} takes {', '.join(inputs)}, got {len(arrays)} arrays")
        ready = [jax.numpy.asarray(a, dtype=float) for a in arrays]
        for a, (x, shape) in zip(ready, inputs.items(), strict=True):
            if a.shape != shape:
                raise TypeError(f"{name}: {x} needs the shape {shape}, got {a.shape}; jax.vmap makes batches")
        return call(*ready)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"{name}({', '.join(f'{x} {shape}' for x, shape in inputs.items())})"
    return checked


def _inline(system: System, function: str) -> Callable[..., Any]:
    """The graph in JAX's own operations."""
    import jax.numpy as jnp

    traced = traced_function("to_jax", system.plans, function)
    functions: dict[str, Callable[..., Any]] = {
        "sqrt": jnp.sqrt, "sin": jnp.sin, "cos": jnp.cos, "exp": jnp.exp, "log": jnp.log, "tanh": jnp.tanh,
        "atan2": jnp.arctan2, "less": lambda a, b, x, y: jnp.where(a < b, x, y), "floor": jnp.floor,
        "locate": lambda x, knots: jnp.searchsorted(jnp.array(knots.values), x, side="right").astype(float),
        "entry": lambda index, constants: jnp.array(constants.values)[index.astype(int)]}
    shapes = {x: array.shape for x, array in traced.inputs.items()}
    joined = len(traced.outputs) > 1  # a pose: its entries one after the other

    def call(*arrays: Any) -> Any:
        entries = {x: list(a.ravel()) for x, a in zip(shapes, arrays, strict=True)}
        found = [x for values in traced.run(entries, functions).values() for x in values]
        flat = jnp.stack([jnp.asarray(x, dtype=float) for x in found]) if found else jnp.zeros(0)
        return flat if joined else flat.reshape(next(iter(traced.outputs.values())))

    return _checked(call, function, shapes)
