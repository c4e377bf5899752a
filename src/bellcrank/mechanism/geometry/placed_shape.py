"""Shapes placed on bodies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.checks import new_name, number
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.parts import Body
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["NAMED", "ROLES", "SHAPES", "AnyShape", "Color", "PlacedShape", "Role", "ShapedBodies", "as_mesh",
           "to_color"]


# -- colors of shapes: by name, in hexadecimal, or as numbers ---------------------------------------
#: red, green, blue and opacity, each in 0..1
Color = tuple[float, float, float, float]

#: the names that are known, as CSS defines them
NAMED = {
    "black": "000000", "blue": "0000ff", "brown": "a52a2a", "crimson": "dc143c", "cyan": "00ffff", "darkblue": "00008b",
    "darkgray": "a9a9a9", "darkgreen": "006400", "darkorange": "ff8c00", "darkred": "8b0000", "gold": "ffd700",
    "gray": "808080", "green": "008000", "grey": "808080", "indigo": "4b0082", "ivory": "fffff0", "khaki": "f0e68c",
    "lightblue": "add8e6", "lightgray": "d3d3d3", "lightgreen": "90ee90", "magenta": "ff00ff", "maroon": "800000",
    "navy": "000080", "olive": "808000", "orange": "ffa500", "pink": "ffc0cb", "purple": "800080", "red": "ff0000",
    "salmon": "fa8072", "silver": "c0c0c0", "skyblue": "87ceeb", "steelblue": "4682b4", "tan": "d2b48c",
    "teal": "008080", "tomato": "ff6347", "turquoise": "40e0d0", "violet": "ee82ee", "white": "ffffff",
    "yellow": "ffff00",
}


def to_color(value: str | Sequence[float], what: str) -> Color:
    """Red, green, blue and opacity in 0..1, from a name, ``"#rrggbb"``, ``"#rrggbbaa"``, ``"#rgb"`` or three or four
    numbers; `what` says whose color it is.

    >>> to_color("#ff000080", "ball")[3] == 128 / 255
    True
    """
    if isinstance(value, str):
        return _of_text(value, what)
    try:
        numbers = tuple(float(v) for v in value)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: the color {value!r} is neither a name nor numbers") from None
    if len(numbers) not in (3, 4) or not all(0.0 <= v <= 1.0 for v in numbers):
        raise ModelError(f"{what}: a color is three or four numbers in 0..1 (red, green, blue, opacity), got {numbers}")
    return numbers[0], numbers[1], numbers[2], (*numbers, 1.0)[3]


def _of_text(value: str, what: str) -> Color:
    text = NAMED.get(value.lower(), value.removeprefix("#") if value.startswith("#") else "")
    if len(text) in (3, 4):
        text = "".join(2 * c for c in text)
    try:
        parts = [int(text[i:i + 2], 16) / 255.0 for i in range(0, len(text), 2)] if text.isalnum() else []
    except ValueError:
        parts = []
    if len(text) not in (6, 8) or not parts:
        raise ModelError(f"{what}: unknown color {value!r}; give a name, '#rrggbb', '#rrggbbaa' or three or four "
                         f"numbers in 0..1{hint(value, NAMED)}")
    return parts[0], parts[1], parts[2], (*parts, 1.0)[3]


AnyShape = Box | Capsule | Cone | Cylinder | Ellipsoid | HeightField | Mesh | Plane | Sphere
SHAPES = (Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Mesh, Plane, Sphere)

Role = Literal["visual", "collision"]
ROLES = ("visual", "collision")


@dataclass(frozen=True, slots=True)
class PlacedShape:
    """A shape on a body. It says how the body looks ("visual") or where it can touch others ("collision"); it has no
    mass, and changes nothing that is computed of a machine."""

    name: str
    body: int  #: index of the body; 0 is the ground
    shape: AnyShape
    pose: Pose  #: where the shape's frame lies in that of the body
    color: Color | None  #: red, green, blue, opacity in 0..1; None: nothing was said
    role: Role
    friction: float | None = None  #: Coulomb's, of contacts for which none is given
    groups: tuple[int, int] = (1, 1)  #: bits of what it is, and of what it touches


# -- simple shapes as triangles, for formats and pictures that have no other form of them -----------
def as_mesh(shape: AnyShape, around: int = 24) -> Mesh:
    """A shape as triangles; `around` is the number of corners of a circle. Cost: O(around^2).

    Corners lie on the shape, so that what is round comes out a little smaller. A plane without end has none:
    `ModelError`.

    >>> len(as_mesh(Box((1, 1, 1))).faces)
    12
    """
    match shape:
        case Mesh():
            return shape
        case Box():
            return _box(0.5 * np.array(shape.size))
        case Plane():
            if shape.size is None:
                raise ModelError("a plane without end has no triangles; give it a size")
            x, y = 0.5 * shape.size[0], 0.5 * shape.size[1]
            return Mesh([(-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0)], [(0, 1, 2), (0, 2, 3)])
        case HeightField():
            return _grid(np.array(shape.x), np.array(shape.y), shape.heights)
        case Cylinder():
            return _turned([(shape.radius, -0.5 * shape.length), (shape.radius, 0.5 * shape.length)],
                           -0.5 * shape.length, 0.5 * shape.length, around)
        case Cone():
            return _turned([(shape.radius, -0.5 * shape.length)], -0.5 * shape.length, 0.5 * shape.length, around)
        case Capsule():
            return _ball(shape.radius, 0.5 * shape.length, around)
        case Sphere():
            return _ball(shape.radius, 0.0, around)
    assert isinstance(shape, Ellipsoid)
    ball = _ball(1.0, 0.0, around)
    return Mesh(ball.vertices * np.array(shape.radii), ball.faces)


def _grid(x: Floats, y: Floats, z: Floats) -> Mesh:
    """Two triangles for every cell."""
    vertices = np.stack([*np.meshgrid(x, y, indexing="ij"), z], axis=-1).reshape(-1, 3)
    number = np.arange(z.size).reshape(z.shape)
    a, b, c, d = (part.ravel() for part in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    return Mesh(vertices, np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])]))


def _box(half: Floats) -> Mesh:
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return Mesh(corners, [face for a, b, c, d in sides for face in ((a, b, c), (a, c, d))])


def _ball(radius: float, half: float, around: int) -> Mesh:
    """Half spheres around the points at -half and half of the z axis, with a tube between them."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, around // 2 + 1)[1:-1]
    below, above = angles[angles <= 1e-12], angles[angles >= (-1e-12 if half else 1e-12)]
    rings = [(radius * np.cos(a), radius * np.sin(a) - half) for a in below]
    rings += [(radius * np.cos(a), radius * np.sin(a) + half) for a in above]
    return _turned(rings, -radius - half, radius + half, around)


def _turned(rings: list[tuple[float, float]], low: float, high: float, around: int) -> Mesh:
    """Rings (radius, z) about the z axis from below, closed by points on it at `low` and `high`."""
    turn = np.arange(around) * (2.0 * np.pi / around)
    points = [np.column_stack([r * np.cos(turn), r * np.sin(turn), np.full(around, z)]) for r, z in rings]
    vertices = np.concatenate([[(0.0, 0.0, low)], *points, [(0.0, 0.0, high)]])
    here = np.arange(around)
    after = (here + 1) % around
    faces = [np.column_stack([np.zeros(around, int), 1 + after, 1 + here])]
    for k in range(len(rings) - 1):
        a, b = 1 + k * around, 1 + (k + 1) * around
        faces += [np.column_stack([a + here, a + after, b + after]), np.column_stack([a + here, b + after, b + here])]
    a, top = 1 + (len(rings) - 1) * around, len(vertices) - 1
    faces.append(np.column_stack([a + here, a + after, np.full(around, top)]))
    return Mesh(vertices, np.concatenate(faces))


# -- the shapes of a `Mechanism`: adding them, and what is there ------------------------------------
_HERE = Pose()


@checked_methods
class ShapedBodies:
    """What the bodies of a `Mechanism` look like and collide with."""

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[str, PlacedShape] = {}

    @abstractmethod
    def body(self, name: str | Body) -> Body:
        """The body called `name`."""

    @abstractmethod
    def _check_own(self, what: str, *values: Number) -> None:
        """Numbers that can be computed with, and parameters that are declared here."""

    @property
    def shapes(self) -> tuple[PlacedShape, ...]:
        """All shapes in the order they were added."""
        return tuple(self._shapes.values())

    def shapes_of(self, body: str | Body) -> tuple[PlacedShape, ...]:
        """The shapes of one body; the ground has some, too. Cost: O(shapes)."""
        index = self.body(body).index
        return tuple(s for s in self._shapes.values() if s.body == index)

    def add_shape(self, body: str | Body, shape: AnyShape, pose: Pose = _HERE, *,
                  color: str | Sequence[float] | None = None, name: str | None = None, role: Role = "visual",
                  friction: float | None = None, groups: tuple[int, int] = (1, 1)) -> PlacedShape:
        """Say how a body (or the ground) looks: a shape such as ``bc.Box((0.4, 0.1, 0.1))``, and where its frame lies
        in that of the body. With the `role` "collision" it says where the body can touch others.

        `color` is a name, ``"#rrggbb"``, ``"#rrggbbaa"`` or three or four numbers in 0..1 (red, green, blue, opacity).
        Contacts for which nothing else is said take the `friction` of their shapes, and `add_contacts` takes pairs in
        which one of the `groups` (bits: what a shape is, what it touches) fits the other's.

        Without a `name` it is called after its body. Shapes have no mass: motion, compiled code and results are the
        same with them and without. The position of a shape that is only seen may depend on parameters.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> m.add_shape(m.bodies[0], bc.Sphere(0.05), bc.Pose((0, 0, -1)), color="steelblue").shape
        Sphere(radius=0.05)
        """
        owner = self.body(body)
        what = f"shape {name!r}" if name is not None else f"shape of body {owner.name!r}"
        if not isinstance(shape, SHAPES):
            raise ModelError(f"{what}: needs a shape such as bellcrank.Box((1, 1, 1)), got {type(shape).__name__}")
        if not isinstance(pose, Pose):
            raise ModelError(f"{what}: the pose must be a bellcrank.Pose, got {type(pose).__name__}")
        pose = pose.fixed(what)
        if role not in ROLES:
            raise ModelError(f"{what}: role must be 'visual' or 'collision', got {role!r}")
        if role == "collision" and any(isinstance(x, Scalar) for x in pose.position):
            raise ModelError(f"{what}: the pose of a shape that touches others takes numbers, not parameters")
        self._check_own(what, *pose.position)
        if name is None:
            name = self._free_name(f"{owner.name} {type(shape).__name__.lower()}")
        new_name(self._shapes, name, "shape")
        placed = PlacedShape(name, owner.index, shape, pose, None if color is None else to_color(color, what), role,
                             None if friction is None else float(number(what, "friction", friction, 0.0)),
                             _bits(what, groups))
        self._shapes[name] = placed
        return placed

    def _free_name(self, base: str) -> str:
        if base not in self._shapes:
            return base
        n = 2
        while f"{base} {n}" in self._shapes:
            n += 1
        return f"{base} {n}"


def _bits(what: str, groups: tuple[int, int]) -> tuple[int, int]:
    try:
        own, others = (int(g) for g in groups)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: groups are two whole numbers, bits of what it is and of what it touches, got "
                         f"{groups!r}") from None
    if min(own, others) < 0:
        raise ModelError(f"{what}: groups must not be negative, got {groups!r}")
    return own, others
