"""What laws of the machine on joints exert there, for machines whose links are seen one at a time: in these they act as
forces between links, and are added to the reactions of their joints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.lowering.element_loads import unit_wrench
from bellcrank.mechanism.forces import MachineForce
from bellcrank.system.force_elements import machine_view, stacked, with_values
from bellcrank.topology.pairs import SumForce

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["joint_law_loads"]


def joint_law_loads(plans: LoopPlans, at_joints: Tree, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike
                    ) -> dict[str, Floats]:
    """Wrenches (..., 6) on the bodies outboard of joints, in their axes about the joints' origins, by joint. The frames
    of links of the tree `at_joints` lie at their joints."""
    mechanism, tree = plans.model.mechanism, plans.tree
    own = {f.name for f in mechanism.joint_forces if isinstance(f.along, MachineForce)}
    pairs = [pair for pair in tree.pairs if isinstance(pair, SumForce) and pair.name in own]
    out: dict[str, Floats] = {}
    sight = machine_view(plans, q, u, t) if pairs else None
    for pair in pairs:
        (link, i, factor), = pair.terms
        name = tree.joint_names[link]
        place = at_joints.joint_names.index(name)
        joint = at_joints.joints[place]
        assert joint is not None and sight is not None
        amount = with_values(plans, pair.along).at(np.asarray(t, dtype=float)).seen(sight).force(
            *sight.coordinate(link, i)) * factor
        where = [sight.coordinate(link, k)[0] for k in range(joint.nq)]
        constants = with_values(plans, at_joints.numbers(place).joint)
        wrench = stacked(unit_wrench(joint.subspace(where, constants), i)) * np.asarray(amount)[..., None]
        turn = at_joints.body_turn[at_joints.members[place][0]]  # body axes in link axes
        load = (wrench.reshape(*wrench.shape[:-1], 2, 3) @ turn).reshape(wrench.shape)
        out[name] = out[name] + load if name in out else load
    return out
