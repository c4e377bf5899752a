"""Stresses of a body that deforms: linear in its modal coordinates, as its displacements are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.beam_elements import BeamElements, BeamSection
from bellcrank.mechanism.flexible.section_points import SectionPoint

__all__ = ["COMPONENTS", "StressModes", "beam_stresses", "given_stresses", "von_mises"]

Ints = npt.NDArray[np.int64]
#: entries of a stress or strain; shear strains are the changes of angles
COMPONENTS = ("xx", "yy", "zz", "xy", "yz", "xz")


@dataclass(frozen=True, eq=False)
class StressModes:
    """What unit modal coordinates cause at some points of a body, in its axes; components as in `COMPONENTS`."""

    stress: Floats  #: (p, 6, k)
    strain: Floats | None  #: (p, 6, k), where the material is known
    nodes: Ints  #: (p,), the node that a point belongs to
    positions: Floats  #: (p, 3) [m]
    places: tuple[str, ...] = ()  #: names of points of a cross section, one each; none for nodes themselves

    def __post_init__(self) -> None:
        points = len(self.nodes)
        if self.stress.ndim != 3 or self.stress.shape[:2] != (points, 6) or self.positions.shape != (points, 3):
            raise ModelError(f"FlexibleBody: stresses at {points} points must have the shape ({points}, 6, modes), got "
                             f"{self.stress.shape}")
        if self.strain is not None and self.strain.shape != self.stress.shape:
            raise ModelError(f"FlexibleBody: strains must have the shape of the stresses, {self.stress.shape}, got "
                             f"{self.strain.shape}")
        for array in (self.stress, self.strain, self.nodes, self.positions):
            if array is not None:
                array.setflags(write=False)


def beam_stresses(beam: BeamElements, forces: Floats) -> StressModes | None:
    """At the points of the sections, from the section forces of modes at the nodes, (n, 6, k); none if the sections
    have no points."""
    nodes, positions, stress, strain, places = [], [], [], [], []
    for j, at in enumerate(beam.nodes):
        section = beam.section(j / beam.elements)
        for point in section.points:
            rows = _rows(section, point) @ forces[j]  # xx, xy, xz
            nodes.append(j)
            places.append(point.name)
            positions.append(at + [0.0, point.y, point.z])
            stress.append([rows[0], 0 * rows[0], 0 * rows[0], rows[1], 0 * rows[0], rows[2]])
            along, thinner = rows[0] / point.E, (1.0 - 0.5 * point.E / point.G) * rows[0] / point.E  # less nu of it
            strain.append([along, thinner, thinner, rows[1] / point.G, 0 * along, rows[2] / point.G])
    if not nodes:
        return None
    return StressModes(np.array(stress), np.array(strain), np.array(nodes), np.array(positions), tuple(places))


def _rows(s: BeamSection, p: SectionPoint) -> Floats:
    """Equations (1) and (2) of `section_points`: the stresses xx, xy and xz of (N, Vy, Vz, T, My, Mz)."""
    mean, twist = p.E / s.EA, p.G / s.GJ
    return np.array([[mean, 0.0, 0.0, 0.0, p.E * p.z / s.EIy, -p.E * p.y / s.EIz],
                     [0.0, mean * p.shear[0], 0.0, twist * p.twist[0], 0.0, 0.0],
                     [0.0, 0.0, mean * p.shear[1], twist * p.twist[1], 0.0, 0.0]])


def given_stresses(what: str, given: Any, nodes: Floats, shapes: Floats | None, width: int) -> StressModes | None:
    """At the nodes, from what a user gives: (n, 6, width) or six rows a node, one column for each mode, or where there
    are `shapes` for each degree of freedom."""
    if given is None:
        return None
    n = len(nodes)
    try:
        found = given if hasattr(given, "tocsr") else np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be numbers") from None
    if found.ndim == 3 and found.shape[:2] == (n, 6):
        found = found.reshape(6 * n, -1)
    if found.shape != (6 * n, width):
        raise ModelError(f"{what} must have six rows (xx, yy, zz, xy, yz, xz) for each of the {n} nodes and {width} "
                         f"columns, got shape {found.shape}")
    rows = np.array(found if shapes is None else found @ shapes, dtype=float).reshape(n, 6, -1)
    if not np.isfinite(rows).all():
        raise ModelError(f"{what} holds entries that are not finite")
    return StressModes(rows, None, np.arange(n), np.array(nodes))


def von_mises(stress: Floats) -> Floats:
    """Of stresses (..., 6): (...)."""
    xx, yy, zz, xy, yz, xz = np.moveaxis(stress, -1, 0)
    return np.asarray(np.sqrt(0.5 * ((xx - yy)**2 + (yy - zz)**2 + (zz - xx)**2) + 3.0 * (xy**2 + yz**2 + xz**2)))
