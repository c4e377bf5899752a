"""The tree of links in a URDF file: who is joined to whom, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bellcrank.io.common.names import near
from bellcrank.io.common.xml import XmlElement, clipped

__all__ = ["Edge", "by_name", "edge_of", "spanned"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A <joint> with the links it connects."""

    name: str
    element: XmlElement
    parent: str
    child: str


def by_name(root: XmlElement, tag: str) -> dict[str, XmlElement]:
    """The elements with a tag, by name; names are unique."""
    found: dict[str, XmlElement] = {}
    for element in root.all(tag):
        first = found.setdefault(element.attribute("name"), element)
        if first is not element:
            raise element.error(f"the name is taken by the <{tag}> on line {first.line}; names must be unique")
    return found


def edge_of(name: str, element: XmlElement, links: Mapping[str, XmlElement]) -> Edge:
    """A <joint> whose links are known to exist."""
    ends = []
    for tag in ("parent", "child"):
        end = element.only(tag)
        link = end.attribute("link")
        if link not in links:
            raise end.error(f"there is no link {clipped(link)!r}{near(link, links)}")
        ends.append(link)
    if ends[0] == ends[1]:
        raise element.error(f"connects the link {clipped(ends[0])!r} with itself")
    return Edge(name, element, ends[0], ends[1])


def spanned(links: Mapping[str, XmlElement], edges: Sequence[Edge]) -> tuple[str, list[Edge]]:
    """The root link, and the joints depth first from it with siblings in file order."""
    above: dict[str, Edge] = {}
    below: dict[str, list[Edge]] = {}
    for edge in edges:
        other = above.setdefault(edge.child, edge)
        if other is not edge:
            raise edge.element.error(f"the link {clipped(edge.child)!r} is already the child of joint "
                                     f"{clipped(other.name)!r} (line {other.element.line}); write a joint that closes "
                                     "a loop as <loop_joint>, see docs/howto/urdf.md")
        below.setdefault(edge.parent, []).append(edge)
    roots = [name for name in links if name not in above]
    if len(roots) > 1:
        raise links[roots[1]].error(f"{len(roots)} links have no parent joint ({_listed(roots)}); a URDF file has one "
                                    "root link")
    order: list[Edge] = []
    stack = list(reversed(below.get(roots[0], []))) if roots else []
    while stack:
        edge = stack.pop()
        order.append(edge)
        stack.extend(reversed(below.get(edge.child, [])))
    if len(order) != len(edges):
        reached = {edge.child for edge in order}
        lost = [edge for edge in edges if edge.child not in reached]
        raise lost[0].element.error(f"the joints {_listed([e.name for e in lost])} run in a circle and hang on no root "
                                    "link; write a joint that closes a loop as <loop_joint>, see docs/howto/urdf.md")
    return roots[0], order


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(clipped(name)) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
