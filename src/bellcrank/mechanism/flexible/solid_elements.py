"""Solid finite elements of linear elasticity: mass and stiffness matrices of meshes of tetrahedra and hexahedra.

Isoparametric elements with three displacements a node, integrated by Gauss points that are exact for elements with
straight edges: linear and quadratic tetrahedra, trilinear hexahedra. O. C. Zienkiewicz and R. L. Taylor, "The Finite
Element Method", volume 1, chapters 4 to 9. Nodes of elements are ordered as in VTK and meshio.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import FileError, ModelError
from bellcrank.files.model_files import read_apart
from bellcrank.mechanism.flexible.component_modes import refuse_parameter
from bellcrank.mechanism.flexible.reduced_body import BodyParts, StressModes, reduced_parts

__all__ = ["SHAPES", "Interfaces", "elastic_matrix", "mesh_parts", "nodal_strains", "outer_edges", "solid_matrices",
           "solid_parts"]

Ints = npt.NDArray[np.int64]


class _Rule(NamedTuple):
    """Shape functions and slopes at integration points of the reference element."""

    weights: Floats
    values: Floats  #: (points, nodes)
    slopes: Floats  #: (points, nodes, 3)
    outward: Floats  #: (nodes, points): from strains at the points to strains at the nodes
    faces: tuple[tuple[int, ...], ...]  #: corners of the faces, around each


_CORNERS = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1],
                     [-1, 1, 1]], dtype=float)
#: volumes below this part of the cube of an element's length are those of flat ones, to rounding
_FLAT = 1e-14
#: edges of a tetrahedron with a node in their middle
_EDGES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
_QUADS = ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
_TRIANGLES = ((0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3))


def _hexahedron() -> _Rule:
    points = _CORNERS / np.sqrt(3.0)
    factors = 1.0 + _CORNERS[None] * points[:, None]  # (points, nodes, 3)
    slopes = np.stack([_CORNERS[:, i] * factors[..., (i + 1) % 3] * factors[..., (i + 2) % 3] for i in range(3)], -1)
    outward = (1.0 + np.sqrt(3.0) * _CORNERS[:, None] * _CORNERS).prod(-1) / 8.0  # the corners, seen from the points
    return _Rule(np.ones(8), factors.prod(-1) / 8.0, slopes / 8.0, outward, _QUADS)


def _tetrahedron(quadratic: bool) -> _Rule:
    """By Gauss points of the cube, one side of which is drawn together: exact for polynomials of degree five."""
    at, weight = np.polynomial.legendre.leggauss(4)
    at, weight = 0.5 * (at + 1.0), 0.5 * weight
    a, b, c = (x.ravel() for x in np.meshgrid(at, at, at, indexing="ij"))
    volume = np.einsum("i,j,k->ijk", weight, weight, weight).ravel() * (1.0 - a)**2 * (1.0 - b)
    x, y, z = a, (1.0 - a) * b, (1.0 - a) * (1.0 - b) * c
    part = np.stack([1.0 - x - y - z, x, y, z], axis=-1)
    slope = np.array([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    linear = np.concatenate([np.ones((len(volume), 1)), part[:, 1:]], axis=1)  # strains are linear at most
    corners = np.concatenate([np.ones((4, 1)), np.eye(4)[:, 1:]], axis=1)
    ends = corners if not quadratic else np.concatenate([corners, [0.5 * (corners[i] + corners[j]) for i, j in _EDGES]])
    outward = ends @ np.linalg.pinv(linear)
    if not quadratic:
        return _Rule(volume, part, np.broadcast_to(slope, (len(volume), 4, 3)), outward, _TRIANGLES)
    values = [part[:, i] * (2.0 * part[:, i] - 1.0) for i in range(4)]
    slopes = [(4.0 * part[:, i] - 1.0)[:, None] * slope[i] for i in range(4)]
    for i, j in _EDGES:
        values.append(4.0 * part[:, i] * part[:, j])
        slopes.append(4.0 * (part[:, i][:, None] * slope[j] + part[:, j][:, None] * slope[i]))
    return _Rule(volume, np.stack(values, -1), np.stack(slopes, 1), outward, _TRIANGLES)


#: elements by the names that meshio has for them: number of nodes, and the rule
SHAPES: dict[str, tuple[int, Callable[[], _Rule]]] = {
    "tetra": (4, lambda: _tetrahedron(False)), "tetra10": (10, lambda: _tetrahedron(True)),
    "hexahedron": (8, _hexahedron)}


def mesh_parts(mesh: Any) -> tuple[Floats, dict[str, Ints]]:
    """Points and cells by kind of a meshio mesh, of a file that meshio reads, of a scikit-fem mesh, or of a pair
    (points, {"tetra": cells, ...})."""
    if isinstance(mesh, (str, bytes)) or hasattr(mesh, "__fspath__"):
        mesh = _mesh_in_file(Path(os.fsdecode(mesh)))
    if hasattr(mesh, "cells_dict"):
        points, cells = mesh.points, mesh.cells_dict
    elif hasattr(mesh, "p") and hasattr(mesh, "t"):  # scikit-fem has nodes by columns, and another order in hexahedra
        order = [0, 3, 6, 2, 1, 5, 7, 4] if mesh.t.shape[0] == 8 else range(mesh.t.shape[0])
        points, cells = mesh.p.T, {"hexahedron" if mesh.t.shape[0] == 8 else "tetra": mesh.t[list(order)].T}
    else:
        try:
            points, cells = mesh
        except (TypeError, ValueError):
            raise ModelError("FlexibleBody.from_mesh: needs a mesh of meshio or scikit-fem, the name of a file, or "
                             f"(points, cells by kind), got {type(mesh).__name__}") from None
    return _checked_parts(points, cells)


def _checked_parts(points: Any, cells: Mapping[str, Any]) -> tuple[Floats, dict[str, Ints]]:
    """Points and solid elements as arrays that fit to each other."""
    try:
        at = np.asarray(points, dtype=float)
        found = {kind: np.asarray(some, dtype=np.int64) for kind, some in cells.items() if kind in SHAPES and len(some)}
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"FlexibleBody.from_mesh: points and cells must be arrays of numbers ({error})") from None
    if at.ndim != 2 or at.shape[1] != 3 or not np.isfinite(at).all():
        raise ModelError(f"FlexibleBody.from_mesh: points must be finite, three numbers each, got shape {at.shape}")
    if not found:
        raise ModelError(f"FlexibleBody.from_mesh: the mesh has no solid elements ({', '.join(SHAPES)}), only "
                         f"{', '.join(cells) or 'none'}")
    for kind, some in found.items():
        nodes = SHAPES[kind][0]
        if some.ndim != 2 or some.shape[1] != nodes or some.min() < 0 or some.max() >= len(at):
            raise ModelError(f"FlexibleBody.from_mesh: {kind} elements need {nodes} nodes of the mesh each, numbered "
                             f"from 0 to {len(at) - 1}, got shape {some.shape}")
    return at, found


def _mesh_in_file(path: Path) -> tuple[Floats, dict[str, Ints]]:
    """Points and cells of a file; meshio reads it in another process, which it may end."""
    if importlib.util.find_spec("meshio") is None:
        raise ModelError("FlexibleBody.from_mesh: files of meshes are read by meshio: pip install meshio")
    try:
        if not path.is_file():
            raise FileError(f"FlexibleBody.from_mesh: there is no file {str(path)!r}")
        arrays = read_apart("mesh", path)
    except FileError:
        raise
    except (ValueError, OSError) as error:
        raise FileError(f"FlexibleBody.from_mesh: {str(path)!r} cannot be read by meshio ({error})") from None
    cells = {name.removeprefix("cells."): x for name, x in arrays.items() if name.startswith("cells.")}
    return arrays["points"], cells


def solid_matrices(points: Floats, cells: Mapping[str, Ints], E: float, nu: float, rho: float) -> tuple[Any, Any]:
    """Mass and stiffness matrix, sparse, three degrees of freedom a node. Cost: linear in the elements."""
    from scipy import sparse

    refuse_parameter("FlexibleBody.from_mesh: E, nu or rho", E, nu, rho)
    if not (E > 0.0 and rho > 0.0 and -1.0 < nu < 0.5):
        raise ModelError(f"FlexibleBody.from_mesh: needs E > 0, rho > 0 and -1 < nu < 0.5, got {E}, {rho} and {nu}")
    elastic = elastic_matrix(E, nu)
    rows, columns, masses, stiffnesses = [], [], [], []
    for kind, some in cells.items():
        nodes, rule = SHAPES[kind]
        mass, stiffness = _elements(points[some], rule(), elastic, rho)
        places = (3 * some[:, :, None] + np.arange(3)).reshape(len(some), -1)
        rows.append(np.repeat(places, 3 * nodes, axis=1).ravel())
        columns.append(np.tile(places, (1, 3 * nodes)).ravel())
        masses.append(mass.ravel())
        stiffnesses.append(stiffness.ravel())
    place, size = (np.concatenate(rows), np.concatenate(columns)), (3 * len(points),) * 2
    first, second = (sparse.csr_matrix((np.concatenate(x), place), shape=size) for x in (masses, stiffnesses))
    return first, second


def elastic_matrix(E: float, nu: float) -> Floats:
    """Stresses xx, yy, zz, xy, yz, xz from strains, those of shear as changes of angles: (6, 6)."""
    elastic = np.zeros((6, 6))
    elastic[:3, :3] = E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
    elastic[np.arange(3), np.arange(3)] += E / (1.0 + nu)
    elastic[np.arange(3, 6), np.arange(3, 6)] = E / (2.0 * (1.0 + nu))
    return elastic


def nodal_strains(points: Floats, cells: Mapping[str, Ints], modes: Floats) -> Floats:
    """Strains at the nodes of displacements (n, 3, k): (n, 6, k).

    Those at the Gauss points of an element, where they are best, are continued to its nodes; elements that meet at a
    node count by their volumes. E. Hinton and J. S. Campbell, "Local and Global Smoothing of Discontinuous Finite
    Element Functions Using a Least Squares Method", Int. J. Numerical Methods in Engineering 8, 1974.
    """
    total, weight = np.zeros((len(points), 6, modes.shape[-1])), np.zeros(len(points))
    for kind, some in cells.items():
        rule = SHAPES[kind][1]()
        at_points, size = [], np.zeros(len(some))
        for share, slope in zip(rule.weights, rule.slopes, strict=True):
            strain, volume = _strains(points[some], slope)
            size += share * np.abs(volume)
            at_points.append(np.einsum("eij,ejk->eik", strain, modes[some].reshape(len(some), -1, modes.shape[-1])))
        ends = np.einsum("np,peik,e->enik", rule.outward, np.array(at_points), size, optimize=True)
        np.add.at(total, some, ends)
        np.add.at(weight, some, size[:, None])
    return total / weight[:, None, None]


def outer_edges(cells: Mapping[str, Ints]) -> Ints:
    """Edges of the faces that belong to one element only, between corners: (edges, 2)."""
    edges = [np.zeros((0, 2), dtype=np.int64)]
    for kind, some in cells.items():
        faces = SHAPES[kind][1]().faces
        around = some[:, np.array(faces)].reshape(-1, len(faces[0]))
        _, first, count = np.unique(np.sort(around, axis=1), axis=0, return_index=True, return_counts=True)
        outside = around[first[count == 1]]
        edges.append(np.stack([outside, np.roll(outside, -1, axis=1)], axis=-1).reshape(-1, 2))
    return np.unique(np.sort(np.concatenate(edges), axis=1), axis=0)


def _strains(x: Floats, slope: Floats) -> tuple[Floats, Floats]:
    """At one point of many elements whose nodes lie at x, (elements, nodes, 3): the matrix that gives six strains from
    displacements of the nodes, (elements, 6, 3 nodes), and the volume, negative if they are numbered the other way."""
    jacobian = np.einsum("ni,enj->eij", slope, x)
    d = np.linalg.solve(jacobian, np.broadcast_to(slope.T, (len(x), *slope.T.shape)))  # (elements, 3, nodes)
    strain = np.zeros((len(x), 6, 3 * x.shape[1]))
    for i in range(3):
        strain[:, i, i::3] = d[:, i]
    for row, (i, j) in enumerate(((0, 1), (1, 2), (0, 2)), 3):
        strain[:, row, i::3], strain[:, row, j::3] = d[:, j], d[:, i]
    return strain, np.linalg.det(jacobian)


def _elements(x: Floats, rule: _Rule, elastic: Floats, rho: float) -> tuple[Floats, Floats]:
    """Mass and stiffness of many elements whose nodes lie at x, (elements, nodes, 3)."""
    n = 3 * x.shape[1]
    mass, stiffness = np.zeros((len(x), n // 3, n // 3)), np.zeros((len(x), n, n))
    least = _FLAT * np.ptp(x, axis=1).max(axis=1) ** 3
    side = np.sign(np.linalg.det(np.einsum("ni,enj->eij", rule.slopes[0], x)))  # nodes may be numbered either way round
    for weight, value, slope in zip(rule.weights, rule.values, rule.slopes, strict=True):
        volume = np.linalg.det(np.einsum("ni,enj->eij", slope, x)) * (side * weight)
        if not (volume > least).all():
            worst = int((volume - least).argmin())
            raise ModelError(f"FlexibleBody.from_mesh: element {worst} is flat or folded")
        strain, _ = _strains(x, slope)
        stiffness += np.einsum("eai,ab,ebj,e->eij", strain, elastic, strain, volume, optimize=True)
        mass += rho * volume[:, None, None] * np.outer(value, value)
    return np.einsum("eij,kl->eikjl", mass, np.eye(3)).reshape(len(x), n, n), stiffness


# -- A body from a mesh of solid elements: its matrices, interfaces, stresses -----------------------
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
