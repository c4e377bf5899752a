"""Computed-torque control: a crank of a closed four-bar and a six-axis arm follow a motion.

With the inverse dynamics in the loop, the torque

    tau = inverse dynamics of  (theta_d'' - 2 lambda (theta' - theta_d') - lambda^2 (theta - theta_d))

makes the error e = theta - theta_d obey e'' + 2 lambda e' + lambda^2 e = 0, whatever the machine (Saha & Schiehlen,
Recursive kinematics and dynamics for parallel structured closed-loop multibody systems, eq. 37). The four-bar is
theirs, section VI.A: its crank goes from 30 to 90 degrees. Run with ``python examples/04_computed_torque.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import bellcrank as bc

PERIOD = 5e-3  # of the controllers [s]; between their calls the torques are held


class Motion(NamedTuple):
    """A desired motion: angles, speeds and accelerations at a time."""

    q: np.ndarray
    u: np.ndarray
    udot: np.ndarray


def cycloid(start: np.ndarray, end: np.ndarray, length: float) -> Callable[[float], Motion]:
    """From rest at one place to rest at another in `length` seconds, without jumps of acceleration."""
    way = end - start

    def at(t: float) -> Motion:
        x = min(max(t / length, 0.0), 1.0)
        turn = 2.0 * math.pi
        return Motion(start + way * (x - math.sin(turn * x) / turn), way * (1.0 - math.cos(turn * x)) / length,
                      way * turn * math.sin(turn * x) / length**2)

    return at


def demand(wanted: Motion, q: np.ndarray, u: np.ndarray, gain: float) -> np.ndarray:
    """Accelerations that bring the error to zero: the parenthesis of eq. 37."""
    return wanted.udot - 2.0 * gain * (u - wanted.u) - gain**2 * (q - wanted.q)


def four_bar(duration: float = 3.0, gain: float = 8.0, offset: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """The crank of the closed linkage, started `offset` rad off; returns times and errors of the crank."""
    linkage = bc.compile(bc.load("four_bar"), actuated=["A"])
    wanted = cycloid(np.radians([30.0]), np.radians([90.0]), 0.5 * duration)

    def control(t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        crank = demand(wanted(t), q[:1], u[:1], gain)
        udot = linkage.consistent_acceleration(q, u, {"A": crank})  # what that means for all joints of the loop
        return linkage.inverse_dynamics(q, u, udot)

    start = linkage.assemble(q={"A": math.radians(30.0) + offset})
    result = linkage.simulate(start, duration, control=bc.Sampled(control, period=PERIOD))
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    print(f"four-bar, loops closed to {result.attrs['largest_loop_error']:.0e} m")
    goal = np.array([wanted(t).q for t in result.time.values])
    return result.time.values, np.abs(result.q.sel(coordinate=["A.angle"]).values - goal).max(axis=1)


def arm(duration: float = 3.0, gain: float = 8.0, offset: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """All six joints of the arm, started `offset` rad off; returns times and the largest errors."""
    robot = bc.compile(bc.load("arm"))
    wanted = cycloid(np.zeros(6), np.array([1.0, 0.6, -0.4, 0.8, 0.9, -0.5]), 0.5 * duration)

    def control(t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return robot.inverse_dynamics(q, u, demand(wanted(t), q, u, gain))

    result = robot.simulate((np.full(6, offset), np.zeros(6)), duration, control=bc.Sampled(control, period=PERIOD))
    assert result.attrs["status"] == "finished", result.attrs["reason"]
    print("six-axis arm")
    goal = np.array([wanted(t).q for t in result.time.values])
    return result.time.values, np.abs(result.q.values - goal).max(axis=1)


def main() -> None:
    for machine in (four_bar, arm):
        times, error = machine()
        for t in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
            print(f"  t = {t:.1f} s   tracking error {error[np.argmin(np.abs(times - t))]:.1e} rad")


if __name__ == "__main__":
    main()
