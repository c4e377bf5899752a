"""Parameters of a mechanism, in numbers and elements, replaced by what stands for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["bind_parameters", "bound"]


def bind_parameters(value: Number, parameter: Callable[[str], Number]) -> Number:
    """`value` with its parameters replaced by run-time scalars."""
    if isinstance(value, Scalar):
        return evaluate([value], lambda key: parameter(key[1]))[0]
    return value


def bound(value: Any, parameter: Callable[[str], Number]) -> Any:
    """Elements and nested tuples with their parameters replaced by run-time scalars."""
    if isinstance(value, Element):
        return value.bound(lambda part: bound(part, parameter))
    if isinstance(value, tuple):
        parts = [bound(part, parameter) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return bind_parameters(value, parameter)
