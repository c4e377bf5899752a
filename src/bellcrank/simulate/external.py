"""Other libraries' integrators on our equations: SciPy's `solve_ivp`, and SUNDIALS through scikit-sundae.

They see y = (q, u) and know nothing of loops: every sample is put back onto them, and each stretch starts from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, ModelError
from bellcrank.simulate.fixed import Failure
from bellcrank.simulate.interrupt import asked
from bellcrank.simulate.reference import Rhs

__all__ = ["SCIPY", "SUNDIALS", "ExternalRun"]

SCIPY = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
SUNDIALS = ("BDF", "Adams")


_Rate = Callable[[float, Floats], Floats]


class _EnoughError(Exception):
    """Ends an integration from within its right hand side."""


class _Way(NamedTuple):
    """How far one state came: its samples, and where it is now."""

    rows: list[Floats]
    t: float
    y: Floats
    interrupted: bool = False


class ExternalRun:
    """A batch of states, one after another; see `VaryingRun`, whose interface it has."""

    def __init__(self, rhs: Rhs, library: str, name: str, y: Floats, start: float, rtol: float, atol: float,
                 reach: Floats) -> None:
        known = SCIPY if library == "scipy" else SUNDIALS
        if name not in known:
            raise ModelError(f"stepper {library}/{name}: {library} has {', '.join(known)}")
        self.rhs, self.library, self.name, self.rtol, self.atol = rhs, library, name, rtol, atol
        self.reach = reach  #: see `contact_checks.contact_strides`
        self.y, self.time = y.copy(), start
        self.failures: list[Failure] = []
        self.switches = self.steps = self.rejected = 0
        self.path: list[tuple[Floats, Floats]] = []
        if len(y) > 1 and rhs.system.model.batched:
            raise ModelError(f"stepper {library}/{name}: batches of parameters need one of our own methods")
        if library == "sundials":
            _sundials()

    def begin(self) -> None:
        """Nothing is compiled for the whole run."""

    def prepare(self) -> None:
        """See `FixedRun.prepare`."""
        if not self.rhs.system.model.batched:
            self.rhs.prepare(self.time, self.y)

    def advance(self, times: Floats) -> Floats:
        """Go to the last of the times; samples (times, states, size), NaN for states that have failed. Fewer times if
        a Ctrl-C came: those that all states have reached."""
        out, ends = np.full((len(times), *self.y.shape), np.nan), self.y.copy()
        failed = {f.state for f in self.failures}
        for i in range(len(self.y)):
            if i in failed:
                continue
            try:
                way = self._one(i, self.y[i], times)
            except (BellcrankError, ArithmeticError) as error:
                self.failures.append(Failure(i, self.time, str(error)))
                continue
            for k, t in enumerate(times.tolist()[:len(way.rows)]):
                out[k, i] = self.rhs.correct(way.rows[k][None], t)[0]
            if way.interrupted:
                return self._short(out, i, way, times)
            if len(way.rows) < len(times):
                at = float(times[len(way.rows) - 1]) if len(way.rows) else self.time
                self.failures.append(Failure(i, at, f"{self.library}/{self.name} could not go on"))
                continue
            ends[i] = out[-1, i]
        self.y, self.time = ends, float(times[-1])
        return out

    def _short(self, out: Floats, state: int, way: _Way, times: Floats) -> Floats:
        """What all states of the batch have reached when one of them was interrupted."""
        failed = {f.state for f in self.failures}
        n = 0 if any(j not in failed for j in range(state + 1, len(self.y))) else len(way.rows)
        if len(self.y) == 1:
            self.y, self.time = self.rhs.correct(way.y[None], way.t), way.t
        elif n:
            alive = [j for j in range(len(self.y)) if j not in failed]
            self.y[alive], self.time = out[n - 1, alive], float(times[n - 1])
        return out[:n]

    def partial(self, y: Floats, t: float, step: float) -> Floats:
        """The state a given time later."""
        way = self._one(0, y, np.array([t + step]), t)
        if way.interrupted:
            raise KeyboardInterrupt
        return np.asarray(self.rhs.correct(way.rows[-1][None], t + step)[0])

    def restart(self, t: float, y: Floats) -> None:
        """Go on from other states at time t."""
        self.time, self.y, self.failures = t, y.copy(), []

    def _one(self, state: int, y: Floats, times: Floats, start: float | None = None) -> _Way:
        start = self.time if start is None else start

        def rhs(t: float, x: Floats) -> Floats:
            if asked():
                raise _EnoughError
            return self.rhs.of_one(state, t, x)

        return (self._scipy if self.library == "scipy" else self._cvode)(rhs, y, times, start)

    def _scipy(self, rhs: _Rate, y: Floats, times: Floats, start: float) -> _Way:
        import scipy.integrate

        rows: list[Floats] = []
        t, now = start, y
        try:
            solver = getattr(scipy.integrate, self.name)(rhs, start, y, float(times[-1]), rtol=self.rtol,
                                                         atol=self.atol)
            while solver.status == "running":
                solver.max_step = self._longest(rhs, t, now)
                solver.step()
                if solver.status == "failed":
                    break
                self.steps += 1
                t, now = float(solver.t), np.array(solver.y)
                due = int(np.searchsorted(times, t, side="right"))
                if due > len(rows):
                    rows += list(solver.dense_output()(times[len(rows):due]).T)
        except _EnoughError:
            return _Way(rows, t, now, True)
        return _Way(rows, t, now)

    def _longest(self, rhs: _Rate, t: float, y: Floats) -> float:
        """The longest step in which shapes do not pass each other: by velocities v and accelerations a of now, the
        time in which v h + a h^2 / 2 is one."""
        if not len(self.reach):
            return float("inf")
        nq, now, soon = self.rhs.system.nq, rhs(t, y), 1e-6
        later = rhs(t + soon, y + soon * now)
        v, a = ((self.reach[:, :nq] @ np.abs(x[:nq])).max() for x in (now, (later - now) / soon))
        return float(2.0 / (v + np.sqrt(v * v + 2.0 * a) + 1e-12))

    def _cvode(self, rhs: _Rate, y: Floats, times: Floats, start: float) -> _Way:
        def fill(t: float, x: Floats, out: Floats) -> None:
            out[:] = rhs(t, x)

        rows: list[Floats] = []
        t, now = start, y
        with np.errstate(all="ignore"):
            try:
                solver = _sundials()(fill, method=self.name, rtol=self.rtol, atol=self.atol, max_num_steps=1_000_000)
                solver.init_step(start, y)
                for goal in times.tolist():
                    got = solver.step(goal)
                    if not got.success:
                        break
                    t, now = goal, np.array(got.y)
                    rows.append(now)
            except _EnoughError:
                return _Way(rows, t, now, True)
        return _Way(rows, t, now)


def _sundials() -> type:
    try:
        from sksundae.cvode import CVODE
    except ImportError:
        raise ModelError("stepper sundials/...: the package scikit-sundae is not installed; pip install "
                         "'bellcrank[sundials]'") from None
    kind: type = CVODE
    return kind
