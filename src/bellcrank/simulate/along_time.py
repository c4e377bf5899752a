"""The machine over the samples of a run, as laws see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.lowering.machine_view import MachineView
from bellcrank.scalar.graph import Number
from bellcrank.simulate.whole_turns import Beginning
from bellcrank.system.loop_errors import loop_coordinates, loop_speeds
from bellcrank.topology.tree import LoopForce, Tree

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["along_time", "closing_coordinates", "followed", "gone_on", "turning_elements"]


class _MachineAlongTime(MachineView):
    """Angles of joints that close loops are measured within half a turn; here they go on from sample to sample, as
    those of other joints do."""

    t: Any
    system: Machine
    place: Floats
    start: Beginning

    def _of_closure(self, k: int, i: int, rate: bool) -> Number:
        found, c = super()._of_closure(k, i, rate), self._tree.closures[k]
        if rate or not (c.free or c).kind.within_a_turn(i):
            return found
        return gone_on(self.system, (c.name, i), found, super()._of_closure(k, i, True), self.t, self.place, self.start)


def along_time(system: Machine, q: Floats, start: Beginning) -> type[MachineView]:
    """The machine over states q (..., nq) of a run, as laws see it."""
    return type("MachineAlongTime", (_MachineAlongTime,), {"system": system, "place": q, "start": start})


def gone_on(system: Machine, angle: tuple[str, int], measured: Number, rates: Number, times: Floats, q: Floats,
            start: Beginning) -> Floats:
    """An angle (joint and coordinate) that is measured within half a turn as it goes on along a run: by coordinates
    that tell its turns, or else by the whole turns that are nearest to what its speeds say."""
    found = start.continued(system, *angle, measured, q)
    return followed(measured, rates, times) if found is None else found


def closing_coordinates(system: Machine, joint: str, q: Floats, u: Floats, t: Floats, start: Beginning) -> Floats:
    """Coordinates of a joint that closes a loop at states of a run, (..., nq of the joint); angles go on."""
    kind = system.model.mechanism.joint(joint).joint
    values = np.array(loop_coordinates(system.plans, q, joint, t=t))
    turning = [i for i in range(kind.nq if kind.nq == kind.nu else 0) if kind.within_a_turn(i)]
    rates = loop_speeds(system.plans, q, u, joint, t=t) if turning else values
    for i in turning:
        values[..., i] = gone_on(system, (joint, i), values[..., i], rates[..., i], t, q, start)
    return values


def turning_elements(tree: Tree) -> dict[str, tuple[str, int]]:
    """Elements whose lengths are angles of joints that close loops: which ones, joint and coordinate."""
    return {p.name: (tree.closures[p.closure].name, p.coordinate) for p in tree.pairs if isinstance(p, LoopForce)
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
