"""Runs without any correction: how far loops open while the equations of motion alone are integrated.

Constraints enter an integration at one of three levels. At the level of accelerations (AC) the state is (q, u) and
only udot satisfies the loops. At the level of velocities (VC) the state is (q, v) with the independent speeds v, and
u = N(q) v satisfies them in every stage. In (q, p) the momenta carry sigma, the integral of the multipliers (Naudet,
Lefeber & Terze, eqs. 5-8), or are reset to p = M u after every step. All use the classical Runge-Kutta formula with a
fixed step, as in Anderson & Critchley, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.system import System

__all__ = ["DriftRun", "drift_run"]


class DriftRun(NamedTuple):
    """A run sampled after every step."""

    time: Floats
    q: Floats  #: (steps + 1, nq)
    loop_error: Floats  #: the largest of all conditions


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
        a, b = q.copy(), system.momenta(q, u)
        call = system.bind("hamilton", a, b, np.zeros(system.nu))

        def slope(y: Floats) -> Floats:
            a[:], b[:] = y[:n], y[n:]
            return np.asarray(call()).T.ravel()

        def after(y: Floats) -> Floats:
            speeds, _ = system.hamilton(y[:n], y[n:])
            return np.concatenate([y[:n], system.momenta(y[:n], speeds)])

        return slope, np.concatenate([q, b]), after if reset else _same

    return level


_LEVELS: dict[str, Callable[[System, Floats, Floats], Level]] = {
    "acceleration": _acceleration, "velocity": _velocity, "sigma carried": _sigma(False), "sigma reset": _sigma(True)}
