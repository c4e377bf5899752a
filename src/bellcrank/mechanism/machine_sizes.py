"""How large a machine is: the length by which tolerances in metres are measured, and ordinary changes of coordinates.

A tolerance is a share of the machine's own size, so that a description in millimetres and the same one in metres take
the same decisions. Sizes are powers of two: dividing by them is exact.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.parts import Constraint, FirstOrder
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Connection, Mechanism

__all__ = ["coordinate_sizes", "power_of_two", "speed_sizes", "turns", "typical_length"]


def typical_length(mechanism: Mechanism) -> float:
    """A length typical of a machine [m], a power of two: the largest distance, along an axis, between joints and centre
    of mass of one body, or the largest radius of gyration. Distances on the ground count if bodies have none; 1 if
    nothing has an extent. Parameters have their default values. Cost: O(bodies).

    >>> from bellcrank.mechanism.mechanism import Mechanism
    >>> from bellcrank.mechanism.inertia import Inertia
    >>> from bellcrank.mechanism.joints import Revolute
    >>> m = Mechanism()
    >>> _ = m.add_joint("hinge", Revolute("x"), m.ground, m.add_body("bob", Inertia.point(1.0, (0, 0, -300.0))))
    >>> typical_length(m)
    256.0
    """
    bodies = (mechanism.ground, *mechanism.bodies)
    ends: list[Connection | Constraint] = [*mechanism.joints, *mechanism.constraints]
    index = {b.name: b.index for b in bodies}
    real = np.arange(len(bodies))
    for carrier in mechanism.carriers:
        real[index[carrier.name]] = index[carrier.real]
    own = [i for i, b in enumerate(bodies) if not _zero(b.inertia.mass)]
    points = [*(bodies[i].inertia.com for i in own), *(r.parent_pose.position for r in ends),
              *(r.child_pose.position for r in ends)]
    where = np.array([*own, *(r.parent for r in ends), *(r.child for r in ends)], dtype=np.int64)
    extents = _extents(_defaults(mechanism, points, 3), real[where], len(bodies))
    masses = _defaults(mechanism, [(bodies[i].inertia.mass, *bodies[i].inertia.inertia) for i in own], 7)
    with np.errstate(divide="ignore", invalid="ignore"):
        gyration = np.sqrt(masses[:, [1, 4, 6]].max(axis=1, initial=0.0) / masses[:, 0])
    nodes = [float(np.ptp(r.joint.body.nodes, axis=0).max()) for r in mechanism.joints if isinstance(r.joint, Modal)]
    moving = np.concatenate([extents[1:], gyration[np.isfinite(gyration)], nodes]).max(initial=0.0)
    return power_of_two(float(moving) or float(extents[0]))


def power_of_two(size: float) -> float:
    """The power of two nearest to a positive size, by ratio; 1 for sizes that are zero or not finite."""
    return 2.0 ** round(math.log2(size)) if 0.0 < size < math.inf else 1.0


def turns(joint: Joint) -> list[bool]:
    """For each speed, whether it turns the child: its column of the motion subspace has an angular part."""
    place: list[Number] = [float(x) for x in joint.neutral()]
    return [any(type(x) is not float or x != 0.0 for x in column.angular)
            for column in joint.subspace(place, joint.constants())]


def speed_sizes(joint: Joint, length: float) -> Floats:
    """What every speed's coordinate is measured by: 1 rad, the machine's typical length, for modal coordinates as well;
    1 for states."""
    if isinstance(joint, Modal):
        return np.full(joint.nu, length)
    if isinstance(joint, FirstOrder):
        return np.ones(1)
    return np.array([1.0 if turn else length for turn in turns(joint)])


def coordinate_sizes(joint: Joint, length: float) -> Floats:
    """The same for coordinates: those of quaternions, which come first, are of order 1."""
    if joint.nq == joint.nu:
        return speed_sizes(joint, length)
    return np.array([1.0] * 4 + [length] * (joint.nq - 4))


def _zero(value: Number) -> bool:
    return type(value) is float and value == 0.0


def _defaults(mechanism: Mechanism, rows: list[tuple[Number, ...]], width: int) -> Floats:
    """Numbers as an array (n, width), parameters at their defaults."""
    numbers = chain.from_iterable(rows)
    found = map(mechanism.default, numbers) if mechanism.parameters else numbers
    return np.fromiter(found, dtype=float, count=len(rows) * width).reshape(-1, width)


def _extents(points: Floats, where: npt.NDArray[np.int64], n: int) -> Floats:
    """The largest distance along an axis between points (k, 3) that lie on the same body, for n bodies."""
    low, high = np.full((n, 3), np.inf), np.full((n, 3), -np.inf)
    np.minimum.at(low, where, points)
    np.maximum.at(high, where, points)
    return np.asarray(np.maximum((high - low).max(axis=1), 0.0))
