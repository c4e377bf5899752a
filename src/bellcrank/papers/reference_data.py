"""Independent solutions that items are compared with."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.compiled.system import System
from bellcrank.system.state import State

__all__ = ["reference", "state_of"]


@cache
def _all() -> dict[str, Any]:
    return dict(json.loads(files("bellcrank.papers").joinpath("reference_solutions.json").read_text(encoding="utf-8")))


def reference(machine: str) -> Any:
    """The solutions for a machine: those of its branches, where it has several.

    >>> reference("four_bar")["open_elbow_up"]["driven"]["t"][:2]
    [0.0, 2.5]
    """
    return _all()[machine]


def state_of(system: System, angles: npt.ArrayLike, rates: npt.ArrayLike | None = None) -> State:
    """States (...) of all joints from those of the joints that carry links, which references have; at rest without
    rates.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> known = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    >>> found = state_of(linkage, known.q[:3], known.u[:3])
    >>> bool(abs(found.q - known.q).max() < 1e-12 and abs(found.u - known.u).max() < 1e-12)
    True
    """
    tree, place = system.model.tree, np.asarray(angles, dtype=float)
    loop = [i for own in tree.loop_joints for i in range(*own.q.indices(tree.nq))]
    q, u = (np.zeros((*place.shape[:-1], n)) for n in (tree.nq, tree.nu))
    q[...] = system.neutral()
    q[..., [i for i in range(tree.nq) if i not in loop]] = place
    q = system.plans.loops.measured(q)
    if rates is not None:
        u[..., ~tree.loop_speeds()] = rates
        u = system.kernels.run("joint_speeds", {"q": q, "u": u}, None, 0.0)
    return system.state(q, u)
