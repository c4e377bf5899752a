"""Linear models about a state: minimal coordinates on the closed manifold, named states, inputs and outputs.

States are x = [z; v]: small displacements z of the independent speeds, with the loops closed again, and deviations v
of those speeds. About a state that moves, z and v are deviations from the motion through it at that instant, as the
variational equations have them; rotations of ball and free joints are rotation vectors in child axes, so that
``zdot = v - omega x z``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.differences import derivative
from bellcrank.analyze.minimal import (
    Chart,
    closed_state,
    driven_entries,
    force_array,
    length_scale,
    speed_labels,
)
from bellcrank.arrays import Floats, flat, wrench_array
from bellcrank.errors import ModelError, NotYetError, SingularError, StateError
from bellcrank.loops.closer import State
from bellcrank.loops.tolerances import CLOSED
from bellcrank.simulate.fields import layout_of
from bellcrank.system.loop_errors import loop_drive
from bellcrank.system.state_slopes import Slopes, forward_slopes_at

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.system.kernels import Wrenches

__all__ = ["LinearModel", "linearize"]

_WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")

#: outputs: names, {name: function of a State}, or one function
Outputs = Sequence[str] | Mapping[str, Callable[[State], Any]] | Callable[[State], Any] | None


@dataclass(frozen=True, eq=False)
class LinearModel:
    """xdot = rate + A x + B w, y = y0 + C x + D w for small x = [z; v] and changes w of the inputs."""

    A: Floats
    B: Floats
    C: Floats
    D: Floats
    states: tuple[str, ...]  #: independent coordinates, then their rates ("A", "A.rate")
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: State  #: what the model is about
    rate: Floats  #: xdot at the state itself: zero speeds and accelerations at an equilibrium
    y0: Floats  #: outputs at the state itself
    error: float  #: estimated error of what is found by differences, relative to the largest entry of a column; else 0
    chart: Chart = field(repr=False)

    @property
    def eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Eigenvalues of A [1/s]."""
        return np.asarray(np.linalg.eigvals(self.A), dtype=np.complex128)

    @property
    def shapes(self) -> Floats:
        """N with u = N v: what all speeds of the machine do for those of the model, shape (nu, k)."""
        return self.chart.basis(self.chart.q)

    def nearby(self, x: npt.ArrayLike) -> State:
        """The closed state of the machine that x stands for."""
        k = len(self.chart.independent)
        given = flat("x", x, 2 * k, "displacements, then rates")
        if given.ndim != 1:
            raise StateError(f"nearby: one x at a time, got shape {given.shape}")
        q, left = self.chart.positions(given[None, :k])
        if left[0] > CLOSED:
            raise StateError("nearby: the loops do not close there; take a smaller x")
        speeds = self.chart.speeds(q[0], self.state.u[list(self.chart.independent)] + given[k:])
        return State(q[0], speeds, self.state.t)

    def to_control(self) -> Any:
        """The model as a named ``control.StateSpace``; needs the package `control`."""
        try:
            from importlib import import_module

            control = import_module("control")
        except ImportError:
            raise ModelError("to_control: the package 'control' is not installed; pip install control") from None
        return control.ss(self.A, self.B, self.C, self.D, states=list(self.states), inputs=list(self.inputs),
                          outputs=list(self.outputs))

    def __str__(self) -> str:
        lines = [f"linear model: {len(self.states)} states, {len(self.inputs)} inputs, {len(self.outputs)} outputs",
                 f"  states  {', '.join(self.states)}", f"  inputs  {', '.join(self.inputs) or 'none'}",
                 f"  outputs {', '.join(self.outputs) or 'none'}"]
        for value in sorted(self.eigenvalues, key=lambda v: (abs(v), v.imag)):
            lines.append(f"  eigenvalue {value.real:+.6g} {value.imag:+.6g}i")
        return "\n".join(lines)


def linearize(system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike], *,
              tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None, inputs: Sequence[str] | None = None,
              outputs: Outputs = None, coordinates: Sequence[str] | None = None, wrenches: Wrenches = None,
              t: float | None = None) -> LinearModel:
    """Linearize the equations of motion about a closed state, at rest or moving.

    `inputs` names joints or their coordinates (forces on them, those that close loops included), bodies
    (all six entries of a wrench) or "body.fx" (one: mx, my, mz, fx, fy, fz); the actuated joints or else the
    independent ones if not given. `outputs` names coordinates ("A.angle"), rates ("A.rate", "A.angle.rate") and
    accelerations ("A.acceleration"), or is a function of a `State`, or {name: function}; all q and u if not given.
    `coordinates` names the independent joints; they are chosen if not given: the actuated ones or those of the plan
    where they are well conditioned.

    Derivatives are exact (`System.derivatives`). Outputs that are functions of users, and machines that are too large
    or roll, are differentiated by extrapolated differences, accurate to about 1e-10 relative to the largest entry of a
    column (`LinearModel.error` estimates it), in about 60 k evaluations of the forward dynamics for k degrees of
    freedom and 24 k closings.

    >>> import bellcrank as bc
    >>> pendulum = bc.compile(bc.load("pendulum"))
    >>> model = bc.analyze.linearize(pendulum, bc.analyze.equilibrium(pendulum))
    >>> model.A.round(6).tolist()
    [[0.0, 1.0], [-9.81, 0.0]]
    """
    trim = closed_state(system, state, t, "linearize")
    _refuse_rolling(system, trim)
    wanted = None if coordinates is None else driven_entries(system, coordinates, "linearize")
    chart = Chart.at(system, trim.q, trim.t, wanted=wanted)
    force = force_array(system, tau)
    entries = list(chart.independent)
    drives = _Drives.read(system, trim, inputs, entries)
    wanted_outputs = _Observed.read(system, outputs)
    flow = _Flow(system, chart, trim, force, wrenches, wanted_outputs)
    k, nu, basis = len(entries), system.nu, chart.basis(trim.q)
    by_place, by_speed, by_force, error = _slopes(flow, drives)
    transport = 0.0 - (_transport(system, trim.u) @ basis)[entries]
    a = np.block([[transport, np.eye(k)], [by_place[entries], by_speed[entries]]])
    b = np.vstack([np.zeros((k, len(drives.names))), by_force[entries]])
    base = flow(trim.q[None], trim.u[None], force, None)[0]
    return LinearModel(
        a, b, np.hstack([by_place[nu:], by_speed[nu:]]), by_force[nu:],
        chart.labels + tuple(f"{n}.rate" for n in chart.labels), drives.names, wanted_outputs.names(trim), trim,
        np.concatenate([trim.u[entries], base[:nu][entries]]), base[nu:], error, chart)


def _refuse_rolling(system: System, trim: State) -> None:
    """Moving machines that roll have more coordinates than independent speeds, which such a model does not have."""
    names = [c.name for c in system.model.tree.closures if c.nonholonomic]
    if names and np.abs(trim.u).max(initial=0.0) > 0.0:
        raise NotYetError(f"linearize: {system.model.name!r} moves, and {', '.join(map(repr, names[:4]))} bind its "
                          "speeds alone (rolling, knife edges): it has more coordinates than speeds; linearize it at "
                          "rest, or simulate it from neighbouring states")


def _slopes(flow: _Flow, drives: _Drives) -> tuple[Floats, Floats, Floats, float]:
    """The derivatives of [udot; outputs] by coordinates, speeds and inputs, and the error of what is not exact: outputs
    that are functions of users, and all of machines that cannot be differentiated."""
    system, trim, nu = flow.system, flow.trim, flow.system.nu
    loaded = bool(drives.wrenches.any())
    loads = np.zeros((len(system.body_names), 6)) if flow.wrenches is None and loaded else flow.wrenches
    try:
        exact = forward_slopes_at(system.plans, trim.q, trim.u, flow.tau, loads, trim.t, flow.chart.independent,
                                  ("tau", "wrenches") if loaded else ("tau",))
    except NotYetError:
        return _by_differences(flow, drives)
    by_force = exact.matrices["tau"] @ drives.forces.T
    if loaded:
        by_force = by_force + exact.matrices["wrenches"] @ drives.wrenches.reshape(len(drives.names), -1).T
    parts = exact.matrices["q"], exact.matrices["u"], by_force
    if flow.observed.functions:
        *rest, error = _by_differences(flow, drives)
        outputs = tuple(x[nu:] for x in rest)
    else:
        outputs, error = flow.observed.slopes(flow, exact, by_force), 0.0
    by_place, by_speed, by_input = (np.vstack(pair) for pair in zip(parts, outputs, strict=True))
    return by_place, by_speed, by_input, error


def _by_differences(flow: _Flow, drives: _Drives) -> tuple[Floats, Floats, Floats, float]:
    """The same by extrapolated differences."""
    system, chart, trim = flow.system, flow.chart, flow.trim
    entries, labels = list(chart.independent), chart.labels
    lengths = length_scale(system, trim.q, trim.t)
    units = layout_of(system, ()).speed_units
    quick = np.array([1.0 if units[v] == "rad/s" else lengths for v in entries])
    by_place, place_error = derivative(flow.displaced, 0.1 * quick, flow.groups, levels=12, names=labels)
    quick = quick * np.maximum(1.0, np.abs(trim.u[entries]))
    by_speed, speed_error = derivative(flow.quickened, quick, flow.groups, levels=16, names=labels)
    error = _relative((by_place, place_error), (by_speed, speed_error), groups=flow.groups)
    return by_place, by_speed, drives.response(flow), error


def _relative(*parts: tuple[Floats, Floats], groups: Sequence[slice]) -> float:
    """The largest error relative to the largest entry of its group of outputs."""
    worst = 0.0
    for values, errors in parts:
        for g, some in enumerate(groups):
            size = float(np.abs(values[some]).max(initial=0.0))
            if size > 1e-9:
                worst = max(worst, float(errors[g].max(initial=0.0)) / size)
    return worst


def _transport(system: System, u: Floats) -> Floats:
    """What turning axes contribute: zdot = v - T z, shape (nu, nu); zero but for ball and free joints."""
    out = np.zeros((system.nu, system.nu))
    for r in system.model.configuration.records:
        j = system.model.configuration.starts[r.name][1]
        if r.joint.nq == r.joint.nu:
            continue
        turn = _cross(u[j:j + 3])
        out[j:j + 3, j:j + 3] = turn
        if r.joint.nu == 6:
            out[j + 3:j + 6, j + 3:j + 6] = turn
            out[j + 3:j + 6, j:j + 3] = _cross(u[j + 3:j + 6])
    return out


def _cross(w: Floats) -> Floats:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


class _Flow:
    """Accelerations and outputs near the state, in one row of numbers: [udot; outputs]."""

    def __init__(self, system: System, chart: Chart, trim: State, tau: Floats, wrenches: Wrenches, observed: _Observed
                 ) -> None:
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
        """For displacements (b, k), the loops closed again."""
        q, left = self.chart.positions(z)
        good = left < CLOSED
        safe = np.where(good[:, None], q, self.trim.q)
        return self.careful(safe, self.chart.speeds(safe, np.broadcast_to(self.rates, z.shape)), good)

    def quickened(self, v: Floats) -> Floats:
        """For deviations (b, k) of the independent speeds."""
        q = np.broadcast_to(self.trim.q, (len(v), self.system.nq))
        basis = self.chart.basis(self.trim.q)
        return self.careful(q, self.trim.u + v @ basis.T, np.ones(len(v), dtype=bool))


@dataclass(frozen=True)
class _Drives:
    """Inputs: joint forces and wrenches per unit of each."""

    names: tuple[str, ...]
    forces: Floats  # (inputs, nu)
    wrenches: Floats  # (inputs, bodies, 6)

    @classmethod
    def read(cls, system: System, trim: State, inputs: Sequence[str] | None, independent: list[int]) -> _Drives:
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

    def response(self, flow: _Flow) -> Floats:
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


class _Observed:
    """Outputs: entries of q, u and udot by name, or functions of a state."""

    def __init__(self, labels: tuple[str, ...], picks: tuple[npt.NDArray[np.int64], ...], order: list[int],
                 functions: tuple[tuple[str, Callable[[State], Any]], ...]) -> None:
        self.labels, self.picks, self.order, self.functions = labels, picks, order, functions

    @classmethod
    def read(cls, system: System, outputs: Outputs) -> _Observed:
        none = (np.zeros(0, dtype=np.int64),) * 3
        if callable(outputs):
            return cls((), none, [], (("y", outputs),))
        if isinstance(outputs, Mapping):
            return cls((), none, [], tuple(outputs.items()))
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
        if outputs is None:
            outputs = (*system.coordinate_names,
                       *(n if n in known and known[n][0] == 1 else f"{n}.rate" for n in system.speed_names))
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

    def slopes(self, flow: _Flow, exact: Slopes, by_force: Floats) -> tuple[Floats, Floats, Floats]:
        """Derivatives of outputs by name, by coordinates, speeds and inputs."""
        system, trim = flow.system, flow.trim
        rates = system.kernels.run("coordinate_rates", {"q": trim.q, "u": np.vstack([exact.moved.T, 0.0 * trim.u])},
                                   None, trim.t)
        by_place = (rates[:-1] - rates[-1]).T, exact.speeds[0], exact.matrices["q"]
        by_speed = 0.0 * by_place[0], exact.speeds[1], exact.matrices["u"]
        inputs = np.zeros((system.nq, by_force.shape[1])), np.zeros(by_force.shape), by_force
        place, speed, force = (np.vstack([x[pick] for x, pick in zip(parts, self.picks, strict=True)])[self.order]
                               for parts in (by_place, by_speed, inputs))
        return place, speed, force

    def __call__(self, q: Floats, u: Floats, udot: Floats, t: float) -> Floats:
        if self.functions:
            rows = [np.concatenate([_row(f, State(a, b, t)) for _, f in self.functions])
                    for a, b in zip(q, u, strict=True)]
            return np.array(rows)
        parts = [x[:, pick] for x, pick in zip((q, u, udot), self.picks, strict=True)]
        return np.hstack(parts)[:, self.order]


def _row(function: Callable[[State], Any], state: State) -> Floats:
    return np.ravel(np.asarray(function(state), dtype=float))
