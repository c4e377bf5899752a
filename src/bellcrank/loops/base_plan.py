"""Plans for recursive coordinate reduction: which speeds of each loop are dependent, from the base outwards.

The groups are the sets of `common_base`, which no state changes. Going outwards, the constraints of a group are
eliminated by complete pivoting over its own speeds, the motions that its virtual body is free to make being known. A
constraint that is left over and forbids none of them is redundant; one that forbids some, as the legs of manipulators
with fewer than six freedoms do, sends its group to join the virtual body's. A plan is made where it is needed and fails
only where the machine is singular. Cost: linear in the number of groups for bounded size.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.common_base import GROUND, NOTHING, loops_on_bases
from bellcrank.loops.constraint_kinematics import LoopKinematics
from bellcrank.loops.plan import GroupDraft, LoopPlan, Pivoting, Planner

__all__ = ["make_base_plan"]

#: motions smaller than this, relative to the largest, are rounding
_ROUNDING = 1e-9


@dataclass
class BaseDraft(GroupDraft):
    """A group as it is put together, with its base and virtual body and what its speeds depend on."""

    base: int = GROUND
    virtual: int = NOTHING
    smallest: float = 1.0
    own: list[int] = field(default_factory=list)
    #: own speeds by independent ones and motions of the virtual body
    follow: Any = None


class BasePlanner(Planner):
    """Groups with a common base body each; see above."""

    drafts: list[BaseDraft]  # type: ignore[assignment]

    def __init__(self, loops: LoopKinematics, entries: Floats, prefer: npt.NDArray[np.bool_], q: Floats, t: float
                 ) -> None:
        super().__init__(loops, entries, prefer)
        self.q, self.t = q, t
        self.known: dict[int, Floats] = {}  # see `_motions`
        starts = loops.starts.tolist()
        self.drafts = []
        for g, made in enumerate(loops_on_bases(self.tree)):
            rows = [r for c in made.closures for r in range(starts[c], starts[c + 1])]
            self.drafts.append(BaseDraft(list(made.links), rows, base=made.base, virtual=made.virtual))
            for link in made.links:
                self.owner[link] = g

    def plan(self) -> LoopPlan:
        g = 0
        while g < len(self.drafts):
            g = self._solve(g)
        self.smallest = min((d.smallest for d in self.drafts), default=1.0)
        used = {r for d in self.drafts for r, _ in d.pivots}
        self.redundant = [r for r in range(self.loops.m) if r not in used and self.loops.uses(r)]
        self._connect()
        plan = self._finish()
        virtual = [d.virtual for d in self.drafts if d.links]
        return replace(plan, groups=tuple(replace(g, virtual=v) for g, v in zip(plan.groups, virtual, strict=True)))

    def _place_loop_joints(self) -> None:
        """A group knows its virtual body alone, not the links around its loops."""

    # -- constraints -----------------------------------------------------------------------------
    def _solve(self, g: int) -> int:
        """Choose a group's dependent speeds; returns the next group to look at."""
        draft = self.drafts[g]
        if not draft.rows:
            return g + 1
        own = draft.own = sorted(v for link in draft.links for v in self.free[link])
        a = self._matrix(draft, own)
        pattern = (a.shape, tuple(tuple(np.flatnonzero(row[:len(own)]).tolist()) for row in a))
        work = Pivoting(a.copy(), len(own), *self._sizes(draft.rows, a), self._favour(own),
                        self.habits.get(pattern, ()))
        if not work.run():
            return self._into_virtual(g)
        draft.pivots = [(draft.rows[i], own[j]) for i, j in work.chosen]
        draft.sizes, draft.smallest = work.sizes, work.smallest
        draft.carried = {v for r, _ in draft.pivots for v in self.rows[r]} - set(own)
        self.habits[pattern] = tuple(work.chosen)
        draft.follow = _followers(a, len(own), work.chosen)
        return g + 1

    def _matrix(self, draft: BaseDraft, own: list[int]) -> Floats:
        """The group's rows on its own speeds, then on the motions of its virtual body."""
        place = {v: i for i, v in enumerate(own)}
        motions = self._motions(draft.virtual)
        a = np.zeros((len(draft.rows), len(own) + motions.shape[1]))
        for i, r in enumerate(draft.rows):
            for v, x in self.rows[r].items():
                if v in place:
                    a[i, place[v]] = x
        if motions.shape[1]:
            a[:, len(own):] = self._toward(draft) @ motions
        return a

    def _into_virtual(self, g: int) -> int:
        """Let a group join that of its virtual body, which is solved again, and all that follow."""
        draft, into = self.drafts[g], self.owner[self.drafts[g].virtual]
        target = self.drafts[into]
        target.links, target.rows = sorted((*target.links, *draft.links)), [*target.rows, *draft.rows]
        for link in draft.links:
            self.owner[link] = into
        self.drafts[g] = BaseDraft([], [])
        self.known = {body: motions for body, motions in self.known.items() if self.owner[body] < into}
        return into

    # -- motions of virtual bodies: lengths are shares of the machine's, speeds and rows are measured by their sizes
    @cached_property
    def _units(self) -> Floats:
        return np.repeat([1.0, self.tree.length], 3)

    @cached_property
    def _screws(self) -> Floats:
        columns = self.loops.run("world_columns", {"q": self.q}, self.t).reshape(self.tree.nu, 6)
        return np.asarray(columns * self.tree.speed_sizes[:, None] / self._units)

    @cached_property
    def _origins(self) -> Floats:
        return self.loops.poses(self.q, self.t)[1] / self.tree.length

    @cached_property
    def _covectors(self) -> tuple[Floats, Floats]:
        """Of the closures' first and second sides, (rows, 6)."""
        rows = self.loops.rows(self.q, None, self.t)
        scale = self._units / self.loops.row_sizes[:self.loops.m_closures, None]
        return rows.first * scale, rows.second * scale

    def _toward(self, draft: BaseDraft) -> Floats:
        """What a group's rows make of its virtual body's motion about that body's origin, (rows, 6)."""
        mine, rows = set(draft.links), np.array(draft.rows)
        of = np.array([self.loops.closure_of_row[r] for r in draft.rows])
        out = np.zeros((len(rows), 6))
        for k in sorted(set(of.tolist())):
            c, some = self.tree.closures[k], of == k
            for end, covectors in zip((c.first, c.second), self._covectors, strict=True):
                link = end
                while link in mine:
                    link = self.parent[link]
                if link == draft.virtual:
                    out[some] += covectors[rows[some]] @ self._shift(link, end)
        return out

    def _shift(self, a: int, b: int) -> Floats:
        """Motions about the origin of one link as they are about another's, (6, 6)."""
        x, y, z = (self._origins[b] - self._origins[a]).tolist()
        out = np.eye(6)
        out[3, 1], out[3, 2], out[4, 0], out[4, 2], out[5, 0], out[5, 1] = z, -y, -z, x, y, -x
        return out

    def _motions(self, body: int) -> Floats:
        """A basis (6, r) of the motions that a placed body can make relative to its base, about its origin."""
        if body == NOTHING:
            return np.zeros((6, 0))
        if body not in self.known:
            self.known[body] = self._make_motions(body)
        return self.known[body]

    def _make_motions(self, body: int) -> Floats:
        draft = self.drafts[self.owner[body]]
        mine, place = set(draft.links), {v: i for i, v in enumerate(draft.own)}
        out = np.zeros((6, draft.follow.shape[1]))
        link = body
        while link in mine:
            if self.free[link]:
                moved = self._shift(link, body) @ self._screws[self.free[link]].T
                out += moved @ draft.follow[[place[v] for v in self.free[link]]]
            link = self.parent[link]
        if link == draft.virtual:
            above = self._motions(link)
            out[:, out.shape[1] - above.shape[1]:] += self._shift(link, body) @ above
        u, sizes, _ = np.linalg.svd(out, full_matrices=False)
        return np.asarray(u[:, sizes > _ROUNDING * max(float(sizes.max(initial=0.0)), 1e-300)])

    def _hangs_from(self, g: int) -> tuple[int, ...]:
        draft = self.drafts[g]
        return (draft.base,) if draft.virtual == NOTHING else (draft.base, draft.virtual)


def _followers(a: Floats, n: int, chosen: list[tuple[int, int]]) -> Floats:
    """All of the first n columns' unknowns by those not chosen and by the other columns', from the chosen rows."""
    rows, bound = [i for i, _ in chosen], [j for _, j in chosen]
    free = [j for j in range(a.shape[1]) if j not in bound]
    out = np.zeros((n, len(free)))
    for k, j in enumerate(free):
        if j < n:
            out[j, k] = 1.0
    if rows:
        out[bound] = -np.linalg.solve(a[np.ix_(rows, bound)], a[np.ix_(rows, free)])
    return out


def make_base_plan(loops: LoopKinematics, q: Floats, t: float = 0.0, prefer: npt.ArrayLike | None = None) -> LoopPlan:
    """A plan whose pivots are good at q. `prefer` marks speeds that shall stay independent where possible."""
    wanted = np.zeros(loops.tree.nu, dtype=bool) if prefer is None else np.asarray(prefer, dtype=bool)
    return BasePlanner(loops, loops.linearized(q, t)[1], wanted, q, t).plan()
