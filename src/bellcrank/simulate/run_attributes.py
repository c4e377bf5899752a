"""What a result says about its run besides numbers: versions, settings, the machine; as files can hold it."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank import __version__
from bellcrank.mechanism.fingerprint import fingerprint
from bellcrank.target.backend import libraries

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["as_json", "plain_attribute", "run_attributes"]

#: what an array among the settings or parameters may have to be written out
_WRITTEN_OUT = 64


def run_attributes(system: Machine, settings: dict[str, Any]) -> dict[str, Any]:
    """What is known of a run before it starts."""
    versions = {"bellcrank": __version__, "numpy": np.__version__, "python": platform.python_version()}
    versions |= {name: _version(name) for name in libraries(system.kernels.backend)}
    carried = [c.joint for c in system.model.mechanism.carriers]  # loops are cut beside these joints
    return {"bellcrank_result": 1, **({"cut": as_json(carried)} if carried else {}), "mechanism": system.model.name,
            "mechanism_hash": fingerprint(system.model.mechanism, fixed=True),
            "parameters": as_json(system.parameters), "formulation": system.model.method,
            "backend": system.kernels.backend,
            "stepper": str(settings.get("stepper", "")), "settings": as_json(settings), "versions": as_json(versions)}


@cache
def _version(library: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:  # another backend, or a package that is distributed by other names
        return str(getattr(sys.modules.get(library), "__version__", ""))


def as_json(value: Any) -> str:
    """A text, whatever the value holds."""
    return json.dumps(value, default=_simple)


def _simple(value: Any) -> Any:
    """Something JSON can write in the place of `value`."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist() if value.size <= _WRITTEN_OUT else f"array of shape {value.shape}"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, (set, frozenset)) else str(value)


def plain_attribute(value: Any) -> str | int | float:
    """A value that attributes of files can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if value is None:
        return ""
    return value if isinstance(value, (str, int, float)) else as_json(value)
