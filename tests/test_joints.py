"""Joints: motion subspaces, drifts and configuration maps against derivatives of their own transforms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.mechanism.joints import (
    AxisJoint,
    Cylindrical,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    Weld,
    quaternion,
)
from bellcrank.mechanism.joints.joint import frame_with_z, unit_vector
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.schedule.sweeps import flatten, rebuild
from bellcrank.spatial import Motion, Vector

EPS = float(np.finfo(float).eps)
Floats = npt.NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12)

JOINTS: dict[str, Joint] = {
    "revolute x": Revolute("x"), "revolute -y": Revolute("-y"), "revolute general": Revolute((1.0, -2.0, 0.5)),
    "prismatic z": Prismatic("z"), "prismatic general": Prismatic((-0.3, 0.1, 2.0)),
    "screw z": Screw("z", 0.3), "screw general": Screw((3.0, 1.0, -1.0), -0.7), "screw without pitch": Screw("x"),
    "cylindrical y": Cylindrical("y"), "cylindrical general": Cylindrical((0.1, 0.2, 0.3)),
    "universal x y": Universal(), "universal z y": Universal("z", "y"),
    "universal skew": Universal((1.0, 0.2, -0.4), (0.3, 1.0, 0.5)),
    "universal nearly parallel": Universal("z", (0.05, 0.02, 1.0)),
    "planar z": Planar(), "planar x": Planar("x"), "planar general": Planar((1.0, 2.0, -2.0)),
    "spherical": Spherical(), "free": Free(), "weld": Weld(),
}
BOTH: dict[str, Joint] = {**JOINTS, **{f"{name} reversed": joint.reversed() for name, joint in JOINTS.items()}}
every_joint = pytest.mark.parametrize("name", BOTH)


def constants(joint: Joint, rng: np.random.Generator) -> tuple[float, ...]:
    """The joint's own numbers; those of the free frame of an axis joint as a compiled machine may choose them."""
    own = joint.constants()
    if isinstance(joint, AxisJoint):
        return (*rng.uniform(-1.0, 1.0, 2).tolist(), *own[2:])
    return own


def configuration(joint: Joint, rng: np.random.Generator) -> Floats:
    """A random one, with unit quaternions."""
    return joint.normalize(rng.uniform(-1.5, 1.5, joint.nq))


def pose(joint: Joint, q: Sequence[Any], k: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Columns of the rotation, and the position, of the child side in the parent side (canonical axes)."""
    places = []
    for point in ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)):
        x = Vector(*point)
        for t in reversed(joint.transforms(q, k)):
            x = t.rotation.apply(x) if point != (0.0, 0.0, 0.0) else t.point(x)
        places.append(list(x))
    return places[1:], places[0]


def matrix(joint: Joint, q: Floats, k: Sequence[float]) -> Floats:
    """The pose as a 4x4 matrix, canonical axes."""
    columns, position = pose(joint, q.tolist(), k)
    made = np.eye(4)
    made[:3, :3] = np.array(columns, dtype=float).T
    made[:3, 3] = position
    return made


def in_joint_frame(joint: Joint, q: Floats) -> Floats:
    """The pose in the axes the user gave."""
    align = np.eye(4)
    align[:3, :3] = joint.alignment()
    return align @ matrix(joint, q, joint.constants()) @ align.T


def vee(m: Floats) -> Floats:
    """The vector of a skew matrix (the skew part of m)."""
    return 0.5 * np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])


def dense(m: Motion) -> Floats:
    return np.array([float(x) for x in flatten(m)])


def velocity(joint: Joint, q: Floats, u: Floats, k: Sequence[float]) -> Floats:
    """The columns times the speeds."""
    columns = joint.subspace(q.tolist(), k)
    assert len(columns) == joint.nu
    return sum((dense(c) * x for c, x in zip(columns, u, strict=True)), np.zeros(6))


def motion_jets(joint: Joint, q: Floats, u: Floats) -> list[Jet]:
    """The coordinates as functions of time at constant speeds."""
    rates = joint.rates(q.tolist(), u.tolist())
    second = joint.rates([Jet(x, r, 0.0) for x, r in zip(q.tolist(), rates, strict=True)], u.tolist())
    return [Jet(x, r, as_jet(s).rate) for x, r, s in zip(q.tolist(), rates, second, strict=True)]


# -- kinematics -------------------------------------------------------------------------------
@every_joint
def test_sizes_and_names(name: str) -> None:
    joint = BOTH[name]
    assert len(joint.speed_names) == joint.nu == len(joint.subspace(joint.neutral().tolist(), joint.constants()))
    assert len(joint.coordinate_names()) == joint.nq == len(joint.neutral()) == len(joint.rates(
        joint.neutral().tolist(), [0.0] * joint.nu))
    assert len(set(joint.coordinate_names())) == joint.nq
    assert type(joint).__name__ in repr(joint) or "Reversed" in repr(joint)


@every_joint
def test_poses_are_rigid_and_neutral_is_no_motion(name: str, rng: np.random.Generator) -> None:
    joint = BOTH[name]
    np.testing.assert_array_equal(matrix(joint, joint.neutral(), joint.constants()), np.eye(4))
    for _ in range(5):
        got = matrix(joint, configuration(joint, rng), constants(joint, rng))
        np.testing.assert_allclose(got[:3, :3] @ got[:3, :3].T, np.eye(3), atol=8 * EPS)
        assert np.linalg.det(got[:3, :3]) > 0.0
    align = joint.alignment()
    np.testing.assert_allclose(align @ align.T, np.eye(3), atol=8 * EPS)
    assert np.linalg.det(align) == pytest.approx(1.0, abs=8 * EPS)


@every_joint
@few
@given(seeds)
def test_subspace_and_drift_are_derivatives_of_the_transforms(name: str, seed: int) -> None:
    """By jets, so exactly: R^T dR/dt, R^T dp/dt, and the same of second derivatives at constant speeds."""
    joint, rng = BOTH[name], np.random.default_rng(seed)
    q, u, k = configuration(joint, rng), rng.uniform(-2.0, 2.0, joint.nu), constants(joint, rng)
    columns, position = pose(joint, motion_jets(joint, q, u), k)
    parts = [np.array([[as_jet(x)[i] for x in column] for column in columns], dtype=float).T for i in range(3)]
    moves = [np.array([as_jet(x)[i] for x in position], dtype=float) for i in range(3)]
    turn, turn_rate, turn_bend = parts
    spin = turn.T @ turn_rate
    wanted = np.concatenate([vee(spin), turn.T @ moves[1]])
    # speeds below 2 and arms below 6: a few dozen roundings of terms below 2^2 * 36
    np.testing.assert_allclose(velocity(joint, q, u, k), wanted, rtol=0.0, atol=64 * EPS * 24.0)
    # R^T R'' = alpha~ + omega~ omega~, whose skew part is alpha
    wanted = np.concatenate([vee(turn.T @ turn_bend), turn.T @ moves[2]])
    got = dense(joint.drift(q.tolist(), u.tolist(), k))
    np.testing.assert_allclose(got, wanted, rtol=0.0, atol=64 * EPS * 144.0)


@every_joint
@few
@given(seeds)
def test_subspace_and_drift_along_integrated_motions(name: str, seed: int) -> None:
    """Independent of `rates` and of jets: differences of poses along `integrate`, of fourth order."""
    joint, rng = BOTH[name], np.random.default_rng(seed)
    q, u, k = configuration(joint, rng), rng.uniform(-1.0, 1.0, joint.nu), constants(joint, rng)

    def along(t: float) -> Floats:
        return matrix(joint, joint.integrate(q, t * u), k)

    # derivatives of all orders stay below 2^6 * 6: truncation h^4/30 of it, rounding 10 eps/h and 30 eps/h^2 of 6
    h = 1e-3
    first = (8.0 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12.0 * h)
    here = along(0.0)[:3, :3]
    wanted = np.concatenate([vee(here.T @ first[:3, :3]), here.T @ first[:3, 3]])
    np.testing.assert_allclose(velocity(joint, q, u, k), wanted, rtol=0.0, atol=5e-11)
    h = 1e-2
    second = (16.0 * (along(h) + along(-h)) - (along(2 * h) + along(-2 * h)) - 30.0 * along(0.0)) / (12.0 * h * h)
    wanted = np.concatenate([vee(here.T @ second[:3, :3]), here.T @ second[:3, 3]])
    np.testing.assert_allclose(dense(joint.drift(q.tolist(), u.tolist(), k)), wanted, rtol=0.0, atol=2e-7)


@every_joint
@few
@given(seeds)
def test_rates_of_columns_by_jets(name: str, seed: int) -> None:
    """Drift = (rates of the columns) u, plus omega x v because the linear part is given in turning axes."""
    joint, rng = BOTH[name], np.random.default_rng(seed)
    q, u, k = configuration(joint, rng), rng.uniform(-2.0, 2.0, joint.nu), constants(joint, rng)
    columns = joint.subspace(motion_jets(joint, q, u), k)
    rates = [rebuild(c, (as_jet(x).rate for x in flatten(c, Jet)), Jet) for c in columns]
    v = velocity(joint, q, u, k)
    wanted = sum((dense(c) * x for c, x in zip(rates, u, strict=True)), np.zeros(6))
    wanted[3:] += np.cross(v[:3], v[3:])
    got = dense(joint.drift(q.tolist(), u.tolist(), k))
    np.testing.assert_allclose(got, wanted, rtol=0.0, atol=64 * EPS * 144.0)


@every_joint
def test_traced_and_array_scalars(name: str, rng: np.random.Generator) -> None:
    joint = BOTH[name]
    k = constants(joint, rng)
    q, u = np.array([configuration(joint, rng) for _ in range(3)]), rng.normal(size=(3, joint.nu))

    def everything(q: Sequence[Any], u: Sequence[Any]) -> list[Any]:
        return list(flatten([joint.transforms(q, k), joint.subspace(q, k), joint.drift(q, u, k), joint.rates(q, u)]))

    wanted = np.array([[float(x) for x in everything(a.tolist(), b.tolist())] for a, b in zip(q, u, strict=True)])
    graph = Graph()
    traced = everything(*([graph.leaf((name, i)) for i in range(n)] for name, n in (("q", joint.nq), ("u", joint.nu))))
    tolerance = 64 * EPS * 36.0
    for i, (a, b) in enumerate(zip(q, u, strict=True)):
        got = [float(x) for x in evaluate(traced, lambda key, a=a, b=b: float((a if key[0] == "q" else b)[key[1]]))]
        np.testing.assert_allclose(got, wanted[i], rtol=0.0, atol=tolerance)
    arrays = [np.broadcast_to(x, 3) for x in everything(list(q.T), list(u.T))]
    np.testing.assert_allclose(np.array(arrays).reshape(-1, 3).T, wanted, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("name", [n for n, joint in BOTH.items() if isinstance(joint, AxisJoint)])
def test_constants_of_axis_joints_are_an_offset(name: str, rng: np.random.Generator) -> None:
    """A turn about and a slide along the axis between the two sides at q = 0, whatever q is."""
    joint = BOTH[name]
    own = joint.constants()
    assert own[:2] == (0.0, 0.0)
    for _ in range(5):
        q, (turn, slide) = configuration(joint, rng), rng.uniform(-2.0, 2.0, 2).tolist()
        offset = moved(turned((0.0, 0.0, 1.0), turn), (0.0, 0.0, slide))
        wanted = offset @ matrix(joint, q, own)
        np.testing.assert_allclose(matrix(joint, q, (turn, slide, *own[2:])), wanted, rtol=0.0, atol=16 * EPS * 4.0)


# -- reversed joints --------------------------------------------------------------------------
@pytest.mark.parametrize("name", JOINTS)
@few
@given(seeds)
def test_reversed_joints_move_inversely(name: str, seed: int) -> None:
    joint, rng = JOINTS[name], np.random.default_rng(seed)
    back = joint.reversed()
    assert (back.nq, back.nu, back.speed_names) == (joint.nq, joint.nu, joint.speed_names)
    assert back.coordinate_names() == joint.coordinate_names()
    q, u, p = configuration(joint, rng), rng.normal(size=joint.nu), configuration(joint, rng)
    there_and_back = in_joint_frame(joint, q) @ in_joint_frame(back, q)
    np.testing.assert_allclose(there_and_back, np.eye(4), rtol=0.0, atol=64 * EPS * 6.0)
    np.testing.assert_array_equal(back.neutral(), joint.neutral())
    np.testing.assert_array_equal(back.integrate(q, u), joint.integrate(q, u))
    np.testing.assert_array_equal(back.difference(q, p), joint.difference(q, p))
    np.testing.assert_array_equal(back.qdot(q, u), joint.qdot(q, u))
    np.testing.assert_array_equal(back.normalize(2.0 * q), joint.normalize(2.0 * q))
    again = back.reversed()
    assert type(again) is type(joint)
    np.testing.assert_allclose(in_joint_frame(again, q), in_joint_frame(joint, q), rtol=0.0, atol=32 * EPS * 6.0)
    wanted, got = velocity(joint, q, u, joint.constants()), velocity(again, q, u, again.constants())
    np.testing.assert_allclose(again.alignment() @ got.reshape(2, 3).T, joint.alignment() @ wanted.reshape(2, 3).T,
                               rtol=0.0, atol=32 * EPS * 6.0)


def test_reversed_joints_are_kinds_of_their_own() -> None:
    kinds = {joint.kind() for joint in (Spherical(), Free(), Universal(), Planar(), Spherical().reversed(),
                                        Free().reversed(), Universal().reversed(), Planar().reversed())}
    assert len(kinds) == 8
    assert repr(Free().reversed()) == "Reversed(Free())"


# -- directions in the user's axes ------------------------------------------------------------
def turned(axis: Any, angle: float) -> Floats:
    """Rodrigues' formula."""
    x, y, z = np.asarray(axis) / np.sqrt(np.dot(axis, axis))
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * k @ k


def moved(turn: Floats, shift: Any = (0.0, 0.0, 0.0)) -> Floats:
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = turn, shift
    return made


AXES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (1.0, 2.0, -3.0),
        (0.95, 0.1, -0.2), (1e-8, 1.0, 1e-8), (3e5, -1e5, 1e5)]


@pytest.mark.parametrize("axis", AXES)
def test_motion_in_the_axes_of_the_user(axis: tuple[float, float, float]) -> None:
    unit = np.array(axis) / np.sqrt(np.dot(axis, axis))
    angle, slide = 0.7, -1.3
    for joint, q, wanted in (
            (Revolute(axis), [angle], moved(turned(axis, angle))),
            (Prismatic(axis), [slide], moved(np.eye(3), slide * unit)),
            (Screw(axis, 0.4), [angle], moved(turned(axis, angle), 0.4 * angle * unit)),
            (Cylindrical(axis), [angle, slide], moved(turned(axis, angle), slide * unit)),
            (Universal(axis, np.roll(axis, 1)), [angle, slide],
             moved(turned(axis, angle) @ turned(np.roll(axis, 1), slide)))):
        np.testing.assert_allclose(in_joint_frame(joint, np.array(q)), wanted, rtol=0.0, atol=32 * EPS)


def test_planar_directions() -> None:
    q = np.array([0.3, -0.4, 0.9])
    np.testing.assert_allclose(in_joint_frame(Planar("z"), q), moved(turned((0, 0, 1), 0.9), (0.3, -0.4, 0.0)),
                               rtol=0.0, atol=8 * EPS)
    # x is along the joint frame's y if the normal is x; the third direction makes it right-handed
    np.testing.assert_allclose(in_joint_frame(Planar("x"), q), moved(turned((1, 0, 0), 0.9), (0.0, 0.3, -0.4)),
                               rtol=0.0, atol=8 * EPS)
    normal = np.array([1.0, 2.0, -2.0]) / 3.0
    x = np.array([1.0, 0.0, 0.0]) - normal / 3.0
    x /= np.sqrt(x @ x)
    shift = 0.3 * x - 0.4 * np.cross(normal, x)
    np.testing.assert_allclose(in_joint_frame(Planar((1.0, 2.0, -2.0)), q), moved(turned(normal, 0.9), shift),
                               rtol=0.0, atol=16 * EPS)


def test_quaternion_joints_are_scalar_first() -> None:
    half = math.sqrt(0.5)
    np.testing.assert_allclose(in_joint_frame(Spherical(), np.array([half, 0.0, 0.0, half])),
                               moved(turned((0, 0, 1), math.pi / 2)), rtol=0.0, atol=8 * EPS)
    np.testing.assert_allclose(in_joint_frame(Free(), np.array([half, half, 0.0, 0.0, 1.0, 2.0, 3.0])),
                               moved(turned((1, 0, 0), math.pi / 2), (1.0, 2.0, 3.0)), rtol=0.0, atol=8 * EPS)


@pytest.mark.parametrize("angle", [1.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("axis2", ["x", "z", (1.0, 2.0, -1.0)])
def test_universal_axes_at_any_angle(axis2: Any, angle: float) -> None:
    """What the joint turns about is the axis it was given, to rounding, however close the two axes are."""
    second = np.array(unit_vector(axis2, "axis2"))
    across = np.cross(second, [0.3, -0.5, 0.7])
    first = turned(across, angle) @ second
    joint = Universal(first, second)
    a, b = joint.constants()
    np.testing.assert_allclose(joint.alignment() @ [a, 0.0, b], first, rtol=0.0, atol=16 * EPS)
    np.testing.assert_allclose(joint.alignment() @ [0.0, 0.0, 1.0], second, rtol=0.0, atol=16 * EPS)
    assert a * a + b * b == pytest.approx(1.0, abs=8 * EPS)
    np.testing.assert_allclose(joint.alignment().T @ joint.alignment(), np.eye(3), rtol=0.0, atol=16 * EPS)


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: sum(x * x for x in v) > 1e-6))
def test_frames_with_a_given_third_axis(v: tuple[float, float, float]) -> None:
    z = np.array(v) / np.sqrt(np.dot(v, v))
    frame = frame_with_z(z)
    np.testing.assert_array_equal(frame[:, 2], z)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), rtol=0.0, atol=16 * EPS)
    assert np.linalg.det(frame) == pytest.approx(1.0, abs=16 * EPS)
    np.testing.assert_array_equal(frame_with_z(np.stack([z, z]))[1], frame)
    np.testing.assert_array_equal(frame_with_z(np.array([0.0, 0.0, 1.0])), np.eye(3))


# -- configuration maps -----------------------------------------------------------------------
@every_joint
@few
@given(seeds, st.sampled_from([1e-160, 1e-9, 1e-3, 0.3, 1.7]))
def test_difference_undoes_integrate(name: str, seed: int, size: float) -> None:
    joint, rng = BOTH[name], np.random.default_rng(seed)
    q, v = configuration(joint, rng), size * rng.uniform(-1.0, 1.0, joint.nu)
    reached = joint.integrate(q, v)
    assert reached.shape == (joint.nq,) and reached.dtype == np.float64
    # coordinates of order one are rounded once when they are reached, rotations a few times
    np.testing.assert_allclose(joint.difference(q, reached), v, rtol=0.0, atol=64 * EPS * 2.0)
    np.testing.assert_allclose(joint.normalize(reached), reached, rtol=0.0, atol=8 * EPS)


@every_joint
@few
@given(seeds)
def test_integrate_reaches_what_difference_measures(name: str, seed: int) -> None:
    joint, rng = BOTH[name], np.random.default_rng(seed)
    q, p = configuration(joint, rng), configuration(joint, rng)
    got = joint.integrate(q, joint.difference(q, p))
    if joint.nq != joint.nu and got[:4] @ p[:4] < 0.0:  # a quaternion and its opposite are one orientation
        got[:4] *= -1.0
    np.testing.assert_allclose(got, p, rtol=0.0, atol=256 * EPS)
    np.testing.assert_allclose(joint.difference(q, q), np.zeros(joint.nu), rtol=0.0, atol=8 * EPS)


@every_joint
@few
@given(seeds)
def test_qdot_is_the_rate_of_integrate(name: str, seed: int) -> None:
    joint, rng = BOTH[name], np.random.default_rng(seed)
    q, u = configuration(joint, rng), rng.uniform(-1.0, 1.0, joint.nu)
    h = 1e-3
    steps = [joint.integrate(q, t * h * u) for t in (1.0, -1.0, 2.0, -2.0)]
    wanted = (8.0 * (steps[0] - steps[1]) - (steps[2] - steps[3])) / (12.0 * h)
    # truncation h^4/30 of fifth derivatives below 100, rounding 10 eps/h
    np.testing.assert_allclose(joint.qdot(q, u), wanted, rtol=0.0, atol=2e-11)
    np.testing.assert_allclose(joint.qdot(q, u), joint.rates(q.tolist(), u.tolist()), rtol=0.0, atol=32 * EPS)


@every_joint
def test_configuration_maps_take_batches(name: str, rng: np.random.Generator) -> None:
    joint = BOTH[name]
    q = np.array([[configuration(joint, rng) for _ in range(3)] for _ in range(2)]).reshape(2, 3, joint.nq)
    p = q[::-1].copy()
    u = rng.normal(size=(2, 3, joint.nu))
    for f, x in ((joint.integrate, u), (joint.difference, p), (joint.qdot, u)):
        got = f(q, x)
        assert got.shape == (2, 3, joint.nu if f == joint.difference else joint.nq)
        for i in np.ndindex(2, 3):
            np.testing.assert_allclose(got[i], f(q[i], x[i]), rtol=0.0, atol=16 * EPS)
    np.testing.assert_allclose(joint.normalize(q), q, rtol=0.0, atol=4 * EPS)


@pytest.mark.parametrize("joint", [Spherical(), Free(), Free().reversed()], ids=repr)
def test_normalize(joint: Joint, rng: np.random.Generator) -> None:
    q = rng.normal(size=(5, joint.nq))
    got = joint.normalize(q)
    np.testing.assert_allclose((got[:, :4]**2).sum(-1), 1.0, rtol=0.0, atol=4 * EPS)
    np.testing.assert_array_equal(got[:, 4:], q[:, 4:])
    length = np.sqrt((q[:, :4]**2).sum(-1, keepdims=True))
    np.testing.assert_allclose(got[:, :4] * length, q[:, :4], rtol=4 * EPS)  # the nearest, so the same direction


@pytest.mark.parametrize("joint", [Spherical(), Free(), Spherical().reversed(), Free().reversed()], ids=repr)
@pytest.mark.parametrize("scale", [1.0 + 1e-6, 0.5, -1.0, -3.0])
@few
@given(seed=seeds)
def test_only_the_direction_of_a_quaternion_matters(joint: Joint, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, p, u = configuration(joint, rng), configuration(joint, rng), rng.uniform(-1.0, 1.0, joint.nu)
    other, far = q.copy(), p.copy()
    other[:4] *= scale
    far[:4] *= scale
    np.testing.assert_allclose(matrix(joint, other, ()), matrix(joint, q, ()), rtol=0.0, atol=32 * EPS)
    np.testing.assert_allclose(velocity(joint, other, u, ()), velocity(joint, q, u, ()), rtol=0.0, atol=32 * EPS * 6)
    np.testing.assert_allclose(joint.difference(other, p), joint.difference(q, p), rtol=0.0, atol=256 * EPS)
    np.testing.assert_allclose(joint.difference(q, far), joint.difference(q, p), rtol=0.0, atol=256 * EPS)
    sign = np.ones(joint.nq)
    sign[:4] = math.copysign(1.0, scale)
    np.testing.assert_allclose(joint.integrate(other, u), sign * joint.integrate(q, u), rtol=0.0, atol=32 * EPS)


@pytest.mark.parametrize("joint", [Spherical(), Free()], ids=repr)
def test_turns_around_half_a_turn(joint: Joint, rng: np.random.Generator) -> None:
    """The shortest way is found on both sides of half a turn, and whole turns change nothing."""
    q = configuration(joint, rng)
    axis = np.array([0.6, 0.0, -0.8])
    for angle, short in ((3.0, 3.0), (math.pi - 1e-9, math.pi - 1e-9), (math.pi + 1e-9, 1e-9 - math.pi),
                         (4.0, 4.0 - 2 * math.pi), (2 * math.pi, 0.0), (2 * math.pi + 1.0, 1.0), (0.0, 0.0)):
        v = np.zeros(joint.nu)
        v[:3] = angle * axis
        got = joint.difference(q, joint.integrate(q, v))
        np.testing.assert_allclose(got[:3], short * axis, rtol=0.0, atol=64 * EPS * 8.0)
        assert np.abs(got[3:]).max(initial=0.0) <= 64 * EPS * 8.0


def test_long_integration_stays_on_the_sphere(rng: np.random.Generator) -> None:
    joint = Free()
    q, step = joint.neutral(), 0.1 * rng.normal(size=6)
    for _ in range(2000):
        q = joint.integrate(q, step)
    assert q[:4] @ q[:4] == pytest.approx(1.0, abs=4 * EPS)
    whole = joint.integrate(joint.neutral(), 2000 * step)  # constant speeds: one long step is the same motion
    if whole[:4] @ q[:4] < 0.0:
        whole[:4] *= -1.0
    # 2000 steps of a few roundings each; positions stay of order one because the motion is a screw about an axis,
    # and its advance is below 2000 * 0.3
    np.testing.assert_allclose(q[:4], whole[:4], rtol=0.0, atol=2000 * 4 * EPS)
    np.testing.assert_allclose(q[4:], whole[4:], rtol=0.0, atol=2000 * 4 * EPS * np.abs(whole[4:]).max())


# -- quaternions ------------------------------------------------------------------------------
@given(seeds)
def test_quaternion_algebra(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (quaternion.normalize(rng.normal(size=4)) for _ in range(2))
    v = rng.normal(size=3)

    def rotation(q: Floats) -> Floats:
        return matrix(Spherical(), q, ())[:3, :3]

    np.testing.assert_allclose(rotation(quaternion.product(a, b)), rotation(a) @ rotation(b), rtol=0.0, atol=16 * EPS)
    np.testing.assert_allclose(rotation(quaternion.conjugate(a)), rotation(a).T, rtol=0.0, atol=8 * EPS)
    np.testing.assert_allclose(quaternion.turn(a, v), rotation(a) @ v, rtol=0.0, atol=16 * EPS * 4.0)
    np.testing.assert_allclose(quaternion.product(a, quaternion.conjugate(a)), [1.0, 0.0, 0.0, 0.0], rtol=0.0,
                               atol=4 * EPS)
    back = quaternion.exponential(quaternion.logarithm(a))
    np.testing.assert_allclose(back * np.sign(a[0]), a, rtol=0.0, atol=16 * EPS)


@pytest.mark.parametrize("size", [0.0, 1e-320, 1e-200, 1e-155, 1e-149, 1e-30, 1e-8, 1e-3, 1.0, 3.14])
def test_logarithm_and_exponential_of_all_sizes(size: float) -> None:
    for direction in ([1.0, 0.0, 0.0], [0.6, 0.0, -0.8], [2 / 3, -1 / 3, 2 / 3]):
        phi = size * np.array(direction)
        got = quaternion.exponential(phi)
        np.testing.assert_allclose(got, [math.cos(size / 2), *(math.sin(size / 2) * np.array(direction))],
                                   rtol=8 * EPS, atol=1e-322)
        np.testing.assert_allclose(quaternion.logarithm(got), phi, rtol=16 * EPS, atol=1e-322)
        np.testing.assert_allclose(quaternion.logarithm(-got), phi, rtol=16 * EPS, atol=1e-322)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 9.9e-3, 1.01e-2, 0.1, 1.0, 3.0, 6.0, 20.0])
def test_displacement_while_turning(angle: float, rng: np.random.Generator) -> None:
    """The integral of R(s phi) v over 0 <= s <= 1, by Gauss's rule of 40 points."""
    axis = rng.normal(size=3)
    axis /= np.sqrt(axis @ axis)
    phi, v = angle * axis, rng.normal(size=3)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    wanted = sum(w / 2 * (turned(axis, angle * (1 + x) / 2) @ v) for x, w in zip(nodes, weights, strict=True))
    got = quaternion.left_jacobian(phi, v)
    np.testing.assert_allclose(got, wanted, rtol=0.0, atol=32 * EPS * 4.0)
    if angle < 4.0:
        np.testing.assert_allclose(quaternion.left_jacobian_inverse(phi, got), v, rtol=0.0, atol=128 * EPS * 4.0)


# -- descriptions that make no sense ----------------------------------------------------------
MAKERS: dict[str, tuple[Callable[[Any], Joint], str]] = {
    "Revolute": (Revolute, "Revolute axis"), "Prismatic": (Prismatic, "Prismatic axis"),
    "Cylindrical": (Cylindrical, "Cylindrical axis"), "Screw": (lambda a: Screw(a, 0.1), "Screw axis"),
    "Planar": (Planar, "Planar normal"), "Universal first": (lambda a: Universal(a, "y"), "Universal axis1"),
    "Universal second": (lambda a: Universal("x", a), "Universal axis2"),
}
BAD_AXES: dict[str, tuple[Any, str]] = {
    "unknown name": ("w", "'w' is not an axis name"), "empty name": ("", "is not an axis name"),
    "capital": ("X", "is not an axis name"), "zero": ((0.0, 0.0, 0.0), "has no direction"),
    "nearly zero": ((1e-12, 0.0, 0.0), "has no direction"), "two numbers": ((1.0, 0.0), "three numbers"),
    "four numbers": ((1.0, 0.0, 0.0, 0.0), "three numbers"), "a matrix": (np.eye(3), "three numbers"),
    "a number": (1.0, "three numbers"), "None": (None, "three numbers"), "words": (("a", "b", "c"), "three numbers"),
    "NaN": ((math.nan, 0.0, 1.0), "not finite"), "infinite": ((math.inf, 0.0, 1.0), "not finite"),
    "empty": ((), "three numbers"), "ragged": (((1.0,), 0.0, 0.0), "three numbers"),
}


@pytest.mark.parametrize("bad", BAD_AXES)
@pytest.mark.parametrize("maker", MAKERS)
def test_bad_axes_are_named(maker: str, bad: str) -> None:
    make, part = MAKERS[maker]
    axis, complaint = BAD_AXES[bad]
    with pytest.raises(bc.ModelError, match=rf"^{part}: .*{complaint}"):
        make(axis)


@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e10, 1e100, 1e155, 1e200, 1e308])
def test_axes_of_any_length(size: float) -> None:
    wanted = np.array([1.0, -0.5, 0.25]) / np.sqrt(1.3125)
    np.testing.assert_allclose(Revolute((size, -size / 2, size / 4)).axis, wanted, rtol=4 * EPS)


def test_axes_are_normalized() -> None:
    assert Revolute("x").axis == Revolute((2, 0, 0)).axis == Revolute(np.array([5.0, 0.0, 0.0])).axis == (1.0, 0.0, 0.0)
    assert Revolute("-z").axis == (0.0, 0.0, -1.0)
    assert all(math.copysign(1.0, a) == 1.0 for a in Revolute((-0.0, -0.0, 1.0)).axis)
    assert all(type(a) is float for a in Revolute(np.array([1, 2, 3])).axis)


@pytest.mark.parametrize(("first", "second"), [("x", "x"), ("x", "-x"), ((1.0, 1.0, 0.0), (2.0, 2.0, 0.0)),
                                               ((1.0, 0.0, 0.0), (1.0, 1e-8, 0.0))])
def test_parallel_axes_of_a_universal_joint(first: Any, second: Any) -> None:
    with pytest.raises(bc.ModelError, match="Universal: axis1 and axis2 are parallel"):
        Universal(first, second)


@pytest.mark.parametrize("pitch", [math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("nan"), "coarse", None,
                                   [0.1, 0.2]])
def test_bad_pitches(pitch: Any) -> None:
    with pytest.raises(bc.ModelError, match="Screw pitch"):
        Screw("z", pitch)


@pytest.mark.parametrize("pitch", [1, 0.5, np.float64(0.5), np.float32(0.5), np.int64(2), -0.0])
def test_good_pitches(pitch: Any) -> None:
    joint = Screw("z", pitch)
    assert joint.pitch == pitch and type(joint.pitch) is float
    assert joint.reversed().constants()[2] == pitch
