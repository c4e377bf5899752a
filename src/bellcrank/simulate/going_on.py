"""Runs that begin where another one ended.

What a run has made of a machine is no mistake of a user: shapes of compliant contacts overlap as deep as forces press
them, those of rigid ones by what is nonlinear in a step. A start is known as such an end by the result it is given as,
or by its coordinates, which are those at the end of a recent run of the machine.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import StateError
from bellcrank.loops.closer import State
from bellcrank.mechanism.fingerprint import fingerprint

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["last_state", "remember_end", "where_runs_ended"]

#: runs whose ends are kept, and how many numbers of one at most
_RUNS, _MOST = 8, 10**6
#: how far coordinates may be from those of an end: they are closed anew
_SAME = 1e-9


def last_state(system: Machine, state: Any) -> Any:
    """The last sample of a result, as a state with its time; any other state as it is."""
    if not hasattr(state, "data_vars"):
        return state
    for dim, names in (("coordinate", system.coordinate_names), ("speed", system.speed_names)):
        own = state[dim].values.tolist() if dim in state.coords else []
        if own != list(names):
            raise StateError(f"simulate: the result to go on from has other {dim}s ({', '.join(map(str, own[:6]))}) "
                             f"than {system.model.name!r} ({', '.join(names[:6])}): give (q, u)")
    last = state.isel(time=-1) if "time" in state.dims else state
    times = np.unique(last["time"].values)
    if len(times) != 1:
        raise StateError(f"simulate: states of the result to go on from ended at {len(times)} times: give (q, u) of "
                         "those that ended together")
    if state.attrs.get("mechanism_hash") == fingerprint(system.model.mechanism, fixed=True):
        remember_end(system, state)
    return State(np.asarray(last["q"].values), np.asarray(last["u"].values), float(times[0]))


def remember_end(system: Machine, result: Any) -> None:
    """Keep the coordinates at the end of a run, if the machine has contacts."""
    tree = system.model.tree
    if tree.pairs or tree.contacts:
        last = result["q"].isel(time=-1).values if "time" in result["q"].dims else result["q"].values
        if last.size <= _MOST:
            _ends(system).append(np.array(last.reshape(-1, last.shape[-1])))


def where_runs_ended(system: Machine, q: Floats) -> npt.NDArray[np.bool_]:
    """Of which of some positions, shape (count, nq), recent runs of the machine have ended in."""
    known = np.zeros(len(q), dtype=bool)
    for ends in tuple(_ends(system)):
        for k in np.flatnonzero(~known):
            known[k] = bool((np.abs(ends - q[k]) <= _SAME * (1.0 + np.abs(q[k]))).all(axis=1).any())
    return known


def _ends(system: Machine) -> deque[Floats]:
    return system.kernels.kept("ends of runs", lambda: deque(maxlen=_RUNS))
