"""Other models made from one: with loops open or closed again, with joints locked. q and u keep their meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.formulations import check_topology
from bellcrank.mechanism.law_probe import probe_laws
from bellcrank.system.resistance import check_inertia
from bellcrank.topology.release import carried_joints, lock, pinned, release, unlock_closures
from bellcrank.topology.tree import Tree

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.model import Model

__all__ = ["closed_again", "locked", "locked_near", "released", "unlocked", "with_pins", "without"]


def released(model: Model, names: Sequence[str]) -> Model:
    """The model with some of its loops open: cut joints or constraints, by name. What was let go is remembered."""
    _check_unread(model, names)
    return _checked(replace(model, tree=release(model.tree, names), released=(*model.released, *names),
                            whole=model.whole or model.tree, near=None))


def closed_again(model: Model) -> Model:
    """The model with everything closed that `released` has opened, and with all bodies."""
    if model.whole is None:
        return model
    values = {name: model.values[name] for name in model.whole.parameters}  # without those of pins
    return _checked(replace(model, tree=model.whole, released=(), absent=(), pins=(), whole=None, near=None,
                            values=values))


def unlocked(model: Model) -> Model:
    """The model with all joints free that `locked` holds."""
    if not model.locked:
        return model
    laws = {r.name: r.prescribed for r in model.mechanism.joints}

    def freed(tree: Tree) -> Tree:
        own = (None, *(laws[name] for name in tree.joint_names[1:]))
        return unlock_closures(replace(tree, prescribed=own, plan=None))

    return replace(model, tree=freed(model.tree), locked=(), near=None,
                   whole=None if model.whole is None else freed(model.whole))


def with_pins(model: Model, pins: Mapping[str, tuple[float, ...]]) -> Model:
    """The model with joints that close loops, or single coordinates of them, held at values."""
    tree = pinned(model.tree, pins)
    more = {name: value for name, value in tree.parameters.items() if name not in model.values}
    return _checked(replace(model, tree=tree, pins=tuple(pins.items()), whole=model.whole or model.tree, near=None,
                            values={**model.values, **more}))


def without(model: Model, bodies: Sequence[str]) -> Model:
    """The model with bodies that are not in the run: they, and what they carry, stay where they are."""
    places = [(joint, None) for body in bodies for joint in carried_joints(model.tree, body)]
    return _checked(replace(model, tree=lock(model.tree, places), absent=(*model.absent, *bodies),
                            whole=model.whole or model.tree))


def locked(plans: LoopPlans, names: Sequence[str]) -> Model:
    """The model with joints, or single coordinates (``joint.coordinate``), that stay where q says."""
    # plans are made near a closed position, which lies where it did
    return locked_near(plans.model, names, plans.any_reference().q if plans.tree.looped else None)


def locked_near(model: Model, names: Sequence[str], near: Floats | None) -> Model:
    """The same; its loops close near a position."""
    places: list[tuple[str, int | None]] = []
    for key in names:
        joint, coordinate = model.configuration.split(key)
        kind = model.mechanism.joint(joint).joint
        if coordinate is not None and kind.nq != kind.nu:
            raise ModelError(f"lock: joint {joint!r} is locked as a whole")
        places.append((joint, None if coordinate is None else kind.coordinate_names().index(coordinate)))
    return _checked(replace(model, tree=lock(model.tree, places), locked=(*model.locked, *places), near=near,
                            whole=None if model.whole is None else lock(model.whole, places)))


def _check_unread(model: Model, names: Sequence[str]) -> None:
    """Refuse to let go joints that laws read: coordinates of open joints stand still."""
    acts_on = {e.name: e.joint for e in model.mechanism.joint_forces}
    for law, use in probe_laws(model.mechanism).items():
        read = {*use.joints, *(acts_on.get(e, "") for e in (*use.elements, *use.lengths))}
        for name in names:
            if name in read:
                raise ModelError(f"joint {name!r} of {model.name!r} cannot be let go: the law of {law!r} reads it, and "
                                 "the coordinates of an open joint stand still; let it read positions and velocities "
                                 "of bodies instead")


def _checked(model: Model) -> Model:
    if not model.tree.looped:
        check_inertia(model.tree)
    check_topology(model.method, model.tree)
    return model
