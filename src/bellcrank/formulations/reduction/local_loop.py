"""Local closed-loop kinematics of the coordinate reduction: from joints around loops to their dependent speeds.

Anderson and Critchley 2003, 3.1; equation numbers are the paper's. See `reduction` for notation and deviations.

The constraints are rows of the common library, evaluated at the ends of the loop. How these ends move is the paper's
own text, and not that of other methods: all around a loop is resolved in the axes of its virtual body and counted from
the loop's first joint, so that a loop that hangs from another sees nothing of the machine but that body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.formulations.common.small_systems import guarded_inverse
from bellcrank.formulations.reduction.messages import Relative
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.group_shape import VIRTUAL
from bellcrank.lowering.link import Link
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector

__all__ = ["SHRUNK", "Dependent", "at_rest", "dependent_speeds_of", "from_base", "lacking_acceleration",
           "lacking_velocity", "relative_to_base", "root_of"]

#: a Delta whose root has shrunk to this part of what it was calls for other dependent speeds
SHRUNK = 0.01
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

    @property
    def velocity(self) -> Motion:
        """Of the point."""
        return Motion(self.side.omega, self.side.rate)


def at_rest(remainder: Motion) -> Relative:
    """The base of a loop, seen from itself."""
    return Relative(_PLAIN, Vector.zero(), Vector.zero(), Vector.zero(), remainder)


def root_of(group: GroupView, k: int) -> int:
    """What the chain that leads to a member hangs from: the base (-1) or the virtual body."""
    while k >= 0:
        k = group.shape.parents[k]
    return k


def relative_to_base(group: GroupView, links: Sequence[Link], base: Relative, virtual: Relative | None
                     ) -> dict[int, Relative]:
    """Place and motion of the own members relative to the base."""
    out: dict[int, Relative] = {}
    for k, link in enumerate(links):
        parent = group.shape.parents[k]
        above = virtual if parent == VIRTUAL else base if parent < 0 else out[parent]
        assert above is not None
        out[k] = _carried(link, above, parent == -1)
    return out


def _carried(link: Link, parent: Relative, first: bool) -> Relative:
    """(8), and its rate at du/dt = 0; `first`: the parent is the base."""
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
    """Where the chain that leads to a member starts on the base, as its origins are counted."""
    if k < 0 or root_of(group, k) == VIRTUAL:
        return Vector.zero()
    while group.shape.parents[k] >= 0:
        k = group.shape.parents[k]
    return group.links[k].transforms[0].translation


# -- closing ---------------------------------------------------------------------------------------------------------
class ClosedLoop(NamedTuple):
    """One closure of a group: its rows and ends, both in the loop's axes."""

    rows: dict[int, Row]  #: those that count
    ends: tuple[LoopEnd, LoopEnd]


#: what a row lacks: of the loop, of a row of its
Lacking = Callable[[GroupView, Row, Sequence[LoopEnd]], Number]


def dependent_speeds_of(group: GroupView, lacking: Lacking, base: Relative, members: dict[int, Relative],
                        virtual: Relative | None, shrunk: float = SHRUNK) -> tuple[Dependent, ...]:
    """The dependent speeds of a group's loops in terms of its independent ones and of the virtual body's motion.

    `lacking` tells what each row lacks with all speeds (or accelerations) as they are in `members`. Not finite where a
    pivot has become less than the share `shrunk` of what it is in general.
    """
    common = _PLAIN if virtual is None else virtual.axes  # all around the loops is resolved in the virtual body's axes
    loops = [_closed(group, i, base, members, virtual, common) for i in range(len(group.shape.closures))]
    order = group.shape.rows
    residual = [lacking(group, loops[i].rows[r], loops[i].ends) for i, r in order]
    columns: dict[int, list[Number]] = {}
    for i, loop in enumerate(loops):
        for v, entries in _columns(group, i, loop, members, common).items():
            row = columns.setdefault(v, [0.0] * len(order))
            for j, (c, r) in enumerate(order):
                row[j] = entries[r] if c == i else row[j]
    toward = [_toward(group, i, loops[i], loops[i].rows[r], virtual) for i, r in order] if virtual is not None else []
    return _project(group, columns, residual, toward, shrunk)


def _closed(group: GroupView, i: int, base: Relative, members: dict[int, Relative], virtual: Relative | None,
            common: General) -> ClosedLoop:
    shape, numbers = group.shape.closures[i], group.closures[i]

    def end(k: int, turn: Sequence[Vector], shift: Vector) -> LoopEnd:
        body = virtual if k == VIRTUAL else base if k < 0 else members[k]
        assert body is not None
        return _end(body, _offset(group, k), k == VIRTUAL, common, turn, shift)

    ends = (end(shape.first, numbers.first_turn, numbers.first_shift),
            end(shape.second, numbers.second_turn, numbers.second_shift))
    every = group.kinds[i].closure_rows(ends[0].side, ends[1].side, numbers.constants)
    return ClosedLoop({r: every[r] for c, r in group.shape.rows if c == i}, ends)


def _end(body: Relative, offset: Vector, virtual: bool, common: General, turn: Sequence[Vector], shift: Vector
         ) -> LoopEnd:
    axes, origin, omega, velocity, remainder = body

    def resolved(v: Vector) -> Vector:
        return v if virtual else common.inverse(axes.apply(v))

    arm = axes.apply(shift)
    point = origin + arm
    swing = remainder.linear + remainder.angular.cross(shift) + omega.centripetal(shift)
    x, y, z = (resolved(v) for v in turn)
    side = Side(common.inverse(offset + point), Vector.zero(), x, y, z, resolved(omega),
                resolved(velocity + omega.cross(shift)))
    return LoopEnd(side, Motion(resolved(remainder.angular), resolved(swing)), point)


def _columns(group: GroupView, i: int, loop: ClosedLoop, members: dict[int, Relative], common: General
             ) -> dict[int, dict[int, Number]]:
    """tau (S^n)^T P_k: what unit speeds of the own joints around a loop make of its rows."""
    shape = group.shape.closures[i]
    number = {pair: v for v, pair in enumerate(group.shape.speeds)}
    out: dict[int, dict[int, Number]] = {}
    for path, end, first in ((shape.first_path, loop.ends[0], True), (shape.second_path, loop.ends[1], False)):
        for k in path:
            for c, column in enumerate(_seen(group.links[k], members[k], common, end.point)):
                if (k, c) in number:
                    out[number[k, c]] = {r: column.dot(row.first if first else row.second)
                                         for r, row in loop.rows.items()}
    return out


def _toward(group: GroupView, i: int, loop: ClosedLoop, row: Row, virtual: Relative) -> Force:
    """What a row makes of the virtual body's motion, about its origin; of one that carries both ends, nothing."""
    shape, numbers = group.shape.closures[i], group.closures[i]
    sides = [(k, end, w, shift) for k, end, w, shift in (
        (shape.first, loop.ends[0], row.first, numbers.first_shift),
        (shape.second, loop.ends[1], row.second, numbers.second_shift)) if root_of(group, k) == VIRTUAL]
    if len(sides) != 1:
        return Force.zero()
    (k, end, w, shift), = sides
    arm = shift if k == VIRTUAL else virtual.axes.inverse(end.point - virtual.origin)
    return Force(w.moment + arm.cross(w.force), w.force)


def lacking_acceleration(group: GroupView, row: Row, ends: Sequence[LoopEnd]) -> Number:
    """tau A_t of the phantom, (33) at the acceleration level: what the constraint lacks if all udot vanish."""
    first, second = ends
    return row.of(first.remainder, second.remainder) - row.right_side(first.velocity, second.velocity, *group.baumgarte)


def lacking_velocity(group: GroupView, row: Row, ends: Sequence[LoopEnd]) -> Number:
    """tau V of the phantom, (33): what the constraint's rate is at the speeds given."""
    return row.rate(ends[0].velocity, ends[1].velocity)


def _seen(link: Link, body: Relative, common: General, point: Vector) -> list[Motion]:
    """(S^n)^T P_k: how the loop's end moves with unit speeds of a joint, in the loop's axes."""
    arm = common.inverse(point - body.origin)
    out = []
    for column in link.columns:
        turn = common.inverse(body.axes.apply(column.angular))
        slide = common.inverse(body.axes.apply(column.linear))
        out.append(Motion(turn, slide + turn.cross(arm)))  # (43)
    return out


def _project(group: GroupView, columns: dict[int, list[Number]], residual: list[Number], toward: list[Force],
             shrunk: float) -> tuple[Dependent, ...]:
    """Solve the closing relation for the dependent speeds, one projection after another, (37)-(55).

    Projections add squares of what the rows are: lengths and angles are brought to the unit that most rows have.
    """
    order, units = group.shape.dependent, group.shape.row_units
    common = max(units, key=units.count)
    factors = [common / unit for unit in units]
    sizes = [size * speed / unit for size, speed, unit in zip(group.shape.sizes, group.shape.speed_units, units,
                                                              strict=True)]
    left = {v: _times(columns[v], factors) for v in order}  # tau^{k+1} (S^n)^T P_k
    gains: dict[int, list[Number]] = {}
    shares: dict[int, dict[int, Number]] = {}
    for i, (v, size) in enumerate(zip(order, sizes, strict=True)):
        limit = max(shrunk * size, _LOST * max(sizes)) * common / group.shape.speed_units[i]
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
        row = _times(rows[v], factors)
        followed = tuple((r, -_dot(row, column)) for r, column in columns.items() if r not in rows)  # (55): Gamma P_r
        body = Force.zero()
        for x, covector in zip(row, toward, strict=False):
            body = body - covector * x  # (55): Gamma
        out.append(Dependent(v, followed, body, -_dot(row, residual)))  # (55): Xi A_t
    return tuple(out)


def _times(row: Sequence[Number], factors: Sequence[float]) -> list[Number]:
    """Numbers in another unit; those that have it already cost nothing."""
    return [x if f == 1.0 else x * f for x, f in zip(row, factors, strict=True)]


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
