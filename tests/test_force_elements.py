"""Force elements: hand formulas, energies, and the same forces in every formulation, schedule and backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import looped
from bellcrank.formulations import method_names
from bellcrank.mechanism.forces import Actuator, Bushing, Drag, Friction, LawForce, Limit, LinearSpring, PotentialSpring
from bellcrank.system import force_elements
from bellcrank.system.tree_dynamics import tree_forces

NONE = (0.0, 0.0, 0.0)


def slider(mass: float = 2.0) -> bc.Mechanism:
    """A mass on a rail along x, without gravity."""
    m = bc.Mechanism("slider", gravity=NONE)
    m.add_joint("rail", bc.Prismatic("x"), m.ground, m.add_body("cart", bc.Inertia.box(mass, (0.2, 0.1, 0.1))))
    return m


def floating() -> bc.Mechanism:
    """A free body, without gravity."""
    m = bc.Mechanism("floating", gravity=NONE)
    m.add_joint("free", bc.Free(), m.ground, m.add_body("body", bc.Inertia.box(2.0, (0.2, 0.3, 0.4))))
    return m


def arm(elements: bool = True) -> bc.Mechanism:
    """A spatial tree with every kind of joint that matters to forces, and every kind of element."""
    m = bc.Mechanism("arm")
    for name in ("a", "b", "c", "d"):
        m.add_body(name, bc.Inertia.box(1.5, (0.3, 0.2, 0.1), (0.15, 0.02, 0.01)))
    m.add_joint("one", bc.Revolute("z"), m.ground, "a", bc.Pose((0, 0, 0.3)))
    m.add_joint("two", bc.Universal(), "a", "b", bc.Pose((0.3, 0, 0)))
    m.add_joint("three", bc.Prismatic((1, 1, 0)), "b", "c", bc.Pose((0.3, 0, 0)))
    m.add_joint("four", bc.Spherical(), "c", "d", bc.Pose((0.3, 0, 0)))
    return add_all(m, "one", "three", "d", "c", "b") if elements else m


def bars(elements: bool = True) -> bc.Mechanism:
    """A four-bar with elements also on the joint that closes it."""
    m = bc.load("four_bar")
    if not elements:
        return m
    add_all(m, "A", "B", "rocker", "coupler", "crank")
    m.add_friction("closing friction", "D", coulomb=0.7, viscous=0.2, speed=0.3, static=1.0, stribeck=0.5)
    m.add_servo("closing servo", "D", target=0.5, stiffness=4.0, limit=1.0)
    m.add_limit("closing stop", "D", upper=1.0, stiffness=30.0, damping=1.0)
    m.add_joint_spring("closing spring", "D", potential=lambda x: bc.math.cos(x) * 2.0)
    return m


def add_all(m: bc.Mechanism, one: str, two: str, tip: str, mid: str, low: str) -> bc.Mechanism:
    m.add_spring("linear", m.ground, tip, (0.3, 0.1, 1.0), (0.1, 0.0, 0.2), stiffness=40.0, damping=2.0, length=0.4)
    m.add_spring("nonlinear", low, tip, (0, 0, 0.1), (0.1, 0, 0), potential=lambda x: 5.0 * x**3, damping=0.5)
    m.add_joint_spring("coil", one, stiffness=5.0, damping=0.3, rest=0.1)
    m.add_joint_spring("hard", two, potential=lambda x: 3.0 * x**4)
    m.add_friction("dry", one, coulomb=1.5, viscous=0.2, speed=0.5)
    m.add_limit("stops", two, -0.1, 0.2, stiffness=200.0, damping=3.0)
    m.add_limit("stops too", one, -0.1, 0.1, stiffness=50.0, damping=30.0)
    m.add_actuator("motor", one, 0.5)
    m.add_actuator("dc", two, 2.0, no_load_speed=1.5)
    m.add_bushing("bushing", tip, low, bc.Pose.rpy((0.1, 0.2, 0.05), 0.3, -0.2, 0.5),
                  bc.Pose.about((1, 2, 3), 0.4, (0, 0.1, 0.1)), stiffness=(30.0, 50.0, 10.0), turn_stiffness=(3, 1, 4),
                  damping=(1.0, 0.3, 2.0), turn_damping=(0.2, 0.4, 0.1))
    m.add_drag("drag", tip, coefficient=0.8, area=1.5, at=(0.1, 0.2, 0.0), turn_linear=0.1, turn_quadratic=0.3,
               wind=(1.0, -0.5, 0.3))
    m.add_drag("plain drag", mid, coefficient=1.1)
    m.add_servo("servo", one, target=0.4, target_rate=0.1, stiffness=12.0, damping=1.0, offset=0.2, limit=(-1.0, 2.0))
    m.add_joint_spring("sum spring", {one: 1.5, two: -0.7}, stiffness=8.0, damping=0.5, rest=0.1)
    m.add_friction("sum friction", {one: 0.5, two: 2.0}, coulomb=1.0, speed=0.4)
    m.add_servo("sum servo", {two: 1.2, one: 1.0}, target=0.3, stiffness=9.0, limit=1.5)
    return m


def some_states(system: bc.System, count: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if system.model.tree.looped:
        return looped.states(system, count=count)
    q, u = system.random_state(np.random.default_rng(0), count)
    return q, u, np.random.default_rng(1).normal(size=u.shape) * 2.0


def gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / (1.0 + np.abs(b).max()))


# -- hand formulas --------------------------------------------------------------------------------------------------
Add = Callable[[bc.Mechanism], object]
X, U = 0.37, -0.8
ALONG: dict[str, tuple[Add, float, float]] = {
    "linear": (lambda m: m.add_joint_spring("e", "rail", stiffness=7.0, damping=0.4, rest=0.1),
               -7.0 * (X - 0.1) - 0.4 * U, 3.5 * (X - 0.1) ** 2),
    "potential": (lambda m: m.add_joint_spring("e", "rail", potential=lambda x: bc.math.exp(2.0 * x), damping=0.4),
                  -2.0 * np.exp(2.0 * X) - 0.4 * U, np.exp(2.0 * X)),
    "law": (lambda m: m.add_joint_force("e", "rail", lambda x, v: -3.0 * x * x - v), -3.0 * X * X - U, 0.0),
    "friction": (lambda m: m.add_friction("e", "rail", coulomb=2.0, viscous=0.3, speed=0.5),
                 -2.0 * np.tanh(U / 0.5) - 0.3 * U, 0.0),
    "stribeck": (lambda m: m.add_friction("e", "rail", coulomb=2.0, speed=0.5, static=3.0, stribeck=0.9),
                 -(2.0 + np.exp(-(U / 0.9) ** 2)) * np.tanh(U / 0.5), 0.0),
    "free of stops": (lambda m: m.add_limit("e", "rail", -1.0, 0.4, stiffness=9.0, damping=2.0), 0.0, 0.0),
    "upper stop": (lambda m: m.add_limit("e", "rail", -1.0, 0.1, stiffness=9.0, damping=2.0),
                   -(9.0 * (X - 0.1) + 2.0 * U), 4.5 * (X - 0.1) ** 2),
    "stops never pull": (lambda m: m.add_limit("e", "rail", upper=0.1, stiffness=9.0, damping=20.0), 0.0,
                         4.5 * (X - 0.1) ** 2),
    "lower stop": (lambda m: m.add_limit("e", "rail", lower=0.5, stiffness=9.0, damping=2.0),
                   9.0 * (0.5 - X) - 2.0 * U, 4.5 * (0.5 - X) ** 2),
    "onset": (lambda m: m.add_limit("e", "rail", lower=0.5, stiffness=9.0, damping=2.0, onset=0.26),
              9.0 * (0.5 - X) - 2.0 * U * (0.5 - X) / 0.26, 4.5 * (0.5 - X) ** 2),
    "spring": (lambda m: m.add_spring("e", m.ground, "cart", (0, 0.3, 0), (0, 0, 0), stiffness=7.0, damping=0.4,
                                      length=0.2),
               -(7.0 * (np.hypot(X, 0.3) - 0.2) + 0.4 * U * X / np.hypot(X, 0.3)) * X / np.hypot(X, 0.3),
               3.5 * (np.hypot(X, 0.3) - 0.2) ** 2),
    "bushing": (lambda m: m.add_bushing("e", m.ground, "cart", bc.Pose((0.1, 0, 0)), stiffness=(7, 8, 9),
                                        damping=(0.4, 5, 6)), -7.0 * (X - 0.1) - 0.4 * U, 3.5 * (X - 0.1) ** 2),
    "drag": (lambda m: m.add_drag("e", "cart", coefficient=0.5, area=2.0, density=3.0), -1.5 * abs(U) * U, 0.0),
    "wind": (lambda m: m.add_drag("e", "cart", coefficient=0.5, area=2.0, density=3.0, wind=(lambda t: 4.0 * t, 0, 0)),
             1.5 * (2.0 - U) ** 2, 0.0),
    "servo": (lambda m: m.add_servo("e", "rail", target=0.9, target_rate=0.2, stiffness=3.0, damping=0.4, offset=0.1),
              3.0 * (0.9 - X) + 0.4 * (0.2 - U) + 0.1, 0.0),
    "upper servo limit": (lambda m: m.add_servo("e", "rail", target=5.0, stiffness=9.0, limit=(-7.0, 2.5)), 2.5, 0.0),
    "lower servo limit": (lambda m: m.add_servo("e", "rail", target=-5.0, stiffness=9.0, limit=(-7.0, 2.5)), -7.0, 0.0),
    "servo of time": (lambda m: m.add_servo("e", "rail", target=lambda t: 3.0 * t, target_rate=lambda t: 2.0 * t,
                                            offset=lambda t: t, stiffness=3.0, damping=0.4),
                      3.0 * (1.5 - X) + 0.4 * (1.0 - U) + 0.5, 0.0),
    "sum of one": (lambda m: m.add_joint_spring("e", {"rail": -2.0}, stiffness=7.0, damping=0.4, rest=0.1),
                   2.0 * (7.0 * (-2.0 * X - 0.1) - 0.8 * U), 3.5 * (2.0 * X + 0.1) ** 2),
    "servo of time on a sum": (lambda m: m.add_servo("e", {"rail": 0.5}, target=lambda t: 3.0 * t, stiffness=3.0),
                               1.5 * (1.5 - 0.5 * X), 0.0),
    "wrench": (lambda m: m.add_wrench("e", "cart", force=(lambda t: 4.0 * t, 0, 0)), 2.0, 0.0),
}


@pytest.mark.parametrize("backend", ("numpy", "llvm"))
@pytest.mark.parametrize("name", ALONG)
def test_forces_and_energies_by_hand(name: str, backend: str) -> None:
    add, force, energy = ALONG[name]
    m = slider()
    add(m)
    system = bc.compile(m, backend=backend)
    assert system.forward_dynamics([X], [U], t=0.5)[0] == pytest.approx(force / 2.0, abs=1e-13)
    assert system.inverse_dynamics([X], [U], [0.0], t=0.5)[0] == pytest.approx(-force, abs=1e-13)
    assert float(bc.analyze.stored_energy(system, [X], t=0.5)) == pytest.approx(energy, abs=1e-13)
    assert float(system.energy([X], [U])) == pytest.approx(energy + U * U, abs=1e-13)
    assert bc.analyze.stored_energy(system, np.full((3, 2, 1), X)).shape == (3, 2)
    assert bc.analyze.dissipated_power(system, np.full((3, 1, 1), X), np.full((2, 1), U)).shape == (3, 2)


def test_loss_is_what_is_not_stored() -> None:
    for element, loss in ((LinearSpring(3.0, 0.5, 0.1), 0.5 * U * U),
                          (PotentialSpring(lambda x: x**4, 0.5), 0.5 * U**2),
                          (Friction(2.0, 0.3, 0.5), -Friction(2.0, 0.3, 0.5).force(X, U) * U),
                          (Limit(None, 0.1, 9.0, 2.0), 2.0 * U * U), (LawForce(lambda x, v: -2.0 * v), 2.0 * U * U),
                          (Limit(None, 0.1, 9.0, 20.0), -9.0 * (X - 0.1) * U)):
        assert element.loss(X, U) == pytest.approx(loss, abs=1e-13)
    assert not LawForce(lambda x, v: x).energy_known


def test_limits_are_continuous() -> None:
    stop = Limit(-0.5, 0.5, 100.0, 50.0)
    x = np.linspace(-0.6, 0.6, 240001)
    assert np.abs(np.diff(stop.force(x, 2.0))).max() < 1.0  # over 5e-6
    assert (stop.force(x, 2.0)[x < -0.5] >= 0.0).all()
    assert (stop.force(x, -2.0)[x > 0.5] <= 0.0).all()


def test_actuators_saturate() -> None:
    m = slider()
    m.add_actuator("motor", "rail", 3.0, no_load_speed=4.0)
    for backend in ("numpy", "llvm"):
        system = bc.compile(m, backend=backend)
        for tau, u, expected in ((1.0, 0.0, 1.0), (9.0, 0.0, 3.0), (-9.0, 0.0, -3.0), (9.0, 1.0, 2.25),
                                 (-9.0, 1.0, -3.0), (-9.0, -1.0, -2.25), (9.0, 5.0, 0.0), (9.0, -5.0, 3.0)):
            assert system.forward_dynamics([X], [u], [tau])[0] == pytest.approx(expected / 2.0)
            assert bc.analyze.actuator_forces(system, [X], [u], [tau])[0] == pytest.approx(expected)
            assert system.drive_forces([X], [u], [tau])[0] == pytest.approx(expected)
            assert system.hamilton([X], [2.0 * u], [tau])[1][0] == pytest.approx(expected)
            assert system.reactions([X], [u], [tau])["rail"][3] == pytest.approx(expected)
        assert system.inverse_dynamics([X], [0.0], [50.0])[0] == pytest.approx(100.0)
    assert Actuator(2.0).output(np.array([-5.0, 0.5, 5.0]), 0.0).tolist() == [-2.0, 0.5, 2.0]
    assert Actuator(2.0, 4.0, -1.0).output(np.array([-5.0, 0.5, 5.0]), -2.0).tolist() == [-0.5, 0.5, 2.0]


def test_bushings_by_quaternions() -> None:
    """Energy e K e / 2 with e twice the vector part of the relative quaternion, in a frame of the first body."""
    k, kr = np.array([30.0, 50.0, 10.0]), np.array([3.0, 1.0, 4.0])
    first, second = bc.Pose.rpy((0.1, 0.2, 0.05), 0.3, -0.2, 0.5), bc.Pose.about((1, 2, 3), 0.4, (0, 0.1, 0.1))
    m = floating()
    m.add_bushing("e", m.ground, "body", first, second, stiffness=k, turn_stiffness=kr)
    system = bc.compile(m)
    q, _ = system.random_state(np.random.default_rng(0), 20)
    for state in q:
        pose = system.pose(state, "body")
        turn = first.rotation.T @ pose.rotation @ second.rotation
        at = first.rotation.T @ (pose.position + pose.rotation @ np.array(second.position) - np.array(first.position))
        squares = np.array([1 + 2 * turn[i, i] - np.trace(turn) for i in range(3)])  # 4 (vector part)^2
        angle = np.arccos((np.trace(turn) - 1) / 2)
        assert squares.sum() == pytest.approx((2 * np.sin(angle / 2)) ** 2)
        assert float(bc.analyze.stored_energy(system, state)) == pytest.approx((k @ at**2 + kr @ squares) / 2)


def test_bushings_are_linear_in_small_motions() -> None:
    m = floating()
    m.add_bushing("e", m.ground, "body", stiffness=(3, 4, 5), turn_stiffness=(6, 7, 8), damping=(1, 2, 3),
                  turn_damping=(4, 5, 6))
    system = bc.compile(m)
    h = 1e-6
    move, speed = np.array([1.0, -2.0, 3.0, 2.0, 5.0, -4.0]), np.array([-1.0, 0.5, 2.0, 3.0, -2.0, 1.0])
    q = system.integrate(system.neutral(), h * move)
    needed = system.inverse_dynamics(q, h * speed, np.zeros(6))
    assert needed / h == pytest.approx(np.array([6, 7, 8, 3, 4, 5]) * move + np.array([4, 5, 6, 1, 2, 3]) * speed,
                                       rel=1e-4)


def test_bushings_turn_by_the_sine() -> None:
    push = Bushing(turn_stiffness=(0.0, 0.0, 2.0))
    m = bc.Mechanism("hinge", gravity=NONE)
    m.add_joint("pin", bc.Revolute("z"), m.ground, m.add_body("b", bc.Inertia.box(1.0, (0.1, 0.1, 0.1))))
    m.add_bushing("e", m.ground, "b", turn_stiffness=push.turn_stiffness)
    system = bc.compile(m)
    for angle in (0.1, 1.0, 2.0, np.pi, -3.0):
        assert system.inverse_dynamics([angle], [0.0], [0.0])[0] == pytest.approx(2.0 * np.sin(angle), abs=1e-14)
        assert float(bc.analyze.stored_energy(system, [angle])) == pytest.approx(2.0 * (1.0 - np.cos(angle)))


def test_drag_by_hand() -> None:
    m = floating()
    m.add_drag("e", "body", coefficient=0.5, area=0.3, density=1.1, at=(0.1, 0.2, -0.1), turn_linear=0.4,
               turn_quadratic=0.2, wind=(1.0, lambda t: 2.0 * t, -1.0))
    system = bc.compile(m)
    q, u = system.random_state(np.random.default_rng(2))
    pose, velocity = system.pose(q, "body"), system.velocity(q, u, "body", (0.1, 0.2, -0.1))
    air = velocity[3:] - [1.0, 1.4, -1.0]
    force = -0.5 * 1.1 * 0.5 * 0.3 * np.linalg.norm(air) * air
    moment = -(0.4 + 0.2 * np.linalg.norm(velocity[:3])) * velocity[:3]
    wrench = np.concatenate([moment + np.cross(pose.rotation @ [0.1, 0.2, -0.1], force), force])
    plain = bc.compile(floating()).forward_dynamics(q, u, wrenches={"body": wrench})
    assert gap(system.forward_dynamics(q, u, t=0.7), plain) < 1e-13
    assert gap(bc.analyze.element_wrenches(system, q, u, t=0.7)[0], wrench) < 1e-13
    assert float(bc.analyze.dissipated_power(system, q, u, t=0.7)) == pytest.approx(
        -float(force @ velocity[3:] + moment @ velocity[:3]))
    times = np.linspace(0.0, 1.0, 5)
    assert system.forward_dynamics(q, u, t=times).shape == (5, 6)
    assert bc.analyze.dissipated_power(system, q, u, t=times).shape == (5,)


def test_drag_in_the_world_of_a_turned_ground() -> None:
    """Wind is given in the world, whatever frame the ground link has."""
    m = bc.Mechanism("turned", gravity=NONE)
    m.add_body("b", bc.Inertia.box(1.0, (0.1, 0.2, 0.3), (0.2, 0.0, 0.0)))
    m.add_joint("pin", bc.Revolute((1, 2, 3)), m.ground, "b", bc.Pose.rpy((0.1, 0.2, 0.3), 0.4, 0.5, 0.6))
    m.add_drag("e", "b", coefficient=1.0, at=(0.3, 0.1, 0.0), wind=(3.0, 1.0, -2.0))
    expected = bc.compile(m, free_frames=False).forward_dynamics([0.4], [1.2])
    assert gap(bc.compile(m).forward_dynamics([0.4], [1.2]), expected) < 1e-12


# -- energies -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", (arm, bars))
def test_forces_are_the_gradient_of_the_energy(make: Callable[..., bc.Mechanism]) -> None:
    """At rest, without wind: joint forces of the elements against differences of stored_energy."""
    full, plain = make(), make(False)
    full._drags.clear()
    full._joint_forces.pop("servo")  # servos store nothing
    full._joint_forces.pop("closing servo", None)
    full._joint_sums.pop("sum servo")
    with_them = bc.compile(full)
    without = bc.compile(plain, cut=with_them.model.tree.cut_names)
    q, u, _ = some_states(with_them)
    at_rest = np.zeros_like(u)
    given = q, at_rest, at_rest, None, 0.0
    forces = tree_forces(without.plans, *given) - tree_forces(with_them.plans, *given)
    h = 1e-6
    for i in range(with_them.nu):
        step = np.zeros(with_them.nu)
        step[i] = h
        after, before = (bc.analyze.stored_energy(with_them, with_them.plans.loops.measured(
            with_them.integrate(q, np.broadcast_to(x, u.shape)))) for x in (step, -step))
        slope = (after - before) / (2 * h)
        assert gap(forces[:, i], -slope) < 1e-7, with_them.speed_names[i]


@pytest.mark.parametrize("make", (arm, bars))
def test_energy_balance(make: Callable[..., bc.Mechanism]) -> None:
    """d(energy)/dt = power of the drives - dissipated power, by differences along the motion."""
    system = bc.compile(make())
    q, u, tau = some_states(system, 6)
    udot = system.forward_dynamics(q, u, tau)
    h = 1e-4

    def energy(t: float) -> np.ndarray:
        # the speeds change while it moves: second order is enough for a central difference
        return system.energy(system.integrate(q, u * t + udot * (t * t / 2)), u + udot * t)

    slope = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    drives = bc.analyze.actuator_forces(system, q, u, tau)
    assert np.abs(drives - tau).max() > 0.1  # some are at their limits
    lost = bc.analyze.dissipated_power(system, q, u)
    assert np.abs(lost).max() > 1.0
    size = 1.0 + np.abs(lost) + np.abs(udot).max(-1) ** 2
    assert (np.abs(slope - ((drives * u).sum(-1) - lost)) / size).max() < 1e-6


def test_dampers_friction_and_drag_only_take_energy() -> None:
    m = bc.load("four_bar")
    m.add_friction("dry", "A", coulomb=1.0, viscous=0.1)
    m.add_friction("closing", "D", coulomb=1.0, viscous=0.1)
    m.add_drag("drag", "coupler", coefficient=1.0, turn_linear=0.1)
    m.add_limit("stop", "B", -0.1, 0.1, stiffness=50.0, damping=5.0)
    system = bc.compile(m)
    q, u, _ = looped.states(system, count=20)
    assert (bc.analyze.dissipated_power(system, q, u) > 0.0).all()
    assert bc.analyze.dissipated_power(system, q, 0.0 * u) == pytest.approx(np.zeros(20), abs=1e-14)


def test_prescribed_coordinates_store_what_their_laws_say() -> None:
    m = slider()
    m.add_joint_spring("e", "rail", stiffness=2.0, damping=0.5)
    m.prescribe("rail", lambda t: bc.math.sin(t))
    system = bc.compile(m)
    assert float(bc.analyze.stored_energy(system, [7.0], t=0.3)) == pytest.approx(np.sin(0.3) ** 2)
    assert float(bc.analyze.dissipated_power(system, [7.0], [9.0], t=0.3)) == pytest.approx(0.5 * np.cos(0.3) ** 2)


# -- everywhere the same --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module", params=("arm", "bars"))
def case(request: pytest.FixtureRequest) -> tuple[bc.Mechanism, tuple[np.ndarray, ...], np.ndarray]:
    m = {"arm": arm, "bars": bars}[request.param]()
    oracle = bc.compile(m, "dense", "numpy")
    q, u, tau = some_states(oracle)
    return m, (q, u, tau), oracle.forward_dynamics(q, u, tau)


@pytest.mark.parametrize("method", method_names())
def test_formulations_agree(case: Any, method: str) -> None:
    m, state, expected = case
    found = bc.compile(m, method, "numpy").forward_dynamics(*state)
    assert gap(found, expected) < 1e-9


@pytest.mark.parametrize("schedule", ("unrolled", "rolled", "auto"))
def test_compiled_schedules_agree(case: Any, schedule: str) -> None:
    m, (q, u, tau), expected = case
    system = bc.compile(m, schedule=schedule)
    assert system.kernels.springs_outside == (schedule == "rolled")
    assert gap(system.forward_dynamics(q, u, tau), expected) < 1e-10
    assert gap(system.forward_dynamics(q[0], u[0], tau[0]), expected[0]) < 1e-10
    bound = system.bind("forward_dynamics", q[1].copy(), u[1].copy(), tau[1].copy())
    assert gap(bound(), expected[1]) < 1e-10
    drives = bc.analyze.actuator_forces(system, q, u, tau)
    if not system.model.tree.looped:
        assert gap(system.inverse_dynamics(q, u, expected), drives) < 1e-9


def test_dense_by_lapack_and_long_machines_know_all_elements() -> None:
    m = bc.load("chain", n=52)
    add_all(m, "joint3", "joint9", "link50", "link20", "link5")
    for i in range(6, 50, 4):
        m.add_drag(f"d{i}", f"link{i}", coefficient=0.3, wind=(lambda t: 1.0 + t, 0, 0))
    m.add_servo("timed", "joint8", target=lambda t: 3.0 * t, stiffness=5.0)
    m.add_servo("timed sum", {"joint4": 1.0, "joint40": -2.0}, target=lambda t: bc.math.sin(9.0 * t), stiffness=5.0)
    reference, system, dense = bc.compile(m, "kane", "numpy"), bc.compile(m), bc.compile(m, "dense")
    assert system.kernels.springs_outside
    q, u = reference.random_state(np.random.default_rng(0), 3)
    tau = np.random.default_rng(1).normal(size=u.shape)
    expected = reference.forward_dynamics(q, u, tau, t=0.2)
    assert gap(system.forward_dynamics(q, u, tau, t=0.2), expected) < 1e-8
    assert gap(dense.forward_dynamics(q, u, tau, t=0.2), expected) < 1e-7
    bound = system.bind("forward_dynamics", q[0].copy(), u[0].copy(), tau[0].copy(), np.array([0.2]))
    assert gap(bound(), expected[0]) < 1e-8
    assert np.abs(reference.forward_dynamics(q, u, tau, t=3.0) - expected).max() > 0.1


@pytest.mark.parametrize("schedule", ("rolled", "unrolled"))
def test_actuators_among_links_that_are_alike(schedule: str) -> None:
    m = bc.load("chain", n=8)
    m.add_actuator("motor", "joint4", 0.2)
    system = bc.compile(m, schedule=schedule)
    q, u, tau = some_states(system)
    plain = bc.compile(bc.load("chain", n=8))
    limited = tau.copy()
    limited[:, 4] = np.clip(tau[:, 4], -0.2, 0.2)
    assert m.joints[4].name == "joint4"
    assert gap(system.forward_dynamics(q, u, tau), plain.forward_dynamics(q, u, limited)) < 1e-9


@pytest.mark.parametrize("make", (arm, bars))
def test_hamilton_feels_elements_at_the_right_speeds(make: Callable[..., bc.Mechanism]) -> None:
    """dp/dt by differences of the momenta along the motion."""
    system = bc.compile(make())
    q, u, tau = some_states(system, 2)
    speeds, rates = system.hamilton(q, system.momenta(q, u, speeds="tree"), tau)
    assert gap(speeds, u) < 1e-9
    if system.model.tree.looped:
        return  # p carries impulses of the loops as well; see test_momenta_loops
    udot = system.forward_dynamics(q, u, tau)
    h = 1e-5
    there, back = (system.momenta(system.integrate(q, s * u + s * abs(s) * np.sign(s) * udot / 2), u + s * udot)
                   for s in (h, -h))
    assert gap(rates, (there - back) / (2 * h)) < 1e-6


def test_reactions_balance_with_elements() -> None:
    """Newton for the whole arm: the ground's reaction, gravity and what ground-bound elements do."""
    system = bc.compile(arm())
    q, u, tau = (x[0] for x in some_states(system))
    udot = system.forward_dynamics(q, u, tau)
    reaction = system.reactions(q, u, tau)["one"]
    force = system.pose(q, "a").rotation @ reaction[3:]
    h = 1e-5
    there, back = (system.momentum(system.integrate(q, s * u + s * abs(s) * np.sign(s) * udot / 2), u + s * udot)[3:]
                   for s in (h, -h))
    outside = bc.analyze.element_wrenches(system, q, u)[:, 3:].sum(axis=0) + system.model.mass * np.array([0, 0, -9.81])
    assert force == pytest.approx((there - back) / (2 * h) - outside, abs=1e-4)


# -- parameters -----------------------------------------------------------------------------------------------------
def with_parameters(value: Callable[[str, float], Any], m: bc.Mechanism) -> bc.Mechanism:
    joints = [j.name for j in m.joints]
    a, b = joints[0], joints[-1] if len(joints) > 2 else joints[0]
    body = m.bodies[-1]
    m.add_joint_spring("s", a, stiffness=value("k", 3.0), damping=value("c", 0.4), rest=value("rest", 0.2))
    m.add_friction("f", b, coulomb=value("dry", 1.0), speed=0.3)
    m.add_limit("l", a, upper=value("end", -0.5), stiffness=20.0)
    m.add_actuator("m", a, (value("lower limit", -0.1), value("limit", 0.3)))
    m.add_servo("servo", a, target=value("target", 0.3), stiffness=value("gain", 5.0), limit=value("strength", 1.0))
    m.add_servo("sum", {a: 1.0, joints[1]: -2.0}, target=value("other target", 0.1), damping=value("other gain", 2.0))
    m.add_spring("p", m.ground, body, (0.1, 0.7, 0), (0.1, 0, 0), stiffness=value("stiff", 9.0), length=0.2)
    m.add_bushing("b", m.ground, body, stiffness=(value("kx", 4.0), 1.0, 2.0), turn_stiffness=(1, 1, value("kz", 2.0)))
    m.add_drag("d", body, coefficient=value("cd", 0.7), wind=(value("wind", 2.0), 0, 0))
    return m


@pytest.mark.parametrize("schedule", ("unrolled", "rolled"))
@pytest.mark.parametrize("name", ("four_bar", "chain"))
def test_elements_take_parameters(name: str, schedule: str) -> None:
    def machine() -> bc.Mechanism:
        return bc.load("chain", n=4) if name == "chain" else bc.load("four_bar")

    m = machine()
    with_parameters(m.parameter, m)
    system = bc.compile(m, schedule=schedule)
    q, u, tau = some_states(system, 3)
    changed = {"k": 5.0, "rest": -0.3, "dry": 2.0, "limit": 0.1, "stiff": 30.0, "kz": 9.0, "cd": 2.0, "end": 0.1,
               "target": -0.4, "gain": 3.0, "strength": 0.2, "other target": 0.7, "other gain": 0.3,
               "lower limit": -0.2}
    for values in ({}, changed):
        plain = machine()
        with_parameters(lambda label, x, v=values: v.get(label, x), plain)  # type: ignore[misc]
        fixed, free = bc.compile(plain, backend="numpy"), system.with_parameters(**values)
        assert gap(free.forward_dynamics(q, u, tau), fixed.forward_dynamics(q, u, tau)) < 1e-10
        assert gap(free.energy(q, u), fixed.energy(q, u)) < 1e-12
        assert gap(bc.analyze.dissipated_power(free, q, u), bc.analyze.dissipated_power(fixed, q, u)) < 1e-12
    many = system.with_parameters(k=np.array([1.0, 2.0, 3.0]))
    one = system.with_parameters(k=2.0)
    assert gap(bc.analyze.stored_energy(many, q)[1], bc.analyze.stored_energy(one, q)[1]) < 1e-13


# -- bad input ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("add, message", [
    (lambda m: m.add_friction("e", "rail", coulomb=-1.0), "coulomb must be at least 0"),
    (lambda m: m.add_friction("e", "rail", coulomb=1.0, speed=0.0), "speed must be greater than 0"),
    (lambda m: m.add_friction("e", "rail", coulomb=1.0, static=0.5), "static 0.5 is less than coulomb 1"),
    (lambda m: m.add_friction("e", "rail", coulomb=float("nan")), "not finite"),
    (lambda m: m.add_friction("e", "nail", coulomb=1.0), "no joint called 'nail'"),
    (lambda m: m.add_limit("e", "rail", stiffness=1.0), "lower or an upper"),
    (lambda m: m.add_limit("e", "rail", 1.0, 0.5, stiffness=1.0), "lower 1 is above upper 0.5"),
    (lambda m: m.add_limit("e", "rail", 0.0, 0.5, stiffness=0.0), "stiffness must be greater than 0"),
    (lambda m: m.add_limit("e", "rail", "a", stiffness=1.0), "'a' is not a number"),
    (lambda m: m.add_actuator("e", "rail", 0.0), "limit must be greater than 0"),
    (lambda m: m.add_actuator("e", "rail", (1.0, 2.0)), "must leave the force zero"),
    (lambda m: m.add_actuator("e", "rail", (2.0, 1.0)), "lower limit 2 is not below the upper one 1"),
    (lambda m: m.add_actuator("e", "rail", (2.0, 1.0, 3.0)), "a number or \\(lower, upper\\)"),
    (lambda m: m.add_servo("e", "rail", target="x"), "target 'x' is not a number"),
    (lambda m: m.add_servo("e", "rail", target=lambda t: "x"), "target: a function of time must"),
    (lambda m: m.add_servo("e", "rail", target=bc.Mechanism("other").parameter("x", 1.0)), "of another mechanism"),
    (lambda m: m.add_servo("e", {}, target=1.0), "names no joint"),
    (lambda m: m.add_servo("e", {"rail": 0.0}), "all factors of the sum are zero"),
    (lambda m: m.add_servo("e", {"rail": bc.Mechanism("other").parameter("k", 1.0)}), "of another mechanism"),
    (lambda m: m.add_servo("e", {"rail": 1.0}, coordinate=0), "as joint.coordinate"),
    (lambda m: m.add_joint_spring("e", {"nail": 1.0}, stiffness=1.0), "no joint called"),
    (lambda m: (m.add_servo("e", {"rail": 1.0}), m.add_servo("e", "rail")), "exists already"),
    (lambda m: (m.add_servo("e", "rail"), m.add_servo("e", {"rail": 1.0})), "exists already"),
    (lambda m: (m.add_actuator("e", "rail", 1.0), m.add_actuator("f", "rail", 1.0)), "has the actuator 'e' already"),
    (lambda m: m.add_actuator("e", "rail", bc.Mechanism("other").parameter("x", 1.0)), "of another mechanism"),
    (lambda m: m.add_joint_spring("e", "rail", stiffness=bc.Mechanism("other").parameter("x", 1.0)),
     "of another mechanism"),
    (lambda m: m.add_bushing("e", "cart", "cart"), "with itself"),
    (lambda m: m.add_bushing("e", m.ground, "cart", (0, 0, 0)), "must be bellcrank.Pose"),
    (lambda m: m.add_bushing("e", m.ground, "cart", stiffness=(1, 2)), "three numbers"),
    (lambda m: m.add_bushing("e", m.ground, "cart", damping=(1, -2, 0)), "damping must be at least 0"),
    (lambda m: m.add_drag("e", m.ground, coefficient=1.0), "ground does not move"),
    (lambda m: m.add_drag("e", "cart", coefficient=-1.0), "coefficient must be at least 0"),
    (lambda m: m.add_drag("e", "cart", wind=(lambda: 1.0, 0, 0)), "function of time"),
    (lambda m: m.add_spring("e", m.ground, "cart", NONE, NONE, potential=lambda x: x, stiffness=1.0),
     "one or the other"),
    (lambda m: m.add_spring("e", m.ground, "cart", NONE, NONE, potential=lambda x: x, law=lambda x, v: x), "not both"),
    (lambda m: m.add_spring("e", m.ground, "cart", NONE, NONE, potential=lambda x: "a"), "returns an energy"),
    (lambda m: m.add_joint_spring("e", "rail", potential=lambda x: np.fabs(x)), "bellcrank.math"),
    (lambda m: (m.add_limit("e", "rail", 0.0, stiffness=1.0), m.add_friction("e", "rail")), "exists already"),
])
def test_bad_elements_are_refused(add: Add, message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        add(slider())


def test_actuators_keep_their_joints() -> None:
    m = bc.load("four_bar")
    for joint in ("B", "D"):
        m.add_actuator(joint, joint, 1.0)
    assert not {"B", "D"} & set(bc.compile(m).model.tree.cut_names)
    assert "D" in bc.compile(m, cut=["D"]).joint_names
    system = bc.compile(m)
    with pytest.raises(bc.StateError, match="must be finite"):
        bc.analyze.stored_energy(system, np.full(system.nq, np.nan))


def test_records_of_elements() -> None:
    m = arm()
    assert [f.name for f in m.joint_forces] == ["coil", "hard", "dry", "stops", "stops too", "servo"]
    assert [f.name for f in m.joint_sums] == ["sum spring", "sum friction", "sum servo"]
    assert m.joint_sums[0].terms == (("one", 0, 1.5), ("three", 0, -0.7))
    assert [d.actuator for d in m.drives] == [Actuator(0.5), Actuator(2.0, 1.5)]
    assert m.bushings[0].bushing.turn_stiffness == (3.0, 1.0, 4.0)
    assert m.drags[1].drag == Drag(coefficient=1.1)
    assert m.springs[0].law(0.5, 1.0) == pytest.approx(40.0 * 0.1 + 2.0)
    m.copy().add_drag("another", "a", coefficient=1.0)
    assert len(m.drags) == 2


def test_elements_are_one_compiled_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all elements store, lose and exert is not computed link by link on arrays; batches come out alike."""
    system = bc.compile(bc.load("quarter_car"))
    q, u, _ = looped.states(system)
    other = bc.compile(bc.load("quarter_car"), backend="numpy")
    expected = [bc.analyze.stored_energy(other, q), bc.analyze.dissipated_power(other, q, u),
                bc.analyze.element_wrenches(other, q, u)]
    monkeypatch.setattr(force_elements, "link_motions", None)
    found = [bc.analyze.stored_energy(system, q), bc.analyze.dissipated_power(system, q, u),
             bc.analyze.element_wrenches(system, q, u)]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and np.abs(ours - theirs).max() < 1e-12 * np.abs(theirs).max()
    assert float(bc.analyze.stored_energy(system, q[0])) == pytest.approx(found[0][0], rel=1e-14)


# -- where forces act that have no point --------------------------------------------------------------
@pytest.mark.parametrize(("add", "said"), [
    (lambda m, at: m.add_wrench("push", "arm", force=(0, 0, 1.0), **at), "wrench 'push': at"),
    (lambda m, at: m.add_wrench("push", "arm", law=lambda machine: (0.0, 0.0, 1.0), **at), "wrench 'push': at"),
    (lambda m, at: m.add_drag("air", "arm", coefficient=1.0, **at), "drag 'air': at"),
    (lambda m, at: m.add_tyre("tyre", "arm", radius=0.3, stiffness=1.0, **({"center": at["at"]} if at else {})),
     "tyre 'tyre': center")])
def test_forces_on_bodies_in_design_position_need_a_point(add, said):
    """The origin of the frame of such a body is the world's: nobody means it. Whatever comes first, force or joint."""
    message = rf"{said} must be given: body 'arm' is in design position.*centre of mass is \(1\.5, "
    for first in ("joint", "force"):
        m = bc.Mechanism("arm", gravity=(0, 0, 0))
        m.add_body("arm", bc.Inertia.rod(1.0, (1, 0, 0), (2, 0, 0)))
        parts = {"force": lambda m=m: add(m, {}),
                 "joint": lambda m=m: m.add_joint("hinge", bc.Revolute("y"), m.ground, "arm", at=(1, 0, 0))}
        parts.pop(first)()
        with pytest.raises(bc.ModelError, match=message):
            next(iter(parts.values()))()
    m = bc.Mechanism("arm")  # with a point, or where a pose says where the frame is, nothing is missing
    m.add_body("arm", bc.Inertia.rod(1.0, (1, 0, 0), (2, 0, 0)))
    m.add_joint("hinge", bc.Revolute("y"), m.ground, "arm", at=(1, 0, 0))
    add(m, {"at": (1.5, 0, 0)})
    m = bc.load("pendulum")
    m.add_wrench("push", "bob", force=(0, 0, 1.0))


def test_a_moment_needs_no_point():
    m = bc.load("slider_crank")
    m.add_wrench("turn", "crank", moment=(0, 0, 1.0))
    m.add_drag("oil", "crank", turn_linear=0.1)
    assert m.wrenches[0].at == (0.0, 0.0, 0.0)
