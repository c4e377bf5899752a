"""What force elements have in common."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self, cast

from bellcrank.mechanism.table import Table
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import General, Motion, Vector

__all__ = ["Along", "Element", "Law2", "LawForce", "Moving", "TableLaw", "bind_parameters", "bound", "positive_part",
           "required_arguments", "with_numbers"]


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


# -- A force given as a function --------------------------------------------------------------------
#: a force law: displacement and its rate in, force out; written with `bellcrank.math`
Law2 = Callable[[Number, Number], Number]


@dataclass(frozen=True)
class LawForce(Along):
    """Force ``sign * law(x, rate)`` [N or N m].

    What a function stores cannot be known: its energy counts as zero, and all of its power as lost. Give a potential
    (see `PotentialSpring`) to have the energy counted.

    >>> LawForce(lambda x, rate: -3.0 * x**3).force(2.0, 0.0)
    -24.0
    """

    law: Law2
    sign: float = 1.0
    energy_known = False

    def force(self, x: Number, rate: Number) -> Number:
        return self.law(x, rate) if self.sign == 1.0 else -self.law(x, rate)


@dataclass(frozen=True)
class TableLaw:
    """A table as a force law: of the displacement, or of the displacement and its rate."""

    table: Table

    def __call__(self, x: Number, rate: Number) -> Number:
        return self.table(x) if self.table.arguments == 1 else self.table(x, rate)


def required_arguments(law: object) -> int:
    """How many arguments a law must be given: 1 of those that see the machine, 2 of those of a displacement and its
    rate (and of what does not say)."""
    try:
        parameters = inspect.signature(law).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


# -- parameters of a mechanism, in numbers and elements, replaced by what stands for them -----------
def bind_parameters(value: Number, parameter: Callable[[str], Number]) -> Number:
    """`value` with its parameters replaced by run-time scalars."""
    if isinstance(value, Scalar):
        return evaluate([value], lambda key: parameter(key[1]))[0]
    return value


def bound(value: Any, parameter: Callable[[str], Number]) -> Any:
    """Elements and nested tuples with their parameters replaced by run-time scalars."""
    return with_numbers(value, lambda number: bind_parameters(number, parameter))


def with_numbers(value: Any, number: Callable[[Scalar], Number]) -> Any:
    """Elements, laws and nested tuples with expressions of parameters replaced by what they stand for."""
    if isinstance(value, Element):
        return value.bound(lambda part: with_numbers(part, number))
    if isinstance(value, tuple):
        parts = [with_numbers(part, number) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return number(value) if isinstance(value, Scalar) else value
