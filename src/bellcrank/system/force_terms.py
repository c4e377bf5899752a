"""Which of gravity, inertia, elements and joint friction the joint forces of a motion contain.

Gravity and elements are switched off in other trees of the same machine, with their own code and the same plans of the
loops. Inertia is what is left without both, so forces without inertia are a difference of two results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.forces.coordinate_forces import Friction
from bellcrank.mechanism.joints import Joint
from bellcrank.system.kernels import Kernels, Wrenches

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["TERMS", "chosen_terms", "in_terms"]

#: what joint forces consist of, besides external wrenches
TERMS = ("gravity", "inertia", "elements", "friction")


def chosen_terms(function: str, terms: Sequence[str] | str) -> tuple[str, ...]:
    """The terms in their usual order; unknown ones are refused."""
    if terms is TERMS:
        return TERMS
    asked = (terms,) if isinstance(terms, str) else tuple(terms)
    for name in asked:
        if name not in TERMS:
            raise ModelError(f"{function}: no term {name!r}; there are {', '.join(TERMS)}{hint(str(name), TERMS)}")
    return tuple(name for name in TERMS if name in asked)


def in_terms(plans: LoopPlans, terms: tuple[str, ...], forces: Callable[[LoopPlans, Wrenches], Floats],
             wrenches: Wrenches) -> Floats:
    """Joint forces, a function of a machine and of wrenches, with the chosen terms alone and these wrenches."""
    if terms == TERMS:
        return forces(plans, wrenches)
    acting = tuple(name for name in terms if name != "inertia")
    some = forces(_with_forces(plans, acting), wrenches)
    if "inertia" in terms:
        return some
    return some - forces(_with_forces(plans, ()), None) if acting or wrenches is not None else np.zeros(some.shape)


def _with_forces(plans: LoopPlans, acting: tuple[str, ...]) -> LoopPlans:
    """The machine on which gravity, elements and friction act only as far as they are named, made once."""
    if acting not in plans.variants:
        tree = plans.kernels.kept(("forces", acting), lambda: _masked(plans.tree, acting))
        model = replace(plans.model, tree=tree)
        shared = plans.kernels.kept(("forces, kernels", acting), lambda: Kernels(model, plans.kernels.maker))
        plans.variants[acting] = plans.alike(shared.for_model(model))
    return plans.variants[acting]


def _masked(tree: Tree, acting: tuple[str, ...]) -> Tree:
    """The tree with some of its forces; laws can still read the others."""
    def acts(along: Any) -> bool:
        return ("friction" if isinstance(along, Friction) else "elements") in acting

    on_joints = {link: tuple((i, along) for i, along in several if acts(along))
                 for link, several in tree.joint_forces.items()}
    left = tuple(pair for pair in tree.pairs if not acts(getattr(pair, "along", None)))
    return replace(
        tree, gravity=tree.gravity if "gravity" in acting else (0.0, 0.0, 0.0),
        joint_forces={link: several for link, several in on_joints.items() if several},
        pairs=tuple(pair for pair in tree.pairs if acts(getattr(pair, "along", None))),
        readable=(*tree.readable, *left), applied=tree.applied if "elements" in acting else {},
        joints=tree.joints if "elements" in acting else tuple(_limp(joint) for joint in tree.joints))


def _limp(joint: Joint | None) -> Joint | None:
    """The modes of a flexible body without elasticity and damping."""
    if not isinstance(joint, Modal):
        return joint
    none = np.zeros_like(joint.body.stiffness)
    return Modal(replace(joint.body, stiffness=none, damping=none))
