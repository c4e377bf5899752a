"""Spatial operators as objects: products are evaluated by recursion in O(n), never as matrices.

The operators of Rodriguez, Jain & Kreutz (see `operator` for the citation), for one configuration. A stacked
vector of the paper is an array of shape (links, 6), [angular; linear] in link axes, or (speeds,). ``A @ B`` composes,
``A @ x`` applies, ``A.T`` is the adjoint (the paper's star), sums and differences work as they read:

    mass = o.H @ o.phi @ o.M @ o.phi.T @ o.H.T                                  (2.11)
    factor = o.one + o.H @ o.phi @ o.K                                          (3.4)
    inverse = (o.one - o.H @ o.psi @ o.K).T @ o.D.inverse @ (o.one - o.H @ o.psi @ o.K)   (3.6)

Links are numbered from the base (row k of a stacked vector is link k + 1 of the tree).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.formulations.operator.linear_operator import BlockDiagonal, Operator, Space
from bellcrank.formulations.operator.tree_recursion import Articulation, inward_articulation
from bellcrank.lowering.link import Link
from bellcrank.schedule.sweeps import Direct
from bellcrank.spatial import ArticulatedInertia, Force, Motion, Vector

__all__ = ["SpatialOperators"]


class SpatialOperators:
    """All operators of a tree in one configuration; made by `bellcrank.analyze.operators`. Prescribed speeds have no
    column in H, so their entries of speed vectors are ignored and zero."""

    def __init__(self, sweeps: Direct, origin: Callable[[str, Sequence[float]], tuple[int, Floats]]) -> None:
        self._sweeps, self._origin = sweeps, origin
        self.links: Space = ("link vectors", (len(sweeps.parent) - 1, 6))
        self.speeds: Space = ("speeds", (sweeps.size,))
        #: the identity on speeds, and on link vectors
        self.one = Operator("I", self.speeds, self.speeds, _same, _same)
        self.one_links = Operator("I", self.links, self.links, _same, _same)

    # -- sweeps on stacked vectors ----------------------------------------------------------------
    def _inward(self, step: Callable[..., Any], x: Floats) -> Floats:
        field = [None, *(_force(row) for row in x)]
        kept, _ = self._sweeps.inward(step, field, self._articulation, zero=Force.zero())
        return _stack(kept)

    def _outward(self, step: Callable[..., Any], x: Floats) -> Floats:
        field = [None, *(_motion(row) for row in x)]
        return _stack(self._sweeps.outward(step, field, self._articulation, root=Motion.zero()))

    @cached_property
    def _articulation(self) -> list[Articulation]:
        """P, D and G of every link by (A.1)."""
        kept, _ = self._sweeps.inward(inward_articulation, zero=ArticulatedInertia.zero())
        return kept  # type: ignore[no-any-return]

    def _link_operator(self, name: str, inward: Callable[..., Any], outward: Callable[..., Any]) -> Operator:
        return Operator(name, self.links, self.links, lambda x: self._inward(inward, x),
                        lambda v: self._outward(outward, v))

    def _views(self) -> list[tuple[int, Link, list[int]]]:
        """Row, link, and the indices of its free speeds."""
        s = self._sweeps
        found = []
        for k, view in enumerate(s.views):
            if view is not None:
                link: Link = view
                found.append((k - 1, link, [s.slots[k] + i for i, driven in enumerate(link.mask) if not driven]))
        return found

    # -- (2.3)-(2.5) ------------------------------------------------------------------------------
    @cached_property
    def E_phi(self) -> Operator:
        """(E_phi x)(k) = sum over the links j that k carries of phi(k, j) x(j), (2.3), (2.7)."""
        return self._link_operator("E_phi", _shift_inward, _shift_outward)

    @cached_property
    def phi(self) -> Operator:
        """(I - E_phi)^-1, (2.4): the transformation of composite bodies."""
        return self._link_operator("phi", _sum_inward, _sum_outward)

    @cached_property
    def H(self) -> Operator:
        """Link forces to joint forces; H* takes joint speeds to relative velocities, (2.3)."""
        def apply(f: Floats) -> Floats:
            out = np.zeros(self.speeds[1])
            for row, link, indices in self._views():
                out[indices] = [c.dot(_force(f[row])) for c in _free(link)]
            return out

        def adjoint(beta: Floats) -> Floats:
            out = np.zeros(self.links[1])
            for row, link, indices in self._views():
                for column, i in zip(_free(link), indices, strict=True):
                    out[row] += beta[i] * _row(column)
            return out

        return Operator("H", self.links, self.speeds, apply, adjoint)

    def _inertia_operator(self, name: str, inertia: Callable[[int], Any]) -> Operator:
        def apply(a: Floats) -> Floats:
            return np.array([_row(inertia(k) @ _motion(row)) for k, row in enumerate(a)]).reshape(self.links[1])

        return Operator(name, self.links, self.links, apply, apply)

    @cached_property
    def M(self) -> Operator:
        """Inertias of the links, (2.3)."""
        return self._inertia_operator("M", lambda k: self._sweeps.views[k + 1].inertia)

    # -- (3.1)-(3.3) ------------------------------------------------------------------------------
    @cached_property
    def P(self) -> Operator:
        """Articulated body inertias, (3.1)."""
        return self._inertia_operator("P", lambda k: self._articulation[k + 1].p)

    @cached_property
    def D(self) -> BlockDiagonal:
        """H P H*, (3.2), plus the inertias of rotors."""
        return BlockDiagonal("D", self.speeds, [
            (indices, np.array(self._articulation[row + 1].d, dtype=float).reshape(len(indices), len(indices)))
            for row, _, indices in self._views() if indices])

    @cached_property
    def G(self) -> Operator:
        """P H* D^-1, (3.2)."""
        def apply(e: Floats) -> Floats:
            out = np.zeros(self.links[1])
            for row, _, indices in self._views():
                for g, i in zip(self._articulation[row + 1].gain, indices, strict=True):
                    out[row] += e[i] * _row(g)
            return out

        def adjoint(a: Floats) -> Floats:
            out = np.zeros(self.speeds[1])
            for row, _, indices in self._views():
                out[indices] = [_motion(a[row]).dot(g) for g in self._articulation[row + 1].gain]
            return out

        return Operator("G", self.speeds, self.links, apply, adjoint)

    @cached_property
    def K(self) -> Operator:
        """E_phi G, (3.2)."""
        product: Operator = self.E_phi @ self.G
        return product

    @cached_property
    def tau(self) -> Operator:
        """G H, (3.2)."""
        product: Operator = self.G @ self.H
        return product

    @cached_property
    def tau_bar(self) -> Operator:
        """I - tau, (3.2)."""
        return self.one_links - self.tau

    @cached_property
    def E_psi(self) -> Operator:
        """E_phi taubar, (3.2)."""
        product: Operator = self.E_phi @ self.tau_bar
        return product

    @cached_property
    def psi(self) -> Operator:
        """(I - E_psi)^-1, (3.3): the transformation of articulated bodies."""
        return self._link_operator("psi", _psi_inward, _psi_outward)

    # -- the mass operator ------------------------------------------------------------------------
    @cached_property
    def mass(self) -> Operator:
        """H phi M phi* H*, (2.11), plus the inertias of rotors."""
        product: Operator = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T
        return product + self.rotors if self._sweeps.world.rotors else product

    @cached_property
    def rotors(self) -> BlockDiagonal:
        """Inertias of the rotors (armatures) felt at the joints."""
        return BlockDiagonal("rotors", self.speeds, [
            (indices, np.diag([float(a) for a, driven in zip(link.armature, link.mask, strict=True) if not driven]))
            for _, link, indices in self._views() if indices])

    @cached_property
    def mass_inverse(self) -> Operator:
        """[I - H psi K]* D^-1 [I - H psi K], (3.6): O(n) times a vector."""
        factor = self.one - self.H @ self.psi @ self.K
        product: Operator = factor.T @ self.D.inverse @ factor
        return product

    # -- points: (2.13), (2.14), (3.10) -----------------------------------------------------------
    def B(self, points: Sequence[tuple[str, Sequence[float]]]) -> Operator:
        """Forces at points (body, position in its frame) to link forces, (2.13); world axes at the points."""
        places = [self._origin(body, at) for body, at in points]
        space: Space = ("point vectors", (len(points), 6))

        def apply(f: Floats) -> Floats:
            out = np.zeros(self.links[1])
            for (link, carrier), row in zip(places, f, strict=True):
                if link:
                    out[link - 1] += carrier.T @ row
            return out

        def adjoint(v: Floats) -> Floats:
            return np.array([carrier @ v[link - 1] if link else np.zeros(6) for link, carrier in places]
                            ).reshape(space[1])

        return Operator("B", space, self.links, apply, adjoint)

    def jacobian(self, points: Sequence[tuple[str, Sequence[float]]]) -> Operator:
        """J = B* phi* H*, (2.14): speeds to velocities of points, [angular; linear] in world axes."""
        product: Operator = self.B(points).T @ self.phi.T @ self.H.T
        return product

    @cached_property
    def _psi_blocks(self) -> list[Floats]:
        """psi(parent, k), a 6x6 matrix for every link."""
        blocks = [np.zeros((6, 6))]
        for row, link, _ in self._views():
            taubar = np.eye(6)
            for column, g in zip(_free(link), self._articulation[row + 1].gain, strict=True):
                taubar -= np.outer(_row(g), _row(column))
            phi = np.stack([_row(_carried(link, _force(e))) for e in np.eye(6)], axis=-1)
            blocks.append(phi @ taubar)
        return blocks

    @cached_property
    def upsilon(self) -> list[Floats]:
        """Diagonal blocks of Omega by (A.5): Y(k) = psi* Y(parent) psi + H* D^-1 H; entry 0 is the ground's."""
        blocks = [np.zeros((6, 6))]
        for row, link, indices in self._views():
            k = row + 1
            psi = self._psi_blocks[k]
            h = np.array([_row(c) for c in _free(link)]).reshape(len(indices), 6)
            d = np.array(self._articulation[k].d, dtype=float).reshape(len(indices), len(indices))
            own = h.T @ np.linalg.solve(d, h) if len(indices) else np.zeros((6, 6))
            blocks.append(psi.T @ blocks[self._sweeps.parent[k]] @ psi + own)
        return blocks

    def omega(self, i: int, j: int) -> Floats:
        """Omega(i, j) = psi*(c, i) Y(c) psi(c, j), c the nearest common ancestor of links i and j. Cost: O(n)."""
        up = self._sweeps.parent
        left, right = np.eye(6), np.eye(6)
        while i != j:
            if i > j:  # parents come before their children
                left, i = self._psi_blocks[i] @ left, up[i]
            else:
                right, j = self._psi_blocks[j] @ right, up[j]
        return np.asarray(left.T @ self.upsilon[i] @ right)

    def admittance(self, points: Sequence[tuple[str, Sequence[float]]]) -> Floats:
        """Lambda = J M^-1 J* = B* Omega B, (3.10): the operational-space admittance, shape (6m, 6m), world axes.

        O(n) for each pair of points.
        """
        places = [self._origin(body, at) for body, at in points]
        m = len(points)
        out = np.zeros((6 * m, 6 * m))
        for a, (i, left) in enumerate(places):
            for b, (j, right) in enumerate(places[:a + 1]):
                if i and j:
                    block = left @ self.omega(i, j) @ right.T
                    out[6 * a:6 * a + 6, 6 * b:6 * b + 6] = block
                    out[6 * b:6 * b + 6, 6 * a:6 * a + 6] = block.T
        return out


def _same(x: Floats) -> Floats:
    return x.copy()


def _row(v: Motion | Force) -> Floats:
    return np.array([float(x) for part in v for x in part])


def _force(row: Floats) -> Force:
    return Force(Vector(*row[:3].tolist()), Vector(*row[3:].tolist()))


def _motion(row: Floats) -> Motion:
    return Motion(Vector(*row[:3].tolist()), Vector(*row[3:].tolist()))


def _stack(kept: Sequence[Any]) -> Floats:
    return np.array([_row(v) for v in kept[1:]])


def _free(link: Link) -> list[Motion]:
    return [c for c, driven in zip(link.columns, link.mask, strict=True) if not driven]


def _carried(link: Link, f: Force) -> Force:
    """phi(parent, k) f."""
    for t in reversed(link.transforms):
        f = t.force(f)
    return f


def _seen(link: Link, v: Motion) -> Motion:
    """phi*(parent, k) v."""
    for t in link.transforms:
        v = t.velocity(v)
    return v


# -- steps: inward on forces, outward on motions -------------------------------------------------------------------
def _shift_inward(link: Link, upper: Force, x: Force, own: Articulation) -> tuple[Force, Force]:
    return _carried(link, x), upper


def _shift_outward(link: Link, parent: Motion, v: Motion, own: Articulation) -> tuple[Motion, Motion]:
    return v, _seen(link, parent)


def _sum_inward(link: Link, upper: Force, x: Force, own: Articulation) -> tuple[Force, Force]:
    y = upper + x
    return _carried(link, y), y


def _sum_outward(link: Link, parent: Motion, v: Motion, own: Articulation) -> tuple[Motion, Motion]:
    total = _seen(link, parent) + v
    return total, total


def _psi_inward(link: Link, upper: Force, x: Force, own: Articulation) -> tuple[Force, Force]:
    y = upper + x
    passed = y
    for column, g in zip(_free(link), own.gain, strict=True):
        passed = passed - g * column.dot(y)  # taubar = I - G H
    return _carried(link, passed), y


def _psi_outward(link: Link, parent: Motion, v: Motion, own: Articulation) -> tuple[Motion, Motion]:
    seen = _seen(link, parent)
    total = seen
    for column, g in zip(_free(link), own.gain, strict=True):
        total = total - column * seen.dot(g)  # taubar* = I - H* G*
    total = total + v
    return total, total
