"""What the writers of shapes share: numbers as text, and what a format cannot show."""

from __future__ import annotations

import warnings

from bellcrank.errors import BellcrankWarning, outside
from bellcrank.mechanism.geometry.placed_shape import PlacedShape

__all__ = ["number_list", "warn_left_out"]


def number_list(*values: float) -> str:
    """Numbers to the last bit, with spaces between them."""
    return " ".join(repr(v) for v in values)


def warn_left_out(placed: PlacedShape, why: str) -> None:
    """Say that a shape is not in the file that is written."""
    warnings.warn(f"shape {placed.name!r}: {why}; it is left out", BellcrankWarning, stacklevel=outside())
