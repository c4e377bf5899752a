"""Questions about a machine that are answered by computing with it in many states (public as ``bellcrank.analyze``).

Each is a function of a `System`; what is computed at one state is a method of the `System` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_PLACES = {"check_joint": "joint_checks", "compare": "comparison", "coupler_curve": "curves", "drive": "driven",
           "equilibrium": "statics", "explain": "explanation", "linearize": "linear_models", "modes": "vibration",
           "workspace": "curves"}

__all__ = ["check_joint", "compare", "coupler_curve", "drive", "equilibrium", "explain", "linearize", "modes",
           "workspace"]

if TYPE_CHECKING:
    from bellcrank.analyze.comparison import compare
    from bellcrank.analyze.curves import coupler_curve, workspace
    from bellcrank.analyze.driven import drive
    from bellcrank.analyze.explanation import explain
    from bellcrank.analyze.joint_checks import check_joint
    from bellcrank.analyze.linear_models import linearize
    from bellcrank.analyze.statics import equilibrium
    from bellcrank.analyze.vibration import modes


def __getattr__(name: str) -> Any:
    """Functions are imported when they are first used."""
    if name not in _PLACES:
        raise AttributeError(f"module 'bellcrank.analyze' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"bellcrank.analyze.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
