"""Kane's equations in generalized speeds, triangularised as they are formed.

K. S. Anderson and J. H. Critchley, "Improved 'Order-N' Performance Algorithm for the Simulation of Constrained
Multi-Rigid-Body Dynamic Systems", Multibody System Dynamics 9, 2003, section 2. Equation numbers are the paper's.

| paper | here |
|---|---|
| Pr[k], Dist[k] | parent and children of a link |
| S^k (10) | ``place.transforms``, between mass centres |
| P_k^k, u_k (4) | ``place.columns``, ``link.u`` |
| omega^k (2) | ``omega`` |
| A_t^k (7) | ``remainder``: the part of the acceleration known from the state |
| I^k, F^k (11), (12) | ``place.inertia``, ``force`` (with the opposite sign) |
| Ihat^k, Fhat^k, M_k (14), (15), (19) | ``mass``, ``force`` as the sweep proceeds, inside `eliminate` |
| eta_k, etabar^k (22)-(27) | ``udot``, ``explicit``: the part of the acceleration linear in udot |

Declared deviations
- `force` is the paper's -F: what must be applied, not what is applied; hinge torques enter as the given row sums.
- Gravity enters as an upward acceleration of the ground.
- M_k is factored column by column (see `pivot`); prescribed speeds are part of the remainder terms, as in (5).
- Only the angular velocity is propagated: (12) needs no more of (8).
- Constraint loads (17), (20), (23), (28), (29) belong to closed loops and are not used in trees.

Cost: O(n); see ``python benchmarks/operations.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.engine.scalar import Number
from bellcrank.engine.sweeps import Field, Sweeps
from bellcrank.formulations.kinematics import outward_axes
from bellcrank.formulations.pivot import Pivot, eliminate, solve
from bellcrank.formulations.points import Place, body_centroid
from bellcrank.mechanism.link import Link
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["BIBTEX", "forward_dynamics", "inverse_dynamics"]

BIBTEX = """@article{anderson2003improved,
  author  = {Anderson, K. S. and Critchley, J. H.},
  title   = {Improved `Order-N' Performance Algorithm for the Simulation of Constrained Multi-Rigid-Body Dynamic
             Systems},
  journal = {Multibody System Dynamics},
  volume  = {9},
  pages   = {185--212},
  year    = {2003}
}"""


class Known(NamedTuple):
    """What is known of a body from the state alone."""

    omega: Vector
    remainder: Motion


def forward_dynamics(tree: Sweeps) -> Field:
    """Derivatives of the generalized speeds."""
    axes = outward_axes(tree)
    place = body_centroid(tree)
    known = tree.outward(outward_remainders, place, root=_base(tree))
    pivots, _ = tree.inward(inward_triangularization, place, known, axes,
                            zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_substitution, place, pivots, root=Motion.zero())


def inverse_dynamics(tree: Sweeps) -> Field:
    """Generalized active forces for given derivatives of the speeds."""
    axes = outward_axes(tree)
    place = body_centroid(tree)
    known = tree.outward(outward_accelerations, place, root=_base(tree))
    return tree.inward(inward_forces, place, known, axes, zero=Force.zero())[0]


def _base(tree: Sweeps) -> Known:
    return Known(Vector.zero(), Motion(Vector.zero(), -tree.world.gravity))


def outward_remainders(link: Link, parent: Known, place: Place) -> tuple[Known, Known]:
    return _propagated(parent, place, place.drift)


def outward_accelerations(link: Link, parent: Known, place: Place) -> tuple[Known, Known]:
    drift = place.drift
    for column, udot, prescribed in zip(place.columns, link.udot, link.mask, strict=True):
        if not prescribed:  # what is prescribed is in the drift already
            drift = drift + column * udot  # (9): P_k udot_k
    return _propagated(parent, place, drift)


def _propagated(parent: Known, place: Place, drift: Motion) -> tuple[Known, Known]:
    omega, remainder = parent
    for t in place.transforms:
        moved = t.acceleration(remainder)  # (9): (S^k)^T
        remainder = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega = t.rotation.inverse(omega)
    rate = place.rate
    remainder = remainder + drift + Motion(omega.cross(rate.angular), omega.cross(rate.linear) * 2.0)  # (7)
    own = Known(omega + rate.angular, remainder)  # (2)
    return own, own


def _needed(link: Link, place: Place, known: Known, axes: General | None) -> Force:
    """-F^k, (12)."""
    omega, (alpha, a) = known
    force = Force(place.central @ alpha + omega.cross(place.central @ omega), a * place.inertia.mass)
    return force if axes is None else force - place.own.force(link.external(axes))


def inward_triangularization(link: Link, upper: tuple[ArticulatedInertia, Force], place: Place, known: Known,
                             axes: General | None) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass = upper[0] + place.inertia.articulated()  # (14)
    force = upper[1] + _needed(link, place, known, axes)  # (15)
    pivots = []
    for column, tau, prescribed in zip(place.columns, link.tau, link.mask, strict=True):
        if not prescribed:
            mass, force, pivot = eliminate(mass, force, column, tau)  # (18), (19)
            pivots.append(pivot)
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (14), (15): S^k
    return (mass, force), tuple(pivots)


def outward_substitution(link: Link, explicit: Motion, place: Place, pivots: tuple[Pivot, ...]
                         ) -> tuple[Motion, tuple[Number, ...]]:
    for t in place.transforms:
        explicit = t.acceleration(explicit)  # (26)
    explicit, udot = solve(explicit, place.columns, link.mask, pivots, link.prescribed_udot)  # (24), (26), (27)
    return explicit, tuple(udot)


def inward_forces(link: Link, upper: Force, place: Place, known: Known, axes: General | None
                  ) -> tuple[Force, tuple[Number, ...]]:
    total = upper + _needed(link, place, known, axes)  # (12), (15) without triangularisation
    lower = total
    for t in reversed(place.transforms):
        lower = t.force(lower)
    return lower, tuple(column.dot(total) for column in place.columns)
