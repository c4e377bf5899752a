"""Axes of joints and constraints that depend on parameters: as turns of the frames that they are given in.

Compiled machines know axes that are numbers. One that depends on parameters is that of their default values, in frames
that are turned from there to where it points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.mechanism.joints import Planar, Universal
from bellcrank.mechanism.joints.joint import unit_vector
from bellcrank.mechanism.pose import IDENTITY_ROWS
from bellcrank.mechanism.turns import Rows, has_parameter, way_between
from bellcrank.scalar.graph import Number

__all__ = ["settled"]


def settled(what: str, kind: Any, default: Callable[[Number], float]) -> tuple[Any, Rows, Rows]:
    """A joint or constraint with axes that are numbers, and the turns of its frames on parent and child that make up
    for it. `default` gives the number that an expression of parameters stands for."""
    def numbers(axis: Sequence[Number]) -> tuple[float, float, float]:
        try:
            return unit_vector([default(x) for x in axis], what)
        except ArithmeticError:
            raise ModelError(f"{what}: an axis has no direction at the default values of its parameters") from None

    if isinstance(kind, (Planar, Universal)) and has_parameter(kind.axes):
        made, turn = kind.settled(numbers)
        return made, turn, turn
    names = [name for name in getattr(kind, "directions", ()) if has_parameter(getattr(kind, name))]
    if not names:
        return kind, IDENTITY_ROWS, IDENTITY_ROWS
    other = copy(kind)
    for name in names:
        setattr(other, name, numbers(getattr(kind, name)))
    turns = [way_between(getattr(other, name), getattr(kind, name)) if name in names else IDENTITY_ROWS
             for name in kind.directions]
    return other, turns[0], turns[-1]
