"""Simple shapes as triangles, for formats and pictures that have no other form of them."""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.geometry.height_field import HeightField
from bellcrank.mechanism.geometry.placed_shape import AnyShape
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh

__all__ = ["as_mesh"]


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
