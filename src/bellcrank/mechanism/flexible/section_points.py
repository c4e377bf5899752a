"""Points of a beam's cross section at which stresses are computed, from the forces and moments of the section.

With the force N along the axis, shear forces Vy and Vz, the torque T and bending moments My and Mz that the part beyond
the section exerts on the part before it,

    s_xx = E (N / EA + z My / EIy - y Mz / EIz),                                                     (1)
    s_xy = G ty T / GJ + E sy Vy / EA,       s_xz = G tz T / GJ + E sz Vz / EA,                      (2)

where (ty, tz) is the shear of a unit twist (Saint-Venant's: in a round section the distance from the axis) and sy, sz
compare the shear stress at the point with the mean one, V / A. The other stresses are none.
S. P. Timoshenko and J. N. Goodier, "Theory of Elasticity", McGraw-Hill, 3rd edition, 1970, articles 104 to 109.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bellcrank.arguments import checked_methods

__all__ = ["SectionPoint", "rectangle_points", "round_points"]

#: 1 - 1/9 + 1/25 - 1/49 + ...
_CATALAN = 0.915965594177219


@checked_methods
@dataclass(frozen=True)
class SectionPoint:
    """A point of a cross section, whose axes y and z are the principal ones through its centroid."""

    name: str
    y: float  #: [m]
    z: float  #: [m]
    E: float  #: Young's modulus there [Pa]
    G: float  #: shear modulus there [Pa]
    twist: tuple[float, float] = (0.0, 0.0)  #: ty and tz [m]
    shear: tuple[float, float] = (0.0, 0.0)  #: sy and sz

    def towards(self, other: SectionPoint, part: float) -> SectionPoint:
        """Between this point and that of another section, every number linearly."""
        def between(a: float, b: float) -> float:
            return a if a == b else a + (b - a) * part

        y, z, E, G = (between(getattr(self, name), getattr(other, name)) for name in ("y", "z", "E", "G"))
        (ty, tz), (sy, sz) = (map(between, a, b) for a, b in ((self.twist, other.twist), (self.shear, other.shear)))
        return SectionPoint(self.name, y, z, E, G, (ty, tz), (sy, sz))


def round_points(outer: float, inner: float, E: float, G: float) -> tuple[SectionPoint, ...]:
    """Four points on the outside of a tube with these radii; shear stresses of bending by Jourawski's formula."""
    most = 4.0 / 3.0 * (outer**2 + outer * inner + inner**2) / (outer**2 + inner**2)
    return (SectionPoint("+y", outer, 0.0, E, G, (0.0, outer), (0.0, most)),
            SectionPoint("-y", -outer, 0.0, E, G, (0.0, -outer), (0.0, most)),
            SectionPoint("+z", 0.0, outer, E, G, (-outer, 0.0), (most, 0.0)),
            SectionPoint("-z", 0.0, -outer, E, G, (outer, 0.0), (most, 0.0)))


def rectangle_points(height: float, width: float, E: float, G: float) -> tuple[SectionPoint, ...]:
    """Corners, where bending is worst, and the middles of the sides, where shear is."""
    y, z = 0.5 * height, 0.5 * width
    across_y, across_z = _twisted(height, width), _twisted(width, height)
    return (SectionPoint("+y+z", y, z, E, G), SectionPoint("+y-z", y, -z, E, G), SectionPoint("-y+z", -y, z, E, G),
            SectionPoint("-y-z", -y, -z, E, G),
            SectionPoint("+y", y, 0.0, E, G, (0.0, across_y), (0.0, 1.5)),
            SectionPoint("-y", -y, 0.0, E, G, (0.0, -across_y), (0.0, 1.5)),
            SectionPoint("+z", 0.0, z, E, G, (-across_z, 0.0), (1.5, 0.0)),
            SectionPoint("-z", 0.0, -z, E, G, (across_z, 0.0), (1.5, 0.0)))


def _twisted(apart: float, along: float) -> float:
    """The shear of a unit twist in the middle of two sides of length `along` that lie `apart`, over the modulus."""
    odd = np.arange(1, 40, 2)
    if apart <= along:
        return float(apart * (1.0 - 8.0 / math.pi**2 * (1.0 / (odd**2 * np.cosh(np.minimum(
            odd * math.pi * along / (2.0 * apart), 700.0)))).sum()))
    signs = np.where(odd % 4 == 1, 1.0, -1.0)
    late = signs / odd**2 * (np.tanh(odd * math.pi * apart / (2.0 * along)) - 1.0)
    return float(along * 8.0 / math.pi**2 * (_CATALAN + late.sum()))
