"""The spanning tree of a mechanism: which joint carries which body, and which joints close loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.mechanism import Connection, Mechanism

__all__ = ["Topology", "spanning_tree"]


@dataclass(frozen=True)
class Topology:
    """Bodies in an order in which parents precede children (depth first, joints as they were added)."""

    #: indices of the bodies (ground excluded), parents first
    order: tuple[int, ...]
    #: for every body index, its parent's index and its inboard joint's index (-1 for the ground)
    parent: tuple[int, ...]
    joint: tuple[int, ...]
    #: whether the inboard joint was given from the body towards its parent
    backwards: tuple[bool, ...]
    #: joints that close loops
    closing: tuple[int, ...]


def spanning_tree(mechanism: Mechanism) -> Topology:
    """Walk the graph from the ground. Cost: O(bodies + joints)."""
    joints: Sequence[Connection] = mechanism.joints
    n = len(mechanism.bodies) + 1
    first, second = [r.parent for r in joints], [r.child for r in joints]
    edges, start = _incidence(first, second, n)
    parent, inboard, backwards = [-1] * n, [-1] * n, [False] * n
    used = [False] * len(joints)
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
        lost = [b.name for b in mechanism.bodies if inboard[b.index] < 0]
        shown = ", ".join(repr(x) for x in lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise ModelError(f"mechanism {mechanism.name!r}: no joints lead from the ground to {shown}; connect them "
                         "(a floating base is connected to the ground by bellcrank.Free())")
    closing = tuple(i for i, u in enumerate(used) if not u)
    return Topology(tuple(order), tuple(parent), tuple(inboard), tuple(backwards), closing)


def _incidence(first: list[int], second: list[int], n: int) -> tuple[list[int], list[int]]:
    """The joints that touch each body, as one list with the places where each body's part starts."""
    m = len(first)
    bodies = np.array([*first, *second], dtype=np.int64)
    joints = np.concatenate([np.arange(m), np.arange(m)])
    order = np.lexsort((joints, bodies))
    counts = np.bincount(bodies, minlength=n) if m else np.zeros(n, dtype=np.int64)
    return joints[order].tolist(), [0, *np.cumsum(counts).tolist()]
