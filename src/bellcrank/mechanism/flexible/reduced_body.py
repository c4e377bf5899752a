"""A finite-element model, reduced to the parts of a flexible body: interfaces, shapes, frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.mechanism.flexible.beam_elements import BeamElements, BeamSection, SectionPoint, tapered
from bellcrank.mechanism.flexible.component_modes import (
    check_symmetric,
    craig_bampton,
    largest_positive,
    normal_modes,
    refuse_parameter,
    rigid_motions,
    tie_faces,
)
from bellcrank.mechanism.flexible.modal_kinetics import ShapeIntegrals, Stiffening

__all__ = ["INERTIAS", "BodyParts", "StressModes", "beam_parts", "beam_stresses", "given_stresses", "reduced_parts",
           "von_mises"]

# -- stresses of a body that deforms: linear in its modal coordinates, as its displacements are -----
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
    """Equations (1) and (2) of `beam_elements`: the stresses xx, xy and xz of (N, Vy, Vz, T, My, Mz)."""
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


# -- what a flexible body is made of, before it is checked ------------------------------------------
#: how masses are distributed: at the nodes, by a finite-element matrix, along the elements themselves
INERTIAS = ("lumped", "consistent_nodal", "continuum")


class BodyParts(NamedTuple):
    """See `FlexibleBody`; shapes may have three or six rows a node."""

    nodes: Floats
    shapes: Floats  #: (n, d, k)
    integrals: ShapeIntegrals
    stiffness: Floats
    names: Mapping[str, int]
    inertia: str
    clamped: str | None
    stiffening: Stiffening | None = None
    forces: Floats | None = None  #: section forces of beams
    stresses: StressModes | None = None
    edges: Ints | None = None


_REDUCTIONS = ("craig-bampton", "guyan", "free")
#: a vibration slower than this part of the fastest is a rigid motion
_SLOW = 1e-7


def reduced_parts(mass: Any, stiffness: Any, nodes: Floats, interfaces: Mapping[str, int | Sequence[int]], modes: int,
                  cutoff: float | None, reduction: str, frame: str | None,
                  stresses: Callable[[Floats], StressModes | None], edges: Ints | None = None) -> BodyParts:
    """See `FlexibleBody.from_matrices`; `stresses` takes the shapes, (n, d, k)."""
    if nodes.ndim != 2 or nodes.shape[1] != 3:
        raise ModelError(f"FlexibleBody.from_matrices: nodes must have the shape (n, 3), got {nodes.shape}")
    if reduction not in _REDUCTIONS:
        raise ModelError(f"FlexibleBody.from_matrices: reduction {reduction!r} is none of {', '.join(_REDUCTIONS)}")
    if frame is not None and frame not in interfaces:
        raise ModelError(f"FlexibleBody.from_matrices: the frame {frame!r} is no interface{hint(frame, interfaces)}")
    if frame is not None and reduction == "free":
        raise ModelError("FlexibleBody.from_matrices: modes of the free body float; they cannot be held at the "
                         f"interface {frame!r}")
    if not isinstance(interfaces, Mapping):
        raise ModelError("FlexibleBody.from_matrices: interfaces are given by names, such as {'tip': 12}, got "
                         f"{type(interfaces).__name__}")
    if isinstance(modes, bool) or not isinstance(modes, (int, np.integer)) or modes < 0:
        raise ModelError(f"FlexibleBody.from_matrices: modes must be a whole number, at least 0, got {modes!r}")
    if cutoff is not None and not cutoff > 0.0:
        raise ModelError(f"FlexibleBody.from_matrices: the cutoff must be above 0 Hz, got {cutoff!r}")
    rows = int(np.shape(mass)[0]) if np.ndim(mass) == 2 else 0
    d = rows // len(nodes)
    if d not in (3, 6) or rows != d * len(nodes):
        raise ModelError(f"FlexibleBody.from_matrices: the mass matrix must have 3 or 6 rows for each of the "
                         f"{len(nodes)} nodes, got shape {np.shape(mass)}")
    weight = check_symmetric("FlexibleBody.from_matrices: the mass matrix", mass, rows)
    stiff = check_symmetric("FlexibleBody.from_matrices: the stiffness matrix", stiffness, rows)
    _check_positive("mass", weight, d)
    _check_positive("stiffness", stiff, d)
    _check_rigid(stiff, nodes, d)
    model = _Model(weight, stiff, nodes, d, interfaces)
    shapes = model.shapes(reduction, modes, cutoff, frame)
    return model.parts(shapes, frame, stresses, edges)


def _check_positive(what: str, matrix: Any, d: int) -> None:
    """What single degrees of freedom say; the rest is seen when the body is made."""
    entries = matrix.diagonal()
    worst = int(entries.argmin())
    if entries[worst] < 0.0:
        along = ("x", "y", "z", "about x", "about y", "about z")[worst % d]
        raise ModelError(f"FlexibleBody.from_matrices: the {what} matrix is not positive: node {worst // d} has "
                         f"{entries[worst]:.3g} {along if worst % d > 2 else f'along {along}'}")
    if not entries.any():
        raise ModelError(f"FlexibleBody.from_matrices: the {what} matrix is zero")


def _check_rigid(stiffness: Any, nodes: Floats, d: int) -> None:
    """Rigid motions must cost no energy: otherwise the matrix is that of a body held somewhere."""
    motions = rigid_motions(nodes - nodes.mean(axis=0), d)
    forces = np.abs(stiffness @ motions).max(axis=0)
    size = float(abs(stiffness).max()) * np.abs(motions).max(axis=0)
    worst = int((forces / size).argmax())
    if forces[worst] > 1e-6 * size[worst]:
        motion = ("a shift along x", "a shift along y", "a shift along z", "a turn about x", "a turn about y",
                  "a turn about z")[worst]
        raise ModelError(f"FlexibleBody.from_matrices: {motion} of the whole body meets the force {forces[worst]:.3g}: "
                         "give the stiffness matrix of the free body, without supports")


class _Model:
    """A model whose faces are tied: its degrees of freedom are those of free nodes, then six for each interface."""

    def __init__(self, mass: Any, stiffness: Any, nodes: Floats, d: int,
                 interfaces: Mapping[str, int | Sequence[int]]) -> None:
        self.full_mass, self.nodes, self.d, self.n = mass, nodes, d, len(nodes)
        self.names = list(interfaces)
        faces = [_face(name, given, self.n, d) for name, given in interfaces.items()]
        used: dict[int, str] = {}
        for name, face in zip(self.names, faces, strict=True):
            for node in face:
                if used.setdefault(node, name) != name:
                    raise ModelError(f"FlexibleBody.from_matrices: node {node} belongs to the interfaces "
                                     f"{used[node]!r} and {name!r}; a node can be tied to one only")
        self.tied = list(used)
        self.references = [nodes[face].mean(axis=0) for face in faces]
        self.tie = tie_faces(nodes, d, list(zip(faces, self.references, strict=True)))
        self.mass, self.stiffness = ((self.tie.T @ x @ self.tie) for x in (mass, stiffness))
        self.size = self.mass.shape[0]

    def boundary(self, name: str) -> list[int]:
        """The six degrees of freedom of an interface."""
        first = self.size - 6 * (len(self.names) - self.names.index(name))
        return list(range(first, first + 6))

    def shapes(self, reduction: str, modes: int, cutoff: float | None, frame: str | None) -> Floats:
        """Orthonormal shapes of the tied model by columns, rigid motions removed."""
        limit = None if cutoff is None else 2.0 * np.pi * cutoff
        if reduction == "free":
            values, shapes = normal_modes(self.mass, self.stiffness, int(modes) + 6, cutoff=limit)
            return self._elastic(values, shapes)
        basis = craig_bampton(self.mass, self.stiffness, [i for name in self.names for i in self.boundary(name)],
                              0 if reduction == "guyan" else int(modes), cutoff=limit)
        if frame is not None:  # its own six columns are the rigid motions, with the shapes of the others
            at = 6 * self.names.index(frame)
            basis = np.delete(basis, range(at, at + 6), axis=1)
        mass, stiffness = basis.T @ (self.mass @ basis), basis.T @ (self.stiffness @ basis)
        values, shapes = normal_modes(0.5 * (mass + mass.T), 0.5 * (stiffness + stiffness.T), basis.shape[1])
        return largest_positive(basis @ shapes) if frame is not None else self._elastic(values, basis @ shapes)

    def _elastic(self, values: Floats, shapes: Floats) -> Floats:
        """Without the six rigid motions, and orthogonal to them."""
        slow = int((np.sqrt(np.maximum(values, 0.0)) <= _SLOW * np.sqrt(max(float(values[-1]), 0.0))).sum())
        if slow > 6:
            raise ModelError(f"FlexibleBody.from_matrices: the body has {slow} motions without stiffness, not six: is "
                             "it in several pieces, or are nodes not connected?")
        shapes = shapes[:, 6:]
        motions = self._rigid()
        weighted = self.mass @ motions
        shapes = shapes - motions @ np.linalg.solve(motions.T @ weighted, weighted.T @ shapes)
        return largest_positive(shapes)

    def _rigid(self) -> Floats:
        """Rigid motions of the tied model."""
        loose = np.setdiff1d(np.arange(self.n), self.tied)
        free = rigid_motions(self.nodes[loose], self.d)
        return np.concatenate([free, *(rigid_motions(at[None], 6) for at in self.references)])

    def parts(self, shapes: Floats, frame: str | None, stresses: Callable[[Floats], StressModes | None],
              edges: Ints | None) -> BodyParts:
        """Those of the body, with a node of its own for every interface."""
        k = shapes.shape[1]
        everywhere = np.asarray(self.tie @ shapes).reshape(self.n, self.d, k)
        integrals = ShapeIntegrals.from_points(self.nodes, everywhere, self.full_mass)
        six = np.zeros((self.n + len(self.names), 6, k))
        six[:self.n, :self.d] = everywhere
        if self.names:
            six[self.n:] = shapes[self.size - 6 * len(self.names):].reshape(len(self.names), 6, k)
        nodes = np.concatenate([self.nodes, np.reshape(self.references, (-1, 3))])
        stiffness = shapes.T @ (self.stiffness @ shapes)
        return BodyParts(nodes, six, integrals, 0.5 * (stiffness + stiffness.T),
                         {name: self.n + i for i, name in enumerate(self.names)}, "consistent_nodal", frame,
                         stresses=stresses(everywhere), edges=edges)


def _face(name: str, given: int | Sequence[int], n: int, d: int) -> list[int]:
    """The nodes of an interface."""
    one = np.ndim(given) == 0
    face = [int(x) for x in np.atleast_1d(np.asarray(given)).tolist()]
    wrong = [x for x in face if not 0 <= x < n]
    if wrong:
        raise ModelError(f"FlexibleBody.from_matrices: interface {name!r} names node {wrong[0]}, but there are only "
                         f"{n} nodes")
    if not face or len(set(face)) != len(face):
        raise ModelError(f"FlexibleBody.from_matrices: interface {name!r} needs nodes, each once")
    if d == 3 and (one or len(face) < 3):
        raise ModelError(f"FlexibleBody.from_matrices: interface {name!r} is a node of solid elements, which has no "
                         "rotation; give at least three nodes of a face")
    return face


# -- modes of beams, and what a flexible body is made of with them ----------------------------------
#: degrees of freedom of a node in each kind of vibration
_KINDS = {"y": (1, 5), "z": (2, 4), "x": (0,), "t": (3,)}
#: degrees of freedom that are held at the first and at the last node
_SUPPORTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "clamped": ((0, 1, 2, 3, 4, 5), ()), "pinned": ((0, 1, 2, 3), (0, 1, 2)), "free": ((), ())}

Section = BeamSection | tuple[BeamSection, BeamSection] | Callable[[float], BeamSection]


def beam_parts(length: float, section: Section, elements: int, modes: int | Mapping[str, int] | str | npt.ArrayLike,
               support: str, inertia: str, names: Mapping[str, int], stiffening: bool = False) -> BodyParts:
    """See `FlexibleBody.beam`."""
    refuse_parameter("FlexibleBody.beam: the length", length)
    if not 0.0 < length < float("inf"):
        raise ModelError(f"FlexibleBody.beam: the length must be greater than 0, got {length!r}")
    if int(elements) != elements or elements < 1:
        raise ModelError(f"FlexibleBody.beam: needs a whole number of elements, at least 1, got {elements!r}")
    if support not in _SUPPORTS:
        raise ModelError(f"FlexibleBody.beam: support {support!r} is none of {', '.join(_SUPPORTS)}")
    if inertia not in INERTIAS:
        raise ModelError(f"FlexibleBody.beam: inertia {inertia!r} is none of {', '.join(INERTIAS)}")
    made = BeamElements(float(length), int(elements), _section(section))
    mass, stiffness = made.mass(), made.stiffness()
    shapes = _shapes(modes, made, mass, stiffness, support)
    n, k = elements + 1, shapes.shape[1]
    at_nodes = shapes.reshape(n, 6, k)
    more = None
    if stiffening:
        products = tuple((a, b) for a in range(k) for b in range(a, k))
        at_ends, inside = made.shortening(at_nodes, products)
        products, at_ends, inside = _present(products, at_ends, inside)
        more = Stiffening(products, at_ends[:, :3], _integrals(made, at_nodes, mass, inertia, at_ends, inside))
    integrals = _integrals(made, at_nodes, mass, inertia, at_nodes[:, :, :0], None)
    forces = made.section_forces(at_nodes)
    return BodyParts(made.nodes, at_nodes, integrals, shapes.T @ stiffness @ shapes,
                     {"base": 0, "tip": elements, **names}, inertia, "base" if support == "clamped" else None, more,
                     forces, beam_stresses(made, forces), np.stack([np.arange(elements), np.arange(1, n)], -1))


def _present(products: tuple[tuple[int, int], ...], at_ends: Floats, inside: Floats
             ) -> tuple[tuple[tuple[int, int], ...], Floats, Floats]:
    """Without products that shorten nothing: of stretch and twist, and of bending in two planes."""
    size = np.abs(inside).max(axis=(0, 1), initial=0.0)
    kept = [m for m, x in enumerate(size) if x > 1e-13 * size.max(initial=0.0)]
    return tuple(products[m] for m in kept), at_ends[:, :, kept], inside[:, :, kept]


def _integrals(made: BeamElements, modes: Floats, mass: Floats, inertia: str, more: Floats, inside: Floats | None
               ) -> ShapeIntegrals:
    """Those of the modes, and of second-order shapes at the nodes and inside the elements."""
    if inertia != "continuum":
        weight = mass if inertia == "consistent_nodal" else made.lumped_mass()
        return ShapeIntegrals.from_points(made.nodes, np.concatenate([modes, more], axis=-1), weight)
    from scipy import sparse

    points, there, weights = made.samples(modes)
    if inside is not None:
        there = np.concatenate([there, inside], axis=-1)
    return ShapeIntegrals.from_points(points, there, sparse.diags(weights))


def _section(section: Section) -> Callable[[float], BeamSection]:
    if isinstance(section, BeamSection):
        return lambda part: section
    if isinstance(section, tuple) and len(section) == 2 and all(isinstance(s, BeamSection) for s in section):
        return tapered(*section)
    if not callable(section) or not isinstance(section(0.5), BeamSection):
        raise ModelError("FlexibleBody.beam: the section must be a BeamSection, two of them, or a function of the part "
                         f"0..1 of the length that returns one, got {type(section).__name__}")
    return section


def _shapes(modes: int | Mapping[str, int] | str | npt.ArrayLike, beam: BeamElements, mass: Floats, stiffness: Floats,
            support: str) -> Floats:
    n = beam.elements + 1
    first, last = _SUPPORTS[support]
    held = {*first, *(6 * (n - 1) + i for i in last)}
    free = [i for i in range(6 * n) if i not in held]
    if isinstance(modes, Mapping):
        unknown = [kind for kind in modes if kind not in _KINDS]
        if unknown:
            raise ModelError(f"FlexibleBody.beam: {unknown[0]!r} is no kind of vibration; there are y, z (bending), x "
                             "(stretch) and t (twist)")
        parts = [_lowest(count, mass, stiffness, [i for i in free if i % 6 in _KINDS[kind]], beam, support, kind)
                 for kind, count in modes.items()]
        return np.concatenate([np.zeros((6 * n, 0)), *parts], axis=1)
    if isinstance(modes, str):
        if modes != "all" or support == "free":
            raise ModelError(f"FlexibleBody.beam: modes={modes!r} with support={support!r}; use a number, numbers of "
                             'kinds such as {"y": 2}, shapes by columns, or "all" of a beam that is held')
        return np.eye(6 * n)[:, free]
    if np.ndim(modes) == 0:
        return _lowest(modes, mass, stiffness, free, beam, support, "")
    shapes = np.array(modes, dtype=float)
    if shapes.ndim != 2 or shapes.shape[0] != 6 * n:
        raise ModelError(f"FlexibleBody.beam: shapes must have 6 rows for each of the {n} nodes, {6 * n} in all, got "
                         f"shape {shapes.shape}")
    return shapes


def _lowest(count: Any, mass: Floats, stiffness: Floats, free: list[int], beam: BeamElements, support: str, kind: str
            ) -> Floats:
    """The lowest modes of some degrees of freedom, of unit mass; rigid motions left out."""
    rigid = 0
    if support == "free":
        rigid = {"": 6, "y": 2, "z": 2, "x": 1, "t": 1}[kind]
    most = len(free) - rigid
    if isinstance(count, bool) or int(count) != count or not 0 <= count <= most:
        which = f" of kind {kind!r}" if kind else ""
        raise ModelError(f"FlexibleBody.beam: modes{which} must be a whole number from 0 to {most} with "
                         f"{beam.elements} elements, got {count!r}")
    massless = [i for i in free if not mass[i, i] > 0.0]
    if count and massless:
        raise ModelError("FlexibleBody.beam: sections without Jx cannot twist: give BeamSection a Jx above 0, or "
                         'choose other modes, such as {"y": 2, "z": 2}')
    pick = np.ix_(free, free)
    _, shapes = normal_modes(mass[pick], stiffness[pick], int(count) + rigid)
    out = np.zeros((len(mass), int(count)))
    out[free] = shapes[:, rigid:]
    if rigid:  # exactly orthogonal to rigid motions: the frame floats with the mean motion
        motions = rigid_motions(beam.nodes, 6)
        out -= motions @ np.linalg.solve(motions.T @ mass @ motions, motions.T @ mass @ out)
    return _signed(out, support)


def _signed(shapes: Floats, support: str) -> Floats:
    """Signs that do not depend on the eigenvalue routine: of clamped and free beams the largest displacement (or
    rotation) of the tip is positive, of pinned ones the slope at the base."""
    blocks = shapes.reshape(len(shapes) // 6, 6, shapes.shape[1])
    for j in range(shapes.shape[1]):
        if support == "pinned":
            entries = blocks[0, 3:, j] * np.array([1.0, -1.0, 1.0])  # the slope of uz is -ry
            if not np.abs(entries).max() > 1e-9 * np.abs(blocks[:, :, j]).max():
                entries = blocks[:, 0, j] if np.abs(blocks[:, 0, j]).max() else blocks[:, 3, j]
        else:
            moved = np.abs(blocks[-1, :3, j]).max() > 1e-9 * np.abs(blocks[:, :, j]).max()
            entries = blocks[-1, :3, j] if moved else blocks[-1, 3:, j]
        if entries[np.abs(entries).argmax()] < 0.0:
            shapes[:, j] *= -1.0
    return shapes
