"""Generalized speeds of one's own choice: u = C(q, t) qdot + D(q, t).

K. S. Anderson and J. H. Critchley (see `formulations.kane` for the citation), eq. (1a): C is an invertible matrix which
the user specifies, D what comes from specified motions. Every joint type has speeds of its own, v here, in which the
recursions run; they are qdot wherever coordinates are moved by adding speeds, and the components of angular and linear
velocities where coordinates are quaternions. What is chosen here is a change of variables around any method.

| paper | here |
|---|---|
| u, C, D (1a) | ``u``, ``C``, ``D`` |
| qdot | ``v``, the system's own speeds |
| M, K (1b) | ``mass_matrix``, and ``forces - bias`` |

With udot = C vdot + c, where c = dC/dt v + dD/dt, and M_v vdot + h_v = tau,

    M = C^-T M_v C^-1        h = C^-T (h_v - M_v C^-1 c)        Q = C^-T tau             (1)

Q are the forces conjugate to u: the power Q . (u - D) is tau . v. The rates of C and D along a motion come from jets,
exact to rounding; so C and D are written with `bellcrank.math` and never differentiated by hand.

Declared deviations
- (1a) has D(q) and no time; here D may depend on t as well.
- Rows of loops, couplers and prescribed motions speak of v, as the mechanism declares them: forward dynamics solves
  them there, and the result is carried over to u.
Cost: that of the system's own method, and O(nu^3) for C in every state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_finite, check_time, flat
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError, SingularError, StateError
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.simulate.control import Traced
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["ChosenSpeeds", "in_speeds"]

#: a function of (q, t), or what does not change
Matrix = Callable[[Sequence[Number], Number], Sequence[Sequence[Number]]] | npt.ArrayLike
Column = Callable[[Sequence[Number], Number], Sequence[Number]] | npt.ArrayLike

#: C is called singular where its inverse loses all digits
_SINGULAR = 1e-14


class _Change(NamedTuple):
    """C, its inverse and D of states (...), and c = dC/dt v + dD/dt if there are speeds."""

    matrix: Floats
    inverse: Floats
    offset: Floats
    drift: Floats


class ChosenSpeeds:
    """A system in speeds u = C v + D instead of its own speeds v; made by `bellcrank.analyze.in_speeds`.

    Methods are those of a `System` with u, its accelerations and conjugate forces in the chosen speeds; arrays have
    leading batch axes as there. `own` and `speeds` lead from one to the other, `joint_forces` and `forces` for forces.
    """

    def __init__(self, system: System, C: Matrix, D: Column | None = None, names: Sequence[str] | None = None) -> None:
        self.system = system
        self._matrix, self._offset = _checked(system, C, D)
        #: names of the speeds
        self.speed_names = tuple(names) if names is not None else tuple(f"u{i + 1}" for i in range(system.nu))
        if len(set(self.speed_names)) != system.nu:
            raise ModelError(f"in_speeds: {system.model.name!r} has {system.nu} speeds; give as many different names, "
                             f"got {', '.join(map(repr, self.speed_names))}")

    def __repr__(self) -> str:
        return f"<ChosenSpeeds {', '.join(self.speed_names)} of {self.system!r}>"

    # -- from one to the other ------------------------------------------------------------------
    def speeds(self, q: npt.ArrayLike, v: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """u = C v + D for the system's own speeds v, (..., nu). (1a)"""
        change = self._at(q, t)
        return _times(change.matrix, self._flat("v", v, self.system.speed_names)) + change.offset

    def own(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """The system's own speeds v = C^-1 (u - D), (..., nu)."""
        change = self._at(q, t)
        return _times(change.inverse, self._flat("u", u, self.speed_names) - change.offset)

    def forces(self, q: npt.ArrayLike, tau: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Q = C^-T tau, conjugate to u, for joint forces tau; (..., nu). (1)"""
        return _times(_turned(self._at(q, t).inverse), self._flat("tau", tau, self.system.speed_names))

    def joint_forces(self, q: npt.ArrayLike, forces: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Joint forces tau = C^T Q, (..., nu)."""
        return _times(_turned(self._at(q, t).matrix), self._flat("forces", forces, self.speed_names))

    def state(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: float = START) -> State:
        """The system's own `State`, for its methods; loops are as closed as q and u are."""
        return self.system.state(q, self.own(q, u, t=t), t=t)

    # -- dynamics -------------------------------------------------------------------------------
    def forward_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, forces: npt.ArrayLike | None = None, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START) -> Floats:
        """udot = C vdot + dC/dt v + dD/dt under forces Q conjugate to u, (..., nu)."""
        v = self.own(q, u, t=t)
        change = self._at(q, t, v)
        tau = None if forces is None else _times(_turned(change.matrix), self._flat("forces", forces, self.speed_names))
        return _times(change.matrix, self.system.forward_dynamics(q, v, tau, wrenches=wrenches, t=t)) + change.drift

    def inverse_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *, wrenches: Wrenches = None,
                         t: npt.ArrayLike = START) -> Floats:
        """Forces Q for accelerations udot of the chosen speeds, (..., nu); with loops those of the drives."""
        v = self.own(q, u, t=t)
        change = self._at(q, t, v)
        vdot = _times(change.inverse, self._flat("udot", udot, self.speed_names) - change.drift)
        tau = np.asarray(self.system.inverse_dynamics(q, v, vdot, wrenches=wrenches, t=t))
        return _times(_turned(change.inverse), tau)

    def mass_matrix(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """M = C^-T M_v C^-1, (..., nu, nu), of the spanning tree where there are loops. (1)"""
        inverse = self._at(q, t).inverse
        return np.asarray(_turned(inverse) @ self.system.mass_matrix(q, t=t) @ inverse)

    def bias(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = START
             ) -> Floats:
        """h with M udot + h = Q, (..., nu), of the spanning tree where there are loops. (1)"""
        v = self.own(q, u, t=t)
        change = self._at(q, t, v)
        inertial = _times(self.system.mass_matrix(q, t=t), _times(change.inverse, change.drift))
        return _times(_turned(change.inverse), self.system.bias(q, v, wrenches=wrenches, t=t) - inertial)

    def simulate(self, q: npt.ArrayLike, u: npt.ArrayLike, duration: float, *, forces: npt.ArrayLike | None = None,
                 t: float = START, **options: Any) -> Result:
        """`System.simulate` from a state in the chosen speeds, with `options` as there; constant `forces` are those
        conjugate to u, compiled as the joint forces C^T Q. The result has the chosen speeds over time besides, as the
        variable ``chosen_u`` with the dimension ``chosen_speed``."""
        if forces is not None:
            if "control" in options or "tau" in options:
                raise ModelError("simulate: give forces, or tau or control, which speak of the system's own speeds")
            options["control"] = Traced(self._law(self._flat("forces", forces, self.speed_names)))
        result = self.system.simulate(self.state(q, u, t=t), duration, **options)
        found = self.speeds(result["q"].values, result["u"].values, t=_times_of(result))
        dims = tuple("chosen_speed" if d == "speed" else d for d in result["u"].dims)
        made = result.assign(chosen_u=(dims, found)).assign_coords(chosen_speed=list(self.speed_names))
        return made.noting(self.system)

    def _law(self, forces: Floats) -> Callable[[Number, Any, Any], list[Number]]:
        if forces.ndim != 1:
            raise StateError(f"forces: needs {self.system.nu} numbers, the same for all states; got {forces.shape}")
        nq, nu = self.system.nq, self.system.nu

        def joint_forces(t: Number, q: Any, v: Any) -> list[Number]:
            rows = self._matrix([q[i] for i in range(nq)], t)
            return [sum((rows[i][j] * float(forces[i]) for i in range(nu)), 0.0) for j in range(nu)]

        return joint_forces

    # -- C and D in numbers ---------------------------------------------------------------------
    def _flat(self, name: str, value: npt.ArrayLike, names: Sequence[str]) -> Floats:
        array = flat(name, value, self.system.nu, "one for every speed")
        check_finite("in_speeds", name, array, names)
        return array

    def _at(self, q: npt.ArrayLike, t: npt.ArrayLike, v: Floats | None = None) -> _Change:
        system, nu = self.system, self.system.nu
        check_time(t)
        position = flat("q", q, system.nq, "the coordinates")
        check_finite("in_speeds", "q", position, system.coordinate_names)
        time = np.asarray(t, dtype=float)
        lead = np.broadcast_shapes(position.shape[:-1], time.shape, () if v is None else v.shape[:-1])
        rate = np.zeros(system.nq) if v is None else system.model.configuration.qdot(position, v)
        entries = [Jet(position[..., i], rate[..., i], 0.0) for i in range(system.nq)]
        when = Jet(time, 1.0, 0.0)
        matrix, matrix_rate = _numbers(self._matrix(entries, when), (nu, nu), lead, "C")
        offset, offset_rate = _numbers([self._offset(entries, when)], (1, nu), lead, "D")
        inverse = _inverted(matrix, system.model.name)
        drift = offset_rate[..., 0, :] if v is None else _times(matrix_rate, v) + offset_rate[..., 0, :]
        return _Change(matrix, inverse, offset[..., 0, :], drift)


def in_speeds(system: System, C: Matrix, D: Column | None = None, *, names: Sequence[str] | None = None
              ) -> ChosenSpeeds:
    """The system in speeds u = C(q, t) v + D(q, t) of one's own choice; v are its own speeds, the rates of its
    coordinates where these add up. Eq. (1a) of Anderson and Critchley.

    `C` is an invertible array (nu, nu), or a function of (q, t) that returns its rows; `D` likewise an array (nu,) or a
    function that returns its entries, zero if left out. Functions get coordinates by number and use `bellcrank.math`.
    Cost of each call: the system's own, and O(nu^3) a state.

    A pendulum on a pendulum, in the angular velocities of its bodies instead of the rates of its joints:

    >>> import bellcrank as bc
    >>> system = bc.compile(bc.load("double_pendulum"))
    >>> absolute = bc.analyze.in_speeds(system, [[1, 0], [1, 1]], names=("first", "second"))
    >>> absolute.speeds([0.3, 0.2], [1.0, -0.5])
    array([1. , 0.5])
    >>> run = absolute.simulate([0.3, 0.2], [1.0, 0.5], 0.1)
    >>> bool(abs(run.chosen_u[-1, 1] - run.u[-1].sum()) < 1e-14)
    True
    """
    return ChosenSpeeds(system, C, D, names)


def _checked(system: System, C: Matrix, D: Column | None
             ) -> tuple[Callable[..., Sequence[Sequence[Number]]], Callable[..., Sequence[Number]]]:
    """C and D as functions of (q, t)."""
    nu = system.nu
    matrix, offset = C, np.zeros(nu) if D is None else D
    if not callable(matrix):
        rows = _constant("C", matrix, (nu, nu)).tolist()
        matrix = lambda q, t: rows  # noqa: E731
    if not callable(offset):
        entries = _constant("D", offset, (nu,)).tolist()
        offset = lambda q, t: entries  # noqa: E731
    return matrix, offset


def _constant(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(value, dtype=float)
    if array.shape != shape or not np.isfinite(array).all():
        raise ModelError(f"in_speeds: {name} must be a finite array of shape {shape} or a function of (q, t), got the "
                         f"shape {array.shape}")
    return array


def _numbers(rows: Sequence[Sequence[Number]], shape: tuple[int, int], lead: tuple[int, ...], name: str
             ) -> tuple[Floats, Floats]:
    """Values and rates of a matrix of jets, (*lead, *shape)."""
    given = [list(row) for row in rows]
    if len(given) != shape[0] or any(len(row) != shape[1] for row in given):
        raise ModelError(f"in_speeds: {name} must return {' x '.join(map(str, shape if name == 'C' else shape[1:]))} "
                         f"numbers, got rows of {', '.join(str(len(row)) for row in given)}")
    value, rate = np.empty((*lead, *shape)), np.empty((*lead, *shape))
    for i, row in enumerate(given):
        for j, entry in enumerate(row):
            jet = as_jet(entry)
            value[..., i, j], rate[..., i, j] = jet.value, jet.rate
    if not (np.isfinite(value).all() and np.isfinite(rate).all()):
        raise StateError(f"in_speeds: {name} or its rate is not finite in this state")
    return value, rate


def _inverted(matrix: Floats, name: str) -> Floats:
    s = np.linalg.svd(matrix, compute_uv=False)
    if (s[..., -1] <= _SINGULAR * s[..., 0]).any():
        raise SingularError(f"in_speeds: C of {name!r} is singular in this state: the chosen speeds do not determine "
                            "the motion there; choose others")
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _turned(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)


def _times(matrix: Floats, column: Floats) -> Floats:
    return np.asarray((matrix @ column[..., None])[..., 0])


def _times_of(result: Result) -> Floats:
    """The times of samples, on the axes that the states have."""
    dims = result["q"].dims
    shape = [1] * (len(dims) - 1)
    shape[dims.index("time")] = -1
    return np.asarray(result["time"].values, dtype=float).reshape(shape)
