"""Reading SDF: the graph of links and joints becomes a `Mechanism`; loops stay loops.

Links of an SDF file: masses, and shapes that are kept as data.

Links of one SDF model touch each other only where the file says so: <self_collide> of the model, or of one of the
two links, which has the last word. What the file does not let touch becomes rules for `Mechanism.add_contacts`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from bellcrank.errors import FileError
from bellcrank.io.common.model_meshes import Folders, MeshFinder, ShapePlacer
from bellcrank.io.common.readings import MOMENTS, Turns, given_inertia, with_ranges
from bellcrank.io.common.xml import Names, XmlElement, blame, clipped, read_xml, unused
from bellcrank.io.report import Dynamics, Kind, Limits, Material, Mimic, Note, ReadReport, Shape, warn_of_surprises
from bellcrank.io.sdf.collect import Collection, collect
from bellcrank.io.sdf.frames import FrameNode, Poses, Scope, attach, boolean, number_in, place, relative
from bellcrank.io.sdf.joints import Hinge, align, between, couple_gearbox, couple_mimics, make_hinge, read_along
from bellcrank.mechanism.geometry.placed_shape import NAMED, to_color
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["load_sdf", "read_sdf"]


# -- links of an SDF file ---------------------------------------------------------------------------
#: what a collision touches where nothing is said
_EVERYTHING = 0xFFFF
_DEFAULT = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}


def read_inertia(link: XmlElement, pose: Callable[[XmlElement | None], Pose],
                 note: Callable[[Kind, XmlElement, str], None]) -> Inertia:
    """Mass, centre of mass and inertia of a link. SDF gives 1 kg and 1 kg m^2 where nothing is said."""
    element = link.first("inertial")
    if element is None:
        note("changed", link, "no <inertial>: 1 kg and 1 kg m^2 at the link's origin, as SDF says")
        return Inertia(1.0, (0.0, 0.0, 0.0), 1.0)
    if "auto" in element.attributes and boolean(element, element.attributes["auto"]):
        raise element.error("masses computed from shapes (auto) cannot be read; write <mass> and <inertia>")
    added = element.first("fluid_added_mass")
    if added is not None and any(child.text_number() for child in added.children):
        note("warned", added, "the mass of the fluid around is not modelled")
    moments = element.first("inertia")
    missing = [tag for tag in ("mass", "inertia") if element.first(tag) is None]
    missing += [] if moments is None else [tag for tag in _DEFAULT if moments.first(tag) is None]
    if missing:
        note("changed", element, f"no <{'> and no <'.join(missing)}>: 1, as SDF says")
    place = element.first("pose")
    if place is not None and place.attributes.get("relative_to", "").strip():
        note("warned", place, "relative_to has no meaning here; taken in the link's frame")
    return given_inertia(element, number_in(element, "mass", 1.0),
                         [number_in(moments, name, _DEFAULT.get(name, 0.0)) for name in MOMENTS], pose(place), note)


def read_shape(element: XmlElement, body: str, pose: Pose) -> Shape | None:
    """The shape in a <visual> or <collision>, or None when there is none that a report can hold."""
    geometry = element.first("geometry")
    if geometry is None or not geometry.children:
        return None
    form = geometry.children[0]
    filename = None
    size: tuple[float, ...]
    match form.tag:
        case "mesh":
            filename = form.only("uri").text
            scale = form.first("scale")
            size = (1.0, 1.0, 1.0) if scale is None else scale.text_numbers(3)
        case "box":
            size = form.only("size").text_numbers(3)
        case "sphere":
            size = (form.only("radius").text_number(),)
        case "cylinder" | "capsule" | "cone":
            size = (form.only("radius").text_number(), form.only("length").text_number())
        case "ellipsoid":
            size = form.only("radii").text_numbers(3)
        case "heightmap":
            filename = form.only("uri").text
            extent, place = form.first("size"), form.first("pos")
            size = (1.0, 1.0, 1.0) if extent is None else extent.text_numbers(3)
            pose = pose if place is None else pose @ Pose(place.text_numbers(3))
        case "plane":
            edges, normal = form.first("size"), form.first("normal")
            size = () if element.tag == "collision" else (1.0, 1.0) if edges is None else edges.text_numbers(2)
            pose = pose @ _facing((0.0, 0.0, 1.0) if normal is None else normal.text_numbers(3))
        case _:
            return None
    return Shape(body, "visual" if element.tag == "visual" else "collision", form.tag, size, filename, pose,
                 _looks(element), element.line, *_surface(element))


def _surface(element: XmlElement) -> tuple[float | None, tuple[int, int]]:
    """Friction of a collision, and the bits of what it touches, which both must share in SDF."""
    if element.tag != "collision":
        return None, (1, 1)
    surface = element.first("surface")
    friction = None if surface is None else surface.first("friction")
    for tag, name in (("ode", "mu"), ("bullet", "friction")):
        inner = None if friction is None else friction.first(tag)
        if inner is not None and inner.first(name) is not None:
            mu, bits = number_in(inner, name, 1.0), _bitmask(surface)
            return (mu if mu >= 0.0 else None), (bits, bits)
    bits = _bitmask(surface)
    return None, (bits, bits)


def _bitmask(surface: XmlElement | None) -> int:
    contact = None if surface is None else surface.first("contact")
    given = None if contact is None else contact.first("collide_bitmask")
    if given is None:
        return _EVERYTHING
    try:
        return int(given.text.strip(), 0)
    except ValueError:
        raise given.error("collide_bitmask is not a whole number") from None


def _looks(element: XmlElement) -> Material | None:
    """Material and transparency of a visual."""
    inner, clear = element.first("material"), number_in(element, "transparency", 0.0)
    material = None if inner is None else read_material(inner)
    if clear and material is not None:
        r, g, b, a = material.rgba or (0.7, 0.7, 0.7, 1.0)
        return Material(material.name, (r, g, b, a * (1.0 - clear)))
    return material


def _facing(normal: tuple[float, ...]) -> Pose:
    """A frame whose z axis is `normal`."""
    z = np.array(normal)
    if not z.any():
        return Pose()
    z = z / np.linalg.norm(z)
    if z[2] == 1.0:
        return Pose()
    x = np.cross((0.0, 1.0, 0.0) if abs(z[1]) < 0.9 else (0.0, 0.0, 1.0), z)
    x = x / np.linalg.norm(x)
    return Pose(rotation=np.column_stack([x, np.cross(z, x), z]))


def read_material(element: XmlElement) -> Material:
    """The colour of a material (its diffuse one, else its ambient one), which has no name in SDF."""
    colour = element.first("diffuse") or element.first("ambient")
    rgba = None
    if colour is not None and colour.text:
        words = colour.text.split()
        rgba = (*colour.text_numbers(3), 1.0) if len(words) == 3 else colour.text_numbers(4)
    script = element.first("script")
    name = None if script is None else script.first("name")
    label = "" if name is None else name.text
    known = NAMED.get(label.removeprefix("Gazebo/").lower())  # the script itself is not read
    return Material(label, to_color(f"#{known}", label) if rgba is None and known else rgba)


# -- links of one SDF model touch each other only where the file says so ----------------------------
def keep_apart(machine: Mechanism, links: Iterable[FrameNode]) -> None:
    """Rules for pairs of links of one model that must not touch. Cost: the square of the links of a model."""
    shaped = {shape.body for shape in machine.shapes if shape.role == "collision"}
    models: dict[int, list[str]] = {}
    for node in links:
        model = node.scope.owner
        if machine.body(node.name).index in shaped and not model.static and not _touches_own(node, model):
            models.setdefault(id(model), []).append(node.name)
    for names in models.values():
        for first, second in combinations(names, 2):
            machine.set_contact_rule(first, second, touch=False)


def _touches_own(node: FrameNode, model: Scope) -> bool:
    own = node.element.first("self_collide")
    return model.self_collide if own is None else boolean(own, own.text)


# -- reading SDF: the graph of links and joints becomes a `Mechanism`; loops stay loops -------------
_DEFAULT_GRAVITY = (0.0, 0.0, -9.81)
_WORLD_GRAVITY = (0.0, 0.0, -9.8)  # SDF's own default for a <world>
_ASIDE = {"sensor": "a sensor", "light": "scenery", "projector": "scenery", "audio_sink": "scenery",
          "audio_source": "scenery", "battery": "a battery", "particle_emitter": "scenery",
          "enable_wind": "wind, which acts on no body here",
          "must_be_base_link": "settings of a simulator", "plugin": "a plug-in of a simulator"}


def load_sdf(path: str | os.PathLike[str], **options: Any) -> Mechanism:
    """The machine described by an SDF file; options are those of `read_sdf`. Every coordinate is zero where the file
    draws the machine, but those of free joints, which are measured in the world: `System.neutral` is where it is drawn.

    * ``model``: the model of a world to read; otherwise all are, with the names ``model::link``.
    * ``floating_base``: links that no joint connects to the world hang on it by a `Free` joint ("root_joint") at their
      model's first link; with False by a weld.
    * ``gravity`` [m/s^2]: instead of that of the file's world (0, 0, -9.8 where it is silent) or, for a file without a
      world, 0, 0, -9.81.
    * ``dissipation``: damping and dry friction of joints act on the motion; with False they are only reported.
    * ``limits``: joint limits become compliant stops with the file's stiffness and dissipation, or with
      ``limit_stiffness`` [N m/rad or N/m] and ``limit_damping`` [N m s/rad or N s/m]; otherwise they are only reported.
    * ``exact_angles``: angles written as rounded multiples of pi/2 (1.57079632679) become exact.
    * ``parallel`` [rad]: axes that are parallel within this angle become exactly so. A planar linkage whose axes were
      rounded differently cannot move at all; the report warns about it.

    Shapes of visuals and collisions come with the bodies; links of one model touch each other (`add_contacts`) only
    with <self_collide>, as SDF says; `packages` are further folders for mesh files, as for URDF.
    Whatever would change the motion and is not modelled is told by one `ReadWarning`; `read_sdf` returns the report.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "box.sdf")
    ...     _ = file.write_text("<sdf version='1.7'><model name='box'><link name='box'/></model></sdf>")
    ...     load_sdf(file)
    <Mechanism 'box': 1 bodies, 1 joints>
    """
    mechanism, report = read_sdf(path, **options)
    warn_of_surprises(report, "read_sdf")
    return mechanism


def read_sdf(path: str | os.PathLike[str], *, model: str | None = None, floating_base: bool = True,
             exact_angles: bool = True, parallel: float = 0.0, gravity: Sequence[float] | None = None,
             dissipation: bool = True, limits: bool = False, limit_stiffness: float = 1e4,
             limit_damping: float = 1e2, packages: Folders = None) -> tuple[Mechanism, ReadReport]:
    """As `load_sdf`, with a report of what was kept, changed and ignored, and without a warning."""
    options = _Options(floating_base, parallel, gravity, dissipation, limits, limit_stiffness, limit_damping,
                       packages)
    reader = _Reader(read_xml(path), Turns(exact_angles), model, options)
    return with_ranges(reader.mechanism(), reader.report())


@dataclass(frozen=True)
class _Options:
    floating_base: bool
    parallel: float
    gravity: Sequence[float] | None
    dissipation: bool
    limits: bool
    limit_stiffness: float
    limit_damping: float
    packages: Folders


class _Reader:
    """Reads one file: collects notes and data on the way."""

    def __init__(self, root: XmlElement, turns: Turns, model: str | None, options: _Options) -> None:
        self.root, self.turns, self.poses, self.options = root, turns, Poses(turns), options
        self.notes: list[Note] = []
        self.limits: dict[str, Limits] = {}
        self.dynamics: dict[str, Dynamics] = {}
        self.mimics: dict[str, Mimic] = {}
        self.shapes: list[Shape] = []
        self.placer = ShapePlacer(MeshFinder(options.packages), self.notes)
        self.renamed: dict[str, str] = {}
        self.found: Collection = collect(root, self.poses, model)

    def note(self, kind: Kind, element: XmlElement, text: str) -> None:
        self.notes.append(Note(kind, element.tag, element.owner, element.line, text))

    def report(self) -> ReadReport:
        for remark in self.found.remarks:
            self.note(*remark)
        if self.turns.remark():
            self.note("changed", self.root, self.turns.remark())
        notes = tuple(sorted(self.notes, key=lambda note: note.line))
        return ReadReport(self.root.source, notes, limits=self.limits, dynamics=self.dynamics, mimics=self.mimics,
                          shapes=tuple(self.shapes), renamed=self.renamed)

    # -- the whole ----------------------------------------------------------------------------
    def mechanism(self) -> Mechanism:
        found = self.found
        place(found.nodes, found.scopes)
        attach(found.nodes)
        links = found.of_kind("link")
        if not links:
            raise self.root.error("has no <link>")
        hinges = [make_hinge(node, self.note) for node in found.of_kind("joint")]
        self._names(links, hinges)
        align(hinges, len(links), self.options.parallel, self.note)
        self.machine = Mechanism(found.name, self._gravity())
        for node in links:
            self._link(node)
        keep_apart(self.machine, links)
        used = [hinge for hinge in hinges if not self._idle(hinge)]
        self._bases(links, used, {hinge.name for hinge in hinges})
        for hinge in used:
            self._hinge(hinge)
        by_node, by_ends = {hinge.node: hinge for hinge in used}, between(used)
        for hinge in used:
            if hinge.joint is None:
                couple_gearbox(self.machine, hinge, by_ends, self.note)
            couple_mimics(self.machine, hinge, by_node, self.mimics, self.note)
        self._frames()
        return self.machine

    def _gravity(self) -> Sequence[float]:
        if self.options.gravity is not None:
            return self.options.gravity
        if self.found.gravity is not None:
            return self.found.gravity.text_numbers(3)
        if not self.found.in_world:
            return _DEFAULT_GRAVITY
        self.note("changed", self.root, "the world has no <gravity>: 0 0 -9.8, as SDF says")
        return _WORLD_GRAVITY

    def _names(self, links: list[FrameNode], hinges: list[Hinge]) -> None:
        """Names in the mechanism, which differ from the file's only where they have to."""
        taken: dict[str, object] = {node.name: node for node in links}
        if len(taken) < len(links):
            seen: set[str] = set()
            for node in links:
                if node.name in seen:
                    raise node.element.error(f"a second link is called {node.name!r}")
                seen.add(node.name)
        joints: set[str] = set()
        for hinge in hinges:
            if hinge.name in joints:
                raise hinge.element.error(f"a second joint is called {hinge.name!r}")
            joints.add(hinge.name)
        for node in links:
            if node.name == "ground":
                node.name = self.renamed["ground"] = unused("ground_link", taken)
                self.note("changed", node.element, f"renamed to {node.name!r}: 'ground' is the world here")

    # -- links --------------------------------------------------------------------------------
    def _link(self, node: FrameNode) -> None:
        inertia = read_inertia(node.element, self.poses, self.note)
        self.machine.add_body(node.name, inertia)
        if not node.scope.static:
            self._weightless(node)
        seen: set[str] = set()
        for element in node.element.children:
            if element.tag in ("visual", "collision"):
                self._shape(element, node)
            elif element.tag in _ASIDE:
                self.note("ignored", element, _ASIDE[element.tag])
            elif element.tag == "self_collide":
                self.note("kept", element, "a rule for add_contacts")
            elif element.tag == "velocity_decay":
                kind: Kind = "warned" if any(number_in(element, t, 0.0) for t in ("linear", "angular")) else "ignored"
                self.note(kind, element, "damping of a whole body is not modelled")
            elif element.tag == "kinematic" and boolean(element, element.text):
                self.note("warned", element, "moves by forces here, though the file wants it to be moved by hand")
            elif element.tag not in ("pose", "inertial", "gravity", "kinematic", "frame"):
                self.note("ignored", element, "not an element of SDF inside <link>")
            elif element.tag in seen:
                self.note("warned", element, f"a second <{element.tag}>; only the first counts")
            seen.add(element.tag)

    def _weightless(self, node: FrameNode) -> None:
        """A link without gravity is one that its weight is taken from by a force."""
        element = node.element.first("gravity")
        if element is None or boolean(element, element.text):
            return
        inertia = self.machine.body(node.name).inertia
        lift = [-float(inertia.mass) * float(g) for g in self.machine.gravity]
        if any(lift):
            self.machine.add_wrench(f"{node.name}_lift", node.name, force=lift, at=inertia.com)
        self.note("changed", element, "no gravity: a constant force at the centre of mass takes the weight away")

    def _shape(self, element: XmlElement, node: FrameNode) -> None:
        # a mistake in what does not move the machine is worth a note, not an error
        try:
            place = element.first("pose")
            pose = self.poses(place)
            base = "" if place is None else place.attributes.get("relative_to", "").strip()
            if base and place is not None:
                other = node.scope.get(base)
                if other is None:
                    raise place.error(f"there is no {clipped(base)!r} here")
                pose = relative(node, other) @ pose
            shape = read_shape(element, node.name, pose)
        except FileError as error:
            self.note("ignored", element, f"cannot be used: {error}")
            return
        if shape is None:
            self.note("ignored", element, "no shape in it that can be shown")
            return
        self.shapes.append(shape)
        self.placer.place(self.machine, shape, element.source, element.attributes.get("name", ""))

    # -- joints -------------------------------------------------------------------------------
    def _idle(self, hinge: Hinge) -> bool:
        """Whether both sides of a joint are fixed to the world anyway."""
        fixed = [node.kind == "world" or node.scope.static for node in (hinge.parent, hinge.child)]
        if all(fixed):
            self.note("ignored", hinge.element, "both sides are static")
        return all(fixed)

    def _bases(self, links: list[FrameNode], hinges: list[Hinge], names: set[str]) -> None:
        """Hang whatever no joint connects to the world on it."""
        group: dict[FrameNode, FrameNode] = {}

        def top(node: FrameNode) -> FrameNode:
            path = []
            while group.get(node, node) is not node:
                path.append(node)
                node = group[node]
            for passed in path:
                group[passed] = node
            return node

        world = self.found.scopes[0].world
        taken = Names(names)
        for node in links:
            if node.scope.static:
                name = taken.fresh(f"{node.name}_weld")
                self.machine.add_joint(name, Weld(), self.machine.ground, node.name, relative(world, node))
                group[top(node)] = top(world)
        for hinge in hinges:
            if hinge.joint is not None:
                group[top(hinge.child)] = top(hinge.parent)
        roots = [node.holder for node in self.found.of_kind("model") if node.holder is not None]
        for node in [*(root for root in roots if root.kind == "link"), *links]:
            if top(node) is top(world):
                continue
            name = taken.fresh("root_joint")
            drawn = relative(world, node)
            if self.options.floating_base:
                self.machine.add_joint(name, Free(drawn), self.machine.ground, node.name)
            else:
                self.machine.add_joint(name, Weld(), self.machine.ground, node.name, drawn)
            group[top(node)] = top(world)

    def _body(self, node: FrameNode) -> str:
        return "ground" if node.kind == "world" else node.name

    def _hinge(self, hinge: Hinge) -> None:
        if hinge.joint is None:
            return
        with blame(hinge.element):
            self.machine.add_joint(hinge.name, hinge.joint, self._body(hinge.parent), self._body(hinge.child),
                                   hinge.parent_pose, hinge.child_pose)
        for axis, coordinate in hinge.axes():
            with blame(axis):
                self._along(hinge, axis, coordinate)

    def _along(self, hinge: Hinge, axis: XmlElement, coordinate: int | None) -> None:
        """Limits, springs and friction of one axis."""
        along = read_along(axis, hinge.kind, self.note)
        options, joint = self.options, hinge.name
        name = joint if coordinate is None else f"{joint}.angle{coordinate + 1}"
        limit, dynamics = axis.first("limit"), axis.first("dynamics")
        if limit is not None:
            self.limits[name] = along.limits
            ends = [x if math.isfinite(x) else None for x in (along.limits.lower, along.limits.upper)]
            if options.limits and any(x is not None for x in ends):
                stiffness, damping = along.stop_stiffness, along.stop_damping
                self.machine.add_limit(f"{name}_limit", joint, *ends, coordinate=coordinate,
                                       stiffness=options.limit_stiffness if stiffness is None else stiffness,
                                       damping=options.limit_damping if damping is None else damping)
                self.note("kept", limit, "compliant stops; effort and speed limits do not act; all in report.limits")
            else:
                self.note("kept", limit, "limits do not act on the motion; kept in report.limits")
        if dynamics is not None:
            self.dynamics[name] = along.dynamics
        if along.stiffness:
            self.machine.add_joint_spring(f"{name}_spring", joint, stiffness=along.stiffness, rest=along.rest,
                                          coordinate=coordinate)
        if along.dynamics != Dynamics():
            if options.dissipation:
                self.machine.add_friction(f"{name}_friction", joint, coulomb=along.dynamics.friction,
                                          viscous=along.dynamics.damping, coordinate=coordinate)
            elif dynamics is not None:
                self.note("kept", dynamics, "damping and friction left out, as asked for; kept in report.dynamics")

    # -- places -------------------------------------------------------------------------------
    def _frames(self) -> None:
        taken: dict[str, object] = {body.name: body for body in (self.machine.ground, *self.machine.bodies)}
        taken |= {node.name: node for node in self.found.of_kind("frame") if node.name not in taken}
        for node in self.found.of_kind("frame"):
            name = node.name
            if taken[name] is not node:  # before 1.7 names of different kinds may be equal
                name = unused(f"{node.name}_frame", taken)
                taken[name] = node
                what = "is the world here" if node.name == "ground" else "is a link, too"
                self.note("changed", node.element, f"renamed to {clipped(name)!r}: {clipped(node.name)!r} {what}")
            assert node.holder is not None
            with blame(node.element):
                self.machine.add_frame(name, self._body(node.holder), relative(node.holder, node))
