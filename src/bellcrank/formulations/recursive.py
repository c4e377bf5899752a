"""The fully recursive formulation, with the reference point of your choice.

S.-G. Kang and Y.-S. Yoon, "On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis
of Multibody Systems", KSME International Journal 17(3), 2003. Equation numbers are the paper's.

| paper | here |
|---|---|
| A_i C_j R_j, r_ij, B_j1 (9), (13), (25), (33) | ``place.transforms``: rotation and translation factors |
| B_j2 (25), (33) | ``place.columns``, the columns of the joint's motion subspace |
| omega_ij, v_ij (17), (18) | ``place.rate`` |
| D_j (27), (35) | ``velocity.bias`` |
| M_j, Q_j (3), (8), (36) | ``mass`` (articulated as the sweep proceeds), ``force`` (with the opposite sign) |
| M_22^-1 M_21, M_22^-1 Q_2 (28) | ``Pivot.gain``, ``Pivot.free`` |
| Y_j, dY_j/dt (23), (26), (32), (34) | ``acceleration``: angular acceleration, acceleration of the point |

The text below is one; `points` supplies the three points (``centroid``: method 1; ``origin``: method 2; ``joint``)
in the paper's global axes, and the joint point in body axes (``body``), which is the default.

Declared deviations
- Spatial vectors are [angular; linear]; the paper orders them the other way.
- The default resolves all vectors in body axes, so that B_j1 holds a rotation.
- Gravity enters as an upward acceleration of the ground instead of as a force on every body.
- `force` is the paper's -Q: what must be applied, not what is applied.
- M_22 is not inverted: its columns are eliminated one after another (see `pivot`); prescribed speeds are not
  eliminated but enter D_j with their known accelerations.
- The paper derives the centroid and the global origin; the joint point, which it only reports on, follows
  from (4)-(8) with s^P = -rho.

Cost: O(n); about 410 additions and multiplications per pin joint in body axes and chosen frames. The command
``python benchmarks/operations.py`` prints exact counts for every point.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bellcrank.engine.scalar import Number
from bellcrank.engine.sweeps import Field, Sweeps
from bellcrank.formulations.kinematics import outward_axes
from bellcrank.formulations.pivot import Pivot, eliminate, solve
from bellcrank.formulations.points import POINTS, Place, Velocity
from bellcrank.mechanism.link import Link
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["BIBTEX", "VARIANTS", "forward_dynamics", "inverse_dynamics", "joint_wrenches"]

BIBTEX = """@article{kang2003recursive,
  author  = {Kang, Sheen-Gil and Yoon, Yong-San},
  title   = {On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis of Multibody Systems},
  journal = {KSME International Journal},
  volume  = {17},
  number  = {3},
  year    = {2003}
}"""


def forward_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations for given joint forces, at the joint point in body axes."""
    chosen = POINTS["body"]
    axes = outward_axes(tree)
    place = chosen.places(tree)
    velocity = tree.outward(chosen.outward_velocities, place, root=chosen.still)
    pivots, _ = tree.inward(inward_reduced, place, velocity, axes, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_reduced, place, velocity, pivots, root=Motion(Vector.zero(), -tree.world.gravity))


def forward_dynamics_at(tree: Sweeps, point: str) -> Field:
    """Joint accelerations for given joint forces, at a point of choice in global axes, as in the paper."""
    chosen = POINTS[point]
    axes = outward_axes(tree)
    place = chosen.places(tree)
    velocity = tree.outward(chosen.outward_velocities, place, root=chosen.still)
    rows, _ = tree.inward(inward_inertias, place, velocity, axes, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_accelerations, place, velocity, rows,
                        root=Motion(Vector.zero(), -tree.world.gravity))


#: one text, three points
VARIANTS = {point: {"forward_dynamics": partial(forward_dynamics_at, point=point)}
            for point in ("centroid", "joint", "origin")}


def inverse_dynamics(tree: Sweeps) -> Field:
    """Joint forces for given joint accelerations."""
    return tree.inward(inward_forces, *_newton_euler(tree), zero=Force.zero())[0]


def joint_wrenches(tree: Sweeps) -> Field:
    """Wrench on each body through its inboard joint, link axes, for given joint accelerations."""
    return tree.inward(inward_wrenches, *_newton_euler(tree), zero=Force.zero())[0]


def _newton_euler(tree: Sweeps) -> tuple[Field, Field]:
    axes = outward_axes(tree)
    root = (Vector.zero(), Motion(Vector.zero(), -tree.world.gravity))
    return tree.outward(outward_motions, root=root), axes


class Row(NamedTuple):
    """One row of (30): udot_k = free - gain . dY_i - couplings . udot_l, for the columns l that follow k."""

    gain: Force  #: M_21 / M_22, in the lower body's frame
    free: Number  #: Q_2 / M_22
    couplings: tuple[Number, ...]


def inward_inertias(link: Link, upper: tuple[ArticulatedInertia, Force], place: Place, velocity: Velocity,
                    axes: General | None) -> tuple[tuple[ArticulatedInertia, Force], tuple[Row, ...]]:
    mass = upper[0] + place.inertia.articulated()  # (3), (36), (29)
    force = upper[1] + velocity.force  # (3), (36), (29)
    if axes is not None:
        force = force - place.own.force(link.external(axes))
    force = force + mass @ velocity.bias  # (28): -(Q - M D)
    solved = _solve_rows(mass, force, place, link)
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (28): M_11, Q_1
    rows = []
    for m21, inverse, rest, couplings in solved:
        for t in reversed(place.transforms):
            m21 = t.force(m21)  # (28): M_21 = B2^T M B1
        gain = m21 * inverse
        mass, force = mass.minus(m21, gain), force + gain * rest  # (29)
        rows.append(Row(gain, inverse * rest, couplings))
    return (mass, force), tuple(rows)


def _solve_rows(mass: ArticulatedInertia, force: Force, place: Place, link: Link
                ) -> list[tuple[Force, Number, Number, tuple[Number, ...]]]:
    """(28) column by column: M_21 before the shift, 1 / M_22, Q_2, and how later columns enter the row."""
    free = [(column, tau) for column, tau, prescribed in zip(place.columns, link.tau, link.mask, strict=True)
            if not prescribed]
    done: list[tuple[Force, Number, Number, tuple[Number, ...]]] = []
    for k, (column, tau) in enumerate(free):
        m21, rest = mass @ column, tau - column.dot(force)
        for before, inverse, earlier, _ in done:
            share = column.dot(before) * inverse
            m21, rest = m21 - before * share, rest - share * earlier
        inverse = 1.0 / column.dot(m21)
        done.append((m21, inverse, rest, tuple(later.dot(m21) * inverse for later, _ in free[k + 1:])))
    return done


def outward_accelerations(link: Link, lower: Motion, place: Place, velocity: Velocity, rows: tuple[Row, ...]
                          ) -> tuple[Motion, tuple[Number, ...]]:
    udot = link.prescribed_udot
    free = [i for i, prescribed in enumerate(link.mask) if not prescribed]
    for k in reversed(range(len(free))):
        value = rows[k].free - lower.dot(rows[k].gain)  # (30)
        for coupling, later in zip(rows[k].couplings, free[k + 1:], strict=True):
            value = value - coupling * udot[later]
        udot[free[k]] = value
    acceleration = lower
    for t in place.transforms:
        acceleration = t.acceleration(acceleration)
    acceleration = acceleration + velocity.bias  # (30); D holds what prescribed accelerations contribute
    for i in free:
        acceleration = acceleration + place.columns[i] * udot[i]  # (30)
    return acceleration, tuple(udot)


# -- the same in body axes: reduced before it is shifted, so that rows of zeros need not be turned --------------------
def inward_reduced(link: Link, upper: tuple[ArticulatedInertia, Force], place: Place, velocity: Velocity,
                   axes: General | None) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass = upper[0] + place.inertia.articulated()  # (3), (29)
    force = upper[1] + velocity.force  # (3), (29)
    if axes is not None:
        force = force - place.own.force(link.external(axes))
    pivots = []
    for column, tau, prescribed in zip(place.columns, link.tau, link.mask, strict=True):
        if not prescribed:
            mass, force, pivot = eliminate(mass, force, column, tau)  # (28), (29)
            pivots.append(pivot)
    force = force + mass @ velocity.bias  # (28): Q - M D
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (28): B1^T M B1, B1^T Q
    return (mass, force), tuple(pivots)


def outward_reduced(link: Link, acceleration: Motion, place: Place, velocity: Velocity, pivots: tuple[Pivot, ...]
                    ) -> tuple[Motion, tuple[Number, ...]]:
    for t in place.transforms:
        acceleration = t.acceleration(acceleration)  # (26): B1 dY
    acceleration = acceleration + velocity.bias  # (26)
    acceleration, udot = solve(acceleration, place.columns, link.mask, pivots, link.prescribed_udot)  # (30)
    return acceleration, tuple(udot)


# -- inverse dynamics: (26) outward, (7) inward ---------------------------------------------------------------------
def outward_motions(link: Link, parent: tuple[Vector, Motion]
                    ) -> tuple[tuple[Vector, Motion], tuple[Vector, Motion]]:
    omega, a = parent
    alpha, linear = a
    for t in link.transforms:
        linear = t.rotation.inverse(linear + arm_acceleration(alpha, omega, t.translation))  # (26), (20)
        alpha, omega = t.rotation.inverse(alpha), t.rotation.inverse(omega)
    rate = link.rate
    drift = link.joint.drift(link.q, link.u, link.numbers.joint)
    for column, udot in zip(link.columns, link.udot, strict=True):
        drift = drift + column * udot
    alpha = alpha + omega.cross(rate.angular) + drift.angular  # (26), (27)
    linear = linear + omega.cross(rate.linear) * 2.0 + drift.linear
    own = omega + rate.angular, Motion(alpha, linear)
    return own, own


def arm_acceleration(alpha: Vector, omega: Vector, arm: Vector) -> Vector:
    """alpha x arm + omega x (omega x arm), as one matrix shared by all arms of a body."""
    w, a, r = omega, alpha, arm
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    return Vector((xy - a.z) * r.y + (xz + a.y) * r.z - (yy + zz) * r.x,
                  (xy + a.z) * r.x + (yz - a.x) * r.z - (xx + zz) * r.y,
                  (xz - a.y) * r.x + (yz + a.x) * r.y - (xx + yy) * r.z)


def inward_wrenches(link: Link, upper: Force, motion: tuple[Vector, Motion], axes: General | None
                    ) -> tuple[Force, Force]:
    omega, (alpha, linear) = motion
    body = link.inertia
    moment = body.second @ alpha + omega.cross(body.second @ omega) + body.first.cross(linear)  # (8)
    force = linear * body.mass + arm_acceleration(alpha, omega, body.first)  # (8)
    total = upper + Force(moment, force)
    if axes is not None:
        total = total - link.external(axes)
    lower = total
    for t in reversed(link.transforms):
        lower = t.force(lower)
    return lower, total


def inward_forces(link: Link, upper: Force, motion: tuple[Vector, Motion], axes: General | None
                  ) -> tuple[Force, tuple[Number, ...]]:
    lower, total = inward_wrenches(link, upper, motion, axes)
    return lower, tuple(column.dot(total) for column in link.columns)  # (28): B2^T (M dY - Q)
