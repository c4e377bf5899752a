"""Runs without correction of positions: how far loops open.

Constraints enter an integration at one of three levels. At the level of accelerations (AC) the state is (q, u) and only
udot satisfies the loops. At the level of velocities (VC) the state is (q, v) with the independent speeds v, and
u = N(q) v satisfies them in every stage. In (q, p) the momenta carry sigma, the integral of the multipliers (Naudet,
Lefeber & Terze, eqs. 5-8), or are reset to p = M u after every step. `simulated` is what the library offers,
``simulate(closing=...)``; `drift_run` does the same by hand, with the classical Runge-Kutta formula around calls for
one state, to compare the two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.examples import load
from bellcrank.papers.reference_data import reference
from bellcrank.simulate.run import SimulationWarning

__all__ = ["LEVELS", "DriftRun", "drift_run", "four_bar_by_hand", "four_bar_start", "simulated"]


class DriftRun(NamedTuple):
    """A run sampled after every step."""

    time: Floats
    q: Floats  #: (steps + 1, nq)
    loop_error: Floats  #: the largest of all conditions


#: a level by its name: the method that shows it, and what `simulate` closes
LEVELS = {"acceleration": ("kane", "none"), "velocity": ("reduction", "velocity"), "sigma carried": ("momenta", "none"),
          "sigma reset": ("momenta", "velocity")}


def four_bar_start() -> Floats:
    """The four-bar at rest with a vertical crank, to nine decimals as in Anderson & Critchley, section 4.1."""
    angles = np.array(reference("four_bar")["open_elbow_up"]["free"]["theta"][0]).round(9)
    return np.append(angles, -angles.sum())


@cache
def simulated(method: str, closing: str, step: float, duration: float) -> DriftRun:
    """The four-bar by `System.simulate`, Runge-Kutta with a fixed step, sampled every 0.01 s. It closes the start."""
    system = compile(load("four_bar"), method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # of energy: the step is the paper's
        run = system.simulate((four_bar_start(), np.zeros(4)), duration, step=step, output=0.01, closing=closing)
    return DriftRun(run["time"].values, run["q"].values, run["loop_error"].values)


@cache
def four_bar_by_hand(level: str, step: float, duration: float) -> DriftRun:
    """The same without `simulate`."""
    return drift_run(compile(load("four_bar"), LEVELS[level][0]), four_bar_start(), np.zeros(4), level, step, duration)


Slope = Callable[[Floats], Floats]


def runge_kutta(slope: Slope, y: Floats, h: float) -> Floats:
    """One step."""
    k1 = slope(y)
    k2 = slope(y + 0.5 * h * k1)
    k3 = slope(y + 0.5 * h * k2)
    k4 = slope(y + h * k3)
    return np.asarray(y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


def drift_run(system: System, q: Floats, u: Floats, level: str, step: float, duration: float) -> DriftRun:
    """Integrate from (q, u) at a `level`: "acceleration", "velocity", "sigma carried" or "sigma reset".

    For machines whose coordinates are the integrals of their speeds.
    """
    n = system.nq
    slope, y, after = _LEVELS[level](system, np.asarray(q, dtype=float), np.asarray(u, dtype=float))
    steps = round(duration / step)
    rows = [y[:n]]
    for _ in range(steps):
        y = after(runge_kutta(slope, y, step))
        rows.append(y[:n])
    path = np.array(rows)
    return DriftRun(np.linspace(0.0, step * steps, steps + 1), path, np.abs(system.loop_error(path)).max(axis=-1))


Level = tuple[Slope, Floats, Callable[[Floats], Floats]]


def _same(y: Floats) -> Floats:
    return y


def _acceleration(system: System, q: Floats, u: Floats) -> Level:
    """(q, u)' = (u, udot)."""
    n = system.nq
    a, b = q.copy(), u.copy()
    call = system.bind("forward_dynamics", a, b, np.zeros(system.nu))

    def slope(y: Floats) -> Floats:
        a[:], b[:] = y[:n], y[n:]
        return np.concatenate([b, call()])

    return slope, np.concatenate([q, u]), _same


def _velocity(system: System, q: Floats, u: Floats) -> Level:
    """(q, v)' = (N v, vdot): dependent speeds from independent ones, as Anderson & Critchley, eqs. (50), (51)."""
    n = system.nq
    first = system.reduced(q, u)
    entries = list(first.entries)

    def slope(y: Floats) -> Floats:
        model = system.reduced(y[:n], u)
        speeds = model.motions @ y[n:]
        assert list(model.entries) == entries  # no dead point on the way
        return np.concatenate([speeds, system.forward_dynamics(y[:n], speeds)[entries]])

    return slope, np.concatenate([q, u[entries]]), _same


def _sigma(reset: bool) -> Callable[[System, Floats, Floats], Level]:
    """(q, p)' by Hamilton's equations."""
    def level(system: System, q: Floats, u: Floats) -> Level:
        n = system.nq
        a, b = q.copy(), system.momenta(q, u, speeds="tree")
        call = system.bind("hamilton", a, b, np.zeros(system.nu))

        def slope(y: Floats) -> Floats:
            a[:], b[:] = y[:n], y[n:]
            return np.asarray(call()).T.ravel()

        def after(y: Floats) -> Floats:
            speeds, _ = system.hamilton(y[:n], y[n:])
            return np.concatenate([y[:n], system.momenta(y[:n], speeds, speeds="tree")])

        return slope, np.concatenate([q, b]), after if reset else _same

    return level


_LEVELS: dict[str, Callable[[System, Floats, Floats], Level]] = {
    "acceleration": _acceleration, "velocity": _velocity, "sigma carried": _sigma(False), "sigma reset": _sigma(True)}
