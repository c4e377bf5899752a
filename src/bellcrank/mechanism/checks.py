"""Checks of what users hand to a `Mechanism`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from bellcrank.engine.jet import Jet, as_jet
from bellcrank.engine.scalar import Number, Scalar
from bellcrank.errors import ModelError
from bellcrank.mechanism.coupling import Law1, Part, share

__all__ = ["coupled_part", "look", "new_name", "number", "triple", "try_force", "try_law", "try_motion",
           "try_potential"]

_Part = TypeVar("_Part")

#: a time at which laws are tried, and displacements: nothing special happens there
_ANY_TIME = 0.7391
_PLACES = (0.1, 0.3721)


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
        import difflib

        near = difflib.get_close_matches(str(name), table, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"no {what} called {name!r} in mechanism {owner!r}{hint}")
    return found


def number(what: str, label: str, value: Number, least: float | None = None, *, above: bool = False) -> Number:
    """A finite float or a parameter; plain numbers must be at least `least`, or `above` it."""
    if isinstance(value, Scalar):
        return value
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {label} {value!r} is not a number") from None
    if not abs(value) < float("inf"):
        raise ModelError(f"{what}: {label} {value} is not finite")
    if least is not None and (value < least or (above and value == least)):
        raise ModelError(f"{what}: {label} must be {'greater than' if above else 'at least'} {least:g}, got {value:g}")
    return value


def triple(values: Sequence[Number], what: str, functions: bool = False) -> tuple[Number, ...]:
    """Three finite numbers or parameters, or functions of time."""
    try:
        entries = tuple(v if isinstance(v, Scalar) or (functions and callable(v)) else float(v) for v in values)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {values!r} is not three numbers") from None
    if len(entries) != 3:
        raise ModelError(f"{what}: needs three numbers, got {len(entries)}")
    for v in entries:
        if isinstance(v, float) and not abs(v) < float("inf"):
            raise ModelError(f"{what}: {entries} is not finite")
        if callable(v):
            try_law(v, what)
    return entries


def try_motion(joint: str, law: Any, n: int) -> None:
    """A motion law must give numbers that depend on time through differentiable functions."""
    try:
        value = law(Jet(_ANY_TIME, 1.0, 0.0))
        parts = [value] if isinstance(value, (Jet, int, float)) else list(value)
        if len(parts) != n or (n == 1) != isinstance(value, (Jet, int, float)):
            raise ModelError(f"joint {joint!r}: the motion law must return {n} value{'s' * (n > 1)}, got {value!r}")
        for part in parts:
            for x in part if isinstance(part, Jet) else (part,):
                float(x)
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"joint {joint!r}: the motion law does not give numbers ({error}); write it with functions "
                         "of bellcrank.math, without parameters") from None


def try_force(law: Any, what: str) -> None:
    """A force law must give a number for a displacement and a rate."""
    _somewhere([partial(law, x, 0.2) for x in _PLACES], f"{what}: a force law takes a displacement and its rate and "
               "returns a number")


def try_potential(potential: Any, what: str) -> None:
    """A potential must give a number, and a derivative, for a displacement."""
    said = f"{what}: a potential takes a displacement and returns an energy, written with functions of bellcrank.math"

    def slope(x: float) -> Number:
        return as_jet(potential(Jet(x, 1.0, 0.0))).rate

    _somewhere([partial(potential, x) for x in _PLACES], said)
    _somewhere([partial(slope, x) for x in _PLACES], said)


def coupled_part(what: str, key: str, factor: Any) -> Part:
    """What a coupler makes of a coordinate: a factor, or a function that can be differentiated twice."""
    if callable(factor):
        said = (f"{what}: the function of {key!r} takes the coordinate and returns a number, written with functions of "
                "bellcrank.math, without parameters")
        for k in range(3):
            _somewhere([partial(_derivative, factor, x, k) for x in _PLACES], said)
        return cast(Part, factor)
    try:
        value = float(factor)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: the factor {factor!r} of {key!r} is neither a number nor a function") from None
    if not abs(value) < float("inf") or value == 0.0:
        raise ModelError(f"{what}: the factor {factor} of {key!r} must be finite and not zero")
    return value


def _derivative(law: Law1, x: float, order: int) -> Number:
    return share(law, x)[order]


def try_law(law: Callable[[Number], Number], what: str) -> None:
    """A function of time must give a number for a time."""
    _somewhere([partial(law, t) for t in (_ANY_TIME, 0.1234)], f"{what}: a function of time must take the time and "
               "return a number")


def _somewhere(tries: Sequence[Callable[[], Number]], said: str) -> None:
    """A function must give a finite number at one of several places: it may be singular at some."""
    trouble: object = "it is not finite"
    for attempt in tries:
        try:
            if abs(float(attempt())) < float("inf"):
                return
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            trouble = error
    raise ModelError(f"{said} ({trouble})")
