"""What `Mechanism.prescribe` makes of a law that is given for a joint, checked."""

from __future__ import annotations

import inspect
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import bounded, tried_motion
from bellcrank.mechanism.motion import Entry, Fixed, Law, ParametricLaw, Prescribed
from bellcrank.mechanism.parts import Connection
from bellcrank.scalar.graph import Scalar

__all__ = ["prescribed_by"]


def prescribed_by(record: Connection, law: Any, coordinate: int | str | None) -> Prescribed:
    """The joint's prescribed motion, with what was prescribed of other coordinates before."""
    where, kind = f"joint {record.name!r}", record.joint
    if not callable(law):
        law = _constant(record, law, coordinate)
    elif not _takes_an_argument(law):
        raise ModelError(f"{where}: a motion law takes the time as its argument")
    if kind.nu == 0:
        raise ModelError(f"{where}: a {type(kind).__name__} has no coordinate to prescribe")
    if kind.nq != kind.nu:
        if coordinate is not None:
            raise ModelError(f"{where}: quaternion joints are prescribed whole, by a law that returns all {kind.nq} "
                             "coordinates")
        return Prescribed((), tried_motion(f"{where}: the motion law", law, kind.nq))
    law = tried_motion(f"{where}: the motion law", law, kind.nq if coordinate is None else 1)
    return Prescribed(_laws(record, law, coordinate))


def _takes_an_argument(law: Any) -> bool:
    try:
        return len(inspect.signature(law).parameters) > 0
    except (TypeError, ValueError):  # it does not say
        return True


def _constant(record: Connection, given: Any, coordinate: int | str | None) -> Fixed:
    """A number that holds a coordinate still."""
    where, kind = f"joint {record.name!r}", record.joint
    try:
        value = given if isinstance(given, Scalar) else float(given)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: a motion law is a number, a parameter or a function of time, got "
                         f"{type(given).__name__}") from None
    if kind.nq > 1 and coordinate is None:
        raise ModelError(f"{where} has the coordinates {', '.join(kind.coordinate_names())}; say which one the number "
                         "is for, or give a law that returns them all")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise ModelError(f"{where}: the prescribed value {value} is not finite")
    bounded(f"{where}: the prescribed value", value)
    return Fixed(value)


def _laws(record: Connection, law: Any, coordinate: int | str | None) -> tuple[Law | None, ...]:
    """The laws of all coordinates, one of them or all anew."""
    names = record.joint.coordinate_names()
    laws: list[Law | None] = list(record.prescribed.laws) if record.prescribed else [None] * len(names)
    if coordinate is None:
        if len(names) == 1:
            return (law,)
        return tuple(law.entry(i) if isinstance(law, ParametricLaw) else Entry(law, i) for i in range(len(names)))
    if isinstance(coordinate, str):
        if coordinate not in names:
            raise ModelError(f"joint {record.name!r}: no coordinate {coordinate!r}; it has {', '.join(names)}")
        coordinate = names.index(coordinate)
    if not isinstance(coordinate, int) or not 0 <= coordinate < len(names):
        raise ModelError(f"joint {record.name!r}: coordinate {coordinate} is not in 0..{len(names) - 1}")
    laws[coordinate] = law
    return tuple(laws)
