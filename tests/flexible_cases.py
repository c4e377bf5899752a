"""Reads `data/flexible` (see `data/README.md`), and makes the bodies of its cases."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bellcrank.mechanism.flexible.beam_elements import BeamSection
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody

Floats = npt.NDArray[np.float64]


@cache
def case(name: str) -> Any:
    """One of the files."""
    return json.loads((Path(__file__).parent / "data" / "flexible" / f"{name}.json").read_text())


def section(data: dict[str, float]) -> BeamSection:
    """The section of a case's beam."""
    return BeamSection(*(data[n] for n in ("EA", "EIy", "EIz", "GJ", "rhoA", "rhoIp")))


def beam(data: dict[str, Any], elements: int, **options: Any) -> FlexibleBody:
    """The beam of a case."""
    return FlexibleBody.beam(data["L"], section(data), elements=elements, **options)


_CORNERS = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1],
                     [-1, 1, 1]], dtype=float)


def _hexahedron(x: Floats, E: float, nu: float, rho: float) -> tuple[Floats, Floats]:
    """Mass and stiffness of a trilinear hexahedron by eight Gauss points."""
    stiff = np.zeros((6, 6))
    stiff[:3, :3] = E * nu / ((1 + nu) * (1 - 2 * nu))
    stiff[np.arange(3), np.arange(3)] += E / (1 + nu)
    stiff[np.arange(3, 6), np.arange(3, 6)] = E / (2 * (1 + nu))
    m, k = np.zeros((8, 8)), np.zeros((24, 24))
    for point in _CORNERS / np.sqrt(3.0):
        f = 1 + _CORNERS * point
        shape = f.prod(1) / 8
        slope = np.stack([_CORNERS[:, 0] * f[:, 1] * f[:, 2], _CORNERS[:, 1] * f[:, 0] * f[:, 2],
                          _CORNERS[:, 2] * f[:, 0] * f[:, 1]], 1) / 8
        jacobian = slope.T @ x
        volume = np.linalg.det(jacobian)
        d = np.linalg.solve(jacobian, slope.T)
        b = np.zeros((6, 24))
        for a in range(3):
            b[a, a::3] = d[a]
        for row, (i, j) in enumerate(((0, 1), (1, 2), (0, 2)), 3):
            b[row, i::3], b[row, j::3] = d[j], d[i]
        k += b.T @ stiff @ b * volume
        m += rho * np.outer(shape, shape) * volume
    return np.kron(m, np.eye(3)), k


@cache
def bracket() -> tuple[Floats, Any, Any]:
    """Nodes, mass and stiffness matrix of the solid bracket, f7."""
    data, mesh = case("f7_solid")["data"], case("f7_solid")["mesh"]
    nodes = np.array(mesh["nodes"], dtype=float) * data["h"]
    parts: list[list[Floats]] = [[], [], [], []]
    known: dict[bytes, tuple[Floats, Floats]] = {}
    for corners in np.array(mesh["hex_vtk_order"]):
        x = nodes[corners] - nodes[corners[0]]
        key = x.round(9).tobytes()
        if key not in known:
            known[key] = _hexahedron(x, data["E"], data["nu"], data["rho"])
        dofs = (3 * corners[:, None] + np.arange(3)).ravel()
        rows, columns = np.meshgrid(dofs, dofs, indexing="ij")
        for part, values in zip(parts, (rows, columns, *known[key]), strict=True):
            part.append(values.ravel())
    rows, columns, mass, stiffness = (np.concatenate(part) for part in parts)
    size = (3 * len(nodes),) * 2
    return nodes, *(sparse.csr_matrix((x, (rows, columns)), shape=size) for x in (mass, stiffness))
