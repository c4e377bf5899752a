"""Functions that coordinates follow: of time (prescribed, rheonomic motion), and of each other (couplers)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import timed
from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.borrowed import traced_with_borrowed
from bellcrank.scalar.derivative import tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, Graph, Number, Scalar, reachable
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Vector

__all__ = ["STILL", "Coupled", "Entry", "Fixed", "Law", "Law1", "ParametricLaw", "Part", "Prescribed", "coupled",
           "parametric", "share"]


# -- prescribed (rheonomic) motion: joint coordinates given as functions of time --------------------
#: A motion law: time in, one coordinate (or a sequence of all the joint's coordinates) out.
Law = Callable[[Number], Number]


def STILL(value: Number) -> Number:
    """Stands in place of a law for a coordinate that is locked: it stays where it is, wherever that is."""
    return value


@dataclass(frozen=True)
class Fixed(Element):
    """The law of a coordinate that has one value at all times."""

    value: Number

    def __call__(self, t: Number) -> Number:
        return self.value


@dataclass(frozen=True)
class Entry:
    """One coordinate of a law that returns several."""

    law: Callable[[Number], Sequence[Number]]
    index: int

    def __call__(self, t: Number) -> Number:
        return self.law(t)[self.index]


@dataclass(frozen=True)
class Prescribed(Element):
    """Which speeds of a joint follow laws of time, and the laws.

    `laws[i]` drives coordinate i, None leaves it free. Joints whose q are quaternions are prescribed
    whole, by one law that returns all of q. `STILL` locks a coordinate, or a whole joint, where it is.
    """

    laws: tuple[Law | None, ...]
    whole: Callable[[Number], Sequence[Number]] | None = None

    def mask(self, nu: int) -> tuple[bool, ...]:
        """For each speed, whether it is prescribed."""
        return (True,) * nu if self.whole is not None else tuple(law is not None for law in self.laws)

    def values(self, t: Number, q: Sequence[Number], u: Sequence[Number], udot: Sequence[Number]
               ) -> tuple[list[Number], list[Number], list[Number]]:
        """q, u and udot with the prescribed ones replaced by what the laws say at time t."""
        clock = Jet(t, 1.0, 0.0)
        if self.whole is STILL:
            return list(q), [0.0] * len(u), [0.0] * len(udot)
        if self.whole is not None:
            return _whole([as_jet(x) for x in self.whole(clock)], len(q))
        q, u, udot = list(q), list(u), list(udot)
        for i, law in enumerate(self.laws):
            if law is STILL:
                u[i], udot[i] = 0.0, 0.0
            elif law is not None:
                q[i], u[i], udot[i] = as_jet(law(clock))
        return q, u, udot


def _whole(jets: list[Jet], nq: int) -> tuple[list[Number], list[Number], list[Number]]:
    """Speeds and accelerations in child axes from the jets of (quaternion[, position])."""
    if len(jets) != nq:
        raise ModelError(f"a motion law for a joint with {nq} coordinates returned {len(jets)} values")
    w, x, y, z = jets[:4]
    rate = [Jet(j.rate, j.acceleration, 0.0) for j in jets]  # omega needs q and qdot, omegadot one more
    dw, dx, dy, dz = rate[:4]
    scale = 2.0 / (w * w + x * x + y * y + z * z)
    omega = [scale * (w * dx - x * dw - y * dz + z * dy), scale * (w * dy - y * dw - z * dx + x * dz),
             scale * (w * dz - z * dw - x * dy + y * dx)]
    speeds = omega
    if nq == 7:
        # child-axes velocity v = R^T pdot; its own rate follows from the jets of R
        k = scale
        rows = [[1.0 - k * (y * y + z * z), k * (x * y + w * z), k * (x * z - w * y)],
                [k * (x * y - w * z), 1.0 - k * (x * x + z * z), k * (y * z + w * x)],
                [k * (x * z + w * y), k * (y * z - w * x), 1.0 - k * (x * x + y * y)]]
        pdot = Vector(*rate[4:])
        speeds = omega + [Vector(*row).dot(pdot) for row in rows]
    return [j.value for j in jets], [s.value for s in speeds], [s.rate for s in speeds]


# -- functions that use parameters: of time, of a coordinate, of a displacement and its rate --------
@dataclass(frozen=True)
class Expressions:
    """What a function returns, as expressions with the leaves ("argument", k) and ("parameter", name)."""

    results: tuple[Number, ...]
    several: bool  #: whether it returns a sequence
    names: tuple[str, ...]  #: of the parameters

    def __call__(self, arguments: Sequence[Number], values: Sequence[Number]) -> Any:
        """The function of its arguments and the values of the parameters, over any scalar."""
        known: dict[tuple[str, int | str], Number] = {("argument", k): x for k, x in enumerate(arguments)}
        known |= {("parameter", name): x for name, x in zip(self.names, values, strict=True)}
        found = evaluate(self.results, known)
        return found if self.several else found[0]


@dataclass(frozen=True)
class ParametricLaw(Element):
    """A function that uses parameters of a mechanism, which are bound as those of force elements are.

    >>> import bellcrank as bc
    >>> a = bc.Mechanism("m").parameter("a", 2.0)
    >>> law = parametric(lambda t: a * t + 1.0, 1)
    >>> law.bound(lambda value: (5.0,) if isinstance(value, tuple) else value)(3.0)
    16.0
    """

    expressions: Expressions
    values: tuple[Number, ...]

    def __call__(self, *arguments: Number) -> Any:
        return self.expressions(arguments, self.values)

    def entry(self, index: int) -> ParametricLaw:
        """One of several results, as a law of its own."""
        return replace(self, expressions=replace(self.expressions, results=(self.expressions.results[index],),
                                                 several=False))

    def by_parameter(self, name: str) -> ParametricLaw | None:
        """How the results change with a parameter, as such a law; None if they do not.

        >>> import bellcrank as bc
        >>> a = bc.Mechanism("m").parameter("a", 2.0)
        >>> slope = parametric(lambda t: a * a * t, 1).by_parameter("a")
        >>> slope.bound(lambda value: (5.0,) if isinstance(value, tuple) else value)(3.0)
        30.0
        """
        leaves = {x: {0: 1.0} for x in reachable(self.expressions.results) if x.op is LEAF and x.args[0][1] == name}
        rows = tangents(self.expressions.results, leaves)
        if not any(rows):
            return None
        return replace(self, expressions=replace(self.expressions, results=tuple(row.get(0, 0.0) for row in rows)))

    def __repr__(self) -> str:
        return f"<law of {', '.join(self.expressions.names)}>"


def parametric(law: Callable[..., Any], arguments: int, what: str = "a law") -> Any:
    """A function of so many arguments that closes over parameters as a `ParametricLaw`; others as they are."""
    several = False

    def trace(graph: Graph) -> list[Number]:
        nonlocal several
        answer = law(*(graph.leaf(("argument", k)) for k in range(arguments)))
        several = not isinstance(answer, (Scalar, int, float))
        return [x if isinstance(x, Scalar) else float(x) for x in (answer if several else [answer])]

    graph = Graph()
    try:
        results, own = traced_with_borrowed(trace, Graph(), graph.leaf, what)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):  # checks of laws say why
        return law
    if own is None:
        return law
    keys = {node.args[0] for node in reachable(results) if node.op is LEAF}
    names = sorted(name for what, name in keys if what == "parameter")
    return ParametricLaw(Expressions(tuple(results), several, tuple(names)),
                         tuple(own.leaf(("parameter", name)) for name in names))


# -- what a joint coordinate adds to a coupler ------------------------------------------------------
#: a function of one coordinate, written with `bellcrank.math`
Law1 = Callable[[Number], Number]
#: what is coupled of a coordinate: a multiple (a number or a parameter) or a function of it
Part = Number | Law1


class Share(NamedTuple):
    """What a coordinate adds to a coupler's sum, and the first and second derivative of that by the coordinate."""

    value: Number
    slope: Number
    curvature: Number


def share(part: Part, q: Number) -> Share:
    """The share of the coordinate q; exact derivatives for floats, arrays and traced scalars alike.

    >>> share(3.0, 0.5), share(lambda q: q**2, 0.5)
    (Share(value=1.5, slope=3.0, curvature=0.0), Share(value=0.25, slope=1.0, curvature=2.0))
    """
    if not callable(part):
        return Share(q * part, part, 0.0)
    return Share(*as_jet(part(Jet(q, 1.0, 0.0))))


class Coupled(NamedTuple):
    """A coupler at coordinates q with rates u: what its sum lacks, the rate of that, the slopes by the coordinates,
    what the slopes times the accelerations must be, and the part of the rate that a law of time causes."""

    value: Number
    rate: Number
    slopes: tuple[Number, ...]
    gamma: Number
    partial: Number = 0.0


def coupled(parts: Sequence[Part], q: Sequence[Number], u: Sequence[Number], offset: Number) -> Coupled:
    """A coupler, over any scalar; the offset may be `Timed`.

    >>> coupled((2.0, -1.0), (0.5, 0.25), (1.0, 3.0), 0.5)
    Coupled(value=0.25, rate=-1.0, slopes=(2.0, -1.0), gamma=0.0, partial=0.0)
    """
    law = timed(offset)
    value: Number = -law.value
    rate: Number = 0.0 - law.rate
    gamma: Number = law.acceleration
    slopes = []
    for part, x, v in zip(parts, q, u, strict=True):
        mine = share(part, x)
        value, rate = value + mine.value, rate + v * mine.slope
        gamma = gamma - mine.curvature * (v * v)
        slopes.append(mine.slope)
    return Coupled(value, rate, tuple(slopes), gamma, 0.0 - law.rate)
