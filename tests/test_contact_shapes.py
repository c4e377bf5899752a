"""Where shapes touch: beside another library's distances; depths change at the rate at which bodies approach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import ModelError
from bellcrank.mechanism.contact.contact_material import BristleContact, Compliant, dissipation_for
from bellcrank.mechanism.contact.narrow_phase import known_pair, seen_by_contact
from bellcrank.mechanism.forces.element import Moving
from bellcrank.spatial import General, Matrix3, Vector
from bellcrank.topology.contact_pairs import ContactPair

OCTAHEDRON = bc.Mesh(0.3 * np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1.5)]),
                     [(0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5)])
HILLS = bc.HeightField(np.linspace(-1.5, 1.5, 8), np.linspace(-1.5, 1.5, 7),
                       0.1 * np.sin(1.7 * np.arange(56.0)**1.1).reshape(8, 7), kind="cubic")
SHAPES: dict[str, Any] = {
    "field": HILLS,
    "plane": bc.Plane(), "sphere": bc.Sphere(0.3), "capsule": bc.Capsule(0.15, 0.5), "box": bc.Box((0.5, 0.3, 0.4)),
    "cylinder": bc.Cylinder(0.25, 0.4), "cone": bc.Cone(0.25, 0.5), "ellipsoid": bc.Ellipsoid((0.3, 0.2, 0.1)),
    "mesh": OCTAHEDRON}
PAIRS = [(a, b) for i, a in enumerate(SHAPES) for b in list(SHAPES)[i:]
         if known_pair(*(seen_by_contact(SHAPES[k], k) for k in (a, b)))]


#: pairs that are measured by faces: their distances are not those of the shapes
FACED = (("box", "box"), ("box", "cylinder"), ("cylinder", "cylinder"))


def vector(array: np.ndarray) -> Vector:
    return Vector(*(array[..., i] for i in range(3)))


def turns(rng: np.random.Generator, n: int) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(n, 3, 3)))
    return q * np.sign(np.linalg.det(q))[:, None, None]


def moving(turn: np.ndarray, origin: np.ndarray, omega: np.ndarray, velocity: np.ndarray) -> Moving:
    return Moving(General(Matrix3(*(vector(turn[:, i]) for i in range(3)))), vector(origin), vector(omega),
                  vector(velocity))


def pair(one: str, other: str, material: Any) -> ContactPair:
    rng = np.random.default_rng(7)
    shapes = [seen_by_contact(SHAPES[k], k) for k in (one, other)]
    turn = turns(rng, 2)
    return ContactPair("pair", 1, 2, turn[0], (0.1, -0.2, 0.05), turn[1], (0.0, 0.1, 0.2), *shapes, material)


def advanced(turn: np.ndarray, omega: np.ndarray, h: float) -> np.ndarray:
    """Turned on about a fixed axis (Rodrigues)."""
    speed = np.linalg.norm(omega, axis=-1)[:, None, None]
    k = np.zeros_like(turn)
    x, y, z = (omega / speed[:, 0]).T
    k[:, 0, 1], k[:, 0, 2], k[:, 1, 0], k[:, 1, 2], k[:, 2, 0], k[:, 2, 1] = -z, y, z, -x, -y, x
    return (np.eye(3) + np.sin(speed * h) * k + (1 - np.cos(speed * h)) * k @ k) @ turn


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_energy_goes_where_it_is_said_to(one: str, other: str) -> None:
    """Power of the two wrenches, rate of the stored energy and loss add up to nothing, and nothing is gained."""
    rng, n, h = np.random.default_rng(3), 400, 1e-6
    both = []
    for _ in range(2):
        both.append((turns(rng, n), 0.25 * rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))))
    element = pair(one, other, Compliant(1000.0, 0.3, 0.6, 1e-2, 1.5))

    def at(t: float) -> list[Moving]:
        return [moving(advanced(turn, omega, t), origin + t * velocity, omega, velocity)
                for turn, origin, omega, velocity in both]

    first, second = at(0.0)
    change = (np.asarray(element.energy(*at(h))) - np.asarray(element.energy(*at(-h)))) / (2 * h)
    power = sum(w.moment.dot(x.omega) + w.force.dot(x.velocity)
                for w, x in zip(element.wrenches(first, second, None), (first, second), strict=True))
    loss = np.asarray(element.loss(first, second, None))
    touching = np.asarray(element.energy(first, second)) > 0.0
    assert touching.sum() > 30
    assert loss.min() >= 0.0
    wrong = np.abs(change + power + loss) > 1e-6 * (1.0 + np.abs(power))
    if one == "capsule" and other in ("box", "mesh", "cylinder"):  # exact as long as the axis stays outside
        wrong &= np.asarray(element.touches(first, second)[-1].depth) < SHAPES["capsule"].radius
    for touch in element.touches(first, second):  # where places take over from each other
        wrong &= (np.asarray(touch.share) == 0.0) | (np.asarray(touch.share) == 1.0)
    if (one, other) in (*FACED[1:], ("cylinder", "mesh")):  # far inside each other faces change often
        deepest = np.max([np.broadcast_to(t.depth, (n,)) for t in element.touches(first, second)], axis=0)
        shallow = touching & (deepest < 0.02)
        assert shallow.sum() > 10 and wrong[shallow].sum() <= 1, (shallow.sum(), wrong[shallow].sum())
        return
    if one == "field" and other in ("cylinder", "cone"):  # exact but where a rim lies about flat on bent ground
        assert wrong.sum() < 0.1 * touching.sum()
        return
    assert wrong.sum() <= 1, np.flatnonzero(wrong)  # where the nearest face changes within h


#: how far each shape reaches along a direction n, given in its own axes
REACHES: dict[str, Any] = {
    "sphere": lambda n: 0.3, "capsule": lambda n: 0.15 + 0.25 * abs(n[2]),
    "box": lambda n: 0.25 * abs(n[0]) + 0.15 * abs(n[1]) + 0.2 * abs(n[2]),
    "cylinder": lambda n: 0.25 * np.hypot(n[0], n[1]) + 0.2 * abs(n[2]),
    "cone": lambda n: max(0.25 * n[2], 0.25 * np.hypot(n[0], n[1]) - 0.25 * n[2]),
    "ellipsoid": lambda n: np.linalg.norm(n * [0.3, 0.2, 0.1]),
    "mesh": lambda n: max(OCTAHEDRON.vertices @ n)}


@pytest.mark.parametrize("name", REACHES)
def test_depths_below_a_plane_are_the_reach_of_the_shape(name: str) -> None:
    """In closed form; and the place lies half way between the plane and a point of the shape, the farthest one."""
    rng, n = np.random.default_rng(2), 20
    tilt, (turn, origin) = turns(rng, n), (turns(rng, n), rng.uniform(-0.3, 0.3, size=(n, 3)))
    element = ContactPair("pair", 0, 1, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3,
                          *(seen_by_contact(SHAPES[k], k) for k in ("plane", name)), None)
    still = np.zeros((n, 3))
    found = element.touches(moving(tilt, still, still, still), moving(turn, origin, still, still))
    depths = np.array([np.broadcast_to(touch.depth, (n,)) for touch in found])
    points = np.array([np.stack([np.broadcast_to(x, (n,)) for x in touch.point], axis=-1) for touch in found])
    for i in range(n):
        up, k = tilt[i, :, 2], int(depths[:, i].argmax())
        assert depths[k, i] == pytest.approx(REACHES[name](-turn[i].T @ up) - up @ origin[i], abs=1e-12)
        assert up @ points[k, i] == pytest.approx(-0.5 * depths[k, i], abs=1e-12)
        own = turn[i].T @ (points[k, i] - 0.5 * depths[k, i] * up - origin[i])  # in the axes of the shape
        ways = rng.normal(size=(40, 3))
        assert max(own @ w - REACHES[name](w) for w in ways / np.linalg.norm(ways, axis=1)[:, None]) < 1e-12


@pytest.mark.parametrize(("one", "other"), [p for p in PAIRS if set(p) <= set(REACHES)])
def test_places_lie_half_way_between_points_of_both_shapes(one: str, other: str) -> None:
    """At every closed place; the deepest one between points that are the farthest of their shapes along the normal."""
    rng, n = np.random.default_rng(1), 12
    turn, ways = (turns(rng, n), turns(rng, n)), rng.normal(size=(n, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    origin = np.array([w * (REACHES[one](turn[0][i].T @ w) + REACHES[other](-turn[1][i].T @ w) - 0.03)
                       for i, w in enumerate(ways)])
    element = ContactPair("pair", 0, 1, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3,
                          *(seen_by_contact(SHAPES[k], k) for k in (one, other)), None)
    still = np.zeros((n, 3))
    rows = np.array([[np.broadcast_to(x, (n,)) for x in (t.depth, t.share, *t.point, *t.normal)]
                     for t in element.touches(moving(turn[0], still, still, still),
                                              moving(turn[1], origin, still, still))])  # (places, 8, n)
    seen = 0
    for i in range(n):
        closed = rows[(rows[:, 0, i] > 0.0) & (rows[:, 1, i] > 1e-9), :, i]
        for depth, _, *place in closed:
            point, normal = np.array(place[:3]), np.array(place[3:])
            mine, theirs = (turn[k][i].T @ (point + s * 0.5 * depth * normal - k * origin[i])
                            for k, s in ((0, 1), (1, -1)))
            for w in ways:
                assert w @ mine < REACHES[one](w) + 1e-12 and w @ theirs < REACHES[other](w) + 1e-12
            if depth == closed[:, 0].max():
                along = [turn[k][i].T @ normal * s for k, s in ((0, 1), (1, -1))]
                assert along[0] @ mine == pytest.approx(REACHES[one](along[0]), abs=1e-9)
                assert along[1] @ theirs == pytest.approx(REACHES[other](along[1]), abs=1e-9)
                seen += 1
    assert seen > 1


@pytest.mark.parametrize(("one", "other"), [p for p in PAIRS if not set(p) & {"cone", "mesh", "field"}
                                            and p not in FACED])
def test_distances_beside_mujoco(one: str, other: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    geoms = {"plane": 'type="plane" size="9 9 1"', "sphere": 'type="sphere" size="0.3"',
             "capsule": 'type="capsule" size="0.15 0.25"', "box": 'type="box" size="0.25 0.15 0.2"',
             "cylinder": 'type="cylinder" size="0.25 0.2"', "ellipsoid": 'type="ellipsoid" size="0.3 0.2 0.1"'}
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><geom {geoms[one]}/><body><freejoint/>
        <geom {geoms[other]}/></body></worldbody></mujoco>""")
    data, rng, n = mujoco.MjData(model), np.random.default_rng(5), 40
    shapes = [seen_by_contact(SHAPES[k], k) for k in (one, other)]
    element = ContactPair("pair", 0, 1, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3, *shapes, None)
    turn, origin = turns(rng, n), rng.uniform(-1.0, 1.0, size=(n, 3))
    still = np.zeros((n, 3))
    found = element.touches(moving(np.tile(np.eye(3), (n, 1, 1)), still, still, still),
                            moving(turn, origin, still, still))
    deepest = np.max([np.broadcast_to(t.depth, (n,)) for t in found], axis=0)
    seen = 0
    for i in range(n):
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, turn[i].ravel())
        data.qpos[:] = [*origin[i], *quaternion]
        mujoco.mj_forward(model, data)
        distance = mujoco.mj_geomDistance(model, data, 0, 1, 5.0, None)
        if distance > 1e-3 or one == "plane":  # overlaps of other shapes are measured in other ways
            seen += 1
            assert -deepest[i] == pytest.approx(distance, abs=2e-5), i
    assert seen > 5


@pytest.mark.parametrize("one", ["sphere", "capsule"])
def test_distances_from_hulls(one: str) -> None:
    """Beside the nearest point among all mixtures of the corners, by least squares."""
    from scipy.optimize import minimize_scalar, nnls

    rng = np.random.default_rng(4)
    ball = bc.Mesh((lambda p: 0.3 * p / np.linalg.norm(p, axis=1)[:, None])(rng.normal(size=(40, 3))), [(0, 1, 2)])
    hull, shape = seen_by_contact(ball, "ball"), SHAPES[one]
    corners = np.array(hull.corners)
    assert len(corners) == 24

    def distance(x: np.ndarray) -> float:
        return float(nnls(np.vstack([corners.T, 100.0 * np.ones(24)]), np.array([*x, 100.0]))[1])

    n = 12
    turn, origin = turns(rng, n), rng.uniform(-0.7, 0.7, size=(n, 3))
    still, seen = np.zeros((n, 3)), 0
    element = ContactPair("pair", 0, 1, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3, shape, hull, None)
    found = element.touches(moving(turn, origin, still, still), moving(np.tile(np.eye(3), (n, 1, 1)), still, still,
                                                                       still))
    deepest = np.max([np.broadcast_to(t.depth, (n,)) for t in found], axis=0)
    for i in range(n):
        axis = turn[i][:, 2]
        near = distance(origin[i]) if one == "sphere" else minimize_scalar(
            lambda s, i=i, axis=axis: distance(origin[i] + s * axis), bounds=(-0.25, 0.25), method="bounded",
            options={"xatol": 1e-6}).fun
        if near > 1e-3:
            seen += 1
            assert shape.radius - deepest[i] == pytest.approx(near, abs=1e-4), i
    assert seen > 5


def test_parallel_capsules_and_capsule_beside_a_box() -> None:
    """Where all of a stretch is nearest, forces act in its middle."""
    zero = np.zeros((1, 3))
    lying = np.array([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]])  # z along x
    for shape, height in ((bc.Capsule(0.15, 0.5), 0.29), (bc.Box((0.4, 0.4, 0.5)), 0.34)):
        capsule = bc.Capsule(0.15, 0.5)
        under = np.eye(3)[None] if isinstance(shape, bc.Box) else lying
        element = ContactPair("pair", 1, 2, np.eye(3), (0.0,) * 3, np.eye(3), (0.0,) * 3, capsule, shape, None)
        first = moving(lying, np.array([[0.1, 0.0, height]]), zero, zero)
        second = moving(under, zero, zero, zero)
        touch, = element.touches(first, second)
        middle = 0.05 if isinstance(shape, bc.Capsule) else 0.5 * (max(-0.15, -0.2) + min(0.35, 0.2))
        assert float(touch.point.x[0]) == pytest.approx(middle)
        assert float(touch.normal.z[0]) == pytest.approx(-1.0)


@pytest.mark.parametrize("restitution", [1e-3, 0.02, 0.05, 0.3, 0.6, 0.95, 1.0])
def test_dissipation_gives_the_restitution(restitution: float) -> None:
    """One body against a wall, integrated to rounding."""
    from scipy.integrate import solve_ivp

    speed = 1.7
    material = Compliant(1e4, dissipation_for(restitution, speed), exponent=1.5)
    parted = lambda t, y: y[0] if t > 1e-6 else 1.0  # noqa: E731
    parted.terminal = True  # type: ignore[attr-defined]
    run = solve_ivp(lambda t, y: [y[1], -float(material.normal_force(float(y[0]), float(y[1]))) / 2.0], (0.0, 30.0),
                    [0.0, speed], rtol=1e-10, atol=1e-12, events=parted)
    assert -run.y[1, -1] == pytest.approx(restitution * speed, rel=1e-5)


# -- what is refused ------------------------------------------------------------------------------
def two_bodies() -> bc.Mechanism:
    m = bc.Mechanism("two")
    for name in ("a", "b"):
        m.add_joint(f"free {name}", bc.Free(), m.ground, m.add_body(name, bc.Inertia(1.0, (0, 0, 0), (1, 1, 1))))
    m.add_shape("a", bc.Cylinder(0.1, 0.2), role="collision")
    m.add_shape("b", bc.Ellipsoid((0.1, 0.2, 0.2)), role="collision")
    m.add_shape("b", bc.Sphere(0.1), role="collision", name="ball")
    return m


@pytest.mark.parametrize(("change", "said"), [
    (lambda m: m.add_contact("c", "a", "b"), "2 shapes of the role 'collision'.*'ball'.*name one"),
    (lambda m: m.add_contact("c", "a", "b ellipsoid"), "Cylinder and Ellipsoid cannot touch here: Ellipsoid"),
    (lambda m: m.add_contact("c", m.add_shape("a", bc.Plane(), role="collision"), m.add_shape(
        "b", bc.Plane(), role="collision")), "Plane and Plane cannot touch here: give one of the bodies a shape that"),
    (lambda m: m.add_contact("c", "a", "ground"), "body 'ground' has no shape of the role 'collision'; add one"),
    (lambda m: m.add_contact("c", "a", "bal"), "no body or shape called 'bal'.*did you mean 'ball'"),
    (lambda m: m.add_contact("c", "ball", "b ellipsoid"), "both shapes belong to one body"),
    (lambda m: m.add_contact("c", "a", "ball", restitution=1.2), "at most 1, got 1.2"),
    (lambda m: m.add_contact("c", "a", "ball", dissipation=1.0), "dissipation belongs to a compliant contact"),
    (lambda m: m.add_contact("c", "a", "ball", stiffness=1e4, restitution=0.0), "above 0.*dissipation= instead"),
    (lambda m: m.add_contact("c", "a", "ball", stiffness=1e4, exponent=3), "exponent must be 1, 1.5"),
    (lambda m: m.add_contact("c", "a", "ball", stiffness=-1.0), "stiffness must be greater than 0"),
    (lambda m: m.add_contact("c", "a", "ball", friction=-1.0), "friction must be at least 0"),
    (lambda m: m.add_contacts(["a"], ["b ellipsoid"]), "no two of these shapes can touch"),
    (lambda m: m.add_contacts(exclude=["ab"]), "exclude holds pairs of bodies, such as .*, got 'ab'"),
    (lambda m: m.add_contacts(stifness=1e4), "a material has no 'stifness'.*did you mean 'stiffness'"),
    (lambda m: bc.Mechanism("bare").add_contacts(), "no body of 'bare' has a shape of the role 'collision'"),
])
def test_what_is_refused(change: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        change(two_bodies())


def test_contacts_of_many_shapes() -> None:
    m = two_bodies()
    made = m.add_contacts("all", bc.Plane(), friction=0.5)
    assert [c.name for c in made] == ["a cylinder, ground plane", "b ellipsoid, ground plane", "ball, ground plane"]
    with pytest.warns(bc.BellcrankWarning, match="of 'two': left out 'a cylinder' and 'b ellipsoid' .Cylinder and"):
        assert [c.name for c in m.add_contacts(["a"], ["b"], stiffness=1e5)] == ["a cylinder, ball"]
    with pytest.raises(ModelError, match="no two of these .*: 'ball' and 'a cylinder' have a contact already"):
        m.add_contacts(["ball"], ["a"])
    with pytest.raises(ModelError, match="no two of these .* and 'b ellipsoid' and 1 pairs more are excluded"):
        two_bodies().add_contacts(["a"], ["b"], exclude=[("a", "b")], stiffness=1e5)


def test_a_plane_that_is_added_touches_all_groups() -> None:
    """Feet that a file lets touch each other and nothing else stand on the ground all the same; what touches nothing
    does not. Among shapes groups decide, and an error says so."""
    m = bc.Mechanism("robot")
    for name, groups in {"trunk": (1, 1), "left": (2, 4), "right": (4, 2), "ghost": (0, 0)}.items():
        m.add_joint(f"free {name}", bc.Free(), m.ground, m.add_body(name, bc.Inertia.sphere(1.0, 0.1)))
        m.add_shape(name, bc.Sphere(0.1), role="collision", name=name, groups=groups)
    made = m.add_contacts("all", bc.Plane(), friction=0.8)
    assert [c.name for c in made] == ["trunk, ground plane", "left, ground plane", "right, ground plane"]
    with pytest.raises(ModelError, match="no two of .*'trunk' and 'left' have groups that do not fit each other"):
        m.add_contacts(["trunk"], ["left"])


def test_bristles_act_against_the_slip_and_never_by_more_than_coulomb() -> None:
    material = BristleContact(1e5, friction=0.4, reach=1e-3, bend_damping=1e-2)
    rng, normal = np.random.default_rng(0), 50.0
    for speed in (1e-6, 1e-3, 0.1, 10.0):
        slip = rng.normal(size=3)
        slip *= speed / np.linalg.norm(slip)
        straight = np.array(tuple(material.bristle_force(normal, vector(slip), Vector.zero())))
        share = 1e-2 * speed / (1e-3 + 1e-2 * speed)  # of the largest friction, by the damping alone
        np.testing.assert_allclose(straight, -20.0 * share * slip / speed, rtol=1e-9)
        bent = rng.normal(size=3)
        bent *= rng.uniform() / np.linalg.norm(bent)
        both = np.array(tuple(material.bristle_force(normal, vector(slip), vector(bent))))
        assert np.linalg.norm(both) <= 20.0 * (1.0 + 1e-12)
        slides = slip / speed
        np.testing.assert_allclose(tuple(material.bend_rate(vector(slip), vector(slides))), 0.0, atol=1e-6 * speed)
        np.testing.assert_allclose(tuple(material.bristle_force(normal, vector(slip), vector(slides))), -20.0 * slides,
                                   rtol=1e-9)
    assert material.held(normal, Vector(0.0, 0.5, 0.0)) == pytest.approx(0.5 * 1e-3 * 20.0 * 0.25)
