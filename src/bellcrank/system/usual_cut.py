"""The machine as it is cut where nobody has a say in it: what "nearest to a guess" means must not depend on the cut.

Guesses by name leave joints out, which are at zero then, and closed positions near a guess are measured by changes of
the tree's coordinates. So that `compile`'s `cut`, `actuated`, `independent` and `lock` change nothing, such positions
are found by the tree that the library chooses from the description alone, and handed over by the names of joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.loops.closer import State
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_errors import loop_coordinates, loop_speeds
from bellcrank.topology.builder import build_tree
from bellcrank.topology.carriers import with_carriers

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["handed_over", "usual_plans"]


def usual_plans(plans: LoopPlans, alike: bool = True) -> LoopPlans | None:
    """The machine cut as the description alone has it; None if this is it (`alike`: or if it has the same coordinates,
    though plans of its loops may be others), or if its loops were opened, joints locked or bodies taken out of it.
    Cost: that of building a tree, once."""
    model = plans.model
    if not (model.options.chosen and model.tree.looped) or model.released or model.locked or model.absent or model.pins:
        return None

    def made() -> Kernels:
        mechanism, cut = with_carriers(model.described)
        options = replace(model.options, actuated=(), independent=(), chosen=False)
        return Kernels(replace(model, mechanism=mechanism, tree=build_tree(mechanism, cut=cut), options=options,
                               near=None), plans.kernels.maker)

    kernels = plans.kernels.kept("usual cut", made)
    if alike and kernels.model.tree.cut_names == model.tree.cut_names:
        return None
    return type(plans)(kernels.for_model(replace(kernels.model, values=model.values)))


def handed_over(plans: LoopPlans, usual: LoopPlans, state: State, *given: Any) -> State:
    """A state of the machine cut as usual as one of this one; angles that are measured within a turn are as near as
    whole turns bring them to what was given by name."""
    wanted = {key: value for names in reversed(given) if isinstance(names, Mapping) for key, value in names.items()}
    q, u = ([np.zeros((*state.q.shape[:-1], 0))] for _ in range(2))
    for record in plans.configuration.records:
        name, kind = record.name, record.joint
        if not kind.nq:
            continue
        place = loop_coordinates(usual, state.q, name, t=state.t)
        if name in usual.tree.cut_names:
            place = _near_given(plans, name, place, wanted)
        q.append(place)
        u.append(loop_speeds(usual, state.q, state.u, name, t=state.t))
    made = State(np.concatenate(q, axis=-1), np.concatenate(u, axis=-1), state.t)
    return made.on_other_branch() if state.branch_changed else made


def _near_given(plans: LoopPlans, joint: str, place: Floats, wanted: Mapping[str, Any]) -> Floats:
    kind, (_, start) = plans.model.mechanism.joint(joint).joint, plans.configuration.starts[joint]
    if kind.nq != kind.nu or kind.counts_turns:
        return place
    out = np.array(place)
    for k, label in enumerate(kind.coordinate_names()):
        own = wanted.get(f"{joint}.{label}")
        value = wanted.get(joint) if own is None else own
        if value is None or not plans.turning[start + k]:
            continue
        aim, entries = np.asarray(value, dtype=float), kind.nq if own is None else 1
        if aim.shape[-1:] == (entries,):  # else the last axis is one of states
            aim = aim[..., k if own is None else 0]
        out[..., k] += 2.0 * np.pi * np.round((aim - out[..., k]) / (2.0 * np.pi))
    return out
