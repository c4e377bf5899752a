"""Reads one URDF file: the tree, its links, notes and data on the way. Joints: tree_joints, loops: loop_dialects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from bellcrank.errors import FileError
from bellcrank.io.common.model_meshes import Folders, MeshFinder, ShapePlacer
from bellcrank.io.common.peer_states import PeerStates, mujoco_joint, pinocchio_joint, pinocchio_order
from bellcrank.io.common.readings import MOMENTS, Turns, given_inertia, unit
from bellcrank.io.common.xml import Names, XmlElement, blame, clipped, near, unused
from bellcrank.io.report import Dynamics, Kind, Limits, Material, Mimic, Note, ReadReport, Shape
from bellcrank.io.urdf.loop_dialects import HANDLERS
from bellcrank.io.urdf.tree_joints import (
    ASIDE,
    KNOWN,
    REPEATABLE,
    ZERO,
    Edge,
    JointReader,
    Sidecar,
    by_name,
    edge_of,
    spanned,
)
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["RobotReader", "check_kind"]


# -- visual and collision geometry and materials of a URDF file: kept as data, of no weight in the dynamics ---
_ONE = (1.0, 1.0, 1.0)


def read_shape(element: XmlElement, body: str, pose: Callable[[XmlElement | None], Pose]) -> Shape | None:
    """The shape in a <visual> or <collision>, or None when it is empty. `pose` reads an <origin>."""
    geometry = element.first("geometry")
    if geometry is None or not geometry.children:
        return None
    form = geometry.children[0]
    match form.tag:
        case "mesh":
            size = form.numbers("scale", 3, _ONE)
        case "box":
            size = form.numbers("size", 3)
        case "sphere":
            size = form.numbers("radius", 1)
        case "cylinder" | "capsule":
            size = form.numbers("radius", 1) + form.numbers("length", 1)
        case _:
            raise form.error("is not a shape; use mesh, box, sphere, cylinder or capsule")
    role: Literal["visual", "collision"] = "visual" if element.tag == "visual" else "collision"
    filename = form.attribute("filename") if form.tag == "mesh" else None
    material = element.first("material")
    return Shape(body, role, form.tag, size, filename, pose(element.first("origin")),
                 None if material is None else read_material(material), element.line)


def read_material(element: XmlElement) -> Material:
    """A material; one that only refers to another by its name has neither colour nor texture."""
    colour, texture = element.first("color"), element.first("texture")
    return Material(element.attributes.get("name", ""), None if colour is None else colour.numbers("rgba", 4),
                    None if texture is None else texture.attributes.get("filename"))


class RobotReader:
    """Reads one file: collects notes and data on the way."""

    def __init__(self, root: XmlElement, exact_angles: bool, *, coupled: bool = True, dynamics: bool = False,
                 packages: Folders = None) -> None:
        self.root = root
        self.turns = Turns(exact_angles)
        self.coupled = coupled
        self.act = dynamics
        self.quaternions = root.attributes.get("version", "1.0").strip() not in ("1", "1.0")
        self.notes: list[Note] = []
        self.limits: dict[str, Limits] = {}
        self.dynamics: dict[str, Dynamics] = {}
        self.mimics: dict[str, Mimic] = {}
        self.shapes: list[Shape] = []
        self.packages = packages
        self._shape_names: list[str] = []
        self.materials: dict[str, Material] = {}
        self.renamed: dict[str, str] = {}
        self.links: dict[str, XmlElement] = {}
        self.joints: dict[str, XmlElement] = {}
        self.frames: dict[str, tuple[str, Pose]] = {}
        self.order: list[Edge] = []
        self.origins: dict[str, Pose] = {}
        self.names = Names()  # of joints
        self.peers: dict[str, PeerStates] = {}
        self._places: dict[str, Pose] | None = None

    def note(self, kind: Kind, element: XmlElement, text: str) -> None:
        self.notes.append(Note(kind, element.tag, element.owner, element.line, text))

    def report(self) -> ReadReport:
        if self.turns.remark():
            self.note("changed", self.root, self.turns.remark())
        notes = tuple(sorted(self.notes, key=lambda note: note.line))
        return ReadReport(self.root.source, notes, self.limits, self.dynamics, self.mimics, tuple(self.shapes),
                          self.materials, self.renamed, peers=self.peers)

    # -- the whole ----------------------------------------------------------------------------
    def mechanism(self, floating_base: bool, gravity: Sequence[float], sidecar: Sidecar | None = None) -> Mechanism:
        self.links = by_name(self.root, "link")
        self.joints = self._joint_elements()
        if not self.links:
            raise self.root.error("has no <link>")
        edges = [edge_of(name, element, self.links) for name, element in self.joints.items()]
        base, self.order = spanned(self.links, edges)
        machine = Mechanism(self._machine_name(), gravity)
        if machine.ground.name in self.links:
            self._rename_ground(machine.ground.name)
        retyped = sidecar.joint_types(self) if sidecar else {}
        self._add_body(machine, base)
        root: Joint = Free() if floating_base else Weld()
        self.names = Names(self.joints)
        self.root_joint = machine.add_joint(self.names.fresh("root_joint"), root, machine.ground, self.body(base)).name
        joints = JointReader(self, machine, None if floating_base else base)
        for edge in self.order:
            self._add_body(machine, edge.child)
            joints.add(edge, retyped.get(edge.name))
        joints.couple()
        self._rest(machine)
        self._place_shapes(machine)
        if sidecar:
            sidecar.close(self, machine)
        self._peers(machine, base, retyped)
        return machine

    def _peers(self, machine: Mechanism, base: str, retyped: Mapping[str, Joint]) -> None:
        """Joints of the tree as MuJoCo and Pinocchio read them: both know those of URDF itself."""
        below: dict[str, list[tuple[str, str]]] = {}
        kinds = {self.root_joint: "floating" if isinstance(machine.joint(self.root_joint).joint, Free) else "fixed"}
        for edge in self.order:
            below.setdefault(edge.parent, []).append((edge.name, edge.child))
            plain = edge.element.tag == "joint" and edge.name not in retyped
            kinds[edge.name] = edge.element.attribute("type") if plain else "of another file"
        joints = {name: machine.joint(name).joint for name in kinds}
        moving = [name for name, kind in kinds.items() if kind != "fixed"]
        order = [name for name in (self.root_joint, *pinocchio_order(below, base)) if name in moving]
        strange = {"of another file", "ball", "universal", "screw"}
        self.peers = {
            "MuJoCo": PeerStates.of(self.root.source, "MuJoCo", {
                name: None if kinds[name] in strange else mujoco_joint(joints[name]) for name in moving}),
            "Pinocchio": PeerStates.of(self.root.source, "Pinocchio", {
                name: None if kinds[name] in strange | {"spherical"} else
                pinocchio_joint(joints[name], kinds[name] == "continuous") for name in order})}

    def _joint_elements(self) -> dict[str, XmlElement]:
        """The joints of the tree by name, plain ones and Drake's, in file order."""
        found: dict[str, XmlElement] = {}
        for element in self.root.children:
            if element.tag in ("joint", "drake:joint"):
                first = found.setdefault(element.attribute("name"), element)
                if first is not element:
                    raise element.error(f"the name is taken by the <{first.tag}> on line {first.line}; "
                                        "names must be unique")
        return found

    def _machine_name(self) -> str:
        name = self.root.attributes.get("name", "").strip()
        if not name:
            name = os.path.splitext(os.path.basename(self.root.source))[0]
            self.note("changed", self.root, f"the robot has no name; called {name!r} after its file")
        return name

    def _rename_ground(self, name: str) -> None:
        self.renamed[name] = unused(f"{name}_link", self.links)
        self.note("changed", self.links[name], f"renamed to {self.renamed[name]!r}: {name!r} is the world here")

    def body(self, link: str) -> str:
        """The body that a link became."""
        return self.renamed.get(link, link)

    def link(self, name: str, element: XmlElement, *, world: bool = False) -> str:
        """The body of a link named in `element`; `world` lets the name world stand for the ground."""
        if name in self.links:
            return self.body(name)
        if world and name in ("world", "ground"):
            return "ground"
        raise element.error(f"there is no link {clipped(name)!r}{near(name, self.links)}")

    def place(self, link: str) -> Pose:
        """Where a link lies in the root link while all joints are at zero; the world is at the root."""
        if self._places is None:
            self._places = {}
            for edge in self.order:
                above = self._places.get(edge.parent, Pose())
                with blame(edge.element):
                    self._places[edge.child] = above @ self.origins[edge.name]
        return self._places.get(link, Pose())

    def _rest(self, machine: Mechanism) -> None:
        """What stands beside links and joints."""
        for element in self.root.children:
            if element.tag in ("frame", "fixed_frame"):
                HANDLERS[element.tag](self, machine, element)
        for element in self.root.children:
            if element.tag == "material":
                self._material(element)
            elif element.tag in HANDLERS:
                if element.tag not in ("frame", "fixed_frame"):
                    HANDLERS[element.tag](self, machine, element)
            elif element.tag not in ("link", "joint", "drake:joint"):
                closes = element.tag.endswith("joint") or "constraint" in element.tag
                self.note("warned" if closes else "ignored", element,
                          "a connection of a kind unknown here, not read" if closes
                          else ASIDE.get(element.tag, "not an element of URDF"))
                for rotor in element.walk() if element.tag == "transmission" else ():
                    if rotor.tag == "drake:rotor_inertia" and rotor.number("value", 0.0):
                        self.note("warned", rotor, "the inertia of the motor is not read; add_armature adds it")

    def strays(self, element: XmlElement) -> None:
        """Notes about what URDF does not define: mostly typing errors and private extensions."""
        attributes, children = KNOWN[element.tag]
        strange = [name for name in element.attributes if name not in attributes and not name.startswith("xmlns")]
        if strange:
            self.note("ignored", element, f"the attributes {', '.join(map(clipped, strange))} are not defined by URDF")
        seen: set[str] = set()
        for child in element.children:
            if child.tag not in children:
                self.note("ignored", child, f"not an element of URDF inside <{element.tag}>")
            elif child.tag in seen and child.tag not in REPEATABLE:
                self.note("warned", child, f"a second <{child.tag}>; only the first counts")
            elif child.tag in KNOWN:
                self.strays(child)
            seen.add(child.tag)

    # -- links --------------------------------------------------------------------------------
    def _add_body(self, machine: Mechanism, name: str) -> None:
        link = self.links[name]
        self.strays(link)
        with blame(link):
            machine.add_body(self.body(name), self._inertia(link))
        for element in link.children:
            if element.tag == "visual" or element.tag == "collision":
                self._shape(element, self.body(name))

    def _inertia(self, link: XmlElement) -> Inertia:
        element = link.first("inertial")
        if element is None:
            return Inertia.zero()
        mass = element.only("mass").number("value")
        moments = element.only("inertia")
        numbers = [moments.number(name) for name in MOMENTS]
        return given_inertia(element, mass, numbers, self.pose(element.first("origin")), self.note)

    def _shape(self, element: XmlElement, body: str) -> None:
        # a mistake in what does not move the machine is worth a note, not an error
        try:
            shape = read_shape(element, body, self.pose)
        except FileError as error:
            self.note("ignored", element, f"cannot be used: {error}")
            return
        if shape is None:
            self.note("ignored", element, "no shape in it")
            return
        self.shapes.append(shape)
        self._shape_names.append(element.attributes.get("name", ""))
        for material in element.all("material"):
            self._material(material)

    def _place_shapes(self, machine: Mechanism) -> None:
        placer = ShapePlacer(MeshFinder(self.packages), self.notes, self.materials)
        for shape, name in zip(self.shapes, self._shape_names, strict=True):
            placer.place(machine, shape, self.root.source, name)

    def _material(self, element: XmlElement) -> None:
        try:
            material = read_material(element)
        except FileError as error:
            self.note("ignored", element, f"cannot be used: {error}")
            return
        if not material.name or (material.rgba is None and material.texture is None):
            return  # without a name, or only a name: it belongs to its shape and is kept there
        if self.materials.setdefault(material.name, material) is material:
            if material.texture is not None:
                self.note("kept", element, "the texture is not shown; kept in report.materials")
        elif self.materials[material.name] != material:
            self.note("kept", element, "another material has this name; this one is kept with its shape only")

    # -- places -------------------------------------------------------------------------------
    def pose(self, origin: XmlElement | None) -> Pose:
        """The pose of an <origin>, or of another element with the attributes xyz and rpy."""
        if origin is None:
            return Pose()
        at = origin.numbers("xyz", 3, ZERO)
        angles = origin.numbers("rpy", 3, ZERO)
        if "quat_xyzw" in origin.attributes:
            if not self.quaternions:
                self.note("warned", origin, "quat_xyzw is not used: it needs <robot version=\"1.1\">")
            elif "rpy" in origin.attributes:
                raise origin.error("has both rpy and quat_xyzw; give one of them")
            else:
                return Pose(at, _quaternion(origin))
        return self.turns.pose(at, angles)


def check_kind(root: XmlElement) -> None:
    """Refuse what is no URDF, or URDF with macros."""
    if root.tag != "robot":
        raise root.error("is not a URDF file: its outermost element is not <robot>")
    prefixes = {name.partition(":")[2] for name, value in root.attributes.items()
                if name.startswith("xmlns:") and "xacro" in value} | {"xacro"}
    for element in root.walk():
        prefix, colon, _ = element.tag.partition(":")
        if (colon and prefix in prefixes) or "${" in element.attributes.get("name", ""):
            raise element.error("is a xacro macro file; expand it to plain URDF first: xacro FILE > robot.urdf")


def _quaternion(origin: XmlElement) -> tuple[float, ...]:
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if x == y == z == w == 0.0:
        raise origin.error("quat_xyzw is zero and gives no direction")
    return unit((w, x, y, z))
