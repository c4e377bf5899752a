"""Links of an SDF file: masses, and shapes that are kept as data."""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.io.report import Kind, Material, Shape
from bellcrank.io.sdf.values import blame, boolean, number, number_in, vector
from bellcrank.io.xml import Element
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.pose import Pose

__all__ = ["MOMENTS", "read_inertia", "read_material", "read_shape"]

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_DEFAULT = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
_ZERO = (0.0, 0.0, 0.0)


def read_inertia(link: Element, pose: Callable[[Element | None], Pose],
                 note: Callable[[Kind, Element, str], None]) -> Inertia:
    """Mass, centre of mass and inertia of a link. SDF gives 1 kg and 1 kg m^2 where nothing is said."""
    element = link.first("inertial")
    if element is None:
        note("changed", link, "no <inertial>: 1 kg and 1 kg m^2 at the link's origin, as SDF says")
        return Inertia(1.0, _ZERO, 1.0)
    if "auto" in element.attributes and boolean(element, element.attributes["auto"]):
        raise element.error("masses computed from shapes (auto) cannot be read; write <mass> and <inertia>")
    added = element.first("fluid_added_mass")
    if added is not None and any(number(child) for child in added.children):
        note("warned", added, "the mass of the fluid around is not modelled")
    mass = number_in(element, "mass", 1.0)
    moments = element.first("inertia")
    xx, xy, xz, yy, yz, zz = (number_in(moments, name, _DEFAULT.get(name, 0.0)) for name in MOMENTS)
    missing = [tag for tag in ("mass", "inertia") if element.first(tag) is None]
    if missing:
        note("changed", element, f"no <{'> and no <'.join(missing)}>: 1, as SDF says")
    place = element.first("pose")
    if place is not None and place.attributes.get("relative_to", "").strip():
        note("warned", place, "relative_to has no meaning here; taken in the link's frame")
    if mass == xx == xy == xz == yy == yz == zz == 0.0:
        return Inertia.zero()
    with blame(element):
        # files in use are often not physical; the user decides, so the numbers stay
        inertia = Inertia(mass, _ZERO, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], checked=False)
        problem = inertia.problem()
        inertia = inertia.transformed(pose(place))
    if problem:
        note("warned", element, f"kept as given, though no real body has it: {problem}")
    return inertia


def read_shape(element: Element, body: str, pose: Pose) -> Shape | None:
    """The shape in a <visual> or <collision>, or None when there is none that a report can hold."""
    geometry = element.first("geometry")
    form = geometry.children[0] if geometry is not None and geometry.children else None
    filename = None
    size: tuple[float, ...]
    match None if form is None else form.tag:
        case "mesh":
            assert form is not None
            filename = form.only("uri").text
            scale = form.first("scale")
            size = (1.0, 1.0, 1.0) if scale is None else vector(scale, 3)
        case "box":
            assert form is not None
            size = vector(form.only("size"), 3)
        case "sphere":
            assert form is not None
            size = (number(form.only("radius")),)
        case "cylinder" | "capsule":
            assert form is not None
            size = (number(form.only("radius")), number(form.only("length")))
        case _:
            return None
    material = element.first("material")
    assert form is not None
    return Shape(body, "visual" if element.tag == "visual" else "collision", form.tag, size, filename, pose,
                 None if material is None else read_material(material), element.line)


def read_material(element: Element) -> Material:
    """The colour of a material (its diffuse one, else its ambient one), which has no name in SDF."""
    colour = element.first("diffuse") or element.first("ambient")
    rgba = None
    if colour is not None and colour.text:
        words = colour.text.split()
        rgba = vector(colour, 3) + (1.0,) if len(words) == 3 else vector(colour, 4)
    script = element.first("script")
    name = None if script is None else script.first("name")
    return Material("" if name is None else name.text, rgba)
