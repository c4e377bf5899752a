"""Built-in machines, by name."""

from __future__ import annotations

from bellcrank.errors import ModelError
from bellcrank.examples import chains, robots
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["load", "names"]

_MAKERS = {"pendulum": chains.pendulum, "double_pendulum": chains.double_pendulum, "chain": chains.random_chain,
           "gyroscope": chains.gyroscope, "scara": robots.scara, "arm": robots.arm, "quadruped": robots.quadruped,
           "crane": robots.crane}


def names() -> list[str]:
    """Names that `bellcrank.load` understands.

    >>> "pendulum" in names()
    True
    """
    return sorted(_MAKERS)


def load(name: str) -> Mechanism:
    """A fresh copy of a built-in machine."""
    if name not in _MAKERS:
        raise ModelError(f"no example {name!r}; there are {', '.join(names())}")
    return _MAKERS[name]()
