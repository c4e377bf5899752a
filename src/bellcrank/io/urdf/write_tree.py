"""Writing URDF: the tree as plain URDF, loops in one of the dialects that `read_urdf` knows.

The frame of a URDF link is the frame of the joint above it, so a body whose joint has a `child_pose` is described in
that frame. Whatever the file cannot hold is an error that names the part; nothing is left out in silence.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.common.model_meshes import Meshes, MeshStore
from bellcrank.io.common.writing import number_list, refuse_elements, warn_left_out, write_model
from bellcrank.io.common.xml import unused
from bellcrank.mechanism.forces import Friction, LinearSpring
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Plane, Sphere
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import (
    AxisJoint,
    Cylindrical,
    Free,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    Weld,
)
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Connection, Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Scalar

__all__ = ["origin", "write_urdf"]


# -- joints that close loops, written in the dialects that `read_urdf` knows ------------------------
Dialect = Literal["loop_joint", "constraint", "gazebo", "drake"]
_WORDS: dict[type[Joint], str] = {Revolute: "revolute", Prismatic: "prismatic", Spherical: "spherical", Weld: "fixed",
                                  Cylindrical: "cylindrical", Planar: "planar", Screw: "screw", Universal: "universal"}
#: how far apart the two sides may be at zero for Gazebo's spelling [m, and as a sine]
_CLOSED = 1e-13


@dataclass(frozen=True, slots=True)
class Ends:
    """A joint that closes a loop: its sides in the link frames, and the link frames while all joints are at zero."""

    name: str
    joint: Joint
    parent: str
    child: str
    parent_pose: Pose
    child_pose: Pose
    parent_place: Pose
    child_place: Pose

    def refuse(self, dialect: str) -> ModelError:
        return ModelError(f"joint {self.name!r} closes a loop; loops={dialect!r} cannot hold a "
                          f"{type(self.joint).__name__} there")


def closing_text(dialect: Dialect, ends: Ends) -> Iterator[str]:
    """The lines for one joint."""
    if type(ends.joint) not in _WORDS:
        raise ends.refuse(dialect)
    writers: dict[str, Callable[[Ends], Iterator[str]]] = {"loop_joint": _loop_joint, "constraint": _constraint,
                                                           "gazebo": _gazebo, "drake": _drake}
    return writers[dialect](ends)


def origin(pose: Pose, what: str) -> str:
    """The attributes xyz and rpy of a pose."""
    return f"xyz=\"{_vector(_numbers(pose, what))}\" rpy=\"{_vector(angles(pose))}\""


def angles(pose: Pose) -> tuple[float, float, float]:
    """Fixed-axis angles of a rotation, accurate near pitch = +-pi/2, too."""
    r = pose.rotation
    yaw = math.atan2(r[1, 0], r[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    # what is left after turning the yaw back is a turn about y times one about x, whatever the yaw was
    rest = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ r
    return (math.atan2(-rest[1, 2], rest[1, 1]) + 0.0, math.atan2(-rest[2, 0], rest[0, 0]) + 0.0, yaw + 0.0)


def _numbers(pose: Pose, what: str) -> tuple[float, ...]:
    if any(isinstance(x, Scalar) for x in pose.position):
        raise ModelError(f"{what}: its place has parameters; URDF holds numbers only")
    return tuple(float(x) for x in pose.position)


def _vector(numbers: Sequence[float]) -> str:
    return " ".join(repr(float(x) + 0.0) for x in numbers)


def _axis(joint: Joint) -> tuple[float, ...] | None:
    if isinstance(joint, AxisJoint):
        return joint.axis
    return joint.normal if isinstance(joint, Planar) else None


def _pitch(ends: Ends) -> float | None:
    """The advance of a screw per turn."""
    if not isinstance(ends.joint, Screw):
        return None
    if isinstance(ends.joint.pitch, Scalar):
        raise ModelError(f"joint {ends.name!r}: its pitch is a parameter; URDF holds numbers only")
    return float(ends.joint.pitch) * 2.0 * math.pi


def _loop_joint(ends: Ends) -> Iterator[str]:
    if isinstance(ends.joint, Universal):
        raise ends.refuse("loop_joint")
    what = f"joint {ends.name!r}"
    yield f"  <loop_joint name={quoteattr(ends.name)} type=\"{_WORDS[type(ends.joint)]}\">"
    yield f"    <link1 link={quoteattr(ends.parent)} {origin(ends.parent_pose, what)}/>"
    yield f"    <link2 link={quoteattr(ends.child)} {origin(ends.child_pose, what)}/>"
    axis, pitch = _axis(ends.joint), _pitch(ends)
    if axis is not None:
        yield f"    <axis xyz=\"{_vector(axis)}\"/>"
    if pitch is not None:
        yield f"    <thread_pitch value=\"{pitch!r}\"/>"
    yield "  </loop_joint>"


def _constraint(ends: Ends) -> Iterator[str]:
    what = f"joint {ends.name!r}"
    first = second = _axis(ends.joint)
    if isinstance(ends.joint, Universal):
        first, second = ends.joint.axis1, ends.joint.axis2
        if abs(float(np.dot(first, second))) > 1e-15:
            raise ends.refuse("constraint")
    pitch = _pitch(ends)
    yield f"  <constraint name={quoteattr(ends.name)} type=\"{_WORDS[type(ends.joint)]}\">"
    yield f"    <parent link={quoteattr(ends.parent)}/>"
    yield f"    <parent_origin {origin(ends.parent_pose, what)}/>"
    if first is not None:
        yield f"    <parent_axis xyz=\"{_vector(first)}\"/>"
    yield f"    <child link={quoteattr(ends.child)}/>"
    yield f"    <child_origin {origin(ends.child_pose, what)}/>"
    if second is not None:
        yield f"    <child_axis xyz=\"{_vector(second)}\"/>"
    if pitch is not None:
        yield f"    <thread_pitch value=\"{pitch!r}\"/>"
    yield "  </constraint>"


def _gazebo(ends: Ends) -> Iterator[str]:
    joint = ends.joint
    if isinstance(joint, Cylindrical | Planar):
        raise ends.refuse("gazebo")
    what = f"joint {ends.name!r}"
    _check_closed(ends, what)
    word = "ball" if isinstance(joint, Spherical) else _WORDS[type(joint)]
    pose = f"{_vector(_numbers(ends.child_pose, what))} {_vector(angles(ends.child_pose))}"
    yield "  <gazebo>"
    yield f"    <joint name={quoteattr(ends.name)} type=\"{word}\">"
    yield f"      <parent>{escape(ends.parent)}</parent>"
    yield f"      <child>{escape(ends.child)}</child>"
    yield f"      <pose>{pose}</pose>"
    axes = (joint.axis1, joint.axis2) if isinstance(joint, Universal) else (_axis(joint),)
    for tag, axis in zip(("axis", "axis2"), axes, strict=False):
        if axis is not None:
            yield f"      <{tag}><xyz>{_vector(axis)}</xyz></{tag}>"
    pitch = _pitch(ends)
    if pitch is not None:
        yield f"      <screw_thread_pitch>{pitch!r}</screw_thread_pitch>"
    yield "    </joint>"
    yield "  </gazebo>"


def _check_closed(ends: Ends, what: str) -> None:
    """Gazebo's joints are given in the child only: the parent's side is where the child's is at zero."""
    if ends.parent != ends.parent.strip() or ends.child != ends.child.strip():
        raise ModelError(f"{what}: loops=\"gazebo\" cannot hold link names that begin or end with a blank")
    _numbers(ends.parent_pose, what), _numbers(ends.child_pose, what)
    one, two = ends.parent_place @ ends.parent_pose, ends.child_place @ ends.child_pose
    gap = np.array(two.position, dtype=float) - np.array(one.position, dtype=float)
    size = max(1.0, float(np.abs(np.array(one.position, dtype=float)).max()))
    turn = np.abs(one.rotation - two.rotation).max()
    if isinstance(ends.joint, Spherical):
        turn = 0.0
    elif isinstance(ends.joint, Revolute):  # where the angle is zero does not matter
        axis = np.array(ends.joint.axis)
        turn = np.abs(one.rotation @ axis - two.rotation @ axis).max()
    if np.abs(gap).max() > _CLOSED * size or turn > _CLOSED:
        raise ModelError(f"{what}: loops=\"gazebo\" holds loops that are closed while all joints are at zero; this one "
                         f"is {np.abs(gap).max():.3g} m and {turn:.3g} (sine) open; use loops=\"loop_joint\"")


def _drake(ends: Ends) -> Iterator[str]:
    if not isinstance(ends.joint, Spherical):
        raise ends.refuse("drake")
    what = f"joint {ends.name!r}"
    points = [_vector(_numbers(pose, what)) for pose in (ends.parent_pose, ends.child_pose)]
    yield f"  <drake:ball_constraint name={quoteattr(ends.name)}>"
    yield f"    <drake:ball_constraint_body_A name={quoteattr(ends.parent)}/>"
    yield f"    <drake:ball_constraint_body_B name={quoteattr(ends.child)}/>"
    yield f"    <drake:ball_constraint_p_AP value=\"{points[0]}\"/>"
    yield f"    <drake:ball_constraint_p_BQ value=\"{points[1]}\"/>"
    yield "  </drake:ball_constraint>"


# -- what a mechanism has beside bodies and joints, as URDF: friction and couplers; the rest is refused by name ---
_EARTH = (0.0, 0.0, -9.81)


def refuse_rest(mechanism: Mechanism, drop_gravity: bool) -> None:
    """Refuse what the format has no place for."""
    refuse_elements(mechanism, "URDF")
    if any(isinstance(x, Scalar) for x in mechanism.gravity) or (mechanism.gravity != _EARTH and not drop_gravity):
        raise ModelError(f"mechanism {mechanism.name!r}: URDF holds no gravity and is read with {_EARTH}; "
                         "drop_gravity=True leaves it out")


def dynamics_of(mechanism: Mechanism) -> dict[str, tuple[float, float]]:
    """Damping and dry friction of joints."""
    found: dict[str, tuple[float, float]] = {}
    for force in mechanism.joint_forces:
        along, what = force.along, f"joint force {force.name!r}"
        if isinstance(along, Friction) and along.static is None and along.speed == Friction().speed:
            damping, friction = along.viscous, along.coulomb
        elif isinstance(along, LinearSpring) and isinstance(along.stiffness, float) and along.stiffness == 0.0:
            damping, friction = along.damping, 0.0
        else:
            raise ModelError(f"{what}: URDF holds damping and plain friction (speed=0.001) only")
        if isinstance(damping, Scalar) or isinstance(friction, Scalar):
            raise ModelError(f"{what} has parameters; URDF holds numbers only")
        if mechanism.joint(force.joint).joint.nu != 1:
            raise ModelError(f"{what}: joint {force.joint!r} has several coordinates; URDF holds friction of one")
        before = found.get(force.joint, (0.0, 0.0))
        found[force.joint] = before[0] + damping, before[1] + friction
    return found


def mimics_of(mechanism: Mechanism, usable: set[str]) -> dict[str, tuple[str, float, float]]:
    """Couplers as joints that follow others: leader, multiplier and offset."""
    found: dict[str, tuple[str, float, float]] = {}

    def leads_to(joint: str, target: str) -> bool:
        while joint in found:
            joint = found[joint][0]
        return joint == target

    for coupler in mechanism.couplers:
        what = f"coupler {coupler.name!r}"
        if len(coupler.terms) != 2 or not all(joint in usable for joint, _, _ in coupler.terms):
            raise ModelError(f"{what}: URDF couples two revolute or prismatic joints of the tree only")
        (one, _, a), (two, _, b) = coupler.terms
        if not isinstance(a, float) or not isinstance(b, float) or not isinstance(coupler.offset, float):
            raise ModelError(f"{what}: URDF couples joints by plain factors only, not by functions or parameters")
        for follower, leader, own, other in ((one, two, a, b), (two, one, b, a)):
            if follower not in found and not leads_to(leader, follower):
                found[follower] = leader, -other / own, coupler.offset / own + 0.0
                break
        else:
            raise ModelError(f"{what}: both joints follow others already; in URDF a joint follows one")
    return found


# -- shapes as <visual> and <collision> of URDF -----------------------------------------------------
def shape_text(placed: PlacedShape, frame: Pose, store: MeshStore, checked: Callable[[str, str], str]) -> Iterator[str]:
    """The lines of a shape whose body's frame lies at `frame` in the link; `checked` names it as XML can.

    Cones, ellipsoids and planes become meshes. A plane without end is left out with a warning.
    """
    shape = placed.shape
    match shape:
        case Box():
            form = f"<box size=\"{number_list(*shape.size)}\"/>"
        case Sphere():
            form = f"<sphere radius=\"{shape.radius!r}\"/>"
        case Cylinder() | Capsule():
            form = f"<{type(shape).__name__.lower()} radius=\"{shape.radius!r}\" length=\"{shape.length!r}\"/>"
        case Plane(size=None):
            warn_left_out(placed, "URDF has no plane without end")
            return
        case _:
            mesh = as_mesh(shape)
            form = f"<mesh filename={quoteattr(store.name(mesh, placed.name))} scale=\"{number_list(*mesh.scale)}\"/>"
    yield f"    <{placed.role} name={quoteattr(checked('shape', placed.name))}>"
    yield f"      <origin {origin(frame @ placed.pose, f'shape {placed.name!r}')}/>"
    yield f"      <geometry>{form}</geometry>"
    if placed.color is not None and placed.role == "visual":
        yield f"      <material name={quoteattr(placed.name)}><color rgba=\"{number_list(*placed.color)}\"/></material>"
    yield f"    </{placed.role}>"


_HELD = (Revolute, Prismatic, Weld, Planar, Free)
_SPLIT = (Universal, Cylindrical, Spherical)
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_LIMIT = '<limit lower="{!r}" upper="{!r}" effort="1e9" velocity="1e9"/>'
_ENDLESS = '<limit lower="-1e9" upper="1e9" effort="1e9" velocity="1e9"/>'


def write_urdf(mechanism: Mechanism, path: str | os.PathLike[str], *, loops: Dialect | None = None,
               split: bool = False, drop_gravity: bool = False, meshes: Meshes = "copy") -> None:
    """Write a mechanism as a URDF file, which `read_urdf` reads back with equal dynamics.

    Joints of the tree are revolute (written as continuous unless `Mechanism.ranges` has both ends), prismatic, fixed,
    planar or floating (measured in the world when read again, if its parent is fixed there); couplers of two joints
    become <mimic>, friction becomes <dynamics> (read with ``dynamics=True``). `loops` says how joints that close loops
    are written: "loop_joint", "constraint", "gazebo" (closed while all joints are at zero) or "drake" (ball joints
    only). ``split=True`` writes universal, cylindrical and spherical joints of the tree as revolute and prismatic ones
    with massless links between them; a spherical joint then has three angles and is singular where they are.

    URDF holds no gravity: one other than (0, 0, -9.81) needs ``drop_gravity=True`` and ``read_urdf(..., gravity=...)``.
    Shapes of bodies are written, too; mesh files that do not lie beside the file are copied to a folder there, or, with
    ``meshes="refer"``, only named. A part that the file cannot hold is a `ModelError` naming it, and no file is
    written.

    >>> import tempfile
    >>> import bellcrank as bc
    >>> from bellcrank.io.urdf import load_urdf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_urdf(bc.load("four_bar"), folder + "/four_bar.urdf", loops="loop_joint", drop_gravity=True)
    ...     load_urdf(folder + "/four_bar.urdf", gravity=bc.load("four_bar").gravity)
    <Mechanism 'four-bar': 4 bodies, 5 joints>
    """
    write_model(mechanism, path, "URDF", meshes,
                lambda store: _UrdfWriter(mechanism, loops, split, drop_gravity, store).text())


@dataclass(frozen=True, slots=True)
class _Step:
    """A joint of the tree seen from the root."""

    record: Connection
    parent: int
    child: int
    backwards: bool


class _UrdfWriter:
    """Writes one file."""

    def __init__(self, mechanism: Mechanism, loops: Dialect | None, split: bool, drop_gravity: bool,
                 store: MeshStore) -> None:
        if loops not in (None, "loop_joint", "constraint", "gazebo", "drake"):
            raise ValueError(f"loops must be 'loop_joint', 'constraint', 'gazebo', 'drake' or None, got {loops!r}")
        self.mechanism = mechanism
        self.loops = loops
        self.split = split
        self.store = store
        refuse_rest(mechanism, drop_gravity)
        self.steps, self.closing = self._tree()
        #: the link's frame in the body
        self.frame: dict[int, Pose] = {0: Pose()}
        for step in self.steps:
            self.frame[step.child] = step.record.parent_pose if step.backwards else step.record.child_pose
        self.names = {body.index: self._name("body", body.name) for body in mechanism.bodies}
        self.rooted = self._needs_root()
        self.by_body: dict[int, list[PlacedShape]] = {}
        for placed in mechanism.shapes:
            self.by_body.setdefault(placed.body, []).append(placed)
        if self.rooted:
            self.names[0] = unused("world", {body.name: body for body in mechanism.bodies})
        self.place: dict[int, Pose] = {0: Pose()}
        self.dynamics = dynamics_of(mechanism)
        self.mimics = mimics_of(mechanism, {step.record.name for step in self.steps
                                            if isinstance(step.record.joint, Revolute | Prismatic)})

    # -- the tree -----------------------------------------------------------------------------
    def _tree(self) -> tuple[list[_Step], list[Connection]]:
        """Joints that carry a body, depth first from the ground, and joints that close loops."""
        held = _HELD + (_SPLIT if self.split else ())
        parts = list(range(len(self.mechanism.bodies) + 1))

        def part(body: int) -> int:
            while parts[body] != body:
                parts[body] = parts[parts[body]]
                body = parts[body]
            return body

        carrying: dict[int, list[Connection]] = {}
        closing: list[Connection] = []
        records = self.mechanism.joints
        # those that a tree holds at once come first, so that the others close the loops
        for record in sorted(records, key=lambda r: (not isinstance(r.joint, _HELD), not isinstance(r.joint, held))):
            one, two = part(record.parent), part(record.child)
            if one == two:
                if not isinstance(record.joint, Free):  # which holds nothing
                    closing.append(record)
                continue
            if not isinstance(record.joint, held):
                way = "; split=True writes it as simple joints" if isinstance(record.joint, _SPLIT) else ""
                raise ModelError(f"joint {record.name!r}: URDF has no {type(record.joint).__name__} joint{way}")
            parts[one] = two
            for end in (record.parent, record.child):
                carrying.setdefault(end, []).append(record)
        closing.sort(key=records.index)
        if closing and self.loops is None:
            raise ModelError(f"joint {closing[0].name!r} closes a loop, which plain URDF cannot hold; say in which "
                             "dialect: loops=\"loop_joint\", \"constraint\", \"gazebo\" or \"drake\"")
        return list(self._walk(carrying, records)), closing

    def _walk(self, carrying: dict[int, list[Connection]], records: Sequence[Connection]) -> Iterator[_Step]:
        index = {record.name: i for i, record in enumerate(records)}
        seen, stack = {0}, [(0, iter(sorted(carrying.get(0, []), key=lambda r: index[r.name])))]
        while stack:
            here, rest = stack[-1]
            record = next(rest, None)
            if record is None:
                stack.pop()
                continue
            backwards = record.child == here
            child = record.parent if backwards else record.child
            if child in seen:
                continue
            if backwards and isinstance(record.joint, Planar | Free | Spherical):
                raise ModelError(f"joint {record.name!r} points towards the ground and its coordinates cannot be "
                                 "turned round; add it with parent and child exchanged")
            seen.add(child)
            yield _Step(record, here, child, backwards)
            stack.append((child, iter(sorted(carrying.get(child, []), key=lambda r: index[r.name]))))
        for body in self.mechanism.bodies:
            if body.index not in seen:
                raise ModelError(f"body {body.name!r} is not connected to the ground")

    def _needs_root(self) -> bool:
        """Whether the world has to be a link of the file, because more than one weld in place hangs on it."""
        first = [step for step in self.steps if step.parent == 0]
        used = any(0 in (record.parent, record.child) for record in self.closing) or any(
            frame.body == 0 for frame in self.mechanism.frames) or bool(self.mechanism.shapes_of("ground"))
        if used or len(first) != 1:
            return True
        record = first[0].record
        return not (isinstance(record.joint, Weld) and record.parent_pose == record.child_pose == Pose())

    # -- text ---------------------------------------------------------------------------------
    def _name(self, what: str, name: str) -> str:
        if not name.strip() or _NOT_XML.search(name):
            raise ModelError(f"{what} {name!r}: XML cannot hold this name")
        return name

    def text(self) -> str:
        name = quoteattr(self._name("mechanism", self.mechanism.name))
        lines = ["<?xml version=\"1.0\" encoding=\"utf-8\"?>",
                 f"<robot name={name}" + (" xmlns:drake=\"http://drake.mit.edu\">" if self.loops == "drake" else ">")]
        if self.rooted:
            lines.extend(_link(self.names[0], Inertia.zero(), self._shapes(0)))
        for body in self.mechanism.bodies:
            back = self.frame[body.index].inverse()
            lines.extend(_link(body.name, body.inertia if back == Pose() else body.inertia.transformed(back),
                               self._shapes(body.index)))
        for step in self.steps:
            if step.parent or self.rooted:
                lines.extend(self._joint(step))
            else:
                self.place[step.child] = Pose()
        for record in self.closing:
            lines.extend(self._closing(record))
        for frame in self.mechanism.frames:
            pose = self.frame[frame.body].inverse() @ frame.pose
            lines.append(f"  <frame name={quoteattr(self._name('frame', frame.name))} "
                         f"link={quoteattr(self.names[frame.body])} {origin(pose, f'frame {frame.name!r}')}/>")
        return "\n".join([*lines, "</robot>", ""])

    def _shapes(self, body: int) -> list[str]:
        back = self.frame[body].inverse()
        return [line for placed in self.by_body.get(body, ())
                for line in shape_text(placed, back, self.store, self._name)]

    def _joint(self, step: _Step) -> Iterator[str]:
        record, what = step.record, f"joint {step.record.name!r}"
        outer = record.child_pose if step.backwards else record.drawn_pose
        pose = self.frame[step.parent].inverse() @ outer
        self.place[step.child] = self.place[step.parent] @ pose
        parts = _simple(record.joint)
        if step.backwards:  # the inverse motion: the other way round, along the opposite axes
            parts = [(label, kind, None if axis is None else tuple(-x for x in axis))
                     for label, kind, axis in reversed(parts)]
        above = self.names[step.parent]
        taken: dict[str, object] = {r.name: r for r in self.mechanism.joints}
        for i, (label, kind, axis) in enumerate(parts):
            last = i + 1 == len(parts)
            name = self._name("joint", record.name) if len(parts) == 1 else unused(f"{record.name}_{label}", taken)
            below = self.names[step.child] if last else unused(f"{record.name}_{label}_link", {
                n: n for n in self.names.values()})
            if not last:
                yield f"  <link name={quoteattr(below)}/>"
            ends = self._range(record.name) if len(parts) == 1 else None
            turns = "revolute" if kind == "continuous" and ends is not None else kind
            yield f"  <joint name={quoteattr(name)} type=\"{turns}\">"
            yield f"    <parent link={quoteattr(above)}/>"
            yield f"    <child link={quoteattr(below)}/>"
            yield f"    <origin {origin(pose if i == 0 else Pose(), what)}/>"
            if axis is not None:
                yield f"    <axis xyz=\"{' '.join(repr(x + 0.0) for x in axis)}\"/>"
            if kind == "prismatic" or turns == "revolute":
                yield f"    {_ENDLESS if ends is None else _LIMIT.format(*ends)}"
            yield from self._data(record.name)
            yield "  </joint>"
            above = below

    def _range(self, joint: str) -> tuple[float, float] | None:
        """The ends of a joint that has both."""
        low, high = self.mechanism.ranges.get(joint, (-math.inf, math.inf))
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None

    def _data(self, joint: str) -> Iterator[str]:
        if joint in self.dynamics:
            damping, friction = self.dynamics[joint]
            yield f"    <dynamics damping=\"{damping!r}\" friction=\"{friction!r}\"/>"
        if joint in self.mimics:
            leader, multiplier, offset = self.mimics[joint]
            yield f"    <mimic joint={quoteattr(leader)} multiplier=\"{multiplier!r}\" offset=\"{offset!r}\"/>"

    def _closing(self, record: Connection) -> Iterator[str]:
        assert self.loops is not None
        if record.name in self.dynamics:
            raise ModelError(f"joint {record.name!r}: friction of a joint that closes a loop cannot be written")
        ends = Ends(self._name("joint", record.name), record.joint, self.names[record.parent],
                    self.names[record.child],
                    self.frame[record.parent].inverse() @ record.parent_pose,
                    self.frame[record.child].inverse() @ record.child_pose,
                    self.place[record.parent], self.place[record.child])
        yield from closing_text(self.loops, ends)


def _simple(joint: Joint) -> list[tuple[str, Literal["continuous", "prismatic", "fixed", "planar", "floating"],
                                        tuple[float, ...] | None]]:
    """A joint as a chain of those that URDF has: a label, the type and the axis of each."""
    match joint:
        case Revolute():
            return [("", "continuous", joint.axis)]
        case Prismatic():
            return [("", "prismatic", joint.axis)]
        case Planar():
            return [("", "planar", joint.normal)]
        case Free():
            return [("", "floating", None)]
        case Universal():
            return [("angle1", "continuous", joint.axis1), ("angle2", "continuous", joint.axis2)]
        case Cylindrical():
            return [("angle", "continuous", joint.axis), ("slide", "prismatic", joint.axis)]
        case Spherical():
            axes = np.eye(3).tolist()
            return [(f"angle{i + 1}", "continuous", tuple(axes[i])) for i in range(3)]
    return [("", "fixed", None)]


def _link(name: str, inertia: Inertia, shapes: Sequence[str]) -> Iterator[str]:
    numbers = (inertia.mass, *inertia.com, *inertia.inertia)
    if any(isinstance(x, Scalar) for x in numbers):
        raise ModelError(f"body {name!r}: its inertia has parameters; URDF holds numbers only")
    if not any((inertia.mass, *inertia.inertia)):
        yield from (f"  <link name={quoteattr(name)}>", *shapes, "  </link>") if shapes else (
            f"  <link name={quoteattr(name)}/>",)
        return
    moments = " ".join(f"{key}=\"{value!r}\"" for key, value in
                       zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertia.inertia, strict=True))
    yield f"  <link name={quoteattr(name)}>"
    yield "    <inertial>"
    yield f"      <origin {origin(Pose(inertia.com), name)}/>"
    yield f"      <mass value=\"{inertia.mass!r}\"/>"
    yield f"      <inertia {moments}/>"
    yield "    </inertial>"
    yield from shapes
    yield "  </link>"
