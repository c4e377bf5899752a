"""Linear models about a state: minimal coordinates on the closed manifold, named states, inputs and outputs.

States are x = [z; v]: small displacements z, with the loops closed again, and deviations v of the independent speeds.
About a state that moves, z and v are deviations from the motion through it at that instant, as the variational
equations have them; rotations of ball and free joints are rotation vectors in child axes. With all displacements P z,
all speeds u(z, v) and T what turning axes contribute,

    zdot = du/dz z + N v - T P z,    of the entries of z

Displacements are those of the independent speeds, of which du/dz is zero and N one, unless constraints bind speeds
alone (rolling, knife edges). These restrict no displacement: z is longer than v then, and follows it by rolling.

Derivatives by differences that choose their own step.

Central differences at steps h, h/2, h/4, ... are extrapolated (Richardson; the table is Romberg's), and the entry of
the table is taken whose neighbours agree best. Smooth functions come out with about 12 digits, relative to the largest
entry of a column; the disagreement with the neighbours, which is returned, is a cautious estimate of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import (
    Chart,
    StateBatch,
    closed_states,
    driven_entries,
    force_arrays,
    independent_names,
    speed_labels,
    state_entries,
    with_links,
)
from bellcrank.arrays import Floats, flat, wrench_array
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, NotYetError, SingularError, StateError
from bellcrank.loops.tolerances import CLOSED
from bellcrank.system.force_terms import acting
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state import State
from bellcrank.system.state_slopes import Slopes, forward_slopes_at

__all__ = ["LinearModel", "derivative", "eigen", "linear_model", "linearize", "without_integrals"]


# -- derivatives by differences that choose their own step ------------------------------------------
#: extrapolations beyond this order gain nothing in double precision
_ORDER = 5


def derivative(function: Callable[[Floats], Floats], first: Floats, groups: Sequence[slice], *, levels: int = 12,
               names: Sequence[str] = ()) -> tuple[Floats, Floats]:
    """d function / d x at x = 0, shape (outputs, n), and the estimated error of every group of outputs, (groups, n).

    `function` takes a batch of x (b, n) and returns (b, outputs); NaN where it cannot be evaluated. `first` (n,) are
    the largest steps. The choice of step is made for each group of outputs together, so that lucky entries do not
    decide. Cost: 2 n levels evaluations in one batch.
    """
    n = len(first)
    if not n:
        return np.zeros((function(np.zeros((1, 0))).shape[1], 0)), np.zeros((len(groups), 0))
    steps = first * 0.5 ** np.arange(levels)[:, None]  # (levels, n)
    batch = np.zeros((levels, 2, n, n))
    batch[:, 0, np.arange(n), np.arange(n)] = steps
    batch[:, 1, np.arange(n), np.arange(n)] = -steps
    values = function(batch.reshape(-1, n)).reshape(levels, 2, n, -1)
    plain = (values[:, 0] - values[:, 1]) / (2.0 * steps[:, :, None])  # (levels, n, outputs)
    out, error = np.zeros((values.shape[-1], n)), np.zeros((len(groups), n))
    for g, some in enumerate(groups):
        for j in range(n):
            out[some, j], error[g, j] = _romberg(plain[:, j, some])
            if not np.isfinite(error[g, j]):
                label = names[j] if j < len(names) else str(j)
                raise StateError(f"no derivative with respect to {label}: the machine cannot move there, however "
                                 "little; is the state at a dead point?")
    return out, error


def _romberg(column: Floats) -> tuple[Floats, float]:
    """The best extrapolation of differences (levels, outputs) at halved steps, and its disagreement."""
    best, error = np.full(column.shape[1], np.nan), float("inf")
    if not column.shape[1]:
        return best, 0.0
    previous = column
    for order in range(1, _ORDER + 1):
        fine, coarse = previous[1:], previous[:-1]
        better = fine + (fine - coarse) / (4.0**order - 1.0)
        apart = np.maximum(np.abs(better - fine).max(axis=1), np.abs(better - coarse).max(axis=1))
        apart = np.where(np.isfinite(apart), apart, np.inf)
        i = int(np.argmin(apart))
        if apart[i] < error:
            best, error = better[i], float(apart[i])
        previous = better
        if len(previous) < 2:
            break
    return best, error


# -- what goes into a linear model and what comes out -----------------------------------------------
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
    def read(cls, system: System, inputs: Sequence[str] | None, independent: list[int]) -> ModelInputs:
        if isinstance(inputs, str):
            raise ModelError(f"linearize: inputs is a list of names; write [{inputs!r}]")
        labels = speed_labels(system)
        names: list[str] = []
        forces: list[Floats] = []
        loads: list[Floats] = []
        default = [] if inputs is not None else list(system.model.options.actuated) or [labels[v] for v in independent]
        for key in default if inputs is None else inputs:
            for name, force, load in _columns(system, key, labels):
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


def _columns(system: System, key: str, labels: tuple[str, ...]) -> list[tuple[str, Floats, Floats]]:
    """Names, forces and wrenches of one name among the inputs."""
    bodies = system.body_names
    none, still = np.zeros(system.nu), np.zeros((len(bodies), 6))
    joints = {r.name for r in system.model.mechanism.joints}
    if key in joints or key.rpartition(".")[0] in joints:
        entries = system.model.configuration.speed_entries(key)
        if not system.model.tree.loop_speeds()[entries].all():
            entries = driven_entries(system, [key], "linearize")
        return [(labels[v], np.eye(system.nu)[v], still) for v in entries]
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


# -- linear models about a state --------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class LinearModel:
    """xdot = rate + A x + B w, y = y0 + C x + D w for small x = [z; v] and changes w of the inputs."""

    A: Floats
    B: Floats
    C: Floats
    D: Floats
    states: tuple[str, ...]  #: coordinates, then rates of the independent ones ("A", "A.rate")
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: State  #: what the model is about
    rate: Floats  #: xdot at the state itself: zero speeds and accelerations at an equilibrium
    y0: Floats  #: outputs at the state itself
    error: float  #: estimated error of what is found by differences, relative to the largest entry of a column; else 0
    chart: Chart = field(repr=False)  #: of the machine, or of that in which joints that were cut have links
    #: which of [z; v] are states of the model; integrals of states of elements that nothing looks at are none
    kept: tuple[int, ...] = field(default=(), repr=False)

    @property
    def eigenvalues(self) -> npt.NDArray[np.complex128]:
        """Eigenvalues of A [1/s]."""
        return eigen(self.A)[0]

    @property
    def shapes(self) -> Floats:
        """N with u = N v: what all speeds of the machine do for those of the model, shape (nu, k)."""
        return self.chart.basis(self.chart.q)

    @property
    def displacements(self) -> Floats:
        """P: how all joints move for displacements z of the model, one row for every speed, shape (nu, p)."""
        return self.chart.displacements(self.chart.q)

    def nearby(self, x: npt.ArrayLike) -> State:
        """The closed state of the machine that x stands for."""
        p, k = len(self.chart.placed), len(self.chart.independent)
        given = flat("x", x, len(self.states), "displacements, then rates")
        if given.ndim != 1:
            raise StateError(f"nearby: one x at a time, got shape {given.shape}")
        if self.kept:
            some, given = given, np.zeros(p + k)
            given[list(self.kept)] = some
        q, left = self.chart.displaced(given[None, :p])
        if left[0] > CLOSED:
            raise StateError("nearby: the loops do not close there; take a smaller x")
        speeds = self.chart.speeds(q[0], self.state.u[list(self.chart.independent)] + given[p:])
        return self.state.replace(q[0], speeds)

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


def eigen(a: Floats) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    """Eigenvalues and eigenvectors of a model. States have many units, so that the matrix has to be balanced, which
    entries that are nothing but rounding would upset (those of cyclic coordinates are): they have no say in it, and are
    left out of what is balanced."""
    from scipy.linalg import matrix_balance

    size, rounding = np.abs(a), len(a) * float(np.finfo(float).eps)
    largest = np.maximum(size.max(axis=0, initial=0.0)[None, :], size.max(axis=1, initial=0.0)[:, None])
    scale = matrix_balance(np.where(size > rounding * largest, a, 0.0), permute=False, separate=True)[1][0] \
        if len(a) else np.ones(0)
    even = a * scale[None, :] / scale[:, None]
    even[np.abs(even) <= rounding * np.abs(even).max(initial=0.0)] = 0.0
    values, vectors = np.linalg.eig(even)
    return np.asarray(values, dtype=np.complex128), np.asarray(vectors * scale[:, None], dtype=np.complex128)


def linearize(system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike], *,
              tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None, inputs: Sequence[str] | None = None,
              outputs: Outputs = None, coordinates: Sequence[str] | None = None, wrenches: Wrenches = None,
              t: npt.ArrayLike | None = None) -> LinearModel | StateBatch:
    """Linearize the equations of motion about a closed state, at rest or moving.

    `tau` are constant joint forces. `inputs` names joints or their coordinates (forces on them), bodies
    (all six entries of a wrench) or "body.fx" (one: mx, my, mz, fx, fy, fz); the actuated joints or else the
    independent ones if not given. `outputs` names coordinates ("A.angle"), rates ("A.rate", "A.angle.rate") and
    accelerations ("A.acceleration"), or is a function of a `State`, or {name: function}; all q and u if not given.
    States of elements (`Mechanism.add_state`) are states of the model by their names; their integrals over time only
    where something looks at them.

    `coordinates` names the independent joints; they are chosen if not given: the actuated ones, or else those of
    `System.independent_speeds`, where they are well conditioned. About
    an equilibrium, and along motions that are steady in these coordinates, eigenvalues and responses are the same in
    all of them; about another state that moves they are those of deviations in these coordinates and in no others. (A
    wheel that spins in a `Free` joint is such a state: give its spin a joint of its own.) Leading axes of the state are
    a batch of models with the same coordinates, those of its first state (see `StateBatch`): ``models.A`` has shape
    (..., 2 k, 2 k).

    Machines that roll without slip or have knife edges have p > k coordinates that can be chosen, and k = `dof`
    independent speeds: ``model.A`` has shape (p + k, p + k), its states are p displacements, those of the independent
    speeds first, and k rates. `coordinates` may then name up to p, of which k serve as independent speeds: the first
    ones if they are well conditioned, else the best.

    Derivatives are exact (`System.derivatives`). Outputs that are functions of users, and machines that are too large,
    are differentiated by extrapolated differences, accurate to about 1e-10 relative to the largest entry of a
    column (`LinearModel.error` estimates it), in about 60 k evaluations of the forward dynamics for k degrees of
    freedom and 24 k closings.

    >>> import bellcrank as bc
    >>> pendulum = bc.compile(bc.load("pendulum"))
    >>> model = bc.analyze.linearize(pendulum, bc.analyze.equilibrium(pendulum))
    >>> model.A.round(6).tolist()
    [[0.0, 1.0], [-9.81, 0.0]]
    """
    each = closed_states(system, state, t, "linearize")
    names = _coordinate_names(system, each, coordinates)
    machine = with_links(system, names) or system
    forces, wanted = force_arrays(machine, tau, each.shape), driven_entries(machine, names, "linearize")
    if each.size:  # which of them are independent is for all states alike
        first: State = each.item(0)
        wanted = list(Chart.at(machine, first.q, first.t, wanted=wanted).placed)
    if not each.ndim:
        return without_integrals(linear_model(machine, each.item(), forces, inputs, outputs, wanted, wrenches))
    return StateBatch.of(each.shape, lambda index: without_integrals(linear_model(
        machine, each[index], forces[index], inputs, outputs, wanted, wrenches, each.size)))


def _coordinate_names(system: System, each: npt.NDArray[np.object_], given: Sequence[str] | None) -> Sequence[str]:
    """Names of the independent coordinates of models about some states: those given, or else those of the first."""
    if isinstance(given, str):
        raise ModelError(f"linearize: coordinates is a list of names; write [{given!r}]")
    if given is not None or not each.size:
        return () if given is None else list(given)
    return independent_names(system, each.item(0))


def linear_model(system: System, trim: State, force: Floats, inputs: Sequence[str] | None, outputs: Outputs,
                 wanted: Sequence[int] | None, wrenches: Wrenches, states: int = 1) -> LinearModel:
    """The model about one of so many states. See `linearize`."""
    chart = Chart.at(system, trim.q, trim.t, wanted=wanted)
    entries, placed = list(chart.independent), list(chart.placed)
    drives = ModelInputs.read(system, inputs, entries)
    wanted_outputs = ModelOutputs.read(system, outputs)
    flow = Flow(system, chart, trim, force, wrenches, wanted_outputs)
    k, nu, follow = len(entries), system.nu, chart.basis(trim.q)[placed]
    by_place, by_speed, by_force, rates, error = _slopes(flow, drives, states)
    turning = rates[placed] - (_transport(system, trim.u) @ chart.displacements(trim.q))[placed]
    a = np.block([[turning, follow], [by_place[entries], by_speed[entries]]])
    b = np.vstack([np.zeros((len(placed), len(drives.names))), by_force[entries]])
    base = flow(trim.q[None], trim.u[None], force, None)[0]
    return LinearModel(
        a, b, np.hstack([by_place[nu:], by_speed[nu:]]), by_force[nu:],
        chart.labels + tuple(f"{n}.rate" for n in chart.labels[:k]), drives.names, wanted_outputs.names(trim), trim,
        np.concatenate([trim.u[placed], base[:nu][entries]]), base[nu:], error, chart)


def without_integrals(model: LinearModel) -> LinearModel:
    """The model without the integrals of states of elements, but for those that a law or an output looks at."""
    system, entries = model.chart.system, model.chart.placed
    own, p = set(state_entries(system)), len(entries)
    idle = {i for i, v in enumerate(entries) if v in own and not model.A[:, i].any() and not model.C[:, i].any()}
    if not idle:
        return model
    kept = [i for i in range(len(model.A)) if i not in idle]
    names = [model.states[i].removesuffix(".rate") if i - p in idle else model.states[i] for i in kept]
    return replace(model, A=model.A[np.ix_(kept, kept)], B=model.B[kept], C=model.C[:, kept], states=tuple(names),
                   rate=model.rate[kept], kept=tuple(kept))


def _slopes(flow: Flow, drives: ModelInputs, states: int) -> tuple[Floats, Floats, Floats, Floats, float]:
    """The derivatives of [udot; outputs] by coordinates, speeds and inputs, those of all speeds by coordinates, and the
    error of what is not exact: outputs that are functions of users, and all of machines that cannot be
    differentiated."""
    system, trim, nu = flow.system, flow.trim, flow.system.nu
    loaded = bool(drives.wrenches.any())
    loads = np.zeros((len(system.body_names), 6)) if flow.wrenches is None and loaded else flow.wrenches
    try:
        plans = acting(system.plans, np.vstack([flow.tau, drives.forces]))
        exact = forward_slopes_at(plans, trim.q, trim.u, flow.tau, loads, trim.t, flow.chart.placed,
                                  flow.chart.independent, ("tau", "wrenches") if loaded else ("tau",), states)
    except NotYetError:
        return _by_differences(flow, drives)
    by_force = exact.matrices["tau"] @ drives.forces.T
    if loaded:
        by_force = by_force + exact.matrices["wrenches"] @ drives.wrenches.reshape(len(drives.names), -1).T
    parts = exact.matrices["q"], exact.matrices["u"], by_force
    if flow.observed.functions:
        *rest, _, error = _by_differences(flow, drives)
        outputs = tuple(x[nu:] for x in rest)
    else:
        outputs, error = flow.observed.slopes(flow, exact, by_force), 0.0
    by_place, by_speed, by_input = (np.vstack(pair) for pair in zip(parts, outputs, strict=True))
    return by_place, by_speed, by_input, exact.speeds[0], error


def _by_differences(flow: Flow, drives: ModelInputs) -> tuple[Floats, Floats, Floats, Floats, float]:
    """The same by extrapolated differences."""
    system, chart, trim = flow.system, flow.chart, flow.trim
    k, labels = len(chart.independent), chart.labels
    quick = system.model.tree.speed_sizes[list(chart.placed)]
    by_place, place_error = derivative(flow.displaced, 0.1 * quick, flow.groups, levels=12, names=labels)
    rates, _ = derivative(flow.following, 0.1 * quick, [slice(0, system.nu)], levels=12, names=labels) \
        if len(quick) > k else (np.zeros((system.nu, k)), 0.0)
    quick = np.maximum(quick[:k], np.abs(trim.u[list(chart.independent)]))
    by_speed, speed_error = derivative(flow.quickened, quick, flow.groups, levels=16, names=labels[:k])
    error = _relative((by_place, place_error), (by_speed, speed_error), groups=flow.groups)
    return by_place, by_speed, drives.response(flow), rates, error


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
