"""Is a machine a parallel platform? Its legs, from the graph of links, tree joints and closures.

Links that are in no loop are set aside. In what remains every link of a parallel platform joins two others, only the
ground and the platform may join more; each way from the ground then is a leg that ends at the platform. A single ring
through the ground leaves the choice: with one independent speed it is one leg from the ground to the ground, else
two legs, with the platform where each of them has an independent speed.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.topology.tree import Tree

__all__ = ["Leg", "LegSpeed", "Legs", "platform_of"]


class LegSpeed(NamedTuple):
    """One joint speed on the way from the ground to the platform."""

    link: int  #: the link its joint carries in the tree
    number: int  #: its place in the joint
    sign: float  #: -1 where the way goes from the child to the parent


class Leg(NamedTuple):
    """A serial chain from the ground to the platform."""

    speeds: tuple[LegSpeed, ...]
    links: tuple[int, ...]  #: its links before the cut, or before the platform
    closure: int  #: where it is cut; -1 for the leg that carries the platform
    forward: bool  #: whether the cut is passed from its first to its second link


class Legs(NamedTuple):
    """A parallel platform."""

    platform: int  #: 0 for a ring seen as one leg from the ground to the ground
    legs: tuple[Leg, ...]


class _Graph:
    """Links, tree joints and closures, without what is in no loop."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        parent = tree.parent.tolist()
        #: (link, link, closure or -1); tree joints go from parent to child
        self.edges = [(parent[k], k, -1) for k in range(1, tree.n + 1)] \
            + [(c.first, c.second, i) for i, c in enumerate(tree.closures)]
        around: list[set[int]] = [set() for _ in range(tree.n + 1)]
        for e, (a, b, _) in enumerate(self.edges):
            around[a].add(e)
            around[b].add(e)
        loose = [k for k in range(1, tree.n + 1) if len(around[k]) == 1]
        while loose:
            link = loose.pop()
            for e in around[link]:
                other = self.other(e, link)
                around[other].discard(e)
                if other and len(around[other]) == 1:
                    loose.append(other)
            around[link] = set()
        self.around = around

    def other(self, edge: int, link: int) -> int:
        a, b, _ = self.edges[edge]
        return b if a == link else a

    def names(self, links: list[int]) -> str:
        return ", ".join(repr(self.tree.link_names[k]) for k in links[:3]) + (" and others" if len(links) > 3 else "")

    def legs(self, platform: int) -> list[list[tuple[int, int]]] | str:
        """The ways from the ground, as edges and the links they lead to; all links but the two ends join two others."""
        seen = {0, platform}
        ways = []
        for start in sorted(self.around[0]):
            edge, at = start, self.other(start, 0)
            way = [(edge, at)]
            while at not in (0, platform):
                seen.add(at)
                (edge,) = self.around[at] - {edge}
                at = self.other(edge, at)
                way.append((edge, at))
            if at != platform:
                return f"the loop of {self.names([k for _, k in way[:-1]])} does not reach the platform " \
                    f"{self.tree.link_names[platform]!r}"
            ways.append(way)
        lost = [k for k in range(1, self.tree.n + 1) if self.around[k] and k not in seen]
        return f"the loop of {self.names(lost)} does not pass through the ground" if lost else ways

    def leg(self, way: list[tuple[int, int]], platform: int) -> Leg:
        speeds: list[LegSpeed] = []
        links: list[int] = []
        closure, forward = -1, True
        for edge, to in way:
            _, second, cut = self.edges[edge]
            if cut >= 0:
                closure, forward = cut, second == to
                continue
            joint = self.tree.joints[second]
            assert joint is not None
            speeds += [LegSpeed(second, i, 1.0 if to == second else -1.0) for i in range(joint.nu)]
            if closure < 0 and to != platform:
                links.append(to)
        return Leg(tuple(speeds), tuple(links), closure, forward)


def platform_of(tree: Tree) -> Legs | str:
    """The legs of a parallel platform, or why the machine is none. Cost: O(links + closures)."""
    if tree.relations:
        return f"the coupler {tree.relations[0].name!r} ties joints to each other"
    if not tree.closures:
        return "no joint closes a loop"
    graph = _Graph(tree)
    hubs = [k for k in range(1, tree.n + 1) if len(graph.around[k]) > 2]
    if len(hubs) > 1:
        return f"the links {graph.names(hubs)} each join more than two others in loops, as only the platform may"
    if hubs:
        return _on(graph, hubs[0])
    if len(graph.around[0]) > 2:
        return "several loops share no link but the ground"
    return _ring(graph)


def _on(graph: _Graph, platform: int) -> Legs | str:
    ways = graph.legs(platform)
    return ways if isinstance(ways, str) else Legs(platform, tuple(graph.leg(way, platform) for way in ways))


def _ring(graph: _Graph) -> Legs | str:
    """One loop through the ground."""
    whole = _one_leg(graph)
    if isinstance(whole, str):
        return whole
    given = _given(graph.tree)
    if sum(_speed(graph.tree, s) in given for s in whole.legs[0].speeds) <= 1:
        return whole
    best: tuple[tuple[int, int, int], Legs] | None = None
    for platform in range(1, graph.tree.n + 1):
        legs = _on(graph, platform) if graph.around[platform] else ""
        if isinstance(legs, str):
            continue
        idle = sum(not any(_speed(graph.tree, s) in given for s in leg.speeds) for leg in legs.legs)
        beyond = sum(s.sign < 0.0 for leg in legs.legs for s in leg.speeds)
        key = idle, beyond, -platform
        if best is None or key < best[0]:
            best = key, legs
    assert best is not None
    return best[1]


def _one_leg(graph: _Graph) -> Legs | str:
    """From the ground to the ground, in the direction that meets the cut later."""
    tries = []
    for edge in graph.around[0]:
        at = graph.other(edge, 0)
        way = [(edge, at)]
        while at:
            (edge,) = graph.around[at] - {edge}
            at = graph.other(edge, at)
            way.append((edge, at))
        tries.append(graph.leg(way, 0))
    passed = {k for _, k in way}
    lost = [k for k in range(1, graph.tree.n + 1) if graph.around[k] and k not in passed]
    if lost:
        return f"the loop of {graph.names(lost)} does not pass through the ground"
    return Legs(0, (max(tries, key=lambda leg: len(leg.links)),))


def _speed(tree: Tree, speed: LegSpeed) -> int:
    return int(tree.u_start[speed.link]) + speed.number


def _given(tree: Tree) -> set[int]:
    """Speeds that are independent or prescribed."""
    return {*tree.plan.independent, *(i for i, driven in enumerate(tree.prescribed_speeds()) if driven)}
