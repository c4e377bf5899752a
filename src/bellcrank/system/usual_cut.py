"""The machine as it is cut where nobody has a say in it: what "nearest to a guess" means must not depend on the cut.

Guesses by name leave joints out, which are at zero then, and closed positions near a guess are measured by changes of
the tree's coordinates. So that `compile`'s `cut`, `actuated`, `independent` and `lock` change nothing, such positions
are found by the tree that the library chooses from the description alone, and handed over by the names of joints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bellcrank.system.kernels import Kernels
from bellcrank.system.variants import locked, released
from bellcrank.topology.builder import build_tree
from bellcrank.topology.carriers import with_carriers

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["usual_plans"]


def usual_plans(plans: LoopPlans, alike: bool = True) -> LoopPlans | None:
    """The machine cut as the description alone has it; None if this is it (`alike`: or if it has the same coordinates,
    though plans of its loops may be others, or has locked joints or open loops), or if bodies were taken out of it.
    Joints are locked there, too, and loops open: at joints that are cut as usual, or that are cut first if they are
    not. Cost: that of building a tree, once."""
    model = plans.model
    changed = model.released, model.locked, tuple(name for name, _ in model.pins)
    if not (model.options.chosen and model.tree.looped) or model.absent or (alike and any(changed)):
        return None
    kernels = plans.kernels.kept(("usual cut", *changed), lambda: _usual_kernels(plans))
    if alike and kernels.model.tree.cut_names == model.tree.cut_names:
        return None
    values = {name: model.values[name] for name in kernels.model.values}  # without those of pins
    return type(plans)(kernels.for_model(replace(kernels.model, values=values)))


def _usual_kernels(plans: LoopPlans) -> Kernels:
    model, maker = plans.model, plans.kernels.maker
    mechanism, cut = with_carriers(model.described)
    tree = build_tree(mechanism, cut=cut)
    if not {c.name for c in tree.closures}.issuperset(model.released):
        mechanism, cut = with_carriers(model.described, tuple(
            r.name for r in model.described.joints if r.name in model.released))
        tree = build_tree(mechanism, cut=cut)
    made = replace(model, mechanism=mechanism, tree=tree, near=None, released=(), locked=(), pins=(), whole=None,
                   options=replace(model.options, actuated=(), independent=(), chosen=False),
                   values={name: model.values[name] for name in tree.parameters})
    if model.released:
        made = released(made, model.released)
    held = [name for name, _ in model.pins] + [
        joint if index is None else f"{joint}.{mechanism.joint(joint).joint.coordinate_names()[index]}"
        for joint, index in model.locked]
    return Kernels(locked(type(plans)(Kernels(made, maker)), held) if held else made, maker)
