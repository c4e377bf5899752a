"""Which branches laws have: what `select_less` compares while a law is evaluated on arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = ["note_branch", "noting_branches"]

_noted: ContextVar[list[tuple[Any, Any]] | None] = ContextVar("noted", default=None)


@contextmanager
def noting_branches() -> Iterator[list[tuple[Any, Any]]]:
    """Both numbers of every comparison, in the order in which they are made.

    >>> import numpy as np
    >>> from bellcrank.scalar.functions import select_less
    >>> with noting_branches() as found:
    ...     half = select_less(np.array([1.0, 3.0]), 2.0, 0.5, 1.0)
    >>> [(a.tolist(), b) for a, b in found]
    [([1.0, 3.0], 2.0)]
    """
    found: list[tuple[Any, Any]] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def note_branch(a: Any, b: Any) -> None:
    """A comparison is made."""
    found = _noted.get()
    if found is not None:
        found.append((a, b))
