"""Writing SDF: any machine of links and joints, loops included, with springs, damping, friction and gears."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from itertools import combinations
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.files.atomic import write_text
from bellcrank.io.common.changing_topology import refuse_changing
from bellcrank.io.common.deforming_bodies import refuse_deforming
from bellcrank.io.common.mesh_store import Meshes, MeshStore
from bellcrank.io.sdf.joint_dynamics import Axes, axis_forces
from bellcrank.io.sdf.shift import Placed, placed
from bellcrank.io.sdf.write_visuals import look_text
from bellcrank.mechanism.joints import Free, Prismatic, Revolute, Screw, Spherical, Universal, Weld
from bellcrank.mechanism.mechanism import Connection, Frame, Mechanism
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["write_sdf"]

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
    refuse_changing(mechanism, "SDF")
    refuse_deforming(mechanism, "SDF")
    store = MeshStore(os.fsdecode(path), meshes)
    text = _SdfWriter(mechanism, q, store).text()
    store.write()
    write_text(path, text)


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
        for what, parts in (("wrench", m.wrenches), ("spring between points", m.springs), ("bushing", m.bushings),
                            ("drag", m.drags), ("contact", m.contacts),
                            ("actuator", m.drives), ("constraint", m.constraints),
                            ("armature", m.armatures), ("joint force", m.joint_sums)):
            for part in parts:
                raise ModelError(f"{what} {part.name!r}: SDF cannot hold it")
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
        if joint.prescribed is not None:
            raise ModelError(f"{what}: SDF cannot hold its motion law")
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
    from bellcrank.io.common.angles import cosine_sine, rotation

    turn = rotation([cosine_sine(angle)[0] for angle in angles])
    return np.eye(3) if turn is None else turn


