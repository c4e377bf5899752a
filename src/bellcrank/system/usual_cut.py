"""The machine cut elsewhere: as where nobody has a say in it, and at joints that shall be let go.

What "nearest to a guess" means must not depend on the cut.

Guesses by name leave joints out, which are at zero then, and closed positions near a guess are measured by changes of
the tree's coordinates. So that `compile`'s `cut`, `actuated`, `independent` and `lock` change nothing, such positions
are found by the tree that the library chooses from the description alone, and handed over by the names of joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bellcrank.errors import ModelError
from bellcrank.system.kernels import Kernels
from bellcrank.system.variants import locked, released
from bellcrank.topology.builder import build_tree
from bellcrank.topology.carriers import with_carriers

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.model import Model

__all__ = ["cut_for", "usual_plans"]


def usual_plans(plans: LoopPlans, alike: bool = True) -> LoopPlans | None:
    """The machine cut as the description alone has it; None if this is it (`alike`: or if it has the same coordinates,
    though plans of its loops may be others, or has locked joints or open loops), or if bodies were taken out of it.
    Joints are locked there, too, and loops open: at joints that are cut as usual, or that are cut first if they are
    not. Cost: that of building a tree, once."""
    if alike not in plans.usual:
        plans.usual[alike] = _usual_plans(plans, alike)
    return plans.usual[alike]


def _usual_plans(plans: LoopPlans, alike: bool) -> LoopPlans | None:
    model = plans.model
    if not (model.options.chosen and model.tree.looped) or model.absent:
        return None
    changed = model.released, model.locked, tuple(name for name, _ in model.pins)
    if alike and any(changed):
        return None
    kernels = plans.kernels.kept(("usual cut", *changed), lambda: _usual_kernels(plans))
    if alike and kernels.model.tree.cut_names == model.tree.cut_names:
        return None
    values = {name: model.values[name] for name in kernels.model.values}  # without those of pins
    return type(plans)(kernels.for_model(replace(kernels.model, values=values)))


def cut_for(plans: LoopPlans, names: Sequence[str]) -> LoopPlans:
    """The machine with its loops cut at joints that are to be let go: this one if they close loops of it already, or
    carry links that nothing else would carry (whoever lets them go says so)."""
    model = plans.model
    tree = model.whole or model.tree
    more = [name for name in names if name in tree.joint_names[1:] and f"{name}.closing" not in tree.cut_names]
    if not more or not tree.looped:
        return plans
    changed = model.released, model.locked, tuple(name for name, _ in model.pins)
    kernels = plans.kernels.kept(("cut for", tuple(more), *changed), lambda: _kernels_cut_for(plans, more))
    if kernels is None:
        return plans
    values = {name: model.values.get(name, x) for name, x in kernels.model.values.items()}
    return type(plans)(kernels.for_model(replace(kernels.model, values=values)))


def _kernels_cut_for(plans: LoopPlans, more: Sequence[str]) -> Kernels | None:
    model = plans.model
    tree = model.whole or model.tree
    for others in (tree.cut_names, model.released):  # some of those that were cut may have to carry links now
        try:
            made = _cut_at(model, tuple(dict.fromkeys((*more, *others))))
        except ModelError:
            continue
        return _as_it_was(plans, replace(made, options=replace(model.options, chosen=True)))
    return None


def _cut_at(model: Model, cut: Sequence[str]) -> Model:
    """The machine with all its loops closed, cut at some joints; the library chooses the others."""
    known = {r.name for r in model.described.joints}
    mechanism, cut = with_carriers(model.described, tuple(name for name in cut if name in known))
    tree = build_tree(mechanism, cut=cut)
    return replace(model, mechanism=mechanism, tree=tree, near=None, released=(), locked=(), pins=(), whole=None,
                   values={name: model.values[name] for name in tree.parameters})


def _as_it_was(plans: LoopPlans, made: Model) -> Kernels:
    """With what is open, locked or held in the machine."""
    model, maker = plans.model, plans.kernels.maker
    if model.released:
        made = released(made, model.released)
    held = [name for name, _ in model.pins] + [
        joint if index is None else f"{joint}.{made.mechanism.joint(joint).joint.coordinate_names()[index]}"
        for joint, index in model.locked]
    return Kernels(locked(type(plans)(Kernels(made, maker)), held) if held else made, maker)


def _usual_kernels(plans: LoopPlans) -> Kernels:
    model = plans.model
    made = _cut_at(model, ())
    if not {c.name for c in made.tree.closures}.issuperset(model.released):
        made = _cut_at(model, [r.name for r in model.described.joints if r.name in model.released])
    options = replace(model.options, actuated=(), independent=(), chosen=False)
    return _as_it_was(plans, replace(made, options=options))
