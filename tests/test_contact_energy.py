"""Steps with rigid contacts make no energy, however fast bodies turn, and take none from what drives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from test_rigid_contact import hopper

STEP = 2e-3


def thrown(m: bc.Mechanism, n: int, spin: float = 3.0, seed: int = 0) -> tuple[bc.System, np.ndarray, np.ndarray]:
    """The machine, with its first body turned at random and thrown, n times."""
    system, rng = bc.compile(m), np.random.default_rng(seed)
    q, turn = np.repeat(system.neutral()[None], n, axis=0), rng.standard_normal((n, 4))
    q[:, :4], q[:, 6] = turn / np.linalg.norm(turn, axis=1, keepdims=True), 1.2
    u = np.zeros((n, system.nu))
    u[:, :6] = rng.standard_normal((n, 6)) * [spin, spin, spin, 1.0, 1.0, 1.0]
    return system, q, u


def rises(result: bc.Result) -> np.ndarray:
    """The largest of every state in a step, relative to what energy it ever had."""
    energy = result["energy"].values
    assert result.attrs["status"] == "finished" and np.isfinite(energy).all()
    return np.asarray(np.diff(energy, axis=0).max(axis=0) / np.ptp(energy, axis=0))


def chain(restitution: float, friction: float) -> bc.Mechanism:
    """A heavy capsule with two light balls behind it, which an impact throws to hundreds of rad/s."""
    m = bc.Mechanism("chain")
    m.add_shape(m.ground, bc.Plane(), bc.Pose.rpy((0, 0, 0), 0.2, -0.1, 0.0), role="collision", name="floor")
    last = m.ground
    for i, (mass, joint) in enumerate([(20.0, bc.Free()), (0.1, bc.Spherical()), (0.05, bc.Universal())]):
        body = m.add_body(f"body {i}", bc.Inertia.sphere(mass, 0.08))
        m.add_joint(f"joint {i}", joint, last, body, bc.Pose((0.2 if i else 0.0, 0, 0)), bc.Pose())
        m.add_shape(body, bc.Sphere(0.08) if i else bc.Capsule(0.08, 0.1), role="collision", name=f"shape {i}")
        m.add_contact(f"contact {i}", "floor", f"shape {i}", friction=friction, restitution=restitution)
        last = body
    return m


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")
@pytest.mark.parametrize(("restitution", "friction"), [(1.0, 0.5), (0.3, 0.0), (0.0, 0.9)])
def test_chains_that_are_thrown_make_no_energy(restitution: float, friction: float) -> None:
    """Also where joints turn by more than 0.1 rad in a step: impulses are right half way, and speeds are given back
    what kinetic energy has become more until its end."""
    system, q, u = thrown(chain(restitution, friction), 16)
    result = system.simulate((q, u), 1.0, stepper="moreau", step=STEP, output=STEP)
    assert np.abs(result["u"].values).max() * STEP > 0.1 and np.ptp(result["energy"].values) > 10.0
    assert rises(result).max() < 2e-6


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")
def test_machines_with_loops_that_are_thrown_make_no_energy() -> None:
    """A four-bar under a box; its loop stays closed."""
    m = bc.Mechanism("stool")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    base = m.add_body("base", bc.Inertia.box(1.0, (0.3, 0.2, 0.1)))
    foot = m.add_body("foot", bc.Inertia.sphere(0.2, 0.1))
    m.add_joint("free", bc.Free(), m.ground, base)
    for i, (x, length) in enumerate([(-0.1, 0.25), (0.1, 0.21)]):
        leg = m.add_body(f"leg {i}", bc.Inertia.box(0.1, (0.03, 0.03, 0.2), (0, 0, -0.1)))
        m.add_joint(f"hip {i}", bc.Revolute("y"), base, leg, bc.Pose((x, 0, -0.05)), bc.Pose())
        m.add_joint(f"knee {i}", bc.Revolute("y"), leg, foot, bc.Pose((0, 0, -length)), bc.Pose((1.2 * x, 0, 0)))
    for body, shape in ((base, bc.Box((0.3, 0.2, 0.1))), (foot, bc.Box((0.2, 0.05, 0.03)))):
        m.add_shape(body, shape, role="collision", name=f"shape of {body}")
        m.add_contact(f"contact of {body}", "floor", f"shape of {body}", friction=0.4, restitution=0.6)
    system, rng, states = bc.compile(m), np.random.default_rng(3), []
    for spin in (1.0, 4.0, 8.0, 10.0):
        turn = rng.standard_normal(4)
        states.append(system.assemble(q={"free": (*(turn / np.linalg.norm(turn)), 0.0, 0.0, 0.8), "hip 0": 0.2},
                                      u={"free": tuple(rng.standard_normal(6) * spin), "hip 0": spin}))
    state = np.array([s.q for s in states]), np.array([s.u for s in states])
    result = system.simulate(state, 0.8, stepper="moreau", step=STEP, output=STEP)
    assert np.abs(result["u"].values).max() * STEP > 0.05
    assert rises(result).max() < 2e-6 and result.attrs["largest_loop_error"] < 1e-12


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")  # the step is too long, as they say
@pytest.mark.parametrize(("backend", "duration"), [("llvm", 0.5), ("numpy", 0.05)])
def test_stops_that_a_step_would_pass(backend: str, duration: float) -> None:
    """A light arm at 100 rad/s, which turns by a radian in a step, and meets a stop so stiff that there would be
    more energy stored in it than there was: such a step is taken in pieces, alone and in a batch."""
    m = bc.Mechanism("flail")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    body = m.add_body("body", bc.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    arm = m.add_body("arm", bc.Inertia(0.02, (0.1, 0, 0), (1e-6, 7e-5, 7e-5)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_joint("hinge", bc.Revolute("y"), body, arm, bc.Pose((0.15, 0, 0)), bc.Pose())
    m.add_limit("stop", "hinge", -1.0, 1.0, stiffness=1e4)
    m.add_shape(body, bc.Box((0.3, 0.2, 0.1)), role="collision", name="box")
    m.add_contact("contact", "floor", "box", friction=0.5, restitution=0.3)
    system = bc.compile(m, backend=backend)
    q, u = np.repeat(system.neutral()[None], 2, axis=0), np.zeros((2, 7))
    q[:, 6], u[:, 6], u[:, 0] = 0.2, (100.0, 60.0), 1.0
    result = system.simulate((q, u), duration, stepper="moreau", step=0.01, output=0.01)
    energy = result["energy"].values
    assert (np.diff(energy, axis=0) < 1e-6 * energy[0]).all() and result.attrs["status"] == "finished"
    assert np.isfinite(result["contact_force"].values[1:]).all()
    assert np.abs(result["q"].sel(coordinate="hinge.angle").values).max() < 1.1
    alone = system.simulate((q[0], u[0]), duration, stepper="moreau", step=0.01, output=0.01)
    assert np.abs(alone["q"].values[:10] - result["q"].values[:10, 0]).max() < 1e-9


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")  # some roll away, faster and faster
def test_rounding_of_what_rests_is_no_energy() -> None:
    """A box and a capsule that come to rest on a slope, or roll down it: all of them go on."""
    m = bc.Mechanism("rest")
    m.add_shape(m.ground, bc.Plane(), bc.Pose.rpy((0, 0, 0), 0.15, -0.2, 0.0), role="collision", name="floor")
    for i, shape in enumerate((bc.Box((0.2, 0.15, 0.1)), bc.Capsule(0.05, 0.2))):
        body = m.add_body(f"body {i}", bc.Inertia.box(1.0 + i, ((0.2, 0.15, 0.1), (0.1, 0.1, 0.3))[i]))
        m.add_joint(f"free {i}", bc.Free(), m.ground, body)
        m.add_shape(body, shape, role="collision", name=f"shape {i}")
        m.add_contact(f"floor {i}", "floor", f"shape {i}", friction=0.9)
    m.add_contact("both", "shape 0", "shape 1", friction=0.9)
    system, rng, n = bc.compile(m), np.random.default_rng(0), 64
    q, u = np.repeat(system.neutral()[None], n, axis=0), rng.standard_normal((n, 12))
    for i in range(2):
        turn = rng.standard_normal((n, 4))
        q[:, 7 * i:7 * i + 4], q[:, 7 * i + 6] = turn / np.linalg.norm(turn, axis=1, keepdims=True), 0.35 + 0.5 * i
    result = system.simulate((q, u), 2.2, stepper="moreau", step=STEP, output=0.1)
    assert result.attrs["status"] == "finished"


def test_what_spins_flies_as_if_it_did_not() -> None:
    """A ball with 16 turns in a second, whose axes turn by 0.2 rad in a step: its speeds, in these axes, turn as they
    do. Above the floor, and on its way to it."""
    m = bc.Mechanism("ball")
    ball = m.add_body("ball", bc.Inertia.sphere(1.0, 0.1))
    m.add_joint("free", bc.Free(), m.ground, ball)
    m.add_shape(ball, bc.Sphere(0.1), role="collision", name="ball")
    m.add_shape(m.ground, bc.Plane(), role="collision", name="floor")
    m.add_contact("contact", "floor", "ball", friction=0.3)
    system = bc.compile(m)
    q, u = np.repeat(system.neutral()[None], 3, axis=0), np.zeros((3, 6))
    q[:, 6], u[:, 2], u[:, 3], u[:, 5] = (100.0, 5.0, 1.6), (100.0, 100.0, -50.0), 3.0, 3.0
    result = system.simulate((q, u), 0.8, stepper="moreau", step=STEP, output=0.2)
    t = result["time"].values[:, None]
    assert np.abs(result["q"].values[..., 4] - 3.0 * t).max() < 5e-4 and np.abs(result["q"].values[..., 5]).max() < 5e-4
    assert np.abs(result["q"].values[..., 6] - q[:, 6] - 3.0 * t + 0.5 * 9.81 * t**2).max() < 1e-4


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("by", ["motion", "loop"])
def test_a_bat_gives_what_it_gives(by: str, backend: str) -> None:
    """A ball at rest, hit by a body whose motion is prescribed, or by one that such a body pulls in a loop, leaves with
    1 + e times its speed: that is no energy made."""
    m = bc.Mechanism("bat", gravity=(0, 0, 0))
    bat, ball = (m.add_body(name, bc.Inertia.sphere(1.0, 0.1)) for name in ("bat", "ball"))
    m.add_joint("bat", bc.Prismatic("x"), m.ground, bat)
    m.add_joint("ball", bc.Prismatic("x"), m.ground, ball, bc.Pose((0.5, 0, 0)), bc.Pose())
    if by == "loop":
        cart, rod = (m.add_body(name, bc.Inertia.sphere(0.5, 0.1)) for name in ("cart", "rod"))
        m.add_joint("cart", bc.Prismatic("x"), m.ground, cart, bc.Pose((-0.5, 0.1, 0)), bc.Pose())
        m.add_joint("tail", bc.Revolute("z"), cart, rod)
        m.add_joint("head", bc.Revolute("z"), rod, bat, bc.Pose((0.5, -0.1, 0)), bc.Pose())
    m.prescribe("cart" if by == "loop" else "bat", lambda t: 3.0 * t)
    for name in ("bat", "ball"):
        m.add_shape(name, bc.Sphere(0.1), role="collision", name=f"round {name}")
    m.add_contact("hit", "round bat", "round ball", restitution=m.parameter("e", 0.5))
    kept = np.array([0.0, 0.5, 1.0])
    system = bc.compile(m, backend=backend)
    state = system.assemble(q={"ball": 0.0})
    q, u = (np.repeat(x[None], 3, axis=0) for x in (state.q, state.u))
    result = system.with_parameters(e=kept).simulate((q, u), 0.12, stepper="moreau", step=0.01, output=0.12)
    speeds = result["u"].sel(speed="ball.slide").values[-1]
    assert np.abs(speeds - 3.0 * (1.0 + kept)).max() < 1e-9


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_shaken_table_gives_to_what_it_hits_alone(backend: str) -> None:
    """A ball that spins in flight over a table which is shaken does not feel it; one that falls on it leaves with 1 + e
    times the speed that the table has there and then, also where it keeps all."""
    m = bc.Mechanism("shaken")
    for name, joint in (("table", bc.Prismatic("z")), ("ball", bc.Free())):
        m.add_body(name, bc.Inertia.sphere(1.0, 0.1))
        m.add_joint(name, joint, m.ground, name)
    m.prescribe("table", lambda t: 0.05 * bc.math.sin(20.0 * t))
    m.add_shape("table", bc.Plane(), role="collision", name="plane")
    m.add_shape("ball", bc.Sphere(0.1), role="collision", name="round")
    m.add_contact("hit", "plane", "round", friction=0.3, restitution=1.0)
    q, u = np.repeat([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0]], 2, axis=0), np.zeros((2, 7))
    q[1, 7], u[1, 6] = 0.3, -2.0
    u[0, 1:5] = 10.0, 20.0, 5.0, 1.0
    result = bc.compile(m, backend=backend).simulate((q, u), 0.1, stepper="moreau", step=1e-3, output=0.1)
    speed = result["u"].values[-1]
    assert np.abs(speed[0, 1:4] - u[0, 1:4]).max() < 1e-9
    assert np.linalg.norm(speed[0, 4:]) == pytest.approx(np.hypot(1.0, 9.81 * 0.1), abs=1e-4)
    met = 0.06537834  # s, where 0.2 - 2 t - g t^2 / 2 = 0.05 sin(20 t)
    leaves = 2.0 * np.cos(20.0 * met) + 2.0 + 9.81 * met
    assert speed[1, 6] == pytest.approx(leaves - 9.81 * (0.1 - met), abs=2e-4)


@pytest.mark.filterwarnings("ignore::bellcrank.SimulationWarning")
def test_motors_give_and_states_are_not_speeds() -> None:
    """Energy follows the work of a motor while a body spins by 0.1 rad and more in a step, and a state of the machine
    goes its own way through all impacts."""
    m = chain(0.5, 0.5)
    m.add_state("filter", lambda at: -2.0 * at.state("filter"), initial=40.0)
    system, q, u = thrown(m, 4)
    u[:, -1] = 40.0
    alone = system.simulate((q, u), 0.6, stepper="moreau", step=STEP, output=STEP)
    decays = alone["u"].sel(speed="filter.value").values / (40.0 * np.exp(-2.0 * alone["time"].values))[:, None]
    assert np.abs(decays - 1.0).max() < 1e-5
    q[:, 6] = 50.0
    tau = np.zeros(system.nu)
    tau[0] = 20.0
    flight = system.simulate((q, u), 0.4, stepper="moreau", step=STEP, output=STEP, tau=tau)
    power = 20.0 * flight["u"].values[..., 0]
    work = np.cumsum(0.5 * (power[1:] + power[:-1]) * STEP, axis=0)
    assert np.abs(flight["u"].values).max() * STEP > 0.1
    assert np.abs(np.diff(flight["energy"].values, axis=0).cumsum(axis=0) - work).max() < 1e-3 * work.max()


def test_stiff_springs_make_no_energy_in_impacts() -> None:
    """Inertia that steps add for springs and dampers is no energy of the machine."""
    stiffness, damping = np.geomspace(300.0, 3e5, 8), np.resize([0.0, 5.0, 50.0], 8)
    q, u = np.zeros((8, 2)), np.zeros((8, 2))
    q[:, 0], u[:, 0] = 0.36 + 0.03 * np.arange(8), -2.0 * np.arange(8)
    result = hopper("llvm").with_parameters(k=stiffness, d=damping).simulate((q, u), 0.4, stepper="moreau", step=STEP,
                                                                            output=STEP)
    assert rises(result).max() < 1e-8


def test_boxes_that_meet_make_no_energy() -> None:
    """Places of boxes jump from edge to edge between the middle and the end of a step: impulses act where velocities
    are measured all the same, and every cone problem is solved."""
    m = bc.Mechanism("boxes", gravity=(0, 0, 0))
    for i, size in enumerate([(0.2, 0.2, 0.2), (0.5, 0.1, 0.03)]):
        body = m.add_body(f"body {i}", bc.Inertia(1.0, (0, 0, 0), (0.007, 0.02, 0.022)))
        m.add_joint(f"free {i}", bc.Free(), m.ground, body)
        m.add_shape(body, bc.Box(size), role="collision", name=f"box {i}")
    m.add_contact("both", "box 0", "box 1", friction=0.8, restitution=0.3)
    rng, n = np.random.default_rng(1), 96
    turns = rng.standard_normal((n, 2, 4))
    q = np.concatenate([turns / np.linalg.norm(turns, axis=-1, keepdims=True), np.zeros((n, 2, 3))], axis=-1)
    q[:, 1, 4:] = 0.02 * rng.standard_normal((n, 3)) + (0.0, 0.0, 0.5)
    u = np.concatenate([4.0 * rng.standard_normal((n, 2, 3)), np.zeros((n, 2, 3))], axis=-1)
    u[:, 1, 5] = -3.0
    result = bc.compile(m).simulate((q.reshape(n, 14), u.reshape(n, 12)), 0.4, stepper="moreau", step=2e-3, output=2e-3)
    energy = result["energy"].values
    assert (energy[-1] < 0.95 * energy[0]).sum() > 10 and np.diff(energy, axis=0).max() < 1e-6
    assert result.attrs["contact_residual"] < 2e-10


@pytest.mark.parametrize(("shape", "inertia"), [
    (bc.Sphere(0.1), bc.Inertia.sphere(1.0, 0.1)), (bc.Capsule(0.05, 0.2), bc.Inertia.box(1.0, (0.1, 0.1, 0.3))),
    (bc.Box((0.2, 0.15, 0.1)), bc.Inertia.box(1.0, (0.2, 0.15, 0.1)))], ids=["ball", "capsule", "box"])
def test_what_spins_and_bounces_makes_no_energy(shape: Any, inertia: bc.Inertia) -> None:
    """Bodies that turn by 0.1 rad in a step keep as much as their restitution says, and no more; a ball without
    friction keeps all. Restitution and friction are parameters of a batch."""
    m = bc.Mechanism("spinning")
    body = m.add_body("body", inertia)
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_shape(body, shape, role="collision")
    m.add_shape(m.ground, bc.Plane(), bc.Pose.rpy((0, 0, 0), 0.2, -0.3, 0.0), role="collision")
    m.add_contact("floor", m.ground, body, friction=m.parameter("mu", 0.5), restitution=m.parameter("e", 0.5))
    n, rng = 48, np.random.default_rng(0)
    kept, friction = np.resize([0.0, 0.4, 0.8, 1.0, 7.0], n), np.resize([0.0, 0.2, 0.6], n)
    system = bc.compile(m).with_parameters(mu=friction, e=kept)
    q, turn = np.repeat(system.neutral()[None], n, axis=0), rng.standard_normal((n, 4))
    q[:, :4], q[:, 6] = turn / np.linalg.norm(turn, axis=1, keepdims=True), 0.4
    u = rng.standard_normal((n, 6)) * [20.0, 20.0, 20.0, 2.0, 2.0, 1.0]
    energy = system.simulate((q, u), 0.8, stepper="moreau", step=2e-3, output=2e-3)["energy"].values
    assert np.diff(energy, axis=0).max() < 1e-6
    if isinstance(shape, bc.Sphere):
        assert np.abs(energy[-1] - energy[0])[(kept >= 1.0) & (friction == 0.0)].max() < 2e-3
