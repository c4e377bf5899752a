"""Spatial algebra against dense 3x3 and 6x6 matrices, for every structure of rotations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellcrank.scalar.count import count
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph
from bellcrank.schedule.sweeps import flatten, rebuild
from bellcrank.spatial import (
    AboutX,
    AboutZ,
    ArticulatedInertia,
    Force,
    General,
    Identity,
    Matrix3,
    Motion,
    RigidInertia,
    Rotation,
    Symmetric3,
    Transform,
    Vector,
    from_quaternion,
    unit_index,
)

EPS = float(np.finfo(float).eps)
Floats = npt.NDArray[np.float64]
ROTATIONS = ("identity", "about x", "about z", "general", "quaternion")
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=30)


# -- dense counterparts -----------------------------------------------------------------------
def tilde(v: Any) -> Floats:
    """The matrix of v x."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def dense(value: Any) -> Floats:
    """Any spatial object as a plain vector or matrix."""
    match value:
        case Vector():
            return np.array(value, dtype=float)
        case Motion(a, b) | Force(a, b):
            return np.array([*a, *b], dtype=float)
        case Symmetric3(xx, xy, xz, yy, yz, zz):
            return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)
        case Matrix3():
            return np.array(value, dtype=float)
        case RigidInertia(mass, first, second):
            h = tilde(first)
            return np.block([[dense(second), h], [-h, mass * np.eye(3)]])
        case ArticulatedInertia(angular, coupling, linear):
            b = dense(coupling)
            return np.block([[dense(angular), b], [b.T, dense(linear)]])
        case Identity():
            return np.eye(3)
        case AboutX(c, s):
            return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        case AboutZ(c, s):
            return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        case General(rows):
            return dense(rows)
        case Transform(rotation, translation):  # takes the parent's velocity to the child's frame
            back = dense(rotation).T
            return np.block([[back, np.zeros((3, 3))], [-back @ tilde(translation), back]])
    raise AssertionError(value)


def close(got: Any, wanted: Floats, scale: float = 1.0, roundings: float = 16.0) -> None:
    """Equal up to some roundings of terms of the given size."""
    assert got is not None
    np.testing.assert_allclose(got if isinstance(got, np.ndarray) else dense(got), wanted, rtol=0.0,
                               atol=roundings * EPS * scale)


# -- random objects ---------------------------------------------------------------------------
def vector(rng: np.random.Generator) -> Vector:
    return Vector(*rng.uniform(-2.0, 2.0, 3).tolist())


def motion(rng: np.random.Generator) -> Motion:
    return Motion(vector(rng), vector(rng))


def force(rng: np.random.Generator) -> Force:
    return Force(vector(rng), vector(rng))


def symmetric(rng: np.random.Generator) -> Symmetric3:
    return Symmetric3(*rng.uniform(-2.0, 2.0, 6).tolist())


def matrix(rng: np.random.Generator) -> Matrix3:
    return Matrix3(vector(rng), vector(rng), vector(rng))


def rigid(rng: np.random.Generator) -> RigidInertia:
    return RigidInertia(float(rng.uniform(0.5, 2.0)), vector(rng), symmetric(rng))


def articulated(rng: np.random.Generator) -> ArticulatedInertia:
    """A positive definite one."""
    spread = rng.uniform(-1.0, 1.0, (6, 6))
    return from_dense(spread @ spread.T + 0.5 * np.eye(6))


def from_dense(m: Floats) -> ArticulatedInertia:
    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    return ArticulatedInertia(Symmetric3(*(float(m[i, j]) for i, j in upper)),
                              Matrix3(*(Vector(*m[i, 3:].tolist()) for i in range(3))),
                              Symmetric3(*(float(m[3 + i, 3 + j]) for i, j in upper)))


def rotation(rng: np.random.Generator, structure: str) -> Rotation:
    angle = rng.uniform(-3.0, 3.0)
    c, s = float(np.cos(angle)), float(np.sin(angle))
    if structure == "identity":
        return Identity()
    if structure == "about x":
        return AboutX(c, s)
    if structure == "about z":
        return AboutZ(c, s)
    if structure == "general":
        q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        return General(Matrix3(*(Vector(*row) for row in (q * np.linalg.det(q)).tolist())))
    return from_quaternion(*rng.normal(size=4).tolist())


def transform(rng: np.random.Generator, structure: str) -> Transform:
    return Transform(rotation(rng, structure), vector(rng))


# -- vectors ----------------------------------------------------------------------------------
@some
@given(seeds)
def test_vectors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, k = vector(rng), vector(rng), float(rng.uniform(-2.0, 2.0))
    x, y = dense(a), dense(b)
    close(a + b, x + y)
    close(a - b, x - y)
    close(-a, -x)
    close(a * k, x * k, 4.0)
    assert a.dot(b) == pytest.approx(float(x @ y), abs=16 * EPS * 12.0)
    close(a.cross(b), np.cross(x, y), 8.0)
    close(a.centripetal(b), np.cross(x, np.cross(x, y)), 64.0)
    assert Vector.zero() == (0.0, 0.0, 0.0)


@some
@given(seeds)
def test_motions_and_forces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for make in (motion, force):
        a, b, k = make(rng), make(rng), float(rng.uniform(-2.0, 2.0))
        close(a + b, dense(a) + dense(b))
        close(a - b, dense(a) - dense(b))
        close(-a, -dense(a))
        close(a * k, k * dense(a), 4.0)
        assert type(a + b) is type(a - b) is type(-a) is type(a * k) is type(a)
        assert not dense(type(a).zero()).any()
    v, f = motion(rng), force(rng)
    assert v.dot(f) == pytest.approx(float(dense(v) @ dense(f)), abs=16 * EPS * 24.0)
    for i in range(6):
        wanted = dense(f)
        wanted[i] = 7.5
        np.testing.assert_array_equal(dense(f.with_entry(i, 7.5)), wanted)


@pytest.mark.parametrize("factor", [2, 2.5])
@pytest.mark.parametrize("make", [vector, motion, force])
def test_factors_on_the_left(make: Callable[[np.random.Generator], Any], factor: Any, rng: np.random.Generator) -> None:
    """These are tuples, and a whole number times a tuple repeats it unless somebody says otherwise."""
    a = make(rng)
    got = factor * a
    assert type(got) is type(a)
    close(got, factor * dense(a), 5.0)


UNITS = [Motion(Vector(*row[:3]), Vector(*row[3:])) for row in np.eye(6).tolist()]


def test_unit_index() -> None:
    assert [unit_index(u) for u in UNITS] == list(range(6))
    for u in UNITS:
        assert unit_index(-u) is None
        assert unit_index(u * 2.0) is None
        assert unit_index(u * (1.0 + EPS)) is None
        assert unit_index(u + u) is None
        assert unit_index(u + Motion(Vector(0.0, 1e-300, 0.0), Vector(1e-300, 0.0, 0.0))) is None
        assert unit_index(u * np.float64(1.0)) is None  # only what is known to be a constant counts
        leaf = Graph().leaf("x")
        assert unit_index(Motion(*(Vector(*(leaf if e == 1.0 else e for e in part)) for part in u))) is None
    for u, v in itertools.combinations(UNITS, 2):
        assert unit_index(u + v) is None
    assert unit_index(Motion.zero()) is None
    assert unit_index(Motion(Vector(-0.0, 0.0, 1.0), Vector(0.0, -0.0, 0.0))) == 2


# -- matrices ---------------------------------------------------------------------------------
@some
@given(seeds)
def test_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    s, t, m, n = symmetric(rng), symmetric(rng), matrix(rng), matrix(rng)
    a, b, k = vector(rng), vector(rng), float(rng.uniform(-2.0, 2.0))
    x, y = dense(a), dense(b)
    close(s + t, dense(s) + dense(t))
    close(s @ a, dense(s) @ x, 12.0)
    close(m + n, dense(m) + dense(n))
    close(m @ a, dense(m) @ x, 12.0)
    close(m.transposed_times(a), dense(m).T @ x, 12.0)
    close(m.minus_outer(a, b), dense(m) - np.outer(x, y), 6.0)
    close(s.minus_outer(a, a * k), dense(s) - np.outer(x, k * x), 10.0)
    close(Matrix3.cross(a) @ b, np.cross(x, y), 8.0)
    np.testing.assert_array_equal(dense(Matrix3.cross(a)), tilde(a))
    np.testing.assert_array_equal(dense(Symmetric3.diagonal(k)), k * np.eye(3))
    assert not dense(Symmetric3.zero()).any() and not dense(Matrix3.zero()).any()
    for i in range(3):
        keep = np.eye(3)
        keep[i, i] = 0.0
        np.testing.assert_array_equal(dense(s.without(i)), keep @ dense(s) @ keep)
        np.testing.assert_array_equal(dense(m.without_row(i)), keep @ dense(m))
        np.testing.assert_array_equal(dense(m.without_column(i)), dense(m) @ keep)


# -- rotations --------------------------------------------------------------------------------
@pytest.mark.parametrize("structure", ROTATIONS)
@some
@given(seeds)
def test_rotations(structure: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    r, v, s, m = rotation(rng, structure), vector(rng), symmetric(rng), matrix(rng)
    d = dense(r)
    close(d @ d.T, np.eye(3))
    assert np.linalg.det(d) == pytest.approx(1.0, abs=16 * EPS)
    close(r.apply(v), d @ dense(v), 6.0)
    close(r.inverse(v), d.T @ dense(v), 6.0)
    close(r.symmetric(s), d @ dense(s) @ d.T, 18.0)
    close(r.matrix(m), d @ dense(m) @ d.T, 18.0)


@some
@given(seeds, st.floats(1e-3, 1e3))
def test_quaternions_of_any_length(seed: int, length: float) -> None:
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    axis /= np.sqrt(axis @ axis)
    angle = rng.uniform(-np.pi, np.pi)
    w, (x, y, z) = np.cos(angle / 2), np.sin(angle / 2) * axis
    k = tilde(axis)
    rodrigues = np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k
    for scale in (length, -length):
        close(from_quaternion(*(float(scale * e) for e in (w, x, y, z))), rodrigues, 4.0)


def test_turns_have_the_right_sense() -> None:
    """A quarter turn about z takes x to y; about x it takes y to z; scalar-first quaternions agree."""
    x, y, z = Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)
    assert AboutZ(0.0, 1.0).apply(x) == y and AboutZ(0.0, 1.0).inverse(y) == x
    assert AboutX(0.0, 1.0).apply(y) == z and AboutX(0.0, 1.0).inverse(z) == y
    half = float(np.sqrt(0.5))
    close(from_quaternion(half, 0.0, 0.0, half), dense(AboutZ(0.0, 1.0)))
    close(from_quaternion(half, half, 0.0, 0.0), dense(AboutX(0.0, 1.0)))
    close(from_quaternion(half, 0.0, half, 0.0).apply(z), dense(x))  # about y, z goes to x
    np.testing.assert_array_equal(dense(from_quaternion(1.0, 0.0, 0.0, 0.0)), np.eye(3))


# -- transforms -------------------------------------------------------------------------------
@pytest.mark.parametrize("structure", ROTATIONS)
@some
@given(seeds)
def test_transforms(structure: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t, v, f, p = transform(rng, structure), motion(rng), force(rng), vector(rng)
    big = dense(t)
    turn, shift = dense(t.rotation), dense(t.translation)
    close(t.point(p), turn @ dense(p) + shift, 8.0)
    close(t.velocity(v), big @ dense(v), 36.0)
    close(t.acceleration(v), big @ dense(v), 36.0)
    close(t.column_to_parent(v), np.linalg.inv(big) @ dense(v), 36.0)
    close(t.force(f), big.T @ dense(f), 36.0)
    close(t.column_to_parent(t.velocity(v)), dense(v), 100.0)
    # power is the same on both sides
    assert t.velocity(v).dot(f) == pytest.approx(v.dot(t.force(f)), abs=16 * EPS * 200.0)


@pytest.mark.parametrize("structure", ROTATIONS)
@some
@given(seeds)
def test_inertias_seen_from_the_parent(structure: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t, body, linkage = transform(rng, structure), rigid(rng), articulated(rng)
    big = dense(t)
    close(t.rigid(body), big.T @ dense(body) @ big, 100.0)
    whole = dense(t.articulated(linkage))
    close(whole, big.T @ dense(linkage) @ big, 300.0)
    np.testing.assert_array_equal(whole, whole.T)
    assert np.linalg.eigvalsh(whole).min() > 0.0
    # a rigid body is an articulated one as well
    close(t.articulated(body.articulated()), dense(t.rigid(body)), 100.0)


@pytest.mark.parametrize("structure", ROTATIONS)
@some
@given(seeds)
def test_turned_axes(structure: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t, world = transform(rng, structure), rotation(rng, "general")
    assert isinstance(world, General)
    close(t.turned(world), dense(world) @ dense(t.rotation), 3.0)


def test_identity_transform() -> None:
    np.testing.assert_array_equal(dense(Transform.identity()), np.eye(6))


# -- inertias ---------------------------------------------------------------------------------
@some
@given(seeds)
def test_rigid_inertias(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, v, r, w = rigid(rng), rigid(rng), motion(rng), vector(rng), vector(rng)
    np.testing.assert_array_equal(dense(a), dense(a).T)
    close(a + b, dense(a) + dense(b))
    close(a @ v, dense(a) @ dense(v), 24.0)
    np.testing.assert_array_equal(dense(a.articulated()), dense(a))
    shift = dense(Transform(Identity(), r))
    close(a.shifted(r), shift.T @ dense(a) @ shift, 100.0)
    close(a.shifted(r).shifted(-r), dense(a), 200.0)
    omega, second, first = dense(w), dense(a.second), dense(a.first)
    wanted = np.concatenate([np.cross(omega, second @ omega), np.cross(omega, np.cross(omega, first))])
    close(a.gyroscopic(w), wanted, 100.0)
    assert not dense(RigidInertia.zero()).any()


@some
@given(seeds)
def test_inertia_from_the_center_of_mass(seed: int) -> None:
    """Steiner's theorem: J + m (c.c 1 - c c^T), first moment m c."""
    rng = np.random.default_rng(seed)
    mass, com, inertia = float(rng.uniform(0.1, 5.0)), vector(rng), symmetric(rng)
    made = RigidInertia.from_centre(mass, com, inertia)
    c = dense(com)
    assert made.mass == mass
    close(made.first, mass * c, 10.0)
    close(made.second, dense(inertia) + mass * (c @ c * np.eye(3) - np.outer(c, c)), 60.0)


@some
@given(seeds)
def test_point_masses_add_up(seed: int) -> None:
    """The inertia of many particles, and the force that particles on a turning body need."""
    rng = np.random.default_rng(seed)
    total, moment, push = RigidInertia.zero(), np.zeros(3), np.zeros(3)
    w, alpha, a = vector(rng), vector(rng), vector(rng)
    for _ in range(5):
        mass, at = float(rng.uniform(0.1, 1.0)), vector(rng)
        total = total + RigidInertia.from_centre(mass, at, Symmetric3.zero())
        r, omega = dense(at), dense(w)
        acceleration = dense(a) + np.cross(dense(alpha), r) + np.cross(omega, np.cross(omega, r))
        push = push + mass * acceleration
        moment = moment + np.cross(r, mass * acceleration)
    got = total @ Motion(alpha, a) + total.gyroscopic(w)
    close(got, np.concatenate([moment, push]), 1000.0)


@some
@given(seeds)
def test_articulated_inertias(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, v, r = articulated(rng), articulated(rng), motion(rng), vector(rng)
    close(a + b, dense(a) + dense(b), 8.0)
    close(a @ v, dense(a) @ dense(v), 48.0)
    shift = dense(Transform(Identity(), r))
    close(a.shifted(r), shift.T @ dense(a) @ shift, 300.0)
    assert not dense(ArticulatedInertia.zero()).any()


def eliminate(m: ArticulatedInertia, column: Motion) -> ArticulatedInertia:
    u = m @ column
    return m.eliminated(column, u, u * (1.0 / column.dot(u)))


@some
@given(seeds)
def test_eliminated_inertia_does_not_resist(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, column = articulated(rng), motion(rng)
    rest = eliminate(m, column)
    s, d = dense(column), dense(m)
    u = d @ s
    wanted = d - np.outer(u, u) / (s @ u)
    scale = float(np.abs(d).max() + (u @ u) / (s @ u))
    close(rest, wanted, scale)
    close(rest @ column, np.zeros(6), scale * float(np.abs(s).sum()))
    values = np.linalg.eigvalsh(dense(rest))
    assert abs(values[0]) <= 64 * EPS * scale and values[1] > 0.0


@pytest.mark.parametrize("index", range(6))
@some
@given(seeds)
def test_eliminated_rows_of_unit_columns_are_exact_zeros(index: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = articulated(rng)
    rest = eliminate(m, UNITS[index])
    d, got = dense(m), dense(rest)
    assert not got[index].any() and not got[:, index].any()
    close(got, d - np.outer(d[:, index], d[:, index]) / d[index, index],
          float(np.abs(d).max() + (d[:, index] @ d[:, index]) / d[index, index]))
    # one more, and the first stays eliminated
    other = (index + 1 + int(rng.integers(5))) % 6
    twice = dense(eliminate(rest, UNITS[other]))
    assert not twice[[index, other]].any() and not twice[:, [index, other]].any()
    keep = [i for i in range(6) if i not in (index, other)]
    gone = [index, other]
    across = d[np.ix_(keep, gone)]
    wanted = d[np.ix_(keep, keep)] - across @ np.linalg.solve(d[np.ix_(gone, gone)], across.T)
    # the pivots are not below 0.5; entries are below 7
    close(twice[np.ix_(keep, keep)], wanted, 1000.0)


# -- other scalars ----------------------------------------------------------------------------
Operation = Callable[..., Any]
OPERATIONS: dict[str, tuple[Operation, tuple[Callable[..., Any], ...]]] = {
    "velocity": (Transform.velocity, (transform, motion)),
    "column_to_parent": (Transform.column_to_parent, (transform, motion)),
    "force": (Transform.force, (transform, force)),
    "articulated": (Transform.articulated, (transform, articulated)),
    "rigid": (Transform.rigid, (transform, rigid)),
    "point": (Transform.point, (transform, vector)),
}


@pytest.mark.parametrize("structure", ROTATIONS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_traced_and_array_scalars(name: str, structure: str, rng: np.random.Generator) -> None:
    """The same operation on traced scalars and on arrays with one entry per state."""
    apply, makers = OPERATIONS[name]
    states = [tuple(make(rng, structure) if make is transform else make(rng) for make in makers) for _ in range(3)]
    wanted = np.array([list(flatten(apply(*state))) for state in states])
    flat = np.array([list(flatten(state)) for state in states])
    arrays = rebuild(states[0], iter(flat.T))
    np.testing.assert_array_equal(np.stack(np.broadcast_arrays(*flatten(apply(*arrays))), axis=-1), wanted)
    graph = Graph()
    traced = list(flatten(apply(*rebuild(states[0], (graph.leaf(i) for i in range(flat.shape[1]))))))
    for row, one in zip(flat, wanted, strict=True):
        # signs may move, so that sums are rounded in another order
        np.testing.assert_allclose([float(v) for v in evaluate(traced, lambda i, row=row: float(row[i]))], one,
                                   rtol=0.0, atol=16 * EPS * 300.0)


def test_structure_saves_operations(rng: np.random.Generator) -> None:
    """The point of having four kinds of rotations: turning a symmetric matrix costs less for the simpler ones."""
    costs = {}
    for structure in ROTATIONS[:4]:
        graph = Graph()
        count_of = len(list(flatten(rotation(rng, structure))))
        turn = rebuild(rotation(rng, structure), (graph.leaf(("r", i)) for i in range(count_of)))
        entries = Symmetric3(*(graph.leaf(("m", i)) for i in range(6)))
        costs[structure] = count(turn.symmetric(entries)).total
    assert costs["identity"] == 0
    assert costs["about x"] == costs["about z"] <= 8 + 8
    assert costs["general"] > 2 * costs["about z"]


@some
@given(seeds)
def test_unit_columns_save_operations(seed: int) -> None:
    index = seed % 6
    graph = Graph()
    names = iter(range(21))
    m = ArticulatedInertia(Symmetric3(*(graph.leaf(next(names)) for _ in range(6))),
                           Matrix3(*(Vector(*(graph.leaf(next(names)) for _ in range(3))) for _ in range(3))),
                           Symmetric3(*(graph.leaf(next(names)) for _ in range(6))))
    rest = eliminate(m, UNITS[index])
    zeros = sum(1 for x in flatten(rest) if type(x) is float and x == 0.0)
    assert zeros == 6  # the 21 entries less those of one row
    assert count(list(flatten(rest))).divs == 1
