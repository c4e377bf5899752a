"""What force elements have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self, cast

from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import General, Motion, Vector

__all__ = ["Along", "Element", "Moving", "positive_part"]


class Moving(NamedTuple):
    """Axes, origin and velocity of a link, all in one set of axes that does not move."""

    axes: General
    origin: Vector
    omega: Vector
    velocity: Vector

    @property
    def twist(self) -> Motion:
        """Its velocity, [angular; linear]."""
        return Motion(self.omega, self.velocity)


class Element:
    """A frozen dataclass whose fields may be parameters of a mechanism."""

    def bound(self, bind: Callable[[Any], Any]) -> Self:
        """The element with its parameters replaced by what `bind` makes of them."""
        now = {f.name: getattr(self, f.name) for f in fields(cast(Any, self))}
        new = {name: bind(value) for name, value in now.items()}
        return cast(Self, replace(cast(Any, self), **new)) if any(new[k] is not now[k] for k in now) else self


class Along(Element):
    """A force along one coordinate (or along the line between two points) that depends on it and on its rate.

    Positive forces drive the coordinate up. All methods take floats, arrays, traced scalars and jets.
    """

    #: whether `energy` is all that can be known of it: laws given as functions keep theirs to themselves
    energy_known = True

    @property
    def damped(self) -> bool:
        """Whether the force may depend on the rate."""
        return True

    @property
    def placed(self) -> bool:
        """Whether the force may depend on the coordinate: those that do not act along single speeds, too."""
        return True

    @property
    def timed(self) -> bool:
        """Whether the force depends on time."""
        return False

    def at(self, time: Number) -> Along:
        """The force as it is at a time."""
        return self

    def seen(self, machine: Any) -> Along:
        """The force with the machine in sight: of laws that look at it, what they give."""
        return self

    def force(self, x: Number, rate: Number) -> Number:
        """The force [N or N m] at the coordinate x [m or rad] and its rate."""
        raise NotImplementedError

    @property
    def sees_turns(self) -> bool:
        """Whether the force may be another one after a whole turn of an angle."""
        return self.placed

    def pull_at_zero(self) -> Number:
        """The force at x = 0 and at rest: what a spring without rest length does not have where its ends meet."""
        try:
            return self.force(0.0, 0.0)
        except (ArithmeticError, TypeError, ValueError):  # a function that is not defined there
            return math.inf

    def undefined(self, x: Number) -> str:
        """Why there is no force at one of the coordinates x, numbers or arrays, and what to do; nothing if there is."""
        return ""

    def energy(self, x: Number) -> Number:
        """Energy stored [J]; none in elements that only dissipate."""
        return 0.0

    def stored(self, machine: Any, x: Number) -> Number:
        """Energy stored [J] with the machine in sight: of ready-made laws of it, too."""
        return self.energy(x)

    def loss(self, x: Number, rate: Number) -> Number:
        """Power [W] that is taken out of the machine and not stored: -force * rate - d(energy)/dt."""
        return -(self.force(x, rate) * rate) - as_jet(self.energy(Jet(x, rate, 0.0))).rate


def positive_part(x: Number) -> Number:
    """x where it is positive, else 0."""
    return select_less(0.0, x, x, 0.0)
