"""Which links and joints a loop goes through, and which speeds its constraints meet."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.topology.tree import Tree

__all__ = ["common_ancestor", "jacobian_pattern", "joints_of_loops", "loop_joints", "paths_between"]


def common_ancestor(parent: Sequence[int], a: int, b: int) -> int:
    """The nearest link from which both a and b hang, or which is one of them; parents have smaller numbers."""
    while a != b:
        if a > b:
            a = int(parent[a])
        else:
            b = int(parent[b])
    return a


def paths_between(tree: Tree, a: int, b: int) -> tuple[list[int], list[int]]:
    """The links from a and from b up to their nearest common ancestor, which is left out."""
    top = common_ancestor(tree.parent, a, b)  # type: ignore[arg-type]
    left: list[int] = []
    right: list[int] = []
    for link, path in ((a, left), (b, right)):
        while link != top:
            path.append(link)
            link = int(tree.parent[link])
    return left, right


def loop_joints(tree: Tree, closure: int) -> list[str]:
    """Names of the joints around one loop, the closing one last."""
    c = tree.closures[closure]
    left, right = paths_between(tree, c.first, c.second)
    return [tree.joint_names[k] for k in (*left[::-1], *right)] + [c.name]


def joints_of_loops(tree: Tree) -> frozenset[str]:
    """Names of the joints around all loops and of those that couplers bind."""
    around = [name for i in range(len(tree.closures)) for name in loop_joints(tree, i)]
    return frozenset([*around, *(tree.joint_names[link] for r in tree.relations for link, *_ in r.terms)])


def jacobian_pattern(tree: Tree) -> list[tuple[int, int, int, int, int]]:
    """The entries of the closures' rows, in order: row, speed, side (0 first, 1 second), the link the row acts on
    there, the link the speed moves."""
    out = []
    begin = 0
    for c in tree.closures:
        for side, path in enumerate(paths_between(tree, c.first, c.second)):
            for link in path:
                out += [(row, speed, side, c.second if side else c.first, link)
                        for speed in tree.movers(link) for row in range(begin, begin + c.rows)]
        begin += c.rows
    return out
