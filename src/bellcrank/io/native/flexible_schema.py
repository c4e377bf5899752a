"""What a model file may hold of bodies that deform."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bellcrank.io.native.entries import Fixed, Law, Name
from bellcrank.io.native.schema_part import Matrix, Part

__all__ = ["FlexiblePart", "IntegralsPart", "StiffeningPart", "StressesPart"]


class IntegralsPart(Part):
    """Coefficients of the kinetic energy of a body that deforms, by rows: see `ShapeIntegrals`."""

    mass: Fixed = Field(description="[kg]")
    first: Matrix
    first_rates: Matrix
    second: Matrix
    second_rates: Matrix
    second_curves: Matrix
    linear: Matrix
    angular: Matrix
    angular_rates: Matrix
    modal: Matrix
    moment: list[Fixed]


class StiffeningPart(Part):
    """Second-order displacements: products of two modes, by their numbers from 0."""

    products: Matrix
    shapes: Matrix
    integrals: IntegralsPart


class StressesPart(Part):
    """Stresses of unit modal coordinates at points: six numbers (xx, yy, zz, xy, yz, xz) for every mode."""

    nodes: list[Fixed] = Field(description="the node that each point belongs to")
    positions: Matrix = Field(description="[m]")
    stress: Matrix = Field(description="one row a point: xx of all modes, yy, zz, xy, yz, xz [Pa]")
    strain: Matrix | None = None
    places: list[str] | None = Field(default=None, description="names of points in the cross sections of a beam")


class FlexiblePart(Part):
    """How a body deforms: nodes, modes (six numbers a mode and node), modal stiffness, damping and inertia."""

    nodes: Matrix = Field(description="[m]")
    modes: Matrix = Field(description="one row a node: ux of all modes, uy, uz, rx, ry, rz")
    stiffness: Matrix
    damping: Matrix
    integrals: IntegralsPart
    names: dict[Name, Fixed] = Field(default={}, description="nodes by name")
    inertia: Literal["lumped", "consistent_nodal", "continuum"] = "consistent_nodal"
    clamped: Name | None = Field(default=None, description="the node that the frame is held at")
    stiffening: StiffeningPart | None = None
    forces: Matrix | None = Field(default=None, description="of a beam, a row a node: N of all modes, Vy, Vz, ...")
    stresses: StressesPart | None = None
    edges: Matrix | None = Field(default=None, description="pairs of nodes that pictures connect")
    prescribed: dict[Name, Law] | None = Field(default=None, description="laws of the time t by mode")
