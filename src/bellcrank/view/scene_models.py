"""What a machine looks like: from the description of its bodies, joints and force elements.

Shapes of bodies that have none: made from their inertia and from where their joints are.

A body's mass distribution says about what it is: of a uniform block with the same moments, one long edge is a rod, two
equal and one short are a disc, three equal a ball. Struts lead to the joints that this shape does not reach. Where it
does not fit the joints at all (much larger, or beside several of them), the body is drawn as a frame between them.

Meshes with fewer triangles: corners that lie in one cell of a grid become one.

J. Rossignac and P. Borrel, "Multi-resolution 3D approximations for rendering complex scenes", 1993: vertex clustering.
Quick, and good enough for parts that are seen whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraints import Distance
from bellcrank.mechanism.flexible.deformation import Modal, NodeMotion
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.forces.coordinate_forces import LinearSpring
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.parts import FirstOrder
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.view.scene import (
    PALETTE,
    DrawnBody,
    DrawnJoint,
    DrawnShape,
    Extension,
    Ints,
    SceneModel,
    SoftBody,
    along,
    quaternion_of,
    triple_of,
    turned,
)

__all__ = ["MOST_FACES", "Numbers", "amplitudes", "body_shapes", "mass_shape", "model_of", "reduced", "upward"]


# -- shapes of bodies that have none ----------------------------------------------------------------
#: an edge is short if it is this part of the longest; edges are alike within this part
_SHORT, _ALIKE = 0.3, 0.2
#: a block is no picture of a body whose joints lie this much closer together
_TOO_LARGE = 1.3


@dataclass(frozen=True)
class MassShape:
    """How the mass of a body is spread: edges [m] of the uniform block with the same moments, longest first, and the
    axes they lie along, by columns."""

    com: Floats
    edges: Floats
    axes: Floats

    @property
    def half_axes(self) -> Floats:
        """Of the solid ellipsoid with the same moments: edge^2 / 12 = axis^2 / 5."""
        return np.asarray(self.edges * np.sqrt(5.0 / 12.0))


def mass_shape(mass: float, com: npt.ArrayLike, inertia: Sequence[float]) -> MassShape | None:
    """From mass, center of mass and inertia about it (xx, xy, xz, yy, yz, zz); None without mass."""
    if not mass > 0.0:
        return None
    xx, xy, xz, yy, yz, zz = inertia
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = 0.5 * np.trace(about) * np.eye(3) - about  # integral of x x^T dm
    values, axes = np.linalg.eigh(second)
    edges = np.sqrt(12.0 * np.maximum(values[::-1], 0.0) / mass)
    axes = axes[:, ::-1].copy()
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] *= -1.0
    return MassShape(np.asarray(com, dtype=float), edges, axes)


def strut(first: npt.ArrayLike, second: npt.ArrayLike, radius: float, role: str = "made") -> DrawnShape:
    """A rod with round ends between two points."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    length = float(np.linalg.norm(b - a))
    turn = along(b - a) if length > 0.0 else (1.0, 0.0, 0.0, 0.0)
    return DrawnShape("capsule", (radius, max(length, 1e-9)), triple_of(0.5 * (a + b)), turn, role=role)


def body_shapes(mass: MassShape | None, pins: Sequence[Floats], thickness: float, length: float
                ) -> tuple[DrawnShape, ...]:
    """Shapes of one body: what its mass looks like, and struts to pins (points of joints) that it does not reach.

    `thickness` is that of struts [m], `length` a usual length of parts: blocks are not drawn much larger.
    """
    points = _distinct(pins, 0.2 * thickness)
    if mass is None:
        return _struts_alone(points, thickness)
    core, reach = _core(mass, points, thickness, length)
    spread = max((float(np.linalg.norm(a - b)) for a in points for b in points), default=0.0)
    beside = len(points) > 2 and not all(reach(p)[1] for p in points)
    link = len(points) == 2 and core.kind in ("cylinder", "sphere") and all(  # a wheel is held near its middle
        np.linalg.norm(p - mass.com) > 0.2 * mass.edges[0] for p in points)
    if len(points) > 1 and core.kind != "capsule" and (beside or link or mass.edges[0] > _TOO_LARGE * spread):
        return _frame_of_points(points, mass.com, spread, thickness)
    shapes = [core]
    for point in points:
        near, inside = reach(point)
        if not inside:
            shapes.append(strut(near, point, thickness * (1.0 if core.kind == "capsule" else 0.8)))
    return tuple(shapes)


def _distinct(points: Sequence[Floats], apart: float) -> list[Floats]:
    kept: list[Floats] = []
    for point in points:
        if all(np.linalg.norm(point - other) > apart for other in kept):
            kept.append(point)
    return kept


def _struts_alone(points: list[Floats], thickness: float) -> tuple[DrawnShape, ...]:
    return tuple(strut(a, b, thickness) for a, b in _edges(points))


def _edges(points: list[Floats]) -> list[tuple[Floats, Floats]]:
    """Between two points; around three or more, in the order they have seen from where they spread most."""
    if len(points) < 3:
        return [(points[0], points[1])] if len(points) == 2 else []
    center = np.mean(points, axis=0)
    plane = np.linalg.svd(np.array(points) - center)[2][:2]
    angles = [float(np.arctan2(*(plane @ (p - center)))) for p in points]
    around = [points[i] for i in np.argsort(angles).tolist()]
    return list(zip(around, around[1:] + around[:1], strict=True))


def _frame_of_points(points: list[Floats], com: Floats, spread: float, thickness: float) -> tuple[DrawnShape, ...]:
    """Struts between joints, and one to the mass where it lies elsewhere."""
    edges = _edges(points)
    shapes = [strut(a, b, thickness) for a, b in edges]
    near = [a + (b - a) * float(np.clip((com - a) @ (b - a) / max(float((b - a) @ (b - a)), 1e-300), 0.0, 1.0))
            for a, b in edges]
    nearest = min(near, key=lambda p: float(np.linalg.norm(p - com)))
    if np.linalg.norm(nearest - com) > 0.5 * spread:
        shapes += [strut(nearest, com, 0.7 * thickness),
                   DrawnShape("sphere", (2.0 * thickness,) * 3, triple_of(com), role="made")]
    return tuple(shapes)


def _core(mass: MassShape, points: list[Floats], thickness: float, length: float):  # type: ignore[no-untyped-def]
    """The shape of the mass, and a function: the place on it from where a strut leads to a point, and whether the point
    is reached already."""
    spread = max([float(np.linalg.norm(p - mass.com)) for p in points], default=0.0)
    edges = np.minimum(mass.edges, 1.5 * max(length, 2.0 * spread))
    long, middle, short = edges.tolist()
    com, axes = mass.com, mass.axes
    if long < 0.5 * thickness:  # a point mass
        radius = 2.2 * thickness
        return DrawnShape("sphere", (radius,) * 3, triple_of(com), role="made"), lambda p: (
            com, bool(np.linalg.norm(p - com) < 1.2 * radius))
    if middle < _SHORT * long:
        axis = axes[:, 0]
        radius = float(np.clip(0.35 * (middle + short), thickness, 2.5 * thickness))
        core = strut(com - 0.5 * long * axis, com + 0.5 * long * axis, radius)

        def to_rod(p: Floats) -> tuple[Floats, bool]:
            near = com + axis * float(np.clip((p - com) @ axis, -0.5 * long, 0.5 * long))
            return near, bool(np.linalg.norm(p - near) < radius + 0.5 * thickness)

        return core, to_rod
    if short < _SHORT * long and middle > (1.0 - _ALIKE) * long:
        radius, height = float(np.sqrt(long * middle / 3.0)), max(short, 0.8 * thickness)
        disc = DrawnShape("cylinder", (radius, height), triple_of(com), along(axes[:, 2]), role="made")

        def to_disc(p: Floats) -> tuple[Floats, bool]:
            flat = (p - com) - axes[:, 2] * float((p - com) @ axes[:, 2])
            far = float(np.linalg.norm(flat))
            near = com + flat * min(1.0, 0.9 * radius / max(far, 1e-300))
            return near, far < 1.05 * radius and bool(np.linalg.norm(p - com - flat) < height + thickness)

        return disc, to_disc
    if short > (1.0 - _ALIKE) * long:
        radius = float(np.sqrt(5.0 / 12.0) * np.mean(edges))
        return DrawnShape("sphere", (radius,) * 3, triple_of(com), role="made"), lambda p: (
            com, bool(np.linalg.norm(p - com) < 1.05 * radius))
    size = np.maximum(edges, thickness)
    block = DrawnShape("box", triple_of(size), triple_of(com), quaternion_of(axes), role="made")

    def to_block(p: Floats) -> tuple[Floats, bool]:
        inner = axes.T @ (p - com)
        near = com + axes @ np.clip(inner, -0.45 * size, 0.45 * size)
        return near, bool((np.abs(inner) < 0.5 * size + 0.5 * thickness).all())

    return block, to_block


# -- symbols of joints and of the ground, by joint type ---------------------------------------------
#: joints whose frames move apart: their origins are no pins of a body
SLIDING = ("Prismatic", "Cylindrical", "Planar", "Free")
_DARK = (0.27, 0.30, 0.35, 1.0)
_RAIL = (0.55, 0.58, 0.63, 1.0)


def joint_axes(joint: Joint, numbers: Callable[[Sequence[Number]], Floats]) -> tuple[tuple[float, float, float], ...]:
    """Directions about or along which a joint moves, in its own frame; none where there is no single one. `numbers`
    says what parameters stand for."""
    for names in (("axis1", "axis2"), ("axis",), ("normal",)):
        if all(hasattr(joint, name) for name in names):
            return tuple(triple_of(numbers(getattr(joint, name))) for name in names)
    return ()


def joint_symbol(joint: DrawnJoint, thickness: float, length: float
                 ) -> tuple[tuple[DrawnShape, ...], tuple[DrawnShape, ...]]:
    """Shapes on the parent and on the child."""
    r = thickness
    at, turn = joint.parent_pose
    axes = [turned(turn, np.array(a)) for a in joint.axes]
    if joint.kind in ("Revolute", "Screw"):
        return (_rod(at, axes[0], 1.35 * r, 3.4 * r),), ()
    if joint.kind == "Universal":
        return tuple(_rod(at, a, 0.8 * r, 4.4 * r) for a in axes), ()
    if joint.kind == "Spherical":
        return (DrawnShape("sphere", (1.7 * r,) * 3, triple_of(at), color=_DARK, role="joint"),), ()
    if joint.kind in ("Prismatic", "Cylindrical"):
        if joint.parent and joint.child:
            return (), ()  # a cylinder and its piston show it themselves
        on_child, child_turn = joint.child_pose
        guide = turned(child_turn, np.array(joint.axes[0]))
        rail = _rod(at, axes[0], 0.5 * r, 1.4 * length, _RAIL)
        if joint.kind == "Cylindrical":
            return (rail,), (_rod(on_child, guide, 1.8 * r, 6.0 * r),)
        block = DrawnShape("box", (3.6 * r, 3.6 * r, 5.6 * r), triple_of(on_child), along(guide), _DARK, "joint")
        return (rail,), (block,)
    if joint.kind == "Planar":
        plate = DrawnShape("box", (length, length, 0.3 * r), triple_of(at), along(axes[0]), (*_RAIL[:3], 0.4), "joint")
        return (plate,), ()
    if joint.kind == "Weld":
        return (DrawnShape("box", (1.6 * r,) * 3, triple_of(at), along((0, 0, 1)), _DARK, "joint"),), ()
    return (), ()


def _rod(at: Floats, axis: Floats, radius: float, length: float,
         color: tuple[float, float, float, float] = _DARK) -> DrawnShape:
    return DrawnShape("cylinder", (radius, length), triple_of(at), along(axis), color, "joint")


def ground_symbol(at: Floats, up: Floats, thickness: float) -> DrawnShape:
    """A foot that holds a joint: a cone below its point."""
    height = 4.5 * thickness
    return DrawnShape("cone", (3.0 * thickness, height), triple_of(at - 0.5 * height * up), along(up),
                      (0.62, 0.65, 0.70, 1.0), "ground")


# -- bodies that deform, as lines or surfaces through their nodes -----------------------------------
def soft_bodies(mechanism: Mechanism, thickness: float) -> tuple[SoftBody, ...]:
    """The flexible bodies of a machine, nodes in the frame of their body."""
    found = []
    for record in mechanism.joints:
        if isinstance(record.joint, Modal):
            body = record.joint.body
            shapes = body.modes[:, :3]
            if body.stiffening is not None:
                shapes = np.concatenate([shapes, body.stiffening.shapes], axis=2)
            found.append(SoftBody(record.name, record.parent, body.nodes, shapes, _surface(body.nodes),
                                  0.8 * thickness))
    return tuple(found)


def amplitudes(body: FlexibleBody, e: Floats) -> Floats:
    """What the shapes of a soft body are multiplied by at modal coordinates e (frames, modes): these, and products of
    them where second-order displacements count."""
    if body.stiffening is None:
        return e
    second = body.stiffening.coordinates([e[:, i] for i in range(e.shape[1])])
    return np.concatenate([e, *(np.broadcast_to(np.asarray(x, dtype=float), len(e))[:, None] for x in second)], axis=1)


def _surface(nodes: Floats) -> Ints | None:
    """Triangles around nodes that fill a solid or a plate; None for those along a line, which are drawn as one."""
    if len(nodes) < 4:
        return None
    around = nodes - nodes.mean(axis=0)
    _, spread, axes = np.linalg.svd(around, full_matrices=False)
    if spread[1] < 1e-3 * spread[0]:
        return None
    from scipy.spatial import ConvexHull, Delaunay

    if spread[2] < 1e-6 * spread[0]:
        return np.asarray(Delaunay(around @ axes[:2].T).simplices, dtype=np.int32)
    hull = ConvexHull(nodes)
    faces = hull.simplices.copy()
    corners = nodes[faces]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    wrong = (outward * hull.equations[:, :3]).sum(axis=1) < 0.0
    faces[wrong] = faces[wrong][:, ::-1]
    return np.asarray(faces, dtype=np.int32)


# -- meshes with fewer triangles --------------------------------------------------------------------
#: cells along the longest edge: the finest grid that is tried
_FINEST = 2048


class FewerFaces(NamedTuple):
    """Corners, triangles, and the colors of these if they have some."""

    vertices: Floats
    faces: Ints
    shades: Floats | None


def reduced(vertices: Floats, faces: Ints, shades: Floats | None, most: int) -> FewerFaces:
    """At most about `most` triangles; what has no more is left as it is. Cost: some sorts of all corners.

    >>> x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 50), np.linspace(0, 1, 50)))
    >>> k = np.arange(50 * 49)[np.arange(50 * 49) % 50 != 49]
    >>> flat = np.stack([x, y, 0 * x], axis=1), np.stack([k, k + 1, k + 50], axis=1)
    >>> 100 < len(reduced(*flat, None, 400).faces) <= 400
    True
    """
    if len(faces) <= most:
        return FewerFaces(vertices, faces, shades)
    coarse, fine = 2.0, float(_FINEST)
    best = _clustered(vertices, faces, shades, coarse)
    for _ in range(9):
        middle = float(np.sqrt(coarse * fine))
        found = _clustered(vertices, faces, shades, middle)
        if len(found.faces) <= most:
            coarse, best = middle, found
        else:
            fine = middle
        if len(best.faces) > 0.85 * most:
            break
    return best


def _clustered(vertices: Floats, faces: Ints, shades: Floats | None, cells: float) -> FewerFaces:
    low = vertices.min(axis=0)
    size = max(float(np.ptp(vertices, axis=0).max()), 1e-300) / cells
    place = np.floor((vertices - low) / size).astype(np.int64)
    key = (place[:, 0] * (_FINEST + 2) + place[:, 1]) * (_FINEST + 2) + place[:, 2]
    _, where = np.unique(key, return_inverse=True)
    where = where.ravel()
    count = np.bincount(where)
    middle = np.stack([np.bincount(where, weights=vertices[:, i]) / count for i in range(3)], axis=1)
    corners = where[faces]
    real = (corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]) & (corners[:, 2] != corners[:, 0])
    kept = np.flatnonzero(real)
    corners = corners[kept]
    _, once = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    once.sort()
    return FewerFaces(middle, corners[once].astype(np.int32), None if shades is None else shades[kept[once]])


# -- shapes of a description as scenes have them: a kind and numbers --------------------------------
#: edge of a plane without end, in usual lengths of parts
_ENDLESS = 20.0
_FLOOR = (0.62, 0.65, 0.70, 0.2)


def drawn_shape(placed: PlacedShape, position: Floats, length: float, triangles: FewerFaces | None = None
                ) -> DrawnShape:
    """A shape of a `Mechanism`, with its color, at `position` (parameters have values there); `length` is a usual
    length of parts, `triangles` are what is drawn of a mesh."""
    shape: Any = placed.shape
    kind = type(shape).__name__.lower()
    where: dict[str, Any] = {"position": triple_of(position), "turn": quaternion_of(placed.pose.rotation),
             "color": placed.color, "role": placed.role}
    if kind == "heightfield":
        shape, kind = as_mesh(shape), "mesh"
    if kind == "mesh":
        drawn = triangles or FewerFaces(shape.vertices, shape.faces, shape.colors)
        return DrawnShape("mesh", (), vertices=drawn.vertices, faces=drawn.faces,
                          shades=None if placed.color is not None else drawn.shades, **where)
    if kind == "box":
        return DrawnShape("box", shape.size, **where)
    if kind in ("sphere", "ellipsoid"):
        return DrawnShape("sphere", (shape.radius,) * 3 if kind == "sphere" else shape.radii, **where)
    if kind in ("cylinder", "cone", "capsule"):
        return DrawnShape(kind, (shape.radius, shape.length), **where)
    if kind == "plane":
        if shape.size is None and placed.color is None:  # a floor: the picture's own is seen through it
            where["color"] = _FLOOR
        return DrawnShape("plane", shape.size or (_ENDLESS * length,) * 2, **where)
    raise ModelError(f"shape {placed.name!r}: a {type(shape).__name__} cannot be drawn")


# -- what a machine looks like: from the description of its bodies, joints and force elements -------
_GROUND = (0.62, 0.65, 0.70)
#: triangles of all meshes together, and of one at least
MOST_FACES, _LEAST_FACES = 60_000, 200
#: radius of struts, relative to a usual length of parts
_THIN = 0.022


class Numbers:
    """Entries of a description as floats: parameters have the values given, or their defaults."""

    def __init__(self, mechanism: Mechanism, values: Mapping[str, Any] | None = None) -> None:
        self._values = {**mechanism.parameters, **{k: float(np.ravel(v)[0]) for k, v in (values or {}).items()}}

    def one(self, value: Any) -> float:
        """A number or an expression of parameters."""
        if isinstance(value, Scalar):
            return float(evaluate([value], lambda key: self._values[key[1]])[0])
        return float(value)

    def all(self, values: Sequence[Any]) -> Floats:
        """Several of them."""
        return np.array([self.one(v) for v in values])


def upward(mechanism: Mechanism, number: Callable[[Any], float]) -> Floats:
    """Where up is: against gravity, else z."""
    gravity = np.array([number(g) for g in mechanism.gravity])
    size = float(np.linalg.norm(gravity))
    return -gravity / size if size > 0.0 else np.array([0.0, 0.0, 1.0])


def model_of(mechanism: Mechanism, values: Mapping[str, Any] | None = None, cut: Sequence[str] = ()) -> SceneModel:
    """The look of a machine; `values` of parameters, `cut` the joints that close loops. Cost: O(bodies + shapes)."""
    numbers = Numbers(mechanism, values)
    joints = _joints(mechanism, numbers, cut)
    masses = [_mass(mechanism, numbers, i) for i in range(len(mechanism.bodies) + 1)]
    length = _usual_length(joints, masses)
    thickness = _THIN * length
    extensions = _extensions(mechanism, numbers, thickness)
    given = _given_shapes(mechanism, numbers, length)
    soft = soft_bodies(mechanism, thickness)
    hidden = {s.body for s in soft} | {b.index for s in soft for b in mechanism.bodies
                                       if b.name.startswith(f"{s.name}.")}
    symbols = _symbols(joints, thickness, length, upward(mechanism, numbers.one))
    symbols.setdefault(0, []).extend(DrawnShape("box", (3.0 * thickness,) * 3, triple_of(end), color=(*_GROUND, 1.0),
                                                role="ground") for end in _ends(extensions, 0))
    bodies, colors = [], _colors(masses)
    for i, body in enumerate((mechanism.ground, *mechanism.bodies)):
        shapes = given.get(i) or (() if i == 0 or i in hidden else body_shapes(
            masses[i], [*_pins(joints, i), *_ends(extensions, i)], thickness, length))
        mass = masses[i]
        bodies.append(DrawnBody(
            body.name, (*shapes, *symbols.get(i, ())), colors[i],
            0.0 if mass is None else numbers.one(body.inertia.mass),
            (0.0, 0.0, 0.0) if mass is None else triple_of(mass.com),
            None if mass is None else (triple_of(mass.half_axes), quaternion_of(mass.axes))))
    return SceneModel(mechanism.name, tuple(bodies), joints, extensions, soft, thickness, length)


def _joints(mechanism: Mechanism, numbers: Numbers, cut: Sequence[str]) -> tuple[DrawnJoint, ...]:
    found = []
    for r in mechanism.joints:
        if isinstance(r.joint, (Modal, NodeMotion, FirstOrder)) or r.name in mechanism.open_at_start:
            continue
        found.append(DrawnJoint(r.name, type(r.joint).__name__, r.parent, r.child, _frame(r.parent_pose, numbers),
                                _frame(r.child_pose, numbers), joint_axes(r.joint, numbers.all), r.name in cut))
    return tuple(found)


def _frame(pose: Pose, numbers: Numbers) -> tuple[Floats, Floats]:
    """Position and quaternion; frames that are defined when a joint closes are made of parameters."""
    rows = numbers.all(list(np.ravel(np.array(pose.rows, dtype=object)))).reshape(3, 3)
    return numbers.all(pose.position), np.asarray(quaternion_of(rows), dtype=float)


def _mass(mechanism: Mechanism, numbers: Numbers, index: int) -> MassShape | None:
    if index == 0:
        return None
    inertia = mechanism.bodies[index - 1].inertia
    return mass_shape(numbers.one(inertia.mass), numbers.all(inertia.com), numbers.all(inertia.inertia).tolist())


def _colors(masses: Sequence[MassShape | None]) -> list[tuple[float, float, float]]:
    """A color for every body, the same for those whose mass is spread the same way: the legs of a platform."""
    known: dict[object, int] = {}
    found = [_GROUND]
    for i, mass in enumerate(masses[1:]):
        key = ("massless", i) if mass is None else tuple(f"{x:.4g}" for x in (*mass.edges, np.linalg.norm(mass.com)))
        found.append(PALETTE[known.setdefault(key, len(known)) % len(PALETTE)])
    return found


def _pins(joints: Sequence[DrawnJoint], body: int) -> list[Floats]:
    """Points of a body where joints hold it."""
    pins = [j.parent_pose[0] if j.parent == body else j.child_pose[0] for j in joints
            if body in (j.parent, j.child) and j.kind not in SLIDING]
    if len(pins) == 1:  # a piston: what slides ends where it is held
        pins += [j.parent_pose[0] if j.parent == body else j.child_pose[0] for j in joints
                 if body in (j.parent, j.child) and j.kind in ("Prismatic", "Cylindrical")]
    return pins


def _ends(extensions: Sequence[Extension], body: int) -> list[Floats]:
    """Points of a body where springs and rods are attached."""
    return [np.array(point) for e in extensions for b, point in ((e.first, e.first_point), (e.second, e.second_point))
            if b == body]


def _usual_length(joints: Sequence[DrawnJoint], masses: Sequence[MassShape | None]) -> float:
    """The median extent of bodies: between their joints and their center of mass, and of their mass."""
    found = []
    for i, mass in enumerate(masses):
        points = _pins(joints, i)
        size = 0.0
        if mass is not None:
            points = [*points, mass.com]
            size = float(mass.edges[0])
        if i and len(points) > 1:
            size = max(size, *(float(np.linalg.norm(a - b)) for a in points for b in points))
        if i and size > 0.0:
            found.append(size)
    ground = _pins(joints, 0)
    if not found and len(ground) > 1:
        found = [max(float(np.linalg.norm(a - b)) for a in ground for b in ground)]
    return float(np.median(found)) if found and np.median(found) > 0.0 else 1.0


def _given_shapes(mechanism: Mechanism, numbers: Numbers, length: float) -> dict[int, tuple[DrawnShape, ...]]:
    """Shapes that the description has; those for collisions where a body has no others."""
    found: dict[int, list[PlacedShape]] = {}
    for role in ("visual", "collision"):
        had = set(found)
        for shape in mechanism.shapes:
            if shape.role == role and shape.body not in had:
                found.setdefault(shape.body, []).append(shape)
    meshes = {id(s.shape): s.shape for some in found.values() for s in some if isinstance(s.shape, Mesh)}
    fewer = _fewer_faces(list(meshes.values()))
    return {body: tuple(drawn_shape(s, numbers.all(s.pose.position), length, fewer.get(id(s.shape))) for s in some)
            for body, some in found.items()}


def _fewer_faces(meshes: Sequence[Mesh]) -> dict[int, FewerFaces]:
    """Meshes by their id, all together with no more triangles than a browser draws well."""
    total = sum(len(m.faces) for m in meshes)
    part = min(1.0, MOST_FACES / max(total, 1))
    return {id(m): reduced(m.vertices, m.faces, m.colors, len(m.faces) if part == 1.0 else max(
        _LEAST_FACES, int(part * len(m.faces)))) for m in meshes}


def _symbols(joints: Sequence[DrawnJoint], thickness: float, length: float, up: Floats
             ) -> dict[int, list[DrawnShape]]:
    found: dict[int, list[DrawnShape]] = {}
    for joint in joints:
        on_parent, on_child = joint_symbol(joint, thickness, length)
        found.setdefault(joint.parent, []).extend(on_parent)
        found.setdefault(joint.child, []).extend(on_child)
        for body, pose in ((joint.parent, joint.parent_pose), (joint.child, joint.child_pose)):
            if body == 0 and joint.kind not in SLIDING:
                found.setdefault(0, []).append(ground_symbol(pose[0], up, thickness))
    return found


def _extensions(mechanism: Mechanism, numbers: Numbers, thickness: float) -> tuple[Extension, ...]:
    found = [Extension(s.name, _spring_kind(s.along), s.first, s.second, triple_of(numbers.all(s.first_point)),
                       triple_of(numbers.all(s.second_point)), 2.0 * thickness) for s in mechanism.springs]
    for c in mechanism.constraints:
        if isinstance(c.kind, Distance):
            ends = [triple_of(numbers.all(p.position)) for p in (c.parent_pose, c.child_pose)]
            found.append(Extension(c.name, "rod", c.parent, c.child, ends[0], ends[1], 0.7 * thickness))
    return tuple(found)


def _spring_kind(law: object) -> str:
    only_damps = isinstance(law, LinearSpring) and isinstance(law.stiffness, (int, float)) and law.stiffness == 0.0
    return "damper" if only_damps else "spring"
