"""Functions of a machine for libraries of arrays with derivatives of their own: JAX and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.system import System
from bellcrank.derivatives.quantities import INDEPENDENT
from bellcrank.errors import ModelError, NotYetError, hint
from bellcrank.formulations import SHARED
from bellcrank.formulations.common.body_kinetics import AT_BODY
from bellcrank.lowering.choose import GraphTracer
from bellcrank.system.drive_programs import drive_entries
from bellcrank.system.traced_functions import checked_name, traced_function

__all__ = ["HostFunction", "to_jax", "to_torch"]


# -- A function of a machine on arrays, with derivatives by the entries of its inputs ---------------
#: methods of `System` -> their inputs, and the shape of their results in numbers and "nu"
_METHODS: dict[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
    "forward_dynamics": (("q", "u", "tau"), ("nu",)), "inverse_dynamics": (("q", "u", "udot"), ("nu",)),
    "bias": (("q", "u"), ("nu",)), "mass_matrix": (("q",), ("nu", "nu")), "momenta": (("q", "u"), ("nu",)),
    "kinetic_energy": (("q", "u"), ()), "potential_energy": (("q",), ()), "energy": (("q", "u"), ()),
    "center_of_mass": (("q",), (3,)), "momentum": (("q", "u"), (6,)),
    "pose": (AT_BODY["pose"][1], (12,)), "velocity": (AT_BODY["velocity"][1], (6,)),
    "acceleration": (AT_BODY["acceleration"][1], (6,)), "jacobian": (AT_BODY["jacobian"][1], (6, "nu")),
    "jacobian_rate": (AT_BODY["jacobian_rate"][1], (6, "nu"))}


class HostFunction:
    """A method of a system by name: inputs as in `traced_functions`, leading axes are batches that are broadcast.

    Of machines with loops `mass_matrix`, `bias`, `momenta` and `jacobian` are those of ``speeds="tree"``."""

    def __init__(self, who: str, system: System, name: str) -> None:
        kind, body = checked_name(who, system.plans, name)
        if kind not in _METHODS:
            raise ModelError(f"{who}: {name!r} is not among {', '.join(map(repr, _METHODS))}{hint(kind, _METHODS)}")
        self.name, self.system, self.kind, self.body = name, system, kind, body or None
        tree, plans = system.model.tree, system.plans
        inputs, shape = _METHODS[kind]
        sizes = {"q": system.nq, "point": 3}
        #: shapes of the inputs
        self.inputs: dict[str, tuple[int, ...]] = {x: (sizes.get(x, system.nu),) for x in inputs}
        #: shape of the result
        self.shape = tuple(system.nu if x == "nu" else int(x) for x in shape)
        if tree.timed:
            self.inputs["t"] = ()
        if tree.parameters:
            self.inputs["parameters"] = (len(tree.parameters),)
        if tree.looped and kind == "inverse_dynamics" and set(plans.general().independent) != set(
                drive_entries(plans, system.neutral(), 0.0, None)):
            raise NotYetError(f"{who}: inverse_dynamics of {system.model.name!r} has drives that are not its "
                              "independent joints; compile with independent=... the same as actuated=...")
        rates = GraphTracer(tree, False)
        self._plain = [rates.graph.leaf(("u", v)) for v in range(tree.nu)] == rates(SHARED["coordinate_rates"])

    def value(self, *arrays: Any) -> Floats:
        """The result, (*batch, *shape)."""
        system, args, t = self._called(arrays)
        more: dict[str, Any] = {"speeds": "tree"} if self.kind in INDEPENDENT else {}
        if self.kind == "pose":
            pose = system.pose(args[0], self.body, t=t)
            found = np.concatenate([pose.rotation.reshape(*pose.rotation.shape[:-2], 9), pose.position], axis=-1)
        elif self.body is not None:
            *args, point = args if "point" in self.inputs else (*args, np.zeros(3))
            found = getattr(system, self.kind)(*args, self.body, point, t=t, **more)
        else:
            found = getattr(system, self.kind)(*args, t=t, **more)
        return np.broadcast_to(np.asarray(found), (*self._lead(arrays), *self.shape))

    def slopes(self, *arrays: Any) -> list[Floats]:
        """The derivatives by the entries of every input, (*batch, *shape, *shape of the input)."""
        d, lead = self._derivatives(arrays), (*self._lead(arrays), *self.shape)
        parts = [self._by_entries(d[x], arrays[0]) if x == "q" else d[x] for x in self.inputs]
        return [np.broadcast_to(p, (*lead, *own)) for p, own in zip(parts, self.inputs.values(), strict=True)]

    def weighted(self, arrays: Sequence[Any], weights: Floats) -> list[Floats]:
        """The derivatives of the sum of weights times the result, (*batch, *shape of the input) of every input."""
        d = self._derivatives(arrays, weights=weights)
        lead = np.broadcast_shapes(self._lead(arrays), np.shape(weights)[:np.ndim(weights) - len(self.shape)])
        parts = [self._by_entries(d[x][..., None, :], arrays[0])[..., 0, :] if x == "q" else d[x] for x in self.inputs]
        return [np.broadcast_to(p, (*lead, *own)) for p, own in zip(parts, self.inputs.values(), strict=True)]

    def curved(self, arrays: Sequence[Any], weights: Floats, ways: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        """How the result changes along `ways`, one for every input, and the derivatives of the sum of these rates with
        weights: products of second derivatives."""
        if not self._plain:
            raise NotYetError(f"second derivatives of {self.name}: {self.system.model.name!r} has coordinates that are "
                              "not the integrals of its speeds (quaternions), by whose entries they are not known")
        along = dict(zip(self.inputs, ways, strict=True))
        lead, d = self._lead(arrays), self._derivatives(arrays, weights=weights, along=along)
        return np.broadcast_to(d["along"], (*lead, *self.shape)), [
            np.broadcast_to(d[x], (*lead, *own)) for x, own in self.inputs.items()]

    def _lead(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        """The axes of the batch."""
        return np.broadcast_shapes(*(np.shape(a)[:np.ndim(a) - len(own)]
                                     for a, own in zip(arrays, self.inputs.values(), strict=True)))

    def _called(self, arrays: Sequence[Any]) -> tuple[System, list[Floats], Any]:
        """The machine with its parameters, the arguments of the method, and time."""
        have = dict(zip(self.inputs, (np.asarray(a, dtype=np.float64) for a in arrays), strict=True))
        system, t = self.system, have.pop("t", 0.0)
        values = have.pop("parameters", None)
        if values is not None:
            system = system.with_parameters(**dict(zip(system.parameters, np.moveaxis(values, -1, 0), strict=True)))
        return system, list(have.values()), t

    def _derivatives(self, arrays: Sequence[Any], **product: Any) -> Any:
        system, args, t = self._called(arrays)
        return system.derivatives(self.kind, *args, by=tuple(self.inputs), body=self.body, t=t,
                                  closed=False if system.model.tree.looped else None, **product)

    def _by_entries(self, columns: Floats, q: Any) -> Floats:
        """Columns of directions of motion as columns of entries of q: dq = Q u, u = Q⁺ dq."""
        if self._plain:
            return columns
        place = np.asarray(q, dtype=np.float64)[..., None, :]
        units = np.concatenate([np.zeros((1, self.system.nu)), np.eye(self.system.nu)])
        rates = self.system.kernels.run("coordinate_rates", {"q": place, "u": units})
        inverse = np.linalg.pinv(np.swapaxes(rates[..., 1:, :] - rates[..., :1, :], -1, -2))
        extra = columns.ndim - inverse.ndim
        return columns @ inverse.reshape(*inverse.shape[:-2], *(1,) * max(extra, 0), *inverse.shape[-2:])


def _called_with(ready: Callable[[str, str, tuple[int, ...], Any], Any], call: Callable[..., Any], name: str,
                 inputs: dict[str, tuple[int, ...]], batch: str) -> Callable[..., Any]:
    """The function of a library, which makes every argument `ready`; `batch` says how its leading axes are shown."""
    def checked(*arrays: Any) -> Any:
        if len(arrays) != len(inputs):
            raise TypeError(f"{name} takes {', '.join(inputs)}, got {len(arrays)} arrays")
        return call(*(ready(name, x, shape, array) for array, (x, shape) in zip(arrays, inputs.items(), strict=True)))

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"{name}({', '.join(f'{x} {batch.format(shape)}' for x, shape in inputs.items())})"
    return checked


# -- `bellcrank.to_jax`: functions of a machine for JAX, by compiled code or in JAX's own operations ---
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
    return _called_with(_ready_jax, _called_back(host, reverse_only), function, host.inputs, "{}")


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


def _ready_jax(name: str, label: str, shape: tuple[int, ...], value: Any) -> Any:
    """One argument as an array of JAX."""
    import jax

    array = jax.numpy.asarray(value, dtype=float)
    if array.shape != shape:
        raise TypeError(f"{name}: {label} needs the shape {shape}, got {array.shape}; jax.vmap makes batches")
    return array


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

    return _called_with(_ready_jax, call, function, shapes, "{}")


# -- `bellcrank.to_torch`: functions of a machine for PyTorch's autograd, by compiled code on the CPU ---
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
    call = _functions(host, torch.autograd.Function).apply
    return _called_with(_ready_torch, call, function, host.inputs, "(..., {})")


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


def _ready_torch(name: str, label: str, shape: tuple[int, ...], value: Any) -> Any:
    """One argument as a tensor."""
    import torch

    ready = isinstance(value, torch.Tensor) and value.is_floating_point()
    tensor = value if ready else torch.as_tensor(value, dtype=torch.float64)
    if tensor.device.type != "cpu":
        raise TypeError(f"{name}: {label} is on {tensor.device}; machines are computed on the CPU")
    if tuple(tensor.shape[tensor.ndim - len(shape):]) != shape or tensor.ndim < len(shape):
        raise TypeError(f"{name}: {label} needs the shape (..., {', '.join(map(str, shape))}), got "
                        f"{tuple(tensor.shape)}")
    return tensor
