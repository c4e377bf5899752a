"""What other processes get of a mechanism: everything but functions that they cannot import."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from bellcrank.errors import ModelError

__all__ = ["check_picklable"]

#: what the tables of a mechanism hold, one by one
_KINDS = {"_bodies": "body", "_joints": "joint", "_frames": "frame", "_couplers": "coupler",
          "_constraints": "constraint", "_wrenches": "wrench", "_springs": "spring", "_bushings": "bushing",
          "_drags": "drag", "_joint_forces": "joint force", "_joint_sums": "joint sum", "_drives": "actuator",
          "_armatures": "armature", "_shapes": "shape", "_states": "state",
          "_outputs": "output", "_contacts": "contact"}
#: what pickling raises for what it cannot find under a name
_FAILURES = (pickle.PicklingError, AttributeError, TypeError)
#: picklers that take the code of functions along, also under the names of packages that bring their own copies
_BY_VALUE = ("cloudpickle", "dill")


def check_picklable(name: str, tables: Mapping[str, Any]) -> None:
    """Say which part of a mechanism holds a function (or a class) that the standard pickler cannot find by its name.

    Nothing is refused to picklers that take functions along. Cost: that of pickling.
    """
    if _taken_along():
        return
    try:
        pickle.dumps(dict(tables), pickle.HIGHEST_PROTOCOL)
    except _FAILURES as error:
        part = next((f"{kind} {key!r}" for table, kind in _KINDS.items()
                     for key, value in tables.get(table, {}).items() if _fails(value)), "something it holds")
        raise ModelError(f"mechanism {name!r} cannot be pickled because of {part}: {error}. Other processes can use "
                         "laws (and types of joints) that are defined at the top level of a module, and formulas: "
                         "bellcrank.save writes laws as formulas, bellcrank.load reads them") from None


def _fails(value: Any) -> bool:
    try:
        pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except _FAILURES:
        return True
    return False


def _taken_along() -> bool:
    """Whether a pickler that takes functions along is at work: it is among the callers."""
    if not any(part in name for name in list(sys.modules) for part in _BY_VALUE):
        return False
    frame = inspect.currentframe()
    while frame is not None:
        if set(str(frame.f_globals.get("__name__", "")).split(".")) & set(_BY_VALUE):
            return True
        frame = frame.f_back
    return False
