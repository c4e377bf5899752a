"""`bellcrank.compile`: from a description to a `System`."""

from __future__ import annotations

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.formulations import functions_of
from bellcrank.formulations.program import direct
from bellcrank.mechanism.build import build_tree
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.tree import Tree
from bellcrank.system.evaluator import LlvmEvaluator, NumpyEvaluator
from bellcrank.system.system import System

__all__ = ["compile"]


def compile(mechanism: Mechanism, method: str = "auto", backend: str = "llvm", *, schedule: str = "auto",
            threads: int | None = None, free_frames: bool = True) -> System:
    """Make an immutable `System` of a mechanism.

    `method` is a formulation ("recursive", "dense") or "auto", the fastest valid one; `backend` is "llvm"
    (compiled) or "numpy" (the reference). `schedule` ("unrolled", "rolled") and `threads` are chosen by the
    library unless given; `free_frames=False` keeps link frames at the joints. Native code is made when a
    function is first called, and kept on disk. Cost: O(bodies).

    >>> import bellcrank as bc
    >>> bc.compile(bc.load("pendulum")).coordinate_names
    ('hinge.angle',)
    """
    if not isinstance(mechanism, Mechanism):
        raise ModelError(f"compile needs a bellcrank.Mechanism, got {type(mechanism).__name__}")
    if backend not in ("llvm", "numpy"):
        raise ModelError(f"no backend {backend!r}; this version has 'llvm' and 'numpy'")
    functions = functions_of("recursive" if method == "auto" else method)
    if not mechanism.bodies:
        raise ModelError(f"mechanism {mechanism.name!r} has no bodies")
    tree = build_tree(mechanism, free_frames=free_frames)
    if tree.nu == 0:
        raise ModelError(f"mechanism {mechanism.name!r} has no joint that can move")
    check_inertia(tree)

    def evaluator(of: Tree) -> LlvmEvaluator | NumpyEvaluator:
        return NumpyEvaluator(of) if backend == "numpy" else LlvmEvaluator(of, schedule, threads)

    return System(mechanism, tree, "recursive" if method == "auto" else method, backend, functions, evaluator)


#: trees up to this size are checked joint by joint at a general position
_CHECKED = 400


def check_inertia(tree: Tree) -> None:
    """Refuse joints that nothing resists: their acceleration would be infinite."""
    has_child = np.zeros(tree.n + 1, dtype=bool)
    has_child[tree.parent[1:]] = True
    still = (np.abs(tree.inertia).max(-1) == 0.0) & ~has_child
    for link in np.flatnonzero(still[1:]) + 1:
        joint = tree.joints[link]
        if joint is not None and joint.nu and int(link) not in tree.symbolic and not _all_driven(tree, int(link)):
            raise ModelError(f"joint {tree.joint_names[link]!r}: nothing resists its motion (body "
                             f"{tree.link_names[link]!r} is massless and carries nothing); give the body an inertia "
                             "or weld it")
    if tree.n <= _CHECKED:
        _check_pivots(tree)


def _all_driven(tree: Tree, link: int) -> bool:
    law, joint = tree.prescribed[link], tree.joints[link]
    return law is not None and joint is not None and all(law.mask(joint.nu))


def _check_pivots(tree: Tree) -> None:
    from bellcrank.formulations.recursive import hinge_inertias

    rng = np.random.default_rng(0)
    q = rng.uniform(0.5, 1.0, tree.nq)  # a general position, also for quaternions
    values = list(tree.parameters.values())

    def read(name: str, index: int) -> object:
        return np.float64(q[index] if name == "q" else values[index] if name == "parameters" else 0.0)

    with np.errstate(all="ignore"):
        sweeps = direct(tree, ("q",), read, False)
        field = hinge_inertias(sweeps)
    for link in range(1, tree.n + 1):
        for articulated, composite in field[link]:
            if not articulated > 1e-13 * composite:
                raise ModelError(
                    f"joint {tree.joint_names[link]!r}: no inertia about its axis (body {tree.link_names[link]!r} and "
                    "what it carries do not resist this motion); give it a rotational inertia or weld it")
