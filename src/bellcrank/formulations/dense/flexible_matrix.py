"""The mass matrix of machines with flexible bodies: composites of frozen bodies, and the modes' own rows.

As for rigid links: a unit acceleration of one speed moves everything outboard of it as one body, whose inertia is no
longer that of a rigid one (see `ShapeIntegrals`). A mode moves its own body and all that hangs from its nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bellcrank.formulations.common.flexible_links import ModalLoad, inward_node_load
from bellcrank.lowering.flexible_link import ModalLink, NodeLink, by_role
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force

__all__ = ["matrix_with_modes"]


class ColumnForce(NamedTuple):
    """A path's force, and entries of its row that are known before the step: of modes or of the joint's own rotors."""

    force: Force
    known: tuple[Number, ...]


def matrix_with_modes(tree: Sweeps) -> Field:
    """Columns of the mass matrix along the paths to the root."""
    composites, _ = tree.inward(by_role(inward_composite, inward_frame, inward_node), zero=ArticulatedInertia.zero())
    return tree.paths(by_role(start_joint, start_modes, start_node),
                      by_role(inward_column, inward_modes, inward_shares), composites)


# -- composites --------------------------------------------------------------------------------------------------------
def inward_composite(link: Link, upper: ArticulatedInertia) -> tuple[ArticulatedInertia, ArticulatedInertia]:
    own = upper + link.inertia.articulated()
    return _lowered(link, own), own


def inward_node(link: NodeLink, upper: ArticulatedInertia) -> tuple[ModalLoad, ArticulatedInertia]:
    own = upper + link.inertia.articulated()
    return inward_node_load(link, own, Force.zero()), own


def inward_frame(link: ModalLink, upper: ModalLoad | ArticulatedInertia) -> tuple[ArticulatedInertia, Any]:
    mass, columns, matrix = link.resistance
    if isinstance(upper, ModalLoad):
        mass = mass + upper.mass
        columns = tuple(a + b for a, b in zip(columns, upper.columns, strict=True))
        k = len(columns)
        matrix = tuple(tuple(matrix[i][j] + upper.matrix[max(i, j)][min(i, j)] for j in range(k)) for i in range(k))
    return _lowered(link, mass), (columns, matrix)


def _lowered(link: Link, mass: ArticulatedInertia) -> ArticulatedInertia:
    for t in reversed(link.transforms):
        mass = t.articulated(mass)
    return mass


# -- columns -----------------------------------------------------------------------------------------------------------
def start_joint(link: Link, composite: ArticulatedInertia) -> tuple[ColumnForce, ...]:
    """Forces of unit accelerations of a joint, and what rotors add to the diagonal."""
    return tuple(ColumnForce(composite @ column, tuple(a if i == j else 0.0 for j, a in enumerate(link.armature)))
                 for i, column in enumerate(link.columns))


def start_modes(link: ModalLink, composite: tuple[tuple[Force, ...], tuple[tuple[Number, ...], ...]]
                ) -> tuple[ColumnForce, ...]:
    return tuple(ColumnForce(force, row) for force, row in zip(*composite, strict=True))


def start_node(link: NodeLink, composite: ArticulatedInertia) -> tuple[()]:
    return ()


def inward_column(link: Link, carried: ColumnForce, composite: Any) -> tuple[ColumnForce, tuple[Number, ...]]:
    row = tuple(column.dot(carried.force) for column in link.columns)
    if carried.known:
        row = tuple(a + b for a, b in zip(row, carried.known, strict=True))
    return ColumnForce(_carried(link, carried.force), ()), row


def inward_shares(link: NodeLink, carried: ColumnForce, composite: Any) -> tuple[ColumnForce, tuple[()]]:
    """Past a node: the modes of its frame take their share."""
    shares = tuple(column.dot(carried.force) for column in link.moving_columns)
    return ColumnForce(_carried(link, carried.force), shares), ()


def inward_modes(link: ModalLink, carried: ColumnForce, composite: Any) -> tuple[ColumnForce, tuple[Number, ...]]:
    return ColumnForce(_carried(link, carried.force), ()), carried.known


def _carried(link: Link, force: Force) -> Force:
    for t in reversed(link.transforms):
        force = t.force(force)
    return force
