"""Writing SDF: any machine of links and joints, loops included, with springs, damping, friction and gears."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.io.common.model_meshes import Meshes, MeshStore
from bellcrank.io.common.writing import number_list, refuse_elements, warn_left_out, write_model
from bellcrank.mechanism.forces import Friction, Limit, LinearSpring
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.mechanism.joints import Free, Prismatic, Revolute, Screw, Spherical, Universal, Weld
from bellcrank.mechanism.mechanism import Connection, Frame, Mechanism
from bellcrank.mechanism.parts import Coupler, JointForce
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import Vector

__all__ = ["write_sdf"]


# -- what acts along the joints of a machine, as far as SDF has words for it ------------------------
_USUAL = Friction()
_ONSET = Limit(None, 0.0, 1.0).onset


@dataclass(slots=True)
class AxisForces:
    """The numbers of one <axis>; None where nothing is written."""

    damping: float | None = None
    friction: float | None = None
    rest: float | None = None
    stiffness: float | None = None
    lower: float | None = None
    upper: float | None = None
    stop_stiffness: float | None = None
    stop_damping: float | None = None
    leader: tuple[str, int] | None = None
    multiplier: float = 1.0
    offset: float = 0.0


Axes = dict[tuple[str, int], AxisForces]


def axis_forces(machine: Mechanism, start: dict[str, tuple[float, ...]]) -> Axes:
    """Forces and couplings by joint and coordinate; coordinates are counted from `start`."""
    axes: Axes = {}
    for force in machine.joint_forces:
        what = f"joint force {force.name!r}"
        values = [v for v in vars(force.along).values() if v is not None]
        if any(isinstance(value, Scalar) for value in values):
            raise ModelError(f"{what}: SDF cannot hold parameters; give it numbers")
        if not isinstance(machine.joint(force.joint).joint, (Revolute, Prismatic, Screw, Universal)):
            raise ModelError(f"{what}: SDF has no forces along the coordinates of joint {force.joint!r}")
        here = axes.setdefault((force.joint, force.coordinate), AxisForces())
        _add(what, force, here, start[force.joint][force.coordinate])
    for coupler in machine.couplers:
        _couple(coupler, axes, start)
    return axes


def _add(what: str, force: JointForce, here: AxisForces, zero: float) -> None:
    along = force.along
    if isinstance(along, LinearSpring):
        here.damping = _sum(here.damping, along.damping)
        if along.stiffness:
            if here.stiffness is not None:
                raise ModelError(f"{what}: SDF has one spring for a coordinate")
            here.stiffness, here.rest = float(along.stiffness), float(along.rest) - zero
    elif type(along) is Friction:
        if along.coulomb and here.friction is not None:
            raise ModelError(f"{what}: SDF has one dry friction for a coordinate")
        if along.static is not None or (along.coulomb and along.speed != _USUAL.speed):
            raise ModelError(f"{what}: SDF cannot hold static friction, nor another speed than {_USUAL.speed:g}")
        here.damping = _sum(here.damping, along.viscous)
        if along.coulomb:
            here.friction = float(along.coulomb)
    elif type(along) is Limit:
        if here.stop_stiffness is not None:
            raise ModelError(f"{what}: SDF has one pair of stops for a coordinate")
        if along.onset != _ONSET:
            raise ModelError(f"{what}: SDF cannot hold an onset of damping other than {_ONSET:g}")
        here.stop_stiffness, here.stop_damping = float(along.stiffness), float(along.damping)
        here.lower = None if along.lower is None else float(along.lower) - zero
        here.upper = None if along.upper is None else float(along.upper) - zero
    else:
        raise ModelError(f"{what}: SDF cannot hold its law")


def _sum(one: float | None, other: Number) -> float | None:
    return one if not other else float(other) + (one or 0.0)


def _couple(coupler: Coupler, axes: Axes, start: dict[str, tuple[float, ...]]) -> None:
    """Two coupled coordinates: one mimics the other."""
    if len(coupler.terms) != 2:
        raise ModelError(f"coupler {coupler.name!r}: SDF couples two coordinates, this one has {len(coupler.terms)}")
    factors = {(joint, i): part for joint, i, part in coupler.terms if isinstance(part, float)}
    if len(factors) != 2 or not isinstance(coupler.offset, float):
        raise ModelError(f"coupler {coupler.name!r}: SDF couples coordinates by plain factors only, not by functions "
                         "or parameters")
    rest = coupler.offset - sum(factor * start[joint][i] for (joint, i), factor in factors.items())
    for follower, leader in ((0, 1), (1, 0)):
        (joint, i), factor = list(factors.items())[follower]
        (other, j), lead = list(factors.items())[leader]
        here = axes.setdefault((joint, i), AxisForces())
        if here.leader is None:
            here.leader, here.multiplier, here.offset = (other, j), -lead / factor, rest / factor
            return
    raise ModelError(f"coupler {coupler.name!r}: both its coordinates follow others already, which SDF cannot hold")


# -- shapes as <visual> and <collision> of SDF ------------------------------------------------------
def look_text(placed: PlacedShape, store: MeshStore) -> Iterator[str]:
    """What stands inside the element of a shape, but for its pose; nothing for a plane without end to be seen, which
    SDF has for collisions only. Cones, and planes that end and collide, become meshes."""
    shape = placed.shape
    match shape:
        case Box():
            form = f"<box><size>{number_list(*shape.size)}</size></box>"
        case Sphere():
            form = f"<sphere><radius>{shape.radius!r}</radius></sphere>"
        case Ellipsoid():
            form = f"<ellipsoid><radii>{number_list(*shape.radii)}</radii></ellipsoid>"
        case Cylinder() | Capsule():
            tag = type(shape).__name__.lower()
            form = f"<{tag}><radius>{shape.radius!r}</radius><length>{shape.length!r}</length></{tag}>"
        case Plane() if (shape.size is None) == (placed.role == "collision"):
            edges = "" if shape.size is None else f"<size>{number_list(*shape.size)}</size>"
            form = f"<plane><normal>0 0 1</normal>{edges}</plane>"
        case Plane(size=None):
            warn_left_out(placed, "SDF shows no plane without end")
            return
        case _:
            mesh = as_mesh(shape)
            form = (f"<mesh><uri>{escape(store.name(mesh, placed.name))}</uri><scale>{number_list(*mesh.scale)}</scale>"
                    "</mesh>")
    yield f"<geometry>{form}</geometry>"
    if placed.color is not None and placed.role == "visual":
        shade = number_list(*placed.color)
        yield f"<material><ambient>{shade}</ambient><diffuse>{shade}</diffuse></material>"


# -- where a machine is drawn when it is written as SDF, and its joints as seen from there ----------
#: loops that close better than this at zero need not be assembled
_CLOSED = 1e-12


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """The pose of a link in the frame of a joint, or in the world."""

    joint: str | None
    pose: Pose


@dataclass(frozen=True, slots=True)
class JointPlace:
    """The pose of a joint in a link (0 is the world), or in its child."""

    base: int | None
    pose: Pose


@dataclass(frozen=True, slots=True)
class Placed:
    """The position a file draws: coordinates of every joint, and where links and joints are given."""

    start: dict[str, tuple[float, ...]]
    links: dict[int, LinkPlace]
    joints: dict[str, JointPlace]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The joint's frame on its parent and on its child, moved so that they coincide in the drawn position."""

    parent: Pose
    child: Pose


def placed(machine: Mechanism, q: npt.ArrayLike | None) -> Placed:
    """Where to draw the machine: at zero if it closes there, else assembled, or at `q`."""
    zero = {j.name: tuple(j.joint.neutral().tolist()) for j in machine.joints}
    made = None if q is not None else _walk(machine, zero)
    if made is None:
        start = _assembled(machine, q)
        made = _walk(machine, start, closed=True)
        assert made is not None
    return made


def _assembled(machine: Mechanism, q: npt.ArrayLike | None) -> dict[str, tuple[float, ...]]:
    """Coordinates of all joints, cut ones included, in a position in which the loops close."""
    from bellcrank.compiled.compile import compile
    from bellcrank.system.loop_errors import loop_coordinates

    system = compile(machine)
    place = system.assemble().q if q is None else system.assemble(q=q).q
    start: dict[str, tuple[float, ...]] = {}
    at = 0
    for joint in machine.joints:
        if joint.name in system.joint_names:
            start[joint.name] = tuple(place[at:at + joint.joint.nq].tolist())
            at += joint.joint.nq
        elif joint.joint.nq:
            start[joint.name] = tuple(loop_coordinates(system.plans, place, joint.name).tolist())
        else:
            start[joint.name] = ()
    return start


def _ends(joint: Connection, start: tuple[float, ...]) -> _Ends:
    kind = joint.joint
    if start == tuple(kind.neutral().tolist()):
        return _Ends(joint.drawn_pose, joint.child_pose)
    if isinstance(kind, Universal):  # each of the two turns goes to its own side
        return _Ends(joint.parent_pose @ Pose.about(kind.axis1, start[0]),
                     joint.child_pose @ Pose.about(kind.axis2, -start[1]))
    return _Ends(joint.parent_pose @ _motion(joint, start), joint.child_pose)


def _motion(joint: Connection, start: tuple[float, ...]) -> Pose:
    """The pose of the child side in the parent side."""
    kind = joint.joint
    turn, shift = np.eye(3), np.zeros(3)
    for factor in kind.transforms(kind.normalized(list(start)), [float(k) for k in kind.constants()]):
        shift = shift + turn @ np.array(tuple(factor.translation), dtype=float)
        columns = [tuple(factor.rotation.apply(Vector(*e))) for e in np.eye(3).tolist()]
        turn = turn @ np.array(columns, dtype=float).T
    axes = kind.alignment()
    return Pose((axes @ shift).tolist(), axes @ turn @ axes.T)


def _walk(machine: Mechanism, start: dict[str, tuple[float, ...]], *, closed: bool = False) -> Placed | None:
    """Places along a spanning tree from the ground; None if a loop does not close."""
    ends = {j.name: _ends(j, start[j.name]) for j in machine.joints}
    around: dict[int, list[Connection]] = {}
    for joint in machine.joints:
        for body in (joint.parent, joint.child):
            around.setdefault(body, []).append(joint)
    world, links, joints = {0: Pose()}, {}, {}
    queue = deque([0])
    # joints first, then what hangs on the ground freely: SDF has no joint for that
    later = [j for j in machine.joints if isinstance(j.joint, Free)]
    while queue or later:
        if not queue:
            joint = later.pop(0)
            body = joint.child if joint.parent == 0 else joint.parent
            if body in world:
                continue  # others hold it, and a free joint holds nothing
            world[body] = _across(joint, ends[joint.name], body, world[0])
            links[body] = LinkPlace(None, world[body])
            queue.append(body)
        here = queue.popleft()
        for joint in around.get(here, ()):
            other = joint.child if joint.parent == here else joint.parent
            if other in world or isinstance(joint.joint, Free):
                continue
            world[other] = _across(joint, ends[joint.name], other, world[here])
            near, far = ends[joint.name].parent, ends[joint.name].child
            if other == joint.parent:
                near, far = far, near
            joints[joint.name] = JointPlace(here, near)
            links[other] = LinkPlace(joint.name, _inverse(far))
            queue.append(other)
    for part in machine.bodies:
        if part.index not in world:
            raise ModelError(f"body {part.name!r} hangs on nothing; join it to the ground")
    for joint in machine.joints:
        if joint.name in joints or isinstance(joint.joint, Free):
            continue
        end = ends[joint.name]
        if not closed and _gap(world[joint.parent] @ end.parent, world[joint.child] @ end.child) > _CLOSED:
            return None
        joints[joint.name] = JointPlace(joint.child, end.child)
    return Placed(start, links, joints)


def _across(joint: Connection, ends: _Ends, other: int, here: Pose) -> Pose:
    if other == joint.child:
        return here @ ends.parent @ _inverse(ends.child)
    return here @ ends.child @ _inverse(ends.parent)


def _inverse(pose: Pose) -> Pose:
    if pose.rows == IDENTITY_ROWS:
        return Pose([-float(x) + 0.0 for x in pose.position])
    return pose.inverse()


def _gap(one: Pose, other: Pose) -> float:
    return max(float(np.abs(np.subtract(one.rows, other.rows)).max()),
               max(abs(float(a) - float(b)) for a, b in zip(one.position, other.position, strict=True)))


_TYPES: dict[type, str] = {Revolute: "revolute", Prismatic: "prismatic", Screw: "screw", Universal: "universal",
                           Spherical: "ball", Weld: "fixed"}
_RESERVED = ("world", "__model__", "__root__")


def write_sdf(mechanism: Mechanism, path: str | os.PathLike[str], *, q: npt.ArrayLike | None = None,
              meshes: Meshes = "copy") -> None:
    """Write a machine as SDF 1.9 (1.11 if coordinates are coupled), in a world that has its gravity.

    SDF counts coordinates from the position it draws: zero if all loops close there, else the position that
    `System.assemble` finds, or `q` [rad, m]; springs, limits and couplers are shifted accordingly. `read_sdf` gives
    back the same machine: with ``limits=True`` if it has compliant stops, and with the joint "root_joint", measured in
    the world, where a body hangs on the ground by a `Free` joint. Names that SDF does not allow are changed: ``::``
    becomes ``__``, and a joint or frame that is called like a body gets ``_joint`` or ``_frame`` behind its name.

    Shapes of bodies are written, those of the ground as a link that is fixed to the world. Mesh files that do not lie
    beside the file are copied to a folder there, or, with ``meshes="refer"``, only named.

    `ModelError` names what SDF cannot hold: parameters, motion laws, forces other than those of joints, other
    constraints, and joints that are cylindrical, planar or free between two bodies. The file is written whole or not at
    all.
    """
    write_model(mechanism, path, "SDF", meshes, lambda store: _SdfWriter(mechanism, q, store).text())


class _SdfWriter:
    def __init__(self, machine: Mechanism, q: npt.ArrayLike | None, store: MeshStore) -> None:
        self.machine = machine
        self.store = store
        self._check()
        self.place: Placed = placed(machine, q)
        self.axes: Axes = axis_forces(machine, self.place.start)
        self.bodies = ["world", *(body.name for body in machine.bodies)]
        self._name_all()
        self.lines: list[str] = []

    # -- what cannot be held --------------------------------------------------------------------
    def _check(self) -> None:
        m = self.machine
        refuse_elements(m, "SDF")
        if not m.bodies:
            raise ModelError(f"mechanism {m.name!r} has no bodies; SDF needs a link")
        self._numbers("gravity", m.gravity)
        for body in m.bodies:
            self._numbers(f"body {body.name!r}", (body.inertia.mass, *body.inertia.com, *body.inertia.inertia))
        for frame in m.frames:
            self._numbers(f"frame {frame.name!r}", frame.pose.position)
        for joint in m.joints:
            self._check_joint(joint)

    def _check_joint(self, joint: Connection) -> None:
        what = f"joint {joint.name!r}"
        self._numbers(what, (*joint.parent_pose.position, *joint.child_pose.position, *joint.joint.constants()))
        kind = type(joint.joint)
        if kind is Free and 0 not in (joint.parent, joint.child):
            raise ModelError(f"{what}: SDF has no free joint between two bodies, only bodies that hang on nothing")
        if kind is not Free and kind not in _TYPES:
            raise ModelError(f"{what}: SDF has no {kind.__name__.lower()} joint")

    def _numbers(self, what: str, values: Sequence[Number]) -> None:
        if any(isinstance(value, Scalar) for value in values):
            raise ModelError(f"{what}: SDF cannot hold parameters; give it numbers")

    # -- names ----------------------------------------------------------------------------------
    def _name_all(self) -> None:
        taken = set(_RESERVED)
        self.link_names = ["world"] + [_new_name("body", body.name, "_link", taken) for body in self.machine.bodies]
        self.joint_names = {j.name: _new_name("joint", j.name, "_joint", taken) for j in self.machine.joints
                            if not isinstance(j.joint, Free)}
        self.ground_names = [_new_name("body", name, "_link", taken) for name in ("ground_shapes", "ground_weld")]
        self.model_name = _clean_name("mechanism", self.machine.name)
        # frames of the ground stand beside the model, so that its name is one of theirs
        self.frame_names: dict[str, str] = {}
        for frame in self.machine.frames:
            beside = set() if frame.body else {self.model_name}
            self.frame_names[frame.name] = _new_name("frame", frame.name, "_frame", taken | beside)
            taken.add(self.frame_names[frame.name])

    # -- text -----------------------------------------------------------------------------------
    def text(self) -> str:
        m = self.machine
        version = "1.11" if m.couplers else "1.9"
        self.lines = ['<?xml version="1.0"?>', f'<sdf version="{version}">', '  <world name="world">',
                      f"    <gravity>{_numbers(m.gravity)}</gravity>",
                      f"    <model name={quoteattr(self.model_name)}>"]
        if self._touch_each_other():
            self._put("<self_collide>true</self_collide>", 6)
        for body in m.bodies:
            self._link(body.index)
        self._ground()
        for joint in m.joints:
            if not isinstance(joint.joint, Free):
                self._joint(joint)
        for frame in m.frames:
            if frame.body:
                self._frame(frame, f" attached_to={quoteattr(self.link_names[frame.body])}", 6)
        self._put("</model>", 4)
        for frame in m.frames:
            if not frame.body:  # in a model it would move with the first link
                self._frame(frame, "", 4)
        self.lines += ["  </world>", "</sdf>", ""]
        return "\n".join(self.lines)

    def _frame(self, frame: Frame, attributes: str, indent: int) -> None:
        self._open(f"frame name={quoteattr(self.frame_names[frame.name])}{attributes}", indent)
        self._pose(frame.pose, None, indent + 2)
        self._put("</frame>", indent)

    def _put(self, text: str, indent: int) -> None:
        self.lines.append(" " * indent + text)

    def _open(self, text: str, indent: int) -> None:
        self._put(f"<{text}>", indent)

    def _pose(self, pose: Pose, base: str | None, indent: int) -> None:
        attribute = "" if base is None else f" relative_to={quoteattr(base)}"
        text = _pose_text(pose)
        if text or attribute:
            self._put(f"<pose{attribute}{text or '>0 0 0 0 0 0</pose>'}", indent)

    def _link(self, index: int) -> None:
        body, at = self.machine.bodies[index - 1], self.place.links[index]
        self._open(f"link name={quoteattr(self.link_names[index])}", 6)
        base = None if at.joint is None else self.joint_names[at.joint]
        self._pose(at.pose, base, 8)
        inertia = body.inertia
        self._open("inertial", 8)
        self._pose(Pose(inertia.com), None, 10)
        self._put(f"<mass>{_number(inertia.mass)}</mass>", 10)
        moments = "".join(f"<{tag}>{_number(value)}</{tag}>" for tag, value in
                          zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia.inertia, strict=True))
        self._put(f"<inertia>{moments}</inertia>", 10)
        self._put("</inertial>", 8)
        self._shapes(index)
        self._put("</link>", 6)

    def _touch_each_other(self) -> bool:
        """Whether any two bodies with shapes may touch, as far as rules say; SDF wants to be told."""
        m, forbidden = self.machine, {frozenset((r.first, r.second)) for r in self.machine.contact_rules if not r.touch}
        shaped = sorted({shape.body for shape in m.shapes if shape.body and shape.role == "collision"})
        names = [m.bodies[i - 1].name for i in shaped]
        return any(frozenset(pair) not in forbidden for pair in combinations(names, 2))

    def _ground(self) -> None:
        """Shapes of the ground: a link that is fixed to the world."""
        if any(shape.body == 0 for shape in self.machine.shapes):
            self._open(f"link name={quoteattr(self.ground_names[0])}", 6)
            if any(shape.body == 0 and shape.role == "collision" for shape in self.machine.shapes):
                self._put("<self_collide>true</self_collide>", 8)
            self._shapes(0)
            self._put("</link>", 6)
            self._open(f"joint name={quoteattr(self.ground_names[1])} type=\"fixed\"", 6)
            self._put(f"<parent>world</parent><child>{escape(self.ground_names[0])}</child>", 8)
            self._put("</joint>", 6)

    def _shapes(self, index: int) -> None:
        for shape in self.machine.shapes:
            inside = list(look_text(shape, self.store)) if shape.body == index else []
            if inside:
                self._open(f"{shape.role} name={quoteattr(_clean_name('shape', shape.name))}", 8)
                self._pose(shape.pose, None, 10)
                for line in inside:
                    self._put(line, 10)
                self._put(f"</{shape.role}>", 8)

    def _joint(self, joint: Connection) -> None:
        kind, at = joint.joint, self.place.joints[joint.name]
        self._open(f'joint name={quoteattr(self.joint_names[joint.name])} type="{_TYPES[type(kind)]}"', 6)
        base = None if at.base is None else self.link_names[at.base] if at.base else None
        if at.base == 0:
            self._pose(at.pose, "__model__", 8)
        else:
            self._pose(at.pose, base, 8)
        self._put(f"<parent>{escape(self.link_names[joint.parent])}</parent>", 8)
        self._put(f"<child>{escape(self.link_names[joint.child])}</child>", 8)
        if isinstance(kind, Screw):
            self._put(f"<screw_thread_pitch>{_number(float(kind.pitch) * 2.0 * math.pi)}</screw_thread_pitch>", 8)
            if kind.pitch:
                self._put(f"<thread_pitch>{_number(-1.0 / float(kind.pitch))}</thread_pitch>", 8)
        if isinstance(kind, Universal):
            self._axis(joint.name, "axis", kind.axis1, 0)
            self._axis(joint.name, "axis2", kind.axis2, 1)
        elif isinstance(kind, (Revolute, Prismatic, Screw)):
            self._axis(joint.name, "axis", kind.axis, 0)
        self._put("</joint>", 6)

    def _axis(self, joint: str, tag: str, axis: Sequence[float], coordinate: int) -> None:
        forces = self.axes.get((joint, coordinate))
        self._open(tag, 8)
        self._put(f"<xyz>{_numbers(axis)}</xyz>", 10)
        if forces is not None:
            self._group("limit", {"lower": forces.lower, "upper": forces.upper, "stiffness": forces.stop_stiffness,
                                  "dissipation": forces.stop_damping})
            self._group("dynamics", {"damping": forces.damping, "friction": forces.friction,
                                     "spring_reference": forces.rest, "spring_stiffness": forces.stiffness})
            if forces.leader is not None:
                leader, which = forces.leader
                self._open(f"mimic joint={quoteattr(self.joint_names[leader])} axis=\"axis{'2' * which}\"", 10)
                self._put(f"<multiplier>{_number(forces.multiplier)}</multiplier><offset>{_number(forces.offset)}"
                          "</offset><reference>0</reference>", 12)
                self._put("</mimic>", 10)
        self._put(f"</{tag}>", 8)

    def _group(self, tag: str, values: dict[str, float | None]) -> None:
        inner = "".join(f"<{name}>{_number(value)}</{name}>" for name, value in values.items() if value is not None)
        if inner:
            self._put(f"<{tag}>{inner}</{tag}>", 10)


def _clean_name(what: str, name: str) -> str:
    clean = name.replace("::", "__")
    if clean != clean.strip() or not clean or any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 or ord(c) in (0xFFFE, 0xFFFF)
                                                  for c in clean):
        raise ModelError(f"{what} {name!r}: SDF cannot hold the name")
    return clean


def _new_name(what: str, name: str, suffix: str, taken: set[str]) -> str:
    clean = candidate = _clean_name(what, name)
    count = 1
    while candidate in taken or (candidate.startswith("__") and candidate.endswith("__")):
        candidate = f"{clean}{suffix}" if count == 1 else f"{clean}{suffix}_{count}"
        count += 1
    taken.add(candidate)
    return candidate


def _number(value: Number) -> str:
    number = float(value) + 0.0
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _numbers(values: Sequence[Number]) -> str:
    return " ".join(map(_number, values))


def _pose_text(pose: Pose) -> str:
    """The rest of a <pose> element from its attributes on; "" for no displacement at all."""
    at = _numbers(pose.position)
    if pose.rows == IDENTITY_ROWS:
        return "" if at == "0 0 0" else f">{at} 0 0 0</pose>"
    r = pose.rotation
    yaw = math.atan2(r[1, 0], r[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    roll = math.atan2(s * r[0, 2] - c * r[1, 2], c * r[1, 1] - s * r[0, 1])
    if np.abs(_exact(roll, pitch, yaw) - r).max() < 2e-15:
        return f">{at} {_numbers((roll, pitch, yaw))}</pose>"
    from bellcrank.mechanism.joints.quaternion import from_matrix

    w, x, y, z = from_matrix(r)
    return f' rotation_format="quat_xyzw">{at} {_numbers((x, y, z, w))}</pose>'


def _exact(*angles: float) -> npt.NDArray[np.float64]:
    from bellcrank.io.common.readings import cosine_sine, rotation

    turn = rotation([cosine_sine(angle)[0] for angle in angles])
    return np.eye(3) if turn is None else turn
