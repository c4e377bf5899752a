"""Static equilibrium against minima of the energy found by others, and against hand calculation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import bellcrank as bc
import looped
import whole_states
from bellcrank import math
from bellcrank.analyze.linear_models import derivative
from bellcrank.analyze.resting_forces import RestingForces


def sprung_four_bar() -> bc.Mechanism:
    m = bc.load("four_bar")
    m.add_joint_spring("carried", "B", stiffness=30.0, rest=0.2)
    m.add_joint_spring("closing", "D", stiffness=20.0, damping=1.0, rest=0.1)
    m.add_spring("point", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), stiffness=200.0, length=0.3)
    return m


def energy(system: bc.System, q: np.ndarray) -> float:
    return float(system.potential_energy(q) + bc.analyze.stored_energy(system, q))


def test_sprung_four_bar_is_where_its_energy_is_least() -> None:
    system = bc.compile(sprung_four_bar())
    state = bc.analyze.equilibrium(system, {"A": 0.8})
    assert np.abs(system.loop_error(state.q)).max() < 1e-12
    assert np.abs(system.forward_dynamics(state.q, state.u)).max() < 1e-9
    assert not state.u.any()
    found = minimize_scalar(lambda a: energy(system, system.assemble(q={"A": a}, guess=state.q).q),
                            bracket=(state.q[0] - 0.2, state.q[0], state.q[0] + 0.15), options={"xtol": 1e-9})
    assert abs(found.x - state.q[0]) < 1e-6  # as flat as a minimum is
    assert energy(system, state.q) <= found.fun + 1e-12
    reactions = system.reactions(state.q, state.u)
    assert np.isfinite(reactions["D"]).all()


@pytest.mark.parametrize("start", (0.3, 3.0, np.pi, -2.0))
def test_stable_search_leaves_maxima(start: float) -> None:
    system = bc.compile(bc.load("pendulum"))
    q = bc.analyze.equilibrium(system, {"hinge": start}).q
    assert abs(np.sin(q[0] / 2)) < 1e-12


def test_without_stable_the_nearest_of_any_kind() -> None:
    system = bc.compile(bc.load("pendulum"))
    assert abs(bc.analyze.equilibrium(system, {"hinge": 3.0}, stable=False).q[0] - np.pi) < 1e-12
    double = bc.compile(bc.load("double_pendulum"))
    saddle = bc.analyze.equilibrium(double, {"shoulder": 0.2, "elbow": 3.0}, stable=False).q
    assert np.abs(saddle - [0.0, np.pi]).max() < 1e-10
    stable = bc.analyze.equilibrium(double, saddle).q
    assert np.abs(np.sin(stable / 2)).max() < 1e-10


def test_four_bar_falls_through_to_its_lowest_position() -> None:
    system = bc.compile(bc.load("four_bar"))
    state = bc.analyze.equilibrium(system, {"A": 1.2})
    around = bc.analyze.coupler_curve(system, "A", "coupler", guess=state, samples=721)
    lowest = min(energy(system, q) for q in around.q)
    assert energy(system, state.q) <= lowest + 1e-12
    assert lowest - energy(system, state.q) < 1e-3


def test_forces_and_loads_take_part() -> None:
    system = bc.compile(bc.load("pendulum"))
    weight = 9.81 * system.model.mass * float(np.linalg.norm(system.center_of_mass([0.0])))
    q = bc.analyze.equilibrium(system, tau={"hinge": 0.5 * weight}).q
    assert abs(q[0] - np.pi / 6) < 1e-12
    body = system.body_names[0]
    again = bc.analyze.equilibrium(system, wrenches={body: np.array([0.5 * weight, 0, 0, 0, 0, 0])}).q
    axis = system.velocity([0.0], [1.0], body)[:3]
    assert abs(np.sin(again[0]) - 0.5 * axis[0]) < 1e-12


def test_held_joints_stay_and_their_forces_come_out() -> None:
    system = bc.compile(bc.load("five_bar"), actuated=["leg1.1", "leg2.1"])
    start = system.assemble(q={"leg1.1": 0.5, "leg2.1": 0.5})
    state = bc.analyze.equilibrium(system, start, hold=["leg1.1"])
    assert abs(state.q[0] - 0.5) < 1e-13
    zero = np.zeros(system.nu)
    tau = system.inverse_dynamics(state.q, zero, zero, actuated=["leg1.1", "leg2.1"])
    assert abs(tau[system.joint_names.index("leg2.1")]) < 1e-9 * abs(tau[0])
    other = bc.analyze.equilibrium(system, start, hold={"leg1.1": 0.6})
    assert abs(other.q[0] - 0.6) < 1e-13
    fixed = bc.analyze.equilibrium(system, start, hold=["leg1.1", "leg2.1"])  # nothing left to find
    assert np.abs(fixed.q - start.q).max() < 1e-12


def test_ball_joint_and_free_body_on_springs() -> None:
    m = bc.Mechanism("hanging")
    plate = m.add_body("plate", bc.Inertia.box(3.0, (0.6, 0.4, 0.05)))
    m.add_joint("base", bc.Free(), m.ground, plate)
    for i, (x, y) in enumerate(((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2))):
        m.add_spring(f"rope{i}", m.ground, plate, (1.2 * x, 1.2 * y, 1.0), (x, y, 0.0), stiffness=100.0, length=0.5)
    system = bc.compile(m)
    start = system.integrate(system.neutral(), [0.2, -0.1, 0.3, 0.1, 0.2, 0.1])
    state = bc.analyze.equilibrium(system, bc.State(start, np.zeros(6)))
    assert np.abs(system.forward_dynamics(state.q, state.u)).max() < 1e-9
    assert np.abs(state.q[1:6]).max() < 1e-9  # level and centred
    ball = bc.Mechanism("ball")
    bob = ball.add_body("bob", bc.Inertia(2.0, (0.1, 0.2, -0.5), (0.1, 0.2, 0.15)))
    ball.add_joint("pivot", bc.Spherical(), ball.ground, bob)
    pendulum = bc.compile(ball)
    rest = bc.analyze.equilibrium(pendulum)  # turning about the vertical is indifferent
    assert np.abs(pendulum.forward_dynamics(rest.q, rest.u)).max() < 1e-9
    assert np.abs(pendulum.center_of_mass(rest.q)[:2]).max() < 1e-9
    assert pendulum.center_of_mass(rest.q)[2] < -0.5


def test_relative_equilibrium_of_a_governor() -> None:
    """A pendulum on a shaft that turns at 8 rad/s stands at cos(angle) = g / (l w^2)."""
    m = bc.Mechanism("governor")
    shaft = m.add_body("shaft", bc.Inertia.cylinder(1.0, 0.02, 0.2))
    ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, -0.4), (1e-9, 1e-9, 1e-9)))
    m.add_joint("spin", bc.Revolute("z"), m.ground, shaft)
    m.add_joint("arm", bc.Revolute("y"), shaft, ball)
    m.prescribe("spin", lambda t: 8.0 * t)
    system = bc.compile(m)
    state = bc.analyze.equilibrium(system, {"arm": 0.4})
    assert abs(np.cos(state.q[1]) - 9.81 / (0.4 * 64.0)) < 1e-7
    assert abs(state.u[0] - 8.0) < 1e-12  # the prescribed joint as its law says
    assert bc.analyze.modes(system, state, damped=True).frequencies[0] == pytest.approx(
        8.0 * abs(np.sin(state.q[1])) / (2 * np.pi), rel=1e-7)


def test_prescribed_joints_are_at_their_law() -> None:
    m = sprung_four_bar()
    m.prescribe("A", lambda t: 0.9 - 0.1 * math.exp(-t * t * t))
    system = bc.compile(m)
    state = bc.analyze.equilibrium(system)
    assert abs(state.q[0] - 0.8) < 1e-12
    assert np.abs(system.loop_error(state.q)).max() < 1e-12
    with pytest.raises(bc.StateError, match="'?A'?.*move the loops at t = 0.5"):
        bc.analyze.equilibrium(system, t=0.5)


@pytest.mark.parametrize("name", ("double_pendulum", "double_wishbone", "bennett"))
def test_stiffness_is_exact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from equilibrium, where forces and curved constraints both take part: as extrapolated differences say."""
    system = bc.compile(bc.load(name))
    rng = np.random.default_rng(2)
    q = looped.states(system)[0][1] if system.loops else rng.normal(size=system.nq)
    tau = np.zeros(system.nu)  # `equilibrium` gives links to joints that are loaded
    tau[whole_states.carrying(system, True)] = rng.normal(size=len(whole_states.carrying(system, True)))
    balance = RestingForces(system, tau, None, 0.0, [], np.zeros(system.nu))
    chart = balance.chart(q)
    k = len(chart.independent)
    expected, error = derivative(lambda z: balance.slope(chart, chart.positions(z)[0]), np.full(k, 0.05),
                                 [slice(0, k)], levels=10)
    monkeypatch.setattr(RestingForces, "_stiffness_by_differences", None)
    found = balance.stiffness(chart)
    assert np.abs(found).max() > 0.1
    assert np.abs(found - expected).max() < 1e-8 * np.abs(found).max() + 10.0 * error.max()


def test_stiffness_of_rolled_machines_by_differences() -> None:
    """Their code cannot be differentiated; the equilibrium is the same."""
    plain, rolled = (bc.compile(bc.load("four_bar"), schedule=way) for way in ("auto", "rolled"))
    found = [bc.analyze.equilibrium(s, {"A": 1.2}).q for s in (plain, rolled)]
    assert np.abs(found[0] - found[1]).max() < 1e-9


def test_load_cases_in_a_batch() -> None:
    system = bc.compile(bc.load("pendulum"))
    weight = 9.81 * system.model.mass * float(np.linalg.norm(system.center_of_mass([0.0])))
    tau = weight * np.array([[[0.0], [0.5]], [[-0.5], [0.1]]])
    state = bc.analyze.equilibrium(system, tau=tau)
    assert state.q.shape == (2, 2, 1) and state.u.shape == (2, 2, 1)
    assert np.abs(weight * np.sin(state.q) - tau).max() < 1e-11
    starts = np.array([[0.3], [3.0]])
    loads = np.zeros((2, 1, 6))
    again = bc.analyze.equilibrium(system, starts, wrenches=loads, stable=False).q
    assert np.abs(again - [[0.0], [np.pi]]).max() < 1e-11
    with pytest.raises(bc.StateError, match="do not fit together"):
        bc.analyze.equilibrium(system, starts, tau=np.zeros((3, 1)))


def test_what_cannot_rest_says_why() -> None:
    m = bc.Mechanism("falling")
    m.add_joint("base", bc.Free(), m.ground, m.add_body("stone", bc.Inertia.sphere(2.0, 0.1)))
    with pytest.raises(bc.StateError, match="no equilibrium.*'base.v"):
        bc.analyze.equilibrium(bc.compile(m), iterations=30)
    pendulum = bc.compile(bc.load("pendulum"))
    with pytest.raises(bc.StateError, match="'hinge'"):
        bc.analyze.equilibrium(pendulum, tau=[1000.0], iterations=30)
    with pytest.raises(bc.StateError, match="'hinge'"):
        bc.analyze.equilibrium(pendulum, tau=[1000.0], stable=False)
    with pytest.raises(bc.StateError, match="finite"):
        bc.analyze.equilibrium(pendulum, tau=[np.nan])
    with pytest.raises(bc.StateError, match="list of names"):
        bc.analyze.equilibrium(pendulum, hold="hinge")
    with pytest.raises(bc.BellcrankError, match="knee"):
        bc.analyze.equilibrium(pendulum, {"knee": 1.0})


def test_machines_that_differ_in_parameters_share_derivatives() -> None:
    """What one of them has compiled, the others find."""
    system = bc.compile(bc.load("four_bar"), backend="numpy")
    first, second = (bc.analyze.equilibrium(system.with_parameters(), {"A": 0.5}) for _ in range(2))
    assert (first.q == second.q).all()


@pytest.mark.parametrize(("angle", "stiffness"), [(0.2, 1e7), (0.2, 1e9), (0.05, 1e9)])
def test_pressed_against_a_stop_that_is_just_touched(angle: float, stiffness: float) -> None:
    """A torque presses a slider-crank's piston against its stop: it gives by less than a micrometre up to some, and the
    search does not go through it."""
    r, rod = 0.1, 0.3
    reach = np.sqrt(rod**2 - (r * np.sin(angle)) ** 2)
    m = bc.Mechanism("press", gravity=(0, 0, 0))
    for name, mass, inertia in (("crank", 1.0, 0.02), ("rod", 0.5, 0.004), ("piston", 2.0, 0.01)):
        m.add_body(name, bc.Inertia(mass, (0, 0, 0), inertia))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("B", bc.Revolute("z"), "crank", "rod", bc.Pose((r, 0, 0)))
    m.add_joint("C", bc.Revolute("z"), "rod", "piston", bc.Pose((rod, 0, 0)))
    m.add_joint("S", bc.Prismatic("x"), m.ground, "piston")
    m.add_limit("stop", "S", upper=float(r * np.cos(angle) + reach), stiffness=stiffness)
    system = bc.compile(m, backend="numpy")
    start = system.assemble(q={"A": angle}, guess={"A": angle, "B": -1.3 * angle, "C": 0.3 * angle})
    rest = bc.analyze.equilibrium(system, start, tau={"A": -3.0})
    slope = r * np.sin(rest.q[0]) * (1.0 + r * np.cos(rest.q[0]) / np.sqrt(rod**2 - (r * np.sin(rest.q[0])) ** 2))
    assert system.element_forces(rest)["stop"].force == pytest.approx(-3.0 / slope, rel=1e-9)
    assert abs(rest.q[0] - angle) < 2e-3
