"""Pieces of a machine and the two ways in which they grow: past a joint, and by another piece. Numbers: `divide`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bellcrank.formulations.common.multipliers import LoadShare, UnitLoad, eliminate_loaded, idle
from bellcrank.formulations.common.pivot import Pivot, solve
from bellcrank.formulations.common.small_systems import solve_general
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Vector

__all__ = ["Port", "Response", "Subassembly", "attach", "bare", "hinge"]

#: entry of a link's motion, (link, 0..5), or a constraint, (0, c)
Port = tuple[int, int]
Six = tuple[Number, Number, Number, Number, Number, Number]
#: accelerations of joints, link by link, for an acceleration of the inboard link and forces at the ports
Motions = Callable[[Motion, Mapping[Port, Number]], Iterator[tuple[int, tuple[Number, ...]]]]


class Response(NamedTuple):
    """One port: psi, beta and a row of Lambda, (1) and (2)."""

    psi: Force
    beta: Number
    coupling: Mapping[Port, Number]

    def value(self, a: Motion) -> Number:
        """Its acceleration without forces at the ports, (2)."""
        return a.dot(self.psi) + self.beta


class Subassembly(NamedTuple):
    """P, z and the ports of (1) and (2), and the way back to its joints."""

    mass: ArticulatedInertia
    force: Force
    ports: Mapping[Port, Response]
    motion: Motions


def bare(index: int, link: Link, needed: Force, units: Sequence[UnitLoad], is_open: bool) -> Subassembly:
    """A link without its joint: P = I, psi = 1 at its own ports, the covectors of constraints at theirs."""
    ports = {(index, i): Response(Force(*_split(unit)), 0.0, {}) for i, unit in enumerate(_UNITS)} if is_open else {}
    ports |= {(0, c): Response(unit.load, 0.0, {}) for c, unit in enumerate(units)
              if not idle((unit.load, unit.joint))}
    return Subassembly(link.inertia.articulated(), needed, ports, lambda a, f: iter(()))


def hinge(piece: Subassembly, link: Link, index: int, drift: Motion, units: Sequence[UnitLoad]) -> Subassembly:
    """The piece seen from the parent of its innermost link: the joint's speeds are eliminated, (3)."""
    mass, force = piece.mass, piece.force
    names = list(piece.ports)
    psi: Sequence[Force] = [port.psi for port in piece.ports.values()]
    beta = [port.beta for port in piece.ports.values()]
    coupling = {name: dict(port.coupling) for name, port in piece.ports.items()}
    pivots: list[Pivot] = []
    shares: list[LoadShare] = []
    for i, (column, tau, armature, prescribed) in enumerate(zip(link.columns, link.tau, link.armature, link.mask,
                                                                strict=True)):
        if prescribed:
            continue
        factors = [0.0 if name[0] else units[name[1]].joint[i] for name in names]  # k_c
        mass, force, psi, pivot, share = eliminate_loaded(mass, force, psi, column, tau, factors, armature)  # (3)
        for k, (name, rest) in enumerate(zip(names, share.rests, strict=True)):
            if not idle(rest):
                beta[k] = beta[k] + rest * pivot.free  # (3) in (2)
                for other, r in zip(names, share.rests, strict=True):
                    if not idle(r):
                        coupling[name][other] = coupling[name].get(other, 0.0) + rest * share.inverse * r
        pivots.append(pivot)
        shares.append(share)
    force = force + mass @ drift
    beta = [b + drift.dot(p) for b, p in zip(beta, psi, strict=True)]
    for t in reversed(link.transforms):
        mass, force = t.articulated(mass), t.force(force)
        psi = [p if idle(p) else t.force(p) for p in psi]

    def motion(a: Motion, f: Mapping[Port, Number]) -> Iterator[tuple[int, tuple[Number, ...]]]:
        for t in link.transforms:
            a = t.acceleration(a)
        acting = [f[name] for name in names]
        loaded = tuple(Pivot(pivot.gain, pivot.free + share.under(acting))
                       for pivot, share in zip(pivots, shares, strict=True))
        own, udot = solve(a + drift, link.columns, link.mask, loaded, link.prescribed_udot)  # (3)
        yield index, tuple(udot)
        yield from piece.motion(own, f)

    ports = {name: Response(p, b, coupling[name]) for name, p, b in zip(names, psi, beta, strict=True)}
    return Subassembly(mass, force, ports, motion)


def attach(lower: Subassembly, at: int, upper: Subassembly, keep: bool) -> Subassembly:
    """Both pieces as one, joined at link `at` of the lower; `keep`: others will be attached there, too. (4)-(10)."""
    own = [lower.ports[at, i] for i in range(6)]
    names = [name for name in dict.fromkeys([*lower.ports, *upper.ports]) if keep or name[0] != at]
    below = {name: _six(lower.ports[at, i].coupling.get(name, 0.0) for i in range(6)) for name in names}  # Lambda_yc
    compliance = [_six(port.coupling.get((at, j), 0.0) for j in range(6)) for port in own]  # Lambda_yy
    loads = {name: _numbers(upper.ports[name].psi) for name in names if name in upper.ports}  # psi_Uc
    a, a0, ac = _motion_at(own, compliance, below, loads, upper)
    h = upper.mass @ a0 + upper.force  # (6)
    g = {name: upper.mass @ ac[name] - (upper.ports[name].psi if name in loads else Force.zero())
         for name in names}  # (6)
    ports = {}
    for name in names:
        psi, beta, coupling = lower.ports.get(name, _NOTHING)
        psi = psi - _transposed(own, g[name])  # (9)
        beta = beta - _dot(below[name], _numbers(h))  # (10)
        row = dict(coupling)
        for other in names:
            row[other] = row.get(other, 0.0) - _dot(below[name], _numbers(g[other]))  # (10)
        if name in loads:
            port = upper.ports[name]
            beta = beta + port.value(a0)  # (10)
            for other in names:
                row[other] = row[other] + port.coupling.get(other, 0.0) + ac[other].dot(port.psi)  # (10)
        ports[name] = Response(psi, beta, {other: row[other] for other in names if not idle(row[other])})
    products = [upper.mass @ Motion(*_split(_six(row[j] for row in a))) for j in range(6)]  # P_U A, column by column
    columns = [_numbers(_transposed(own, product)) for product in products]
    mass = lower.mass + _articulated(columns)  # (7)

    def motion(base: Motion, f: Mapping[Port, Number]) -> Iterator[tuple[int, tuple[Number, ...]]]:
        moved = a0 + Motion(*_split(_six(_dot(row, (*base.angular, *base.linear)) for row in a)))
        for name in names:
            if not idle(ac[name]):
                moved = moved + ac[name] * f[name]  # (4)
        needed = upper.mass @ moved + upper.force
        for name in loads:
            needed = needed - upper.ports[name].psi * f[name]  # (1)
        given = _numbers(needed)
        passed = {(at, i): (f[at, i] if keep else 0.0) - given[i] for i in range(6)}
        yield from lower.motion(base, {**f, **passed})
        yield from upper.motion(moved, f)

    return Subassembly(mass, lower.force + _transposed(own, h), ports, motion)  # (8)


def _motion_at(own: Sequence[Response], compliance: Sequence[Six], below: Mapping[Port, Six],
               loads: Mapping[Port, Six], upper: Subassembly) -> tuple[list[Six], Motion, dict[Port, Motion]]:
    """The motion of the link at which pieces meet, (4), (5): A, a_0 and A_c."""
    felt = [_numbers(upper.mass @ Motion(*_split(unit))) for unit in _UNITS]  # P_U, which is symmetric
    matrix = [[_dot(row, felt[j]) + (1.0 if i == j else 0.0) for j in range(6)] for i, row in enumerate(compliance)]
    psi = [_numbers(port.psi) for port in own]
    force = _numbers(upper.force)
    right = [[*psi[i], own[i].beta - _dot(compliance[i], force),
              *(below[name][i] + (_dot(compliance[i], loads[name]) if name in loads else 0.0) for name in below)]
             for i in range(6)]  # (4)
    solved = solve_general(matrix, right)  # (5)
    responses = {name: Motion(*_split(_six(row[7 + k] for row in solved))) for k, name in enumerate(below)}
    return [_six(row[:6]) for row in solved], Motion(*_split(_six(row[6] for row in solved))), responses


# -- six numbers ---------------------------------------------------------------------------------------------------
def _six(values: Iterator[Number] | Sequence[Number]) -> Six:
    a, b, c, d, e, f = values
    return a, b, c, d, e, f


_UNITS = tuple(_six([1.0 if i == j else 0.0 for j in range(6)]) for i in range(6))
_NOTHING = Response(Force.zero(), 0.0, {})


def _numbers(f: Force) -> Six:
    return (*f.moment, *f.force)


def _split(x: Six) -> tuple[Vector, Vector]:
    return Vector(*x[:3]), Vector(*x[3:])


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        if not idle(x) and not idle(y):
            total = total + x * y
    return total


def _transposed(ports: Sequence[Response], load: Force) -> Force:
    """psi_y^T times a force on the link of these six ports."""
    total = Force.zero()
    for port, x in zip(ports, _numbers(load), strict=True):
        if not idle(x):
            total = total + port.psi * x
    return total


def _articulated(m: Sequence[Six]) -> ArticulatedInertia:
    """The inertia of a symmetric matrix."""
    return ArticulatedInertia(Symmetric3(m[0][0], m[0][1], m[0][2], m[1][1], m[1][2], m[2][2]),
                              Matrix3(*(Vector(m[3][i], m[4][i], m[5][i]) for i in range(3))),
                              Symmetric3(m[3][3], m[3][4], m[3][5], m[4][4], m[4][5], m[5][5]))
