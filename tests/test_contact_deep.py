"""Shapes far inside each other, and poses in which edges and corners lie exactly over each other."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import bellcrank as bc
from bellcrank.errors import StateError
from bellcrank.mechanism.contact.contact_material import Compliant
from bellcrank.mechanism.contact.ground_contacts import corners_of
from bellcrank.mechanism.contact.narrow_phase import seen_by_contact, touches
from bellcrank.mechanism.contact.touch import ShapeFrame
from bellcrank.mechanism.forces.element import Moving
from bellcrank.spatial import Vector
from bellcrank.topology.contact_pairs import ContactPair
from test_contact_shapes import SHAPES, advanced, moving, turns


def octahedron(size: float) -> bc.Mesh:
    return bc.Mesh(size * np.concatenate([np.eye(3), -np.eye(3)]), [(0, 1, 2)])


TETRAHEDRON = bc.Mesh(0.1 * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]), [(0, 1, 2)])
#: the second shape at a height over the middle of the first
DEEP = {
    "a box in the middle of another": (bc.Box((1, 1, 1)), bc.Box((0.2, 0.2, 0.2)), 0.0),
    "a plate through a box": (bc.Box((1, 1, 1)), bc.Box((2, 2, 0.01)), 0.1),
    "a hull in itself": (octahedron(0.2), octahedron(0.2), 0.0),
    "a hull in a box": (bc.Box((0.2, 0.2, 0.2)), TETRAHEDRON, 1e-4),
    "a needle through a hull": (octahedron(0.2), bc.Capsule(0.001, 1.0), 0.0),
    "a rod in a cylinder": (bc.Cylinder(0.1, 0.2), bc.Cylinder(0.001, 0.1), 0.0),
}


@pytest.mark.parametrize("case", DEEP)
@pytest.mark.parametrize("material", [{}, {"stiffness": 1e4}], ids=["rigid", "compliant"])
def test_what_lies_in_another_shape_is_named(case: str, material: dict[str, float]) -> None:
    """Item 4: shapes that overlap at the start are named with their depth, however deep they are."""
    one, other, height = DEEP[case]
    m = bc.Mechanism("deep")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("body", bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1))))
    m.add_shape(m.ground, one, role="collision")
    m.add_shape("body", other, role="collision")
    m.add_contact("c", m.ground, "body", **material)
    system = bc.compile(m, backend="numpy")
    q = system.neutral()
    q[6] = height
    with pytest.raises(StateError, match=r"overlap at the start: 'c' by 0\.\d+ m"):
        system.simulate((q, np.zeros(6)), 1e-3, stepper="rk4" if material else "moreau", step=1e-3)


def deepest(one: Any, other: Any, shifts: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Depths of the deepest places of the second shape, shifted and turned, against the first."""
    n = len(shifts)
    frames = [ShapeFrame(*(Vector(*(column[:, i] for i in range(3))) for column in (origin, *turn.transpose(2, 0, 1))))
              for origin, turn in ((np.zeros((n, 3)), np.tile(np.eye(3), (n, 1, 1))), (shifts, turns))]
    found = touches(seen_by_contact(one, "one"), frames[0], seen_by_contact(other, "other"), frames[1])
    full = [np.broadcast_to(np.asarray(x, dtype=float), (2, n)) for x in (
        np.stack([np.broadcast_to(t.depth, (n,)), np.broadcast_to(t.share, (n,))]) for t in found)]
    return np.asarray(np.max([np.where(share > 0.0, depth, -np.inf) for depth, share in full], axis=0))


@pytest.mark.parametrize(("one", "other", "size"), [
    (bc.Box((0.3, 0.3, 0.004)), bc.Box((0.2, 0.1, 0.1)), 0.004), (bc.Box((0.3, 0.3, 0.004)),) * 2 + (0.004,),
    (octahedron(0.2), bc.Capsule(0.002, 0.6), 0.004), (bc.Cylinder(0.1, 0.2), bc.Cylinder(0.002, 0.5), 0.004)])
def test_thin_shapes_hold_beyond_their_middle(one: Any, other: Any, size: float) -> None:
    """Overlaps of more than half of a thin shape: seen, and not as much deeper ones. Both are brought near along a way
    in which the depth was half of that."""
    rng, n = np.random.default_rng(8), 60
    turns = Rotation.random(n, random_state=rng).as_matrix()
    ways = rng.normal(size=(n, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    near, far = np.zeros(n), np.ones(n)
    for _ in range(40):  # the first touch from outside
        middle = 0.5 * (near + far)
        open_ = deepest(one, other, ways * middle[:, None], turns) <= 0.0
        near, far = np.where(open_, near, middle), np.where(open_, middle, far)
    for part in (0.3, 0.6, 0.8):
        found = deepest(one, other, ways * (far - part * size)[:, None], turns)
        assert (found > 0.0).all() and found.max() < 1.001 * part * size


QUARTER = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize(("one", "other", "shift", "turn"), [
    (octahedron(0.1), bc.Cylinder(0.5, 1e-3), (0.0, 0.0, 0.4), np.eye(3)),  # a corner over the middle of a disc
    (octahedron(0.1), bc.Cylinder(0.5, 1e-3), (0.4, 0.0, 0.0), QUARTER),
    (octahedron(0.1), TETRAHEDRON, (0.0, 0.2, 0.2), np.eye(3)),  # an edge over an edge
    (octahedron(0.1), octahedron(0.1), (0.3, 0.0, 0.0), np.eye(3)),
    (TETRAHEDRON, bc.Box((9.0, 9.0, 1.0)), (0.0, 0.0, 2.0), np.eye(3))])
def test_what_is_apart_does_not_touch(one: Any, other: Any, shift: tuple[float, ...], turn: np.ndarray) -> None:
    """Along axes of symmetry the ray that looks for a way out goes through corners."""
    for sign in (-1.0, 1.0):
        assert deepest(one, other, sign * np.array([shift]), turn[None])[0] <= 0.0


def turned_about_axes() -> np.ndarray:
    """The 24 turns by which a cube stays what it is."""
    signed = [np.eye(3)[list(p)] * signs for p in permutations(range(3)) for signs in product((1.0, -1.0), repeat=3)]
    return np.array([turn for turn in signed if np.linalg.det(turn) > 0.0])


@pytest.mark.parametrize(("one", "other"), [(TETRAHEDRON, TETRAHEDRON), (octahedron(0.15), octahedron(0.15)),
                                            (octahedron(0.15), TETRAHEDRON), (bc.Box((0.2, 0.1, 0.3)), TETRAHEDRON)])
def test_no_overlap_is_missed(one: Any, other: Any) -> None:
    """Item 4, in poses that are symmetric (through edges and corners of both) and in any others: beside the hull of
    the difference. No overlap counts for less than half of what it is."""
    rng = np.random.default_rng(5)
    rows = [np.array(corners_of(s)) if isinstance(s, bc.Box) else np.array(s.vertices) for s in (one, other)]
    turns = np.concatenate([turned_about_axes(), Rotation.random(16, random_state=rng).as_matrix()])
    shifts = np.concatenate([rng.integers(-4, 5, (24, 60, 3)) * rng.choice([0.05, 0.025, 1e-3], (24, 60, 1)),
                             rng.uniform(-0.2, 0.2, (16, 60, 3))])
    depth = []
    for turn, shift in zip(turns, shifts, strict=True):
        planes = ConvexHull((rows[0][:, None] - rows[1][None] @ turn.T).reshape(-1, 3)).equations
        depth.append(-(shift @ planes[:, :3].T + planes[:, 3]).max(axis=1))
    found = deepest(one, other, shifts.reshape(-1, 3), np.repeat(turns, 60, axis=0)).reshape(40, 60)
    inside, outside = np.array(depth) > 1e-9, np.array(depth) < -1e-9
    assert inside.sum() > 500 and outside.sum() > 200
    assert (found[inside] > 0.49 * np.array(depth)[inside]).all() and (found[outside] <= 1e-12).all()


def soft_ball() -> bc.System:
    m = bc.Mechanism("soft")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("ball", bc.Inertia(2.0, (0, 0, 0), (0.01, 0.01, 0.01))))
    m.add_shape(m.ground, bc.Plane(), role="collision")
    m.add_shape("ball", bc.Sphere(0.1), role="collision")
    m.add_contact("floor", m.ground, "ball", stiffness=300.0)
    return bc.compile(m, backend="numpy")


def test_a_run_goes_on_where_another_ended() -> None:
    """Deeper than what may be a start: as the result, and as the result of the same machine made anew."""
    system, whole = soft_ball(), 0.3
    start = system.neutral()
    start[6] = 0.1
    first = system.simulate((start, np.zeros(6)), 0.5 * whole, step=5e-3)
    q, u = first.q.values[-1], first.u.values[-1]
    assert 0.1 - q[6] > 0.06  # more than a quarter of the ball
    at_once = system.simulate((start, np.zeros(6)), whole, step=5e-3)
    for made, state in ((system, first), (soft_ball(), first), (system, first.isel(time=[-1]))):
        on = made.simulate(state, 0.5 * whole, step=5e-3)
        np.testing.assert_allclose(on.q.values[-1], at_once.q.values[-1], atol=1e-12)
    assert float(on.time[0]) == 0.5 * whole
    with pytest.raises(StateError, match=r"overlap at the start: 'floor' by 0\.\d+ m.*give the result of a run"):
        system.simulate((q, u), 0.01, step=5e-3)


def test_a_result_of_another_machine_is_no_excuse() -> None:
    """The same coordinates without contact: what overlaps then is a mistake, and named."""
    m = bc.Mechanism("soft")
    m.add_joint("free", bc.Free(), m.ground, m.add_body("ball", bc.Inertia(2.0, (0, 0, 0), (0.01, 0.01, 0.01))))
    fallen = bc.compile(m, backend="numpy").simulate((soft_ball().neutral(), np.zeros(6)), 0.01, step=5e-3)
    with pytest.raises(StateError, match=r"overlap at the start: 'floor' by 0\.1\d* m"):
        soft_ball().simulate(fallen, 0.01, step=5e-3)
    pendulum = bc.compile(bc.load("pendulum"))
    with pytest.raises(StateError, match=r"has other coordinates \(free\.qw.*than 'pendulum'"):
        pendulum.simulate(fallen, 0.01)


@pytest.mark.parametrize(("one", "other", "most"), [
    ("capsule", "box", 0.0), ("capsule", "cylinder", 0.0), ("capsule", "mesh", 0.0), ("box", "cylinder", 0.01),
    ("box", "mesh", 0.01), ("mesh", "mesh", 0.01), ("cylinder", "mesh", 0.02)])
def test_power_is_the_rate_of_what_is_stored(one: str, other: str, most: float) -> None:
    """However deep shapes are inside each other; except for a few poses in which a place takes over from another."""
    rng, n = np.random.default_rng(5), 600
    shapes = [seen_by_contact(SHAPES[k], k) for k in (one, other)]
    pair = ContactPair("pair", 1, 2, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3, *shapes, Compliant(1e3))
    first, second = turns(rng, n), turns(rng, n)
    apart = rng.normal(size=(n, 3))
    apart *= (rng.uniform(0.05, 0.6, n) / np.linalg.norm(apart, axis=1))[:, None]
    spins, speeds = rng.normal(size=(2, 2, n, 3))

    def ends(h: float) -> list[Moving]:
        return [moving(advanced(turn, spin, h), place + speed * h, spin, speed) for turn, place, spin, speed in
                zip((first, second), (0.0 * apart, apart), spins, speeds, strict=True)]

    def energy(h: float) -> np.ndarray:
        return np.broadcast_to(pair.energy(*ends(h)), (n,))

    power = sum(wrench.force.dot(end.velocity) + wrench.moment.dot(end.omega)
                for wrench, end in zip(pair.wrenches(*ends(0.0), None), ends(0.0), strict=True))
    missed = [np.abs((energy(h) - energy(-h)) / (2.0 * h) + power) / (np.abs(power) + 1.0) for h in (1e-4, 1e-5, 1e-6)]
    assert (energy(0.0) > 1.0).sum() > n // 2 and (np.min(missed, axis=0) > 1e-3).mean() <= most
