"""A function of a machine on arrays, with derivatives by the entries of its inputs: what libraries of arrays call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.system import System
from bellcrank.derivatives.quantities import INDEPENDENT
from bellcrank.errors import ModelError, NotYetError, hint
from bellcrank.formulations import SHARED
from bellcrank.formulations.common.body_kinetics import AT_BODY
from bellcrank.lowering.choose import GraphTracer
from bellcrank.system.drive_programs import drive_entries
from bellcrank.system.traced_functions import checked_name

__all__ = ["HostFunction"]

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
