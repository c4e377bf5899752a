"""What force elements between links and along coordinates of joints exert: one text over any scalar.

Everything is told by the motions of links (`Moving`) in one set of axes that does not move: in compiled code those of
the ground link, traced; on arrays those of the world, from compiled kinematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bellcrank.mechanism.constraint_rows import Side
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Motion, Transform, Vector
from bellcrank.topology.pairs import Pair, SumForce, Surroundings
from bellcrank.topology.tree import Closure, Tree

__all__ = ["UnitForce", "columns_of", "element_loads", "joint_load", "second_frame", "side_of", "sides_of",
           "unit_force", "unit_wrench"]

#: the motion of a link by its number
Motions = Callable[[int], Moving]
#: replaces parameters by their values
Bind = Callable[[Any], Any]


def side_of(moving: Moving, frame: Sequence[Vector], shift: Vector) -> Side:
    """One side of a closure from the motion of its link; axes and origin of the joint's frame in those of the link."""
    axes, origin, omega, velocity = moving
    arm = axes.apply(shift)
    x, y, z = (axes.apply(v) for v in frame)
    return Side(origin + arm, arm, x, y, z, omega, velocity + omega.cross(arm))


def sides_of(c: Closure, moving: Motions, bind: Bind) -> tuple[Side, Side]:
    """Both sides of a closure."""
    first, second = (columns_of(bind(rows)) for rows in c.turns)
    return (side_of(moving(c.first), first, Vector(*bind(tuple(c.first_shift)))),
            side_of(moving(c.second), second, Vector(*bind(tuple(c.second_shift)))))


def columns_of(rows: Sequence[Number]) -> tuple[Vector, Vector, Vector]:
    """The columns of a matrix given by rows."""
    x, y, z = (Vector(*rows[i::3]) for i in range(3))
    return x, y, z


def unit_wrench(columns: Sequence[Motion], i: int) -> Force:
    """A wrench whose power on column i of a joint's motion subspace is one, and none on the others."""
    others: list[Force] = []
    wrench = Force.zero()
    for column in (*columns[:i], *columns[i + 1:], columns[i]):
        wrench = Force(column.angular, column.linear)
        for other in others:
            motion = Motion(other.moment, other.force)
            wrench = wrench - other * (motion.dot(wrench) / motion.dot(other))
        others.append(wrench)
    own: Force = wrench * (1.0 / columns[i].dot(wrench))
    return own


def second_frame(c: Closure, bind: Bind) -> Transform:
    """A loop joint's frame on its second link."""
    rows = bind(c.turns[1])
    return Transform(General(Matrix3(*(Vector(*rows[i:i + 3]) for i in (0, 3, 6)))),
                     Vector(*bind(tuple(c.second_shift))))


class UnitForce(NamedTuple):
    """What a unit of force along a coordinate of a joint exerts on the joint's outboard side."""

    link: int
    arm: Vector  #: from the link's origin to that of the joint's frame there
    wrench: Force  #: about that


def unit_force(tree: Tree, link: int, i: int, moving: Motions, around: Surroundings) -> UnitForce:
    """A unit of force along a coordinate of a joint, a link of the extended tree."""
    whole, sight, own = tree.extended, around.machine, tree.loop_joint(link)
    joint, numbers = whole.joints[link], whole.numbers(link)
    assert joint is not None
    wrench = unit_wrench(joint.subspace(sight.coordinates(link), sight.bind(numbers.joint)), i)
    place = link if own is None else own.closure.second
    axes, arm = moving(place).axes, Vector.zero()
    if own is not None:
        frame = second_frame(own.closure, sight.bind)
        axes, arm = frame.turned(axes), axes.apply(frame.translation)
    return UnitForce(place, arm, Force(axes.apply(wrench.moment), axes.apply(wrench.force)))


def element_loads(tree: Tree, pair: Pair | SumForce, moving: Motions, bind: Bind, around: Surroundings
                  ) -> tuple[tuple[int, Force], ...]:
    """Links, and what an element exerts on each about its origin."""
    if isinstance(pair, SumForce):
        return tuple(_sum_loads(tree, pair, moving, bind, around))
    wrenches = bind(pair).wrenches(moving(pair.first), moving(pair.second), around)
    return tuple(zip((pair.first, pair.second), wrenches, strict=True))


def _sum_loads(tree: Tree, force: SumForce, moving: Motions, bind: Bind, around: Surroundings
               ) -> Iterator[tuple[int, Force]]:
    """Opposite wrenches on both links of each joint."""
    reach = around.machine.total(force)
    force = bind(force)
    amount = force.along.at(around.time).seen(around.machine).force(*reach)
    for link, i, factor in force.terms:
        second, arm, unit = unit_force(tree, link, i, moving, around)
        load, first = unit * (amount * factor), int(tree.extended.parent[link])
        yield second, Force(load.moment + arm.cross(load.force), load.force)
        if first:  # both act at the same point: they must cancel as a whole
            arm = moving(second).origin + arm - moving(first).origin
            yield first, Force(-load.moment - arm.cross(load.force), -load.force)


def joint_load(tree: Tree, link: int, moving: Motions, around: Surroundings) -> Force:
    """What elements exert along the coordinates of a loop joint on its outboard side, about the origin of its frame
    there."""
    total = Force.zero()
    for force in tree.pairs:
        if not isinstance(force, SumForce) or all(at != link for at, _, _ in force.terms):
            continue
        own = around.machine.bind(force)
        amount = own.along.at(around.time).seen(around.machine).force(*around.machine.total(force))
        for _, i, factor in (x for x in own.terms if x[0] == link):
            total = total + unit_force(tree, link, i, moving, around).wrench * (amount * factor)
    return total
