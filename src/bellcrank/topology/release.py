"""The same tree with some of its loops open, its joints locked or held, or with forces along its loop joints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.forces.machine_force import GivenForce
from bellcrank.mechanism.joints.derived_joints import HeldJoint
from bellcrank.mechanism.motion import STILL, Law, Prescribed
from bellcrank.mechanism.turns import apply, by_columns, product
from bellcrank.scalar.graph import Graph
from bellcrank.spatial import Vector
from bellcrank.topology.pairs import SumForce
from bellcrank.topology.tree import Closure, LinkStep, LoopJoint, Tree

__all__ = ["carried_joints", "in_the_tree", "lock", "pin_parameter", "pinned", "release", "unlock_closures",
           "with_given_forces"]


def release(tree: Tree, names: Collection[str]) -> Tree:
    """The tree without the closures of these names, and without the forces along their coordinates.

    Coordinates keep their places; those of open joints stand still. Only joints at which loops are cut, and
    constraints, can be let go.
    """
    known = [c.name for c in tree.closures]
    for name in names:
        if name not in known:
            if name in tree.joint_names:
                raise ModelError(in_the_tree(tree, name))
            raise ModelError(f"nothing named {name!r} closes a loop of {tree.name!r}; there are "
                             f"{', '.join(repr(k) for k in known) or 'none'}{hint(name, known)}")
    kept = [i for i, c in enumerate(tree.closures) if c.name not in names]
    place = {old: new for new, old in enumerate(kept)}
    steps = [LinkStep(s.links, tuple(place[c] for c in s.closures if c in place)) for s in tree.steps]
    gone = {tree.joint_links.get(name) for name in names}
    pairs = tuple(p for p in tree.pairs
                  if not isinstance(p, SumForce) or gone.isdisjoint(link for link, _, _ in p.terms))
    return replace(tree, closures=tuple(tree.closures[i] for i in kept), pairs=pairs, plan=None,
                   steps=tuple(s for s in steps if s.links or s.closures),
                   loop_joints=tuple(LoopJoint(*own[:3], own.open or own.name in names) for own in tree.loop_joints))


def in_the_tree(tree: Tree, name: str) -> str:
    """Why a joint of the tree can be neither let go nor closed, and what to do."""
    if f"{name}.closing" in (c.name for c in tree.closures):
        return (f"joint {name!r} of {tree.name!r} cannot be let go or closed: it carries a link, since something "
                "needs that (a sum, an actuator, a rotor, a coupler, a prescribed motion, actuated=)")
    return (f"joint {name!r} of {tree.name!r} cannot be let go or closed: no other joint would carry its body; add a "
            "Free joint beside it, which constrains nothing")


def lock(tree: Tree, names: Collection[tuple[str, int | None]]) -> Tree:
    """The tree with coordinates (joint, index; None for the whole joint) that stay where they are.

    Coordinates keep their places, and their values are those of the state.
    """
    links = {name: link for link, name in enumerate(tree.joint_names) if link}
    prescribed = list(tree.prescribed)
    for name, index in names:
        if name not in links:
            continue
        joint, law = tree.joints[links[name]], prescribed[links[name]]
        assert joint is not None
        if index is None and joint.nq != joint.nu:
            prescribed[links[name]] = Prescribed((), STILL)
            continue
        laws: list[Law | None] = [None] * joint.nu if law is None else list(law.laws)
        for i in range(joint.nu) if index is None else (index,):
            laws[i] = STILL
        prescribed[links[name]] = Prescribed(tuple(laws))
    tree = replace(tree, prescribed=tuple(prescribed), plan=None)
    cut = [(name, index) for name, index in names if name not in links]
    return _locked_closures(tree, cut) if cut else tree


def _locked_closures(tree: Tree, names: Sequence[tuple[str, int | None]]) -> Tree:
    """The tree with coordinates of joints that close loops held where they are; those of loops that are open are no
    part of it."""
    closures = list(tree.closures)
    for i, c in enumerate(closures):
        wanted = [index for name, index in names if name == c.name and c.is_joint]
        if not wanted:
            continue
        kind = c.free.kind if c.free else c.kind
        held = range(kind.nq) if None in wanted else sorted(k for k in set(wanted) if k is not None)
        if kind.nu and not HeldJoint.can(kind, None not in wanted):
            raise ModelError(f"joint {c.name!r} closes a loop of {tree.name!r} and cannot be locked: a "
                             f"{type(kind).__name__} has no holding_row; compile with actuated=[{c.name!r}], which "
                             "lets it keep its coordinates")
        made = HeldJoint(kind, held)
        closures[i] = (c.free or c).holding(made, made.nonholonomic) if kind.nu else c
    return replace(tree, closures=tuple(closures), plan=None)


def unlock_closures(tree: Tree) -> Tree:
    """The tree with all coordinates of joints that close loops free."""
    if not any(c.free for c in tree.closures):
        return tree
    return replace(tree, closures=tuple(c.free or c for c in tree.closures), plan=None)


def pinned(tree: Tree, places: Mapping[str, Sequence[float]]) -> Tree:
    """The tree with joints that close loops, or single coordinates of them (``joint.coordinate``), held at values.
    Forces along them go on. The values are parameters (`pin_parameter`), so that code does not depend on them; but for
    joints with quaternions, in the place of which there are welds."""
    closures, parameters = [], dict(tree.parameters)
    for c in tree.closures:
        held = _held_here(c, places)
        if held and HeldJoint.can(c.kind, True):
            names = c.kind.coordinate_names()
            labels = [pin_parameter(c.name, names[k]) for k in held]
            parameters |= dict(zip(labels, held.values(), strict=True))
            c = c.holding(HeldJoint(c.kind, tuple(held), [Graph().leaf(("parameter", x)) for x in labels]), len(held))
        elif c.name in places:
            c = _welded(c, places[c.name])
        closures.append(c)
    return replace(tree, closures=tuple(closures), plan=None, parameters=parameters)


def pin_parameter(joint: str, coordinate: str) -> str:
    """The parameter that has the value at which a coordinate is held."""
    return f"{joint}.{coordinate} held at"


def _held_here(c: Closure, places: Mapping[str, Sequence[float]]) -> dict[int, float]:
    """The coordinates of a closure that are held, with their values."""
    if not c.is_joint:
        return {}
    names = c.kind.coordinate_names()
    out = dict(enumerate(places.get(c.name, ())))
    return out | {k: places[f"{c.name}.{label}"][0] for k, label in enumerate(names) if f"{c.name}.{label}" in places}


def _welded(c: Closure, values: Sequence[float]) -> Closure:
    rows, shift = c.turns[0], c.first_shift
    for t in c.kind.transforms([*values], [float(k) for k in c.kind.constants()]):
        shift = tuple(x + d for x, d in zip(shift, apply(rows, t.translation), strict=True))
        rows = product(rows, by_columns(*(t.rotation.apply(Vector(*axis)) for axis in np.eye(3).tolist())))
    return c.welded(rows, shift)


def with_given_forces(tree: Tree, joints: Collection[str] | None = None) -> Tree:
    """The tree in which the joint forces "tau" act along loop joints, too, all or some of them: as elements along all
    their coordinates. Forces along joints whose loops are open do nothing."""
    names = [name for name in tree.loop_joint_names if name not in tree.forced and (joints is None or name in joints)]
    links = [(c, tree.joint_links[c.name]) for c in tree.closures if c.is_joint and c.name in names]
    pairs = [SumForce(f"force along {c.name}.{label}", ((link, k, 1.0),), GivenForce(link, k))
             for c, link in links for k, label in enumerate(c.kind.speed_names)]
    return replace(tree, pairs=(*tree.pairs, *pairs), forced=(*tree.forced, *names)) if names else tree


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
