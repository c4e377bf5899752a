"""Which forces act: gravity, inertia, elements and joint friction in the joint forces of a motion; forces along loop
joints.

Gravity and elements are switched off in other trees of the same machine, with their own code and the same plans of the
loops. Inertia is what is left without both, so forces without inertia are a difference of two results. Forces along
loop joints are elements of another such tree, so that machines without them pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_unmasked
from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.forces.coordinate_forces import Friction
from bellcrank.mechanism.joints import Joint
from bellcrank.system.kernels import Kernels, Wrenches
from bellcrank.topology.release import with_given_forces

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.machine_functions import Machine
    from bellcrank.topology.tree import Tree

Made = TypeVar("Made", bound="Machine")

__all__ = ["TERMS", "acting", "chosen_terms", "forced", "forced_machine", "in_terms"]

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


def acting(plans: LoopPlans, tau: npt.ArrayLike | None) -> LoopPlans:
    """The machine itself, or that in which forces along loop joints act if some of the joint forces (..., nu) do."""
    tree = plans.tree
    if tau is None or len(tree.forced) == len(tree.loop_joints) or np.shape(tau)[-1:] != (tree.nu,):
        return plans
    check_unmasked("tau", tau)
    rows = np.asarray(tau, dtype=float)
    missing = (own for own in tree.loop_joints if own.name not in tree.forced)
    return forced(plans) if any(rows[..., own.u].any() for own in missing) else plans


def forced(plans: LoopPlans, joints: Sequence[str] | None = None) -> LoopPlans:
    """The machine in which forces along loop joints, all or some of them, act; made once."""
    tree, names = plans.tree, plans.tree.loop_joint_names if joints is None else joints
    if set(names) <= set(tree.forced):
        return plans
    return _variant(plans, ("tau", *names), lambda tree: with_given_forces(tree, names))


def forced_machine(system: Made, joints: Sequence[str] | None = None) -> Made:
    """The same of a system."""
    plans = forced(system.plans, joints)
    return system if plans is system.plans else type(system)(plans.kernels, plans)


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
    return _variant(plans, acting, lambda tree: _masked(tree, acting))


def _variant(plans: LoopPlans, key: tuple[str, ...], change: Callable[[Tree], Tree]) -> LoopPlans:
    """The machine with other forces, made once."""
    if key not in plans.variants:
        tree = plans.kernels.kept(("forces", key), lambda: change(plans.tree))
        model = replace(plans.model, tree=tree)
        shared = plans.kernels.kept(("forces, kernels", key), lambda: Kernels(model, plans.kernels.maker))
        plans.variants[key] = plans.alike(shared.for_model(model))
    return plans.variants[key]


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
