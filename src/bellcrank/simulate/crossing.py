"""Through singular positions: one long step whose stages avoid the position in which constraints become dependent.

In a singular position (a parallelogram that lies flat) branches of the machine's motion meet: accelerations and the
next closed position are not determined by the equations there, and next to it steps divide rounding by what is left of
the constraints. The motion itself is smooth. So it is taken for what it is between two regular states: a polynomial of
time, by collocation at Gauss points x_i of a stretch of length H that has the singular position inside,

    udot_i = dense forward dynamics at (q_i, u_i), the closed state next to (q, u)(x_i)
    u(x)   = u_0 + H sum_i udot_i B_i(x),    q(x) = q_0 + H sum_i qdot(q_i, u_i) B_i(x),    B_i(x) = int_0^x l_i

with Lagrange's polynomials l_i, solved by repetition from q_0 + u_0 t + udot_0 t^2 / 2. Singular positions are isolated
in time, points next to them are avoided by choosing other numbers of points. At the solution the points q(x_i), u(x_i)
are closed by themselves: the polynomial fits the motion at all points, on both sides, only if all of them are on the
branch that continues smoothly. What closing moves is therefore the measure of success, beside the last coefficient of
the polynomial (`_FITS`), and a stretch that does not pass is none. Cost: some 100 dense solutions, O((nu + m)^3) each.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.loops.closer import Target, project
from bellcrank.loops.tolerances import RANK
from bellcrank.simulate.reference import Rhs

if TYPE_CHECKING:
    from bellcrank.simulate.equations import Equations
    from bellcrank.system.machine_functions import Machine

__all__ = ["Crossing", "Passage", "at_rest", "weak"]

#: constraints that have so little of their independence left cost digits: such stretches are crossed
SHRUNK = 0.12
#: constraints whose singular values are not farther apart are independent, whatever they are elsewhere
_CLEAR = 0.1
#: positions off a state that are looked at
_ASIDE = 3
#: what a joint may move at most on a stretch [rad or m]
_FAR = 0.7
#: what a joint moves on the shortest stretch out of a singular position [rad, and lengths of the machine]
_AWAY = 0.03
#: machines with more entries in their Jacobian have none
_LARGE = 400_000
#: numbers of collocation points, in the order they are tried
_POINTS = (8, 7, 9, 10)
#: repetitions at most
_ROUNDS = 40
#: points are closed to this part of their motion, and repetition ends where nothing changes by more
_FITS, _STILL = 1e-9, 1e-14
#: a machine that moves slower than this does not move [rad/s, and lengths of the machine a second]
_REST = 1e-9


class Passage(NamedTuple):
    """A smooth piece of motion: Gauss points, rates there, and where it begins."""

    start: float
    length: float
    y: Floats  #: the state at the start
    rates: Floats  #: (points, nq + nu)
    last: Floats  #: the state at the end, closed

    def at(self, t: float) -> Floats:
        """The state (q, u) at a time of the stretch; quaternions are unit but for rounding."""
        x = (t - self.start) / self.length
        if x >= 1.0:
            return self.last
        return np.asarray(self.y + self.length * (_integrals(len(self.rates), x) @ self.rates))


class Crossing:
    """Passages of one state through singular positions; `rhs` knows the forces that act."""

    def __init__(self, rhs: Rhs) -> None:
        self.rhs, self.system = rhs, rhs.system
        self._held = rhs.system.model.bound_mask()
        tree = rhs.system.model.tree
        self._target = Target(self._held, 1.0 / tree.speed_sizes)
        self._sizes = np.concatenate([tree.coordinate_sizes, tree.speed_sizes])  #: of states (q, u)

    @classmethod
    def of(cls, equations: Equations, index: int) -> Crossing:
        """For one state of a batch."""
        e = equations
        some = slice(index, index + 1)
        wrenches = e.wrenches if e.wrenches is None or len(e.wrenches) == 1 else e.wrenches[some]
        return cls(Rhs(e.single(index), e.tau if len(e.tau) == 1 else e.tau[some], wrenches, e.drives, e.closing))

    def state(self, y: Floats, t: float) -> Floats:
        """(q, u) of a state of the run."""
        if self.system.model.method != "momenta":
            return y
        q, p = y[:self.system.nq], y[self.system.nq:]
        return np.concatenate([q, self.system.hamilton(q, p, t=t)[0]])

    def packed(self, y: Floats, t: float) -> Floats:
        """The inverse of `state`, with unit quaternions."""
        nq = self.system.nq
        q, u = self.system.normalize(y[:nq]), y[nq:]
        momenta = self.system.model.method == "momenta"
        return np.concatenate([q, self.system.momenta(q, u, t=t, speeds="tree") if momenta else u])

    def sample(self, passage: Passage, t: float) -> Floats:
        """The state of the run at a time of a passage, closed as its steps are."""
        y = passage.at(t)
        return self.packed(y if y is passage.last else self._ended(y, t), t)

    def passage(self, y: Floats, t: float, unit: float, most: int) -> Passage | None:
        """From the state y = (q, u) at t to the first of the times t + k unit, k up to `most`, at which a plan serves
        again; None if there is no smooth motion that gets there."""
        tree = self.system.model.tree
        if not tree.looped or tree.rheonomic:  # what is driven into a dead position ends there
            return None
        speed = _fastest(self.system, y)
        if speed < _REST or not np.isfinite(y).all() or self.system.plans.loops.m * self.system.nu > _LARGE:
            return None
        known = self._known(y, t)
        first = self._first(y, t, unit, most, known, speed)
        longer = [] if first is None else [first, first + max(1, first // 4), first + max(1, first // 2)]
        shorter = [] if first is None else [first // 2, first // 4, first // 8]  # a part of the way, if it bends much
        for count in (n for n in (*longer, *shorter) if 0 < n <= most):
            for points in _POINTS:
                found = self._solved(y, t, count * unit, points, known)
                if found is not None:
                    return found
        return None

    # -- where to ----------------------------------------------------------------------------------
    def _known(self, y: Floats, t: float) -> Floats:
        """The acceleration at the start; in a singular position none is known."""
        try:
            return self._rates(np.array([t]), y[None])[0, self.system.nq:]
        except (BellcrankError, ArithmeticError):
            return np.zeros(self.system.nu)

    def _first(self, y: Floats, t: float, unit: float, most: int, udot: Floats, speed: float) -> int | None:
        """The least number of units after which the constraints are independent again, as far as one can see from the
        start."""
        nq = self.system.nq
        general, before = _general(self.system, y[:nq], t), _strength(self.system, y[:nq], t)
        enough = max(SHRUNK * general, min(before, 0.5 * general))
        count = 1 if before > RANK else max(1, int(np.ceil(_AWAY / (speed * unit))))
        while count <= most:
            h = count * unit
            if count > 1 and speed * h > _FAR:
                return None
            ahead = self.system.integrate(y[:nq], y[nq:] * h + 0.5 * h * h * udot)
            if _strength(self.system, ahead, t + h) >= enough:
                return count
            count += max(1, count // 3)
        return most if most * unit * speed < _FAR else None

    # -- collocation -------------------------------------------------------------------------------
    def _solved(self, y: Floats, t: float, length: float, points: int, udot: Floats) -> Passage | None:
        """The motion over one stretch; None if the repetition ends elsewhere or nowhere."""
        nq = self.system.nq
        x = _points(points)
        times, weights = t + length * x, np.stack([_integrals(points, float(c)) for c in x])
        shift = length * x[:, None] * y[nq:] + 0.5 * (length * x[:, None])**2 * udot
        q, u = self.system.integrate(y[:nq], shift), y[nq:] + length * x[:, None] * udot
        guess = np.concatenate([q, u], axis=-1)
        fit = np.array([self._size(y)])
        before = np.inf
        try:
            for _ in range(_ROUNDS):
                closed = self._closed(times, guess)
                fit, rates = np.abs(closed - guess) / self._sizes, self._rates(times, closed)
                new = y + length * (weights @ rates)
                change = float(np.abs((new - guess) / self._sizes).max())
                guess = new
                if change <= _STILL * self._size(y) or (change > 0.5 * before and change < _FITS * self._size(y)):
                    break
                if not np.isfinite(change) or change > 1e3 * before:
                    return None
                before = change
        except (BellcrankError, ArithmeticError, np.linalg.LinAlgError):
            return None
        lack = (self._closed(np.array([t]), y[None])[0] - y) / self._sizes
        allowed = _FITS * self._size(y) + 10.0 * float(np.abs(lack).max())
        if float(fit.max()) > allowed or length * _rest(rates / self._sizes) > _FITS * self._size(y):
            return None
        end = y + length * (_integrals(points, 1.0) @ rates)
        return Passage(t, length, y.copy(), rates, self._ended(end, t + length))

    def _size(self, y: Floats) -> float:
        return 1.0 + _fastest(self.system, y)

    def _ended(self, y: Floats, t: float) -> Floats:
        """The end, closed as the steps of the run close it."""
        closed: Floats = self._closed(np.array([t]), y[None])[0]
        nq, closing = self.system.nq, self.rhs.closing
        if closing == "position":
            return closed
        q = self.system.normalize(y[:nq])
        return np.concatenate([q, closed[nq:] if closing == "velocity" else y[nq:]])

    def _closed(self, times: Floats, y: Floats) -> Floats:
        """The closed states nearest to some (points, nq + nu)."""
        system, nq = self.system, self.system.nq
        q, u = system.normalize(y[:, :nq]), y[:, nq:]
        if self._held.any():
            u = np.where(self._held, system.kernels.run("driven_speeds", {"q": q, "u": u}, None, times), u)
            q = system.kernels.run("displaced", {"q": q, "dq": np.zeros(system.nu)}, None, times)
        q, _ = system.plans.closer.close(q, self._target, times)
        return np.concatenate([q, project(system.plans.loops, q, u, self._target, times)[0]], axis=-1)

    def _rates(self, times: Floats, y: Floats) -> Floats:
        """Rates of states (points, nq + nu), by singular values."""
        if not self.rhs.drives:
            return self.rhs.dense(times, y)
        return np.concatenate([self.rhs.dense(float(t), row[None]) for t, row in zip(times, y, strict=True)])


def weak(system: Machine, q: Floats, t: float) -> bool:
    """Whether some constraints are so nearly dependent that steps lose digits. Cost: O(nu^2 m)."""
    if system.plans.loops.m * system.nu > _LARGE:
        return False
    least, largest = _strengths(system, q, t)
    return least < _CLEAR * largest and least < SHRUNK * _general(system, q, t)


def _strengths(system: Machine, q: Floats, t: float) -> tuple[float, float]:
    """The least and the largest singular value of the independent constraints, in units of the machine's size; the
    least is zero in singular positions."""
    plans, tree = system.plans, system.model.tree
    scaled = plans.loops.dense(plans.loops.linearized(q, t)[1]) * tree.speed_sizes / plans.loops.row_sizes[:, None]
    values = np.linalg.svd(scaled[:, tree.free_speeds()], compute_uv=False)
    return float(values[len(plans.reference_near(q, t).plan.kept) - 1]), float(values[0])


def _strength(system: Machine, q: Floats, t: float) -> float:
    return _strengths(system, q, t)[0]


def _general(system: Machine, q: Floats, t: float) -> float:
    """The least singular value in a general position: the largest of those of the reference, which may itself be next
    to a singular position, and of some positions off q."""
    plans = system.plans
    place = plans.reference_near(q, t).q
    known: dict[bytes, float] = system.kernels.kept("strength of constraints", dict)
    key = place.tobytes()
    if key not in known:
        known[key] = _strength(system, place, t)
    found = [known[key]]
    for _ in range(_ASIDE):
        q = plans.general_position(q, t)
        found.append(_strength(system, q, t))
    return max(found)


def at_rest(system: Machine, y: Floats) -> str:
    """What to say of a machine that is in a singular position and does not move; nothing of one that moves."""
    if _fastest(system, y) >= _REST:
        return ""
    return "; it is at rest there, so that its motion is undetermined: begin beside it, or with a speed"


def _fastest(system: Machine, y: Floats) -> float:
    """The largest speed of a state (q, u), in rad/s and lengths of the machine a second."""
    return float(system.plans.loops.step_length(y[system.nq:]))


@cache
def _points(count: int) -> Floats:
    """Gauss points of [0, 1]."""
    x, _ = np.polynomial.legendre.leggauss(count)
    return np.asarray(0.5 * (x + 1.0))


@cache
def _coefficients(count: int) -> Floats:
    """Legendre coefficients (points, degrees) of the integrals from 0 of Lagrange's polynomials at the Gauss points."""
    x, weights = np.polynomial.legendre.leggauss(count)
    degrees = np.arange(count)
    # quadrature at the points is exact for products of degree 2 count - 1
    series = np.polynomial.legendre.legvander(x, count - 1) * weights[:, None] * (degrees + 0.5)
    return np.asarray(np.polynomial.legendre.legint(series.T, lbnd=-1.0).T * 0.5)


def _rest(rates: Floats) -> float:
    """The last Legendre coefficient of a polynomial through values (points, n): about what it is off between them."""
    x, weights = np.polynomial.legendre.leggauss(len(rates))
    last = np.polynomial.legendre.legvander(x, len(rates) - 1)[:, -1]
    return float(np.abs((len(rates) - 0.5) * (weights * last) @ rates).max())


def _integrals(count: int, x: float) -> Floats:
    """B_i(x)."""
    return np.asarray(np.polynomial.legendre.legval(2.0 * x - 1.0, _coefficients(count).T))
