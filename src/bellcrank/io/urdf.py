"""URDF files: a tree of links and joints in XML, as robots are published in.

A URDF <origin> is the pose of a child link in its parent link, so it becomes the joint's `parent_pose`
and link frames are body frames. The root link is a body like the others, joined to the ground.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from bellcrank.errors import FileError, ModelError
from bellcrank.io.angles import ANGLE_TOLERANCE, cosine_sine, rotation
from bellcrank.io.report import Dynamics, Kind, Limits, Material, Mimic, Note, ReadReport, ReadWarning, Shape, condensed
from bellcrank.io.shapes import read_material, read_shape
from bellcrank.io.tree import Edge, by_name, edge_of, near, spanned, unused
from bellcrank.io.xml import Element, clipped, read_xml
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Joint, Planar, Prismatic, Revolute, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["load_urdf", "read_urdf"]

_ZERO = (0.0, 0.0, 0.0)
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_HUGE = 1e100
_ONE_AXIS = ("revolute", "continuous", "prismatic")
_JOINT_TYPES = (*_ONE_AXIS, "fixed", "floating", "planar")

#: what URDF defines: attributes and children of each element that matters to the motion
_KNOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "link": (("name",), ("inertial", "visual", "collision")),
    "inertial": ((), ("origin", "mass", "inertia")),
    "joint": (("name", "type"), ("origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic",
                                 "safety_controller")),
    "origin": (("xyz", "rpy", "quat_xyzw"), ()),
    "mass": (("value",), ()),
    "inertia": (_MOMENTS, ()),
    "parent": (("link",), ()),
    "child": (("link",), ()),
    "axis": (("xyz",), ()),
    "dynamics": (("damping", "friction"), ()),
    "limit": (("lower", "upper", "effort", "velocity"), ()),
    "mimic": (("joint", "multiplier", "offset"), ()),
}
_REPEATABLE = ("visual", "collision")
_WEIGHTLESS = {("turnGravityOff", "true"), ("turnGravityOff", "1"), ("gravity", "false"), ("gravity", "0")}
_ASIDE = {"gazebo": "settings of a simulator", "transmission": "wiring of actuators",
          "ros2_control": "wiring of actuators", "sensor": "a sensor", "calibration": "reference positions of sensors",
          "safety_controller": "settings of a controller"}


def load_urdf(path: str | os.PathLike[str], *, floating_base: bool = False, exact_angles: bool = True,
              gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """The machine described by a URDF file.

    The root link is welded to the ground, or free to move with ``floating_base=True`` (joint "root_joint").
    Joints come in depth-first order from the root, siblings in file order. Angles written as rounded
    multiples of pi/2 (1.57079632679) become exact unless ``exact_angles=False``. Whatever in the file would
    change the motion and is not modelled (damping, friction, mimic joints, loops) is told by one
    `ReadWarning`; `read_urdf` also returns the full report.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "box.urdf")
    ...     _ = file.write_text("<robot name='box'><link name='box'/></robot>")
    ...     load_urdf(file, floating_base=True)
    <Mechanism 'box': 1 bodies, 1 joints>
    """
    mechanism, report = read_urdf(path, floating_base=floating_base, exact_angles=exact_angles, gravity=gravity)
    if report.surprises:
        lines = list(condensed(report.surprises))
        rest = [f"... and {len(lines) - 3} more kinds"] if len(lines) > 3 else []
        warnings.warn("\n  ".join([f"{report.source}: not modelled or not physical (full report: read_urdf)",
                                   *lines[:3], *rest]), ReadWarning, stacklevel=2)
    return mechanism


def read_urdf(path: str | os.PathLike[str], *, floating_base: bool = False, exact_angles: bool = True,
              gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> tuple[Mechanism, ReadReport]:
    """As `load_urdf`, with a report of what was kept, changed and ignored, and without a warning."""
    root = read_xml(path)
    _check_kind(root)
    reader = _Reader(root, exact_angles)
    return reader.mechanism(floating_base, gravity), reader.report()


class _Reader:
    """Reads one file: collects notes and data on the way."""

    def __init__(self, root: Element, exact_angles: bool) -> None:
        self.root = root
        self.exact_angles = exact_angles
        self.restored = 0
        self.quaternions = root.attributes.get("version", "1.0").strip() not in ("1", "1.0")
        self.notes: list[Note] = []
        self.limits: dict[str, Limits] = {}
        self.dynamics: dict[str, Dynamics] = {}
        self.mimics: dict[str, Mimic] = {}
        self.shapes: list[Shape] = []
        self.materials: dict[str, Material] = {}
        self.renamed: dict[str, str] = {}

    def note(self, kind: Kind, element: Element, text: str) -> None:
        self.notes.append(Note(kind, element.tag, element.owner, element.line, text))

    def report(self) -> ReadReport:
        if self.restored:
            self.note("changed", self.root, f"{self.restored} angles were within {ANGLE_TOLERANCE:g} of a multiple "
                                            "of pi/2 and are now exactly that; exact_angles=False keeps them")
        notes = tuple(sorted(self.notes, key=lambda note: note.line))
        return ReadReport(self.root.source, notes, self.limits, self.dynamics, self.mimics, tuple(self.shapes),
                          self.materials, self.renamed)

    # -- the whole ----------------------------------------------------------------------------
    def mechanism(self, floating_base: bool, gravity: Sequence[float]) -> Mechanism:
        links, joints = by_name(self.root, "link"), by_name(self.root, "joint")
        if not links:
            raise self.root.error("has no <link>")
        edges = [edge_of(name, element, links) for name, element in joints.items()]
        base, order = spanned(links, edges)
        machine = Mechanism(self._machine_name(), gravity)
        if machine.ground.name in links:
            self._rename_ground(links, machine.ground.name)
        self._add_body(machine, base, links[base])
        machine.add_joint(unused("root_joint", joints), Free() if floating_base else Weld(), machine.ground,
                          self._body(base))
        for edge in order:
            self._add_body(machine, edge.child, links[edge.child])
            joint, pose = self._joint(edge), self._pose(edge.element.first("origin"))
            machine.add_joint(edge.name, joint, self._body(edge.parent), self._body(edge.child), pose)
            self._joint_data(edge, joints)
        self._rest()
        return machine

    def _machine_name(self) -> str:
        name = self.root.attributes.get("name", "").strip()
        if not name:
            name = os.path.splitext(os.path.basename(self.root.source))[0]
            self.note("changed", self.root, f"the robot has no name; called {name!r} after its file")
        return name

    def _rename_ground(self, links: Mapping[str, Element], name: str) -> None:
        self.renamed[name] = unused(f"{name}_link", links)
        self.note("changed", links[name], f"renamed to {self.renamed[name]!r}: {name!r} is the world here")

    def _body(self, link: str) -> str:
        return self.renamed.get(link, link)

    def _rest(self) -> None:
        """What stands beside links and joints."""
        for element in self.root.children:
            if element.tag == "material":
                self._material(element)
            elif element.tag == "gazebo":
                for kind, inner, text in _gazebo(element):
                    self.note(kind, inner, text)
            elif element.tag not in ("link", "joint"):
                closes = element.tag.endswith("joint") or "constraint" in element.tag
                self.note("warned" if closes else "ignored", element,
                          "a connection that plain URDF does not have, not read" if closes
                          else _ASIDE.get(element.tag, "not an element of URDF"))

    def _strays(self, element: Element) -> None:
        """Notes about what URDF does not define: mostly typing errors and private extensions."""
        attributes, children = _KNOWN[element.tag]
        strange = [name for name in element.attributes if name not in attributes and not name.startswith("xmlns")]
        if strange:
            self.note("ignored", element, f"the attributes {', '.join(map(clipped, strange))} are not defined by URDF")
        seen: set[str] = set()
        for child in element.children:
            if child.tag not in children:
                self.note("ignored", child, f"not an element of URDF inside <{element.tag}>")
            elif child.tag in seen and child.tag not in _REPEATABLE:
                self.note("warned", child, f"a second <{child.tag}>; only the first counts")
            elif child.tag in _KNOWN:
                self._strays(child)
            seen.add(child.tag)

    # -- links --------------------------------------------------------------------------------
    def _add_body(self, machine: Mechanism, name: str, link: Element) -> None:
        self._strays(link)
        machine.add_body(self._body(name), self._inertia(link))
        for element in link.children:
            if element.tag == "visual" or element.tag == "collision":
                self._shape(element, self._body(name))

    def _inertia(self, link: Element) -> Inertia:
        element = link.first("inertial")
        if element is None:
            return Inertia.zero()
        mass = element.only("mass").number("value")
        moments = element.only("inertia")
        xx, xy, xz, yy, yz, zz = (moments.number(name) for name in _MOMENTS)
        pose = self._pose(element.first("origin"))
        if max(map(abs, (mass, xx, xy, xz, yy, yz, zz))) > _HUGE:
            raise element.error(f"mass and moments of inertia above {_HUGE:g} cannot be computed with")
        if mass == xx == xy == xz == yy == yz == zz == 0.0:
            return Inertia.zero()
        with _blame(element):
            # files in use are often not physical; the user decides, so the numbers stay
            inertia = Inertia(mass, _ZERO, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], checked=False)
            problem = inertia.problem()
            inertia = inertia.transformed(pose)
        if problem:
            self.note("warned", element, f"kept as given, though no real body has it: {problem}")
        return inertia

    def _shape(self, element: Element, body: str) -> None:
        # a mistake in what does not move the machine is worth a note, not an error
        try:
            shape = read_shape(element, body, self._pose)
        except FileError as error:
            self.note("ignored", element, f"cannot be used: {error}")
            return
        if shape is None:
            self.note("ignored", element, "no shape in it")
            return
        self.shapes.append(shape)
        self.note("kept", element, "kept in report.shapes")
        for material in element.all("material"):
            self._material(material)

    def _material(self, element: Element) -> None:
        try:
            material = read_material(element)
        except FileError as error:
            self.note("ignored", element, f"cannot be used: {error}")
            return
        if not material.name or (material.rgba is None and material.texture is None):
            return  # without a name, or only a name: it belongs to its shape and is kept there
        if self.materials.setdefault(material.name, material) is material:
            self.note("kept", element, "kept in report.materials")
        elif self.materials[material.name] != material:
            self.note("kept", element, "another material has this name; this one is kept with its shape only")

    # -- joints -------------------------------------------------------------------------------
    def _joint(self, edge: Edge) -> Joint:
        self._strays(edge.element)
        match edge.element.attribute("type"):
            case "revolute" | "continuous":
                return Revolute(self._axis(edge.element))
            case "prismatic":
                return Prismatic(self._axis(edge.element))
            case "planar":
                return Planar(self._axis(edge.element))
            case "floating":
                return Free()
            case "fixed":
                return Weld()
            case other:
                raise edge.element.error(f"the joint type {clipped(other)!r} is unknown; "
                                         f"URDF has {', '.join(_JOINT_TYPES)}")

    def _axis(self, joint: Element) -> tuple[float, ...]:
        element = joint.first("axis")
        if element is None:
            return (1.0, 0.0, 0.0)
        axis = element.numbers("xyz", 3)
        length = math.hypot(*axis)
        if length == 0.0:
            raise element.error("the axis 0 0 0 has no direction")
        if abs(length - 1.0) <= 1e-3:
            return axis  # decimals of a unit vector, made exact by the joint
        self.note("changed", element, f"the axis had length {length:.6g}, now 1")
        return _unit(axis)

    def _joint_data(self, edge: Edge, joints: Mapping[str, Element]) -> None:
        """What a joint has beside its motion."""
        kind = edge.element.attribute("type")
        for element in edge.element.children:
            if element.tag in ("limit", "dynamics", "mimic"):
                if kind not in _ONE_AXIS:
                    self.note("ignored", element, f"has no meaning for a {kind} joint")
                elif element is not edge.element.first(element.tag):
                    continue  # noted as a stray
                elif element.tag == "limit":
                    self._limit(edge.name, kind, element)
                elif element.tag == "dynamics":
                    self._friction(edge.name, element)
                else:
                    self._mimic(edge.name, element, joints)
            elif element.tag in ("calibration", "safety_controller"):
                self.note("ignored", element, _ASIDE[element.tag])

    def _limit(self, joint: str, kind: str, element: Element) -> None:
        def number(name: str, default: float) -> float:
            return element.number(name, default, infinite=True)

        lower, upper = (-math.inf, math.inf) if kind == "continuous" else (number("lower", 0.0), number("upper", 0.0))
        limits = Limits(lower, upper, number("effort", math.inf), number("velocity", math.inf))
        self.limits[joint] = limits
        self.note("kept", element, "limits do not act on the motion; kept in report.limits")
        missing = [name for name in ("effort", "velocity") if name not in element.attributes]
        if missing:
            self.note("changed", element, f"no {' and no '.join(missing)} given: taken as unlimited")
        if limits.lower > limits.upper:
            self.note("warned", element, f"the lower limit {limits.lower:g} is above the upper one {limits.upper:g}")

    def _friction(self, joint: str, element: Element) -> None:
        dynamics = Dynamics(element.number("damping", 0.0), element.number("friction", 0.0))
        self.dynamics[joint] = dynamics
        if dynamics == Dynamics():
            self.note("kept", element, "kept in report.dynamics")
        else:
            self.note("warned", element, "damping and friction do not act on the motion yet; kept in report.dynamics")

    def _mimic(self, joint: str, element: Element, joints: Mapping[str, Element]) -> None:
        mimic = Mimic(element.attribute("joint"), element.number("multiplier", 1.0), element.number("offset", 0.0))
        self.mimics[joint] = mimic
        self.note("changed", element, f"moves on its own, though the file wants it at {mimic.multiplier:g} times "
                                      f"joint {clipped(mimic.joint)!r} plus {mimic.offset:g}")
        if mimic.joint not in joints:
            self.note("warned", element, f"there is no joint {clipped(mimic.joint)!r}{near(mimic.joint, joints)}")

    # -- places -------------------------------------------------------------------------------
    def _pose(self, origin: Element | None) -> Pose:
        if origin is None:
            return Pose()
        at = origin.numbers("xyz", 3, _ZERO)
        angles = origin.numbers("rpy", 3, _ZERO)
        if "quat_xyzw" in origin.attributes:
            if not self.quaternions:
                self.note("warned", origin, "quat_xyzw is not used: it needs <robot version=\"1.1\">")
            elif "rpy" in origin.attributes:
                raise origin.error("has both rpy and quat_xyzw; give one of them")
            else:
                return Pose(at, _quaternion(origin))
        if not self.exact_angles:
            return Pose.rpy(at, *angles)
        turns = []
        for angle in angles:
            pair, restored = cosine_sine(angle)
            turns.append(pair)
            self.restored += restored
        return Pose(at, rotation(turns))


# -- helpers ------------------------------------------------------------------------------------
def _check_kind(root: Element) -> None:
    if root.tag != "robot":
        raise root.error("is not a URDF file: its outermost element is not <robot>")
    prefixes = {name.partition(":")[2] for name, value in root.attributes.items()
                if name.startswith("xmlns:") and "xacro" in value} | {"xacro"}
    for element in root.walk():
        prefix, colon, _ = element.tag.partition(":")
        if colon and prefix in prefixes:
            raise element.error("is a xacro macro file; expand it to plain URDF first: xacro FILE > robot.urdf")


def _gazebo(element: Element) -> list[tuple[Kind, Element, str]]:
    """What to say about settings for a simulator: some of them are physics."""
    found: list[tuple[Kind, Element, str]] = []
    for inner in element.walk():
        below = {child.tag for child in inner.children}
        if "joint" in inner.tag and ({"parent", "child"} <= below or {"body1", "body2"} <= below):
            found.append(("warned", inner, "closes a loop in a simulator, not read"))
        elif inner.tag == "springStiffness" or (inner.tag, inner.text) in _WEIGHTLESS:
            found.append(("warned", inner, "acts on the motion in a simulator, not read"))
    return found or [("ignored", element, _ASIDE["gazebo"])]


def _quaternion(origin: Element) -> tuple[float, ...]:
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if x == y == z == w == 0.0:
        raise origin.error("quat_xyzw is zero and gives no direction")
    return _unit((w, x, y, z))


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    """The vector at length 1; huge and tiny entries are scaled first, so that squares stay finite."""
    largest = max(map(abs, vector))
    scaled = [v / largest for v in vector]
    length = math.hypot(*scaled)
    return tuple(v / length for v in scaled)


@contextmanager
def _blame(element: Element) -> Iterator[None]:
    """Complaints of the model, told with the place in the file."""
    try:
        yield
    except ModelError as error:
        raise element.error(str(error)) from None
