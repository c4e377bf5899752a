"""Checks of what users hand to a `Mechanism`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from bellcrank.errors import ModelError, StateError, hint
from bellcrank.mechanism.motion import Law1, ParametricLaw, Part, parametric, share
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.scalar.jet import Jet, as_jet

__all__ = ["HUGE", "LAW_ADVICE", "bounded", "coupled_part", "law_or_number", "look", "new_name", "no_parameters",
           "number", "plain", "tried_force", "tried_law", "tried_motion", "tried_potential", "triple"]

_Part = TypeVar("_Part")

#: numbers above this cannot be computed with: their squares and products overflow
HUGE = 1e100

#: a time at which laws are tried, and displacements: nothing special happens there
_ANY_TIME = 0.7391
_PLACES = (0.1, 0.3721)
#: what laws fail of
_TROUBLE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
LAW_ADVICE = ("write it with functions of bellcrank.math: abs, minimum, sin, ..., and select_less(a, b, x, y) for "
              "branches; not with `if`, math or numpy")
_NO_PARAMETERS = f"uses a parameter and cannot be traced: {LAW_ADVICE}"


def new_name(table: dict[str, Any], name: str, what: str) -> None:
    """Refuse names that exist, and what is no name."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"{what} names are non-empty strings, got {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{what} {name!r}: half a character cannot be written to any file; use another name") from None
    if name in table:
        raise ModelError(f"{what} {name!r} exists already; names must be unique")


def look(table: dict[str, _Part], name: str, what: str, owner: str) -> _Part:
    """The part called `name`."""
    found = table.get(name) if isinstance(name, str) else None
    if found is None:
        body, dot, node = str(name).rpartition(".")
        nodes = [known for known in table if dot and known.startswith(f"{body}.") and known != f"{body}.frame"]
        if what == "body" and nodes:
            raise ModelError(f"no {what} called {name!r} in mechanism {owner!r}: {body!r} has no node {node!r}, but "
                             f"{', '.join(repr(n.removeprefix(f'{body}.')) for n in nodes)}{hint(name, nodes)}")
        raise ModelError(f"no {what} called {name!r} in mechanism {owner!r}{hint(name, table)}")
    return found


def bounded(what: str, *values: object) -> None:
    """Refuse plain numbers that cannot be computed with; parameters and functions are judged by their values."""
    for value in values:
        if isinstance(value, (int, float)) and HUGE < abs(value) < float("inf"):
            raise ModelError(f"{what}: the number {value:g} is above {HUGE:g}, which cannot be computed with; check "
                             "its unit")


def plain(value: Any) -> float:
    """A number as a float; of complex ones NumPy would drop the imaginary part."""
    if isinstance(value, complex):
        raise TypeError(f"{value!r} is complex")
    return float(value)


def number(what: str, label: str, value: Number, least: float | None = None, *, above: bool = False) -> Number:
    """A finite float or a parameter; plain numbers must be at least `least`, or `above` it."""
    if isinstance(value, Scalar):
        return value
    try:
        value = plain(value)
    except OverflowError:
        raise ModelError(f"{what}: {label} is above {HUGE:g}, which cannot be computed with; check its unit") from None
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {label} {value!r} is not a number") from None
    if not abs(value) < float("inf"):
        raise ModelError(f"{what}: {label} {value} is not finite")
    bounded(f"{what}: {label}", value)
    if least is not None and (value < least or (above and value == least)):
        raise ModelError(f"{what}: {label} must be {'greater than' if above else 'at least'} {least:g}, got {value:g}")
    return value


def no_parameters(what: str, *values: Any) -> None:
    """Refuse parameters, in lists as well, among the numbers of an axis, an angle or a rotation."""
    for value in values:
        if isinstance(value, Scalar):
            raise ModelError(f"{what}: axes and orientations cannot depend on parameters yet; give numbers. Positions "
                             "may depend on parameters")
        if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
            no_parameters(what, *value)


def triple(values: Sequence[Number], what: str, functions: bool = False) -> tuple[Number, ...]:
    """Three finite numbers or parameters, or functions of time."""
    try:
        entries = tuple(v if isinstance(v, Scalar) or (functions and callable(v)) else plain(v) for v in values)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what}: {values!r} is not three numbers") from None
    if len(entries) != 3:
        raise ModelError(f"{what}: needs three numbers, got {len(entries)}")
    for v in entries:
        if isinstance(v, float) and not abs(v) < float("inf"):
            raise ModelError(f"{what}: {entries} is not finite")
        if isinstance(v, float):
            bounded(what, v)
    return tuple(tried_law(v, what) if callable(v) else v for v in entries)


def _parametric(what: str, law: Any, arguments: int, n: int | None = None) -> Any:
    """The law, which may use parameters; of one that returns `n` numbers (None: a number, not in a sequence)."""
    made = parametric(law, arguments, what)
    if isinstance(made, ParametricLaw):
        several, count = made.expressions.several, len(made.expressions.results)
        if several != (n is not None) or count != (n or 1):
            raise ModelError(f"{what} must return {n or 1} value{'s' * ((n or 1) > 1)}, got {count}")
    return made


def tried_motion(what: str, law: Any, n: int = 1) -> Any:
    """A law of time must give numbers that depend on it through differentiable functions; `what` says whose it is.
    The law to use is returned."""
    law = _parametric(what, law, 1, None if n == 1 else n)
    if isinstance(law, ParametricLaw):
        return law

    def parts(t: Number) -> list[Number]:
        value = law(Jet(t, 1.0, 0.0))
        listed = [value] if isinstance(value, (Jet, int, float)) else list(value)
        if len(listed) != n or (n == 1) != isinstance(value, (Jet, int, float)):
            raise ModelError(f"{what} must return {n} value{'s' * (n > 1)}, got {value!r}; write it with functions of "
                             "bellcrank.math")
        return [x for part in listed for x in as_jet(part)]

    try:
        for x in parts(_ANY_TIME):
            _plain(x)
    except ModelError:
        raise
    except StateError:  # a table that ends says so: it lies elsewhere
        pass
    except (*_TROUBLE, _ParameterError) as error:
        if _of_parameter(error):
            raise ModelError(f"{what} {_NO_PARAMETERS}") from None
        raise ModelError(f"{what} does not give numbers ({error}); {LAW_ADVICE}") from None
    _traced(lambda x, _: parts(x), what)
    return law


def law_or_number(what: str, value: Any) -> Any:
    """A finite float, a parameter, or a function of time that can be differentiated."""
    if isinstance(value, Scalar):
        return value
    if callable(value):
        return tried_motion(f"{what} as a function of time", value)
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {value!r} is neither a number nor a parameter nor a function of time") from None
    if not abs(found) < float("inf"):
        raise ModelError(f"{what}: {found} is not finite")
    return found


def tried_force(law: Any, what: str) -> Any:
    """A force law must give a number for a displacement and a rate, and must compile; the law to use."""
    law = _parametric(f"{what}: a force law", law, 2)
    if isinstance(law, ParametricLaw):
        return law
    _somewhere([partial(law, x, 0.2) for x in _PLACES], f"{what}: a force law", "takes a displacement and its rate, or "
               "the whole machine as its one argument, and returns a number")
    _traced(lambda x, rate: [law(x, rate)], f"{what}: the force law")
    return law


def tried_potential(potential: Any, what: str) -> Any:
    """A potential must give a number, and a derivative, for a displacement, and must compile; the potential to use."""
    if not callable(potential):
        raise ModelError(f"{what}: a potential is a function of a displacement, got {potential!r}")
    potential = _parametric(f"{what}: a potential", potential, 1)
    if isinstance(potential, ParametricLaw):
        return potential

    def slope(x: Number) -> Number:
        return as_jet(potential(Jet(x, 1.0, 0.0))).rate

    said = "takes a displacement and returns an energy, written with functions of bellcrank.math"
    for function in (potential, slope):
        _somewhere([partial(function, x) for x in _PLACES], f"{what}: a potential", said)
    _traced(lambda x, _: [potential(x), slope(x)], f"{what}: the potential")
    return potential


def coupled_part(what: str, key: str, factor: Any) -> Part:
    """What a coupler makes of a coordinate: a factor, or a function that can be differentiated twice."""
    if isinstance(factor, Scalar):
        return factor
    if callable(factor):
        factor = _parametric(f"{what}: the function of {key!r}", factor, 1)
        if isinstance(factor, ParametricLaw):
            return factor
        said = "takes the coordinate and returns a number, written with functions of bellcrank.math"
        for k in range(3):
            _somewhere([partial(_derivative, factor, x, k) for x in _PLACES], f"{what}: the function of {key!r}", said)
        _traced(lambda x, _: list(share(factor, x)), f"{what}: the function of {key!r}")
        return cast(Part, factor)
    try:
        value = float(factor)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: the factor {factor!r} of {key!r} is neither a number nor a parameter nor a function"
                         ) from None
    if not abs(value) < float("inf") or value == 0.0:
        raise ModelError(f"{what}: the factor {factor} of {key!r} must be finite and not zero")
    bounded(f"{what}: the factor of {key!r}", value)
    return value


def _derivative(law: Law1, x: float, order: int) -> Number:
    return share(law, x)[order]


def tried_law(law: Callable[[Number], Number], what: str) -> Any:
    """A function of time must give a number for a time, and must compile; the function to use."""
    law = _parametric(f"{what}: a function of time", law, 1)
    if isinstance(law, ParametricLaw):
        return law
    _somewhere([partial(law, t) for t in (_ANY_TIME, 0.1234)], f"{what}: a function of time", "must take the time and "
               "return a number")
    _traced(lambda t, _: [law(t)], f"{what}: the function of time")
    return law


class _ParameterError(Exception):
    """A law of plain numbers gave a traced one."""


def _plain(value: Number) -> float:
    if isinstance(value, Scalar):
        raise _ParameterError
    return float(value)


def _of_parameter(error: Exception) -> bool:
    """Whether a law that was given plain numbers failed over a traced one: that can only be a parameter."""
    return isinstance(error, _ParameterError) or "traced scalar" in str(error) or "Scalar" in str(error)


def _somewhere(tries: Sequence[Callable[[], Number]], what: str, said: str) -> None:
    """A function must give a finite number at one of several places: it may be singular at some."""
    trouble: object = "it is not finite"
    for attempt in tries:
        try:
            if abs(_plain(attempt())) < float("inf"):
                return
        except StateError:  # a table that ends says so: it lies elsewhere
            return
        except (*_TROUBLE, _ParameterError) as error:
            if _of_parameter(error):
                raise ModelError(f"{what} {_NO_PARAMETERS}") from None
            trouble = error
    raise ModelError(f"{what} {said} ({trouble})")


def _traced(law: Callable[[Number, Number], Sequence[Number]], what: str) -> None:
    """A law must work on the traced scalars of which compiled code is made."""
    graph = Graph()
    try:
        for x in law(graph.leaf("x"), graph.leaf("rate")):
            if not isinstance(x, Scalar):
                float(x)
    except ModelError:
        raise
    except _TROUBLE as error:
        raise ModelError(f"{what} cannot be compiled ({error}); {LAW_ADVICE}") from None
