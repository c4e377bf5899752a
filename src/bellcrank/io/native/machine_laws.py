"""Laws of the machine in files: formulas of numbers that are read from it, and what these are.

    law: {formulas: ["-2.0 * r1 + r2"], reads: [[q, crank], [velocity, coupler, x, 0.5, 0.0, 0.0]]}

Reads are ``[t]``, ``[q | u, joint]``, ``[state | parameter, name]``, ``[position | velocity, body, axis, point...]``,
``[omega, body, axis]``, ``[axes, body, which, axis]`` and ``[element, name, what(, axis)]``; r1 is the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.io.native.formula import Formula
from bellcrank.io.native.trace import FormulaProgram, trace_several
from bellcrank.mechanism.forces.element import bound
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Graph, Number
from bellcrank.spatial import Vector
from bellcrank.topology.pairs import force_and_moment

__all__ = ["WrittenLaw", "traced_law"]

_AXES = "xyz"
Key = tuple[Any, ...]


class _Read:
    """A stand-in for the machine: everything that is read from it goes through `value`."""

    def __init__(self, value: Callable[[Key], Any]) -> None:
        self._value = value

    @property
    def t(self) -> Any:
        return self._value(("t",))

    def q(self, joint: str) -> Any:
        return self._value(("q", joint))

    def u(self, joint: str) -> Any:
        return self._value(("u", joint))

    def state(self, name: str) -> Any:
        return self._value(("state", name))

    def parameter(self, name: str) -> Any:
        return self._value(("parameter", name))

    def bind(self, value: Any) -> Any:
        """A ready-made element with its parameters as they are read."""
        return bound(value, self.parameter)

    def _vector(self, *key: Any, rest: Sequence[float] = ()) -> Vector:
        return Vector(*(self._value((*key, axis, *rest)) for axis in _AXES))

    def position(self, body: Any, point: Sequence[Any] = (0.0, 0.0, 0.0)) -> Vector:
        fixed = _plain(point)
        if fixed is None:  # a point that the law computes: by the axes of its body
            return self.position(body) + self._arm(body, point)
        return self._vector("position", getattr(body, "name", body), rest=fixed)

    def velocity(self, body: Any, point: Sequence[Any] = (0.0, 0.0, 0.0)) -> Vector:
        fixed = _plain(point)
        if fixed is None:
            return self.velocity(body) + self.omega(body).cross(self._arm(body, point))
        return self._vector("velocity", getattr(body, "name", body), rest=fixed)

    def _arm(self, body: Any, point: Sequence[Any]) -> Vector:
        x, y, z = self.axes(body)
        arm: Vector = x * point[0] + y * point[1] + z * point[2]
        return arm

    def omega(self, body: Any) -> Vector:
        return self._vector("omega", getattr(body, "name", body))

    def axes(self, body: Any) -> tuple[Vector, ...]:
        return tuple(self._vector("axes", getattr(body, "name", body), which) for which in _AXES)

    def element(self, name: str) -> Any:
        return _ReadElement(self, name)

    def of_element(self, name: str, what: str) -> Any:
        """A number, or a vector, of an element."""
        if what in ("vector", "torque", "first_point", "second_point"):
            return self._vector("element", name, what)
        return self._value(("element", name, what))


class _ReadElement:
    def __init__(self, machine: _Read, name: str) -> None:
        self._machine, self._name = machine, name

    def __getattr__(self, what: str) -> Any:
        return self._machine.of_element(self._name, what)


def _plain(point: Sequence[Any]) -> list[float] | None:
    """A point that is given by numbers, if it is."""
    try:
        return [float(x) for x in point]
    except TypeError:
        return None


def traced_law(law: Callable[[Any], Any], what: str, several: bool
               ) -> tuple[tuple[FormulaProgram, ...], tuple[Key, ...]]:
    """The programs of a law of the machine, one or six, and what they read."""
    keys: dict[Key, int] = {}
    graph = Graph()

    def note(key: Key) -> Number:
        return graph.leaf(keys.setdefault(key, len(keys)))

    law(_Read(note))

    def flat(*values: Any) -> Any:
        found = law(_Read(lambda key: values[keys[key]]))
        return [x for part in force_and_moment(found) for x in part] if several else [found]

    names = [f"r{i + 1}" for i in range(len(keys))]
    return trace_several(flat, names, what, 6 if several else 1), tuple(keys)


@dataclass(frozen=True)
class WrittenLaw:
    """A law of the machine from a file."""

    formulas: tuple[Formula, ...]
    reads: tuple[Key, ...]

    @classmethod
    def of(cls, formulas: Sequence[str], reads: Sequence[Sequence[Any]], tables: Sequence[Table]) -> WrittenLaw:
        """Checked as far as a file alone can be."""
        keys = tuple(_checked(tuple(key)) for key in reads)
        names = tuple(f"r{i + 1}" for i in range(len(keys)))
        made = tuple(Formula(text, names, tuple(tables)) for text in formulas)
        for formula in made:
            assert formula.program is not None  # parsed now, so that mistakes show now
        return cls(made, keys)

    def __call__(self, at: Any) -> Any:
        values = [_value(at, key) for key in self.reads]
        found = [formula(*values) for formula in self.formulas]
        return found[0] if len(found) == 1 else (tuple(found[:3]), tuple(found[3:]))


_LENGTHS = {"t": (1,), "q": (2,), "u": (2,), "state": (2,), "parameter": (2,), "position": (3, 6), "velocity": (3, 6),
            "omega": (3,), "axes": (4,), "element": (3, 4)}

#: where these have axes
_AXES_AT = {"position": (2,), "velocity": (2,), "omega": (2,), "axes": (2, 3), "element": (3,)}


def _checked(key: Key) -> Key:
    if not key or key[0] not in _LENGTHS or len(key) not in _LENGTHS[key[0]]:
        raise ModelError(f"reads: {list(key)} is none of {', '.join(_LENGTHS)} with what it needs")
    for place in _AXES_AT.get(key[0], ()):
        if place < len(key) and key[place] not in tuple(_AXES):
            raise ModelError(f"reads: {list(key)}: {key[place]!r} is none of the axes x, y, z")
    if any(not isinstance(x, (int, float)) for x in (key[3:] if key[0] in ("position", "velocity") else ())):
        raise ModelError(f"reads: {list(key)}: a point is three numbers")
    return key


def _value(at: Any, key: Key) -> Any:
    kind, *rest = key
    if kind == "t":
        return at.t
    if kind in ("q", "u", "state", "parameter"):
        return getattr(at, kind)(rest[0])
    if kind in ("position", "velocity"):
        found = getattr(at, kind)(rest[0], tuple(rest[2:]) or (0.0, 0.0, 0.0))
        return found[_AXES.index(rest[1])]
    if kind == "omega":
        return at.omega(rest[0])[_AXES.index(rest[1])]
    if kind == "axes":
        return at.axes(rest[0])[_AXES.index(rest[1])][_AXES.index(rest[2])]
    found = getattr(at.element(rest[0]), rest[1])
    return found if len(rest) == 2 else found[_AXES.index(rest[2])]
