"""The conditions of one group, written around each loop: relative kinematics, rows, right hand sides."""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.formulations.common.link_kinematics import known_motion
from bellcrank.lowering.group import ClosureShape, GroupView
from bellcrank.lowering.looped import Moving, outward_moving
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.coupling import share
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector

__all__ = ["Condition", "group_conditions"]


class Condition(NamedTuple):
    """factors . udot = gamma for the group's local speeds; also the condition's own value and rate."""

    factors: tuple[tuple[int, Number], ...]
    gamma: Number
    value: Number
    rate: Number


class _Relative(NamedTuple):
    """A member's motion relative to the common ancestor of its loop, and its known acceleration there."""

    moving: Moving
    bias: Motion  #: in link axes


_STILL = Moving(General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))), Vector.zero(),
                Vector.zero(), Vector.zero())


def group_conditions(group: GroupView) -> list[Condition]:
    """The conditions of a group in the order of their pivots."""
    made = {i: closure_conditions(group, i) for i in {c for c, _ in group.shape.rows if c >= 0}}
    return [made[c][r] if c >= 0 else relation_condition(group, r) for c, r in group.shape.rows]


def relation_condition(group: GroupView, index: int) -> Condition:
    """A coupler between joint coordinates."""
    relation = group.shape.relations[index]
    gamma: Number = 0.0
    alpha, beta = group.baumgarte
    value: Number = -relation.offset
    rate: Number = 0.0
    slopes = []
    for witness, c, part in relation.every:
        link = group.witnesses[witness]
        mine = share(part, link.q[c])
        gamma = gamma - mine.curvature * (link.u[c] * link.u[c])
        if link.mask[c]:
            gamma = gamma - link.prescribed_udot[c] * mine.slope
        rate = rate + link.u[c] * mine.slope
        value = value + mine.value
        slopes.append(mine.slope)
    factors = tuple((v, slopes[place]) for v, place in relation.terms)
    return Condition(factors, stabilised(gamma, value, rate, alpha, beta), value, rate)


def stabilised(gamma: Number, value: Number, rate: Number, alpha: float, beta: float) -> Number:
    """Baumgarte's right hand side."""
    if alpha:
        gamma = gamma - rate * (2.0 * alpha)
    return gamma - value * (beta * beta) if beta else gamma


def closure_conditions(group: GroupView, index: int) -> dict[int, Condition]:
    """The conditions of one closure that count."""
    shape, numbers, kind = group.shape.closures[index], group.closures[index], group.kinds[index]
    paths = {0: _outward(group, shape.first_path), 1: _outward(group, shape.second_path)}
    first = side(paths[0], numbers.first_turn, numbers.first_shift)
    second = side(paths[1], numbers.second_turn, numbers.second_shift)
    rows = kind.closure_rows(first, second, numbers.constants)
    wanted = [r for c, r in group.shape.rows if c == index]
    return {r: _condition(group, shape, paths, rows[r]) for r in wanted}


def _outward(group: GroupView, path: tuple[int, ...]) -> list[_Relative]:
    """Motion of the members of a path relative to where it starts, the innermost first."""
    out: list[_Relative] = []
    moving = _STILL
    omega = Vector.zero()  # in link axes
    for member in reversed(path):
        link = group.links[member]
        omega, bias = known_motion(link, omega)
        moving, _ = outward_moving(link, moving)
        out.append(_Relative(moving, bias))
    return out or [_Relative(_STILL, Motion.zero())]


def side(path: list[_Relative], turn: tuple[Vector, Vector, Vector], shift: Vector) -> Side:
    """One side of a closure, in the axes of the loop's common ancestor."""
    axes, origin, omega, velocity = path[-1].moving
    arm = axes.apply(shift)
    x, y, z = (axes.apply(v) for v in turn)
    return Side(origin + arm, arm, x, y, z, omega, velocity + omega.cross(arm))


def _condition(group: GroupView, shape: ClosureShape, paths: dict[int, list[_Relative]], row: Row
               ) -> Condition:
    """Carry the row's covectors from both ends to the common ancestor; what each joint does to them is its factor."""
    value, first, second, gamma = row
    factors: dict[int, Number] = {}
    number = {pair: v for v, pair in enumerate(group.shape.speeds)}
    rate: Number = 0.0
    for path, relative, covector in ((shape.first_path, paths[0], first), (shape.second_path, paths[1], second)):
        if not path:
            continue
        end = relative[-1].moving
        rate = rate + Motion(end.omega, end.velocity).dot(covector)
        wrench = Force(end.axes.inverse(covector.moment), end.axes.inverse(covector.force))
        for member, known in zip(path, reversed(relative), strict=True):
            link = group.links[member]
            gamma = gamma - known.bias.dot(wrench)
            for c, column in enumerate(link.columns):
                if (member, c) in number:
                    v = number[member, c]
                    factors[v] = factors.get(v, 0.0) + column.dot(wrench)
            for t in reversed(link.transforms):
                wrench = t.force(wrench)
    return Condition(tuple(factors.items()), stabilised(gamma, value, rate, *group.baumgarte), value, rate)

