"""A body from a mesh of solid elements: its matrices, interfaces, stresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.body_parts import BodyParts
from bellcrank.mechanism.flexible.reduced_body import reduced_parts
from bellcrank.mechanism.flexible.solid_elements import (
    elastic_matrix,
    mesh_parts,
    nodal_strains,
    outer_edges,
    solid_matrices,
)
from bellcrank.mechanism.flexible.stress_modes import StressModes

__all__ = ["Interfaces", "solid_parts"]

Interfaces = Mapping[str, Sequence[int] | Callable[[Floats], npt.ArrayLike]]


def solid_parts(mesh: Any, E: float, nu: float, rho: float, interfaces: Interfaces, modes: int, cutoff: float | None,
                reduction: str, frame: str | None) -> BodyParts:
    """See `FlexibleBody.from_mesh`."""
    points, cells = mesh_parts(mesh)
    used = np.unique(np.concatenate([some.ravel() for some in cells.values()]))
    place = np.arange(len(points))
    if len(used) < len(points):  # points that belong to no solid element have no mass
        place = np.full(len(points), -1)
        place[used] = np.arange(len(used))
        cells = {kind: place[some] for kind, some in cells.items()}
    nodes = points[used]
    mass, stiffness = solid_matrices(nodes, cells, E, nu, rho)
    chosen = {name: _chosen(name, given, nodes, place) for name, given in interfaces.items()}

    def stresses(shapes: Floats) -> StressModes:
        strain = nodal_strains(nodes, cells, shapes)
        return StressModes(elastic_matrix(E, nu) @ strain, strain, np.arange(len(nodes)), np.array(nodes))

    return reduced_parts(mass, stiffness, nodes, chosen, modes, cutoff, reduction, frame, stresses, outer_edges(cells))


def _chosen(name: str, given: Any, points: Floats, place: npt.NDArray[np.int64]) -> list[int]:
    """The nodes of an interface, among those that are used."""
    if callable(given):
        found = np.asarray(given(points))
        if found.shape != (len(points),):
            raise ModelError(f"FlexibleBody.from_mesh: interface {name!r}: the function must give one truth for each "
                             f"of the {len(points)} points, got shape {found.shape}")
        return [int(i) for i in np.flatnonzero(found)]
    nodes = np.asarray(given, dtype=np.int64).ravel()
    if nodes.size and (nodes.min() < 0 or nodes.max() >= len(place)):
        raise ModelError(f"FlexibleBody.from_mesh: interface {name!r} names a node that the mesh does not have")
    return [int(i) for i in place[nodes] if i >= 0]
