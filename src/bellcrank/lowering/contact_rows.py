"""Rigid contacts: how far every place is open, how fast the bodies part and slide there, as numbers of places
(`contact_places`, of which rows are made where they are wanted) and as rows over all speeds (`contact_rows`); and of
contacts of both kinds how deep they are (`contact_depths`)."""

from __future__ import annotations

from functools import reduce

from bellcrank.integrate.contact_slots import PLACE, SCREW
from bellcrank.loops.loop_paths import common_ancestor
from bellcrank.lowering.function import Function
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.mechanism.contact.touch import beside
from bellcrank.scalar.functions import maximum
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.spatial import Vector
from bellcrank.topology.contact_pairs import ContactPair, velocity_at
from bellcrank.topology.tree import Tree

__all__ = ["contact_depths", "contact_rows", "path_speeds", "places_function"]

# Numbers of a place (`PLACE`): gap [m], point, normal, rate at which the gap opens [m/s], square of the relative speed,
#: coefficients of friction and restitution; and of a speed: angular and linear part of its axis, and where that holds


def places_function(tree: Tree) -> Function:
    """The function of a tree with rigid contacts: `PLACE` numbers for every place, then `SCREW` for every speed, in
    the axes of the ground link. Cost: O(places + speeds)."""
    size = PLACE * sum(pair.places for pair in tree.contacts) + SCREW * tree.nu
    return Function("contact_places", contact_places, ("q", "u"), "totals", size, whole=True)


def contact_places(tree: Sweeps) -> tuple[Number, ...]:
    """See `places_function`."""
    machine = require_direct(tree)
    out: list[Number] = []
    for pair in machine.tree.contacts:
        own, first, second = machine.bind(pair), machine.moving[pair.first], machine.moving[pair.second]
        for touch in own.touches(first, second):
            velocity = velocity_at(second, touch.point) - velocity_at(first, touch.point)
            out += [-(touch.depth / touch.gain), *touch.point, *touch.normal, touch.normal.dot(velocity),
                    velocity.dot(velocity),
                    own.material.friction, own.material.restitution]
    for link, i in sorted(_speeds(machine.tree), key=lambda x: int(machine.tree.u_start[x[0]]) + x[1]):
        moving, column = machine.moving[link], machine.views[link].columns[i]
        out += [*moving.axes.apply(column.angular), *moving.axes.apply(column.linear), *moving.origin]
    return tuple(out)


def contact_depths(tree: Sweeps) -> tuple[Number, ...]:
    """The largest depth [m] of every contact, compliant ones first. Cost: O(places)."""
    machine = require_direct(tree)
    out: list[Number] = []
    for pair in (*machine.tree.pairs, *machine.tree.contacts):
        if isinstance(pair, ContactPair):
            depths = [touch.depth for touch in machine.bind(pair).touches(machine.moving[pair.first],
                                                                          machine.moving[pair.second])]
            out.append(reduce(maximum, depths))
    return tuple(out)


def _speeds(tree: Tree) -> list[tuple[int, int]]:
    """All speeds as (link, number of its joint's speed)."""
    return [(link, i) for link, joint in enumerate(tree.joints) if joint is not None for i in range(joint.nu)]


def path_speeds(tree: Tree, first: int, second: int) -> list[tuple[int, float]]:
    """The speeds that move two links against each other: (speed, 1 for the second link, -1 for the first)."""
    above, out = common_ancestor(tree.parent.tolist(), first, second), []
    for link, sign in ((second, 1.0), (first, -1.0)):
        while link != above:
            joint = tree.joints[link]
            assert joint is not None
            out += [(int(tree.u_start[link]) + i, sign) for i in range(joint.nu)]
            link = int(tree.parent[link])
    return out


def contact_rows(tree: Sweeps) -> tuple[Number, ...]:
    """For every place of every rigid contact: the gap [m] and two directions normal to the normal and to each other;
    then the rows of J by which speeds part the bodies along the normal, and slide the second across the first along the
    two directions."""
    machine = require_direct(tree)
    out: list[Number] = []
    for pair in machine.tree.contacts:
        own = machine.bind(pair)
        for touch in own.touches(machine.moving[pair.first], machine.moving[pair.second]):
            gap = -(touch.depth / touch.gain)
            ways = touch.normal, *beside(touch.normal)
            out += [gap, *ways[1], *ways[2]]
            half = touch.normal * (gap * -0.5)
            above = common_ancestor(machine.tree.parent.tolist(), pair.first, pair.second)
            for way in ways:
                row: list[Number] = [0.0] * machine.tree.nu
                _add(machine, row, (pair.second, above), touch.point - half, way, 1.0)  # the points that will meet
                _add(machine, row, (pair.first, above), touch.point + half, way, -1.0)
                out += row
    return tuple(out)


def _add(machine: LoopedDirect, row: list[Number], way_up: tuple[int, int], point: Vector, way: Vector, sign: float
         ) -> None:
    """The velocity of a link at a point along a way, by all speeds between it and another one above it."""
    link, above = way_up
    while link != above:
        view, moving = machine.views[link], machine.moving[link]
        start = int(machine.tree.u_start[link])
        arm = (point - moving.origin).cross(way)
        for i, column in enumerate(view.columns):
            along = moving.axes.apply(column.linear).dot(way) + moving.axes.apply(column.angular).dot(arm)
            row[start + i] = row[start + i] + along * sign
        link = int(machine.tree.parent[link])
