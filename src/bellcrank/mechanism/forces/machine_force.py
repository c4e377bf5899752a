"""A force that is a function of the whole machine.

Dry friction that truly sticks: brakes and clutches.

The contact is a brush of bristles that bend until they slide (P. R. Dahl, "A solid friction model", 1968; C. Canudas de
Wit, H. Olsson, K. J. Astrom and P. Lischinsky, "A new model for control of systems with friction", IEEE Trans. Autom.
Control 40 (1995)), and slide only when they are bent almost as far as they can be (P. Dupont, V. Hayward, B. Armstrong
and F. Altpeter, "Single state elastoplastic friction models", IEEE Trans. Autom. Control 47 (2002)): in older models
they slide a little at every bend, and creep under a load that comes and goes. Their bend s, a state, is a share of what
they hold at most: s' = (v - a |v| s) / reach at the slip speed v, where a rises from 0 at s = 0.8 to 1 at s = 1 while
the slip bends them further, and is 0 while they straighten; the force is - capacity (s + w (sign(v) - s)) with
w = damping |v| / (reach + damping |v|), so never more than the capacity. Under a load within that the contact comes to
rest at s = load / capacity and stays there; shaken within 0.8 of the capacity, it comes back to where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces.element import Along, Element
from bellcrank.scalar.functions import maximum, minimum, sqrt, tanh
from bellcrank.scalar.graph import Number

__all__ = ["Bristle", "BristleForce", "BristleRate", "GivenForce", "KnownForce", "MachineForce", "MachineLaw",
           "RollingResistance", "sliding", "stored_by"]

#: a law: what it sees of the machine in, a number or numbers out; written with `bellcrank.math`
MachineLaw = Callable[[Any], Any]


@dataclass(frozen=True)
class KnownForce(Along):
    """A force whose value is known, whatever the coordinate.

    >>> KnownForce(3.0).force(0.1, 0.2), KnownForce(3.0).loss(0.1, 0.2)
    (3.0, -0.6000000000000001)
    """

    value: Number
    energy_known = False

    def force(self, x: Number, rate: Number) -> Number:
        return self.value


@dataclass(frozen=True)
class GivenForce(Along):
    """The joint force that is given along a coordinate of a joint, a link of the extended tree."""

    link: int
    coordinate: int

    @property
    def damped(self) -> bool:
        return False

    def seen(self, machine: Any) -> Along:
        return KnownForce(machine.given(self.link, self.coordinate))

    def force(self, x: Number, rate: Number) -> Number:
        raise AssertionError("a force that is given is seen before it acts")


@dataclass(frozen=True)
class MachineForce(Along):
    """Force ``sign * law(at)`` [N or N m], where ``at`` shows the machine: see `bellcrank.Mechanism.add_joint_force`.

    What a function stores cannot be known: its energy counts as zero, and all of its power as lost. Ready-made laws say
    by ``energy(at)`` what they store, for reports.
    """

    name: str  #: of the element
    law: MachineLaw
    sign: float = 1.0
    clock: bool = True  #: whether it looks at the time
    energy_known = False

    @property
    def placed(self) -> bool:
        return False  # but by what the law reads

    @property
    def timed(self) -> bool:
        return self.clock

    def pull_at_zero(self) -> Number:
        return math.inf  # nobody knows: where its ends meet, it has no direction

    def seen(self, machine: Any) -> Along:
        value = machine.value_of(self.name, self.law)
        return KnownForce(value if self.sign == 1.0 else -value)

    def stored(self, machine: Any, x: Number) -> Number:
        return stored_by(self.law, machine)

    def undefined(self, x: Number) -> str:
        told: Callable[[Number], str] | None = getattr(self.law, "undefined", None)
        return "" if told is None else told(x)

    def force(self, x: Number, rate: Number) -> Number:
        raise AssertionError("a law of the machine needs to see it")


def stored_by(law: Any, machine: Any) -> Number:
    """What a law of the machine says that it stores [J]."""
    energy = getattr(law, "energy", None)
    return 0.0 if energy is None else energy(machine)


# -- rolling resistance of a wheel ------------------------------------------------------------------
@dataclass(frozen=True)
class RollingResistance(Element):
    """The moment ``- coefficient load radius tanh(u / speed)`` [N m] against the turning of a wheel's joint; the load
    [N] is a number or a law of the machine."""

    joint: str
    coefficient: Number
    load: Number | MachineLaw
    radius: Number
    speed: Number

    def __call__(self, at: Any) -> Number:
        load = self.load(at) if callable(self.load) else self.load
        return -(self.coefficient * self.radius * load * tanh(at.u(self.joint) / self.speed))


# -- dry friction that truly sticks -----------------------------------------------------------------
#: bends below this share of the largest one slide by nothing
ELASTIC = 0.8


def sliding(square: Number, along: Number) -> Number:
    """How fast bristles slide under their bend, as a factor of that: from the square of the bend and its product with
    the slip, along one line or a surface.

    >>> sliding(1.0, 2.0), sliding(0.25, 1.0), sliding(1.0, -2.0)
    (2.0, 0.0, 0.0)
    """
    share = minimum(maximum((square - ELASTIC**2) * (1.0 / (1.0 - ELASTIC**2)), 0.0), 1.0)
    return share * share * (3.0 - 2.0 * share) * maximum(along, 0.0) / sqrt(maximum(square, 0.5))


@dataclass(frozen=True)
class Bristle(Element):
    """A contact along a coordinate or a sum of some: its capacity [N or N m], a number or a law of the machine, the
    `reach` [m or rad] that bristles bend before they slide, and the time constant of their damping [s]."""

    name: str
    capacity: Number | MachineLaw
    reach: Number
    damping: Number

    @property
    def bend(self) -> str:
        """The name of the state."""
        return f"{self.name} bend"

    def holds(self, at: Any) -> Number:
        """The capacity now."""
        return self.capacity(at) if callable(self.capacity) else self.capacity


@dataclass(frozen=True)
class BristleRate(Element):
    """s' = (v - a |v| s) / reach."""

    bristle: Bristle

    def __call__(self, at: Any) -> Number:
        slip, bend = at.element(self.bristle.name).rate, at.state(self.bristle.bend)
        return (slip - sliding(bend * bend, slip * bend) * bend) * (1.0 / self.bristle.reach)


@dataclass(frozen=True)
class BristleForce(Element):
    """- capacity (s + damping (v - |v| s) / (reach + damping |v|))."""

    bristle: Bristle

    def __call__(self, at: Any) -> Number:
        b = self.bristle
        slip, bend = at.element(b.name).rate, at.state(b.bend)
        return -(b.holds(at) * (bend + b.damping * (slip - abs(slip) * bend) / (b.reach + b.damping * abs(slip))))

    def energy(self, at: Any) -> Number:
        """In the bent bristles [J], at the capacity of now."""
        b = self.bristle
        bend = at.state(b.bend)
        return 0.5 * b.reach * b.holds(at) * (bend * bend)
