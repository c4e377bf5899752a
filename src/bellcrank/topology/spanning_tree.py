"""The spanning tree of a mechanism: which joint carries which body, and which joints close loops.

Loops are found ear by ear. An *ear* is a path of bodies not yet placed between two bodies that are; the shortest
one is placed next, and one of its joints is cut. If an ear hangs between two different bodies it is cut at the
deeper one, so that its bodies hang from the other: the loops of ladders, nets and chains of cells then stay short,
however long the machine is. A ring that hangs from one body is cut at the joint that leaves most freedom (fewest
constraints), at the last one added if several do.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.deformation import HeldNode, Modal, NodeMotion
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["Step", "Topology", "spanning_tree"]


@dataclass(frozen=True)
class Step:
    """Bodies placed together, and the joints that close loops when they are."""

    bodies: tuple[int, ...]
    closing: tuple[int, ...]


@dataclass(frozen=True)
class Topology:
    """Bodies in an order in which parents precede children."""

    #: indices of the bodies (ground excluded), parents first
    order: tuple[int, ...]
    #: for every body index, its parent's index and its inboard joint's index (-1 for the ground)
    parent: tuple[int, ...]
    joint: tuple[int, ...]
    #: whether the inboard joint was given from the body towards its parent
    backwards: tuple[bool, ...]
    #: joints that close loops
    closing: tuple[int, ...]
    #: how the bodies were placed; empty for a tree
    steps: tuple[Step, ...] = ()
    #: why each closing joint was cut
    reasons: tuple[str, ...] = ()


def spanning_tree(mechanism: Mechanism, cut: Sequence[str] = (), keep: Sequence[str] = ()) -> Topology:
    """Walk the graph from the ground. Cost: O(bodies + joints) for trees, O(n log n) with short loops.

    `cut` names joints that shall close loops instead of carrying a body, `keep` those that shall not if possible.
    """
    joints = mechanism.joints
    free = mechanism.open_at_start
    cut = (*_names(cut), *(r.name for r in joints if r.name in free))  # these carry nothing
    n = len(mechanism.bodies) + 1
    first, second = [r.parent for r in joints], [r.child for r in joints]
    if len(joints) <= n - 1 and not cut:
        return _depth_first(mechanism, first, second, n)
    forbidden = _cut_indices(mechanism, cut)
    ears = _Ears(mechanism, first, second, n, forbidden, keep)
    ears.place_all()
    if len(ears.order) < n - 1:
        lost = [b.name for b in mechanism.bodies if ears.inboard[b.index] < 0]
        raise ModelError(_lost(mechanism, lost) + (
            f"; cutting {', '.join(repr(c) for c in cut)} may have separated them" if cut else ""))
    for index in forbidden:  # loops the user cut close last
        ears.steps.append(Step((), (index,)))
    closing = tuple(sorted(c for s in ears.steps for c in s.closing))
    reasons = tuple(ears.reason.get(c, "open at the start" if joints[c].name in free else "as asked for")
                    for c in closing)
    return Topology(tuple(ears.order), tuple(ears.parent), tuple(ears.inboard), tuple(ears.backwards), closing,
                    tuple(ears.steps), reasons)


def _names(cut: Sequence[str]) -> Sequence[str]:
    if isinstance(cut, str):
        raise ModelError(f"cut: give a sequence of joint names, not the text {cut!r}")
    return cut


def _cut_indices(mechanism: Mechanism, cut: Sequence[str]) -> list[int]:
    index = {r.name: i for i, r in enumerate(mechanism.joints)}
    for name in cut:
        mechanism.joint(name)
        if mechanism.joint(name).prescribed is not None:
            raise ModelError(f"cut: joint {name!r} follows a prescribed motion and cannot be cut")
    return [index[name] for name in dict.fromkeys(cut)]


def _lost(mechanism: Mechanism, lost: list[str]) -> str:
    shown = ", ".join(repr(x) for x in lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
    return (f"mechanism {mechanism.name!r}: no joints lead from the ground to {shown}; connect them "
            "(a floating base is connected to the ground by bellcrank.Free())")


def _depth_first(mechanism: Mechanism, first: list[int], second: list[int], n: int) -> Topology:
    """A tree (or less): bodies depth first, joints as they were added."""
    edges, start = _incidence(first, second, n)
    parent, inboard, backwards = [-1] * n, [-1] * n, [False] * n
    used = [False] * len(first)
    order: list[int] = []
    at = start[:n]  # the next edge of each body to look at
    stack = [0]
    while stack:
        body = stack[-1]
        if at[body] == start[body + 1]:
            stack.pop()
            continue
        index = edges[at[body]]
        at[body] += 1
        if used[index]:
            continue
        other = second[index] if first[index] == body else first[index]
        if other == 0 or inboard[other] >= 0:
            continue
        used[index] = True
        parent[other], inboard[other], backwards[other] = body, index, first[index] != body
        order.append(other)
        stack.append(other)
    if len(order) < n - 1:
        raise ModelError(_lost(mechanism, [b.name for b in mechanism.bodies if inboard[b.index] < 0]))
    return Topology(tuple(order), tuple(parent), tuple(inboard), tuple(backwards), ())


def _incidence(first: list[int], second: list[int], n: int) -> tuple[list[int], list[int]]:
    """The joints that touch each body, as one list with the places where each body's part starts."""
    m = len(first)
    bodies = np.array([*first, *second], dtype=np.int64)
    joints = np.concatenate([np.arange(m), np.arange(m)])
    order = np.lexsort((joints, bodies))
    counts = np.bincount(bodies, minlength=n) if m else np.zeros(n, dtype=np.int64)
    return joints[order].tolist(), [0, *np.cumsum(counts).tolist()]


#: joints that must not be cut
_NEVER = 1000


class _Ears:
    """Places bodies ear by ear, the shortest first, looking no further from placed bodies than needed."""

    def __init__(self, mechanism: Mechanism, first: list[int], second: list[int], n: int, forbidden: Sequence[int],
                 keep: Sequence[str]) -> None:
        self.first, self.second, self.n = first, second, n
        records = mechanism.joints
        coupled, driven = {joint for c in mechanism.couplers for joint, _, _ in c.terms}, set(keep)
        #: constraints a joint imposes when it is cut; driven, coupled and prescribed joints are cut last, in this order
        self.rows = [_NEVER if r.prescribed is not None else 500 if r.name in coupled else 99 if r.name in driven
                     else 6 - r.joint.nu for r in records]
        self.names = [r.name for r in records]
        #: what leads from the frame of a flexible body to its nodes, and not back
        self.one_way = {i for i, r in enumerate(records)
                        if isinstance(r.joint, (Modal, NodeMotion)) and not isinstance(r.joint, HeldNode)}
        self.edges: list[list[int]] = [[] for _ in range(n)]
        gone = set(forbidden)
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            if i not in gone:
                self.edges[a].append(i)
                self.edges[b].append(i)
        self.parent, self.inboard, self.backwards = [-1] * n, [-1] * n, [False] * n
        self.depth = [0] * n
        self.placed = [False] * n
        self.used = [False] * len(first)
        self.order: list[int] = []
        self.steps: list[Step] = []
        self.heap: list[tuple[int, int, int]] = []  # (bodies to place, what: -1 look around, else edge, body)
        self.reason: dict[int, str] = {}
        self.away = [n] * n  # bodies to place to reach this one, itself included
        self.back = [-1] * n  # the edge that leads back

    def other(self, edge: int, body: int) -> int:
        return self.second[edge] if self.first[edge] == body else self.first[edge]

    def place_all(self) -> None:
        twigs = self._prune()
        self._place(0)
        while self.heap:
            size, edge, body = heapq.heappop(self.heap)
            if edge < 0:
                self._look_around(body, size)
            elif not self.used[edge]:
                self._close(edge, size)
        for twig in reversed(twigs):
            carrier = [e for e in self.edges[twig] if self.placed[self.other(e, twig)]]
            if carrier:
                self._attach([twig], carrier[:1], self.other(carrier[0], twig))
                self.steps.append(Step((twig,), ()))
                self.placed[twig] = True

    def _prune(self) -> list[int]:
        """Bodies that are in no loop and lead to none, outermost first; they are placed last."""
        degree = [len(e) for e in self.edges]
        gone = [False] * self.n
        queue = deque(b for b in range(1, self.n) if degree[b] <= 1)
        twigs = []
        while queue:
            body = queue.popleft()
            if gone[body] or degree[body] > 1:
                continue
            gone[body] = True
            twigs.append(body)
            for e in self.edges[body]:
                y = self.other(e, body)
                if not gone[y]:
                    degree[y] -= 1
                    if y and degree[y] <= 1:
                        queue.append(y)
        self.twig = gone
        return twigs

    def _place(self, body: int) -> None:
        self.placed[body] = True
        self.away[body] = 0
        heapq.heappush(self.heap, (0, -1, body))

    def _look_around(self, body: int, size: int) -> None:
        away = self.away[body]
        if size != max(0, 2 * away - 1):
            return  # found a shorter way since
        for edge in self.edges[body]:
            if self.used[edge] or (edge == self.back[body] and away):
                continue
            y = self.other(edge, body)
            if self.twig[y]:
                continue
            if not self.placed[y] and self.away[y] > away + 1:
                self.away[y], self.back[y] = away + 1, edge
                heapq.heappush(self.heap, (2 * away + 1, -1, y))
            elif self.back[y] != edge or self.placed[y]:
                heapq.heappush(self.heap, (away + self.away[y], edge, body))

    def _way_back(self, body: int) -> tuple[list[int], list[int], int]:
        """Bodies not placed from `body` back to a placed one, the edges after each, and that one."""
        bodies, edges = [], []
        while not self.placed[body]:
            bodies.append(body)
            edges.append(self.back[body])
            body = self.other(self.back[body], body)
        return bodies, edges, body

    def _close(self, edge: int, size: int) -> None:
        x, y = self.first[edge], self.second[edge]
        left, left_edges, start = self._way_back(x)
        right, right_edges, end = self._way_back(y)
        if edge in left_edges or edge in right_edges:
            return  # it has become part of a way
        common = set(left) & set(right)
        if common:  # a ring that hangs from a body not placed: place the stem first
            stem = [b for b in left if b in common]
            for body in reversed(stem):
                self._attach([body], [self.back[body]], self.other(self.back[body], body))
                self.steps.append(Step((body,), ()))
                self._place(body)
            heapq.heappush(self.heap, (len(left) + len(right) - 2 * len(common), edge, x))
            return
        if len(left) + len(right) > size:
            heapq.heappush(self.heap, (len(left) + len(right), edge, x))
            return
        path = [*reversed(left), *right]
        edges = [*reversed(left_edges), edge, *right_edges]
        cut, why = self._cut(edges, start, end)
        self.reason[edges[cut]] = why
        self._attach(path[:cut], edges[:cut], start)
        self._attach(path[cut:][::-1], edges[cut + 1:][::-1], end)
        self.used[edges[cut]] = True
        self.steps.append(Step(tuple(path[:cut] + path[cut:][::-1]), (edges[cut],)))
        for body in path:
            self._place(body)

    def _cut(self, edges: list[int], start: int, end: int) -> tuple[int, str]:
        """Which edge of an ear to cut, and why."""
        def cost(i: int) -> tuple[int, int]:
            return self.rows[edges[i]], -edges[i]

        last = len(edges) - 1
        some = self._possible(edges, start)
        if start != end and last > 0:
            ends = [i for i in (0, last) if self.rows[edges[i]] < 99 and i in some]
            if len(ends) == 2 and self.depth[start] != self.depth[end]:
                return (0 if self.depth[start] > self.depth[end] else last,
                        "at the deeper end of what the loop adds, which keeps all loops short")
            if ends:
                return min(ends, key=cost), "at an end of what the loop adds, which keeps all loops short"
        best = min(some, key=cost)
        if self.rows[edges[best]] == _NEVER:
            around = ", ".join(repr(self.names[e]) for e in edges)
            raise ModelError(f"the joints {around} close a loop, but all of them follow prescribed motions; leave one "
                             "free")
        return best, f"leaves fewest constraints of its loop ({self.rows[edges[best]]})"

    def _possible(self, edges: list[int], start: int) -> list[int]:
        """The edges of an ear that can be cut: flexible bodies must be reached by their frames."""
        first, last, body = 0, len(edges) - 1, start
        for i, edge in enumerate(edges):
            if edge in self.one_way:
                if self.first[edge] == body:
                    first = i + 1
                else:
                    last = min(last, i - 1)
            body = self.other(edge, body)
        if first > last:
            name = next(self.names[e] for e in edges if e in self.one_way).partition(".")[0]
            raise ModelError(f"the flexible body {name!r} is reached by nodes from both sides of a loop: let its frame "
                             "float, by bellcrank.Free() between the ground and the body, or write its modes with the "
                             "frame held at one of the nodes")
        return list(range(first, last + 1))

    def _attach(self, bodies: Sequence[int], edges: Sequence[int], to: int) -> None:
        for body, edge in zip(bodies, edges, strict=True):
            self.parent[body], self.inboard[body] = to, edge
            self.backwards[body] = self.first[edge] != to
            self.depth[body] = self.depth[to] + 1
            self.used[edge] = True
            self.order.append(body)
            to = body
