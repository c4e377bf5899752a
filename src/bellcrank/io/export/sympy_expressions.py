"""`bellcrank.to_sympy`: functions of small machines as SymPy expressions, to read, to simplify and to teach with."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.scalar.graph import ENTRY, LOCATE, reachable
from bellcrank.system.traced_functions import InputArray, traced_function

if TYPE_CHECKING:
    import sympy

__all__ = ["SymbolicFunction", "to_sympy"]

#: operations beyond which nobody reads an expression, and SymPy takes long for anything
_MOST = 1000
#: constants are taken for fractions with denominators up to this
_DENOMINATOR = 100_000


class SymbolicFunction(NamedTuple):
    """A function of a machine in symbols: columns of symbols in, expressions out, by the names of arrays."""

    inputs: dict[str, sympy.Matrix]
    outputs: dict[str, sympy.Matrix]

    @property
    def result(self) -> sympy.Matrix:
        """The first output; most functions have one."""
        return next(iter(self.outputs.values()))

    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """All symbols of the inputs, one after the other."""
        return tuple(x for array in self.inputs.values() for x in array)


def to_sympy(system: System, function: str, *, at: Any = None, wrenches: bool = False) -> SymbolicFunction:
    """A function of a small machine as SymPy expressions of its inputs; functions are those of `to_casadi`.

    Symbols are real and named after coordinates and speeds, ``q_shoulder_angle``, ``u_shoulder_angle``, ``tau_...``,
    ``udot_...``, parameters by their own names (what is to stay a letter, a mass or a length, is made a parameter of
    the mechanism), time "t". Constants are fractions and parts of pi where they are that to rounding. Nothing is
    simplified: `sympy.simplify` does that, `sympy.cse` finds what expressions share. Vectors are columns. With loops
    the expressions follow one plan, as in `to_casadi`, without guards against pivots that vanish. Functions of more
    than a thousand operations are refused. Needs the package sympy.

    >>> import pytest; _ = pytest.importorskip("sympy")
    >>> import bellcrank as bc
    >>> m = bc.Mechanism("pendulum", gravity=(0.0, -9.81, 0.0))
    >>> mass, length = m.parameter("m", 1.0), m.parameter("l", 0.5)
    >>> bob = m.add_body("bob", bc.Inertia(mass, (length, 0, 0)))
    >>> pin = m.add_joint("pin", bc.Revolute("z"), m.ground, bob)
    >>> bc.to_sympy(bc.compile(m), "inverse_dynamics").result
    Matrix([[l**2*m*udot_pin_angle + 981*l*m*cos(q_pin_angle)/100]])
    """
    try:
        import sympy
    except ImportError:
        raise ModelError("to_sympy: the package sympy is not installed; pip install \"bellcrank[sympy]\"") from None
    traced = traced_function("to_sympy", system.plans, function, at=at, wrenches=wrenches)
    size = len(reachable(traced.entries))
    if size > _MOST:
        raise ModelError(f"to_sympy: {function} of {system.model.name!r} has {size} operations, more than {_MOST}: no "
                         "expression to read; to_casadi takes machines of any size")
    functions = {name: getattr(sympy, name) for name in ("sqrt", "sin", "cos", "exp", "log", "tanh", "atan2")}
    functions["less"] = _selected
    if any(node.op in (LOCATE, ENTRY) for node in reachable(traced.entries)):
        raise ModelError(f"to_sympy: {function} of {system.model.name!r} looks something up in a table, which has no "
                         "formula; to_casadi takes tables")
    functions["floor"] = sympy.floor
    arrays = {name: _symbols(name, array) for name, array in traced.inputs.items()}
    found = traced.run(arrays, functions, _exact)
    outputs = {name: _matrix(values, traced.outputs[name]) for name, values in found.items()}
    return SymbolicFunction({name: _matrix(values, traced.inputs[name].shape) for name, values in arrays.items()},
                            outputs)


def _symbols(name: str, array: InputArray) -> list[Any]:
    """Symbols for the entries of an input, each with a name that is an identifier and its own."""
    import sympy

    plain = [re.sub(r"\W+", "_", entry).strip("_") for entry in array.names]
    if name not in ("t", "parameters"):
        plain = [f"{name}_{entry}" for entry in plain]
    if len(set(plain)) < len(plain):
        plain = [f"{entry}_{i}" for i, entry in enumerate(plain)]
    return [sympy.Symbol(entry, real=True) for entry in plain]


def _selected(a: Any, b: Any, x: Any, y: Any) -> Any:
    """One or the other. Where one is not a number, the comparison guards against a pivot that vanishes: it is left
    out."""
    import sympy

    if x is sympy.nan or y is sympy.nan:
        return y if x is sympy.nan else x
    return sympy.Piecewise((x, a < b), (y, True))


@cache
def _exact(value: float) -> Any:
    """A constant as the fraction, or the part of pi, that it is to rounding; else as it is."""
    import sympy

    for unit, symbol in ((1.0, sympy.Integer(1)), (math.pi, sympy.pi)):
        near = Fraction(value / unit).limit_denominator(_DENOMINATOR) if math.isfinite(value) else Fraction(0)
        if abs(float(near) * unit - value) <= 2 * math.ulp(value):
            return sympy.Rational(near.numerator, near.denominator) * symbol
    return sympy.nan if math.isnan(value) else sympy.Float(value)


def _matrix(values: list[Any], shape: tuple[int, ...]) -> Any:
    import sympy

    rows, columns = (*shape, 1, 1)[:2]
    return sympy.Matrix(rows, columns, [_exact(x) if isinstance(x, float) else x for x in values])
