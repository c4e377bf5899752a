"""What goes into a linear model and what comes out: inputs and outputs by name, and how the machine answers to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.differences import derivative
from bellcrank.analyze.minimal import Chart, driven_entries, speed_labels
from bellcrank.arrays import Floats, wrench_array
from bellcrank.errors import ModelError, SingularError
from bellcrank.loops.tolerances import CLOSED
from bellcrank.system.loop_errors import loop_drive
from bellcrank.system.state import State
from bellcrank.system.state_slopes import Slopes

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.system.kernels import Wrenches

__all__ = ["Flow", "ModelInputs", "ModelOutputs", "Outputs"]

_WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")

#: outputs: names, {name: function of a State}, or one function
Outputs = Sequence[str] | Mapping[str, Callable[[State], Any]] | Callable[[State], Any] | None


class Flow:
    """Accelerations and outputs near the state, in one row of numbers: [udot; outputs]."""

    def __init__(self, system: System, chart: Chart, trim: State, tau: Floats, wrenches: Wrenches,
                 observed: ModelOutputs) -> None:
        self.system, self.chart, self.trim, self.tau, self.observed = system, chart, trim, tau, observed
        self.wrenches = None if wrenches is None else wrench_array(wrenches, system.body_names)
        self.rates = trim.u[list(chart.independent)]
        sizes = observed.sizes(trim)
        ends = system.nu + np.cumsum([0, *sizes])
        self.groups = [slice(0, system.nu), *(slice(int(a), int(b)) for a, b in pairwise(ends))]

    def __call__(self, q: Floats, u: Floats, tau: Floats, wrenches: Floats | None) -> Floats:
        loads = self.wrenches if wrenches is None else wrenches if self.wrenches is None else self.wrenches + wrenches
        udot = self.system.forward_dynamics(q, u, tau, wrenches=loads, t=self.trim.t)
        return np.hstack([udot, self.observed(q, u, udot, self.trim.t)])

    def careful(self, q: Floats, u: Floats, good: npt.NDArray[np.bool_]) -> Floats:
        """NaN where the machine cannot be or is singular."""
        out = np.full((len(q), self.groups[-1].stop), np.nan)
        try:
            out[good] = self(q[good], u[good], self.tau, None)
        except SingularError:
            for i in np.flatnonzero(good):
                try:
                    out[i] = self(q[i][None], u[i][None], self.tau, None)[0]
                except SingularError:
                    continue
        return out

    def displaced(self, z: Floats) -> Floats:
        """For displacements (b, p), the loops closed again."""
        q, u, good = self._there(z)
        return self.careful(q, u, good)

    def following(self, z: Floats) -> Floats:
        """All speeds there, (b, nu)."""
        _, u, good = self._there(z)
        return np.where(good[:, None], u, np.nan)

    def _there(self, z: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Positions, speeds, and whether the machine can be there."""
        q, left = self.chart.displaced(z)
        good = left < CLOSED
        safe = np.where(good[:, None], q, self.trim.q)
        return safe, self.chart.speeds(safe, np.broadcast_to(self.rates, (len(z), len(self.rates)))), good

    def quickened(self, v: Floats) -> Floats:
        """For deviations (b, k) of the independent speeds."""
        q = np.broadcast_to(self.trim.q, (len(v), self.system.nq))
        basis = self.chart.basis(self.trim.q)
        return self.careful(q, self.trim.u + v @ basis.T, np.ones(len(v), dtype=bool))


@dataclass(frozen=True)
class ModelInputs:
    """Inputs: joint forces and wrenches per unit of each."""

    names: tuple[str, ...]
    forces: Floats  # (inputs, nu)
    wrenches: Floats  # (inputs, bodies, 6)

    @classmethod
    def read(cls, system: System, trim: State, inputs: Sequence[str] | None, independent: list[int]) -> ModelInputs:
        if isinstance(inputs, str):
            raise ModelError(f"linearize: inputs is a list of names; write [{inputs!r}]")
        labels = speed_labels(system)
        names: list[str] = []
        forces: list[Floats] = []
        loads: list[Floats] = []
        default = [] if inputs is not None else list(system.model.options.actuated) or [labels[v] for v in independent]
        for key in default if inputs is None else inputs:
            for name, force, load in _columns(system, trim, key, labels):
                names.append(name)
                forces.append(force)
                loads.append(load)
        n, bodies = len(names), len(system.body_names)
        return cls(tuple(names), np.reshape(forces, (n, system.nu)), np.reshape(loads, (n, bodies, 6)))

    def response(self, flow: Flow) -> Floats:
        """d [udot; outputs] / d input."""
        n, system = len(self.names), flow.system
        if not n:
            return np.zeros((flow.groups[-1].stop, 0))

        def loaded(w: Floats) -> Floats:
            q, u = (np.broadcast_to(x, (len(w), len(x))) for x in (flow.trim.q, flow.trim.u))
            loads = np.tensordot(w, self.wrenches, 1) if self.wrenches.any() else None
            return flow(q, u, flow.tau + w @ self.forces, loads)

        base = np.abs(loaded(np.zeros((1, n)))[0, :system.nu]).max(initial=0.0)
        step = np.ones(n)
        if system.model.tree.actuators:  # limits bend the response
            return derivative(loaded, step, flow.groups, levels=16, names=self.names)[0]
        for _ in range(2):  # affine: any step is exact, and the second is as large as rounding likes it
            out = (loaded(np.diag(step)) - loaded(-np.diag(step))) / (2.0 * step[:, None])
            strength = np.abs(out[:, :system.nu]).max(axis=1, initial=0.0)
            step = np.where(strength > 0.0, (1.0 + base) / np.maximum(strength, 1e-300), 1.0)
        return out.T


def _columns(system: System, trim: State, key: str, labels: tuple[str, ...]) -> list[tuple[str, Floats, Floats]]:
    """Names, forces and wrenches of one name among the inputs."""
    bodies = system.body_names
    none, still = np.zeros(system.nu), np.zeros((len(bodies), 6))
    joints = {r.name for r in system.model.mechanism.joints}
    if key in joints and key in system.model.tree.cut_names:
        kind = system.model.mechanism.joint(key).joint
        names = (key,) if kind.nu == 1 else tuple(f"{key}.{c}" for c in kind.speed_names)
        return [(n, loop_drive(system.plans, trim.q, {key: row}, t=trim.t), still)
                for n, row in zip(names, np.eye(kind.nu), strict=True)]
    if key in joints or key.rpartition(".")[0] in joints:
        return [(labels[v], np.eye(system.nu)[v], still) for v in driven_entries(system, [key], "linearize")]
    body, _, component = key.rpartition(".")
    chosen = _WRENCH if key in bodies else (component,) if body in bodies and component in _WRENCH else ()
    if not chosen:
        raise ModelError(f"linearize: no input {key!r}; name a joint, a body, or a body with one of "
                         f"{', '.join(_WRENCH)} such as '{bodies[0]}.fx'")
    body = key if key in bodies else body
    out = []
    for c in chosen:
        load = still.copy()
        load[bodies.index(body), _WRENCH.index(c)] = 1.0
        out.append((f"{body}.{c}", none, load))
    return out


class ModelOutputs:
    """Outputs: entries of q, u and udot by name, or functions of a state."""

    def __init__(self, labels: tuple[str, ...], picks: tuple[npt.NDArray[np.int64], ...], order: list[int],
                 functions: tuple[tuple[str, Callable[[State], Any]], ...], state: Callable[..., State] = State
                 ) -> None:
        self.labels, self.picks, self.order, self.functions, self.state = labels, picks, order, functions, state

    @classmethod
    def read(cls, system: System, outputs: Outputs) -> ModelOutputs:
        none = (np.zeros(0, dtype=np.int64),) * 3
        if callable(outputs):
            return cls((), none, [], (("y", outputs),), system.model.configuration.state)
        if isinstance(outputs, Mapping):
            return cls((), none, [], tuple(outputs.items()), system.model.configuration.state)
        if isinstance(outputs, str):
            raise ModelError(f"linearize: outputs is a list of names; write [{outputs!r}]")
        known: dict[str, tuple[int, int]] = {}
        for i, name in enumerate(speed_labels(system)):
            full = system.speed_names[i]
            turned = system.model.mechanism.joint(full.rpartition(".")[0]).joint
            for ending, part in ((".rate", 1), (".acceleration", 2)):
                known[f"{name}{ending}"] = known[f"{full}{ending}"] = (part, i)
            if turned.nq != turned.nu:
                known[full] = (1, i)  # angular velocities are no rates of coordinates
        for i, name in enumerate(system.coordinate_names):
            joint = name.rpartition(".")[0]
            known[name] = (0, i)
            if system.model.mechanism.joint(joint).joint.nq == 1:
                known[joint] = (0, i)
        own = {s.name for s in system.model.mechanism.states}
        known |= {name: (1, system.model.configuration.starts[name][1]) for name in own}  # not their integrals
        if outputs is None:
            plain = [n for n in system.coordinate_names if n.removesuffix(".integral") not in own]
            rates = [n for n in system.speed_names if n.removesuffix(".value") not in own]
            outputs = (*plain, *(n if n in known and known[n][0] == 1 else f"{n}.rate" for n in rates),
                       *(s.name for s in system.model.mechanism.states))
        for name in outputs:
            if name not in known:
                raise ModelError(f"linearize: no output {name!r}; there are {', '.join(list(known)[:12])} ...")
        picks = tuple(np.array([known[n][1] for n in outputs if known[n][0] == part], dtype=np.int64)
                      for part in range(3))
        blocks = [i for part in range(3) for i, n in enumerate(outputs) if known[n][0] == part]
        return cls(tuple(outputs), picks, [blocks.index(i) for i in range(len(blocks))], ())

    def sizes(self, trim: State) -> list[int]:
        """Sizes of the groups of outputs that share a step of differences."""
        return [len(self.labels)] if not self.functions else [_row(f, trim).size for _, f in self.functions]

    def names(self, trim: State) -> tuple[str, ...]:
        """Names of all outputs; functions that give several numbers count them."""
        if not self.functions:
            return self.labels
        sizes = self.sizes(trim)
        return tuple(n if size == 1 else f"{n}[{i}]" for (n, _), size in zip(self.functions, sizes, strict=True)
                     for i in range(size))

    def slopes(self, flow: Flow, exact: Slopes, by_force: Floats) -> tuple[Floats, Floats, Floats]:
        """Derivatives of outputs by name, by coordinates, speeds and inputs."""
        system, trim = flow.system, flow.trim
        rates = system.kernels.run("coordinate_rates", {"q": trim.q, "u": np.vstack([exact.moved.T, 0.0 * trim.u])},
                                   None, trim.t)
        by_place = (rates[:-1] - rates[-1]).T, exact.speeds[0], exact.matrices["q"]
        by_speed = np.zeros((system.nq, exact.speeds[1].shape[1])), exact.speeds[1], exact.matrices["u"]
        inputs = np.zeros((system.nq, by_force.shape[1])), np.zeros(by_force.shape), by_force
        place, speed, force = (np.vstack([x[pick] for x, pick in zip(parts, self.picks, strict=True)])[self.order]
                               for parts in (by_place, by_speed, inputs))
        return place, speed, force

    def __call__(self, q: Floats, u: Floats, udot: Floats, t: float) -> Floats:
        if self.functions:
            rows = [np.concatenate([_row(f, self.state(a, b, t)) for _, f in self.functions])
                    for a, b in zip(q, u, strict=True)]
            return np.array(rows)
        parts = [x[:, pick] for x, pick in zip((q, u, udot), self.picks, strict=True)]
        return np.hstack(parts)[:, self.order]


def _row(function: Callable[[State], Any], state: State) -> Floats:
    return np.ravel(np.asarray(function(state), dtype=float))
