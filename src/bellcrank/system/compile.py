"""`bellcrank.compile`: from a description to a `System`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from bellcrank.errors import AssemblyError, ModelError
from bellcrank.formulations import AUTO, functions_of, method_module
from bellcrank.formulations.common.pivot import eliminate
from bellcrank.lowering.function import direct
from bellcrank.lowering.link import Link
from bellcrank.mechanism.joints import Revolute
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.spatial import ArticulatedInertia, Force, RigidInertia
from bellcrank.system.evaluator import Maker
from bellcrank.system.system import System
from bellcrank.target.backend import BACKENDS
from bellcrank.topology.builder import build_tree, collector_paused
from bellcrank.topology.release import lock as lock_joints
from bellcrank.topology.tree import Tree

__all__ = ["compile"]


def compile(mechanism: Mechanism, method: str = "auto", backend: str = "llvm", *, point: str | None = None,
            schedule: str = "auto", threads: int | None = None, free_frames: bool = True, cut: Sequence[str] = (),
            actuated: Sequence[str] = (), independent: Sequence[str] = (), baumgarte: tuple[float, float] = (0.0, 0.0),
            lock: Sequence[str] = ()) -> System:
    """Make an immutable `System` of a mechanism.

    `method` is a formulation ("recursive", "kane", "operator", "complement", "momenta", "dense", for loops also
    "elimination" and "reduction") or "auto", usually the fastest; `point` is the reference point of "recursive"
    ("centroid", "joint", "origin"; also written "recursive/origin"). `backend` is "llvm" (compiled) or "numpy" (the
    reference). `schedule` ("unrolled", "rolled") and `threads` are chosen by the library unless given;
    `free_frames=False` keeps link frames at the joints. Native code is made when a function is first called, and kept
    on disk. Cost: O(bodies).

    Loops: `cut` names joints that shall close loops (the library chooses otherwise), `actuated` the joints with drives
    (for `System.inverse_dynamics`), `independent` those whose speeds shall stay independent where possible (the
    actuated ones unless given), `baumgarte` = (alpha, beta) adds -2 alpha (rate) - beta^2 (error) to the conditions
    of the multiplier methods.

    `lock` names joints that stay where q says (see `System.lock`); ``lock="massless"`` locks those that nothing
    resists, such as joints of links without mass at the ends of robots.

    >>> import bellcrank as bc
    >>> bc.compile(bc.load("pendulum")).coordinate_names
    ('hinge.angle',)
    """
    if not isinstance(mechanism, Mechanism):
        raise ModelError(f"compile needs a bellcrank.Mechanism, got {type(mechanism).__name__}")
    if backend not in (*BACKENDS, "numpy"):
        raise ModelError(f"no backend {backend!r}; this version has {', '.join(map(repr, BACKENDS))} and 'numpy'")
    if schedule not in ("auto", "unrolled", "rolled"):
        raise ModelError(f"schedule {schedule!r} must be 'auto', 'unrolled' or 'rolled'")
    actuated, independent, cut = (_names(x, what) for x, what in (
        (actuated, "actuated"), (independent, "independent"), (cut, "cut")))
    baumgarte = _gains(baumgarte)
    if not mechanism.bodies:
        raise ModelError(f"mechanism {mechanism.name!r} has no bodies")

    with collector_paused():
        mechanism = mechanism.copy()  # later changes of the description must not reach the system
        names = [_joint_of(mechanism, key) for key in (*actuated, *independent)]
        tree = build_tree(mechanism, free_frames=free_frames, cut=cut, keep=names)
        if method == "auto":
            method = AUTO[tree.looped]
        if point is not None:
            method = f"{method}/{point}"
        functions = functions_of(method, tree.looped)
        if tree.nu == 0:
            raise ModelError(f"mechanism {mechanism.name!r} has no joint that can move")
        loose = _without_resistance(tree) if lock == "massless" else []
        tree = lock_joints(tree, loose)
        wanted = () if lock == "massless" else _names(lock, "lock")
        if not tree.looped and not wanted:
            check_inertia(tree)
        made = System(mechanism, tree, method, backend, functions, Maker(backend, schedule, threads),
                      actuated=actuated, independent=independent or actuated, baumgarte=baumgarte)
        made._locked = tuple(loose)
        for key in (*actuated, *independent):
            made._split(key)  # says what is wrong with a name
        _check_coverage(made)
        made._warn_if_interpreted(3)
        return made.lock(*wanted)


def _check_coverage(system: System) -> None:
    """Refuse machines with loops that a formulation does not cover."""
    check = getattr(method_module(system.method), "check_coverage", None)
    if check is None or not system.tree.looped:
        return
    with suppress(AssemblyError):  # of positions there is nothing to say yet
        check(replace(system.tree, plan=system._reference().plan))


def _without_resistance(tree: Tree) -> list[tuple[str, int | None]]:
    """The joints of a tree that nothing resists."""
    found: list[tuple[str, int | None]] = []
    while not tree.looped:
        try:
            _find_loose(tree)
            break
        except _LooseError as error:
            found.append((error.joint, None))
            tree = lock_joints(tree, found[-1:])
    return found


def _names(value: Sequence[str] | None, what: str) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ModelError(f"{what}: give a sequence of joint names, not the text {value!r}")
    return tuple(value or ())


def _gains(value: object) -> tuple[float, float]:
    try:
        alpha, beta = (float(x) for x in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ModelError(f"baumgarte: {value!r} is not two numbers (alpha, beta)") from None
    if not (0.0 <= alpha < float("inf") and 0.0 <= beta < float("inf")):
        raise ModelError(f"baumgarte: alpha and beta must be finite and not negative, got {(alpha, beta)}")
    return alpha, beta


def _joint_of(mechanism: Mechanism, key: str) -> str:
    """The joint that a name such as ``crank`` or ``hip.angle`` speaks of."""
    names = {r.name for r in mechanism.joints}
    joint = key if key in names else str(key).rpartition(".")[0]
    return mechanism.joint(joint if joint in names else key).name


#: trees up to this size are checked joint by joint at a general position, larger ones at their tips only
_CHECKED = 400
#: what counts as no inertia, relative to all that the joint carries
_NOTHING = 1e-13


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
        if joint is None or not joint.nu or link in tree.symbolic or _all_held(tree, link):
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
    law, joint = tree.prescribed[link], tree.joints[link]
    assert joint is not None
    driven = law.mask(joint.nu) if law is not None else (False,) * joint.nu
    rotors = {i for i, _ in tree.armatures.get(link, ())}
    return all(yes or i in rotors for i, yes in enumerate(driven))


def _check_pivots(tree: Tree) -> None:
    """Look at every pivot of the articulated recursion in one general configuration."""
    q = np.random.default_rng(0).uniform(0.5, 1.0, tree.nq)  # general for quaternions, too
    values = list(tree.parameters.values())

    def read(name: str, index: int) -> float:
        return float(q[index]) if name == "q" else values[index] if name == "parameters" else 0.0

    sweeps = direct(tree, ("q",), read, False)
    number = {id(view): link for link, view in enumerate(sweeps.views)}

    def step(link: Link, upper: tuple[ArticulatedInertia, RigidInertia]
             ) -> tuple[tuple[ArticulatedInertia, RigidInertia], None]:
        mass, whole = upper[0] + link.inertia.articulated(), upper[1] + link.inertia
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

    sweeps.inward(step, zero=(ArticulatedInertia.zero(), RigidInertia.zero()))
