"""Modes of beams, and what a flexible body is made of with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.flexible.beam_elements import BeamElements, BeamSection, tapered
from bellcrank.mechanism.flexible.component_modes import normal_modes, refuse_parameter, rigid_motions
from bellcrank.mechanism.flexible.modal_kinetics import ShapeIntegrals, Stiffening
from bellcrank.mechanism.flexible.reduced_body import INERTIAS, BodyParts, beam_stresses

__all__ = ["beam_parts"]

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
