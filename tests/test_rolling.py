"""Constraints on speeds alone: closed forms of rolling balls, disks and sleighs, in every method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.analyze.minimal import Chart
from bellcrank.mechanism.constraint_rows import Side
from bellcrank.spatial import Vector
from c_library import COMPILER, exported
from mechanisms import EPS

METHODS = ("elimination", "kane", "recursive", "recursive/centroid", "recursive/joint", "recursive/origin", "operator",
           "momenta", "divide", "reduction", "complement")
G, R, M = 9.81, 0.3, 2.0


def ball(slope: float = 0.0) -> bc.Mechanism:
    m = bc.Mechanism("ball", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    body = m.add_body("ball", bc.Inertia(M, (0, 0, 0), 0.4 * M * R * R))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_constraint("floor", bc.RollingBall(R), m.ground, body)
    return m


def disk() -> bc.Mechanism:
    m = bc.Mechanism("disk", gravity=(0.0, 0.0, -G))
    body = m.add_body("disk", bc.Inertia(M, (0, 0, 0), (M * R * R / 4, M * R * R / 2, M * R * R / 4)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_constraint("floor", bc.RollingDisk(R, axis="y"), m.ground, body)
    return m


def sleigh(ahead: float = 0.4, inertia: float = 0.3) -> bc.Mechanism:
    m = bc.Mechanism("sleigh", gravity=(0.0, 0.0, -G))
    body = m.add_body("sleigh", bc.Inertia(M, (ahead, 0, 0), (0.2, 0.2, inertia)))
    m.add_joint("ice", bc.Planar("z"), m.ground, body)
    m.add_constraint("blade", bc.KnifeEdge("y"), m.ground, body)
    return m


def cart(gear: bool = False) -> bc.Mechanism:
    """A wheel whose axle slides on a rail: of its three conditions one is new, none beside a rack."""
    m = bc.Mechanism("cart", gravity=(0.0, 0.0, -G))
    frame = m.add_body("frame", bc.Inertia.box(3.0, (1.0, 0.5, 0.2)))
    wheel = m.add_body("wheel", bc.Inertia(1.0, (0, 0, 0), (0.02, 0.03, 0.02)))
    m.add_joint("rail", bc.Prismatic("x"), m.ground, frame, bc.Pose((0, 0, R)))
    m.add_joint("axle", bc.Revolute("y"), frame, wheel)
    m.add_constraint("road", bc.RollingDisk(R), m.ground, wheel)
    if gear:
        m.add_coupler("rack", {"rail": 1.0, "axle": -R})
    return m


def robot() -> bc.Mechanism:
    """Two wheels, a caster, and a closed loop on top: a crank turns a rocker that moves the fork of the caster."""
    m = bc.Mechanism("robot", gravity=(0.0, 0.0, -G))
    frame = m.add_body("frame", bc.Inertia.box(5.0, (0.4, 0.3, 0.1), (0.05, 0, 0)))
    m.add_joint("floor", bc.Planar("z"), m.ground, frame, bc.Pose((0, 0, 0.1)))
    for k, y in enumerate((-0.2, 0.2)):
        wheel = m.add_body(f"wheel{k}", bc.Inertia(0.5, (0, 0, 0), (0.002, 0.0025, 0.002)))
        m.add_joint(f"axle{k}", bc.Revolute("y"), frame, wheel, bc.Pose((0, y, 0)))
        m.add_constraint(f"road{k}", bc.RollingDisk(0.1), m.ground, wheel)
    fork = m.add_body("fork", bc.Inertia.box(0.4, (0.1, 0.05, 0.1)))
    m.add_joint("steer", bc.Revolute("z"), frame, fork, bc.Pose((0.3, 0, 0)))
    m.add_constraint("caster", bc.KnifeEdge("y"), m.ground, fork, child_pose=bc.Pose((-0.1, 0, 0)))
    rod = m.add_body("rod", bc.Inertia.rod(0.3, (0, 0, 0), (0.3, 0, 0)))
    crank = m.add_body("crank", bc.Inertia.rod(0.2, (0, 0, 0), (0, 0.1, 0)))
    m.add_joint("motor", bc.Revolute("z"), frame, crank)
    m.add_joint("pin", bc.Revolute("z"), crank, rod, bc.Pose((0, 0.1, 0)))
    m.add_joint("tie", bc.Revolute("z"), rod, fork, bc.Pose((0.3, 0, 0)), bc.Pose((0, 0.08, 0)))
    return m


def carried() -> bc.Mechanism:
    """A ball on a plate that a spatial arm carries: the plane moves in every way."""
    m = bc.Mechanism("carried", gravity=(0.3, -0.2, -G))
    arm = m.add_body("arm", bc.Inertia.box(2.0, (0.2, 0.3, 0.4), (0.1, 0.2, 0.0)))
    plate = m.add_body("plate", bc.Inertia.box(1.0, (0.5, 0.5, 0.05), (0.1, 0.1, 0.0)))
    body = m.add_body("ball", bc.Inertia(0.4, (0.01, 0.02, 0.0), (0.01, 0.012, 0.015)))
    m.add_joint("shoulder", bc.Spherical(), m.ground, arm)
    m.add_joint("wrist", bc.Universal("x", "y"), arm, plate, bc.Pose((0.4, 0.1, 0.2)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_constraint("floor", bc.RollingBall(0.2, (0.2, 0.1, 1.0)), plate, body, bc.Pose((0.1, 0.0, 0.02)))
    return m


MACHINES = {"ball": ball, "disk": disk, "sleigh": sleigh, "cart": cart, "geared cart": lambda: cart(gear=True),
            "robot": robot, "carried": carried}


def moving(system: bc.System, seed: int = 1) -> bc.State:
    rng = np.random.default_rng(seed)
    q = system.normalize(system.neutral() + 0.1 * rng.normal(size=system.nq))
    return system.assemble(guess=q, u=rng.normal(size=system.nu))


# -- rows against differences --------------------------------------------------------------------------------------
def pose(t: float, phase: float) -> tuple[np.ndarray, np.ndarray]:
    """A smooth motion of a body in space: rotation and origin."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_euler("xyz", [0.3 * np.sin(1.1 * t + phase), 0.4 * np.cos(0.7 * t), 0.5 * t + phase])
    return turn.as_matrix(), np.array([np.sin(t + phase), 0.5 * np.cos(1.3 * t), 0.7 + 0.3 * np.sin(0.9 * t - phase)])


def slope(f: object, t: float, h: float = 1e-3) -> np.ndarray:
    """d/dt by differences of order six."""
    values = [np.asarray(f(t + k * h)) for k in (-3, -2, -1, 1, 2, 3)]
    return sum(c * v for c, v in zip((-1, 9, -45, 45, -9, 1), values, strict=True)) / (60.0 * h)


def side(t: float, phase: float, arm: np.ndarray) -> tuple[Side, np.ndarray]:
    """A side of a constraint, and the motion [angular; linear] of its body's origin."""
    turn, origin = pose(t, phase)
    rate = slope(lambda x: pose(x, phase)[0], t) @ turn.T
    omega = np.array([rate[2, 1], rate[0, 2], rate[1, 0]])
    velocity = slope(lambda x: pose(x, phase)[1], t)
    at = turn @ arm
    vectors = [origin + at, at, *turn.T, omega, velocity + np.cross(omega, at)]
    return Side(*(Vector(*v.tolist()) for v in vectors)), np.concatenate([omega, velocity])


@pytest.mark.parametrize("kind", (
    bc.RollingBall(0.2), bc.RollingDisk(0.3), bc.KnifeEdge(), bc.Distance(lambda t: 1.0 + 0.3 * bc.math.sin(t)),
    bc.PointOnPlane("z", lambda t: 0.2 * t + 0.1 * t * t), bc.Angle(lambda t: 1.0 + 0.2 * bc.math.sin(2.0 * t))),
    ids=lambda kind: type(kind).__name__)
def test_rows_are_derivatives_of_each_other(kind: object) -> None:
    """Value, rate and acceleration of every row along motions of both bodies that nothing restrains."""
    from bellcrank.mechanism.constraint_rows import at_time

    arms = np.array([0.2, -0.1, 0.3]), np.array([-0.1, 0.4, 0.2])

    def rows(t: float) -> tuple[list, np.ndarray]:
        (first, one), (second, two) = side(t, 0.2, arms[0]), side(t, 1.3, arms[1])
        made = kind.closure_rows(first, second, at_time(kind.constants(), t))
        return made, np.array([one @ [*row.first.moment, *row.first.force] + two @ [*row.second.moment,
                               *row.second.force] + row.partial for row in made])

    t = 0.4
    made, rates = rows(t)
    first, second = (slope(lambda x, p=p, a=a: side(x, p, a)[1], t, 1e-2)
                     for p, a in zip((0.2, 1.3), arms, strict=True))
    for k, row in enumerate(made):
        if k < len(made) - getattr(kind, "nonholonomic", 0):
            assert abs(slope(lambda x, k=k: rows(x)[0][k].value, t) - rates[k]) < 1e-9
        else:
            assert row.value == 0.0
        accelerated = first @ [*row.first.moment, *row.first.force] + second @ [*row.second.moment, *row.second.force]
        assert abs(slope(lambda x, k=k: rows(x)[1][k], t, 1e-2) - (accelerated - row.gamma)) < 1e-8


# -- all methods -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MACHINES)
def test_methods_agree(name: str) -> None:
    machine = MACHINES[name]()
    oracle = bc.compile(machine, "dense", "numpy")
    state = moving(oracle)
    assert np.abs(oracle.loop_error(state)).max() < 1e-12
    assert np.abs(oracle.loop_rate_error(state)).max() < 1e-12
    tau = np.random.default_rng(0).normal(size=oracle.nu)
    expected = oracle.forward_dynamics(state, tau)
    left = bc.analyze.loop_acceleration_error(oracle, state.q, state.u, expected)
    assert np.abs(left).max() < 1e-12 * (1.0 + np.abs(expected).max())
    for method in METHODS:
        try:
            found = bc.compile(machine, method, "numpy").forward_dynamics(state, tau)
        except bc.ModelError as refusal:
            assert method in ("reduction", "complement")
            assert "elimination" in str(refusal)
            continue
        assert np.abs(found - expected).max() < 1e-11 * (1.0 + np.abs(expected).max()), method


@pytest.mark.parametrize("schedule", ("unrolled", "rolled"))
def test_schedules_agree(schedule: str) -> None:
    machine = robot()
    oracle, system = bc.compile(machine, "dense", "numpy"), bc.compile(machine, "elimination", schedule=schedule)
    state, tau = moving(oracle), np.random.default_rng(0).normal(size=oracle.nu)
    expected = oracle.forward_dynamics(state, tau)
    assert np.abs(system.forward_dynamics(state, tau) - expected).max() < 1e-11 * (1.0 + np.abs(expected).max())
    drives = system.inverse_dynamics(state, expected)
    assert np.abs(oracle.forward_dynamics(state, drives) - expected).max() < 1e-10 * (1.0 + np.abs(expected).max())


# -- closed forms ----------------------------------------------------------------------------------------------------
def test_ball_on_a_slope() -> None:
    system = bc.compile(ball(0.3))
    udot = system.forward_dynamics(system.assemble(guess=[1, 0, 0, 0, 0.1, 0.2, R]))
    assert np.abs(udot[3:] - [5.0 / 7.0 * G * np.sin(0.3), 0.0, 0.0]).max() < 50 * EPS * G


def test_ball_on_a_turntable() -> None:
    """The centre of a ball on a disk that turns at W goes round at 2/7 W, wherever it begins."""
    m = bc.Mechanism("turntable", gravity=(0.0, 0.0, -G))
    table = m.add_body("table", bc.Inertia.box(1.0, (1.0, 1.0, 0.1)))
    m.add_joint("motor", bc.Revolute("z"), m.ground, table)
    m.prescribe("motor", lambda t: 3.0 * t)
    body = m.add_body("ball", bc.Inertia(M, (0, 0, 0), 0.4 * M * R * R))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_constraint("floor", bc.RollingBall(R), table, body)
    system = bc.compile(m)
    state = system.assemble(guess=[0, 1, 0, 0, 0, 0.5, 0.2, R], u=[0, 1.0, -2.0, 0.4, 0.3, 0, 0], t=0.2)
    velocity = system.velocity(state, "ball")[3:]
    udot = system.forward_dynamics(state)
    acceleration = system.acceleration(state, udot, "ball")[3:]
    assert np.abs(acceleration - 2.0 / 7.0 * 3.0 * np.array([-velocity[1], velocity[0], 0.0])).max() < 1e-13
    period = 2.0 * np.pi / (2.0 / 7.0 * 3.0)
    run = system.simulate(state, duration=period, stepper="rk8", step=period / 800)
    assert np.abs(run.q.values[-1, 5:] - state.q[5:]).max() < 1e-9


def steady(lean: float, turn: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Coordinates and speeds of a disk that goes round steadily; its axis is inclined by `lean` to the vertical.

    (C + m r^2) s W sin a - A W^2 sin a cos a + m g r cos a = 0 with the spin s about its axis and the turn W.
    """
    a, c = M * R * R / 4, M * R * R / 2
    spin = (a * turn**2 * np.sin(lean) * np.cos(lean) - M * G * R * np.cos(lean)) / (
        (c + M * R * R) * turn * np.sin(lean))
    half = 0.5 * (lean - np.pi / 2)  # about x: the axis y of the disk comes to lie at `lean` from the vertical
    up, axis = np.sin(lean), np.array([0.0, np.sin(lean), np.cos(lean)])
    steep = np.array([0.0, -np.cos(lean), np.sin(lean)])  # in the disk, upwards
    q = np.array([np.cos(-half), np.sin(-half), 0, 0, 0, 0, R * up])
    omega = turn * np.sin(lean) * steep + spin * axis
    velocity = R * np.cross(omega, steep)
    rotation = np.array([[1, 0, 0], [0, np.sin(lean), -np.cos(lean)], [0, np.cos(lean), np.sin(lean)]])
    return q, np.concatenate([rotation.T @ omega, rotation.T @ velocity]), R * spin / turn


@pytest.mark.parametrize("method", ("elimination", "momenta", "kane"))
def test_disk_goes_round_steadily(method: str) -> None:
    system = bc.compile(disk(), method)
    q, u, radius = steady(1.2, 4.0)
    state = system.assemble(guess=q, u=u)
    assert max(np.abs(state.q - q).max(), np.abs(state.u - u).max()) < 1e-14
    run = system.simulate(state, duration=2.0 * np.pi / 4.0, stepper="rk8", step=2.0 * np.pi / 4.0 / 300)
    path = run.kinematics("disk")["position"].values
    assert np.ptp(path[:, 2]) < 1e-9
    half = path[len(path) // 2]
    assert abs(np.linalg.norm(half - path[0]) - 2.0 * abs(radius)) < 1e-9
    assert np.abs(path[-1] - path[0]).max() < 1e-9


@pytest.mark.parametrize("closing", ("position", "velocity", "none"))
def test_disk_keeps_its_energy_and_does_not_slip(closing: str) -> None:
    system = bc.compile(disk())
    state = system.assemble(guess=[np.cos(0.15), np.sin(0.15), 0, 0, 0, 0, R], u=[0.1, 6.0, 0.4, 0, 0, 0])
    run = system.simulate(state, duration=2.0, stepper="rk8", step=0.002, closing=closing)
    assert run.attrs["energy_exchange"] == "none"
    assert np.abs(run.energy()["drift"].values).max() < 1e-9
    assert np.abs(system.loop_rate_error(run.q.values, run.u.values)).max() < 1e-8
    assert np.abs(system.loop_error(run.q.values)).max() < 1e-8


def test_sleigh() -> None:
    """Chaplygin: v = V tanh(l t), c w = V / cosh(l t), c^2 = (I + m a^2) / m, l = V a / c^2, w(0) = V / c."""
    ahead, inertia, fast = 0.4, 0.3, 1.7
    system = bc.compile(sleigh(ahead, inertia))
    c = np.sqrt((inertia + M * ahead**2) / M)
    state = system.assemble(u={"ice": _planar(system, fast / c)})
    run = system.simulate(state, duration=2.0, stepper="rk8", step=0.01)
    rate = fast * ahead / c**2
    velocity = system.velocity(run.q.values, run.u.values, "sleigh")
    forward = (system.pose(run.q.values, "sleigh").rotation[..., 0] * velocity[:, 3:]).sum(axis=-1)
    t = run["time"].values
    assert np.abs(velocity[:, 2] - fast / c / np.cosh(rate * t)).max() < 1e-8
    assert np.abs(forward - fast * np.tanh(rate * t)).max() < 1e-8


def _planar(system: bc.System, turn: float) -> list[float]:
    """Speeds of a planar joint that turns in place."""
    return [turn if "angle" in name else 0.0 for name in system.speed_names]


# -- what else looks at constraints ----------------------------------------------------------------------------------
def test_positions_are_closed_without_them() -> None:
    """Rolling binds no coordinate: a ball is put anywhere on its plane, turned in any way."""
    system = bc.compile(ball())
    assert system.dof == 3
    turn = np.array([0.5, 0.5, -0.5, 0.5])
    state = system.assemble(guess=[*turn, 1.3, -0.4, R])
    assert np.abs(state.q - [*turn, 1.3, -0.4, R]).max() < 1e-15
    lifted = system.assemble(guess=[*turn, 1.3, -0.4, R + 0.1])
    assert np.abs(lifted.q - state.q).max() < 1e-12
    q, u = system.project(state.q + [0, 0, 0, 0, 0, 0, 1e-4], np.ones(6))
    assert np.abs(system.loop_error(q)).max() < 1e-12
    assert np.abs(system.loop_rate_error(q, u)).max() < 1e-12


@pytest.mark.parametrize("backend", ("llvm", "numpy"))
def test_the_nearest_position_may_slip(backend: str) -> None:
    """The way from a guess to the nearest closed position is normal to the constraint on positions alone."""
    system = bc.compile(disk(), backend=backend)
    guess = system.normalize(np.array([0.9, 0.35, 0.1, 0.2, 0.4, -0.3, 0.35]))
    state = system.assemble(guess=guess)
    sizes = system.model.tree.speed_sizes
    way = system.difference(guess, state.q) / sizes
    normal = bc.analyze.loop_jacobian(system, state.q)[0] * sizes
    across = way - normal * (way @ normal) / (normal @ normal)
    assert np.linalg.norm(way) > 0.05
    assert np.linalg.norm(across) < 0.03 * np.linalg.norm(way)  # NEAREST, and the normal turns on the way


def test_constraints_on_positions_are_kept_rather_than_those_on_speeds() -> None:
    system = bc.compile(cart(gear=True))
    names = system.plans.loops.row_names
    assert [names[r] for r in system.plans.general().kept] == ["rack"]
    assert bc.compile(cart()).dof == 1


def test_wheels_of_a_parameter_and_batches() -> None:
    m = bc.Mechanism("coin", gravity=(0.0, 0.0, -G))
    r = m.parameter("r", R)
    body = m.add_body("coin", bc.Inertia(M, (0, 0, 0), (0.04, 0.08, 0.04)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_constraint("floor", bc.RollingDisk(r), m.ground, body)
    many = bc.compile(m).with_parameters(r=np.array([0.2, 0.3, 0.5]))
    states = [bc.compile(m).with_parameters(r=x).assemble(guess=[0.98, 0.2, 0, 0, 0, 0, x], u=np.ones(6))
              for x in (0.2, 0.3, 0.5)]
    q, u = (np.array([getattr(s, name) for s in states]) for name in "qu")
    found = many.forward_dynamics(q, u)
    for k, x in enumerate((0.2, 0.3, 0.5)):
        alone = bc.compile(m, "dense", "numpy").with_parameters(r=x).forward_dynamics(q[k], u[k])
        assert np.abs(found[k] - alone).max() < 1e-11 * (1.0 + np.abs(alone).max())
    assert np.abs(many.loop_error(q)).max() < 1e-12


def test_bad_input() -> None:
    for make, said in ((lambda: bc.RollingBall(0.0), "greater than 0"),
                       (lambda: bc.RollingDisk(-1.0), "greater than 0"),
                       (lambda: bc.RollingBall(lambda t: t), "no function of time"),
                       (lambda: bc.KnifeEdge("w"), "KnifeEdge across"), (lambda: bc.RollingDisk("x"), "not a number")):
        with pytest.raises(bc.ModelError, match=said):
            make()


# -- derivatives and linear models -----------------------------------------------------------------------------------
def sloped(f: object, n: int, h: float = 1e-4) -> np.ndarray:
    """Derivatives of a function of n numbers at zero, by differences of order four."""
    return np.stack([(8.0 * (f(h * e) - f(-h * e)) - f(2 * h * e) + f(-2 * h * e)) / (12.0 * h) for e in np.eye(n)], -1)


@pytest.mark.parametrize("name", MACHINES)
def test_closed_derivatives_by_differences(name: str) -> None:
    """Columns by q displace a speed that can be chosen, the independent speeds kept, with loops closed and no slip."""
    system = bc.compile(MACHINES[name](), backend="numpy")
    state, rng = moving(system), np.random.default_rng(3)
    tau, named = rng.normal(size=system.nu), list(system.speed_names)
    found = system.derivatives("forward_dynamics", state, tau, by=("q", "u"))
    placed, independent = ([named.index(x) for x in found.columns[by]] for by in "qu")
    slip = int((~system.plans.loops.on_positions[list(system.plans.general().kept)]).sum())
    assert len(independent) == system.dof
    assert len(placed) == system.dof + slip
    chart = Chart.at(system, state.q, state.t, wanted=placed)

    def there(z: np.ndarray, v: np.ndarray) -> np.ndarray:
        q = chart.displaced(z[None])[0][0]
        return system.forward_dynamics(q, chart.speeds(q, state.u[independent] + v), tau)

    still = np.zeros(len(placed)), np.zeros(len(independent))
    by_q, by_u = (sloped(lambda z: there(z, still[1]), len(placed)), sloped(lambda v: there(still[0], v), system.dof))
    assert np.abs(found["q"] - by_q).max() < 1e-9 * (1.0 + np.abs(by_q).max())
    assert np.abs(found["u"] - by_u).max() < 1e-9 * (1.0 + np.abs(by_u).max())
    weights = rng.normal(size=system.nu)
    back = system.derivatives("forward_dynamics", state, tau, by=("q", "u"), weights=weights)
    assert np.abs(back["q"] - weights @ found["q"]).max() < 1e-11 * (1.0 + np.abs(by_q).max())


@pytest.mark.parametrize("name", ("disk", "robot"))
def test_closed_derivatives_of_needed_forces(name: str) -> None:
    """Forces that the independent joints need for a motion that neither opens loops nor slips."""
    system = bc.compile(MACHINES[name](), backend="numpy")
    state = moving(system)
    udot = system.forward_dynamics(state, np.random.default_rng(3).normal(size=system.nu))
    found = system.derivatives("inverse_dynamics", state, udot, by=("q", "udot"))
    placed, independent = ([list(system.speed_names).index(x) for x in found.columns[by]] for by in ("q", "udot"))
    chart = Chart.at(system, state.q, state.t, wanted=placed)

    def there(z: np.ndarray) -> np.ndarray:
        q = chart.displaced(z[None])[0][0]
        u = chart.speeds(q, state.u[independent])
        return system.inverse_dynamics(q, u, chart.closer.accelerations(q, u, udot))

    expected = sloped(there, len(placed))
    assert np.abs(found["q"] - expected).max() < 1e-8 * (1.0 + np.abs(expected).max())


def test_refusals_say_what_was_asked() -> None:
    system = bc.compile(sleigh(), backend="numpy")
    with pytest.raises(bc.StateError, match=r"of inverse_dynamics by q, u along the closed machine: q\[0\]"):
        system.derivatives("inverse_dynamics", np.full(3, np.inf), np.zeros(3), np.zeros(3), by=("q", "u"))


def test_directions_that_do_not_determine_the_motion_are_refused() -> None:
    """Across its blade a sleigh cannot move, so that nothing changes with that speed alone."""
    system = bc.compile(sleigh(), backend="numpy")
    state = system.assemble(guess={"ice": [0.0, 0.0, 0.5 * np.pi]}, u={"ice": [0.0, 0.3, 0.7]})
    with pytest.raises(bc.SingularError, match=r"ice\.x, ice\.angle do not determine"):
        system.derivatives("forward_dynamics", state, by="q")
    assert np.isfinite(bc.analyze.linearize(system, state).A).all()


def coin(normal: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> bc.Mechanism:
    """A disk by place, yaw, lean and spin: carriers do not spin, so that steady motions are steady in coordinates. Its
    radius "r" is a parameter."""
    m = bc.Mechanism("coin", gravity=(0.0, 0.0, -G))
    for name in ("track", "lift", "carrier"):
        m.add_body(name, bc.Inertia())
    m.add_body("disk", bc.Inertia(M, (0, 0, 0), (M * R * R / 4, M * R * R / 2, M * R * R / 4)))
    m.add_joint("place", bc.Planar("z"), m.ground, "track")
    m.add_joint("height", bc.Prismatic("z"), "track", "lift")
    m.add_joint("lean", bc.Revolute("x"), "lift", "carrier")
    m.add_joint("spin", bc.Revolute("y"), "carrier", "disk")
    m.add_constraint("floor", bc.RollingDisk(m.parameter("r", R), normal), m.ground, "disk")
    return m


def test_a_parameter_moves_what_positions_determine() -> None:
    """A larger wheel stands higher over the same place, as if it slipped on this slope; speeds that are not independent
    follow."""
    system = bc.compile(coin((0.3, 0.0, 1.0)), backend="numpy")
    place = {"place": [0.1, 0.2, 0.3], "lean": 0.4, "spin": 0.5}
    state = system.assemble(q=place, u={"place.angle": 1.0, "lean": -0.7, "spin": 3.0})
    found = system.derivatives("forward_dynamics", state, by=("q", "u", "r"))
    assert set(found.columns["q"]) == {x for x in system.speed_names if x != "height.slide"}
    kept = {x: float(state.u[system.speed_names.index(x)]) for x in found.columns["u"]}

    def changed(more: np.ndarray) -> np.ndarray:
        other = system.with_parameters(r=R + float(more[0]))
        return other.forward_dynamics(other.assemble(q=place, u=kept))

    assert np.abs(found["r"] - sloped(changed, 1)[:, 0]).max() < 1e-8


def test_sensitivities_of_a_run() -> None:
    """By where a sleigh begins and how fast it is."""
    system = bc.compile(sleigh(), backend="numpy")
    state = moving(system)
    run = system.simulate(state, 0.02, step=0.01, sensitivities=("q0", "u0"))
    assert [run.sizes["by_q0"], run.sizes["by_u0"]] == [3, 2]
    chart = Chart.at(system, state.q, 0.0, wanted=[list(system.speed_names).index(str(x)) for x in run.by_q0.values])

    def end(z: np.ndarray) -> np.ndarray:
        q = chart.displaced(z[None, :3])[0][0]
        u = chart.speeds(q, state.u[list(chart.independent)] + z[3:])
        return np.asarray(system.simulate((q, u), 0.02, step=0.01).q.values[-1])

    found = np.hstack([run.d_q_q0.values[-1], run.d_q_u0.values[-1]])
    assert np.abs(found - sloped(end, 5, 1e-3)).max() < 1e-10


@pytest.mark.parametrize("share", (0.0, 0.9, 1.1))
def test_upright_disk_at_speed(share: float) -> None:
    """A rolling disk is stable above w^2 = A m g r / (C (C + m r^2)), which is g / (3 r) of a thin one:
    (A + m r^2) l^2 = m g r - C (C + m r^2) w^2 / A."""
    a, c, arm = M * R * R / 4, M * R * R / 2, M * R * R
    spin = share * np.sqrt(G / (3.0 * R))
    system = bc.compile(coin(), backend="numpy")
    state = system.assemble(guess={"height": R}, u={"spin": spin, "place": [spin * R, 0, 0], "lean": 0.0})
    model = bc.analyze.linearize(system, state)
    assert len(model.states) == 5 + 3
    assert model.error == 0.0
    rate = np.sqrt((M * G * R - c * (c + arm) * spin**2 / a) / (a + arm) + 0j)
    values = model.eigenvalues[np.argsort(np.abs(model.eigenvalues))]
    assert np.abs(values[:6]).max() < 1e-6
    assert np.abs(np.sort_complex(values[6:]) - np.sort_complex([rate, -rate])).max() < 1e-12
    found = bc.analyze.modes(system, state, damped=True)
    assert found.unstable.any() == (share < 1.0)


def test_disk_on_a_circle_and_other_coordinates() -> None:
    """Small motions about a steady circle, with the lean a, the turn W and the spin n: from (A + m r^2) a'' =
    A W^2 sin a cos a - (C + m r^2) n W sin a - m g r cos a, A sin a W' = (C n - 2 A W cos a) a' and
    (C + m r^2) n' = m r^2 W a' sin a. Displacements may be named in any order; those not named are chosen."""
    system = bc.compile(coin(), backend="numpy")
    lean, turn = 1.2, 4.0
    s, c, a, b, arm = np.sin(lean), np.cos(lean), M * R * R / 4, M * R * R / 2, M * R * R
    q, _, radius = steady(lean, turn)
    spin = radius * turn / R
    stiff = a * turn**2 * (c * c - s * s) - (b + arm) * spin * turn * c + M * G * R * s + (
        2 * a * turn * c - (b + arm) * spin) * (b * spin - 2 * a * turn * c) / a - arm * (turn * s)**2
    rate = np.sqrt(-stiff / (a + arm))
    state = system.assemble(guess={"lean": 0.5 * np.pi - lean, "height": q[6]}, u={
        "lean": 0.0, "spin": spin - turn * c, "place.angle": turn})
    for names in (None, ["lean", "spin", "place.angle"], ["place.angle", "lean", "spin", "place.x"],
                  ["spin", "place.angle", "lean", "place.x", "place.y"]):
        model = bc.analyze.linearize(system, state, coordinates=names)
        assert np.abs(model.rate[5:]).max() < 1e-12
        values = np.sort(np.abs(model.eigenvalues))
        assert values[5] < 1e-5
        assert np.abs(values[6:] - rate).max() < 1e-12
    with pytest.raises(bc.ModelError, match="3 speeds"):
        bc.analyze.linearize(system, state, coordinates=["lean"])
    with pytest.raises(bc.ModelError, match="displacements of 5"):
        bc.analyze.linearize(system, state, coordinates=["lean", "spin", "place", "height"])
    several = bc.analyze.linearize(system, (np.stack([state.q] * 2), np.stack([state.u] * 2)))
    assert several.A.shape == (2, 8, 8)


@pytest.mark.parametrize("name", ("sleigh", "robot", "driven"))
def test_linear_models_of_moving_machines(name: str) -> None:
    """xdot = rate + A x in coordinates that are numbers: differences of (u, udot) over closed states; outputs too."""
    machine = robot() if name == "robot" else sleigh()
    if name == "driven":
        machine = robot()
        machine.prescribe("motor", lambda t: 0.3 * bc.math.sin(2.0 * t))
    system = bc.compile(machine, backend="numpy")
    state = system.assemble(guess=moving(system), u=np.random.default_rng(1).normal(size=system.nu), t=0.2)
    model = bc.analyze.linearize(system, state)
    placed, independent = list(model.chart.placed), list(model.chart.independent)

    def rate(x: np.ndarray) -> np.ndarray:
        q, u = (near := model.nearby(x))
        t = near.t
        return np.concatenate([u[placed], system.forward_dynamics(q, u, t=t)[independent], q, u])

    expected = sloped(rate, len(model.states))
    found = np.vstack([model.A, model.C])
    assert np.abs(found - expected).max() < 1e-9 * (1.0 + np.abs(expected).max())
    assert np.abs(rate(np.zeros(len(model.states)))[:len(model.A)] - model.rate).max() < 1e-11


def test_large_machines_that_roll() -> None:
    """Rolled into loops: the same linear models and derivatives."""
    small, large = (bc.compile(robot(), schedule=schedule) for schedule in ("unrolled", "rolled"))
    state = moving(small)
    models = [bc.analyze.linearize(system, state) for system in (small, large)]
    assert models[0].states == models[1].states
    assert np.abs(models[0].A - models[1].A).max() < 1e-7 * np.abs(models[0].A).max()
    found, wanted = (system.derivatives("forward_dynamics", state, by="q")["q"] for system in (large, small))
    assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_machines_that_roll_at_rest() -> None:
    system = bc.compile(disk(), backend="numpy")
    upright = system.assemble(guess=[1, 0, 0, 0, 0, 0, R])
    model = bc.analyze.linearize(system, upright)  # an upright disk at rest falls like an inverted pendulum
    rate = np.sqrt(M * G * R / (M * R * R / 4 + M * R * R))
    assert abs(np.abs(model.eigenvalues.real).max() - rate) < 1e-12
    moving_on = system.assemble(guess=upright, u=[0, 5.0, 0, 5.0 * R, 0, 0])
    with pytest.raises(bc.StateError, match="damped=True"):
        bc.analyze.modes(system, moving_on)


def test_walks_over_positions_say_what_rolling_is_not() -> None:
    system = bc.compile(cart())
    with pytest.raises(bc.ModelError, match="'road' bind speeds, not positions"):
        bc.analyze.drive(system, {"rail": lambda t: t}, np.linspace(0.0, 1.0, 3))


def test_equilibrium_and_modes_at_rest() -> None:
    """A ball on a slope held by a spring vibrates along it with 7/5 of its mass."""
    m = ball(0.3)
    m.add_spring("spring", m.ground, "ball", (0, 0, R), (0, 0, 0), stiffness=20.0, length=0.2)
    system = bc.compile(m)
    state = bc.analyze.equilibrium(system, np.array([1, 0, 0, 0, 0.3, 0.1, R]))
    assert np.abs(system.forward_dynamics(state)).max() < 1e-11
    assert abs(state.q[4] - 0.2 - M * G * np.sin(0.3) / 20.0) < 1e-9
    found = bc.analyze.modes(system, state).angular
    assert np.abs(found - [0.0, np.sqrt(M * G * np.sin(0.3) / state.q[4] / (1.4 * M)),
                           np.sqrt(20.0 / (1.4 * M))]).max() < 1e-7


@pytest.mark.parametrize("name", ("disk", "sleigh"))
def test_stabilized_alike(name: str) -> None:
    """Baumgarte's terms of slipping speeds, by methods that have their own way to write constraints."""
    machine = MACHINES[name]()
    state = moving(bc.compile(machine, "dense", "numpy"))
    u = state.u + 0.01 * np.arange(len(state.u))
    found = [bc.compile(machine, method, "numpy", baumgarte=(3.0, 5.0)).forward_dynamics(state.q, u)
             for method in ("kane", "elimination")]
    plain = bc.compile(machine, "elimination", "numpy").forward_dynamics(state.q, u)
    assert np.abs(found[1] - found[0]).max() < 1e-10 * (1.0 + np.abs(plain).max())
    assert np.abs(found[1] - plain).max() > 1e-3


def test_a_ball_that_slips_is_caught() -> None:
    """Thrown without spin, it goes on at 5/7 of its speed when it begins to roll, with 5/7 of its energy."""
    m = ball()
    m.add_constraint("ice", bc.PointOnPlane("z", R), m.ground, "ball")
    system = bc.compile(m)
    start = system.release("floor").assemble(guess=[1, 0, 0, 0, 0, 0, R], u=[0, 0, 0, 3.0, 0, 0])
    run = system.release("floor").simulate(start, 0.2, step=1e-3, events=[
        bc.Event(lambda t, q, u: t - 0.105, "grip", action=bc.attach("floor"))])
    assert run.attrs["status"] == "finished", run.attrs["reason"]
    assert np.abs(run.u.values[-1] - [0, 3.0 * 5 / 7 / R, 0, run.u.values[-1, 3], 0, run.u.values[-1, 5]]).max() < 1e-10
    assert abs(np.linalg.norm(run.u.values[-1, 3:]) - 3.0 * 5 / 7) < 1e-10
    assert abs(float(run.attrs["energy_lost_in_events"]) - 0.5 * M * 9.0 * 2 / 7) < 1e-9


def test_a_stop_throws_the_wheel_back() -> None:
    """The impulse of a stop reaches the wheel through the road: all speeds turn round together."""
    system = bc.compile(cart())
    state = system.assemble(u={"rail": 1.0})
    run = system.simulate(state, 1.0, step=1e-2, events=bc.joint_limit("rail", upper=0.5, restitution=0.8))
    assert run.attrs["status"] == "finished", run.attrs["reason"]
    assert np.abs(run.u.values[-1] - [-0.8, -0.8 / R]).max() < 1e-10


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_exported_c(tmp_path: Path) -> None:
    system = bc.compile(sleigh())
    library = exported(system, ["forward_dynamics"], tmp_path, stepper="rk4")
    state = moving(system)
    expected = system.forward_dynamics(state)
    status, found, _ = library("forward_dynamics", {"q": state.q, "u": state.u, "tau": np.zeros(3)}, 3)
    assert status == 0
    assert np.abs(found - expected).max() < 1e-13 * (1.0 + np.abs(expected).max())
    y = np.concatenate([state.q, state.u])
    for _ in range(10):
        status, y, _ = library("step", {"y": y, "tau": np.zeros(3), "t": 0.0, "h": 0.01})
        assert status == 0
    run = system.simulate(state, 0.1, step=0.01)
    assert np.abs(y - np.concatenate([run.q.values[-1], run.u.values[-1]])).max() < 1e-12


def test_a_small_disk_rolls_wherever_it_was_guessed() -> None:
    """By its own size it is far below the plane: it is lifted, not laid flat."""
    m = bc.Mechanism("coin")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("disk", bc.Inertia.cylinder(0.1, 0.05, 0.01, "y")))
    m.add_constraint("floor", bc.RollingDisk(0.05), m.ground, "disk")
    system, rng = bc.compile(m, backend="numpy"), np.random.default_rng(3)
    for _ in range(6):
        turn = rng.normal(size=4)
        guess = np.concatenate([turn / np.linalg.norm(turn), rng.normal(size=2), [-rng.uniform(0.2, 0.6)]])
        state = system.assemble(guess, rng.normal(size=6))
        assert abs(system.loop_error(state)).max() < 1e-13 and abs(system.loop_rate_error(state)).max() < 1e-12
        assert np.isfinite(system.forward_dynamics(state)).all()
