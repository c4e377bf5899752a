"""Torsion bars by their dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.mechanism.forces.spring import LinearSpring
from bellcrank.scalar.graph import Number

__all__ = ["TorsionBar", "torsion_stiffness"]


def torsion_stiffness(length: Number, diameter: Number, bore: Number, shear_modulus: Number) -> Number:
    """Stiffness [N m/rad] of a round bar, or of a tube with a `bore`: G pi (D^4 - d^4) / (32 L).

    >>> round(torsion_stiffness(1.0, 0.02, 0.0, 79e9), 3)
    1240.929
    """
    fourth = diameter**4 - bore**4
    return shear_modulus * fourth * (math.pi / 32.0) / length


@dataclass(frozen=True)
class TorsionBar(LinearSpring):
    """A spring on a joint with the stiffness of a bar: dimensions [m], shear modulus [Pa].

    >>> round(TorsionBar.of(1.0, 0.02, 0.0, 79e9).force(0.1, 0.0), 3)
    -124.093
    """

    length: Number = 1.0
    diameter: Number = 0.0
    bore: Number = 0.0
    shear_modulus: Number = 79e9

    @classmethod
    def of(cls, length: Number, diameter: Number, bore: Number, shear_modulus: Number, damping: Number = 0.0,
           rest: Number = 0.0) -> TorsionBar:
        """A bar of these dimensions."""
        return cls(torsion_stiffness(length, diameter, bore, shear_modulus), damping, rest, length, diameter, bore,
                   shear_modulus)
