"""The constraints of one group, written around each loop: relative kinematics, rows, right hand sides.

Section 3 of docs/explain/elimination.md: everything is relative to the nearest common ancestor e of the two ends of a
cut, as if e were at rest.

| docs/explain/elimination.md | here |
|---|---|
| A, B, n_A, n_B, gamma' (5), (6) | ``first``, ``second`` ends and covectors of a `Row`, ``gamma`` |
| v_A, X_Ak (5), (7) | ``RelativeMember.moving``, by products of ``link.transforms`` |
| c_k (7) | ``RelativeMember.bias`` |
| X_Ak^T n_A (8) | ``wrench`` as it is carried inwards |
| J, gamma, phi, phidot (8)-(10) | ``ConstraintEquation`` |

Cost: linear in the number of links around the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.formulations.common.link_kinematics import known_motion
from bellcrank.loops.constraint_sizes import coupler_size
from bellcrank.lowering.element_loads import side_of
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.group_shape import ClosureShape
from bellcrank.lowering.looped import Moving, outward_moving
from bellcrank.mechanism.constraint_rows import Row, at_time, stabilized
from bellcrank.mechanism.machine_sizes import speed_sizes
from bellcrank.mechanism.motion import coupled
from bellcrank.scalar.functions import maximum
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector

__all__ = ["ConstraintEquation", "closure_constraints", "coupler_constraint", "group_constraints", "largest_errors",
           "redundant_constraints"]


class ConstraintEquation(NamedTuple):
    """factors . udot = gamma for the group's local speeds, (8); also the constraint's value and rate, (5), and what a
    unit of its multiplier exerts on members at both ends, in their own axes about their origins (none for couplers)."""

    factors: tuple[tuple[int, Number], ...]
    gamma: Number
    value: Number
    rate: Number
    ends: tuple[tuple[int, Force], ...] = ()
    size: float = 1.0  #: what it is measured by, see `loops.constraint_sizes`


class RelativeMember(NamedTuple):
    """A member's motion relative to the common ancestor of its loop, and its known acceleration there."""

    moving: Moving
    bias: Motion  #: in link axes


_STILL = Moving(General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))), Vector.zero(),
                Vector.zero(), Vector.zero())


def local_sizes(group: GroupView) -> list[float]:
    """Ordinary changes of the coordinates of a group's local speeds; 1 for those by which no member moves."""
    each = [speed_sizes(link.joint, group.world.length) for link in group.links]
    return [float(each[k][c]) if k >= 0 else 1.0 for k, c in group.shape.speeds]


def group_constraints(group: GroupView) -> list[ConstraintEquation]:
    """The independent constraints of a group in the order of their pivots."""
    made = {i: closure_constraints(group, i) for i in {c for c, _ in group.shape.rows if c >= 0}}
    return [made[c][r] if c >= 0 else coupler_constraint(group, r) for c, r in group.shape.rows]


def largest_errors(groups: Sweeps) -> Field:
    """The largest values and rates, (5), of the constraints of each group's closures, redundant ones included, and of
    its couplers; and the sum of all, which is not finite where one of them is not."""
    return groups.outward(outward_errors, root=())


def outward_errors(group: GroupView, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, Number, Number]]:
    found: list[tuple[Number, Number]] = []
    for i, shape in enumerate(group.shape.closures):
        paths = {0: _outward(group, shape.first_path), 1: _outward(group, shape.second_path)}
        found += [(row.value, _rate(shape, paths, row)) for row in _rows(group, i, paths)]
    couplers = [coupler_constraint(group, r) for c, r in group.shape.rows if c < 0]
    found += [(made.value, made.rate) for made in couplers]
    value: Number = 0.0
    rate: Number = 0.0
    total: Number = 0.0
    for v, r in found:
        value, rate, total = maximum(value, abs(v)), maximum(rate, abs(r)), total + (v + r)
    return (), (value, rate, total)


def coupler_constraint(group: GroupView, index: int) -> ConstraintEquation:
    """A coupler between joint coordinates, (10)."""
    relation = group.shape.relations[index]
    views = [(group.witnesses[witness], c) for witness, c, _ in relation.every]
    value, rate, slopes, gamma, _ = coupled(
        [part for _, _, part in relation.every], [link.q[c] for link, c in views], [link.u[c] for link, c in views],
        *at_time((relation.offset,), group.world.time))
    for (link, c), slope in zip(views, slopes, strict=True):
        if link.mask[c]:
            gamma = gamma - link.prescribed_udot[c] * slope  # (10)
    factors = tuple((v, slopes[place]) for v, place in relation.terms)  # (10): J_v
    sizes = [(float(speed_sizes(link.joint, group.world.length)[c]), part)
             for (link, c), (_, _, part) in zip(views, relation.every, strict=True)]
    return ConstraintEquation(factors, stabilized(gamma, value, rate, *group.baumgarte), value, rate,  # (9)
                              size=coupler_size(sizes))


def redundant_constraints(group: GroupView) -> list[ConstraintEquation]:
    """What else the closures of a group state."""
    kept = set(group.shape.rows)
    out: list[ConstraintEquation] = []
    for index in range(len(group.shape.closures)):
        every = closure_constraints(group, index, every=True)
        out += [equation for r, equation in every.items() if (index, r) not in kept]
    return out


def closure_constraints(group: GroupView, index: int, every: bool = False) -> dict[int, ConstraintEquation]:
    """The constraints of one closure, those that count or all of them."""
    shape = group.shape.closures[index]
    paths = {0: _outward(group, shape.first_path), 1: _outward(group, shape.second_path)}
    rows = _rows(group, index, paths)
    wanted = range(len(rows)) if every else [r for c, r in group.shape.rows if c == index]
    return {r: _constraint(group, shape, paths, rows[r]) for r in wanted}


def _rows(group: GroupView, index: int, paths: dict[int, list[RelativeMember]]) -> Sequence[Row]:
    """All constraints of one closure, (5), (6)."""
    numbers = group.closures[index]
    first = side_of(paths[0][-1].moving, numbers.first_turn, numbers.first_shift)
    second = side_of(paths[1][-1].moving, numbers.second_turn, numbers.second_shift)
    rows: Sequence[Row] = group.kinds[index].closure_rows(first, second, numbers.constants)
    return rows


def _rate(shape: ClosureShape, paths: dict[int, list[RelativeMember]], row: Row) -> Number:
    """The rate of a constraint, (5)."""
    return row.rate(*(paths[side][-1].moving.twist if path else Motion.zero()
                      for side, path in enumerate((shape.first_path, shape.second_path))))


def _outward(group: GroupView, path: tuple[int, ...]) -> list[RelativeMember]:
    """Motion of the members of a path relative to e, where it starts, the innermost first."""
    out: list[RelativeMember] = []
    moving = _STILL
    omega = Vector.zero()  # in link axes
    for member in reversed(path):
        link = group.links[member]
        omega, bias = known_motion(link, omega)  # (4), relative to e
        moving, _ = outward_moving(link, moving)
        out.append(RelativeMember(moving, bias))
    return out or [RelativeMember(_STILL, Motion.zero())]


def _constraint(group: GroupView, shape: ClosureShape, paths: dict[int, list[RelativeMember]], row: Row
               ) -> ConstraintEquation:
    """Carry a row's covectors from its ends to the common ancestor; what each joint does to them is its entry: (8)."""
    value, first, second, gamma, _ = row
    factors: dict[int, Number] = {}
    number = group.shape.numbers
    rate = _rate(shape, paths, row)
    ends: list[tuple[int, Force]] = []
    for at, path, relative, covector in ((shape.first, shape.first_path, paths[0], first),
                                         (shape.second, shape.second_path, paths[1], second)):
        if not path:
            ends.append((at, covector))  # the ancestor itself
            continue
        end = relative[-1].moving
        wrench = Force(end.axes.inverse(covector.moment), end.axes.inverse(covector.force))
        ends.append((at, wrench))
        for member, known in zip(path, reversed(relative), strict=True):
            link = group.links[member]
            gamma = gamma - known.bias.dot(wrench)  # (8)
            for c, column in enumerate(link.moving_columns):
                if (member, c) in number:
                    v = number[member, c]
                    factors[v] = factors.get(v, 0.0) + column.dot(wrench)  # (8): J_v
            for t in reversed(link.transforms):
                wrench = t.force(wrench)  # (8): X^T n
    return ConstraintEquation(tuple(factors.items()), stabilized(gamma, value, rate, *group.baumgarte), value, rate,
                              tuple(ends), 1.0 if all(is_zero(x) for x in (*first.force, *second.force)) else
                              group.world.length)

