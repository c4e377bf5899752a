"""Whether two mechanisms are the same machine: every name, every number to the last bit, every law step by step."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.native.formula import traced_law
from bellcrank.io.native.trace import from_scalar, trace, trace_several
from bellcrank.mechanism.forces import LawForce, MachineForce, Wrench
from bellcrank.mechanism.forces.machine_force import Bristle, RollingResistance
from bellcrank.mechanism.forces.motors import DcMotor, HydraulicCylinder
from bellcrank.mechanism.forces.tyre import Tyre, TyreRate
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.motion import Prescribed
from bellcrank.mechanism.parts import AddedOutput, AddedState
from bellcrank.scalar.graph import Scalar

__all__ = ["difference", "same_mechanism"]

#: fields that are laws of the machine
_MACHINE_LAWS = {MachineForce: ("law",), AddedState: ("rate",), AddedOutput: ("law",), Wrench: ("law",),
                 HydraulicCylinder: ("opening",), DcMotor: ("voltage",), Bristle: ("capacity",),
                 RollingResistance: ("load",), TyreRate: ("tyre",)}
#: what a mechanism keeps besides its description
_DERIVED = ("_graph", "_by_index", "_at_origin", "_ranges")


def same_mechanism(first: Mechanism, second: Mechanism) -> bool:
    """Whether two mechanisms are equal in all that they hold, in the same order; but for ranges, which do not act and
    which not all files keep.

    Laws are compared by what they compute, traced, and not by their code; a law that cannot be traced is a
    `ModelError`. Cost: O(parts).

    >>> import bellcrank as bc
    >>> same_mechanism(bc.load("pendulum"), bc.load("pendulum"))
    True
    """
    return difference(first, second) is None


def difference(first: Mechanism, second: Mechanism) -> str | None:
    """Where two mechanisms differ first, or None."""
    one, other = (_flat(m) for m in (first, second))
    for (path, a), (path2, b) in zip(one, other, strict=False):
        if path != path2 or a != b:
            return f"{path}: {a!r} is not {path2}: {b!r}" if path != path2 else f"{path}: {a!r} is not {b!r}"
    if len(one) != len(other):
        longer = max(one, other, key=len)
        return f"only one has {longer[min(len(one), len(other))][0]}"
    return None


def _flat(mechanism: Mechanism) -> list[tuple[str, Any]]:
    """All of a mechanism as one list of places and simple values."""
    walk = _Comparison(tuple(mechanism.parameters))
    for name, value in sorted(vars(mechanism).items()):
        if name not in _DERIVED:
            walk.put(name, value, 1)
    return walk.found


class _Comparison:
    def __init__(self, parameters: tuple[str, ...]) -> None:
        self.parameters = parameters
        self.found: list[tuple[str, Any]] = []

    def put(self, path: str, value: Any, arity: int) -> None:
        """Add a value of any type; laws in it take `arity` arguments."""
        if isinstance(value, bool) or value is None or isinstance(value, str):
            self.found.append((path, value))
        elif isinstance(value, (int, float, np.integer, np.floating)):
            self.found.append((path, struct.pack("<d", value)))
        elif isinstance(value, Scalar):
            self.found.append((path, from_scalar(value, self.parameters)))
        elif isinstance(value, np.ndarray):
            self.found.append((path, (value.shape, value.tobytes())))
        elif callable(value):
            self.found.append((path, trace(value, ("x", "rate")[:arity], path)))
        elif isinstance(value, Mapping):
            self.found.append((path, len(value)))
            for key, inner in value.items():
                self.found.append((path, key))
                self.put(f"{path}[{key!r}]", inner, arity)
        elif isinstance(value, (tuple, list)):
            self.found.append((path, len(value)))
            for i, inner in enumerate(value):
                self.put(f"{path}[{i}]", inner, arity)
        else:
            self.fields(path, value)

    def fields(self, path: str, value: Any) -> None:
        """An object by what is in it."""
        kind = type(value)
        if not kind.__module__.startswith("bellcrank."):
            raise ModelError(f"{path}: a {kind.__name__} cannot be compared")
        self.found.append((path, kind.__qualname__))
        names = {n for base in kind.__mro__ for n in _listed(base.__dict__.get("__slots__", ()))}
        names |= set(getattr(value, "__dict__", {}))
        names -= {n for base in kind.__mro__ for n, x in vars(base).items() if isinstance(x, cached_property)}
        for name in sorted(names - {"__dict__", "__weakref__"}):
            inner = getattr(value, name)
            if callable(inner) and name in _MACHINE_LAWS.get(kind, ()):
                if type(inner).__module__.startswith("bellcrank.mechanism."):  # ready-made: by what it is
                    self.fields(f"{path}.{name}", inner)
                    continue
                self.found.append((f"{path}.{name}", traced_law(inner, path, kind is Wrench)))
            elif isinstance(value, Prescribed) and name == "whole" and inner is not None:
                self.found.append((f"{path}.whole", trace_several(inner, ("t",), path, len(list(inner(0.0))))))
            else:
                self.put(f"{path}.{name}", inner, 2 if isinstance(value, (LawForce, Tyre)) else 1)


def _listed(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)
