"""What touches: compliant by Hunt and Crossley's law, or rigid; both with Coulomb friction.

Contact whose friction truly sticks: at every place a brush of bristles that bend until they slide (see
`forces.machine_force`), along the surface in two directions.

The bend b, a vector along the surface, is a share of what the bristles hold at most: b' = (v - s b) / reach at the slip
v, where s b is what slides: nothing below a bend of 0.8, and at 1 all that would bend them further. Friction is
- friction normal (b + damping (v - |v| b) / (reach + damping |v|)), so never more than Coulomb's.
Its components are states, in the axes of the shape that the place lies on: two on a plane, three on others, of which
what lies along the normal does not count.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.mechanism.forces.element import Element, positive_part
from bellcrank.mechanism.forces.machine_force import sliding
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.functions import maximum, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["BendRate", "BristleContact", "Compliant", "PlacedContact", "Unyielding", "bend_names", "dissipation_for"]

#: depths [m] below this have no square root of their own, so that there are derivatives where shapes just touch
_SHALLOW = 1e-30


@dataclass(frozen=True)
class Compliant(Element):
    """The force at every place where two shapes overlap by x, at the rate v.

    Normal force ``stiffness x^exponent max(0, 1 + dissipation v)``: K. H. Hunt and F. R. E. Crossley, "Coefficient of
    restitution interpreted as damping in vibroimpact", J. Appl. Mech. 42 (1975), with the pull left out. It is zero
    where the shapes part, never pulls, and takes energy out in both directions.

    Friction is ``-friction normal s / sqrt(|s|^2 + slip_speed^2)`` along the slip s: Coulomb's law but for slips about
    as slow as `slip_speed`. What sticks creeps, with the share r of the largest friction that is needed, at
    ``slip_speed r / sqrt(1 - r^2)``.

    >>> steel = Compliant(stiffness=1e5, dissipation=0.2, friction=0.5)
    >>> steel.normal_force(1e-3, 0.0), steel.normal_force(1e-3, -10.0), steel.normal_force(-1e-3, 1.0)
    (100.0, 0.0, 0.0)
    """

    stiffness: Number
    dissipation: Number = 0.0
    friction: Number = 0.0
    slip_speed: Number = 1e-3
    exponent: float = 1.0

    def normal_force(self, depth: Number, rate: Number) -> Number:
        """Force [N] that pushes the shapes apart; `depth` [m] and its `rate` [m/s]."""
        return self._elastic(positive_part(depth)) * positive_part(1.0 + self.dissipation * rate)

    def friction_force(self, normal_force: Number, slip: Vector) -> Vector:
        """Force [N] against the slip [m/s]."""
        speed = sqrt(slip.dot(slip) + self.slip_speed * self.slip_speed)
        out: Vector = slip * (-(self.friction * normal_force / speed))
        return out

    def energy(self, depth: Number) -> Number:
        """Energy stored [J]."""
        x = positive_part(depth)
        return self._elastic(x) * x / (self.exponent + 1.0)

    def normal_loss(self, depth: Number, rate: Number) -> Number:
        """Power [W] that the normal force turns into heat; never negative."""
        return (self.normal_force(depth, rate) - self._elastic(positive_part(depth))) * rate

    def _elastic(self, x: Number) -> Number:
        if self.exponent == 1.0:
            return self.stiffness * x
        root = sqrt(maximum(x, _SHALLOW))
        return self.stiffness * (x * root if self.exponent == 1.5 else x * x)


@dataclass(frozen=True)
class Unyielding(Element):
    """Shapes that do not give way: they part with `restitution` times the speed at which they met (Newton's law), and
    slide with Coulomb's `friction`, or do not slide at all."""

    restitution: Number = 0.0
    friction: Number = 0.0


def dissipation_for(restitution: float, impact_speed: float) -> float:
    """The dissipation [s/m] with which shapes that meet at `impact_speed` [m/s] part with `restitution` times that.

    Along the way v dv / (1 + d v) = -k x^n dx / m, whatever mass, stiffness and exponent are; both ways together give,
    with e the restitution and z = d v, ``(1 + e) z = log((1 + z) / (1 - e z))``: Y. Gonthier et al., "A regularized
    contact model with asymmetric damping and dwell-time dependent friction", Multibody Syst. Dyn. 11 (2004). For e near
    one it is Hunt and Crossley's ``d = 3 (1 - e) / (2 v)``.

    >>> round(dissipation_for(0.9, 2.0), 3), round(3 * (1 - 0.9) / (2 * 2.0), 3)
    (0.083, 0.075)
    """
    if not 0.0 < restitution <= 1.0:
        raise ModelError(f"restitution of a compliant contact must be above 0 and at most 1, got {restitution:g}; give "
                         "dissipation= instead, or leave out stiffness: rigid contacts may keep nothing")
    if not impact_speed > 0.0:
        raise ModelError(f"impact_speed must be positive, got {impact_speed:g}")
    if restitution == 1.0:
        return 0.0

    def excess(z: float) -> float:
        left = 1.0 - restitution * z  # none, to rounding, where little is kept
        return (1.0 + restitution) * z - math.log1p(z) + math.log(left) if left > 0.0 else -math.inf

    low, high = 0.0, 1.0 / restitution  # it is positive right of zero, and -inf at 1/e
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return low / impact_speed


# -- contact whose friction truly sticks ------------------------------------------------------------
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


# -- contacts as a mechanism holds them -------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PlacedContact:
    """Two shapes that may touch: bodies by their indices, shapes as contact sees them, and what they are made of."""

    name: str
    first: int
    second: int
    first_pose: Pose
    second_pose: Pose
    first_shape: Any
    second_shape: Any
    material: Compliant | Unyielding
    shape_names: tuple[str, str]
    bends: tuple[tuple[str, ...], ...] = ()  #: states of the bristles at every place, if it has some

    @property
    def rigid(self) -> bool:
        """Whether the shapes do not give way."""
        return isinstance(self.material, Unyielding)
