"""Primary and secondary systems: the steps of a closed chain one by one, for machines whose loops come and go.

G. Rodriguez, A. Jain and K. Kreutz (see `operator` for the citation), sections 2.3 and 3. Equation numbers are
the paper's. The primary system (arms) does not change, the secondary one (what they hold) is small, and the closures
between and within them (grasps) change often. A change of closures touches step (D) and what follows it only.
`closed_chains` is the same method in a form that can be compiled; this is for looking at its parts, on numbers.

| paper | here |
|---|---|
| M_P, M_S, That_P, That_S (2.15) | `Half`: the links and speeds of trees that share only the ground |
| A_P, A_S (2.16), U (2.17) | ``Half.a``, ``Partition.right`` |
| betadot^f, alphatilde^f, Lambda, f, betadot^e, betadot | `step_a`, `step_b`, `step_c`, `step_d`, `step_e`, `step_f` |
| (3.11), and the two formulas that follow it | `step_d`, `step_d_small` |
| (3.13) | `closed_form` |

Declared deviations
- Points of closure are the origins of the links that closures act on, in link axes: then B only selects, and A has the
  shifts. A link with several closures is one point. Speeds with couplers are further points, of one number each.
- Rows that depend on others are left out, their f is zero: the paper assumes full rank.
- (3.13) with b = D^-1/2 H psi B A* (printed without D^-1/2), and with the term of U that the paper takes to be zero.
- Prescribed speeds have no column in H: their accelerations are in U, and zero in the results.

Cost: O(n) for (A), (B), (E), (F); O(k^2 n) for (C) with k points; O(m^3) for (D), or O(m_P^3 + nu_S^3) as
`step_d_small`, where the cube of m_P falls to blocks if the closures on the primary system do not influence each other.

Two arms hold a crate by ball joints; then one lets go:

>>> import numpy as np
>>> import bellcrank as bc
>>> m = bc.Mechanism("grasp")
>>> crate = m.add_body("crate", bc.Inertia.box(2.0, (0.4, 0.2, 0.2)))
>>> _ = m.add_joint("crate", bc.Free(), m.ground, crate, at=(0.0, 0.0, 0.0))
>>> for name, side in (("left", -1.0), ("right", 1.0)):
...     last = m.ground
...     for i, axis in enumerate("zyy"):
...         link = m.add_body(f"{name}{i}", bc.Inertia.box(1.0, (0.1, 0.1, 0.1), (side, 0.0, 0.1 * i)))
...         _ = m.add_joint(f"{name}{i}", bc.Revolute(axis), last, link, at=(side, 0.0, 0.3 * i - 0.5))
...         last = link
...     _ = m.add_joint(f"{name} grip", bc.Spherical(), last, crate, at=(0.2 * side, 0.0, 0.0))
>>> system = bc.compile(m, "operator", cut=["left grip", "right grip"])
>>> q, u = system.assemble(u=np.linspace(-1.0, 1.0, system.nu))
>>> grasp = bc.analyze.partition(system, q, u, secondary=["crate"])
>>> bool(np.allclose(grasp.step_f(), system.forward_dynamics(q, u)))
True
>>> dropped = grasp.with_constraints(["left grip"])
>>> dropped.step_c() is grasp.step_c(), len(grasp.step_d()), len(dropped.step_d())
(True, 6, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, SingularError, hint
from bellcrank.formulations.operator.linear_operator import BlockDiagonal, Operator
from bellcrank.formulations.operator.operators import SpatialOperators
from bellcrank.topology.tree import Tree

__all__ = ["FreeHalves", "Half", "Pair", "Partition", "Rows"]

#: a pivot of A Lambda A* this small, relative to what rounding is relative to, means that the row is redundant
_DEPENDENT = 1e-12


class Rows(Protocol):
    """Rows of closures on the motions of their links' origins, world axes: shape (m, 6) each; `slopes` are the factors
    of couplers, term by term."""

    @property
    def first(self) -> Floats: ...
    @property
    def second(self) -> Floats: ...
    @property
    def slopes(self) -> Floats: ...


class Pair(NamedTuple):
    """Something of the primary and of the secondary system."""

    primary: Floats
    secondary: Floats


class Half(NamedTuple):
    """One of the two systems: the points that rows look at, its free speeds, and its part of A."""

    links: list[int]  #: points: rows of stacked link vectors
    coupled: list[int]  #: points: speeds
    speeds: list[int]  #: free speeds
    a: Floats  #: A_P or A_S, (m, 6 links + coupled)

    def measure(self, alpha: Floats, betadot: Floats) -> Floats:
        """Accelerations at the points."""
        return np.concatenate([alpha[self.links].ravel(), betadot[self.coupled]])

    def widest(self, a: Floats) -> Floats:
        """A with every entry as large as the largest at its point."""
        cut = 6 * len(self.links)
        largest = abs(a[:, :cut]).reshape(len(a), len(self.links), 6).max(axis=2)
        return np.concatenate([np.repeat(largest, 6, axis=1), abs(a[:, cut:])], axis=1)

    def spread(self, f: Floats, o: SpatialOperators) -> tuple[Floats, Floats]:
        """B f: forces at the points as link forces and joint forces."""
        wrench, joint = np.zeros(o.links[1]), np.zeros(o.speeds[1])
        cut = 6 * len(self.links)
        wrench[self.links] = f[:cut].reshape(-1, 6)
        joint[self.coupled] = f[cut:]
        return wrench, joint


class FreeHalves:
    """Steps (A)-(C), which depend on the closures only by where they act; computed once."""

    def __init__(self, operators: SpatialOperators, force: Floats, halves: tuple[Half, Half]) -> None:
        self.operators, self.force, self.halves = operators, force, halves

    @cached_property
    def factor(self) -> Operator:
        """I - H psi K, (3.5)."""
        o = self.operators
        difference: Operator = o.one - o.H @ o.psi @ o.K
        return difference

    def own_force(self, half: Half) -> Floats:
        """That_P or That_S, (2.15)."""
        out = np.zeros_like(self.force)
        out[half.speeds] = self.force[half.speeds]
        return out

    @cached_property
    def accelerations(self) -> Pair:
        """(A): betadot^f = M^-1 That, (3.7)."""
        return Pair(*(self.operators.mass_inverse @ self.own_force(half) for half in self.halves))

    @cached_property
    def points(self) -> Pair:
        """(B): alphatilde^f = B* alphahat^f, alphahat^f = psi* H* D^-1 [I - H psi K] That, (3.8), (3.9)."""
        o = self.operators
        seen = o.psi.T @ o.H.T @ o.D.inverse @ self.factor
        return Pair(*(half.measure(seen @ self.own_force(half), free)
                      for half, free in zip(self.halves, self.accelerations, strict=True)))

    @cached_property
    def admittances(self) -> Pair:
        """(C): Lambda = B* Omega B, (3.10), block by block from Upsilon; couplers' columns by (3.6)."""
        return Pair(*(self._admittance(half) for half in self.halves))

    def _admittance(self, half: Half) -> Floats:
        o, size = self.operators, 6 * len(half.links)
        out = np.zeros((size + len(half.coupled),) * 2)
        for i, k in enumerate(half.links):
            for j, m in enumerate(half.links):
                out[6 * i:6 * i + 6, 6 * j:6 * j + 6] = o.omega(k + 1, m + 1)
        for i, speed in enumerate(half.coupled, size):
            betadot = o.mass_inverse @ _unit(o.speeds[1][0], speed)
            out[:, i] = out[i, :] = half.measure(o.phi.T @ (o.H.T @ betadot), betadot)
        return out


class Partition:
    """A closed chain in one state, divided into a primary and a secondary system and the closures in force.

    `force` is tau less the bias, `rows` and `right` (U) are those of all closures and couplers, `axes` the links'
    rotation matrices, ground first. `secondary` names bodies: all that hangs from the ground with them is secondary.
    `complete` adds the accelerations of loop joints to those of the joints that carry links.
    """

    def __init__(self, tree: Tree, operators: SpatialOperators, force: npt.ArrayLike, rows: Rows, axes: npt.ArrayLike,
                 right: npt.ArrayLike, *, secondary: Collection[str],
                 complete: Callable[[Floats], Floats] | None = None) -> None:
        a, factors, self.names = _conditions(tree, rows, np.asarray(axes, dtype=float))
        second = _secondary_links(tree, secondary)
        halves = tuple(_half(tree, operators, a, factors, [k for k in range(1, tree.n + 1) if (k in second) == which])
                       for which in (False, True))
        self.free = FreeHalves(operators, np.asarray(force, dtype=float), (halves[0], halves[1]))
        self._right, self._complete = np.asarray(right, dtype=float), complete
        self.active = list(range(len(self.names)))

    def with_constraints(self, kept: Collection[str]) -> Partition:
        """The same state with only the closures and couplers of these names in force; (A)-(C) are shared."""
        for name in kept:
            if name not in self.names:
                raise ModelError(f"no closure {name!r}; there are {', '.join(dict.fromkeys(self.names))}")
        other = object.__new__(Partition)
        other.free, other.names, other._right, other._complete = self.free, self.names, self._right, self._complete
        other.active = [r for r, name in enumerate(self.names) if name in set(kept)]
        return other

    # -- step by step ---------------------------------------------------------------------------
    def step_a(self) -> Pair:
        """betadot^f: accelerations without closures, all speeds, zero in the other system. (3.7)"""
        return self.free.accelerations

    def step_b(self) -> Pair:
        """alphatilde^f: their effect at the points of closure. (3.8)"""
        return self.free.points

    def step_c(self) -> Pair:
        """Lambda_P, Lambda_S: admittances at the points of closure. (3.10)"""
        return self.free.admittances

    @cached_property
    def a(self) -> Pair:
        """A_P and A_S of the closures in force, (2.16)."""
        return Pair(*(half.a[self.active] for half in self.free.halves))

    @cached_property
    def right(self) -> Floats:
        """U of the closures in force, (2.17)."""
        return self._right[self.active]

    @cached_property
    def _reflected(self) -> Pair:
        """A_P Lambda_P A_P*, A_S Lambda_S A_S*."""
        return Pair(*(a @ admittance @ a.T for a, admittance in zip(self.a, self.step_c(), strict=True)))

    @cached_property
    def _sizes(self) -> Pair:
        """Diagonals of `_reflected` if nothing cancelled and A had no zeros: what rounding is relative to."""
        return Pair(*(((w @ abs(admittance)) * w).sum(axis=1) for w, admittance in
                      zip(map(Half.widest, self.free.halves, self.a), self.step_c(), strict=True)))

    @cached_property
    def independent(self) -> list[int]:
        """Those of the active rows that are independent."""
        return _independent(self._reflected.primary + self._reflected.secondary,
                            self._sizes.primary + self._sizes.secondary)

    def _seen(self, which: int) -> Floats:
        return np.asarray(self.a[which] @ self.step_b()[which])

    def step_d(self) -> Floats:
        """f of (3.11), one number for every active row; the library's multipliers are -f."""
        matrix = self._reflected.primary + self._reflected.secondary
        some = self.independent
        out = np.zeros(len(self.active))
        seen = self._seen(0) + self._seen(1) - self.right
        out[some] = np.linalg.solve(matrix[np.ix_(some, some)], seen[some])  # (3.11)
        return out

    def step_d_small(self) -> Floats:
        """f for a small secondary system: betadot_S first, then f. Needs an invertible A_P Lambda_P A_P*."""
        return self.secondary_first()[1]

    def secondary_first(self) -> tuple[Floats, Floats]:
        """betadot_S (of its free speeds) and f by the two formulas at the end of step (D)."""
        some, half, o = self.independent, self.free.halves[1], self.free.operators
        stiff = self._reflected.primary[np.ix_(some, some)]  # A_P Lambda_P A_P*
        if len(_independent(stiff, self._sizes.primary[some])) < len(some):
            raise SingularError("step_d_small: some closures do not act on the primary system, or depend on each other "
                                "there; use step_d, or move bodies from the secondary to the primary system")
        units = [_unit(o.speeds[1][0], i) for i in half.speeds]
        mass = np.array([(o.mass @ e)[half.speeds] for e in units]).reshape(len(units), len(units))  # M_S
        j = np.array([half.measure(o.phi.T @ (o.H.T @ e), e) for e in units]).reshape(len(units), half.a.shape[1]).T
        aj = self.a.secondary[some] @ j  # A_S J_S
        rest = (self._seen(0) - self.right)[some]
        force = self.free.force[half.speeds]
        betadot = np.linalg.solve(mass + aj.T @ np.linalg.solve(stiff, aj), force - aj.T @ np.linalg.solve(stiff, rest))
        out = np.zeros(len(self.active))
        out[some] = np.linalg.solve(stiff, rest + aj @ betadot)
        return betadot, out

    def step_e(self, f: npt.ArrayLike | None = None) -> Pair:
        """betadot^e = -[I - H psi K]* D^-1 H psi B A* f, (3.12); f as `step_d` gives it unless given."""
        given = self.step_d() if f is None else np.asarray(f, dtype=float)
        back = self.free.factor.T @ self.free.operators.D.inverse
        return Pair(*(-(back @ self._loaded(half, a.T @ given)) for half, a in
                      zip(self.free.halves, self.a, strict=True)))

    def _loaded(self, half: Half, f: Floats) -> Floats:
        """[I - H psi K] J* f = H psi B f by lemma 4, (3.9); forces along joints have no such short cut."""
        o = self.free.operators
        wrench, joint = half.spread(f, o)
        through: Floats = o.H @ (o.psi @ wrench)
        return through + self.free.factor @ joint if half.coupled else through

    def step_f(self) -> Floats:
        """betadot = betadot^f + betadot^e, all speeds."""
        a, e = self.step_a(), self.step_e()
        return self._whole(a.primary + a.secondary + e.primary + e.secondary)

    def _whole(self, udot: Floats) -> Floats:
        """Accelerations of all joints from those of the joints that carry links."""
        return udot if self._complete is None else self._complete(udot)

    def closed_form(self) -> Floats:
        """betadot in one expression, (3.13), both systems as one. Cost: O(m n + m^3)."""
        some, free = self.independent, self.free
        root = _inverse_root(free.operators.D)  # D^-1/2
        columns = [sum((self._loaded(half, a[r]) for half, a in zip(free.halves, self.a, strict=True)),
                       np.zeros_like(free.force)) for r in some]
        b = np.array([root @ c for c in columns]).reshape(len(some), len(free.force)).T  # D^-1/2 H psi B A*
        x = root @ (free.factor @ free.force)
        inner = x - b @ np.linalg.solve(b.T @ b, b.T @ x - self.right[some])  # A Lambda A* = b* b
        result: Floats = free.factor.T @ (root @ inner)
        return self._whole(result)


# -- taking the description apart -----------------------------------------------------------------------------------
def _unit(n: int, i: int) -> Floats:
    e = np.zeros(n)
    e[i] = 1.0
    return e


def _conditions(tree: Tree, rows: Rows, axes: Floats) -> tuple[Floats, Floats, list[str]]:
    """Rows on link motions in link axes (m, links, 6), on speeds (m, nu), and the name of each row's closure."""
    names = [c.name for c in tree.closures for _ in range(c.rows)] + [r.name for r in tree.relations]
    a, factors = np.zeros((len(names), tree.n + 1, 6)), np.zeros((len(names), tree.nu))
    at = 0
    for c in tree.closures:
        for link, row in ((c.first, rows.first), (c.second, rows.second)):
            mine = row[at:at + c.rows].reshape(c.rows, 2, 3) @ axes[link]  # world to link axes
            a[at:at + c.rows, link] += mine.reshape(c.rows, 6)
        at += c.rows
    slopes = iter(rows.slopes)
    for k, relation in enumerate(tree.relations):
        for link, i, _ in relation.terms:
            factors[at + k, int(tree.u_start[link]) + i] += next(slopes)
    return a[:, 1:], factors, names


def _secondary_links(tree: Tree, bodies: Collection[str]) -> set[int]:
    """The links of all trees on the ground that one of the bodies belongs to."""
    roots = set()
    for name in bodies:
        if name not in tree.body_names[1:]:
            raise ModelError(f"secondary: no body {name!r} in {tree.name!r}{hint(name, tree.body_names[1:])}")
        roots.add(_root(tree, int(tree.body_link[tree.body_names.index(name)])))
    if 0 in roots:
        raise ModelError("secondary: a body that is part of the ground belongs to neither system")
    return {k for k in range(1, tree.n + 1) if _root(tree, k) in roots}


def _root(tree: Tree, link: int) -> int:
    while tree.parent[link] > 0:
        link = int(tree.parent[link])
    return link


def _half(tree: Tree, o: SpatialOperators, a: Floats, factors: Floats, links: Sequence[int]) -> Half:
    mine = {int(tree.u_start[k]) + i for k in links for i in range(getattr(tree.joints[k], "nu", 0))}
    speeds = sorted(i for rows, _ in o.D.blocks for i in rows if i in mine)
    points = [k - 1 for k in links if a[:, k - 1].any()]
    coupled = [i for i in speeds if factors[:, i].any()]
    return Half(points, coupled, speeds, np.concatenate([a[:, points].reshape(len(a), -1), factors[:, coupled]], 1))


def _independent(matrix: Floats, size: Floats) -> list[int]:
    """Rows of a symmetric, positive semidefinite matrix that do not depend on rows before them."""
    chosen: list[int] = []
    lower = np.zeros_like(matrix)
    for i in range(len(matrix)):
        left = matrix[i, i]
        row: list[float] = []
        for n, j in enumerate(chosen):
            row.append(float((matrix[i, j] - np.dot(row, lower[j, :n])) / lower[j, n]))
        left = left - np.dot(row, row)
        if left > _DEPENDENT * size[i]:
            lower[i, :len(row)] = row
            lower[i, len(row)] = np.sqrt(left)
            chosen.append(i)
    return chosen


def _inverse_root(d: BlockDiagonal) -> BlockDiagonal:
    blocks = []
    for rows, block in d.blocks:
        size, turn = np.linalg.eigh(block)
        blocks.append((rows, np.asarray(turn / np.sqrt(size) @ turn.T)))
    return BlockDiagonal("D^-1/2", d.domain, blocks)
