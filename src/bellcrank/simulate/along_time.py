"""The machine over the samples of a run, as laws see it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.lowering.machine_view import MachineView
from bellcrank.scalar.graph import Number
from bellcrank.topology.tree import LoopForce, Tree

__all__ = ["MachineAlongTime", "followed", "turning_elements"]


class MachineAlongTime(MachineView):
    """Angles of joints that close loops are measured within half a turn; here they go on from sample to sample, by the
    whole turns that are nearest to what their speeds say, as those of other joints do."""

    t: Any

    def _of_closure(self, k: int, i: int, rate: bool) -> Number:
        found, c = super()._of_closure(k, i, rate), self._tree.closures[k]
        if rate or not (c.free or c).kind.within_a_turn(i):
            return found
        return followed(found, super()._of_closure(k, i, True), self.t)


def turning_elements(tree: Tree) -> set[str]:
    """Elements whose lengths are angles of joints that close loops."""
    return {p.name for p in tree.pairs if isinstance(p, LoopForce)
            and (tree.closures[p.closure].free or tree.closures[p.closure]).kind.within_a_turn(p.coordinate)}


def followed(angles: Number, rates: Number, times: Floats) -> Floats:
    """Angles within a turn as they go on along the one long axis of `times`.

    >>> followed(np.array([3.0, -3.0, -2.7]), np.array([0.28, 0.28, 0.3]), np.array([0.0, 1.0, 2.0])).round(3)
    array([3.   , 3.283, 3.583])
    """
    if np.size(times) < 2:
        return np.asarray(angles, dtype=float)
    axis = int(np.argmax(np.shape(times)))
    x, v, t = (np.moveaxis(a, axis, 0) for a in np.broadcast_arrays(angles, rates, times))
    expected = 0.5 * (v[1:] + v[:-1]) * np.diff(t, axis=0)
    turns = np.round((expected - np.diff(x, axis=0)) / (2.0 * np.pi))
    out = np.array(x, dtype=float)
    out[1:] += 2.0 * np.pi * np.cumsum(turns, axis=0)
    return np.moveaxis(out, 0, axis)
