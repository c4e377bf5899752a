"""Runs with fixed steps whose numbers are no solution any more.

Energy tells where nothing puts any in (see `account`). Where controllers, servos or prescribed motions do work it may
grow by right. There the steps are asked: in a state that moves far in one step, or whose speeds have grown a
thousandfold, a step is made once as it is and once as two halves. If the speeds that come out differ by more than
half, the step has nothing to do with the motion, and the state has diverged. Fast motion that steps do resolve passes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.simulate.fixed import Failure, FixedRun
from bellcrank.simulate.reference import ReferenceRun

__all__ = ["Alarm"]

#: motion in one step [rad, and lengths of the machine] that is suspicious, by itself or where speeds have grown so
_FAR, _SOME, _GROWN = np.pi, 0.1, 1e3
#: after a look that found nothing, speeds must have grown by this much for another one
_AGAIN = 10.0
#: halves of a step may differ by this share
_DIFFER = 0.5


class Alarm:
    """Looks at the samples of a run with fixed steps."""

    def __init__(self, count: int, step: float) -> None:
        self._step, self._begun = step, False
        self._known = False  #: whether all states have moved
        self._first = np.zeros(count)  #: largest speed of the first sample that moves
        self._level = np.zeros(count)  #: largest speed that was looked at

    def look(self, run: FixedRun | ReferenceRun, times: Floats, y: Floats, u: Floats) -> None:
        """States (times, states, ...): those that have diverged are given up, and are NaN from there on in y and u."""
        sizes = (run.equations if isinstance(run, FixedRun) else run.rhs).system.model.tree.speed_sizes
        speed = np.abs(u / sizes).max(axis=-1, initial=0.0)
        if self._known and float(speed.max(initial=0.0)) * self._step <= _SOME:  # the usual case
            return
        begun, self._begun = self._begun, True
        some = self._odd(speed).any(axis=-1) if begun else np.zeros(len(times), dtype=bool)
        for row in np.flatnonzero(some).tolist():  # no step has led to the first sample; levels grow on the way
            self._note(speed[:row + 1])
            for state in np.flatnonzero(self._odd(speed[row])).tolist():
                self._level[state] = speed[row, state]
                if not self._resolved(run, y[row, state], float(times[row]), state):
                    self._give_up(run, state, float(times[row]), float(speed[row, state]), y[row, state])
                    y[row + 1:, state] = u[row + 1:, state] = np.nan
                    speed[row + 1:, state] = np.nan
        self._note(speed)

    def _odd(self, speed: Floats) -> npt.NDArray[np.bool_]:
        """Speeds (..., states) that call for a look."""
        with np.errstate(invalid="ignore"):
            far = speed * self._step
            odd = (far > _FAR) | ((far > _SOME) & (speed > _GROWN * self._first))
            return np.asarray(odd & (speed > _AGAIN * self._level) & np.isfinite(speed))

    def _note(self, speed: Floats) -> None:
        """Remember the first motion of every state."""
        for row in () if self._known else speed[:8]:
            self._first = np.where((self._first == 0.0) & np.isfinite(row), row, self._first)
        self._known = self._known or bool(self._first.all())

    def _resolved(self, run: FixedRun | ReferenceRun, y: Floats, t: float, state: int) -> bool:
        """Whether a step and its two halves lead to about the same speeds."""
        half, nq = 0.5 * self._step, self._sizes(run)
        try:
            with np.errstate(all="ignore"):
                one = run.partial(y, t, self._step, state)[nq:]
                two = run.partial(run.partial(y, t, half, state), t + half, half, state)[nq:]
        except (BellcrankError, ArithmeticError):
            return False
        size = float(max(np.abs(one).max(initial=0.0), np.abs(two).max(initial=0.0)))
        return bool(np.abs(one - two).max(initial=0.0) <= _DIFFER * size)

    @staticmethod
    def _sizes(run: FixedRun | ReferenceRun) -> int:
        return (run.equations if isinstance(run, FixedRun) else run.rhs).system.nq

    def _give_up(self, run: FixedRun | ReferenceRun, state: int, t: float, speed: float, y: Floats) -> None:
        reason = (f"at t = {t:.6g} s speeds have grown to {speed:.3g} (rad/s, or lengths of the machine a second), and "
                  f"half the step gives others: the step of {self._step:g} s is too long for so fast or stiff a motion"
                  "; take smaller steps, stepper='radau' or one that adapts its steps")
        run.give_up(Failure(state, t, reason, diverged=True), y.copy())
