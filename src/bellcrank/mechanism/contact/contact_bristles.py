"""Contact whose friction truly sticks: at every place a brush of bristles that bend until they slide (see
`forces.bristle`), along the surface in two directions.

The bend b, a vector along the surface, is a share of what the bristles hold at most: b' = (v - s b) / reach at the slip
v, where s b is what slides: nothing below a bend of 0.8, and at 1 all that would bend them further. Friction is
- friction normal (b + damping (v - |v| b) / (reach + damping |v|)), so never more than Coulomb's.
Its components are states, in the axes of the shape that the place lies on: two on a plane, three on others, of which
what lies along the normal does not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.contact.contact_material import Compliant
from bellcrank.mechanism.forces.bristle import sliding
from bellcrank.scalar.functions import maximum, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["BendRate", "BristleContact", "bend_names"]

#: squares of slips [m^2/s^2] below this have no size: there are derivatives at rest
_STILL = 1e-40


@dataclass(frozen=True)
class BristleContact(Compliant):
    """A compliant contact with bristles that bend by `reach` [m] before they slide; `bend_damping` [s] is the time
    constant of their damping."""

    reach: Number = 1e-4
    bend_damping: Number = 1e-2

    def bristle_force(self, normal_force: Number, slip: Vector, bend: Vector) -> Vector:
        """Friction [N]."""
        speed = sqrt(maximum(slip.dot(slip), _STILL))
        part = self.bend_damping / (self.reach + self.bend_damping * speed)
        out: Vector = (bend + (slip - bend * speed) * part) * -(self.friction * normal_force)
        return out

    def held(self, normal_force: Number, bend: Vector) -> Number:
        """Energy in the bent bristles [J], at the normal force of now."""
        out: Number = bend.dot(bend) * (0.5 * self.reach * self.friction * normal_force)
        return out

    def bend_rate(self, slip: Vector, bend: Vector) -> Vector:
        """The rate of the bend [1/s]."""
        out: Vector = (slip - bend * sliding(bend.dot(bend), slip.dot(bend))) * (1.0 / self.reach)
        return out


@dataclass(frozen=True)
class BendRate:
    """The rate of one component of a bend: a law of the machine."""

    contact: str
    place: int
    axis: int

    @property
    def state(self) -> str:
        """What the state is called."""
        return f"{self.contact} bend {self.place}{'xyz'[self.axis]}"

    @classmethod
    def called(cls, name: str) -> BendRate | None:
        """The one of a state of this name."""
        found = re.fullmatch(r"(.+) bend (\d+)([xyz])", name)
        return None if found is None else cls(found[1], int(found[2]), "xyz".index(found[3]))

    def __call__(self, at: Any) -> Number:
        rate: Number = at.element(self.contact).bend_rate(self.place)[self.axis]
        return rate


def bend_names(contact: str, places: int, axes: int) -> tuple[tuple[str, ...], ...]:
    """Names of the states of all places."""
    return tuple(tuple(BendRate(contact, k, i).state for i in range(axes)) for k in range(places))
