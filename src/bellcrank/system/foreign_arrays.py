"""Arrays that live elsewhere, on a device: methods that no door answers for them compute on copies, and give results of
the same kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from bellcrank.mechanism.pose import Pose
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.system.kernels import Kernels
from bellcrank.system.state import State
from bellcrank.target.backend import ForeignArrays

__all__ = ["foreign_to", "on_copies", "to_numpy"]

#: what of a state may live on a device
_STATE = ("q", "u", "t", "contacts")


def foreign_to(kernels: Kernels) -> ForeignArrays | None:
    """What knows the arrays of the machine's device, where it has one."""
    run = kernels.evaluator
    return run.backend.foreign() if isinstance(run, CompiledEvaluator) else None


def on_copies(arrays: ForeignArrays, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
              ) -> Any:
    """Call a method; where it is given arrays of the device, with copies, and the arrays of its result go there."""
    examples: list[Any] = []
    plain = [to_numpy(arrays, a, examples) for a in args]
    named = {name: to_numpy(arrays, a, examples) for name, a in kwargs.items()}
    result = method(*plain, **named)
    return _back(arrays, result, examples[0]) if examples else result


def to_numpy(arrays: ForeignArrays, value: Any, examples: list[Any]) -> Any:
    """Copies of what lives on the device, which is noted among the `examples`."""
    if isinstance(value, Mapping):
        return {key: to_numpy(arrays, x, examples) for key, x in value.items()}
    if isinstance(value, State):
        return replace(value, **{name: to_numpy(arrays, getattr(value, name), examples) for name in _STATE})
    if isinstance(value, tuple):
        parts = [to_numpy(arrays, x, examples) for x in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if not arrays.holds(value):
        return value
    examples.append(value)
    return arrays.to_numpy(value)


def _back(arrays: ForeignArrays, value: Any, example: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return arrays.from_numpy(value, example)
    if isinstance(value, Pose):
        return Pose.of_arrays(*(arrays.from_numpy(np.asarray(x), example) for x in (value.position, value.rows)))
    if isinstance(value, dict):
        return {key: _back(arrays, x, example) for key, x in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _back(arrays, getattr(value, f.name), example) for f in fields(value)
                                 if f.init})
    if isinstance(value, tuple):
        parts = [_back(arrays, x, example) for x in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
