"""Parameters of a mechanism, in numbers and elements, replaced by what stands for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["bind_parameters", "bound", "with_numbers"]


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
