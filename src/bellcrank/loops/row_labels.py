"""What the constraints of a closure are called, by what they forbid."""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.topology.tree import Closure

__all__ = ["row_labels"]


def row_labels(c: Closure) -> tuple[str, ...]:
    """What each constraint forbids, in the axes of the joint's frame."""
    names: tuple[str, ...] = getattr(c.kind, "condition_names", ())
    if not names:
        return tuple(str(i) for i in range(c.rows))
    align = c.kind.alignment()
    axes = {axis: _direction(align[:, i]) for i, axis in enumerate("xyz")}
    out = []
    for name in names:
        what, _, axis = name.partition(" ")
        out.append(f"{what} {axes[axis]}" if what in ("along", "about", "slip") and axis in axes else name)
    return tuple(out)


def _direction(axis: Floats) -> str:
    """An axis by its letter, or by its entries; a constraint has no sign."""
    along = int(np.argmax(np.abs(axis)))
    if abs(axis[along]) > 1.0 - 1e-9:
        return "xyz"[along]
    return f"({', '.join(f'{round(float(x), 3) + 0.0:g}' for x in axis)})"
