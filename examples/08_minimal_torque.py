"""The motion of a five-bar that takes the least torque, by direct collocation: CasADi and IPOPT.

Two cranks carry the tip of a closed linkage from one position of rest to another in a given time, against gravity, so
that the integral of the squared torques is least. The motion is a list of points; at every one of them all coordinates,
speeds and torques are unknowns. The loop is closed at every point, for positions and speeds, by the independent ones of
its constraints; in between, the two cranks follow the equations of motion by Simpson's rule with the middle point
interpolated (Hermite-Simpson: J. T. Betts, "Practical Methods for Optimal Control and Estimation", SIAM 2010,
section 4.6). Nothing drifts, and no state has to be eliminated: IPOPT sees the exact sparse derivatives.

Needs CasADi: ``pip install "bellcrank[casadi]"``. Run with ``python examples/08_minimal_torque.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi
import numpy as np

import bellcrank as bc

CRANKS = ["leg1.1", "leg2.1"]
START, GOAL = np.radians([30.0, 30.0]), np.radians([85.0, 60.0])  # of the cranks
DURATION = 1.0  # [s]


class Motion(NamedTuple):
    """Points of a motion, one in the middle of every interval."""

    times: np.ndarray
    q: np.ndarray
    u: np.ndarray
    tau: np.ndarray

    def cost(self) -> float:
        """The integral of the squared torques, by Simpson's rule [N² m² s]."""
        return float(simpson(len(self.times), self.times[2] - self.times[0]) @ (self.tau**2).sum(axis=1))


def simpson(points: int, h: float) -> np.ndarray:
    """Weights of points for an integral; `h` is the length of an interval, which has a point in its middle."""
    weights = np.full(points, 2.0)
    weights[1::2], weights[[0, -1]] = 4.0, 1.0
    return weights * h / 6.0


def machine() -> bc.System:
    return bc.compile(bc.load("five_bar"), actuated=CRANKS, independent=CRANKS)


def straightforward(linkage: bc.System, points: int) -> Motion:
    """The cranks go straight to the goal, along a polynomial with no jumps of acceleration; the torques that takes."""
    times = np.linspace(0.0, DURATION, points)
    x = times / DURATION
    way, rate, bend = (10 * x**3 - 15 * x**4 + 6 * x**5, (30 * x**2 - 60 * x**3 + 30 * x**4) / DURATION,
                       (60 * x - 180 * x**2 + 120 * x**3) / DURATION**2)
    angles, speeds, wanted = ({joint: START[i] * (k == 0) + part * (GOAL - START)[i] for i, joint in enumerate(CRANKS)}
                              for k, part in enumerate((way, rate, bend)))
    state = linkage.assemble(q=angles, u=speeds, guess={"leg1.2": 0.2, "leg2.2": 1.6})  # elbows up
    udot = linkage.consistent_acceleration(state, wanted)
    return Motion(times, state.q, state.u, linkage.inverse_dynamics(state, udot))


def optimal(linkage: bc.System, guess: Motion) -> Motion:
    """The motion with the least torques between the same positions, found from a guess."""
    forward = bc.to_casadi(linkage, "forward_dynamics", at=guess.q[0])
    error = bc.to_casadi(linkage, "independent_loop_error", at=guess.q[0])
    rate = bc.to_casadi(linkage, "independent_loop_rate_error", at=guess.q[0])
    free = [linkage.speed_names.index(f"{joint}.angle") for joint in CRANKS]
    points, nu = guess.q.shape
    h = guess.times[2] - guess.times[0]

    problem = casadi.Opti()
    q, u, force = problem.variable(nu, points), problem.variable(nu, points), problem.variable(len(free), points)
    tau = casadi.MX(nu, points)
    tau[free, :] = force
    udot = forward.map(points)(q, u, tau)
    problem.subject_to(casadi.vec(error.map(points)(q)) == 0)
    problem.subject_to(casadi.vec(rate.map(points)(q, u)) == 0)
    x, slope = casadi.vertcat(q[free, :], u[free, :]), casadi.vertcat(u[free, :], udot[free, :])
    for k in range(0, points - 1, 2):
        first, middle, last = k, k + 1, k + 2
        problem.subject_to(x[:, last] - x[:, first]
                           == h / 6 * (slope[:, first] + 4 * slope[:, middle] + slope[:, last]))
        problem.subject_to(x[:, middle] == (x[:, first] + x[:, last]) / 2 + h / 8 * (slope[:, first] - slope[:, last]))
    for end, crank in ((0, START), (points - 1, GOAL)):
        problem.subject_to(x[:, end] == np.concatenate([crank, np.zeros(len(free))]))
    weights = casadi.DM(simpson(points, h)).T
    problem.minimize(casadi.sum2(weights * casadi.sum1(force**2)))
    for variable, value in ((q, guess.q), (u, guess.u), (force, guess.tau[:, free])):
        problem.set_initial(variable, value.T)
    problem.solver("ipopt", {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-9}})
    found = problem.solve()
    torques = np.zeros_like(guess.tau)
    torques[:, free] = found.value(force).T
    return Motion(guess.times, found.value(q).T, found.value(u).T, torques)


def replayed(linkage: bc.System, motion: Motion, period: float = 1e-3) -> np.ndarray:
    """Where the cranks arrive if the machine is simulated with the torques of a motion, held for a period each."""
    middles = np.arange(0.5 * period, DURATION + period, period)
    held = np.stack([_quadratic(motion.times, row, np.minimum(middles, DURATION)) for row in motion.tau.T], axis=1)

    def control(t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return held[round(t / period)]

    result = linkage.simulate((motion.q[0], motion.u[0]), DURATION, control=bc.Sampled(control, period))
    return result.q.sel(coordinate=[f"{joint}.angle" for joint in CRANKS]).values[-1]


def _quadratic(times: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Through three points of every interval, as Simpson's rule sees it."""
    k = np.clip(2 * np.searchsorted(times[::2], at, "right") - 2, 0, len(times) - 3)
    s = (at - times[k]) / (times[k + 2] - times[k])
    return values[k] * (1 - s) * (1 - 2 * s) + values[k + 1] * 4 * s * (1 - s) + values[k + 2] * s * (2 * s - 1)


def main(intervals: int = 40) -> tuple[Motion, Motion]:
    linkage = machine()
    plain = straightforward(linkage, 2 * intervals + 1)
    best = optimal(linkage, plain)
    print(f"straight to the goal {plain.cost():.1f} N²m²s, least {best.cost():.1f} N²m²s")
    print(f"loops closed to {np.abs(linkage.loop_error(best.q)).max():.0e} m")
    off = np.degrees(np.abs(replayed(linkage, best) - GOAL).max())
    print(f"simulated with these torques, the cranks arrive within {off:.1e} degrees")
    return plain, best


if __name__ == "__main__":
    main()
