"""Links of an SDF file: masses, and shapes that are kept as data.

Links of one SDF model touch each other only where the file says so: <self_collide> of the model, or of one of the
two links, which has the last word. What the file does not let touch becomes rules for `Mechanism.add_contacts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from bellcrank.io.common.readings import MOMENTS, given_inertia
from bellcrank.io.common.xml import XmlElement
from bellcrank.io.report import Kind, Material, Shape
from bellcrank.io.sdf.frames import FrameNode, Scope, boolean, number_in
from bellcrank.mechanism.geometry.placed_shape import NAMED, to_color
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["keep_apart", "read_inertia", "read_material", "read_shape"]

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
