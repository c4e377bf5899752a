"""Local closed-loop kinetics of the coordinate reduction: from the rows of a group's speeds to virtual bodies.

Anderson and Critchley 2003, 3.2; equation numbers are the paper's. See `reduction` for notation and deviations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bellcrank.formulations.common.pivot import Pivot, eliminate
from bellcrank.formulations.reduction.local_loop import Dependent
from bellcrank.formulations.reduction.messages import Burden, Relative, Virtual
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.group_shape import VIRTUAL
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Vector

__all__ = ["Mass", "ReducedRow", "Terms", "add_masses", "compose", "compose_base", "remove", "speeds_of", "substitute",
           "total"]

Mass = RigidInertia | ArticulatedInertia

_NOTHING = Burden(ArticulatedInertia.zero(), Force.zero())


class Terms:
    """Kane's equations of a group's own speeds as they are reduced, and what is moved to base and virtual body."""

    def __init__(self) -> None:
        self.matrix: dict[tuple[int, int], Number] = {}
        self.right: dict[int, Number] = {}
        self.base: dict[int, Force] = {}  #: what a unit udot takes at the base
        self.body: dict[int, Force] = {}  #: ... at the virtual body
        self.at_base = _NOTHING
        self.virtual = Virtual(_NOTHING, ())
        self.early: dict[int, tuple[Pivot, ...]] = {}  #: of joints that are in no loop, by member

    def at(self, v: int, w: int) -> Number:
        return self.matrix.get((v, w) if v >= w else (w, v), 0.0)

    def add(self, v: int, w: int, value: Number) -> None:
        self.matrix[(v, w) if v >= w else (w, v)] = self.at(v, w) + value


class ReducedRow(NamedTuple):
    """An eliminated independent speed: udot = free - base . Abar^0 - body . Abar^p - sum of factors udot_w."""

    speed: int
    base: Force
    body: Force
    factors: tuple[tuple[int, Number], ...]
    free: Number


def _articulated(mass: Mass) -> ArticulatedInertia:
    return mass.articulated() if isinstance(mass, RigidInertia) else mass


def add_masses(a: Mass, b: Mass) -> Mass:
    """Their sum, rigid if both are."""
    if isinstance(a, RigidInertia) and isinstance(b, RigidInertia):
        return a + b
    return _articulated(a) + _articulated(b)


def speeds_of(group: GroupView, k: int) -> list[tuple[int, int]]:
    """Local numbers and columns of a member's free speeds."""
    return [(v, c) for v, (member, c) in enumerate(group.shape.speeds) if member == k]


def total(terms: Iterable[Number]) -> Number:
    """Their sum."""
    out: Number = 0.0
    for x in terms:
        out = out + x
    return out


def _forces(terms: Iterable[Force]) -> Force:
    out = Force.zero()
    for x in terms:
        out = out + x
    return out


def _entries(f: Force) -> tuple[Number, ...]:
    return (*f.moment, *f.force)


# -- composite bodies -----------------------------------------------------------------------------------------------
def compose(group: GroupView, terms: Terms, masses: dict[int, Mass], forces: dict[int, Force]) -> None:
    """Rows of the own speeds as if there were no loop: sums of P_v^kT (I^k Abar^k - F^k), (56), by composite bodies;
    what hangs from the virtual body is its burden already."""
    masses, forces = {**masses, VIRTUAL: RigidInertia.zero()}, {**forces, VIRTUAL: Force.zero()}
    columns: dict[int, dict[int, Force]] = {k: {} for k in masses}
    for k in reversed(range(len(group.links))):
        link, parent = group.links[k], group.shape.parents[k]
        if _is_early(group, k):
            masses[k], forces[k], terms.early[k] = _released(link, masses[k], forces[k])
        else:
            for v, c in speeds_of(group, k):
                column = link.columns[c]
                for w, other in columns[k].items():
                    terms.add(v, w, column.dot(other))
                columns[k][v] = masses[k] @ column
                terms.add(v, v, column.dot(columns[k][v]) + link.armature[c])
                terms.right[v] = column.dot(forces[k]) - link.tau[c]
        if parent != -1:
            mass, force, moved = _lifted(link, masses[k], forces[k], columns[k])
            masses[parent], forces[parent] = add_masses(masses[parent], mass), forces[parent] + force
            columns[parent].update(moved)
    terms.virtual = Virtual(Burden(_articulated(masses[VIRTUAL]), forces[VIRTUAL]), terms.virtual.cross)
    terms.body = columns[VIRTUAL]


def compose_base(group: GroupView, terms: Terms, masses: dict[int, Mass], forces: dict[int, Force],
                 hosted: dict[int, Virtual], virtual: Relative | None) -> None:
    """What the own bodies exert on a moving base: by ^0S^k and not by Gamma^k, (62)-(64) as corrected."""
    at = {-1: terms.at_base, VIRTUAL: Burden(ArticulatedInertia.zero(), Force.zero())}
    masses, forces = {**masses, **{k: b.mass for k, b in at.items()}}, {**forces, **{k: b.force for k, b in at.items()}}
    columns: dict[int, dict[int, Force]] = {k: {} for k in masses}
    cross = {k: hosted[k].cross if k in hosted else () for k in masses}
    for k in reversed(range(len(group.links))):
        link, parent = group.links[k], group.shape.parents[k]
        if _is_early(group, k):
            masses[k], forces[k], _ = _released(link, masses[k], forces[k])
        else:
            for v, c in speeds_of(group, k):
                columns[k][v] = masses[k] @ link.columns[c]
                if cross[k]:  # through the virtual bodies of other loops, (60): Ihat^{p;0}
                    six = [link.columns[c].dot(row) for row in cross[k]]
                    terms.base[v] = Force(Vector(*six[:3]), Vector(*six[3:]))
        mass, force, moved = _lifted(link, masses[k], forces[k], columns[k])
        masses[parent], forces[parent] = add_masses(masses[parent], mass), forces[parent] + force
        columns[parent].update(moved)
        if parent != -1 and cross[k]:
            cross[parent] = _sums(cross[parent], (_lifted(link, RigidInertia.zero(), row, {})[1] for row in cross[k]))
    if virtual is not None:  # it hangs from the base, too
        pose = virtual.pose
        cross[VIRTUAL] = _sums(cross[VIRTUAL], (masses[VIRTUAL] @ pose.acceleration(e) for e in _UNITS))
        masses[-1] = add_masses(masses[-1], pose.articulated(_articulated(masses[VIRTUAL])))
        forces[-1] = forces[-1] + pose.force(forces[VIRTUAL])
        columns[-1].update({v: pose.force(column) for v, column in columns[VIRTUAL].items()})
        terms.virtual = Virtual(terms.virtual.own, cross[VIRTUAL])
    for v, column in columns[-1].items():
        terms.base[v] = terms.base[v] + column if v in terms.base else column
    terms.at_base = Burden(_articulated(masses[-1]), forces[-1])


#: unit motions
_UNITS = tuple(Motion(Vector(*row[:3]), Vector(*row[3:]))
               for row in ([float(i == j) for j in range(6)] for i in range(6)))


def _sums(a: Sequence[Force], b: Iterable[Force]) -> tuple[Force, ...]:
    """Entry by entry; nothing counts as zeros."""
    return tuple(x + y for x, y in zip(a, b, strict=True)) if a else tuple(b)


def _is_early(group: GroupView, k: int) -> bool:
    """Whether a member's joint is in no loop, and eliminated as in a tree."""
    return any(v in group.shape.early for v, _ in speeds_of(group, k))


def _released(link: Link, mass: Mass, force: Force) -> tuple[ArticulatedInertia, Force, tuple[Pivot, ...]]:
    left = _articulated(mass)
    pivots = []
    for column, tau, armature, prescribed in zip(link.columns, link.tau, link.armature, link.mask, strict=True):
        if not prescribed:
            left, force, pivot = eliminate(left, force, column, tau, armature)  # (18), (19)
            pivots.append(pivot)
    return left, force, tuple(pivots)


def _lifted(link: Link, mass: Mass, force: Force, columns: dict[int, Force]) -> tuple[Mass, Force, dict[int, Force]]:
    """S^k I (S^k)^T, S^k F, and S^k of what unit accelerations take."""
    for t in reversed(link.transforms):
        mass = t.rigid(mass) if isinstance(mass, RigidInertia) else t.articulated(mass)
        force = t.force(force)
        columns = {v: t.force(column) for v, column in columns.items()}
    return mass, force, columns


# -- dependent speeds -----------------------------------------------------------------------------------------------
def substitute(group: GroupView, terms: Terms, dependent: Sequence[Dependent]) -> None:
    """Replace the dependent speeds: what remains are rows of nonholonomic partial velocities, (57)-(60)."""
    bound, free = [d.speed for d in dependent], group.shape.independent
    factors = {d.speed: dict(d.factors) for d in dependent}
    offset = {d.speed: d.offset for d in dependent}
    matrix = {(v, w): terms.at(v, w) for v in bound for w in bound}
    joint = {(v, r): terms.at(v, r) for v in bound for r in free}
    terms.matrix = {key: x for key, x in terms.matrix.items() if not set(key) & set(bound)}
    # dependent rows with what is known of all dependent speeds, and with what the independent ones make of them
    rest = {v: terms.right.pop(v) + total(matrix[v, w] * offset[w] for w in bound) for v in bound}  # (60): I Xi A_t - F
    full = {(v, r): joint[v, r] + total(matrix[v, w] * factors[w].get(r, 0.0) for w in bound)
            for v in bound for r in free}
    for r in free:
        terms.right[r] = terms.right[r] + total(joint[v, r] * offset[v] + factors[v].get(r, 0.0) * rest[v]
                                                for v in bound)
        for s in free:
            if s <= r:  # (58): P~_r^T I P~_s
                terms.add(r, s, total(factors[v].get(r, 0.0) * full[v, s] + joint[v, r] * factors[v].get(s, 0.0)
                                      for v in bound))
    if group.shape.host_slot >= 0:
        _onto_virtual(terms, dependent, matrix, rest, full, free)
    if not group.shape.grounded:
        _substitute_base(group, terms, dependent)


def _onto_virtual(terms: Terms, dependent: Sequence[Dependent], matrix: dict[tuple[int, int], Number],
                  rest: dict[int, Number], full: dict[tuple[int, int], Number], free: Sequence[int]) -> None:
    """Ihat^p and -Fhat^p, (60): the sums of Gamma^T I Gamma and of Gamma^T (I Xi A_t - F), to which come those of S^k
    where links hang from p; and what unit accelerations of independent speeds take at p."""
    (mass, force), cross = terms.virtual
    carried = {d.speed: terms.body.pop(d.speed, Force.zero()) for d in dependent}
    for d in dependent:
        pushed = carried[d.speed] + _forces(e.body * matrix[d.speed, e.speed] for e in dependent)
        mass = mass.minus(-d.body, pushed).minus(-carried[d.speed], d.body)
        force = force + d.body * rest[d.speed] + carried[d.speed] * d.offset
    terms.virtual = Virtual(Burden(mass, force), cross)
    for r in free:
        terms.body[r] = terms.body.get(r, Force.zero()) + _forces(
            d.body * full[d.speed, r] + carried[d.speed] * dict(d.factors).get(r, 0.0) for d in dependent)


def _substitute_base(group: GroupView, terms: Terms, dependent: Sequence[Dependent]) -> None:
    """The base feels the loop's bodies through all speeds, of which the dependent ones are now known."""
    mass, force = terms.at_base
    terms.at_base = Burden(mass, force + _forces(terms.base[d.speed] * d.offset for d in dependent))  # ^0S^k I^k Xi A_t
    for d in dependent:
        for r, x in d.factors:
            terms.base[r] = terms.base[r] + terms.base[d.speed] * x  # ^0S^k I^k P~_r
    if group.shape.host_slot >= 0:
        more = (_forces(d.body * _entries(terms.base[d.speed])[i] for d in dependent) for i in range(6))
        terms.virtual = Virtual(terms.virtual.own, _sums(terms.virtual.cross, more))  # (60): Ihat^{p;0}


# -- independent speeds ---------------------------------------------------------------------------------------------
def remove(terms: Terms, v: int) -> ReducedRow:
    """Eliminate one independent speed, (61)-(66), from the base, the virtual body and the other speeds' rows."""
    right = terms.right.pop(v)
    inverse = 1.0 / terms.matrix.pop((v, v))  # (66)
    others = sorted({w for pair in terms.matrix if v in pair for w in pair if w != v})
    row = {w: terms.matrix.pop((v, w) if v >= w else (w, v)) for w in others}
    base, body = terms.base.pop(v, Force.zero()), terms.body.pop(v, Force.zero())
    to_base, to_body = base * inverse, body * inverse
    factors = {w: x * inverse for w, x in row.items()}
    mass, force = terms.at_base
    terms.at_base = Burden(mass.minus(base, to_base), force - to_base * right)  # (62)-(64) as corrected
    (mass, force), cross = terms.virtual
    terms.virtual = Virtual(Burden(mass.minus(body, to_body), force - to_body * right),
                            tuple(c - body * x for c, x in zip(cross, _entries(to_base), strict=False)))
    for w in others:
        terms.right[w] = terms.right[w] - factors[w] * right
        for store, column in ((terms.base, base), (terms.body, body)):
            if w in store:
                store[w] = store[w] - column * factors[w]
        for x in others:
            if x <= w:
                terms.add(w, x, -(row[w] * factors[x]))
    return ReducedRow(v, to_base, to_body, tuple(factors.items()), -(right * inverse))
