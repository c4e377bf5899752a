"""Runs that begin where another one ended.

What a run has made of a machine is no mistake of a user: shapes of compliant contacts overlap as deep as forces press
them, those of rigid ones by what is nonlinear in a step. A start is known as such an end by the result it is given as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import StateError
from bellcrank.mechanism.fingerprint import fingerprint

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["ended", "happened", "last_state"]


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
    return system.model.configuration.state(last["q"].values, last["u"].values, float(times[0]))


def ended(system: Machine, state: Any) -> bool:
    """Whether that is the result of a run of this machine."""
    return hasattr(state, "data_vars") and \
        state.attrs.get("mechanism_hash") == fingerprint(system.model.mechanism, fixed=True)


def happened(state: Any, count: int) -> tuple[frozenset[str], ...]:
    """Names of the events that happened at the very end of the result given, for each of its states: they do not happen
    again at the start of the run that continues it."""
    if not (hasattr(state, "data_vars") and "event_time" in state and "event" in state["event_time"].dims):
        return (frozenset(),) * count
    end = float(np.max(state["time"].values))
    last = np.abs(state["event_time"].values - end) <= 1e-12 * max(1.0, abs(end))
    names = state["event_name"].values
    sample = state["event_sample"].values if "event_sample" in state else np.zeros(len(last), dtype=int)
    return tuple(frozenset(map(str, names[last & ((sample == k) | (sample < 0))])) for k in range(count))
