"""Runs with fixed steps that are too long for their motion, although all numbers are finite.

The account of energy (`account`) says so where nothing does work, and `alarm` where speeds explode. A motor that turns
a crank by half a turn in every step does neither: the run finishes, and its numbers mean nothing. Two signs of that are
looked for while samples come, both cheap: a coordinate that turns far in one step, and speeds whose changes change as
fast as they themselves do, as those of a vibration with less than about six steps a period. Where there is one, some
states are asked at the end: a step is made once as it is and once as two halves. If these lead to different places, the
run says so, with a step that does not. A flywheel that turns fast and evenly passes.

What is looked at are the first, the fastest and the last state, which do not depend on how a run is cut into pieces.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.simulate.fields import speed_units
from bellcrank.simulate.fixed import FixedRun
from bellcrank.simulate.reference import ReferenceRun

if TYPE_CHECKING:
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["StepCheck"]

#: turn in one step [rad] that calls for a look
_TURN = 0.2
#: so do changes of changes of a speed, all together, above this many times its changes; of so many samples and states
_ROUGH, _ROWS, _STATES = 1.2, 512, 64
#: speeds that change less than this share of the largest are not looked at, nor a machine that moves less than this
_SHARE, _STILL = 1e-3, 1e-7
#: a step and its halves may differ by this share of the way and of the speeds; and so much with the step that is
#: recommended; the same of methods of low order, which are never exact
_WRONG, _GOOD = 3e-3, 2e-4
_WRONG_LOW, _GOOD_LOW = 0.25, 3e-2
#: vibrations are forgiven more: where friction turns round, halves differ by right
_LENIENT = 5.0
#: halvings of the step in search of a better one
_HALVINGS = 12


class _Spot(NamedTuple):
    """A state that may be asked."""

    t: float
    state: int
    y: Floats
    u: Floats
    system: Machine


class _Finding(NamedTuple):
    """How far a step and its halves are apart, as a share of the way, or of the speeds (momenta) on it."""

    spot: _Spot
    differ: float


class StepCheck:
    """Looks at the samples of a run with fixed steps, and says at its end whether they can be trusted."""

    def __init__(self, setup: Setup, order: int) -> None:
        assert setup.step is not None
        self._step, self._order, self._dense = setup.step, order, setup.every == 1
        self._turns = _turning(setup.system)
        self._fastest = 0.0  #: largest turn in one step so far
        self._spots: list[_Spot] = []  #: the fastest one
        self._ends: dict[str, tuple[float, Floats, Floats, Machine]] = {}  #: some states of the first and last sample
        self._rows: list[Floats] = []  #: speeds of the first samples
        self._count = 0

    def look(self, system: Machine, times: Floats, y: Floats, u: Floats) -> None:
        """States (times, states, ...), as they come."""
        if not len(times):
            return
        if self._dense and self._count < _ROWS:
            self._rows.append(u[:_ROWS - self._count, :_STATES] / system.model.tree.speed_sizes)
            self._count += len(self._rows[-1])
        for name, row in (("first", 0), ("last", len(times) - 1)):
            if name == "last" or not self._ends:
                self._ends[name] = float(times[row]), y[row, :_STATES].copy(), u[row, :_STATES].copy(), system
        if np.abs(u).max(initial=0.0) * self._step <= max(_TURN, self._fastest):  # the usual case; false for NaN
            return
        turns = np.nan_to_num(np.abs(u[..., self._turns]), posinf=0.0).max(axis=-1, initial=0.0) * self._step
        row, state = (int(i) for i in np.unravel_index(int(turns.argmax()), turns.shape))
        if turns[row, state] > max(_TURN, self._fastest):
            self._fastest = float(turns[row, state])
            self._spots = [_Spot(float(times[row]), state, y[row, state].copy(), u[row, state].copy(), system)]

    def verdict(self, run: FixedRun | ReferenceRun, system: Machine) -> tuple[str, int]:
        """What is to be said of the run, nothing if it may be good; and the state of a batch that it was seen in."""
        rough = self._roughest() if self._fastest <= _TURN else None
        if self._fastest <= _TURN and rough is None:
            return "", 0
        chosen = rough[1] if rough is not None else self._spots[0].state
        spots = [*self._spots, *(_Spot(t, chosen, y[chosen], u[chosen], of) for t, y, u, of in self._ends.values()
                                 if chosen < len(y) and np.isfinite(y[chosen]).all())]
        spots = [s for s in spots if s.system is system]  # `run` computes with the last machine, after events
        found = [f for f in (self._asked(run, spot) for spot in spots) if f is not None]
        limit = (_WRONG_LOW if self._order <= 2 else _WRONG) * (1.0 if rough is None else _LENIENT)
        wrong = [f for f in found if f.differ > limit]
        if not wrong or (rough is not None and 2 * len(wrong) <= len(found)):
            return "", 0
        worst = max(wrong, key=lambda f: f.differ)
        return self._text(run, worst, rough[0] if rough is not None else None), worst.spot.state

    def _roughest(self) -> tuple[int, int] | None:
        """A speed that changes as if by chance from step to step, and the state in which it does."""
        if not self._dense or self._count < 6:
            return None
        u = np.concatenate(self._rows)
        if not np.isfinite(u).all() or float(np.abs(u).max()) * self._step <= _STILL:
            return None
        first = np.diff(u, axis=0)
        changes, second = (np.abs(x).mean(axis=0) for x in (first, np.diff(first, axis=0)))
        least = _SHARE * np.maximum(changes.max(initial=0.0), np.abs(u).max(axis=0))
        rough = np.where(changes > least, second / np.maximum(changes, 1e-300), 0.0)
        state, speed = np.unravel_index(int(rough.argmax()), rough.shape)
        return (int(speed), int(state)) if rough[state, speed] > _ROUGH else None

    # -- asking ---------------------------------------------------------------------------------
    def _asked(self, run: FixedRun | ReferenceRun, spot: _Spot, step: float | None = None) -> _Finding | None:
        """A step and its halves from a state; None where the state does not move."""
        h, system, nq = step or self._step, spot.system, spot.system.nq
        try:
            with np.errstate(all="ignore"):
                one = run.partial(spot.y, spot.t, h, spot.state)
                half = run.partial(spot.y, spot.t, 0.5 * h, spot.state)
                two = run.partial(half, spot.t + 0.5 * h, 0.5 * h, spot.state)
                sizes = system.model.tree.speed_sizes
                apart = system.difference(one[:nq], two[:nq]) / sizes
                way = np.abs(system.difference(spot.y[:nq], half[:nq]) / sizes) + np.abs(
                    system.difference(half[:nq], two[:nq]) / sizes)
        except (BellcrankError, ArithmeticError):
            return _Finding(spot, math.inf)
        moved = float(way.max(initial=0.0))
        if moved <= _STILL:
            return None
        size = max(np.finfo(float).tiny, *(float(np.abs(y[nq:] / sizes).max(initial=0.0))
                                                for y in (spot.y, half, two)))
        differ = max(float(np.abs(apart).max(initial=0.0)) / moved,
                     float(np.abs((one - two)[nq:] / sizes).max(initial=0.0)) / size)
        return _Finding(spot, differ if math.isfinite(differ) else math.inf)

    def _better(self, run: FixedRun | ReferenceRun, spot: _Spot) -> float:
        """A step that agrees with its halves, rounded down."""
        good, h = _GOOD_LOW if self._order <= 2 else _GOOD, self._step
        for _ in range(_HALVINGS):
            h *= 0.5
            found = self._asked(run, spot, h)
            if float(np.abs(spot.u[self._turns]).max(initial=0.0)) * h <= _TURN and (
                    found is None or found.differ <= good):
                break
        power = 10.0 ** math.floor(math.log10(h))
        return next(m for m in (5.0, 2.0, 1.0) if m * power <= h * (1.0 + 1e-12)) * power

    def _text(self, run: FixedRun | ReferenceRun, worst: _Finding, rough: int | None) -> str:
        spot = worst.spot
        names = spot.system.speed_names
        if rough is None:
            turn = np.where(self._turns, np.abs(spot.u), 0.0)
            who = f"{names[int(turn.argmax())]!r} turns by {float(turn.max()) * self._step:.2g} rad in one of them"
        else:
            who = f"{names[rough]!r} swings faster than they can follow"
        apart = f"by {100.0 * worst.differ:.2g} %" if worst.differ < 1.0 else "altogether"
        return (f"steps of {self._step:g} s are too long for this motion: {who}, and at t = {spot.t:.6g} s two steps "
                f"of half the length give numbers that differ {apart}; take step={self._better(run, spot):g}" + (
                    "" if spot.system.model.tree.contacts else ", or stepper='dop853', which chooses its steps"))


def _turning(system: Machine) -> npt.NDArray[np.bool_]:
    """Which speeds are turns."""
    def found() -> npt.NDArray[np.bool_]:
        turns, configuration = np.zeros(system.nu, dtype=bool), system.model.configuration
        for record in configuration.records:
            first = configuration.starts[record.name][1]
            turns[first:first + record.joint.nu] = [u == "rad/s" for u in speed_units(record.joint)]
        return turns

    return system.kernels.kept("turning", found)
