"""What force elements between links and along loop joints exert: one text over any scalar.

Everything is told by the motions of links (`Moving`) in one set of axes that does not move: in compiled code those of
the ground link, traced; on arrays those of the world, from compiled kinematics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bellcrank.mechanism.constraint_rows import Side
from bellcrank.mechanism.forces.element import Moving
from bellcrank.mechanism.joints import Joint
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, Motion, Vector
from bellcrank.topology.pairs import LoopForce, Pair, Surroundings
from bellcrank.topology.tree import Closure, Tree

__all__ = ["closing_load", "columns_of", "element_loads", "side_of", "sides_of", "unit_forces", "unit_wrench"]

#: the motion of a link by its number
Motions = Callable[[int], Moving]
#: replaces parameters by their values
Bind = Callable[[Any], Any]


class UnitForces(NamedTuple):
    """What unit forces along the speeds of a loop joint exert on its child."""

    columns: tuple[Force, ...]  #: about `point`
    point: Vector


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


def unit_forces(c: Closure, moving: Motions, bind: Bind) -> UnitForces:
    """Unit forces along the speeds of a loop joint, as if nothing held it."""
    c = c.free or c
    i, j = sides_of(c, moving, bind)
    if c.kind.nq != c.kind.nu:  # quaternions: the columns are the same in every position
        return UnitForces(_fixed_columns(c.kind, j), j.point)
    return UnitForces(tuple(c.kind.loop_columns(i, j, bind(tuple(c.kind.constants())))), j.point)


def _fixed_columns(kind: Joint, side: Side) -> tuple[Force, ...]:
    """Wrenches that are unit forces along each speed of a joint with a constant motion subspace."""
    own = kind.subspace([float(x) for x in kind.neutral()], kind.constants())

    def turned(v: Vector) -> Vector:
        out: Vector = side.x * v.x + side.y * v.y + side.z * v.z
        return out

    wrenches = [unit_wrench(own, k) for k in range(len(own))]
    return tuple(Force(turned(w.moment), turned(w.force)) for w in wrenches)


def closing_load(tree: Tree, force: LoopForce, moving: Motions, bind: Bind, around: Surroundings
                 ) -> tuple[Force, Vector]:
    """What a force along a coordinate of a closing joint exerts on its child, and the point there it is about."""
    unit = unit_forces(tree.closures[force.closure], moving, bind)
    amount = bind(force.along).at(around.time).seen(around.machine).force(*around.machine.along(force))
    load: Force = unit.columns[force.coordinate] * amount
    return load, unit.point


def element_loads(tree: Tree, pair: Pair | LoopForce, moving: Motions, bind: Bind, around: Surroundings
                  ) -> tuple[tuple[int, Force], ...]:
    """Links, and what an element exerts on each about its origin."""
    if not isinstance(pair, LoopForce):
        wrenches = bind(pair).wrenches(moving(pair.first), moving(pair.second), around)
        return tuple(zip((pair.first, pair.second), wrenches, strict=True))
    c = tree.closures[pair.closure]
    load, point = closing_load(tree, pair, moving, bind, around)
    # both wrenches act at the child's point: they must cancel as a whole
    return tuple((link, Force(own.moment + (point - moving(link).origin).cross(own.force), own.force))
                 for link, own in ((c.first, -load), (c.second, load)))
