"""The cheap ways into compiled code: one state, a batch, and bound calls give what the general way gives, to the bit;
what does not fit goes the general way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc

MACHINES = ("arm", "quadruped", "four_bar", "stewart", "gyroscope")


def system_of(name: str) -> tuple[bc.System, Any, Any]:
    system = bc.compile(bc.load(name))
    if system.loops:
        state = system.assemble()
        return system, state.q, 0.0 * state.u
    return system, *system.random_state(np.random.default_rng(4))


def methods(s: bc.System, body: str, point: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Methods with a cheap way, as functions of q and u."""
    return {"mass_matrix": lambda q, u: s.mass_matrix(q), "bias": s.bias, "momenta": s.momenta,
            "position": lambda q, u: s.pose(q, body).position, "rotation": lambda q, u: s.pose(q, body).rotation,
            "velocity": lambda q, u: s.velocity(q, u, body, point),
            "acceleration": lambda q, u: s.acceleration(q, u, np.ones_like(u), body, point),
            "jacobian": lambda q, u: s.jacobian(q, body, point),
            "jacobian_rate": lambda q, u: s.jacobian_rate(q, u, body, point),
            "center_of_mass": lambda q, u: s.center_of_mass(q), "momentum": s.momentum,
            "kinetic_energy": s.kinetic_energy, "potential_energy": lambda q, u: s.potential_energy(q),
            "energy": s.energy, "forward_dynamics": s.forward_dynamics,
            **({} if s.loops else {"inverse_dynamics": lambda q, u: s.inverse_dynamics(q, u, np.ones_like(u))})}


@pytest.mark.everyday(3)
@pytest.mark.parametrize("name", MACHINES)
def test_all_ways_agree(name: str) -> None:
    """Lists cannot take the cheap way; a batch of lists takes the general one, too."""
    system, q, u = system_of(name)
    point, rng = np.array([0.1, -0.2, 0.3]), np.random.default_rng(7)
    many = system.integrate(q, 0.01 * rng.normal(size=(11, system.nu))), u + 0.01 * rng.normal(size=(11, system.nu))
    for what, call in methods(system, system.body_names[-1], point).items():
        one, slow = call(q, u), call(q.tolist(), u)
        assert np.array_equal(one, slow), what
        fast, general = call(*many), call(np.asfortranarray(many[0]), np.asfortranarray(many[1]))
        assert fast.shape == (11, *np.shape(one)) and np.array_equal(fast, general), what
        for i in (0, 10):
            alone = call(many[0][i].copy(), many[1][i].copy())
            assert np.abs(fast[i] - alone).max() <= 1e-10 * max(1.0, float(np.abs(alone).max())), what


@pytest.mark.parametrize("name", MACHINES)
def test_jacobians_lead_to_velocities_and_accelerations(name: str) -> None:
    """v = J u and a = J udot + dJ/dt u, of which the left sides are other functions."""
    system, q, _ = system_of(name)
    rng, point = np.random.default_rng(5), np.array([0.1, -0.2, 0.3])
    u, udot = rng.normal(size=system.nu), rng.normal(size=system.nu)
    shown = [system.speed_names.index(name) for name in system.independent_speeds]
    closed = system.project(q, u).u
    for body in system.body_names:
        jacobian, rate = system.jacobian(q, body, point, speeds="tree"), system.jacobian_rate(q, u, body, point)
        assert np.abs(jacobian @ u - system.velocity(q, u, body, point)).max() < 1e-12, body
        assert np.abs(jacobian @ udot + rate @ u - system.acceleration(q, u, udot, body, point)).max() < 1e-11, body
        velocity = system.velocity(q, closed, body, point)
        assert np.abs(system.jacobian(q, body, point) @ closed[shown] - velocity).max() < 1e-11, body


@pytest.mark.parametrize("name", ("quadruped", "four_bar"))
def test_against_the_reference(name: str) -> None:
    """The NumPy backend has neither doors nor functions of one body's own code."""
    system, q, u = system_of(name)
    plain = bc.compile(bc.load(name), backend="numpy")
    for body in system.body_names:
        ours, theirs = (methods(s, body, np.array([0.1, -0.2, 0.3])) for s in (system, plain))
        for what in ours:
            expected = theirs[what](q, u)
            assert np.abs(ours[what](q, u) - expected).max() <= 1e-11 * max(1.0, float(np.abs(expected).max())), what


def test_bound_calls_of_bodies() -> None:
    system, q, u = system_of("quadruped")
    body, point = system.body_names[-1], np.array([0.1, -0.2, 0.3])
    pose = system.pose(q, body)
    bound = system.bind("pose", q, body=body)()
    assert np.array_equal(bound, [*pose.rotation.ravel(), *pose.position])
    assert np.array_equal(system.bind("jacobian", q, point, body=body)(), system.jacobian(q, body, point))
    assert np.array_equal(system.bind("jacobian_rate", q, u, body=body)(), system.jacobian_rate(q, u, body))
    assert np.array_equal(system.bind("velocity", q, u, point, body=body)(), system.velocity(q, u, body, point))
    call = system.bind("center_of_mass", q)
    q[:3] += 1.0
    assert np.array_equal(call(), system.center_of_mass(q))
    with pytest.raises(bc.ModelError, match="needs body="):
        system.bind("jacobian", q)
    with pytest.raises(bc.ModelError, match="not about one body"):
        system.bind("bias", q, u, body=body)
    with pytest.raises(bc.ModelError, match="no body called"):
        system.bind("pose", q, body="tail")


@pytest.mark.parametrize("name", MACHINES)
def test_poses_of_all_bodies(name: str) -> None:
    system, q, _ = system_of(name)
    found, many = system.pose(q), system.pose(np.repeat(q[None], 9, axis=0))
    slow = system.pose(q.tolist())
    for i, body in enumerate(system.body_names):
        one = system.pose(q, body)
        assert np.abs(found.position[i] - one.position).max() < 1e-14
        assert np.abs(many.rotation[8, i] - one.rotation).max() < 1e-14
    assert np.array_equal(found.position, slow.position) and np.array_equal(found.rotation, slow.rotation)
    assert np.array_equal(system.bind("pose", q)().reshape(-1, 12)[:, 9:], found.position)


def test_states_take_the_place_of_q_and_u() -> None:
    system, q, u = system_of("quadruped")
    state, body = bc.State(q, u), system.body_names[-1]
    assert np.array_equal(system.jacobian(state, body), system.jacobian(q, body))
    assert np.array_equal(system.velocity(state, body), system.velocity(q, u, body))
    assert np.array_equal(system.energy(state), system.energy(q, u))


def test_what_is_wrong_is_said_by_the_general_way() -> None:
    system, q, u = system_of("quadruped")
    body, bad = system.body_names[-1], q.copy()
    bad[2] = np.nan
    for call in (lambda: system.pose(bad, body), lambda: system.jacobian(np.repeat(bad[None], 9, axis=0), body),
                 lambda: system.mass_matrix(bad), lambda: system.center_of_mass(bad)):
        with pytest.raises(bc.StateError, match=r"q\[2\]"):
            call()
    for wrong in (q[:-1], np.zeros((9, len(q) - 1))):
        with pytest.raises(bc.StateError, match="q"):
            system.center_of_mass(wrong)
    with pytest.raises(bc.ModelError, match="no body called"):
        system.pose(q, "tail")
    with pytest.raises(bc.ModelError, match="by their names"):
        system.pose(q, ["tail"])  # type: ignore[arg-type]
    with pytest.raises(bc.StateError):
        system.forward_dynamics(np.zeros((9, len(q))), np.zeros((8, len(u))))


def test_places_that_depend_on_parameters() -> None:
    """Functions of bodies and frames take parameters as others do."""
    m = bc.Mechanism("arm with a parameter")
    length = m.parameter("length", 0.5)
    arm = m.add_body("arm", bc.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)))
    m.add_joint("hinge", bc.Revolute("z"), m.ground, arm)
    m.add_frame("tip", arm, bc.Pose((length, 0.0, 0.0)))
    system = bc.compile(m)
    q, u = np.array([0.3]), np.array([2.0])
    for value in (0.5, 0.8):
        other = system.with_parameters(length=value)
        assert np.allclose(other.pose(q, "tip").position, value * np.array([np.cos(0.3), np.sin(0.3), 0.0]), atol=1e-15)
        assert np.allclose(other.jacobian(q, "tip")[:, 0] * 2.0, other.velocity(q, u, "tip"), atol=1e-15)
