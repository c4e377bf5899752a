"""Joints that nothing resists: their acceleration would be infinite."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from bellcrank.errors import ModelError, StateError
from bellcrank.formulations.common.pivot import eliminate
from bellcrank.lowering.flexible_link import ModalLink
from bellcrank.lowering.function import direct
from bellcrank.lowering.link import Link
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.joints import Revolute
from bellcrank.spatial import ArticulatedInertia, Force, RigidInertia
from bellcrank.topology.release import lock
from bellcrank.topology.tree import Tree

__all__ = ["check_inertia", "without_resistance"]

#: trees up to this size are checked joint by joint at a general position, larger ones at their tips only
_CHECKED = 400
#: what counts as no inertia, relative to all that the joint carries
_NOTHING = 1e-13


def without_resistance(tree: Tree) -> list[tuple[str, int | None]]:
    """The joints of a tree that nothing resists."""
    found: list[tuple[str, int | None]] = []
    while not tree.looped:
        try:
            _find_loose(tree)
            break
        except _LooseError as error:
            found.append((error.joint, None))
            tree = lock(tree, found[-1:])
    return found


def check_inertia(tree: Tree) -> None:
    """Refuse joints that nothing resists: their acceleration would be infinite."""
    try:
        _find_loose(tree)
    except _LooseError as error:
        raise ModelError(str(error)) from None


def _find_loose(tree: Tree) -> None:
    """Raise for the first joint that nothing resists."""
    has_child = np.zeros(tree.n + 1, dtype=bool)
    has_child[tree.parent[1:]] = True
    still = np.abs(tree.inertia).max(-1) == 0.0
    second = tree.inertia[:, 4:]
    along = second[:, 5] <= _NOTHING * (second[:, 0] + second[:, 3] + second[:, 5])  # about the joint's z axis
    for link in (np.flatnonzero((still | along) & ~has_child)).tolist():
        joint = tree.joints[link]
        if joint is None or not joint.nu or link in tree.flexible or link in tree.symbolic or _all_held(tree, link):
            continue
        if still[link]:
            raise _LooseError(tree.joint_names[link], "nothing resists its motion (body "
                              f"{tree.link_names[link]!r} is massless and carries nothing); give the body an inertia")
        if isinstance(joint, Revolute):
            raise _no_inertia(tree, link)
    if tree.n <= _CHECKED:
        _check_pivots(tree)


class _LooseError(Exception):
    """A joint that nothing resists; users see a `ModelError`."""

    def __init__(self, joint: str, said: str) -> None:
        super().__init__(f"joint {joint!r}: {said}, weld it, or compile with lock=[{joint!r}] (lock=\"massless\" "
                         "locks all such joints)")
        self.joint = joint


def _no_inertia(tree: Tree, link: int) -> _LooseError:
    return _LooseError(tree.joint_names[link], f"no inertia about its axis (body {tree.link_names[link]!r} and what it "
                       "carries do not resist this motion); give it a rotational inertia")


def _all_held(tree: Tree, link: int) -> bool:
    """Whether every speed of a joint is prescribed, or has a rotor that resists it."""
    rotors = {i for i, _ in tree.armatures.get(link, ())}
    return all(yes or i in rotors for i, yes in enumerate(tree.mask(link)))


def _check_pivots(tree: Tree) -> None:
    """Look at every pivot of the articulated recursion in one general configuration."""
    q = np.random.default_rng(0).uniform(0.5, 1.0, tree.nq)  # general for quaternions, too
    for link in tree.flexible:
        joint, start = tree.joints[link], int(tree.q_start[link])
        assert isinstance(joint, Modal)
        q[start:start + joint.nq] *= joint.body.usual_size()
    values = list(tree.parameters.values())

    def read(name: str, index: int) -> float:
        return float(q[index]) if name == "q" else values[index] if name == "parameters" else 0.0

    forceless = replace(tree, pairs=(), joint_forces={}, applied={})  # laws need not be defined there
    sweeps = direct(forceless, ("q",), read, False)
    number = {id(view): link for link, view in enumerate(sweeps.views)}

    def step(link: Link, upper: tuple[ArticulatedInertia, RigidInertia]
             ) -> tuple[tuple[ArticulatedInertia, RigidInertia], None]:
        mass, whole = upper[0] + link.inertia.articulated(), upper[1] + link.inertia
        if isinstance(link, ModalLink):  # modes have masses, and move no frame
            for t in reversed(link.transforms):
                mass, whole = t.articulated(mass), t.rigid(whole)
            return (mass, whole), None
        for column, armature, prescribed in zip(link.columns, link.armature, link.mask, strict=True):
            if prescribed:
                continue
            pivot = column.dot(mass @ column) + armature
            size = (whole.second.xx + whole.second.yy + whole.second.zz) * column.angular.dot(column.angular) \
                + whole.mass * column.linear.dot(column.linear)
            if not pivot > _NOTHING * size:
                raise _no_inertia(tree, number[id(link)])
            mass, _, _ = eliminate(mass, Force.zero(), column, 0.0, armature)
        for t in reversed(link.transforms):
            mass, whole = t.articulated(mass), t.rigid(whole)
        return (mass, whole), None

    with suppress(StateError):  # a motion by a table that begins later: nothing is known at time zero
        sweeps.inward(step, zero=(ArticulatedInertia.zero(), RigidInertia.zero()))
