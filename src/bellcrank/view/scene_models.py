"""What a machine looks like: from the description of its bodies, joints and force elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.mechanism.constraints import Distance
from bellcrank.mechanism.flexible.deformation import Modal, NodeMotion
from bellcrank.mechanism.forces.coordinate_forces import LinearSpring
from bellcrank.mechanism.geometry.placed_shape import PlacedShape
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.parts import FirstOrder
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Scalar
from bellcrank.view.frame_algebra import quaternion_of, triple_of
from bellcrank.view.joint_symbols import SLIDING, ground_symbol, joint_axes, joint_symbol
from bellcrank.view.made_shapes import MassShape, body_shapes, mass_shape
from bellcrank.view.mesh_reduction import FewerFaces, reduced
from bellcrank.view.scene import PALETTE, DrawnBody, DrawnJoint, DrawnShape, Extension, SceneModel
from bellcrank.view.shape_numbers import drawn_shape
from bellcrank.view.soft_bodies import soft_bodies

__all__ = ["MOST_FACES", "Numbers", "model_of", "upward"]

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
