"""Coupled loops with a common base body: which links close them, in which order, and where they end.

For recursive coordinate reduction (Anderson and Critchley 2003). All of it is topology, so that what the method covers
is known before any state is. Loops that share joints are *coupled*; coupled loops have one *base*, the body they hang
from. They are placed one after another, each with its own links between the base and at most one body that was placed
before, the *virtual body*. A loop that cannot be placed so is solved together with others, if they form a parallel
manipulator (their 4.2): legs, each on one joint of the base, that end at one end-effector. All else is what their 4.4
leaves open.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache

from bellcrank.errors import ModelError
from bellcrank.topology.tree import Tree

__all__ = ["GROUND", "NOTHING", "LoopSet", "loops_on_bases"]

GROUND, NOTHING = 0, -1


@dataclass(frozen=True)
class LoopSet:
    """Links that are reduced together: one link of a tree, or those of loops with their closures."""

    links: tuple[int, ...]
    closures: tuple[int, ...] = ()
    base: int = GROUND  #: the link they hang from
    virtual: int = NOTHING  #: the link placed before that they hang from or close on, besides the base


def loops_on_bases(tree: Tree) -> tuple[LoopSet, ...]:
    """The links of a machine in sets, those that others depend on first; ModelError if the paper has none for it.

    Cost: linear in the number of joints around all loops, each counted from its base.
    """
    if tree.relations:
        raise uncovered(f"the coupler {tree.relations[0].name!r} binds coordinates without closing a loop of joints")
    # a joint that leaves all six freedoms closes nothing: its ends count as one link
    return _placed(tuple(tree.parent.tolist()), tuple((c.first, c.second if c.rows else c.first)
                                                      for c in tree.closures), tuple(c.name for c in tree.closures))


def uncovered(reason: str) -> ModelError:
    """An error for what the paper leaves open."""
    return ModelError(f"recursive coordinate reduction (Anderson and Critchley 2003, 4.4) does not cover this machine: "
                      f"{reason}; use method='elimination'")


@lru_cache(maxsize=64)
def _placed(parent: tuple[int, ...], ends: tuple[tuple[int, int], ...], names: tuple[str, ...]) -> tuple[LoopSet, ...]:
    sets: list[LoopSet] = []
    for links, closures in _blocks(parent, ends):
        sets += _Block(parent, ends, names, links, closures).place()
    looped = {k for s in sets for k in s.links}
    sets += [LoopSet((k,), base=parent[k]) for k in range(1, len(parent)) if k not in looped]
    return _in_order(sets, parent)


def _chain(parent: tuple[int, ...], link: int, top: int) -> list[int]:
    """The links from one up to another, which is left out."""
    out = []
    while link != top:
        out.append(link)
        link = parent[link]
    return out


# -- coupled loops -------------------------------------------------------------------------------------------------
def _blocks(parent: tuple[int, ...], ends: tuple[tuple[int, int], ...]) -> list[tuple[list[int], list[int]]]:
    """Links whose joints lie in loops that share joints, with the closures of these."""
    root = list(range(len(parent)))

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    paths = [_around(parent, a, b) for a, b in ends]
    for path in paths:
        for link in path[1:]:
            root[find(link)] = find(path[0])
    links: dict[int, list[int]] = defaultdict(list)
    for link in sorted({k for path in paths for k in path}):
        links[find(link)].append(link)
    closures: dict[int, list[int]] = defaultdict(list)
    for c, path in enumerate(paths):
        if path:
            closures[find(path[0])].append(c)
    return [(some, closures[k]) for k, some in links.items()]


def _around(parent: tuple[int, ...], a: int, b: int) -> list[int]:
    """The links whose joints lie between two links; parents have smaller numbers."""
    out = []
    while a != b:
        a, b = max(a, b), min(a, b)
        out.append(a)
        a = parent[a]
    return out


class _Block:
    """Places the loops of one block, those that add fewest links first."""

    def __init__(self, parent: tuple[int, ...], ends: tuple[tuple[int, int], ...], names: tuple[str, ...],
                 links: list[int], closures: list[int]) -> None:
        self.parent, self.ends, self.names, self.links, self.closures = parent, ends, names, links, closures
        inside = set(links)
        (self.base,) = {parent[k] for k in links} - inside
        self.sets: list[LoopSet | None] = []
        self.owner: dict[int, int] = {}
        #: of every loop, the links not placed on its ways to the base; which loops pass a link
        self.waiting = {c: set(_chain(parent, ends[c][0], self.base)) | set(_chain(parent, ends[c][1], self.base))
                        for c in closures}
        self.through: dict[int, list[int]] = defaultdict(list)
        for c, some in self.waiting.items():
            for k in some:
                self.through[k].append(c)

    def place(self) -> list[LoopSet]:
        first = min(self.closures, key=lambda c: (len(self.waiting[c]), c))
        heap, left, unfit = [(len(self.waiting[first]), first)], set(self.closures), list[int]()
        while left:
            if not heap:  # loops that end between others
                self._join(min(unfit, key=lambda c: (len(self.waiting[c]), c)), heap, left)
                unfit = []
                heap += [(len(self.waiting[c]), c) for c in left if self._touched(c)]
                heapq.heapify(heap)
                continue
            size, c = heapq.heappop(heap)
            if c not in left or size != len(self.waiting[c]):
                continue  # done, or found to add fewer links since
            ports = self._ports(c)
            others = ports - {self.base}
            if self.sets and (len(others) > 1 or self.base not in ports):
                unfit.append(c)
                continue
            left.discard(c)
            virtual = others.pop() if others else NOTHING
            new = tuple(sorted(self.waiting[c]))
            if new:
                self._add(LoopSet(new, (c,), self.base, virtual), heap)
            else:  # a second closure between bodies that were placed
                g = self.owner[virtual]
                self.sets[g] = self._with(g, (), c)
        return [s for s in self.sets if s is not None]

    def _touched(self, c: int) -> bool:
        """Whether a loop shares a link with those placed."""
        return any(k in self.owner for end in self.ends[c] for k in _chain(self.parent, end, self.base))

    def _ports(self, c: int) -> set[int]:
        """The placed bodies, or the base, that a loop lies between."""
        out = set()
        for end in self.ends[c]:
            while end != self.base and end not in self.owner:
                end = self.parent[end]
            out.add(end)
        return out

    def _add(self, made: LoopSet, heap: list[tuple[int, int]], at: int | None = None) -> None:
        if at is None:
            at = len(self.sets)
            self.sets.append(made)
        self.sets[at] = made
        for k in made.links:
            if k not in self.owner:
                for c in self.through[k]:
                    self.waiting[c].discard(k)
                    heapq.heappush(heap, (len(self.waiting[c]), c))
            self.owner[k] = at

    def _with(self, g: int, links: tuple[int, ...], closure: int) -> LoopSet:
        own = self.sets[g]
        assert own is not None
        return replace(own, links=tuple(sorted({*own.links, *links})), closures=(*own.closures, closure))

    # -- parallel manipulators ------------------------------------------------------------------
    def _join(self, c: int, heap: list[tuple[int, int]], left: set[int]) -> None:
        """Solve a loop together with those that it ends at."""
        if not self._parallel():
            raise uncovered(f"the loops closed by {self.names[c]!r} and by "
                            f"{self.names[self._neighbour(c)]!r} are coupled and have no common base body")
        ports = self._ports(c)
        joined = {max(self.owner[p] for p in ports if p != self.base)}
        while True:
            mine = {k for g in joined for k in self._set(g).links}
            outside = ({self._set(g).virtual for g in joined} | (ports - {self.base})) - mine - {NOTHING}
            more = {self.owner[p] for p in outside if len(outside) > 1 or self.owner[p] > min(joined)}
            if not more:
                break
            joined |= more
        some = [self._set(g) for g in sorted(joined)]
        links = {k for s in some for k in s.links} | self.waiting[c]
        closures = (*(k for s in some for k in s.closures), c)
        for g in joined:
            self.sets[g] = None
        left.discard(c)
        self._add(LoopSet(tuple(sorted(links)), closures, self.base, outside.pop() if outside else NOTHING), heap,
                  min(joined))

    def _set(self, g: int) -> LoopSet:
        found = self.sets[g]
        assert found is not None
        return found

    def _neighbour(self, c: int) -> int:
        """A loop that was placed and that another ends at."""
        return self._set(self.owner[max(self._ports(c) - {self.base})]).closures[0]

    def _parallel(self) -> bool:
        """Whether the block is legs, trees of bodies on one joint of the base each, that end at one end-effector: then
        that has one joint more than there are loops."""
        edges = [(k, self.parent[k]) for k in self.links] + [self.ends[c] for c in self.closures]
        degree = Counter(k for edge in edges for k in edge)
        return any(self._legs(edges, k) for k in self.links if degree[k] == len(self.closures) + 1)

    def _legs(self, edges: list[tuple[int, int]], effector: int) -> bool:
        """Whether what is left without base and end-effector are such legs."""
        root = {k: k for k in self.links}

        def find(k: int) -> int:
            while root[k] != k:
                k = root[k]
            return k

        for a, b in edges:
            if {a, b}.isdisjoint((self.base, effector)):
                if find(a) == find(b):
                    return False  # a loop within a leg
                root[find(a)] = find(b)
        feet = Counter(find(a if b == self.base else b) for a, b in edges
                       if self.base in (a, b) and effector not in (a, b))
        return all(count == 1 for count in feet.values())


def _in_order(sets: list[LoopSet], parent: tuple[int, ...]) -> tuple[LoopSet, ...]:
    """Sets after those that they hang from or close on, by their first links otherwise."""
    owner = {k: i for i, s in enumerate(sets) for k in s.links}
    after: list[list[int]] = [[] for _ in sets]
    missing = []
    for i, s in enumerate(sets):
        needs = {owner[k] for k in (s.base, s.virtual, *(parent[k] for k in s.links)) if k > GROUND} - {i}
        missing.append(len(needs))
        for j in needs:
            after[j].append(i)
    ready = [(s.links[0], i) for i, s in enumerate(sets) if not missing[i]]
    heapq.heapify(ready)
    out = []
    while ready:
        _, i = heapq.heappop(ready)
        out.append(sets[i])
        for j in after[i]:
            missing[j] -= 1
            if not missing[j]:
                heapq.heappush(ready, (sets[j].links[0], j))
    return tuple(out)
