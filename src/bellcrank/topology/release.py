"""The same tree with some of its loops open, or with some of its joints locked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.motion import STILL, Law, Prescribed
from bellcrank.topology.tree import LinkStep, LoopForce, Tree

__all__ = ["lock", "release"]


def release(tree: Tree, names: Collection[str]) -> Tree:
    """The tree without the closures of these names, and without the forces along their coordinates.

    Coordinates keep their places. Only joints that were cut, and constraints, can be let go.
    """
    known = [c.name for c in tree.closures]
    for name in names:
        if name not in known:
            if name in tree.joint_names:
                raise ModelError(f"joint {name!r} belongs to the spanning tree of {tree.name!r} and cannot be let go; "
                                 f"compile with cut=[{name!r}]")
            raise ModelError(f"nothing named {name!r} closes a loop of {tree.name!r}; there are "
                             f"{', '.join(repr(k) for k in known) or 'none'}{hint(name, known)}")
    kept = [i for i, c in enumerate(tree.closures) if c.name not in names]
    place = {old: new for new, old in enumerate(kept)}
    steps = [LinkStep(s.links, tuple(place[c] for c in s.closures if c in place)) for s in tree.steps]
    pairs = tuple(LoopForce(p.name, place[p.closure], p.coordinate, p.along) if isinstance(p, LoopForce) else p
                  for p in tree.pairs
                  if not isinstance(p, LoopForce) or p.closure in place)
    return replace(tree, closures=tuple(tree.closures[i] for i in kept), pairs=pairs, plan=None,
                   steps=tuple(s for s in steps if s.links or s.closures))


def lock(tree: Tree, names: Collection[tuple[str, int | None]]) -> Tree:
    """The tree with coordinates (joint, index; None for the whole joint) that stay where they are.

    Coordinates keep their places, and their values are those of the state.
    """
    links = {name: link for link, name in enumerate(tree.joint_names) if link}
    prescribed = list(tree.prescribed)
    for name, index in names:
        if name not in links:
            raise ModelError(f"joint {name!r} closes a loop of {tree.name!r} and cannot be locked; compile with cut= "
                             "another joint of that loop")
        joint, law = tree.joints[links[name]], prescribed[links[name]]
        assert joint is not None
        if index is None and joint.nq != joint.nu:
            prescribed[links[name]] = Prescribed((), STILL)
            continue
        laws: list[Law | None] = [None] * joint.nu if law is None else list(law.laws)
        for i in range(joint.nu) if index is None else (index,):
            laws[i] = STILL
        prescribed[links[name]] = Prescribed(tuple(laws))
    return replace(tree, prescribed=tuple(prescribed), plan=None)
