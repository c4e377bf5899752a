"""Where shapes touch: what all pairs of shapes are computed with, over any scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.scalar.lookup import floor
from bellcrank.spatial import Vector

__all__ = ["TIE", "TINY", "Points", "ShapeFrame", "Touch", "beside", "between_spheres", "choose", "clamp", "direction",
           "held", "most_along"]

#: squares of lengths [m^2] below this have no direction
TINY = 1e-24
#: steps in one where numbers are held
_GRAINS = 2.0**44
#: the part by which one thing must be more than another that came before it
TIE = 1e-11


class Points(NamedTuple):
    """A convex body given by corners in its own frame [m]: what contact sees of a mesh."""

    corners: tuple[tuple[float, float, float], ...]
    faces: tuple[tuple[int, int, int], ...] = ()  #: triangles by their corners, counterclockwise from outside
    planes: tuple[tuple[float, float, float, float], ...] = ()  #: their normals n, and d with n . x = d
    edges: tuple[tuple[int, int], ...] = ()  #: between faces that are not in one plane


class ShapeFrame(NamedTuple):
    """The frame of a shape: origin and axes, all in one set of axes that does not move."""

    origin: Vector
    x: Vector
    y: Vector
    z: Vector

    @property
    def axes(self) -> tuple[Vector, Vector, Vector]:
        return self.x, self.y, self.z

    def local(self, point: Vector) -> tuple[Number, Number, Number]:
        """A point in this frame."""
        apart = point - self.origin
        return self.x.dot(apart), self.y.dot(apart), self.z.dot(apart)

    def point(self, x: Number, y: Number, z: Number) -> Vector:
        """The point with these coordinates in this frame."""
        return self.origin + self.turned(x, y, z)

    def turned(self, x: Number, y: Number, z: Number) -> Vector:
        """A vector with these components in this frame."""
        out: Vector = self.x * x + self.y * y + self.z * z
        return out


class Touch(NamedTuple):
    """A place where two shapes touch, or would first.

    The rate of `depth` is `gain` times that at which the second body approaches the first at `point` along `normal`:
    every pair of shapes is written so that this holds, since energy is kept only then.
    """

    point: Vector  #: where the force acts
    normal: Vector  #: of length one, from the first shape to the second
    depth: Number  #: how far they overlap [m]; negative: how far they are apart
    gain: Number = 1.0  #: one, but for depths that are measured in other ways than along the normal
    share: Number = 1.0  #: of its force that acts; less than one where another place takes over, none where it is not

    def swapped(self) -> Touch:
        """The same seen from the other shape."""
        return Touch(self.point, -self.normal, self.depth, self.gain, self.share)


def clamp(x: Number, least: Number, most: Number) -> Number:
    """x within bounds."""
    return minimum(maximum(x, least), most)


def choose(a: Number, b: Number, if_less: Vector, otherwise: Vector) -> Vector:
    """`select_less` of vectors."""
    return Vector(*(select_less(a, b, x, y) for x, y in zip(if_less, otherwise, strict=True)))


def direction(v: Vector, fallback: Vector) -> tuple[Vector, Number]:
    """The unit vector along v and its length; the fallback where v has no direction."""
    square = v.dot(v)
    length = sqrt(maximum(square, TINY))
    return choose(square, TINY, fallback, v * (1.0 / length)), select_less(square, TINY, 0.0, length)


def beside(n: Vector) -> tuple[Vector, Vector]:
    """Two directions that make a right-handed frame with a unit vector: T. Duff et al., "Building an orthonormal basis,
    revisited", J. Comput. Graph. Tech. 6 (2017)."""
    sign = select_less(n.z, 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    return (Vector(1.0 + sign * n.x * n.x * a, sign * b, -(sign * n.x)), Vector(b, sign + n.y * n.y * a, -n.y))


def between_spheres(first: Vector, first_radius: float, second: Vector, second_radius: float) -> Touch:
    """Two spheres, or places on rounded shapes."""
    normal, apart = direction(second - first, Vector(0.0, 0.0, 1.0))
    depth = first_radius + second_radius - apart
    return Touch(first + normal * (first_radius - depth * 0.5), normal, depth)


def held(v: Vector) -> Vector:
    """A vector of about length one, to less than a tie, without derivatives. What Newton's method ends in does not
    depend on where it began: two steps from here have the first and second derivatives of any number of them, in a much
    smaller graph."""
    return Vector(*(floor(x * _GRAINS + 0.5) * (1.0 / _GRAINS) for x in v))


def most_along(rows: Sequence[tuple[float, float, float]], at: ShapeFrame, way: Vector) -> Number:
    """The number of the row, a point or direction in the frame of a shape, that lies farthest along a direction; of
    several that do but for rounding, the first."""
    x, y, z = (axis.dot(way) for axis in at.axes)
    tie = (maximum(x, -x) + maximum(y, -y) + maximum(z, -z)) * (TIE * max(abs(v) for row in rows for v in row))
    best: Number = 0.0
    index: Number = 0.0
    for k, (a, b, c) in enumerate(rows):
        along = a * x + b * y + c * z
        more = best + tie
        index = 0.0 if k == 0 else select_less(more, along, float(k), index)
        best = along if k == 0 else select_less(more, along, along, best)
    return index
