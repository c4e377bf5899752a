"""Torsion bars by their dimensions."""

from __future__ import annotations

import math

from bellcrank.scalar.graph import Number

__all__ = ["torsion_stiffness"]


def torsion_stiffness(length: Number, diameter: Number, bore: Number, shear_modulus: Number) -> Number:
    """Stiffness [N m/rad] of a round bar, or of a tube with a `bore`: G pi (D^4 - d^4) / (32 L).

    >>> round(torsion_stiffness(1.0, 0.02, 0.0, 79e9), 3)
    1240.929
    """
    fourth = diameter**4 - bore**4
    return shear_modulus * fourth * (math.pi / 32.0) / length
