"""Flexible bodies are made of plain numbers: their modes are computed once, when they are made."""

from __future__ import annotations

from bellcrank.errors import ModelError
from bellcrank.scalar.graph import Scalar

__all__ = ["refuse_parameter"]


def refuse_parameter(what: str, *values: object) -> None:
    """Say what to do in place of a parameter of the mechanism."""
    if any(isinstance(value, Scalar) for value in values):
        raise ModelError(f"{what} is a parameter of a mechanism, but modes are computed once, when a flexible body is "
                         "made: give a number, and make the body anew for another one")
