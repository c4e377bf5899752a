"""The quadratic form (11) of a group of links, and what is done to it: speeds enter, are eliminated or substituted.

Symbols and equation numbers as in `elimination`, of docs/explain/elimination.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.lowering.group import GroupView
from bellcrank.lowering.link import ModalRow
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force, Motion

__all__ = ["BodyForm", "DependentSpeed", "EliminatedSpeed", "GroupForm", "add_modes", "eliminate", "introduce",
           "substitute"]


class BodyForm:
    """I, f and F_v of (11) for one body."""

    def __init__(self) -> None:
        self.mass, self.force = ArticulatedInertia.zero(), Force.zero()
        self.columns: dict[int, Force] = {}


class EliminatedSpeed(NamedTuple):
    """An eliminated speed, (15): udot = -(free + body . a + sum of factors * udot_w)."""

    speed: int
    member: int  #: whose acceleration `body` refers to; -1: the reference's
    body: Force
    factors: tuple[tuple[int, Number], ...]
    free: Number


class DependentSpeed(NamedTuple):
    """A dependent speed, (21): udot = offset + sum of factors * udot_w."""

    speed: int
    factors: tuple[tuple[int, Number], ...]
    offset: Number


class GroupForm:
    """The form (11) of a group as it is put together: I, f, F of every member, and the common H and h."""

    def __init__(self, group: GroupView, received: Sequence[Number]) -> None:
        shape = group.shape
        self.group = group
        self.forms = [BodyForm() for _ in shape.parents]
        self.top = BodyForm()
        self.matrix: dict[tuple[int, int], Number] = {}
        self.right: dict[int, Number] = {}
        self.pivots: list[EliminatedSpeed] = []
        incoming = group.incoming(received)
        for body, (mass, force, columns) in zip(shape.ports.bodies, incoming.bodies, strict=True):
            form = self.top if body < 0 else self.forms[body]
            form.mass, form.force = mass, force  # (23) of the children
            form.columns = dict(zip(shape.ports.speeds, columns, strict=True))
        for i, v in enumerate(shape.ports.speeds):
            self.right[v] = incoming.right[i]
            for j, w in enumerate(shape.ports.speeds[:i + 1]):
                self.put(v, w, incoming.matrix[i][j])

    def at(self, v: int, w: int) -> Number:
        return self.matrix.get((v, w) if v >= w else (w, v), 0.0)

    def put(self, v: int, w: int, value: Number) -> None:
        self.matrix[(v, w) if v >= w else (w, v)] = value

    def add(self, v: int, w: int, value: Number) -> None:
        self.put(v, w, self.at(v, w) + value)

    def add_right(self, v: int, value: Number) -> None:
        self.right[v] = self.right.get(v, 0.0) + value


def add_modes(work: GroupForm, form: BodyForm, rows: Sequence[ModalRow], numbers: dict[int, int]) -> None:
    """The rows of a deforming body's free modes, (12): I and f have its own part already."""
    for c, row in enumerate(rows):
        if c not in numbers:
            continue  # prescribed
        v = numbers[c]
        form.columns[v] = form.columns[v] + row.column if v in form.columns else row.column
        work.add_right(v, row.right)
        for d, value in enumerate(row.matrix):
            if d in numbers:
                work.add(v, numbers[d], value)


def introduce(work: GroupForm, form: BodyForm, v: int, column: Motion, tau: Number, armature: Number) -> None:
    """A joint's speed enters, a = a' + column udot_v: (14). Its rotor couples it to no other speed."""
    for w, other in form.columns.items():
        value = column.dot(other)
        work.add(v, w, value + value if w == v else value)  # (14): H_vw
    wrench = form.mass @ column
    work.add(v, v, column.dot(wrench) + armature)  # (14): H_vv
    work.add_right(v, column.dot(form.force) - tau)  # (14): h_v
    form.columns[v] = form.columns[v] + wrench if v in form.columns else wrench  # (14): F_v


def eliminate(work: GroupForm, form: BodyForm, v: int, member: int) -> None:
    """Minimise over one speed: its row (15) is solved for it and substituted, (16)."""
    column = form.columns.pop(v, Force.zero())
    right = work.right.pop(v)
    others = sorted({w for pair in work.matrix if v in pair for w in pair if w != v})
    row = {w: work.matrix.pop((v, w) if v >= w else (w, v)) for w in others}
    inverse = 1.0 / work.matrix.pop((v, v))
    gain = column * inverse  # (15)
    factors = {w: x * inverse for w, x in row.items()}  # (15)
    form.mass = form.mass.minus(column, gain)  # (16): I
    form.force = form.force - gain * right  # (16): f
    for w in others:
        if w in form.columns:
            form.columns[w] = form.columns[w] - column * factors[w]  # (16): F_w
        else:
            form.columns[w] = -(column * factors[w])  # (16): F_w
        work.add_right(w, -(factors[w] * right))  # (16): h_w
        for x in others:
            if x <= w:
                work.add(w, x, -(row[w] * factors[x]))  # (16): H_wx
    work.pivots.append(EliminatedSpeed(v, member, gain, tuple(factors.items()), right * inverse))


def substitute(work: GroupForm, solved: DependentSpeed) -> None:
    """Replace a dependent speed by what it depends on, (22)."""
    v, factors, offset = solved
    form = work.top
    others = sorted({w for pair in work.matrix if v in pair for w in pair if w != v})
    row = {w: work.matrix.pop((v, w) if v >= w else (w, v)) for w in others}
    diagonal = work.matrix.pop((v, v))
    right = work.right.pop(v) + diagonal * offset  # (22): h_v
    for w, x in row.items():
        work.add_right(w, x * offset)  # (22): h_w
    for i, (a, x) in enumerate(factors):
        work.add_right(a, x * right)  # (22): h_a
        scaled = diagonal * x
        for b, y in factors[:i + 1]:
            work.add(a, b, scaled * y)  # (22): H_ab
        for w, y in row.items():
            value = y * x
            work.add(a, w, value + value if a == w else value)  # (22): H_aw
    column = form.columns.pop(v, None)
    if column is not None:
        form.force = form.force + column * offset  # (22): f
        for a, x in factors:
            form.columns[a] = form.columns[a] + column * x if a in form.columns else column * x  # (22): F_a
