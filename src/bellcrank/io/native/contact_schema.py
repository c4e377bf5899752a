"""Contacts in model files."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bellcrank.io.native.entries import Fixed, Name, Num
from bellcrank.io.native.schema_part import Part

__all__ = ["ContactPart", "ContactRulePart"]


class ContactPart(Part):
    """Two shapes that may touch; rigid if there is no stiffness."""

    first: Name = Field(description="a shape")
    second: Name
    stiffness: Num | None = Field(default=None, description="[N/m^exponent]")
    dissipation: Num | None = Field(default=None, description="Hunt and Crossley's [s/m]")
    restitution: Num | None = Field(default=None, description="of rigid contacts")
    friction: Num = 0.0
    slip_speed: Num = Field(default=1e-3, description="[m/s]")
    exponent: Fixed = 1.0
    friction_model: Literal["regularized", "bristle"] = "regularized"
    reach: Num = Field(default=1e-4, description="what bristles bend before they slide [m]")
    bend_damping: Num = Field(default=1e-2, description="time constant of their damping [s]")


class ContactRulePart(Part):
    """Whether a pair of bodies or shapes may touch where contacts are added to many at once, and with what friction."""

    first: Name = Field(description="a body or a shape")
    second: Name
    touch: bool = True
    friction: Fixed | None = None
