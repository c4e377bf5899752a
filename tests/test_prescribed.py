"""Prescribed motion: joint coordinates that follow laws of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bellcrank as bc
from bellcrank import math as bm
from mechanisms import Part, Tree, build, examples, state, trees

WAYS = [("recursive", "numpy", "auto"), ("dense", "numpy", "auto"), ("recursive", "llvm", "unrolled"),
        ("recursive", "llvm", "rolled")]
Law = Callable[[Any], Any]

#: laws with their first and second derivatives, worked out by hand
LAWS: dict[str, tuple[Law, Law, Law]] = {
    "constant": (lambda t: 0.7, lambda t: 0.0, lambda t: 0.0),
    "linear": (lambda t: 1.0 - 2.0 * t, lambda t: -2.0, lambda t: 0.0),
    "powers": (lambda t: t**3 - t**2 / 4 + 2.0 / (1.0 + t), lambda t: 3 * t**2 - t / 2 - 2 / (1 + t)**2,
               lambda t: 6 * t - 0.5 + 4 / (1 + t)**3),
    "negative power": (lambda t: (1.0 + t)**-2, lambda t: -2 * (1 + t)**-3.0, lambda t: 6 * (1 + t)**-4.0),
    "sine": (lambda t: 0.5 * bm.sin(3.0 * t + 0.2), lambda t: 1.5 * np.cos(3 * t + 0.2),
             lambda t: -4.5 * np.sin(3 * t + 0.2)),
    "cosine of a square": (lambda t: bm.cos(t * t), lambda t: -2 * t * np.sin(t * t),
                           lambda t: -2 * np.sin(t * t) - 4 * t * t * np.cos(t * t)),
    "exponential": (lambda t: bm.exp(-2.0 * t), lambda t: -2 * np.exp(-2 * t), lambda t: 4 * np.exp(-2 * t)),
    "logarithm": (lambda t: bm.log(2.0 + t), lambda t: 1 / (2 + t), lambda t: -1 / (2 + t)**2),
    "root": (lambda t: bm.sqrt(1.0 + t), lambda t: 0.5 * (1 + t)**-0.5, lambda t: -0.25 * (1 + t)**-1.5),
    "half power": (lambda t: (1.0 + t)**0.5, lambda t: 0.5 * (1 + t)**-0.5, lambda t: -0.25 * (1 + t)**-1.5),
    "tangent": (lambda t: bm.tan(0.5 * t), lambda t: 0.5 / np.cos(0.5 * t)**2,
                lambda t: 0.5 * np.sin(0.5 * t) / np.cos(0.5 * t)**3),
    "hyperbolic tangent": (lambda t: bm.tanh(t - 0.1), lambda t: 1 / np.cosh(t - 0.1)**2,
                           lambda t: -2 * np.tanh(t - 0.1) / np.cosh(t - 0.1)**2),
    "ramp": (lambda t: bm.select_less(t, 0.5, 3.0 * t * t, 0.75 + 3.0 * (t - 0.5)),
             lambda t: np.where(t < 0.5, 6 * t, 3.0), lambda t: np.where(t < 0.5, 6.0, 0.0)),
}


def pair(second: bc.Joint | None = None) -> bc.Mechanism:
    """Two bodies; the first hinge is there to be driven."""
    m = bc.Mechanism("pair")
    crank = m.add_body("crank", bc.Inertia.box(1.5, (0.3, 0.1, 0.2), (0.1, 0.05, 0.0)))
    rod = m.add_body("rod", bc.Inertia.box(0.8, (0.4, 0.2, 0.1), (0.2, 0.0, 0.1)))
    m.add_joint("drive", bc.Revolute((0.1, 0.2, 1.0)), m.ground, crank, bc.Pose((0.1, 0.0, 0.3)))
    m.add_joint("knee", second or bc.Revolute("y"), crank, rod, bc.Pose((0.4, 0.1, 0.0)))
    return m


@pytest.mark.parametrize("way", WAYS[:1] + WAYS[2:], ids="-".join)
@pytest.mark.parametrize("name", list(LAWS))
def test_laws_and_their_derivatives(name: str, way: tuple[str, str, str]) -> None:
    """Position, rate and acceleration of the driven crank, at several times in one call."""
    law, first, second = LAWS[name]
    m = pair()
    m.prescribe("drive", law)
    system = bc.compile(m, *way[:2], schedule=way[2])
    assert system.dof == 1
    assert system.nu == 2
    t = np.array([0.0, 0.3, 0.499, 0.501, 0.9])
    q, u = np.array([99.0, 0.4]), np.array([-99.0, 0.3])  # the driven entries are ignored
    udot = system.forward_dynamics(q, u, t=t)
    np.testing.assert_allclose(udot[:, 0], np.broadcast_to(second(t), t.shape), atol=1e-12)
    axis = np.array([0.1, 0.2, 1.0]) / np.sqrt(1.05)
    omega = system.velocity(q, u, "crank", t=t)[:, :3]
    np.testing.assert_allclose(omega, np.broadcast_to(first(t), t.shape)[:, None] * axis, atol=1e-12)
    values = np.broadcast_to(np.asarray(law(t) if name != "half power" else np.sqrt(1.0 + t)), t.shape)
    for value, rotation in zip(values, system.pose(q, "crank", t=t).rotation, strict=True):
        np.testing.assert_allclose(rotation, bc.Pose.about(axis, float(value)).rotation, atol=1e-12)



def test_a_number_holds_still() -> None:
    held, fixed = pair(), pair()
    held.prescribe("drive", 0.7)
    fixed.prescribe("drive", LAWS["constant"][0])
    a, b = (bc.compile(m, backend="numpy") for m in (held, fixed))
    q, u, tau = [0.0, 0.4], [5.0, 0.3], [0.0, 1.0]
    assert np.array_equal(a.forward_dynamics(q, u, tau), b.forward_dynamics(q, u, tau))
    assert a.forward_dynamics(q, u, tau)[0] == 0.0


# -- joints with several coordinates ---------------------------------------------------------------
@pytest.mark.parametrize(("joint", "coordinates"), [
    (bc.Cylindrical("z"), ("angle", "slide")), (bc.Universal("x", "y"), ("angle1", "angle2")),
    (bc.Planar((1.0, 2.0, 3.0)), ("x", "y", "angle"))], ids=str)
def test_coordinates_by_name_by_index_and_all_together(joint: bc.Joint, coordinates: tuple[str, ...]) -> None:
    laws: list[Law] = [lambda t, k=k: 0.3 * bm.sin((k + 1.0) * t + 0.4 * k) for k in range(len(coordinates))]
    named, numbered, whole = pair(joint), pair(joint), pair(joint)
    for i, (name, law) in enumerate(zip(coordinates, laws, strict=True)):
        named.prescribe("knee", law, name)
        numbered.prescribe("knee", law, i)
    whole.prescribe("knee", lambda t: [law(t) for law in laws])
    systems = [bc.compile(m, backend="numpy") for m in (named, numbered, whole)]
    q, u = systems[0].random_state(np.random.default_rng(0))
    t = 0.8
    results = [s.forward_dynamics(q, u, t=t) for s in systems]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    assert [s.dof for s in systems] == [1, 1, 1]
    expected = [-0.3 * (k + 1.0)**2 * np.sin((k + 1.0) * t + 0.4 * k) for k in range(len(coordinates))]
    np.testing.assert_allclose(results[0][1:], expected, atol=1e-14)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("driven", ["x", "y", "angle"])
def test_one_coordinate_of_a_planar_joint(driven: str, way: tuple[str, str, str]) -> None:
    """The driven coordinate follows, the others obey M_ff udot_f = tau_f - h_f - M_fd udot_d."""
    m, free = pair(bc.Planar("y")), pair(bc.Planar("y"))
    m.prescribe("knee", lambda t: 0.2 * bm.cos(2.0 * t), driven)
    system, other = bc.compile(m, *way[:2], schedule=way[2]), bc.compile(free, backend="numpy")
    at = 1 + ("x", "y", "angle").index(driven)
    q, u = other.random_state(np.random.default_rng(2))
    tau, t = np.array([0.5, -1.0, 2.0, 0.3]), 0.3
    q[at], u[at], a = 0.2 * np.cos(2 * t), -0.4 * np.sin(2 * t), -0.8 * np.cos(2 * t)
    rest = [i for i in range(4) if i != at]
    matrix, bias = other.mass_matrix(q), other.bias(q, u)
    wanted = np.linalg.solve(matrix[np.ix_(rest, rest)], (tau - bias - matrix[:, at] * a)[rest])
    got = system.forward_dynamics(q, u, tau, t=t)
    np.testing.assert_allclose(got[rest], wanted, rtol=1e-11, atol=1e-11)
    assert abs(got[at] - a) < 1e-15
    drive = system.drive_forces(q, u, tau, t=t)
    np.testing.assert_allclose(drive[rest], tau[rest], atol=1e-12)
    np.testing.assert_allclose(drive[at], (matrix @ got + bias)[at], rtol=1e-11)


def test_inverse_dynamics_takes_the_accelerations_of_the_laws() -> None:
    m = pair()
    m.prescribe("drive", LAWS["sine"][0])
    system = bc.compile(m, backend="numpy")
    given_one, given_other = ([x, 0.4] for x in (0.0, 77.0))
    first = system.inverse_dynamics([0, 0.1], [0, 0.2], given_one, t=0.5)
    assert np.array_equal(first, system.inverse_dynamics([0, 0.1], [0, 0.2], given_other, t=0.5))
    q, u, udot = ([float(f(0.5)), x] for f, x in zip(LAWS["sine"], (0.1, 0.2, 0.4), strict=True))
    np.testing.assert_allclose(first, bc.compile(pair(), backend="numpy").inverse_dynamics(q, u, udot), rtol=1e-12)


# -- quaternion joints -----------------------------------------------------------------------------
AXIS = np.array([2.0, -1.0, 2.0]) / 3.0


def spin(t: Any, size: float = 1.0) -> list[Any]:
    """A turn about `AXIS` by 0.5 + t + t^3; the quaternion need not be unit."""
    half = 0.25 + 0.5 * t + 0.5 * t * t * t
    scale = size + (size - 1.0) * t
    return [scale * bm.cos(half), *(scale * a * bm.sin(half) for a in AXIS.tolist())]


@pytest.mark.parametrize("size", [1.0, 3.0])
@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_spherical_joint_about_an_axis(way: tuple[str, str, str], size: float) -> None:
    m = pair(bc.Spherical())
    m.prescribe("knee", lambda t: spin(t, size))
    m.prescribe("drive", 0.0)
    system = bc.compile(m, *way[:2], schedule=way[2])
    assert system.dof == 0
    q, u, t = system.neutral(), np.ones(4), 0.6
    np.testing.assert_allclose(system.forward_dynamics(q, u, t=t), [0.0, *(6.0 * t * AXIS)], atol=1e-12)
    np.testing.assert_allclose(system.velocity(q, u, "rod", t=t)[:3], (1.0 + 3.0 * t * t) * AXIS, atol=1e-12)
    wanted = bc.Pose.about(AXIS, 0.5 + t + t**3).rotation
    np.testing.assert_allclose(system.pose(q, "rod", t=t).rotation, wanted, atol=1e-12)


@pytest.mark.parametrize("way", WAYS[:3], ids="-".join)
def test_a_free_joint_flies_along_a_curve(way: tuple[str, str, str]) -> None:
    """Position, velocity and acceleration of the origin are those of the curve; a carried body feels them."""
    m = bc.Mechanism("flight")
    plane = m.add_body("plane", bc.Inertia.box(2.0, (1.0, 0.5, 0.2)))
    bob = m.add_body("bob", bc.Inertia.rod(0.3, (0, 0, 0), (0, 0, -0.5)))
    m.add_joint("path", bc.Free(), m.ground, plane)
    m.add_joint("string", bc.Universal("x", "y"), plane, bob)
    m.prescribe("path", lambda t: [*spin(t), bm.sin(t), t * t, 1.0 + 0.5 * t * t * t])
    system = bc.compile(m, *way[:2], schedule=way[2])
    q, u, t = system.neutral(), np.zeros(8), 0.7
    udot = system.forward_dynamics(q, u, t=t)
    np.testing.assert_allclose(system.pose(q, "plane", t=t).position, [np.sin(t), t * t, 1 + t**3 / 2], atol=1e-14)
    np.testing.assert_allclose(system.velocity(q, u, "plane", t=t),
                               [*((1 + 3 * t * t) * AXIS), np.cos(t), 2 * t, 1.5 * t * t], atol=1e-12)
    acceleration = system.acceleration(q, u, udot, "plane", t=t)
    np.testing.assert_allclose(acceleration, [*(6 * t * AXIS), -np.sin(t), 2.0, 3 * t], atol=1e-12)
    # the forces that fly the plane move the centre of mass of everything
    drive = system.reactions(q, u, t=t)["path"]
    force = system.pose(q, "plane", t=t).rotation @ drive[3:]
    bob_acceleration = system.acceleration(q, u, udot, "bob", (0, 0, -0.25), t=t)[3:]
    wanted = 2.0 * acceleration[3:] + 0.3 * bob_acceleration - 2.3 * np.array(m.gravity)
    np.testing.assert_allclose(force, wanted, atol=1e-11)


def test_a_tumbling_law_by_differences() -> None:
    """Rates of a quaternion law in all directions, against rates of the pose."""
    m = pair(bc.Spherical())
    m.prescribe("knee", lambda t: [1.5 + bm.sin(t), 0.5 * bm.cos(2.0 * t), t, bm.sin(3.0 * t)])
    system = bc.compile(m, backend="numpy")
    q, u = system.random_state(np.random.default_rng(4))
    u[0], t, h = 0.0, 0.4, 1e-3
    steps = h * np.array([-4, -3, -2, -1, 1, 2, 3, 4])
    weights = np.array([3.0, -32.0, 168.0, -672.0, 672.0, -168.0, 32.0, -3.0]) / (840.0 * h)
    turning = np.tensordot(weights, system.pose(q, "rod", t=t + steps).rotation, 1) @ system.pose(
        q, "rod", t=t).rotation.T
    omega = system.velocity(q, u, "rod", t=t)[:3]
    np.testing.assert_allclose([turning[2, 1], turning[0, 2], turning[1, 0]], omega, atol=1e-9)
    alpha = weights @ system.velocity(q, u, "rod", t=t + steps)[:, :3]
    udot = system.forward_dynamics(q, u, t=t)
    np.testing.assert_allclose(system.acceleration(q, u, [0.0, *udot[1:]], "rod", t=t)[:3], alpha, atol=1e-9)


# -- balances --------------------------------------------------------------------------------------
PLAIN = ("Revolute", "Prismatic", "Screw", "Cylindrical", "Universal", "Planar", "Weld")


@examples(40)
@given(trees(wrenches=False, joints=PLAIN))
def test_drive_forces_do_the_work(tree: Tree) -> None:
    """dE/dt = sum of joint forces times speeds, the driven ones included."""
    m = build(tree)
    system, s = bc.compile(m, backend="numpy"), state(m, tree.seed)
    steps = 1e-3 * np.array([-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
    weights = np.array([3.0, -32.0, 168.0, -672.0, 672.0, -168.0, 32.0, -3.0]) / 0.84
    speeds, at = s.u.copy(), 0
    for record in m.joints:
        for law in record.prescribed.laws if record.prescribed else [None] * record.joint.nu:
            if law is not None:
                speeds[at] = sum(w * law(s.t + h) for w, h in zip(weights, steps, strict=True))
            at += 1
    forces = system.inverse_dynamics(s.q, s.u, s.udot, t=s.t)
    h = steps[:, None]
    q, u, t = s.q + h * s.u + 0.5 * h * h * s.udot, s.u + h * s.udot, s.t + steps
    energy = system.kinetic_energy(q, u, t=t) + system.potential_energy(q, t=t)
    power = forces * speeds
    scale = 1.0 + np.abs(power).max(initial=0.0) + np.abs(energy).max()
    assert abs(weights @ energy - power.sum()) < 1e-8 * scale


JOINTS = [bc.Revolute((1, 2, 3)), bc.Prismatic("y"), bc.Screw("x", 0.2), bc.Cylindrical((0, 1, 1)),
          bc.Universal((1, 0, 0), (0.3, 1, 0)), bc.Planar((1, 1, 0)), bc.Spherical(), bc.Free()]


@pytest.mark.parametrize("backwards", [False, True], ids=["", "backwards"])
@pytest.mark.parametrize("joint", JOINTS, ids=lambda j: type(j).__name__)
def test_a_locked_joint_is_a_weld(joint: bc.Joint, backwards: bool) -> None:
    """Everything else moves as if the two bodies were one; the drive carries what the weld would."""
    rng = np.random.default_rng(3)
    start = joint.normalize(rng.normal(size=joint.nq))

    def make(middle: bc.Joint, offset: bc.Pose) -> bc.Mechanism:
        m = bc.Mechanism("arm", gravity=(1.0, 2.0, -9.0))
        a, b, c = (m.add_body(n, bc.Inertia.box(1.0, (0.2, 0.3, 0.4), (0.1, 0.2, 0.0))) for n in "abc")
        m.add_joint("first", bc.Revolute("y"), m.ground, a, bc.Pose((0.1, 0.2, 0.3)))
        ends = (b, a) if backwards else (a, b)
        m.add_joint("middle", middle, *ends, bc.Pose((0.3, 0.0, 0.1), (0.5, 0.5, 0.5, 0.5)) @ offset,
                    bc.Pose((0.0, 0.2, 0.0), (0.8, 0.0, 0.6, 0.0)))
        m.add_joint("last", bc.Universal("x", "z"), b, c, bc.Pose((0.2, 0.2, 0.2)))
        return m

    locked = make(joint, bc.Pose())
    values = start.tolist()
    if joint.nq == joint.nu:
        for i, value in enumerate(values):
            locked.prescribe("middle", value, i)
    else:
        locked.prescribe("middle", lambda t: values)
    probe = bc.Mechanism("probe")
    body = probe.add_body("body", bc.Inertia.box(1.0, (1, 1, 1)))
    probe.add_joint("joint", joint, probe.ground, body)
    place = bc.compile(probe, backend="numpy").pose(start, "body")
    welded = make(bc.Weld(), bc.Pose(place.position, place.rotation))
    a, b = bc.compile(locked, backend="numpy"), bc.compile(welded, backend="numpy")
    q, u = b.random_state(rng)
    tau, nq, nu = rng.normal(size=3), joint.nq, joint.nu
    long_q, long_u, long_tau = (np.concatenate([x[:1], np.zeros(n), x[1:]]) for x, n in ((q, nq), (u, nu), (tau, nu)))
    udot, wanted = a.forward_dynamics(long_q, long_u, long_tau), b.forward_dynamics(q, u, tau)
    assert np.abs(udot[1:1 + nu]).max() == 0.0
    np.testing.assert_allclose(np.delete(udot, range(1, 1 + nu)), wanted, rtol=1e-11, atol=1e-11)
    got, expected = a.reactions(long_q, long_u, long_tau), b.reactions(q, u, tau)
    for name in ("first", "last"):
        np.testing.assert_allclose(got[name], expected[name], atol=1e-10)
    np.testing.assert_allclose(a.pose(long_q, "b").rotation, b.pose(q, "b").rotation, atol=1e-13)


def test_everything_driven_and_massless_bodies() -> None:
    """With no degree of freedom left, forward dynamics is kinematics; driven leaves need no mass."""
    m = pair()
    pointer = m.add_body("pointer")
    m.add_joint("needle", bc.Revolute("x"), "rod", pointer)
    for name in ("drive", "knee", "needle"):
        m.prescribe(name, lambda t: bm.sin(2.0 * t))
    for method, backend, schedule in WAYS:
        system = bc.compile(m, method, backend, schedule=schedule)
        assert system.dof == 0
        np.testing.assert_allclose(system.forward_dynamics(np.zeros(3), np.zeros(3), t=0.3),
                                   np.full(3, -4.0 * np.sin(0.6)), rtol=1e-14)


@pytest.mark.parametrize("way", WAYS[:1] + WAYS[2:], ids="-".join)
def test_time_is_a_batch_axis(way: tuple[str, str, str]) -> None:
    m = pair()
    m.prescribe("drive", LAWS["sine"][0])
    system = bc.compile(m, *way[:2], schedule=way[2])
    q, u = system.random_state(np.random.default_rng(0), (3, 1))
    t = np.linspace(0.0, 2.0, 4)
    got = system.forward_dynamics(q, u, t=t)
    assert got.shape == (3, 4, 2)
    np.testing.assert_allclose(got[2, 3], system.forward_dynamics(q[2, 0], u[2, 0], t=2.0), rtol=1e-13)
    one = q[0, 0], u[0, 0]
    assert system.jacobian(one[0], "rod", t=t).shape == (4, 6, 2)
    np.testing.assert_allclose(system.jacobian_rate(*one, "rod", t=t)[3],
                               system.jacobian_rate(*one, "rod", t=2.0), rtol=1e-12, atol=1e-13)
    assert system.mass_matrix(one[0], t=t).shape == (4, 2, 2)
    assert system.reactions(*one, t=t)["knee"].shape == (4, 6)
    call = system.bind("forward_dynamics", one[0], one[1], np.zeros(2), time := np.array([0.0]))
    for value in t:
        time[0] = value
        np.testing.assert_allclose(call(), system.forward_dynamics(*one, t=value), rtol=1e-13)


# -- errors ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("call", "message"), [
    (lambda m: m.prescribe("knie", 0.0), "no joint called 'knie'.*'knee'"),
    (lambda m: m.prescribe("weld", 0.0), "'weld'.*no coordinate"),
    (lambda m: m.prescribe("sleeve", 0.0, "angel"), "'sleeve'.*'angel'.*angle, slide"),
    (lambda m: m.prescribe("sleeve", 0.0, 2), "'sleeve'.*2 is not in 0..1"),
    (lambda m: m.prescribe("sleeve", 0.0, -1), "'sleeve'.*-1 is not in 0..1"),
    (lambda m: m.prescribe("ball", 0.0, 1), "'ball'.*whole"),
    (lambda m: m.prescribe("knee", float("nan")), "'knee'.*nan is not finite"),
    (lambda m: m.prescribe("knee", float("inf")), "'knee'.*inf is not finite"),
    (lambda m: m.prescribe("knee", lambda: 0.0), "'knee'.*time as its argument"),
])
def test_bad_calls(call: Callable[[bc.Mechanism], None], message: str) -> None:
    with pytest.raises(bc.ModelError, match=message):
        call(many())


@pytest.mark.parametrize(("joint", "law"), [
    ("sleeve", 0.3),  # which of the two?
    ("ball", 0.3),
    ("knee", "fast"),
    ("sleeve", lambda t: [t]),
    ("sleeve", lambda t: [t, t, t]),
    ("sleeve", lambda t: t),
    ("ball", lambda t: [1.0, 0.0, 0.0]),
    ("ball", lambda t: t),
    ("knee", lambda t: [t]),
    ("knee", lambda t: None),
    ("knee", lambda t: float(t)),
    ("knee", lambda t: np.sin(t)),
    ("knee", lambda t: min(bm.sin(t), t * t)),
    ("knee", lambda t: t if t > bm.cos(t) else -t),
], ids=["number for two", "number for a quaternion", "text", "one of two", "three for two", "scalar for two",
        "three of four", "scalar for four", "list for one", "nothing", "float()", "numpy", "min", "if"])
def test_bad_laws_name_the_joint(joint: str, law: Any) -> None:
    """At the latest when the machine is compiled."""
    m = many()
    with pytest.raises(bc.ModelError, match=f"'{joint}'"):
        m.prescribe(joint, law)
        bc.compile(m)


def many() -> bc.Mechanism:
    m = pair()
    for name, joint in (("weld", bc.Weld()), ("sleeve", bc.Cylindrical("z")), ("ball", bc.Spherical())):
        m.add_joint(name, joint, "rod", m.add_body(f"{name} body", bc.Inertia.box(1.0, (0.1, 0.2, 0.3))))
    return m


def test_a_law_replaces_the_one_before() -> None:
    m = pair(bc.Cylindrical("z"))
    m.prescribe("knee", 0.1, "angle")
    m.prescribe("knee", lambda t: 0.5 * t * t, "slide")
    m.prescribe("knee", lambda t: t * t, "angle")
    system = bc.compile(m, backend="numpy")
    np.testing.assert_allclose(system.forward_dynamics(np.zeros(3), np.zeros(3))[1:], [2.0, 1.0])


def test_parts_prescribed_by_the_tree_strategy_are_driven() -> None:
    """The random mechanisms of the other tests do have driven joints."""
    m = build(Tree((Part("Planar", -1, driven=5), Part("Spherical", 0, driven=1), Part("Revolute", 1)), 3))
    assert bc.compile(m, backend="numpy").dof == 2
