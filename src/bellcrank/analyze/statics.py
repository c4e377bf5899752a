"""Static equilibrium: where a machine at rest stays at rest.

In minimal coordinates z (see `closing.Chart`) the unbalanced force is ``g = N^T (bias(q, 0) - tau)``, the slope of the
potential energy if there is one. Newton's method uses the stiffness dg/dz, exact, with its eigenvalues made positive,
measured with the mass matrix: every step then goes down the potential energy, which need not be known, so that force
laws given as functions are no exception, and maxima and saddle points repel. Near the solution it is Newton's method
itself, and g vanishes to rounding. Machines whose code is rolled into loops (over 48 links) cannot be differentiated
yet: there the stiffness is found by central differences.

States of elements at rest: values x at which their rates f(q, x) vanish, together with the forces g(q, x).

Newton's method for both at once, so that integrators, whose rates do not depend on themselves, are found as well: they
ask for a position, and take the value that holds it.

Combinations of states whose rates vanish wherever the machine rests, as pressures of trapped oil, follow the motion:
with W the combinations, W^T dx = W^T f(q, dq, x) along the way of the search. Trapped oil is a spring that way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.linear_models import eigen, linear_model
from bellcrank.analyze.minimal import Chart, force_arrays, guess_with_links, state_entries, with_links
from bellcrank.analyze.resting_forces import RestingForces
from bellcrank.arrays import Floats, check_unmasked, leading, one_time, wrench_array
from bellcrank.compiled.system import System
from bellcrank.errors import AssemblyError, BellcrankWarning, NotYetError, SingularError, StateError, outside
from bellcrank.loops.tolerances import CLOSED
from bellcrank.mechanism.forces.motors import PressureRate
from bellcrank.simulate.deflections import Deflections
from bellcrank.system.assembly_speeds import initial_speeds
from bellcrank.system.held_values import batch_axes, near, one_of
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state import State

__all__ = ["equilibrium"]


# -- states of elements at rest ---------------------------------------------------------------------
#: a step of Newton's method in radians and lengths of the machine
_LONGEST_CHANGE = 0.5
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
            step = step * min(1.0, _LONGEST_CHANGE / max(moved, 1e-300))
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


# -- static equilibrium -----------------------------------------------------------------------------
#: a step of Newton's method in radians and lengths of the machine
_LONGEST = 0.5
#: eigenvalues of the stiffness below this, relative to the largest, are none
_NEUTRAL = 1e-9
#: parts of a step at which hills are looked for, rising: thin ones at its beginning, others all along
_PARTS = np.union1d(2.0 ** -np.arange(4.0, 24.0), np.linspace(0.0, 1.0, 17)[1:])


def equilibrium(system: System, guess: State | Mapping[str, float | Sequence[float]] | npt.ArrayLike | None = None, *,
                hold: Mapping[str, float | Sequence[float]] | Sequence[str] = (),
                tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None, wrenches: Wrenches = None,
                t: float = 0.0, stable: bool = True, iterations: int = 200) -> State:
    """A state at rest in which nothing accelerates, loops closed, near `guess`.

    `guess` is a state, an array q or a mapping {joint: value} to start from (all joints at zero if not given). Arrays
    with leading axes, of the guess, of `tau`, of `wrenches` (load cases) or of parameters, give a state with these
    axes; `equilibrium_derivatives` says how it changes with loads and parameters. `hold`
    locks joints, at values {joint: value} or where the guess has them (names): `inverse_dynamics` with these joints as
    `actuated` gives the forces that hold them. `tau` are constant joint forces, `wrenches` external loads.
    Prescribed joints are where their laws have them at time t; a law that
    turns a whole machine steadily gives its relative equilibrium. States of elements (`Mechanism.add_state`) rest, too:
    their rates vanish, and the state that is returned has their values among its speeds. States whose rates vanish
    wherever the machine rests follow its motion from the guess: oil in a shut hydraulic cylinder is a spring. With
    `hold`, pressures of shut cylinders rise until they hold these joints.

    With `stable`, only stable or indifferent equilibria are found: from a maximum or saddle point the search goes
    on downhill. Without, the nearest one by Newton's method, whatever its kind. If there is none in reach, the error
    names the joints whose forces are least balanced. Forces balance to about 1e-12 of their size. Cost: some ten
    iterations, each with the exact stiffness by k products of a derivative with a vector, for k degrees of freedom;
    states of a batch one after the other.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = bc.analyze.equilibrium(linkage, {"A": 0.5})
    >>> bool(abs(linkage.forward_dynamics(state.q, state.u)).max() < 1e-9)
    True
    """
    if isinstance(hold, str):
        raise StateError(f"equilibrium: hold is a mapping or a list of names; write [{hold!r}]")
    t = one_time(t)
    check_unmasked("equilibrium: guess", guess)
    linked = with_links(system, hold)
    if linked is not None:
        return equilibrium(linked, guess_with_links(system, guess, t, "equilibrium"), hold=hold, tau=tau,
                           wrenches=wrenches, t=t, stable=stable, iterations=iterations)
    forces = force_arrays(system, tau)
    loads = None if wrenches is None else wrench_array(wrenches, system.body_names)
    varied = {name: np.asarray(x) for name, x in system.model.values.items() if np.ndim(x)}
    lead = leading([np.empty((*axes, 0)) for axes in (
        batch_axes(system.plans, guess), forces.shape[:-1],
        () if loads is None else loads.shape[:-2], *(x.shape for x in varied.values()))])
    if not lead:
        return _resting(system, guess, hold, forces, wrenches, t, stable, iterations)

    def one(index: tuple[int, ...]) -> State:
        values = {name: float(_at(x, lead, 0, index)) for name, x in varied.items()}
        machine = system.with_parameters(**values) if values else system  # which knows its loops already
        return _resting(machine, one_of(system.plans, guess, lead, index), hold, _at(forces, lead, 1, index),
                        None if loads is None else _at(loads, lead, 2, index), t, stable, iterations)

    each = [one(index) for index in np.ndindex(*lead)]
    return system.model.configuration.state(np.reshape([s.q for s in each], (*lead, system.nq)),
                                            np.reshape([s.u for s in each], (*lead, system.nu)), t)


def _resting(system: System, guess: Any, hold: Mapping[str, float | Sequence[float]] | Sequence[str], forces: Floats,
             wrenches: Wrenches, t: float, stable: bool, iterations: int) -> State:
    """The equilibrium near one guess, under one load."""
    q = _start(system, guess, hold, t)
    held = [v for key in hold for v in system.model.configuration.speed_entries(key)]
    balance = RestingForces(system, forces, wrenches, t, held, np.zeros(system.nu))
    if system.model.mechanism.states:
        balance, q = _with_states(balance, q, guess, stable, iterations)
    else:
        q = _descend(balance, q, iterations) if stable else _newton(balance, q, iterations)
    found = balance.checked(q)
    deflections = Deflections(system)
    deflections.look(found.q)
    if deflections.text():
        warnings.warn(f"equilibrium of {system.model.name!r}: {deflections.text()}", BellcrankWarning,
                      stacklevel=outside())
    return found


def _at(array: Floats, lead: tuple[int, ...], own: int, index: tuple[int, ...]) -> Floats:
    """One state's part of an array whose last `own` axes are no batch axes."""
    out: Floats = np.broadcast_to(array, (*lead, *array.shape[array.ndim - own:]))[index]
    return out


def _start(system: System, guess: State | Mapping[str, float | Sequence[float]] | npt.ArrayLike | None,
           hold: Mapping[str, float | Sequence[float]] | Sequence[str], t: float) -> Floats:
    """A closed position near the guess, with what is held where it shall be, or where the guess has it."""
    if isinstance(hold, Mapping):
        return system.assemble(q=hold, guess=guess, t=t).q
    start = near(system.plans, "guess", guess, "equilibrium")
    held = {key: start[system.model.configuration.coordinate_entries(key)].tolist() for key in hold}
    return system.assemble(q=held, guess=guess if isinstance(guess, Mapping) else start, t=t).q


def _with_states(balance: RestingForces, q: Floats, guess: Any, stable: bool, iterations: int
                 ) -> tuple[RestingForces, Floats]:
    """Where states of elements rest as well: near a place where the machine would rest if they stayed as they are, or
    else near the guess."""
    steady = SteadyStates.of(balance, guess)
    balance = steady.settled(balance, q)
    if stable and not steady.follow(balance, q):  # they would be left behind
        with suppress(StateError, SingularError, AssemblyError):
            q = _descend(balance, q, iterations)
            balance = steady.settled(balance, q)
    balance, q = steady.newton(balance, q, iterations)
    balance = steady.holding(balance, q)
    if stable:
        steady.check_stable(balance, q)
    return balance, q


def _descend(balance: RestingForces, q: Floats, iterations: int) -> Floats:
    """Down the potential energy to a minimum."""
    largest, calm = 0.0, 0
    for _ in range(iterations):
        chart = balance.chart(q)
        if not chart.independent:
            return q
        g = balance.slope(chart, q)
        largest = max(largest, balance.size(chart, q))
        p, kick, stiffest = _downhill(balance, chart, g, largest)
        longest = chart.step_length(q, p * chart.sizes)
        quiet = float(np.abs(g).max()) <= 1e-14 * (largest + stiffest)
        if quiet or longest <= 1e-9:
            if kick is not None:  # at rest, but not stable: fall
                q = _moved(chart, 0.05 * kick)
                continue
            calm += 1
            if quiet or calm == 2:
                return q
            q = _moved(chart, p)
            continue
        calm = 0
        q = _along(balance, chart, g, p * min(1.0, _LONGEST / longest))
    chart = balance.chart(q)
    g = balance.slope(chart, q)
    raise balance.failure(chart, g, f"no equilibrium after {iterations} steps")


def _downhill(balance: RestingForces, chart: Chart, g: Floats, largest: float) -> tuple[Floats, Floats | None, float]:
    """A step down the potential energy (Newton's where that is convex), the direction in which the position is
    unstable if there is one, and the largest stiffness."""
    from scipy.linalg import eigh

    k = balance.stiffness(chart)
    basis = chart.basis(chart.q) * chart.sizes
    mass = basis.T @ balance.system.mass_matrix(chart.q, t=balance.t, speeds="tree") @ basis
    values, vectors = eigh(0.5 * (k + k.T), mass)
    scale = float(np.abs(values).max())
    part = vectors.T @ g
    floor = max(_NEUTRAL * scale, 1e-300)
    rounding = 1e-12 * largest * np.abs(vectors).max(axis=0)
    part = np.where((np.abs(values) <= 1e-7 * scale) & (np.abs(part) <= rounding), 0.0, part)  # indifferent
    p = -vectors @ (part / np.maximum(np.abs(values), floor))
    if values[0] > 1e-7 * scale and np.abs(k - k.T).max() > 1e-7 * np.abs(k).max():
        p = -np.linalg.solve(k, g)  # forces without potential: Newton's own step
    kick = None
    if values[0] < -1e-7 * scale:
        kick = vectors[:, 0] / max(chart.step_length(chart.q, vectors[:, 0] * chart.sizes), 1e-300)
    return p, kick, float(np.abs(k).max())


def _moved(chart: Chart, z: Floats) -> Floats:
    q, left = chart.positions((z * chart.sizes)[None])
    if left[0] > CLOSED:
        raise AssemblyError(f"equilibrium of {chart.system.model.name!r}: the loops do not close on the way (open by "
                            f"{left[0]:.3g} of the machine's size); start from a better guess")
    return np.asarray(q[0])


def _along(balance: RestingForces, chart: Chart, g: Floats, p: Floats) -> Floats:
    """A step along p that does not go far beyond the lowest point, judged by slopes, nor beyond a hill on the way to
    it, as a stop is that the machine would have to go through."""
    before = float(p @ g)
    p, before = _before_hills(balance, chart, p, before)
    for _ in range(40):
        q, left = chart.positions((p * chart.sizes)[None], iterations=10)  # steps that are short enough need few
        if left[0] < CLOSED:
            after = float(p @ balance.slope(chart, q[0]))
            if after <= 0.5 * abs(before):
                return np.asarray(q[0])
            share = abs(before) / (abs(before) + after)  # where the slope vanishes, by the secant
            p, before = p * min(0.5, share), before * min(0.5, share)
        else:
            p, before = 0.5 * p, 0.5 * before
    raise balance.failure(chart, g, "the machine cannot move towards balance")


def _before_hills(balance: RestingForces, chart: Chart, p: Floats, before: float) -> tuple[Floats, float]:
    """The part of a step before the slope along it rises above what it began with: all of it where it goes down, or as
    steeply up as it went down, all the way. Looked at halfway first, and at many places where that tells of one."""
    half, end = _slopes_along(balance, chart, p, np.array([0.5, 1.0]))
    if abs(half - 0.5 * before) <= 0.25 * abs(before) and end <= 0.5 * abs(before):  # about as straight as foreseen
        return p, before
    slopes = _slopes_along(balance, chart, p, _PARTS)
    hills = np.flatnonzero(slopes > 0.5 * abs(before))
    part = float(_PARTS[hills[0]]) if len(hills) else 1.0
    return p * part, before * part


def _slopes_along(balance: RestingForces, chart: Chart, p: Floats, parts: Floats) -> Floats:
    """p . g at parts of a step; not a number where loops do not close."""
    q, left = chart.positions(np.outer(parts, p * chart.sizes), iterations=10)
    return np.where(left < CLOSED, balance.slope(chart, q) @ p, np.nan)


def _newton(balance: RestingForces, q: Floats, iterations: int) -> Floats:
    """The nearest zero of g, by damped Newton steps that make |g| smaller."""
    damping, largest, calm = 0.0, 0.0, 0
    for _ in range(iterations):
        chart = balance.chart(q)
        if not chart.independent:
            return q
        g, k = balance.slope(chart, q), balance.stiffness(chart)
        largest = max(largest, balance.size(chart, q))
        size = float(np.abs(g).max())
        scale = float(np.abs(k).max())
        u, s, vt = np.linalg.svd(k)
        gain = s / np.maximum(s * s + (damping * scale) ** 2, (1e-12 * scale) ** 2 + 1e-300)
        p = -(vt.T * gain) @ (u.T @ g)
        longest = chart.step_length(q, p * chart.sizes)
        if size <= 1e-14 * (largest + scale) or (longest <= 1e-10 and calm > 0):
            return q
        calm = calm + 1 if longest < 1e-8 else 0
        moved, left = chart.positions((p * chart.sizes * min(1.0, _LONGEST / max(longest, 1e-300)))[None])
        if left[0] < CLOSED and (calm or float(np.abs(balance.slope(chart, moved[0])).max()) < size):
            q, damping = moved[0], 0.1 * damping if damping > 1e-8 else 0.0
        else:
            damping = max(10.0 * damping, 1e-4)
            if damping > 1e8:
                break
    chart = balance.chart(q)
    raise balance.failure(chart, balance.slope(chart, q), "Newton's method found no equilibrium")
