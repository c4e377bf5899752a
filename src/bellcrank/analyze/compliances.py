"""How quantities change at equilibria, the machine settling into balance again: compliances and their derivatives.

Accelerations a of the coordinates y that are free vanish along with loads and parameters x (the implicit function
theorem), and a second time with the multipliers l = f_y / a_y of the Lagrange function L = f - l a:

    dy/dx = -a_y^-1 a_x        df/dx = f_x + f_y dy/dx        d2f/dx dz = D2 L [(dy/dx, 1), (dy/dz, 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import closed_state, force_arrays, state_entries
from bellcrank.arrays import Floats, wrench_array
from bellcrank.compiled.system import System
from bellcrank.derivatives.directions import MOTION
from bellcrank.errors import ModelError, SingularError, StateError
from bellcrank.scalar.derivative import adjoints
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Scalar
from bellcrank.simulate.events import Event
from bellcrank.simulate.run import recorded
from bellcrank.simulate.sensitivity import check_differentiable, swept_back
from bellcrank.simulate.setup import Setup
from bellcrank.system.derivative_questions import Question, check_question, inputs_of
from bellcrank.system.derivative_results import Derivatives
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state import State

__all__ = ["equilibrium_derivatives", "gradient"]

#: a step of Newton's method, in radians and lengths of the machine, beyond which a state does not rest
_RESTS = 1e-6
#: the least stiffness, as a part of the largest, by accelerations in these units
_LEAST = 1e-11
#: functions that wrenches change directly
_LOADED = ("forward_dynamics", "inverse_dynamics", "reactions", "bias")


def equilibrium_derivatives(system: System, state: State, function: str = "joint_coordinates", *,
                            by: Sequence[str] | str, then: str | None = None, body: str | None = None,
                            hold: Sequence[str] = (), tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None,
                            wrenches: Wrenches = None) -> Derivatives:
    """Exact derivatives of a quantity at an equilibrium by loads and parameters, which move the equilibrium.

    `state` is one of `equilibrium`, which had the same `hold`, `tau` and `wrenches`; arrays of states, loads and
    parameters are a batch. `function` is one that `System.derivatives` takes, of a `body` perhaps: "outputs",
    "joint_coordinates" (how the equilibrium moves), "pose", "reactions", "pair_wrenches". `by` names "wrenches" (six
    columns a body), "tau" (joint forces), "parameters" or one of them, "t". Joints in `hold` stay where they are.
    States of elements rest, too. Rolling and knife edges keep the place where the machine stands. `then` differentiates
    once more: of outputs, ``by="wrenches", then="parameters"`` is how compliances change with each parameter.

    Cost: the Jacobian of forward dynamics by these variables; for `then` a product of second derivatives for each entry
    of the first ones, side by side in lanes.

    A mass on a spring sinks by m g / k, whose derivative by k is -1 / k of it:

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("scale")
    >>> pan = m.add_body("pan", bc.Inertia(2.0))
    >>> joint = m.add_joint("guide", bc.Prismatic("z"), m.ground, pan)
    >>> spring = m.add_joint_spring("spring", "guide", stiffness=m.parameter("stiffness", 100.0))
    >>> scale = bc.compile(m)
    >>> rest = bc.analyze.equilibrium(scale)
    >>> d = bc.analyze.equilibrium_derivatives(scale, rest, by=("stiffness", "wrenches"))
    >>> bool(abs(d["stiffness"][0] + rest.q[0] / 100.0) < 1e-12), d["wrenches"].round(3).tolist()
    (True, [[0.0, 0.0, 0.0, 0.0, 0.0, 0.01]])
    """
    if isinstance(hold, str):
        raise StateError(f"equilibrium_derivatives: hold is a list of names; write [{hold!r}]")
    names = (by,) if isinstance(by, str) else tuple(by)
    machine = _held(system, tuple(hold))
    check_question(Question(function, body, names, False, ""))
    rest = _Rest.of(machine, state, force_arrays(system, tau), wrenches, names if then is None else (*names, then))
    f = _Quantity(rest, function, body)
    if then is None:
        return f.derivatives(names)
    return f.second(names, then)


def _held(system: System, hold: tuple[str, ...]) -> System:
    """The machine with joints locked, made once."""
    if not hold:
        return system
    locked: System = system.kernels.kept(("held", hold), lambda: system.lock(*hold))
    own, wanted = locked.model.values, system.model.values
    same = all(np.array_equal(own[name], x) for name, x in wanted.items())
    return locked if same else locked.with_parameters(**wanted)


@dataclass(frozen=True)
class _Rest:
    """A machine at rest, and how its equilibrium moves. Unknowns y are coordinates, then states of elements."""

    machine: System
    given: dict[str, Floats]
    wrenches: Floats | None
    t: float | Floats
    rows: list[int]  #: accelerations that vanish
    free: dict[str, list[int]]  #: columns of q and u that are unknowns
    first: Derivatives  #: of accelerations
    slope: Floats  #: a_y, (*batch, k, k)
    moved: dict[str, Floats]  #: dy/dx, (*batch, k, columns)

    @classmethod
    def of(cls, machine: System, state: State, tau: Floats, wrenches: Wrenches, by: Sequence[str]) -> _Rest:
        """Of a state, which is checked."""
        bodies = machine.model.body_names
        felt = None if wrenches is None else wrench_array(wrenches, bodies)
        felt = np.zeros((len(bodies), 6)) if felt is None and "wrenches" in by else felt
        given = {"q": state.q, "u": state.u, "udot": np.zeros(machine.nu), "tau": tau}
        states = set(state_entries(machine))
        motion = ("q", "u") if states else ("q",)
        first = machine.derivatives("forward_dynamics", state.q, state.u, tau, by=tuple(dict.fromkeys((*motion, *by))),
                                    t=state.t, wrenches=felt)
        speeds, bound = machine.speed_names, machine.model.prescribed_mask()
        names = machine.independent_speeds if machine.model.tree.looped else speeds
        rows = [speeds.index(x) for x in names if not bound[speeds.index(x)]]
        rows = [*(v for v in rows if v not in states), *(v for v in rows if v in states)]
        free = {x: [first.columns[x].index(speeds[v]) for v in rows if (v in states) == (x == "u")] for x in motion}
        slope = np.concatenate([first[x][..., rows, :][..., own] for x, own in free.items()], axis=-1)
        found = cls(machine, given, felt, state.t, rows, free, first, slope, {})
        found.check()
        found.moved.update({x: -np.linalg.solve(slope, found.columns_of(first, x)[..., rows, :]) for x in by})
        return found

    @staticmethod
    def columns_of(d: Derivatives, x: str) -> Floats:
        """A matrix with columns, also of a variable that is one number."""
        return d[x] if x in d.columns else d[x][..., None]

    def check(self) -> None:
        """Refuse states that do not rest, and those that nothing holds."""
        system, name = self.machine, self.machine.model.name
        sizes = system.model.tree.speed_sizes[self.rows]
        slope = self.slope * sizes / sizes[:, None]
        scale = np.abs(slope).max(axis=-1, keepdims=True, initial=0.0)
        _, s, ways = np.linalg.svd(slope / np.where(scale > 0.0, scale, 1.0))
        weak = s.min(axis=-1, initial=np.inf) <= _LEAST * np.maximum(s.max(axis=-1, initial=0.0), 1e-300)
        if weak.any():
            worst = ways[weak][0][-1] if weak.ndim else ways[-1]
            joint = system.speed_names[self.rows[int(np.abs(worst).argmax())]]
            raise SingularError(f"equilibrium_derivatives: nothing holds {joint} of {name!r} where it rests, or a "
                                "state of an element follows the motion; hold="
                                f"{[joint.rpartition('.')[0]]!r} keeps it there")
        moving = np.abs(self.given["u"][..., [v for v in self.rows if v not in state_entries(system)]])
        step = np.linalg.solve(self.slope, self.first.value[..., self.rows, None])[..., 0] / sizes
        if moving.max(initial=0.0) > _RESTS or np.abs(step).max(initial=0.0) > _RESTS:
            raise StateError(f"equilibrium_derivatives: {name!r} does not rest in this state: with these loads the "
                             f"equilibrium is {np.abs(step).max(initial=0.0):.3g} away (radians or lengths of the "
                             "machine); take the state of bc.analyze.equilibrium with the same hold, tau and wrenches")


@dataclass(frozen=True)
class _Quantity:
    """A function of a machine at rest."""

    rest: _Rest
    function: str
    body: str | None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it takes of a motion."""
        return inputs_of(self.rest.machine.plans, Question(self.function, self.body, (), False, ""))

    def felt(self, x: str) -> bool:
        """Whether a variable may change it at a fixed state."""
        return self.function in _LOADED if x == "wrenches" else (x not in MOTION and x != "tau") or x in self.inputs

    def ask(self, **how: Any) -> Derivatives:
        """Its derivatives at the state."""
        rest = self.rest
        given = [rest.given[x] for x in self.inputs if x in rest.given]
        wrenches = rest.wrenches if self.function in _LOADED else None
        return rest.machine.derivatives(self.function, *given, body=self.body, t=rest.t, wrenches=wrenches, **how)

    def derivatives(self, names: Sequence[str]) -> Derivatives:
        """Of the first order."""
        d = self.ask(by=[x for x in dict.fromkeys((*self.rest.free, *names)) if self.felt(x)])
        by_rest = self._by_unknowns(d)
        parts = {}
        for x in names:
            total = by_rest @ self.rest.moved[x]
            total = total + self._flat(d, x) if self.felt(x) else total
            parts[x] = self._shaped(d, total, x)
        return d.with_parts(parts, {x: own for x, own in self.rest.first.columns.items() if x in names})

    def second(self, names: Sequence[str], then: str) -> Derivatives:
        """Of the second order: a product of second derivatives for each entry."""
        rest = self.rest
        d = self.ask(by=[x for x in rest.free if self.felt(x)])
        by_rest = self._by_unknowns(d)
        multipliers = np.linalg.solve(np.swapaxes(rest.slope, -1, -2), np.swapaxes(by_rest, -1, -2))  # (*batch, k, n)
        parts = {}
        for x in names:
            n, columns = multipliers.shape[-1], rest.moved[x].shape[-1]
            pairs = [(i, j) for i in range(n) for j in range(columns)]
            along = self._directions(x, then, [j for _, j in pairs])
            load = np.zeros((len(pairs), *multipliers.shape[:-2], rest.machine.nu))
            load[..., rest.rows] = np.stack([multipliers[..., i] for i, _ in pairs])
            pick = np.eye(n)[[i for i, _ in pairs]].reshape(-1, *(1,) * (multipliers.ndim - 2), *self._shape(d))
            bent = self._gradient(_Quantity(rest, "forward_dynamics", None), along, load, then)
            total = self._gradient(self, along, pick, then) - bent
            total = np.moveaxis(total, 0, -2)
            parts[x] = self._shaped(d, total.reshape(*total.shape[:-2], n, columns, -1), x, then)
        return d.with_parts(parts, {x: own for x, own in rest.first.columns.items() if x in (*names, then)})

    def _directions(self, x: str, then: str, columns: Sequence[int]) -> dict[str, Floats]:
        """Rates of all variables along columns of one of them, (columns, *batch, n)."""
        rest, out = self.rest, {}
        moved = np.moveaxis(rest.moved[x], -1, 0)[list(columns)]
        at = 0
        for label, own in rest.free.items():
            out[label] = np.zeros((*moved.shape[:-1], len(rest.first.columns[label])))
            out[label][..., own] = moved[..., at:at + len(own)]
            at += len(own)
        lead = (len(columns), *(1,) * (moved.ndim - 2))
        for label in dict.fromkeys((x, then)):
            width = rest.moved[label].shape[-1]
            unit = np.eye(width)[list(columns)] if label == x else np.zeros((len(columns), width))
            out[label] = unit.reshape(*lead, width) if label in rest.first.columns else unit.reshape(lead)
        return out

    def _gradient(self, of: _Quantity, along: Mapping[str, Floats], weights: Floats, then: str) -> Floats:
        """The derivatives of weighted rates by a variable, the equilibrium moving along, (columns, *batch, n)."""
        rest = self.rest
        ways = {x: a for x, a in along.items() if of.felt(x)}
        found = of.ask(along=ways, weights=weights, by=())
        total = rest.columns_of(found, then) if then in ways else 0.0
        at = 0
        for label, own in rest.free.items():
            moved = rest.moved[then][..., at:at + len(own), :]
            at += len(own)
            if label in ways:
                total = total + (found[label][..., None, own] @ moved)[..., 0, :]
        return np.asarray(total)

    def _shape(self, d: Derivatives) -> tuple[int, ...]:
        return tuple(len(labels) for _, labels in d.axes)

    def _flat(self, d: Derivatives, x: str) -> Floats:
        """A matrix whose rows are all entries of the value."""
        a = self.rest.columns_of(d, x)
        return a.reshape(*a.shape[:a.ndim - 1 - len(d.axes)], prod(self._shape(d)), a.shape[-1])

    def _by_unknowns(self, d: Derivatives) -> Floats:
        """f_y"""
        parts = []
        for x, own in self.rest.free.items():
            whole = self._flat(d, x)[..., own] if self.felt(x) else np.zeros((prod(self._shape(d)), len(own)))
            parts.append(whole)
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in parts))
        return np.concatenate([np.broadcast_to(a, (*lead, a.shape[-1])) for a in parts], axis=-1)

    def _shaped(self, d: Derivatives, total: Floats, *labels: str) -> Floats:
        """As `System.derivatives` has them: variables that are one number have no axis."""
        lead = total.shape[:total.ndim - 1 - len(labels)]
        widths = zip(labels, total.shape[total.ndim - len(labels):], strict=True)
        return total.reshape(*lead, *self._shape(d), *(n for x, n in widths if x in self.rest.first.columns))


# -- gradients of what a motion ends in, by a sweep back through its steps --------------------------
def gradient(objective: Callable[[Any, Any], Any], system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike],
             duration: float, *, by: Sequence[str] = ("q0", "u0"), step: float = 1e-3, stepper: str = "rk4",
             tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None, wrenches: Any = None, control: Any = None,
             events: Sequence[Event] = ()) -> tuple[float, dict[str, Floats]]:
    """The value of ``objective(q, u)`` of the state at the end of a motion, and its gradient, {name: array}.

    `objective` is written with `bellcrank.math`, of lists q and u. `by` names "q0" and "u0" (the beginning: one column
    for every speed, of a closed machine for every independent one), "tau" (constant joint forces) and parameters.
    Forces, `control` (a `Traced` function) and `events` are those of `System.simulate`, events that change the topology
    excepted; one that stops the run moves its end. The gradient is exact for the steps that are made, closing of loops
    included. Cost: the run, and about three times its steps with Jacobians, whatever the number of unknowns; memory
    grows with the root of the number of steps.

    >>> import bellcrank as bc
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> value, slope = bc.gradient(lambda q, u: q[1] * q[1], arm, ([0.3, 0.1], [0.0, 0.0]), 0.1, by=["u0"], step=0.01)
    >>> slope["u0"].shape
    (2,)
    """
    trim = closed_state(system, state, None, "gradient")
    setup = Setup.of(system, trim, duration, step, stepper, None, tau, wrenches, control, events, 1e-9, 1e-12, None)
    check_differentiable(setup)
    hold = setup.holds()
    setup = replace(setup, every=hold * max(1, round(setup.steps**0.5 / hold)))
    graph = Graph()
    q, u = ([graph.leaf((name, i)) for i in range(n)] for name, n in (("q", system.nq), ("u", system.nu)))
    try:
        made = objective(q, u)
    except TypeError as error:
        raise ModelError(f"gradient: the objective cannot be traced: {error}") from None
    if type(made) is not Scalar:
        raise ModelError("gradient: the objective must give one number that depends on the state, got "
                         f"{type(made).__name__}")
    slopes = adjoints([made], [1.0], [*q, *u])
    entries = [made, *(slopes.get(x, 0.0) for x in (*q, *u))]

    def slope(y: Floats) -> tuple[float, Floats]:
        values = evaluate(entries, lambda key: float(y[key[1] + (system.nq if key[0] == "u" else 0)]))
        return float(values[0]), np.array(values[1:], dtype=float)

    result, log = recorded(setup)
    if result.attrs["status"] not in ("finished", "stopped"):
        raise StateError(f"gradient: the motion {result.attrs['status']}: {result.attrs['reason']}")
    return swept_back(setup, log, np.hstack([result.q.values, result.u.values]), by, slope)
