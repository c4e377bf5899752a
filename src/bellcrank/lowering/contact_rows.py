"""Rigid contacts as rows over speeds: how far every place is open, and how fast the bodies part and slide there."""

from __future__ import annotations

from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.spatial import Vector

__all__ = ["contact_rows"]


def contact_rows(tree: Sweeps) -> tuple[Number, ...]:
    """For every place of every rigid contact: the gap [m]; then the rows of J by which speeds part the bodies along the
    normal, and slide the second across the first along two directions normal to that and to each other."""
    machine = require_direct(tree)
    out: list[Number] = []
    for pair in machine.tree.contacts:
        own = machine.bind(pair)
        for touch in own.touches(machine.moving[pair.first], machine.moving[pair.second]):
            gap = -(touch.depth / touch.gain)
            out.append(gap)
            half = touch.normal * (gap * -0.5)
            for way in (touch.normal, *_across(touch.normal)):
                row: list[Number] = [0.0] * machine.tree.nu
                _add(machine, row, pair.second, touch.point - half, way, 1.0)  # the points of each that will meet
                _add(machine, row, pair.first, touch.point + half, way, -1.0)
                out += row
    return tuple(out)


def _add(machine: LoopedDirect, row: list[Number], link: int, point: Vector, way: Vector, sign: float) -> None:
    """The velocity of a link at a point along a way, by all speeds between the ground and the link."""
    while link:
        view, moving = machine.views[link], machine.moving[link]
        start = int(machine.tree.u_start[link])
        arm = (point - moving.origin).cross(way)
        for i, column in enumerate(view.columns):
            along = moving.axes.apply(column.linear).dot(way) + moving.axes.apply(column.angular).dot(arm)
            row[start + i] = row[start + i] + along * sign
        link = int(machine.tree.parent[link])


def _across(n: Vector) -> tuple[Vector, Vector]:
    """Two directions that make a right-handed frame with a unit vector: T. Duff et al., "Building an orthonormal basis,
    revisited", J. Comput. Graph. Tech. 6 (2017)."""
    sign = select_less(n.z, 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    return (Vector(1.0 + sign * n.x * n.x * a, sign * b, -(sign * n.x)), Vector(b, sign + n.y * n.y * a, -n.y))
