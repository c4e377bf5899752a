"""Given forces of joints that were cut, as part of a machine: elements along their coordinates whose amounts are
parameters. For what depends on where these forces act, such as derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.arrays import Forces
from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.graph import Graph, Number
from bellcrank.system.kernels import Kernels
from bellcrank.system.named_forces import loop_forces
from bellcrank.topology.pairs import LoopForce

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["GivenForce", "with_forces_along", "with_given_forces"]


@dataclass(frozen=True)
class GivenForce(Along):
    """A force that depends on nothing."""

    amount: Number

    @property
    def damped(self) -> bool:
        return False

    def force(self, x: Number, rate: Number) -> Number:
        return self.amount

    def energy(self, x: Number) -> Number:
        return 0.0


def with_given_forces(tree: Tree, joints: Sequence[str]) -> Tree:
    """The tree with forces along all coordinates of joints that were cut."""
    pairs, parameters = list(tree.pairs), dict(tree.parameters)
    for i, c in enumerate(tree.closures):
        if c.name in joints and c.is_joint:
            for k, label in enumerate(c.kind.speed_names):
                name = _label(c.name, label)
                parameters[name] = 0.0
                pairs.append(LoopForce(name, i, k, GivenForce(Graph().leaf(("parameter", name))),
                                       tree.joint_links[c.name]))
    return replace(tree, pairs=tuple(pairs), parameters=parameters, plan=None) if joints else tree


def _label(joint: str, speed: str) -> str:
    """The parameter that has the amount of a force."""
    return f"force along {joint}.{speed}"


def with_forces_along(plans: LoopPlans, tau: Forces | None) -> tuple[LoopPlans, Forces | None]:
    """The machine in which forces along loop joints act as elements; and the other forces."""
    rows = None if tau is None else plans.configuration.forces(tau)
    own = {} if rows is None else loop_forces(plans, rows)
    if rows is None or not own:
        return plans, tau
    model, joints = plans.model, tuple(own)
    tree = with_given_forces(plans.tree, joints)
    amounts = {_label(name, label): rows[..., k] for name, rows in own.items()
               for k, label in enumerate(model.mechanism.joint(name).joint.speed_names)}
    made = replace(model, tree=tree, along=joints,
                   values={name: amounts.get(name, model.values.get(name, 0.0)) for name in tree.parameters})
    kernels = plans.kernels.kept(("forces along", joints), lambda: Kernels(made, plans.kernels.maker))
    return type(plans)(kernels.for_model(made)), np.where(plans.tree.loop_speeds(), 0.0, rows)
