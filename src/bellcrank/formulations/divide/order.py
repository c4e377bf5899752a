"""Where a tree of links is divided: the assembly tree, of logarithmic depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Division", "divisions"]

#: so many links are not divided any further: joining them one after another takes far fewer operations
BLOCK = 3


class Division(NamedTuple):
    """A connected set of links: one with what is attached to it before its joint is passed (`first`), or two pieces
    joined at `link`, which belongs to the lower one.

    `outside` are the links of this set to which something outside of it will be attached.
    """

    link: int
    outside: frozenset[int]
    lower: Division | None = None
    upper: Division | None = None
    first: tuple[Division, ...] = ()

    def depth(self) -> int:
        """Joinings one after another.

        >>> [divisions([-1, *range(n)], [False] * (n + 1))[0].depth() for n in (1, 2, 3, 4, 1000)]
        [0, 1, 2, 2, 10]
        """
        if self.lower is None or self.upper is None:
            return max((part.depth() for part in self.first), default=0) + len(self.first)
        return 1 + max(self.lower.depth(), self.upper.depth())


class _Divider(NamedTuple):
    """A tree, and the pieces that are never divided: late links with all that is outboard of them."""

    parent: Sequence[int]
    children: Sequence[Sequence[int]]
    done: dict[int, Division]

    def from_root(self, root: int) -> Division:
        """All from `root` on."""
        if root in self.done:
            return self.done[root]
        links, waiting = [], [root]
        while waiting:
            link = waiting.pop()
            links.append(link)
            if link not in self.done:
                waiting += self.children[link]
        return self.divided(sorted(links), root, frozenset())

    def divided(self, links: Sequence[int], root: int, outside: frozenset[int]) -> Division:
        """At the joint that leaves the most equal halves."""
        if len(links) <= BLOCK:
            return self.in_sequence(set(links), root, outside)
        size = dict.fromkeys(links, 1)
        for link in reversed(links):
            if link != root:
                size[self.parent[link]] += size[link]
        cut = min((link for link in links if link != root), key=lambda link: (abs(2 * size[link] - len(links)), link))
        above = {cut}
        for link in links:
            if self.parent[link] in above:
                above.add(link)
        at = self.parent[cut]
        lower = self.divided([link for link in links if link not in above], root, (outside - above) | {at})
        upper = self.divided([link for link in links if link in above], cut, outside & above)
        return Division(at, outside, lower, upper)

    def in_sequence(self, links: set[int], root: int, outside: frozenset[int]) -> Division:
        """From the tips on, as in the articulated-body algorithm."""
        if root in self.done:
            return self.done[root]
        return Division(root, outside, first=tuple(self.in_sequence(links, child, outside)
                                                   for child in self.children[root] if child in links))


def divisions(parent: Sequence[int], late: Sequence[bool]) -> list[Division]:
    """One for every link on the ground (0); joints of `late` links are passed when all outboard of them is attached."""
    children: list[list[int]] = [[] for _ in parent]
    for link in range(1, len(parent)):
        children[parent[link]].append(link)
    divider = _Divider(parent, children, {})
    for link in range(len(parent) - 1, 0, -1):
        if late[link]:
            first = tuple(divider.from_root(child) for child in children[link])
            divider.done[link] = Division(link, frozenset(), first=first)
    return [divider.from_root(link) for link in children[0]]
