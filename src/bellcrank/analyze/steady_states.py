"""States of elements at rest: values x at which their rates f(q, x) vanish, together with the forces g(q, x).

Newton's method for both at once, so that integrators, whose rates do not depend on themselves, are found as well: they
ask for a position, and take the value that holds it.

Combinations of states whose rates vanish wherever the machine rests, as pressures of trapped oil, follow the motion:
with W the combinations, W^T dx = W^T f(q, dq, x) along the way of the search. Trapped oil is a spring that way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.analyze.linear_models import eigen, linear_model
from bellcrank.analyze.minimal import state_entries
from bellcrank.arrays import Floats
from bellcrank.errors import NotYetError, SingularError, StateError
from bellcrank.loops.tolerances import CLOSED
from bellcrank.mechanism.forces.cylinder import PressureRate
from bellcrank.system.assembly_speeds import initial_speeds
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.analyze.minimal import Chart
    from bellcrank.analyze.resting_forces import RestingForces
    from bellcrank.compiled.system import System

__all__ = ["SteadyStates"]

#: a step of Newton's method in radians and lengths of the machine
_LONGEST = 0.5
#: directions of which less than this part of the most is left are none
_NONE = 1e-12
#: combinations of rates that change by less than this part of the most are those of states that follow the motion
_FOLLOWS = 1e-9
#: rates of such combinations beyond this part of how they change with a state never come to rest
_RUNS = 1e-3
#: numbers of steps in which states that follow are integrated, until two agree
_SUBSTEPS = (2, 4, 8, 32, 128, 512)
#: steps of halving before a step of Newton's method is given up
_HALVINGS = 30


@dataclass(frozen=True)
class SteadyStates:
    """The states of a machine's elements: their places among speeds, and where the search begins."""

    system: System
    places: list[int]
    start: Floats

    @classmethod
    def of(cls, balance: RestingForces, guess: Any) -> SteadyStates:
        """From those of a guess that is a state, or from their initial values."""
        places = state_entries(balance.system)
        start = guess.u if isinstance(guess, State) else initial_speeds(balance.system.plans)
        return cls(balance.system, places, np.array(start, dtype=float)[places])

    def at(self, balance: RestingForces, x: Floats) -> RestingForces:
        """The machine with these values of its states; positions are moved without them."""
        speeds = balance.speeds.copy()
        speeds[self.places] = x
        return replace(balance, speeds=speeds, held=sorted({*balance.held, *self.places}))

    def settled(self, balance: RestingForces, q: Floats) -> RestingForces:
        """States at rest where the machine is, as far as they come to rest by themselves."""
        x = balance.speeds[self.places] if set(self.places) <= set(balance.held) else self.start
        balance = self.at(balance, x)
        for _ in range(20):
            rates = self._rates(balance, q)
            slopes = self._by_states(balance, q)[self.places]
            x = x - np.linalg.lstsq(slopes, rates, rcond=1e-9)[0]
            trial = self.at(balance, x)
            if not _largest(self._rates, trial, q) < np.abs(rates).max():
                break
            balance = trial
        return balance

    def newton(self, balance: RestingForces, q: Floats, iterations: int) -> tuple[RestingForces, Floats]:
        """Forces and rates brought to zero together."""
        calm = 0
        for _ in range(iterations):
            chart = balance.chart(q)
            lack = self._lack(balance, chart, q)
            slopes = self._slopes(balance, chart)
            scale = _sizes(slopes)  # rows of forces and rates alike
            following = self._following(balance, chart, slopes)
            whole = np.vstack([slopes / scale[:, None], following / _sizes(following)[:, None]])
            right = np.append(-lack / scale, np.zeros(len(following)))
            step = np.asarray(np.linalg.lstsq(whole, right, rcond=_NONE)[0], dtype=float)
            moved = chart.step_length(q, step[:len(chart.independent)] * chart.sizes)
            step = step * min(1.0, _LONGEST / max(moved, 1e-300))
            size = float(np.abs(lack / scale).max())
            if size <= 1e-14 * (1.0 + float(np.abs(balance.speeds).max())) or calm == 2:
                return balance, q
            carried = following[:, len(chart.independent):]
            k = len(chart.independent)
            if (np.abs(carried @ lack[k:]) > _RUNS * (np.abs(carried) @ scale[k:])).any():
                break  # nothing changes the rate of what follows the motion
            found = self._shorter(balance, chart, step, scale, size, carried)
            if found is None:
                if calm:  # rounding is left
                    return balance, q
                break
            balance, q = found
            calm = calm + 1 if np.abs(step).max() <= 1e-9 * (1.0 + np.abs(balance.speeds).max()) else 0
        chart = balance.chart(q)
        rates = self._rates(balance, q)
        names = [s.name for s in self.system.model.mechanism.states]
        worst = ", ".join(f"{names[i]!r} by {abs(rates[i]):.3g}" for i in np.argsort(-np.abs(rates))[:4])
        raise balance.failure(chart, balance.slope(chart, q),
                              f"no place where states of elements rest; rates of {worst}")

    def holding(self, balance: RestingForces, q: Floats) -> RestingForces:
        """With pressures of shut cylinders that hold the joints which are held, as far as they can: none falls, since
        oil bears no tension."""
        from scipy.optimize import nnls

        rest = replace(balance, held=[v for v in balance.held if v in self.places])
        chart = rest.chart(q)
        rows = self._slopes(balance, balance.chart(q))[-len(self.places):]
        shut = [i for i, state in enumerate(self.system.model.mechanism.states)
                if isinstance(state.rate, PressureRate) and not rows[i].any()]
        if len(rest.held) == len(balance.held) or not shut:
            return balance
        lack, effect = rest.slope(chart, q), (chart.basis(q) * chart.sizes).T @ self._by_states(rest, q)[:, shut]
        x = balance.speeds[self.places].copy()
        x[shut] += nnls(effect, -lack)[0]
        return self.at(balance, x)

    def check_stable(self, balance: RestingForces, q: Floats) -> None:
        """Refuse what would run away."""
        found = linear_model(self.system, balance.checked(q), balance.tau, (), (), None, balance.wrenches)
        entries = (*found.chart.placed, *found.chart.independent)
        kept = [i for i, v in enumerate(entries) if v not in set(balance.held).difference(self.places)]
        values = eigen(found.A[np.ix_(kept, kept)])[0]
        worst = float(values.real.max(initial=0.0))
        if worst > 1e-6 * (1.0 + float(np.abs(values).max(initial=0.0))):
            raise StateError(f"equilibrium of {self.system.model.name!r}: the one that was found is not stable (it "
                             f"grows at the rate {worst:.3g} 1/s); start from a better guess, or take it with "
                             "stable=False")

    def _shorter(self, balance: RestingForces, chart: Chart, step: Floats, scale: Floats, size: float,
                 following: Floats) -> tuple[RestingForces, Floats] | None:
        """The longest part of a step that leaves less out of balance; combinations `following` of states (rows) move
        with the machine."""
        k = len(chart.independent)
        for _ in range(_HALVINGS):
            trial = self.at(balance, self._carried(balance, chart, step, following))
            q, left = chart.positions(step[None, :k] * chart.sizes)
            if left[0] < CLOSED and _largest(self._lack, trial, chart, q[0], scale=scale) < size:
                return trial, np.asarray(q[0])
            step = 0.5 * step
        return None

    def follow(self, balance: RestingForces, q: Floats) -> bool:
        """Whether some states follow the motion: their rates vanish wherever the machine rests."""
        chart = balance.chart(q)
        return len(self._following(balance, chart, self._slopes(balance, chart))) > 0

    def _following(self, balance: RestingForces, chart: Chart, slopes: Floats) -> Floats:
        """W^T [-B, 1], with B how states change when coordinates of the chart move: rows of combinations W whose rates
        nothing changes at rest."""
        k, n = len(chart.independent), len(self.places)
        scale = _sizes(slopes[k:])
        left, values, _ = np.linalg.svd(slopes[k:] / scale[:, None])
        rank = int((values > _FOLLOWS * max(1.0, float(values.max(initial=0.0)))).sum())
        combinations = np.linalg.qr(left[:, rank:] / scale[:, None])[0].T
        moving = [self._moving(balance, chart.q, motion) for motion in (chart.basis(chart.q) * chart.sizes).T]
        by_place = np.stack(moving, axis=-1) if moving else np.zeros((n, 0))
        return np.asarray(np.hstack([-combinations @ by_place, combinations]))

    def _moving(self, balance: RestingForces, q: Floats, motion: Floats) -> Floats:
        """Rates of the states while the machine moves with speeds (nu)."""
        speeds = motion.copy()
        speeds[self.places] = balance.speeds[self.places]
        return -self._rates(replace(balance, speeds=speeds), q)

    def _carried(self, balance: RestingForces, chart: Chart, step: Floats, following: Floats) -> Floats:
        """The states after a step: those that follow by the rates they have on the way (Runge-Kutta), others as the
        step says."""
        k, x = len(chart.independent), balance.speeds[self.places]
        end = x + step[k:]
        if not len(following):
            return end
        before = np.full(len(x), np.inf)
        for count in _SUBSTEPS:
            reached = self._along(balance, chart, step[:k] * chart.sizes, count)
            if np.abs(reached - before).max() <= 1e-9 * (1.0 + np.abs(x).max()):
                break
            before = reached
        return np.asarray(end + following.T @ (following @ (reached - end)))

    def _along(self, balance: RestingForces, chart: Chart, z: Floats, count: int) -> Floats:
        """The states after a motion of the chart's coordinates, by so many steps of Runge and Kutta's method."""
        way, _ = chart.positions(np.linspace(0.0, 1.0, 2 * count + 1)[:, None] * z)
        motions, x, h = chart.basis(way) @ z, balance.speeds[self.places], 1.0 / count

        def rate(i: int, x: Floats) -> Floats:
            return self._moving(self.at(balance, x), way[i], motions[i])

        for i in range(0, 2 * count, 2):
            a = rate(i, x)
            b = rate(i + 1, x + 0.5 * h * a)
            c = rate(i + 1, x + 0.5 * h * b)
            x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + rate(i + 2, x + h * c))
        return x

    def _rates(self, balance: RestingForces, q: Floats) -> Floats:
        """What must act on the states so that they rest: less their rates."""
        return np.asarray((balance.bias(q) - balance.drive(q))[self.places])

    def _lack(self, balance: RestingForces, chart: Chart, q: Floats) -> Floats:
        return np.concatenate([balance.slope(chart, q), self._rates(balance, q)])

    def _slopes(self, balance: RestingForces, chart: Chart) -> Floats:
        """Derivatives of forces and rates by coordinates of the chart, in their sizes, and by states."""
        basis, k = chart.basis(chart.q) * chart.sizes, len(chart.independent)
        out = np.zeros((k + len(self.places),) * 2)
        try:
            rates = balance.rates(chart) * chart.sizes[:, None]
            out[:k, :k], out[k:, :k] = (rates @ basis).T, rates[:, self.places].T
        except NotYetError:  # large machines
            h = 1e-6
            q, _ = chart.positions(np.concatenate([h * np.eye(k), -h * np.eye(k)]) * chart.sizes)
            each = np.array([self._lack(balance, chart, row) for row in q])
            out[:, :k] = (each[:k] - each[k:]).T / (2.0 * h)
        by_states = self._by_states(balance, chart.q)
        out[:k, k:], out[k:, k:] = basis.T @ by_states, by_states[self.places]
        return out

    def _by_states(self, balance: RestingForces, q: Floats) -> Floats:
        """How what joints need changes with states, shape (nu, states)."""
        try:
            found = self.system.derivatives("bias", q, balance.speeds, by="u", closed=False, wrenches=balance.wrenches,
                                            t=balance.t)["u"]
            return np.asarray(found[:, self.places])
        except NotYetError:
            x, columns = balance.speeds[self.places], []
            for i in range(len(x)):
                h = 1e-6 * max(1.0, abs(float(x[i]))) * np.eye(len(x))[i]
                columns.append((self.at(balance, x + h).bias(q) - self.at(balance, x - h).bias(q)) / (2.0 * h[i]))
            return np.stack(columns, axis=-1)


def _sizes(rows: Floats) -> Floats:
    """The largest entries of rows, 1 for rows of zeros."""
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    return np.where(sizes > 0.0, sizes, 1.0)


def _largest(left: Callable[..., Floats], *of: Any, scale: Floats | float = 1.0) -> float:
    """How much is left out of balance; infinite where laws have no value, as beyond the stroke of a cylinder."""
    try:
        return float(np.abs(left(*of) / scale).max())
    except SingularError:
        return np.inf
