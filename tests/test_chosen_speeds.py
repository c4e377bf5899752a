"""Speeds of one's own choice, u = C(q, t) qdot + D(q, t): against the equations of the system's own speeds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.analyze.chosen_speeds import ChosenSpeeds
from looped import EPS


@functools.cache
def arm(method: str = "recursive", backend: str = "llvm") -> bc.System:
    """Two pins across each other, and a ball at the end."""
    m = bc.Mechanism("arm")
    parts = [m.add_body(n, bc.Inertia.box(1.0, (0.2, 0.1, 0.4), (0.1, 0.0, -0.3))) for n in "abc"]
    m.add_joint("A", bc.Revolute("z"), m.ground, parts[0])
    m.add_joint("B", bc.Revolute("x"), parts[0], parts[1], parent_pose=bc.Pose((0.0, 0.0, -0.5)))
    m.add_joint("C", bc.Spherical(), parts[1], parts[2], parent_pose=bc.Pose((0.0, 0.0, -0.5)))
    return bc.compile(m, method, backend)


def matrix(q: Sequence[Any], t: Any) -> list[list[Any]]:
    """Mixes all speeds; depends on coordinates, the ball's quaternion among them, and on time."""
    rows = [[0.1 * i + 0.05 * j for j in range(5)] for i in range(5)]
    for i in range(5):
        rows[i][i] = 2.0 + 0.3 * bc.math.sin(q[i] + 0.2 * i)
    rows[0][3] = bc.math.cos(q[1] + t)
    rows[4][1] = q[3] * q[2]
    return rows


def offset(q: Sequence[Any], t: Any) -> list[Any]:
    return [q[0] * bc.math.sin(2.0 * t), 0.3, bc.math.exp(-q[1]), t * t, q[0] * q[4]]


def general(method: str = "recursive", backend: str = "llvm") -> tuple[ChosenSpeeds, tuple[np.ndarray, ...]]:
    system = arm(method, backend)
    rng = np.random.default_rng(5)
    q, v = system.random_state(rng, (4,))
    return bc.analyze.in_speeds(system, matrix, offset), (q, v, *rng.normal(size=(2, 4, 5)), rng.uniform(size=4))


def test_to_and_fro() -> None:
    chosen, (q, v, tau, _, t) = general()
    u = chosen.speeds(q, v, t=t)
    for i in range(4):
        expected = np.array(matrix(q[i].tolist(), t[i]), dtype=float) @ v[i] + np.array(offset(q[i].tolist(), t[i]))
        assert np.abs(u[i] - expected).max() < 10.0 * EPS * np.abs(expected).max()
    assert np.abs(chosen.own(q, u, t=t) - v).max() < 1e-13
    forces = chosen.forces(q, tau, t=t)
    assert np.abs(chosen.joint_forces(q, forces, t=t) - tau).max() < 1e-13
    still = chosen.speeds(q, np.zeros(5), t=t)  # D
    assert np.abs((forces * (u - still)).sum(-1) - (tau * v).sum(-1)).max() < 1e-12  # the power is the same


@pytest.mark.parametrize(("method", "backend"), [("recursive", "llvm"), ("kane", "numpy")])
def test_equations_of_motion(method: str, backend: str) -> None:
    """udot by differences along the motion of the own speeds; M udot + h = Q; inverse dynamics gives Q back."""
    chosen, (q, v, tau, _, t) = general(method, backend)
    system, u, forces = chosen.system, chosen.speeds(q, v, t=t), chosen.forces(q, tau, t=t)
    found = chosen.forward_dynamics(q, u, forces, t=t)
    vdot = system.forward_dynamics(q, v, tau, t=t)

    def along(h: float) -> np.ndarray:
        middle = v + 0.5 * h * vdot
        return chosen.speeds(system.integrate(q, h * middle), v + h * vdot, t=t + h)

    h = 1e-4
    slope = (8.0 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12.0 * h)
    assert np.abs(slope - found).max() < 1e-8 * (1.0 + np.abs(found).max())
    mass, bias = chosen.mass_matrix(q, t=t), chosen.bias(q, u, t=t)
    size = np.abs(forces).max() + np.abs(bias).max()
    assert np.abs((mass @ found[..., None])[..., 0] + bias - forces).max() < 1e-11 * size
    assert np.abs(mass - np.swapaxes(mass, -1, -2)).max() < 1e-12 * np.abs(mass).max()
    assert np.abs(chosen.inverse_dynamics(q, u, found, t=t) - forces).max() < 1e-11 * size
    kinetic = 0.5 * ((u - chosen.speeds(q, np.zeros(5), t=t))[..., None, :] @ mass @
                     (u - chosen.speeds(q, np.zeros(5), t=t))[..., None])[..., 0, 0]
    assert np.abs(kinetic - system.kinetic_energy(q, v)).max() < 1e-11 * np.abs(kinetic).max()


def test_loops_in_absolute_angular_velocities() -> None:
    """The four-bar in the angular velocities of its bars: their sums are those of its joints."""
    system = bc.compile(bc.load("four_bar"))
    bars = np.eye(4)
    bars[:3, :3] = np.tril(np.ones((3, 3)))
    absolute = bc.analyze.in_speeds(system, bars, names=("crank", "coupler", "rocker", "D"))
    q, v, tau = (x[0] for x in looped.states(system, seed=2, count=1))
    u = absolute.speeds(q, v)
    for body, speed in zip(("crank", "coupler", "rocker"), u[:3], strict=True):
        assert abs(system.velocity(q, v, body)[2] - speed) < 1e-13
    found = absolute.forward_dynamics(q, u, absolute.forces(q, tau))
    assert np.abs(found - bars @ system.forward_dynamics(q, v, tau)).max() < 1e-11 * np.abs(found).max()


def test_runs_in_chosen_speeds() -> None:
    """The run is that of the own speeds; forces conjugate to u are compiled into it, as C^T Q."""
    chosen, (q, v, tau, _, _) = general()
    u, forces = chosen.speeds(q[0], v[0]), tau[0]
    result = chosen.simulate(q[0], u, 0.02, forces=forces, step=1e-3)
    assert result.chosen_u.dims == ("time", "chosen_speed") and np.abs(result.chosen_u.values[0] - u).max() < 1e-13
    here = result.q.values, result.chosen_u.values, result.time.values
    slope = chosen.forward_dynamics(here[0], here[1], forces, t=here[2])
    reached = here[1][0] + (here[2][1] - here[2][0]) * (
        slope[0] + slope[-1] + 4.0 * slope[1:-1:2].sum(0) + 2.0 * slope[2:-1:2].sum(0)) / 3.0  # Simpson's rule
    assert np.abs(reached - here[1][-1]).max() < 1e-8 * np.abs(here[1][-1]).max()


def test_refusals_name_the_part() -> None:
    system = arm()
    q, v = system.random_state(np.random.default_rng(0))
    for bad, words in (((np.eye(4),), r"C must be .* \(5, 5\)"), ((np.eye(5), np.zeros(3)), "D must be"),
                       ((np.full((5, 5), np.nan),), "finite")):
        with pytest.raises(bc.ModelError, match=words):
            bc.analyze.in_speeds(system, *bad)
    with pytest.raises(bc.ModelError, match="5 speeds"):
        bc.analyze.in_speeds(system, np.eye(5), names=("a",) * 5)
    with pytest.raises(bc.ModelError, match="C must return 5 x 5"):
        bc.analyze.in_speeds(system, lambda q, t: [[1.0]]).speeds(q, v)
    with pytest.raises(bc.SingularError, match="singular in this state"):
        bc.analyze.in_speeds(system, lambda q, t: np.diag([1.0, 1.0, 1.0, 1.0, 0.0]).tolist()).own(q, v)
    chosen = bc.analyze.in_speeds(system, np.eye(5))
    with pytest.raises(bc.StateError, match="t is nan"):
        chosen.forward_dynamics(q, v, t=float("nan"))
    with pytest.raises(bc.StateError, match=r"u\[1\] \(u2\)"):
        chosen.own(q, [0.0, np.inf, 0.0, 0.0, 0.0])
    with pytest.raises(bc.ModelError, match="give forces, or tau"):
        chosen.simulate(q, v, 0.1, forces=np.zeros(5), tau=np.zeros(5))
