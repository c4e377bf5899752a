"""The spanning tree of a mechanism: which joint carries which body, and which joints close loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    touching: list[list[int]] = [[] for _ in range(n)]
    for index, record in enumerate(joints):
        touching[record.parent].append(index)
        touching[record.child].append(index)
    parent, inboard, backwards = [-1] * n, [-1] * n, [False] * n
    seen = [False] * n
    seen[0] = True
    used = [False] * len(joints)
    order: list[int] = []
    stack = [(0, iter(touching[0]))]
    while stack:
        body, edges = stack[-1]
        index = next(edges, None)
        if index is None:
            stack.pop()
            continue
        if used[index]:
            continue
        record = joints[index]
        other = record.child if record.parent == body else record.parent
        if seen[other]:
            continue
        used[index] = seen[other] = True
        parent[other], inboard[other], backwards[other] = body, index, record.parent != body
        order.append(other)
        stack.append((other, iter(touching[other])))
    if len(order) < n - 1:
        lost = [b.name for b in mechanism.bodies if not seen[b.index]]
        shown = ", ".join(repr(x) for x in lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise ModelError(f"mechanism {mechanism.name!r}: no joints lead from the ground to {shown}; connect them "
                         "(a floating base is connected to the ground by bellcrank.Free())")
    closing = tuple(i for i, u in enumerate(used) if not u)
    return Topology(tuple(order), tuple(parent), tuple(inboard), tuple(backwards), closing)
