"""What an event makes of the topology of a machine, and of the coordinates of bodies that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, NotYetError, StateError, hint
from bellcrank.system.arrangements import Arrangement, held_closures, known_closures
from bellcrank.topology.release import carried_joints, in_the_tree

if TYPE_CHECKING:
    from bellcrank.simulate.events import Arrival, Change
    from bellcrank.system.model import Model

__all__ = ["altered", "let_go", "moved"]



def altered(model: Model, now: Arrangement, change: Change) -> Arrangement:
    """The arrangement after a change, without the frames of what closes in it; refuses what cannot be."""
    order = known_closures(model)
    leaving = held_closures(model, change.leave) if change.leave else ()
    change = replace(change, lock=tuple(_short(model, n) for n in change.lock))
    _check(model, now, change, order)
    opened = {*now.released, *change.detach, *leaving}.difference(change.attach)
    after = replace(now, released=tuple(n for n in order if n in opened),
                    absent=tuple(sorted({*now.absent, *change.leave}.difference(a.body for a in change.enter))),
                    locked=tuple(sorted({*now.locked, *change.lock})),  # in one order: equal sets are equal
                    frames=tuple(f for f in now.frames if f[0] not in opened and f[0] not in change.attach))
    for name in change.unlock:
        after = unlocked_in(model, after, _short(model, name))
    for name in change.attach:
        for body in after.absent:
            if name in held_closures(model, (body,)):
                raise StateError(f"attach: {name!r} holds body {body!r}, which is not in the run (bellcrank.enter)")
    return after


def _short(model: Model, name: str) -> str:
    """A joint, or one coordinate of it; joints that have one only by their own names."""
    joint, _ = model.configuration.split(name)
    return joint if model.mechanism.joint(joint).joint.nq == 1 else name


def unlocked_in(model: Model, now: Arrangement, name: str) -> Arrangement:
    """The arrangement with a joint free, whatever of it was locked, or one of its coordinates: then the others that
    were locked with it stay so."""
    joint, coordinate = model.configuration.split(name)
    names = model.mechanism.joint(joint).joint.coordinate_names()
    if coordinate is None:
        return let_go(now, [n for n in now.locked if model.configuration.split(n)[0] == joint])
    if name in now.locked:
        return let_go(now, (name,))
    if joint not in now.locked or coordinate not in names or len(names) != model.mechanism.joint(joint).joint.nu:
        raise StateError(f"unlock: {name!r} is not locked")
    others = [f"{joint}.{n}" for n in names if n != coordinate]
    where = dict(now.pins).get(joint)
    pins = () if where is None else tuple((f"{joint}.{n}", (x,)) for n, x in zip(names, where, strict=True)
                                          if n != coordinate)
    now = let_go(now, (joint,))
    return replace(now, locked=tuple(sorted({*now.locked, *others})), pins=(*now.pins, *pins))


def let_go(now: Arrangement, names: Sequence[str]) -> Arrangement:
    """The arrangement with joints free that were locked, or held by stops."""
    return replace(now, locked=tuple(n for n in now.locked if n not in names),
                   pins=tuple(p for p in now.pins if p[0] not in names))


def _check(model: Model, now: Arrangement, change: Change, order: Sequence[str]) -> None:
    """Refuse to close what is closed, to open what is open, and names that nobody knows."""
    for what, names in (("attach", change.attach), ("detach", change.detach)):
        for name in names:
            if name not in order:
                _unknown(model, what, name, order)
            if (name in now.released) != (what == "attach"):
                state, other = ("open", "attach closes it") if what == "detach" else (
                    "closed", "closed=False where it is added, System.release or an event with detach opens it")
                raise StateError(f"{what}: {name!r} is {state} already; {other}")
    for name in change.unlock:
        joint, coordinate = model.configuration.split(_short(model, name))
        if not any(model.configuration.split(n)[0] == joint and (coordinate is None or n in (joint, name))
                   for n in now.locked):
            raise StateError(f"unlock: {name!r} is not locked")
    deforming = {model.tree.joint_names[link] for link in model.tree.flexible}
    for body in change.leave:
        if body.partition(".")[0] in deforming:
            raise NotYetError(f"leave: body {body.partition('.')[0]!r} deforms and cannot leave a run; detach the "
                              "joints that hold it")
        if body in now.absent:
            raise StateError(f"leave: body {body!r} is not in the run")
    for arrival in change.enter:
        carried_joints(model.tree, arrival.body)
        if arrival.body not in now.absent:
            raise StateError(f"enter: body {arrival.body!r} is in the run already")


def _unknown(model: Model, what: str, name: str, known: Sequence[str]) -> None:
    if name in model.tree.joint_names:
        later = "; if its loop shall open by what a function decides, compile with cut=[...] of it" \
            if what == "detach" and model.tree.looped else ""
        raise ModelError(f"{what}: {in_the_tree(model.tree, name)}{later}")
    raise ModelError(f"{what}: nothing named {name!r} closes a loop of {model.name!r}; there are "
                     f"{', '.join(map(repr, known)) or 'none'}{hint(name, known)}")


def moved(model: Model, change: Change, q: Floats, u: Floats) -> None:
    """Put the coordinates and speeds of bodies that enter into q and u; those that leave stand still."""
    for body in change.leave:
        for joint in carried_joints(model.tree, body):
            u[model.configuration.speed_entries(joint)] = 0.0
    for arrival in change.enter:
        joints = carried_joints(model.tree, arrival.body)
        for joint in joints:
            u[model.configuration.speed_entries(joint)] = 0.0
        for target, given, place in ((q, arrival.q, 0), (u, arrival.u, 1)):
            for name, values in given.items():
                _put(model, arrival, joints, name or joints[0], values, target, place)
    if change.enter:
        q[:] = model.configuration.normalize(q)


def _put(model: Model, arrival: Arrival, joints: Sequence[str], joint: str, values: Any, target: Floats, place: int
         ) -> None:
    if joint not in joints:
        raise StateError(f"enter: joint {joint!r} does not carry body {arrival.body!r}; the joints that do: "
                         f"{', '.join(map(repr, joints))}")
    kind, start = model.mechanism.joint(joint).joint, model.configuration.starts[joint][place]
    size = (kind.nq, kind.nu)[place]
    numbers = np.atleast_1d(np.asarray(values, dtype=float))
    if numbers.shape != (size,) or not np.isfinite(numbers).all():
        raise StateError(f"enter: body {arrival.body!r}: {'qu'[place]} of joint {joint!r} needs {size} finite numbers, "
                         f"got {values!r}")
    target[start:start + size] = numbers
