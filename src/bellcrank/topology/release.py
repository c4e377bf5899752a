"""The same tree with some of its loops open, or with some of its joints locked or held."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.motion import STILL, Law, Prescribed
from bellcrank.spatial import Vector
from bellcrank.topology.tree import LinkStep, LoopForce, Tree

__all__ = ["carried_joints", "lock", "pinned", "release"]


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
            raise ModelError(f"joint {name!r} closes a loop of {tree.name!r} and cannot be locked; compile with "
                             f"actuated=[{name!r}], which lets it keep its coordinates")
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


def pinned(tree: Tree, places: Mapping[str, Sequence[float]]) -> Tree:
    """The tree with joints that close loops held at coordinates: welds in their place. Forces along them go on."""
    closures = []
    for c in tree.closures:
        if c.name in places:
            if c.first_axes:
                raise ModelError(f"joint {c.name!r} cannot be held: its frame is defined at closing")
            turn, shift = c.first_turn, np.zeros(3)
            for t in c.kind.transforms([*places[c.name]], [float(k) for k in c.kind.constants()]):
                axes = [t.rotation.apply(Vector(*row)) for row in np.eye(3).tolist()]
                shift = shift + turn @ np.array([*t.translation])
                turn = turn @ np.array([[*a] for a in axes]).T
            c = c.welded(turn, tuple(x + d for x, d in zip(c.first_shift, shift.tolist(), strict=True)))
        closures.append(c)
    return replace(tree, closures=tuple(closures), plan=None)


def carried_joints(tree: Tree, body: str) -> tuple[str, ...]:
    """The joints of a body that may leave a run, and of all that it carries: it must hang on the ground itself."""
    known = tree.body_names[1:]
    if body not in known:
        raise ModelError(f"no body {body!r} in {tree.name!r}; there are {', '.join(known)}{hint(body, known)}")
    link = int(tree.body_link[tree.body_names.index(body)])
    if link == 0:
        raise ModelError(f"body {body!r} belongs to the ground and cannot leave a run or enter it")
    if int(tree.parent[link]) != 0:
        raise ModelError(f"body {body!r} cannot leave a run or enter it: joint {tree.joint_names[link]!r} carries it "
                         f"on {tree.link_names[int(tree.parent[link])]!r}; connect it to the ground by a Free joint, "
                         "and to that body by a joint that closes a loop")
    inside = {link}
    for k in range(link + 1, tree.n + 1):
        if int(tree.parent[k]) in inside:
            inside.add(k)
    return tuple(tree.joint_names[k] for k in sorted(inside))
