"""Closing by compiled steps: as near as the careful way, the same for one state as for many, and verified."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc

MACHINES = ("four_bar", "slider_crank", "five_bar", "quarter_car", "delta", "stewart", "jansen", "bennett",
            "linkage_quadruped")


def around(system: bc.System, n: int, size: float, seed: int = 0) -> np.ndarray:
    return system.integrate(system.assemble().q, size * np.random.default_rng(seed).normal(size=(n, system.nu)))


def careful(system: bc.System) -> bc.System:
    """The same machine without compiled steps."""
    system.plans.closer.near = None
    return system


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("size", (0.01, 0.1))
def test_states_of_a_batch_do_not_know_each_other(name: str, size: float) -> None:
    system = bc.compile(bc.load(name))
    guesses, speeds = around(system, 9, size), np.random.default_rng(3).normal(size=(9, system.nu))
    state = system.assemble(q=guesses, u=speeds)
    scale = max(1.0, float(np.abs(speeds).max()))
    assert np.abs(system.loop_error(state.q)).max() < 1e-12
    assert np.abs(system.loop_rate_error(state.q, state.u)).max() < 1e-12 * scale * 10
    turned = system.assemble(q=guesses[::-1], u=speeds[::-1])
    for i in range(9):
        one = system.assemble(q=guesses[i], u=speeds[i])
        assert np.abs(one.q - state.q[i]).max() < 1e-12 and np.abs(one.u - state.u[i]).max() < 1e-9
        assert np.abs(turned.q[8 - i] - state.q[i]).max() < 1e-12


@pytest.mark.parametrize("name", MACHINES)
def test_as_near_as_the_careful_way(name: str) -> None:
    quick, slow = bc.compile(bc.load(name)), careful(bc.compile(bc.load(name)))
    assert quick.plans.closer.near is not None
    for guess in around(quick, 4, 0.02, seed=1):
        there, other = quick.assemble(q=guess).q, slow.assemble(q=guess).q
        far, least = (float(np.linalg.norm(quick.difference(guess, q))) for q in (there, other))
        assert far <= least * (1.0 + 1e-3) + 1e-9


def test_what_is_held_stays_and_the_rest_is_the_nearest() -> None:
    quick, slow = bc.compile(bc.load("five_bar")), careful(bc.compile(bc.load("five_bar")))
    start, joint = quick.assemble(), quick.joint_names[0]
    value = float(start.q[0]) + 0.05
    found, other = (s.assemble(q={joint: value}, guess=start) for s in (quick, slow))
    assert found.q[0] == value and np.abs(quick.loop_error(found.q)).max() < 1e-13
    assert np.abs(found.q - other.q).max() < 1e-4 * 0.1


def test_projection_of_a_nearly_closed_state() -> None:
    """One call of compiled code; what is far is left to `assemble`."""
    system = bc.compile(bc.load("four_bar"))
    state = system.assemble(q={"A": 0.5}, u={"A": 1.0})
    off = np.array([1.0, -2.0, 1.5, -0.5])
    for size in (0.0, 1e-10, 1e-7, 1e-5, 1e-3):
        made = system.project(state.q + size * off, state.u + size * off)
        assert np.abs(system.loop_error(made.q)).max() < 1e-13
        assert np.abs(system.loop_rate_error(made.q, made.u)).max() < 1e-12
        assert np.abs(made.q - state.q).max() <= 10.0 * size
        assert abs(made.q.sum()) < 1e-13 and abs(made.u.sum()) < 1e-12  # the last angle follows from the others
    for turns in (0.0, 0.5, 1.0, -7.0):  # it is taken from the links, on the turn that is given
        away = state.q + [1e-7, 0.0, 0.0, 2.0 * np.pi * turns]
        made = system.project(away, state.u)
        assert np.abs(made.q[:3] - state.q[:3]).max() < 1e-6
        assert abs(made.q.sum() - 2.0 * np.pi * round(made.q.sum() / (2.0 * np.pi))) < 1e-13
        assert abs(made.q[3] - away[3]) < 1e-6 or turns == 0.5
    closed = system.project(state.q, state.u)
    assert np.array_equal(closed.q, state.q)


def test_axes_that_point_the_wrong_way_are_not_taken() -> None:
    """The second of two parallel hinges turned over: the conditions cannot tell, the compiled steps must."""
    m = bc.Mechanism("flipped", gravity=(0, 0, 0))
    rods = [m.add_body(f"rod{i}", bc.Inertia.rod(1.0, (0, 0, 0), (x, 0, 0))) for i, x in enumerate((0.3, 1.0, 0.6))]
    m.add_joint("A", bc.Revolute("z"), m.ground, rods[0])
    m.add_joint("B", bc.Spherical(), rods[0], rods[1], bc.Pose((0.3, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), rods[1], rods[2], bc.Pose((1.0, 0, 0)))
    m.add_joint("D", bc.Revolute("z"), rods[2], m.ground, bc.Pose((0.6, 0, 0)), bc.Pose((1.0, 0, 0)))
    system = bc.compile(m, cut=["D"])
    state = system.assemble()
    assert not system.plans.closer.flipped(state.q)
    near = system.plans.closer.near
    assert near is not None
    # upside down: the coupler turned by half a turn about its own length, its hinges with it
    q = state.q.copy()
    first = system.model.configuration.coordinate_entries("B")[0]
    w, x, y, z = q[first:first + 4]
    q[first:first + 4] = -x, w, z, -y
    c = system.model.configuration.coordinate_entries("C")[0]
    q[c] = -q[c]
    assert np.abs(system.loop_error(q)).max() < 1e-12
    assert bool(system.plans.closer.flipped(q))
    assert not near.nearest(q[None], system.model.prescribed_mask(), np.ones(system.nu), 0.0)[1][0]
    assert not system.plans.closer.flipped(system.project(q, np.zeros(system.nu)).q)


def test_prescribed_joints_follow_their_laws() -> None:
    m = bc.load("four_bar")
    m.prescribe("A", lambda t: 0.5 + 2.0 * t)
    system = bc.compile(m)
    first = system.assemble()
    for t in (0.0, 0.01):
        state = system.assemble(q=first.q, u=first.u, t=t)
        assert state.q[0] == 0.5 + 2.0 * t and state.u[0] == 2.0
        assert np.abs(system.loop_error(state.q, t=t)).max() < 1e-13
        assert np.abs(system.loop_rate_error(state.q, state.u, t=t)).max() < 1e-12
