"""Rigid contacts: how far every place is open, how fast the bodies part and slide there (`contact_places`; rows over
all speeds are made of that where they are wanted: `integrate.contact_slots`); and of contacts of both kinds how deep
they are (`contact_depths`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from bellcrank.integrate.contact_views import GLANCE, PLACE, SCREW
from bellcrank.loops.loop_paths import common_ancestor
from bellcrank.lowering.looped import require_direct
from bellcrank.scalar.functions import maximum, minimum
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.topology.contact_pairs import ContactPair, velocity_at
from bellcrank.topology.tree import Tree

__all__ = ["contact_depths", "contact_places", "path_speeds"]

#: gains below this are those of shapes far inside each other, whose gaps are no matter
LEAST_GAIN = 0.5

# Numbers of a place (`PLACE`): gap [m], point, normal, rate at which the gap opens [m/s], square of the relative speed,
# coefficients of friction and restitution; and of a speed: angular and linear part of its axis, and where that holds


def contact_places(tree: Sweeps) -> tuple[Number, ...]:
    """`PLACE` numbers for every place, then `SCREW` for every speed, in the axes of the ground link; the square of the
    largest relative speed at a place, and the least gap of every `GLANCE` places. Cost: O(places + speeds)."""
    machine = require_direct(tree)
    places = sum(pair.places for pair in machine.tree.contacts)
    out: list[Number] = []
    for pair in machine.tree.contacts:
        own, first, second = machine.bind(pair), machine.moving[pair.first], machine.moving[pair.second]
        for touch in own.touches(first, second):
            velocity = velocity_at(second, touch.point) - velocity_at(first, touch.point)
            gap = -(touch.depth / maximum(touch.gain, LEAST_GAIN))
            out += [gap, *touch.point, *touch.normal, touch.normal.dot(velocity), velocity.dot(velocity),
                    own.material.friction, minimum(own.material.restitution, 1.0)]
    screws: list[Number] = [0.0] * (SCREW * machine.tree.nu)  # loop joints move nothing
    for link, i in _speeds(machine.tree):
        moving, column = machine.moving[link], machine.views[link].columns[i]
        start = SCREW * (int(machine.tree.u_start[link]) + i)
        screws[start:start + SCREW] = [*moving.axes.apply(column.angular), *moving.axes.apply(column.linear),
                                       *moving.origin]
    out += screws
    gaps, speeds = ([out[i * PLACE + k] for i in range(places)] for k in (0, 8))
    out.append(_extreme(maximum, speeds) if speeds else 0.0)
    out += [_extreme(minimum, gaps[i:i + GLANCE]) for i in range(0, places, GLANCE)]
    return tuple(out)


def _extreme(of_two: Callable[[Number, Number], Number], numbers: list[Number]) -> Number:
    """The largest or the least of numbers, by halves: few wait for each other."""
    if len(numbers) == 1:
        return numbers[0]
    half = len(numbers) // 2
    return of_two(_extreme(of_two, numbers[:half]), _extreme(of_two, numbers[half:]))


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
    """The speeds of links as (link, number of its joint's speed)."""
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
