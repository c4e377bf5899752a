"""Steps (A)-(F) for closures that change: arms that do not know which of them are closed, and step (D) by itself.

G. Rodriguez, A. Jain and K. Kreutz (see `operator` for the citation), sections 2.3 and 3: primary and secondary systems
stay what they are while closure constraints come and go, and "the two paths come together for one step in order to
compute the constraint forces". Equation numbers are the paper's.

| paper | here |
|---|---|
| C_k, the points of closure | ``ends``: the links that some closure, open or closed, lies on |
| alphatilde^f (B), with Jdot beta | `EndState.acceleration` |
| B* Omega B of all ends (C), (3.10) | ``compliances``: blocks of six by six |
| A (2.16), U (2.17), f (D), (3.11) | the rows of `loop_rows`, their right hand sides, ``f`` |
| -B A* f (3.12) | the result of `closing_wrenches` |

`arm_ends` is (A), (B) and (C), the same for every set of closures; `closing_wrenches` is (D), all that depends on the
set. (E) and (F) are one tree recursion with these wrenches on the ends: forward dynamics of the arms.

Declared deviations
- (C) is computed for whole links, six rows each, in place of the rows A of what is closed.
- (E) and (F) begin anew from all forces in place of adding to betadot^f: one more sweep of (A.1).

Cost: O(n) for (A), (B), (E), (F); O(e depth + e^2) for (C) with e ends; O(m^2 + m^3) for (D) with m constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bellcrank.formulations.common.row_loads import classical
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.formulations.operator.closed_chains import free_response, row_admittance
from bellcrank.formulations.operator.tree_recursion import LinkState, outward_states
from bellcrank.lowering.looped import LoopedDirect, LoopRow
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector

__all__ = ["EndState", "arm_ends", "closing_wrenches", "end_pairs", "read_ends"]

_UNITS = tuple(Vector(*(1.0 if i == j else 0.0 for j in range(3))) for i in range(3))
_ZERO = Vector(0.0, 0.0, 0.0)
#: a force on a link in its axes, one entry after another
_SIX = (*(Force(x, _ZERO) for x in _UNITS), *(Force(_ZERO, x) for x in _UNITS))
#: numbers of an end: axes, origin, angular velocity, velocity, acceleration
WIDTH = 24


class EndState(NamedTuple):
    """A link that closures lie on: how it moves, and the acceleration that it has if none is closed (link axes)."""

    moving: Moving
    acceleration: Motion


def end_pairs(ends: Sequence[int], top: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Pairs of ends (by their places) whose compliance is not zero: those with a link in common besides the ground."""
    return [(i, j) for i, a in enumerate(ends) for j, b in enumerate(ends[:i + 1]) if top(a, b)]


def arm_ends(machine: LoopedDirect, ends: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[Number]:
    """(A), (B), (C): what step (D) has to know of the arms."""
    own, free = free_response(machine)  # (A): (3.7), (A.1), (A.2)
    states = machine.outward(outward_states, root=LinkState(Motion.zero(), Motion.zero()))
    out: list[Number] = []
    for link in ends:
        axes, origin, omega, velocity = machine.moving[link]
        for column in _UNITS:
            out += axes.apply(column)
        a = free[link].alpha + classical(*states[link])  # (B): (3.8)
        out += [*origin, *omega, *velocity, *a.angular, *a.linear]
    rows = [LoopRow(((link, unit),), (), 0.0) for link in ends for unit in _SIX]
    compliance = row_admittance(machine, own, rows)  # (C): B* Omega B, (3.10)
    return out + [compliance[6 * i + k][6 * j + m] for i, j in pairs for k in range(6) for m in range(6)]


def read_ends(ends: Sequence[int], pairs: Sequence[tuple[int, int]], read: Callable[[int], Number]
              ) -> tuple[dict[int, EndState], dict[tuple[int, int], list[list[Number]]]]:
    """What `arm_ends` has computed: ends by link, compliances by pairs of links."""
    found: dict[int, EndState] = {}
    for place, link in enumerate(ends):
        v = [read(WIDTH * place + i) for i in range(WIDTH)]
        axes = General(Matrix3(*(Vector(*v[i:9:3]) for i in range(3))))  # columns come one after another
        found[link] = EndState(Moving(axes, Vector(*v[9:12]), Vector(*v[12:15]), Vector(*v[15:18])),
                               Motion(Vector(*v[18:21]), Vector(*v[21:24])))
    compliances: dict[tuple[int, int], list[list[Number]]] = {}
    at = WIDTH * len(ends)
    for i, j in pairs:
        block = [[read(at + 6 * k + m) for m in range(6)] for k in range(6)]
        at += 36
        compliances[ends[i], ends[j]] = block
        compliances[ends[j], ends[i]] = [list(column) for column in zip(*block, strict=True)]
    return found, compliances


def closing_wrenches(machine: LoopedDirect, ends: Mapping[int, EndState],
                     compliances: Mapping[tuple[int, int], Sequence[Sequence[Number]]]) -> dict[int, Force]:
    """(D): what the closures of a set exert on their links, in link axes about their origins.

    `machine` knows the motions of the ends alone.
    """
    rows = machine.loop_rows()
    images = [_image(row, compliances) for row in rows]  # B* Omega B A*
    matrix = [[sum((images[j][link].dot(w) for link, w in row.ends if link in images[j]), 0.0)
               for j in range(len(rows))] for row in rows]  # A Lambda A*
    right = [sum((ends[link].acceleration.dot(w) for link, w in row.ends), 0.0) - row.gamma for row in rows]
    f = solve_multipliers(matrix, right, machine.floors)  # (3.11)
    out: dict[int, Force] = {}
    for row, x in zip(rows, f, strict=True):
        for link, w in row.ends:
            out[link] = out.get(link, Force.zero()) + w * -x  # -B A* f
    return out


def _image(row: LoopRow, compliances: Mapping[tuple[int, int], Sequence[Sequence[Number]]]) -> dict[int, Motion]:
    """Accelerations of all ends that a unit of one row's force makes."""
    out: dict[int, Motion] = {}
    for (a, b), block in compliances.items():
        for link, w in row.ends:
            if link == b:
                force = (*w.moment, *w.force)
                v = [sum((x * y for x, y in zip(line, force, strict=True)), 0.0) for line in block]
                motion = Motion(Vector(*v[:3]), Vector(*v[3:]))
                out[a] = out[a] + motion if a in out else motion
    return out
