"""A first machine: the built-in six-axis arm, its dynamics, and how fast they are computed.

Run with ``make demo`` or ``python examples/01_robot_arm.py``.
"""

from __future__ import annotations

import time

import numpy as np

import bellcrank as bc


def main() -> None:
    robot = bc.compile(bc.load("arm"))
    print(robot)

    # hold the arm still in a bent pose: the torques against gravity
    q = np.array([0.3, 0.6, -0.4, 0.2, 0.9, 0.0])
    rest = np.zeros(robot.nu)
    hold = robot.inverse_dynamics(q, rest, rest)
    print("\njoint      torque to hold [N m]   udot when released [rad/s^2]")
    for name, torque, acceleration in zip(robot.joint_names, hold, robot.forward_dynamics(q, rest), strict=True):
        print(f"{name:<10} {torque:>20.6f} {acceleration:>24.6f}")
    print(f"\ntool at {robot.pose(q, 'tool').position.round(6)} m")
    force, moment = np.split(robot.reactions(q, rest, hold)["j1"], 2)[::-1]
    print(f"ground carries force {force.round(3)} N, moment {moment.round(3)} N m at j1 (body axes)")

    # fall from there for one second: Runge-Kutta steps, energy as the check
    energy = [float(robot.kinetic_energy(q, u) + robot.potential_energy(q)) for q, u in fall(robot, q, rest)]
    print(f"energy drift over a 1 s fall in 1 ms steps: {abs(energy[-1] - energy[0]):.1e} J of {energy[0]:.1f} J")

    print(f"\nforward dynamics: {robot.operation_count()}")
    rng = np.random.default_rng(0)
    states, speeds = robot.random_state(rng, 100_000)
    robot.forward_dynamics(states[:64], speeds[:64])  # compile
    start = time.perf_counter()
    robot.forward_dynamics(states, speeds)
    took = time.perf_counter() - start
    call = robot.bind("forward_dynamics", q, rest, hold)
    begin = time.perf_counter()
    for _ in range(100_000):
        call()
    single = (time.perf_counter() - begin) / 100_000
    print(f"batch of 100 000 states: {took / 100_000 * 1e9:.0f} ns each; bound call from Python: {single * 1e9:.0f} ns")


def fall(robot: bc.System, q: np.ndarray, u: np.ndarray, step: float = 1e-3, duration: float = 1.0
         ) -> list[tuple[np.ndarray, np.ndarray]]:
    """States of a free fall, by the classical Runge-Kutta method."""
    states = [(q, u)]
    for _ in range(round(duration / step)):
        k1 = robot.forward_dynamics(q, u)
        u2 = u + 0.5 * step * k1
        k2 = robot.forward_dynamics(q + 0.5 * step * u, u2)
        u3 = u + 0.5 * step * k2
        k3 = robot.forward_dynamics(q + 0.5 * step * u2, u3)
        u4 = u + step * k3
        k4 = robot.forward_dynamics(q + step * u3, u4)
        q = q + step / 6.0 * (u + 2.0 * u2 + 2.0 * u3 + u4)
        u = u + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        states.append((q, u))
    return states


if __name__ == "__main__":
    main()
