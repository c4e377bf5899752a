"""Bellcrank: dynamics of machines made of linked bodies.

Describe bodies and joints in a `Mechanism`, `compile` it, compute with the `System`. SI units, radians;
spatial vectors are [angular; linear]; quaternions are scalar first; inertia is about the centre of mass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PLACES = {
    "Mechanism": "bellcrank.mechanism.mechanism", "Inertia": "bellcrank.mechanism.inertia",
    "Pose": "bellcrank.mechanism.pose", "compile": "bellcrank.system.compile", "System": "bellcrank.system.system",
    "load": "bellcrank.io.load", "cite": "bellcrank.formulations", "examples": "", "math": "",
    **{name: "bellcrank.mechanism.joints" for name in (
        "Cylindrical", "Free", "Joint", "Planar", "Prismatic", "Revolute", "Screw", "Spherical", "Universal", "Weld")},
    **{name: "bellcrank.errors" for name in (
        "BellcrankError", "FileError", "ModelError", "NotYetError", "SingularError", "StateError")},
}

__all__ = ["__version__", *_PLACES]

if TYPE_CHECKING:
    from bellcrank import examples, math
    from bellcrank.errors import BellcrankError, FileError, ModelError, NotYetError, SingularError, StateError
    from bellcrank.formulations import cite
    from bellcrank.io.load import load
    from bellcrank.mechanism.inertia import Inertia
    from bellcrank.mechanism.joints import (
        Cylindrical,
        Free,
        Joint,
        Planar,
        Prismatic,
        Revolute,
        Screw,
        Spherical,
        Universal,
        Weld,
    )
    from bellcrank.mechanism.mechanism import Mechanism
    from bellcrank.mechanism.pose import Pose
    from bellcrank.system.compile import compile
    from bellcrank.system.system import System


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that ``import bellcrank`` is quick."""
    if name not in _PLACES:
        raise AttributeError(f"module 'bellcrank' has no attribute {name!r}")
    from importlib import import_module

    place = _PLACES[name]
    value = getattr(import_module(place), name) if place else import_module(f"bellcrank.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
