"""Shapes of bodies that have none: made from their inertia and from where their joints are.

A body's mass distribution says about what it is: of a uniform block with the same moments, one long edge is a rod, two
equal and one short are a disc, three equal a ball. Struts lead to the joints that this shape does not reach. Where it
does not fit the joints at all (much larger, or beside several of them), the body is drawn as a frame between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.view.frame_algebra import along, quaternion_of, triple_of
from bellcrank.view.scene import DrawnShape

__all__ = ["MassShape", "body_shapes", "mass_shape", "strut"]

#: an edge is short if it is this part of the longest; edges are alike within this part
_SHORT, _ALIKE = 0.3, 0.2
#: a block is no picture of a body whose joints lie this much closer together
_TOO_LARGE = 1.3


@dataclass(frozen=True)
class MassShape:
    """How the mass of a body is spread: edges [m] of the uniform block with the same moments, longest first, and the
    axes they lie along, by columns."""

    com: Floats
    edges: Floats
    axes: Floats

    @property
    def half_axes(self) -> Floats:
        """Of the solid ellipsoid with the same moments: edge^2 / 12 = axis^2 / 5."""
        return np.asarray(self.edges * np.sqrt(5.0 / 12.0))


def mass_shape(mass: float, com: npt.ArrayLike, inertia: Sequence[float]) -> MassShape | None:
    """From mass, center of mass and inertia about it (xx, xy, xz, yy, yz, zz); None without mass."""
    if not mass > 0.0:
        return None
    xx, xy, xz, yy, yz, zz = inertia
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = 0.5 * np.trace(about) * np.eye(3) - about  # integral of x x^T dm
    values, axes = np.linalg.eigh(second)
    edges = np.sqrt(12.0 * np.maximum(values[::-1], 0.0) / mass)
    axes = axes[:, ::-1].copy()
    if np.linalg.det(axes) < 0.0:
        axes[:, 2] *= -1.0
    return MassShape(np.asarray(com, dtype=float), edges, axes)


def strut(first: npt.ArrayLike, second: npt.ArrayLike, radius: float, role: str = "made") -> DrawnShape:
    """A rod with round ends between two points."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    length = float(np.linalg.norm(b - a))
    turn = along(b - a) if length > 0.0 else (1.0, 0.0, 0.0, 0.0)
    return DrawnShape("capsule", (radius, max(length, 1e-9)), triple_of(0.5 * (a + b)), turn, role=role)


def body_shapes(mass: MassShape | None, pins: Sequence[Floats], thickness: float, length: float
                ) -> tuple[DrawnShape, ...]:
    """Shapes of one body: what its mass looks like, and struts to pins (points of joints) that it does not reach.

    `thickness` is that of struts [m], `length` a usual length of parts: blocks are not drawn much larger.
    """
    points = _distinct(pins, 0.2 * thickness)
    if mass is None:
        return _struts_alone(points, thickness)
    core, reach = _core(mass, points, thickness, length)
    spread = max((float(np.linalg.norm(a - b)) for a in points for b in points), default=0.0)
    beside = len(points) > 2 and not all(reach(p)[1] for p in points)
    link = len(points) == 2 and core.kind in ("cylinder", "sphere") and all(  # a wheel is held near its middle
        np.linalg.norm(p - mass.com) > 0.2 * mass.edges[0] for p in points)
    if len(points) > 1 and core.kind != "capsule" and (beside or link or mass.edges[0] > _TOO_LARGE * spread):
        return _frame(points, mass.com, spread, thickness)
    shapes = [core]
    for point in points:
        near, inside = reach(point)
        if not inside:
            shapes.append(strut(near, point, thickness * (1.0 if core.kind == "capsule" else 0.8)))
    return tuple(shapes)


def _distinct(points: Sequence[Floats], apart: float) -> list[Floats]:
    kept: list[Floats] = []
    for point in points:
        if all(np.linalg.norm(point - other) > apart for other in kept):
            kept.append(point)
    return kept


def _struts_alone(points: list[Floats], thickness: float) -> tuple[DrawnShape, ...]:
    return tuple(strut(a, b, thickness) for a, b in _edges(points))


def _edges(points: list[Floats]) -> list[tuple[Floats, Floats]]:
    """Between two points; around three or more, in the order they have seen from where they spread most."""
    if len(points) < 3:
        return [(points[0], points[1])] if len(points) == 2 else []
    center = np.mean(points, axis=0)
    plane = np.linalg.svd(np.array(points) - center)[2][:2]
    angles = [float(np.arctan2(*(plane @ (p - center)))) for p in points]
    around = [points[i] for i in np.argsort(angles).tolist()]
    return list(zip(around, around[1:] + around[:1], strict=True))


def _frame(points: list[Floats], com: Floats, spread: float, thickness: float) -> tuple[DrawnShape, ...]:
    """Struts between joints, and one to the mass where it lies elsewhere."""
    edges = _edges(points)
    shapes = [strut(a, b, thickness) for a, b in edges]
    near = [a + (b - a) * float(np.clip((com - a) @ (b - a) / max(float((b - a) @ (b - a)), 1e-300), 0.0, 1.0))
            for a, b in edges]
    nearest = min(near, key=lambda p: float(np.linalg.norm(p - com)))
    if np.linalg.norm(nearest - com) > 0.5 * spread:
        shapes += [strut(nearest, com, 0.7 * thickness),
                   DrawnShape("sphere", (2.0 * thickness,) * 3, triple_of(com), role="made")]
    return tuple(shapes)


def _core(mass: MassShape, points: list[Floats], thickness: float, length: float):  # type: ignore[no-untyped-def]
    """The shape of the mass, and a function: the place on it from where a strut leads to a point, and whether the point
    is reached already."""
    spread = max([float(np.linalg.norm(p - mass.com)) for p in points], default=0.0)
    edges = np.minimum(mass.edges, 1.5 * max(length, 2.0 * spread))
    long, middle, short = edges.tolist()
    com, axes = mass.com, mass.axes
    if long < 0.5 * thickness:  # a point mass
        radius = 2.2 * thickness
        return DrawnShape("sphere", (radius,) * 3, triple_of(com), role="made"), lambda p: (
            com, bool(np.linalg.norm(p - com) < 1.2 * radius))
    if middle < _SHORT * long:
        axis = axes[:, 0]
        radius = float(np.clip(0.35 * (middle + short), thickness, 2.5 * thickness))
        core = strut(com - 0.5 * long * axis, com + 0.5 * long * axis, radius)

        def to_rod(p: Floats) -> tuple[Floats, bool]:
            near = com + axis * float(np.clip((p - com) @ axis, -0.5 * long, 0.5 * long))
            return near, bool(np.linalg.norm(p - near) < radius + 0.5 * thickness)

        return core, to_rod
    if short < _SHORT * long and middle > (1.0 - _ALIKE) * long:
        radius, height = float(np.sqrt(long * middle / 3.0)), max(short, 0.8 * thickness)
        disc = DrawnShape("cylinder", (radius, height), triple_of(com), along(axes[:, 2]), role="made")

        def to_disc(p: Floats) -> tuple[Floats, bool]:
            flat = (p - com) - axes[:, 2] * float((p - com) @ axes[:, 2])
            far = float(np.linalg.norm(flat))
            near = com + flat * min(1.0, 0.9 * radius / max(far, 1e-300))
            return near, far < 1.05 * radius and bool(np.linalg.norm(p - com - flat) < height + thickness)

        return disc, to_disc
    if short > (1.0 - _ALIKE) * long:
        radius = float(np.sqrt(5.0 / 12.0) * np.mean(edges))
        return DrawnShape("sphere", (radius,) * 3, triple_of(com), role="made"), lambda p: (
            com, bool(np.linalg.norm(p - com) < 1.05 * radius))
    size = np.maximum(edges, thickness)
    block = DrawnShape("box", triple_of(size), triple_of(com), quaternion_of(axes), role="made")

    def to_block(p: Floats) -> tuple[Floats, bool]:
        inner = axes.T @ (p - com)
        near = com + axes @ np.clip(inner, -0.45 * size, 0.45 * size)
        return near, bool((np.abs(inner) < 0.5 * size + 0.5 * thickness).all())

    return block, to_block
