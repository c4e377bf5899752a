"""Taking a machine with loops apart: which constraints are independent, which speeds they determine, in which groups.

Groups start as the ears found by the topology. Going from the last ear placed to the first, the constraints of a
group are eliminated by complete pivoting over its own speeds. A constraint that is left over and reaches no other
speed is redundant; one that reaches speeds of groups placed before sends its group to join theirs. What comes out is
a tree of groups, each of which can solve its own constraints once the speeds it carries are known. Cost: linear in
the number of groups for bounded size and coupling.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.constraint_kinematics import LoopKinematics
from bellcrank.loops.loop_paths import common_ancestor, paths_between

__all__ = ["Group", "GroupDraft", "LoopPlan", "Pivoting", "Planner", "make_plan", "pivots_above"]

#: a pivot smaller than this, relative to its row, is none
NOTHING = 1e-7
#: a row that is smaller than this part of the largest of its closure is measured by that
_FLOOR = 1e-4
#: one smaller than this costs digits
_SMALL = 0.03
#: what groups alike did is done again if it is no worse than this, relative to the best
_HABIT = 0.2
#: scores whose relative difference is smaller are equal
_TIE = 1e-9

Place = tuple[int, int]


@dataclass(frozen=True)
class Group:
    """Links that are eliminated together: one link of a tree, or the links of an ear with its closures.

    Groups are numbered so that parents precede children. All numbers of links, rows and speeds are global.
    """

    links: tuple[int, ...]  #: ascending: parents first
    parent: int  #: the group that hears from it, -1 for none
    reference: int  #: the link it finally acts on
    rows: tuple[int, ...]  #: constraints solved here, in the order of their pivots
    dependent: tuple[int, ...]  #: the speed each row is solved for
    sizes: tuple[float, ...]  #: how large each pivot was when the plan was made
    independent: tuple[int, ...]  #: own speeds left to the dynamics
    carried: tuple[int, ...]  #: speeds of groups further in that its constraints involve
    closures: tuple[int, ...]  #: closures that have rows here
    joints: tuple[int, ...] = ()  #: loop joints whose motion is told here, by their numbers in the tree
    #: the link of another group that it hangs from or closes on, besides its reference; see `loops.common_base`
    virtual: int = -1


class PlanKey:
    """What tells plans apart: all that the code made for a plan depends on. Hashed once, compared as a whole."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: object) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PlanKey) and self._hash == other._hash
                                 and self._parts == other._parts)


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """The groups of a machine, and which of its constraints are independent. Equal `key`s mean the same code."""

    groups: tuple[Group, ...]
    kept: tuple[int, ...]  #: independent constraints
    #: constraints that follow from the others, without those that are dropped (`drawing_tolerance`)
    redundant: tuple[int, ...]
    independent: tuple[int, ...]  #: speeds that remain free
    smallest: float = 1.0  #: the smallest pivot met when the plan was made, relative to its row
    baumgarte: tuple[float, float] = field(default=(0.0, 0.0))
    #: for each independent constraint, what its compliance must exceed: below, it vanishes in this position
    floors: tuple[float, ...] = ()
    #: links of a secondary system, whose accelerations "operator" solves for before the constraint forces
    secondary: tuple[int, ...] = ()
    #: speeds that constraints on speeds alone are solved for: their displacements remain free
    slipping: tuple[int, ...] = ()

    @cached_property
    def placed(self) -> tuple[int, ...]:
        """Speeds whose displacements determine the position: the independent ones, and those that nothing but
        constraints on speeds alone determine."""
        return (*self.independent, *self.slipping)

    @cached_property
    def of_positions(self) -> LoopPlan:
        """The same without constraints on speeds alone: how displacements follow those of `placed`. These constraints
        are the last that a group solves, so that the others are solved as before."""
        if not self.slipping:
            return self
        groups = []
        for g in self.groups:
            n = sum(v not in self.slipping for v in g.dependent)
            groups.append(replace(g, rows=g.rows[:n], dependent=g.dependent[:n], sizes=g.sizes[:n],
                                  independent=(*g.independent, *g.dependent[n:])))
        return replace(self, groups=tuple(groups), kept=tuple(sorted(r for g in groups for r in g.rows)),
                       independent=self.placed, floors=(), slipping=())

    @cached_property
    def key(self) -> PlanKey:
        """What tells plans apart."""
        return PlanKey(self.groups, self.kept, self.redundant, self.baumgarte, self.floors, self.secondary)

    def renumbered(self, numbers: Sequence[int]) -> LoopPlan:
        """The plan of the same machine whose link i has the number ``numbers[i]``, speeds and constraints as they
        are."""
        groups = tuple(replace(g, links=tuple(sorted(numbers[i] for i in g.links)), reference=numbers[g.reference],
                               virtual=g.virtual if g.virtual < 0 else numbers[g.virtual]) for g in self.groups)
        return replace(self, groups=groups, secondary=tuple(numbers[i] for i in self.secondary))


@dataclass
class GroupDraft:
    """A group as it is put together."""

    links: list[int]
    rows: list[int]
    pivots: list[tuple[int, int]] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)
    joints: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    reference: int = 0


class Planner:
    """Takes a machine apart at one position; `entries` are those of its Jacobian."""

    def __init__(self, loops: LoopKinematics, entries: Floats, prefer: npt.NDArray[np.bool_],
                 nothing: float = NOTHING, floor: float = _FLOOR) -> None:
        self.loops, self.tree, self.prefer, self.nothing, self.floor = loops, loops.tree, prefer, nothing, floor
        tree = self.tree
        self.parent = tree.parent.tolist()
        self.u_start = tree.u_start.tolist()
        self.drafts = [GroupDraft(list(s.links), [r for c in s.closures for r in
                                              range(int(loops.starts[c]), int(loops.starts[c + 1]))])
                       for s in tree.steps]
        self.owner = [-1] * (tree.n + 1)  # group of each link
        for g, draft in enumerate(self.drafts):
            for link in draft.links:
                self.owner[link] = g
        self.link_of_speed = [0] * tree.nu
        prescribed = tree.prescribed_speeds()
        self.free: list[list[int]] = [[] for _ in range(tree.n + 1)]
        for link in range(1, tree.n + 1):
            joint = tree.joints[link]
            assert joint is not None
            for v in range(self.u_start[link], self.u_start[link] + joint.nu):
                self.link_of_speed[v] = link
                if not prescribed[v]:
                    self.free[link].append(v)
        self.rows: dict[int, dict[int, float]] = defaultdict(dict)
        scaled = (entries * loops.tree.speed_sizes[loops.all_vars] / loops.row_sizes[loops.all_rows]).tolist()
        for r, v, x in zip(loops.all_rows.tolist(), loops.all_vars.tolist(), scaled, strict=True):
            self.rows[r][v] = self.rows[r].get(v, 0.0) + x
        for k in range(len(tree.relations)):
            r = loops.m_closures + k
            last = max((self.group_of(v) for v in self.rows[r]), default=0)
            self.drafts[last].rows.append(r)
        self.redundant: list[int] = []
        self.habits: dict[Any, tuple[Place, ...]] = {}
        self.smallest = 1.0

    def group_of(self, speed: int) -> int:
        return self.owner[self.link_of_speed[speed]]

    def plan(self) -> LoopPlan:
        for g in range(len(self.drafts) - 1, -1, -1):
            if self.drafts[g].links or self.drafts[g].rows:
                self._eliminate(g)
        self._connect()
        return self._finish()

    # -- constraints -----------------------------------------------------------------------------
    def _eliminate(self, g: int) -> None:
        draft = self.drafts[g]
        if not draft.rows:
            return
        own = sorted(v for link in draft.links for v in self.free[link])
        others = sorted({v for r in draft.rows for v in self.rows[r]} - set(own))
        place = {v: i for i, v in enumerate((*own, *others))}
        a = np.zeros((len(draft.rows), len(place)))
        for i, r in enumerate(draft.rows):
            for v, x in self.rows[r].items():
                a[i, place[v]] = x
        pattern = (len(own), tuple(tuple(sorted(place[v] for v in self.rows[r])) for r in draft.rows))
        work = Pivoting(a, len(own), *self._sizes(draft.rows, a), self._favour(own), self.habits.get(pattern, ()),
                        self.nothing)
        if not work.run():  # all speeds count here, also those whose entries vanish in this position
            self._join(g, max(self.group_of(v) for v in others))
            return
        draft.pivots = [(draft.rows[i], own[j]) for i, j in work.chosen]
        draft.sizes = work.sizes
        used = {r for r, _ in draft.pivots}
        self.redundant += [r for r in draft.rows if r not in used and self.loops.uses(r)]
        self.habits[pattern] = tuple(work.chosen)
        draft.carried |= {v for r in used for v in self.rows[r]} - set(own)
        self.smallest = min(self.smallest, work.smallest)

    def _favour(self, own: list[int]) -> Floats:
        """Speeds that shall stay independent are the last choice; joints on the ground, which usually have the drives,
        are if there are other pivots of their size."""
        near = np.array([0.3 if self.parent[self.link_of_speed[v]] == 0 else 1.0 for v in own])
        return near * np.where(self.prefer[own], 1e-3, 1.0) if own else np.ones(0)

    def _sizes(self, rows: list[int], a: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Size of every row, the largest among the rows of its closure, and which are on positions. A row that nearly
        vanishes is measured by the others."""
        own = np.abs(a).max(axis=1, initial=0.0)
        of = [self.loops.closure_of_row[r] if r < self.loops.m_closures else -1 - r for r in rows]
        largest: dict[int, float] = {}
        for c, x in zip(of, own.tolist(), strict=True):
            largest[c] = max(x, largest.get(c, 0.0))
        whole = np.array([largest[c] for c in of])
        size = np.where(own > 0.0, np.maximum(own, self.floor * whole), 0.0)
        return size, whole, self.loops.on_positions[rows]

    def _join(self, g: int, other: int) -> None:
        """Make one group of two: the one further out joins the other, which is solved when its turn comes, or again."""
        if other < g:
            self._merge(g, other)
        else:
            self._merge(other, g)
            self._eliminate(g)

    def _merge(self, g: int, into: int) -> None:
        """Let a group join an earlier one, with all groups its links hang from that lie between."""
        gone = [g]
        while gone:
            k = gone.pop()
            draft, target = self.drafts[k], self.drafts[into]
            target.links += draft.links
            target.rows += draft.rows
            for link in draft.links:
                self.owner[link] = into
            self.drafts[k] = GroupDraft([], [])
            between = {self.owner[self.parent[link]] for link in target.links if self.parent[link]}
            gone += [h for h in between if h > into]

    # -- the tree of groups ---------------------------------------------------------------------
    def _connect(self) -> None:
        self.up = [-1] * len(self.drafts)
        self._place_loop_joints()
        for g in range(len(self.drafts) - 1, -1, -1):
            draft = self.drafts[g]
            if not draft.links:
                continue
            mine = set(draft.links)
            own = {v for link in mine for v in self.free[link]}
            draft.carried |= {v for link in mine for v in self._moving(link)} - own  # nodes move by others' speeds
            ends = {self.parent[link] for link in mine if self.parent[link] not in mine} | {*self._hangs_from(g)}
            for r, _ in draft.pivots:
                if r < self.loops.m_closures:
                    closure = self.tree.closures[self.loops.closure_of_row[r]]
                    top = common_ancestor(self.parent, closure.first, closure.second)
                    if top not in mine:
                        ends.add(top)
            for j in draft.joints:
                closure = self.tree.loop_joints[j].closure
                around = [k for path in paths_between(self.tree, closure.first, closure.second) for k in path]
                draft.carried |= {v for link in around for v in self._moving(link)} - own
                if (top := common_ancestor(self.parent, closure.first, closure.second)) not in mine:
                    ends.add(top)
            for c in draft.children:
                child = self.drafts[c]
                draft.carried |= child.carried - own
                if child.reference not in mine:
                    ends.add(child.reference)
            reference = min(ends)
            for end in ends:
                reference = common_ancestor(self.parent, reference, end)
            draft.reference = reference
            for end in ends:  # what lies on the way there moves what the group acts on
                while end != reference:
                    if end not in mine:
                        draft.carried |= {*self.free[end], *self._moving(end)}
                    end = self.parent[end]
            up = max((self.group_of(v) for v in draft.carried), default=-1)
            if reference:  # whoever holds the reference passes on what is carried further
                up = max(up, self.owner[reference])
            up = max(up, *(self.owner[link] for link in self._hangs_from(g)), -1)
            self.up[g] = up
            if up >= 0:
                self.drafts[up].children.append(g)

    def _place_loop_joints(self) -> None:
        """Let loop joints be measured by the group that has their constraints, or that holds the last link."""
        of_row = {r: g for g, draft in enumerate(self.drafts) for r in draft.rows if draft.links}
        row_of = {c.name: int(self.loops.starts[k]) for k, c in enumerate(self.tree.closures) if c.rows}
        for j, joint in enumerate(self.tree.loop_joints):
            last = max(self.owner[joint.closure.first], self.owner[joint.closure.second])
            self.drafts[of_row.get(row_of.get(joint.name, -1), last)].joints.append(j)

    def _moving(self, link: int) -> list[int]:
        """The free speeds that move a link relative to its parent."""
        return [v for v in self.tree.movers(link) if v in self.free[self.link_of_speed[v]]]

    def _hangs_from(self, g: int) -> tuple[int, ...]:
        """Links that a group acts on, besides what its own links and constraints say."""
        return ()

    def _finish(self) -> LoopPlan:
        index = {g: i for i, g in enumerate(k for k, d in enumerate(self.drafts) if d.links)}
        index[-1] = -1
        groups = []
        for g, draft in enumerate(self.drafts):
            if not draft.links:
                continue
            rows, dependent = [r for r, _ in draft.pivots], [v for _, v in draft.pivots]
            taken = set(dependent)
            independent = [v for link in sorted(draft.links) for v in self.free[link] if v not in taken]
            closures = sorted({self.loops.closure_of_row[r] for r in rows if r < self.loops.m_closures})
            coarse = (4.0 ** math.floor(math.log(x, 4.0)) for x in draft.sizes)  # so that plans can be shared
            sizes = tuple(float(x * self.loops.row_sizes[r] / self.tree.speed_sizes[v])
                          for x, (r, v) in zip(coarse, draft.pivots, strict=True))
            groups.append(Group(tuple(sorted(draft.links)), index[self.up[g]], draft.reference, tuple(rows),
                                tuple(dependent), sizes, tuple(independent), tuple(sorted(draft.carried)),
                                tuple(closures), tuple(draft.joints)))
        kept = sorted(r for d in self.drafts for r, _ in d.pivots)
        return LoopPlan(tuple(groups), tuple(kept), tuple(sorted(self.redundant)),
                        tuple(sorted(v for g in groups for v in g.independent)), self.smallest,
                        slipping=tuple(sorted(v for d in self.drafts for r, v in d.pivots
                                              if not self.loops.on_positions[r])))


def make_plan(loops: LoopKinematics, q: Floats, t: float = 0.0, prefer: npt.ArrayLike | None = None) -> LoopPlan:
    """A plan whose pivots are good at q. `prefer` marks speeds that shall stay independent where possible."""
    entries = loops.linearized(q, t)[1]
    wanted = np.zeros(loops.tree.nu, dtype=bool) if prefer is None else np.asarray(prefer, dtype=bool)
    return Planner(loops, entries, wanted).plan()


def pivots_above(loops: LoopKinematics, q: Floats, t: float, nothing: float) -> LoopPlan:
    """A plan at q for which pivots below `nothing`, as a share of the machine's length or in radians per radian, are
    zero: its redundant constraints follow from the others."""
    entries = loops.linearized(q, t)[1]
    return Planner(loops, entries, np.zeros(loops.tree.nu, dtype=bool), nothing, 1.0).plan()


class Pivoting:
    """Complete pivoting of a group's constraints over its own speeds, with a preference for some pivots.

    It eliminates in place: rows are constraints, the first `n` columns own speeds, the others speeds of other groups.

    `size` and `whole` are the sizes of the rows, by themselves and among those of their closure; constraints that are
    `on_positions` come first, so that what others have in common with them is kept at positions; `favour` measures the
    own speeds. `habit` lists the pivots that groups alike chose: regular machines get regular code.
    """

    def __init__(self, a: Floats, n: int, size: Floats, whole: Floats, on_positions: npt.NDArray[np.bool_],
                 favour: Floats, habit: tuple[Place, ...], nothing: float = NOTHING) -> None:
        self.a, self.n, self.size, self.favour, self.habit, self.nothing = a, n, size, favour, habit, nothing
        # of constraints that depend on each other, the one with the largest row is solved
        self.weight = np.abs(a).max(axis=1, initial=0.0) / np.where(whole > 0.0, whole, 1.0)
        self.rest = [i for i in range(len(a)) if size[i] > 1e-12]
        self.stages = [[i for i in self.rest if on_positions[i] == first] for first in (True, False)]
        self.waiting: list[int] = []  #: those of the rest whose turn has come
        self.columns = list(range(n))
        self.chosen: list[Place] = []  #: row and column of every pivot
        self.sizes: list[float] = []
        self.smallest = 1.0  #: relative to the pivots' rows

    def run(self) -> bool:
        """Choose until constraints or speeds run out. False if speeds of other groups are needed, or are better."""
        for rows in self.stages:
            self.waiting += rows
            if not self._choose():
                return False
        return all(np.abs(self.a[i, self.n:]).max(initial=0.0) <= self.nothing * self.size[i] for i in self.waiting)

    def _choose(self) -> bool:
        """The same for the rows that are waiting."""
        while self.waiting and self.columns:
            block = np.abs(self.a[np.ix_(self.waiting, self.columns)]) / self.size[self.waiting][:, None]
            score = block * self.weight[self.waiting][:, None]
            best = _largest(score * self.favour[self.columns])
            if block[best] < _SMALL:
                best = _largest(score)
                if block[best] < self.nothing:
                    break
                if block[best] < _SMALL and self._elsewhere() > 10.0 * block[best]:
                    return False
            self._take(*self._customary(block, score, best))
        return True

    def _elsewhere(self) -> float:
        """The largest pivot that the speeds of other groups offer."""
        rest = np.abs(self.a[self.waiting][:, self.n:]).max(axis=1, initial=0.0) / self.size[self.waiting]
        return float(rest.max())

    def _customary(self, block: Floats, score: Floats, best: Place) -> Place:
        """The best pivot, or the habitual one if that is nearly as good."""
        i, j = self.waiting[best[0]], self.columns[best[1]]
        if len(self.chosen) < len(self.habit):
            row, column = self.habit[len(self.chosen)]
            if row in self.waiting and column in self.columns:
                there = self.waiting.index(row), self.columns.index(column)
                enough = _HABIT * score[best] * self.favour[j]
                if score[there] * self.favour[column] > enough and block[there] > _SMALL:
                    return row, column
        return i, j

    def _take(self, i: int, j: int) -> None:
        """Eliminate speed j by constraint i."""
        a = self.a
        self.chosen.append((i, j))
        self.sizes.append(abs(float(a[i, j])))
        self.smallest = min(self.smallest, float(abs(a[i, j]) / self.size[i]))
        self.waiting.remove(i)
        self.rest.remove(i)
        self.columns.remove(j)
        if self.rest:
            a[self.rest] -= np.outer(a[self.rest, j] / a[i, j], a[i])


def _largest(score: Floats) -> Place:
    """The first of those that are the largest but for rounding, so that the last bits decide nothing."""
    i, j = np.unravel_index(int(np.argmax(score >= (1.0 - _TIE) * score.max())), score.shape)
    return int(i), int(j)
