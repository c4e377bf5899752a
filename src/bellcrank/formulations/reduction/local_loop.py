"""Local closed-loop kinematics of the coordinate reduction: from joints around a loop to its dependent speeds.

Anderson and Critchley 2003, 3.1; equation numbers are the paper's. See `reduction` for notation and deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.formulations.common.small_systems import guarded_inverse
from bellcrank.formulations.reduction.messages import Relative, Role
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.link import Link
from bellcrank.mechanism.constraint_rows import Row, Side, stabilized
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector

__all__ = ["Dependent", "at_rest", "from_base", "reduce_loop", "relative_to_base"]

#: a Delta whose root has shrunk to this part of what it was calls for other dependent speeds
_SHRUNK = 0.01
#: and one this much smaller than the largest of its loop has no digits left: projections lose them as its square
_LOST = 1e-5

_PLAIN = General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))


class Dependent(NamedTuple):
    """A dependent speed, (55): udot = offset + sum of factors udot_r + body . Abar, with the virtual body's Abar."""

    speed: int
    factors: tuple[tuple[int, Number], ...]
    body: Force
    offset: Number


class LoopEnd(NamedTuple):
    """One side of the closing joint: its frame, and the remainder acceleration of its point, in the loop's axes."""

    side: Side
    remainder: Motion
    point: Vector  #: in the base's axes, from the first joint on the base


def at_rest(remainder: Motion) -> Relative:
    """The base of a loop, seen from itself."""
    return Relative(_PLAIN, Vector.zero(), Vector.zero(), Vector.zero(), remainder)


def relative_to_base(link: Link, parent: Relative, first: bool) -> Relative:
    """Place and motion relative to the base: (8) and its rate at du/dt = 0; `first`: the parent is the base."""
    axes, origin, omega, velocity, remainder = parent
    for i, t in enumerate(link.transforms):
        if i or not first:
            origin = origin + axes.apply(t.translation)
        moved = t.acceleration(remainder)  # d/dt (8): (S^k)^T A_t
        remainder = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega, velocity = t.velocity(Motion(omega, velocity))  # (8)
        axes = t.turned(axes)
    rate = link.rate
    remainder = remainder + link.drift + Motion(omega.cross(rate.angular), omega.cross(rate.linear) * 2.0)  # d/dt (8)
    return Relative(axes, origin, omega + rate.angular, velocity + rate.linear, remainder)


def from_base(group: GroupView, members: dict[int, Relative]) -> dict[int, Relative]:
    """The same, with origins counted from the base's."""
    return {k: body.from_origin(_offset(group, k) + body.origin) for k, body in members.items()}


def _offset(group: GroupView, k: int) -> Vector:
    """Where the chain that leads to a member starts on the base."""
    if k < 0:
        return Vector.zero()
    while group.shape.parents[k] >= 0:
        k = group.shape.parents[k]
    return group.links[k].transforms[0].translation


def reduce_loop(group: GroupView, role: Role, base: Relative, members: dict[int, Relative], virtual: Relative | None
                ) -> tuple[Dependent, ...]:
    """The dependent speeds of a group's loop in terms of its independent ones and of the virtual body's motion."""
    shape = group.shape.closures[0]
    numbers = group.closures[0]
    common = _PLAIN if virtual is None else virtual.axes  # all around the loop is resolved in the virtual body's axes

    def seen(k: int) -> Relative:
        return base if k < 0 else members[k] if virtual is None or group.shape.own[k] else virtual

    ends = [_end(seen(k), _offset(group, k), virtual, common, turn, shift) for k, turn, shift in (
        (shape.first, numbers.first_turn, numbers.first_shift),
        (shape.second, numbers.second_turn, numbers.second_shift))]
    every = group.kinds[0].closure_rows(ends[0].side, ends[1].side, numbers.constants)
    rows = [every[r] for _, r in group.shape.rows]  # the independent ones
    residual = [_residual(group, row, ends) for row in rows]
    loads = [[row.first for row in rows], [row.second for row in rows]]
    columns: dict[int, list[Number]] = {}
    number = {pair: v for v, pair in enumerate(group.shape.speeds)}
    for path, end, covectors in zip((shape.first_path, shape.second_path), ends, loads, strict=True):
        for k in path:
            if group.shape.own[k]:
                moved = _columns(group.links[k], members[k], common, end.point)
                for c, column in enumerate(moved):
                    if (k, c) in number:
                        columns[number[k, c]] = [column.dot(w) for w in covectors]
    toward: list[Force] = []
    if virtual is not None:
        side = 0 if role.virtual_first else 1
        arm = numbers.first_shift if role.virtual_first else numbers.second_shift
        toward = [Force(w.moment + arm.cross(w.force), w.force) for w in loads[side]]
    return _project(group, columns, residual, toward)


def _end(body: Relative, offset: Vector, virtual: Relative | None, common: General, turn: Sequence[Vector],
         shift: Vector) -> LoopEnd:
    axes, origin, omega, velocity, remainder = body
    if body is virtual:
        offset = Vector.zero()  # in the message its origin is counted from the base's

    def resolved(v: Vector) -> Vector:
        return v if body is virtual else common.inverse(axes.apply(v))

    arm = axes.apply(shift)
    point = origin + arm
    swing = remainder.linear + remainder.angular.cross(shift) + omega.centripetal(shift)
    x, y, z = (resolved(v) for v in turn)
    side = Side(common.inverse(offset + point), Vector.zero(), x, y, z, resolved(omega),
                resolved(velocity + omega.cross(shift)))
    return LoopEnd(side, Motion(resolved(remainder.angular), resolved(swing)), point)


def _residual(group: GroupView, row: Row, ends: Sequence[LoopEnd]) -> Number:
    """tau A_t of the phantom, (33) at the acceleration level: what the constraint lacks if all udot vanish."""
    alpha, beta = group.baumgarte
    known = ends[0].remainder.dot(row.first) + ends[1].remainder.dot(row.second)
    rate: Number = 0.0
    if alpha:
        rate = sum((Motion(end.side.omega, end.side.rate).dot(covector)
                    for end, covector in zip(ends, (row.first, row.second), strict=True)), 0.0)
    return known - stabilized(row.gamma, row.value, rate, alpha, beta)


def _columns(link: Link, body: Relative, common: General, point: Vector) -> list[Motion]:
    """(S^n)^T P_k: how the loop's end moves with unit speeds of a joint, in the loop's axes."""
    arm = common.inverse(point - body.origin)
    out = []
    for column in link.columns:
        turn = common.inverse(body.axes.apply(column.angular))
        slide = common.inverse(body.axes.apply(column.linear))
        out.append(Motion(turn, slide + turn.cross(arm)))  # (43)
    return out


def _project(group: GroupView, columns: dict[int, list[Number]], residual: list[Number], toward: list[Force]
             ) -> tuple[Dependent, ...]:
    """Solve the closing relation for the dependent speeds, one projection after another, (37)-(55)."""
    order, sizes = group.shape.dependent, group.shape.sizes
    left = {v: columns[v] for v in order}  # tau^{k+1} (S^n)^T P_k
    gains: dict[int, list[Number]] = {}
    shares: dict[int, dict[int, Number]] = {}
    for i, (v, size) in enumerate(zip(order, sizes, strict=True)):
        limit = max(_SHRUNK * size, _LOST * max(sizes))
        inverse = guarded_inverse(_dot(left[v], left[v]), limit * limit)  # (45): Delta^k
        gains[v] = [x * inverse for x in left[v]]  # (47): Delta^-1 P^T S tau
        shares[v] = {}
        for w in order[i + 1:]:
            share = _dot(gains[v], left[w])
            shares[v][w] = share
            left[w] = [x - y * share for x, y in zip(left[w], left[v], strict=True)]  # (44): tau^k
    rows: dict[int, list[Number]] = {}  # of (55), acting on what the phantom lacks
    for v in reversed(order):
        row = gains[v]
        for w, share in shares[v].items():
            row = [x - share * y for x, y in zip(row, rows[w], strict=True)]  # (51): {S Xi + U}
        rows[v] = row
    out = []
    for v in reversed(order):
        row = rows[v]
        factors = tuple((r, -_dot(row, column)) for r, column in columns.items() if r not in rows)  # (55): Gamma P_r
        body = Force.zero()
        for x, covector in zip(row, toward, strict=False):
            body = body - covector * x  # (55): Gamma
        out.append(Dependent(v, factors, body, -_dot(row, residual)))  # (55): Xi A_t
    return tuple(out)


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
