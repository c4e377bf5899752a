"""The fully recursive formulation with the reference point at the joint.

S.-G. Kang and Y.-S. Yoon, "On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis
of Multibody Systems", KSME International Journal 17(3), 2003. Equation numbers are the paper's.

| paper | here |
|---|---|
| A_i C_j R_j, r_ij (9), (13) | ``link.transforms`` of body j: rotation and translation factors |
| B_j2 (25), (33) | ``link.columns``, the columns of the joint's motion subspace |
| omega_ij, v_ij (17), (18) | ``link.rate`` |
| D_j (27), (35) | ``bias`` |
| M_j, Q_j (3), (8) | ``mass`` (articulated as the sweep proceeds), ``force`` (with the opposite sign) |
| M_22^-1 M_21, M_22^-1 Q_2 (28) | ``Pivot.gain``, ``Pivot.free`` |
| Y_j, dY_j/dt (23), (26) | ``acceleration``: angular acceleration, acceleration of the joint point |

Declared deviations
- Spatial vectors are [angular; linear]; the paper orders them the other way.
- All vectors are resolved in body axes, so B_j1 holds a rotation; the paper resolves in global axes.
- Gravity enters as an upward acceleration of the ground instead of as a force on every body.
- `force` is the paper's -Q: what must be applied, not what is applied.
- M_22 is not inverted: its columns are eliminated one after another (an LDL^T factorisation), so that a
  joint with several speeds costs no more than its speeds one by one; prescribed speeds are not eliminated
  but enter D_j with their known accelerations.
- The paper derives the centroid and the global origin; the joint point, which it only reports on, follows
  from (4)-(8) with s^P = -rho.

Cost: O(n); per pin joint in chosen frames about 390 additions and multiplications for forward dynamics.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.engine.scalar import Number
from bellcrank.engine.sweeps import Field, Sweeps
from bellcrank.formulations.kinematics import inward_composites, outward_axes
from bellcrank.formulations.pivot import Pivot, eliminate, solve
from bellcrank.mechanism.link import Link
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, RigidInertia, Vector

__all__ = ["BIBTEX", "forward_dynamics", "hinge_inertias", "inverse_dynamics", "joint_wrenches"]

BIBTEX = """@article{kang2003recursive,
  author  = {Kang, Sheen-Gil and Yoon, Yong-San},
  title   = {On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis of Multibody Systems},
  journal = {KSME International Journal},
  volume  = {17},
  number  = {3},
  year    = {2003}
}"""


class Velocity(NamedTuple):
    """What the velocity sweep leaves at a body."""

    omega: Vector
    bias: Motion


def forward_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations for given joint forces."""
    axes = outward_axes(tree)
    velocity = tree.outward(outward_velocities, root=Vector.zero())
    pivots, _ = tree.inward(inward_inertias, velocity, axes, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_accelerations, velocity, pivots,
                        root=Motion(Vector.zero(), -tree.world.gravity))


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


def outward_velocities(link: Link, omega: Vector) -> tuple[Vector, Velocity]:
    carried = Vector.zero()
    for t in link.transforms:
        carried = t.rotation.inverse(carried + omega.centripetal(t.translation))  # d/dt (20), with (13)
        omega = t.rotation.inverse(omega)
    rate = link.rate  # (17), (18)
    bias = Motion(omega.cross(rate.angular) + link.drift.angular,
                  carried + omega.cross(rate.linear) * 2.0 + link.drift.linear)  # (27), (35)
    omega = omega + rate.angular  # (19)
    return omega, Velocity(omega, bias)


def inward_inertias(link: Link, upper: tuple[ArticulatedInertia, Force], velocity: Velocity, axes: General | None
                    ) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass = upper[0] + link.inertia.articulated()  # (8), (29)
    force = upper[1] + link.inertia.gyroscopic(velocity.omega)  # (8), (29)
    if axes is not None:
        force = force - link.external(axes)
    pivots = []
    for column, tau, prescribed in zip(link.columns, link.tau, link.mask, strict=True):
        if not prescribed:
            mass, force, pivot = eliminate(mass, force, column, tau)  # (28), (29)
            pivots.append(pivot)
    force = force + mass @ velocity.bias  # (28): Q - M D
    for t in reversed(link.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (28): B1^T M B1, B1^T Q
    return (mass, force), tuple(pivots)


def outward_accelerations(link: Link, acceleration: Motion, velocity: Velocity, pivots: tuple[Pivot, ...]
                          ) -> tuple[Motion, tuple[Number, ...]]:
    for t in link.transforms:
        acceleration = t.acceleration(acceleration)  # (26): B1 dY
    acceleration = acceleration + velocity.bias
    acceleration, udot = solve(acceleration, link.columns, link.mask, pivots, link.prescribed_udot)  # (30)
    return acceleration, tuple(udot)


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


def hinge_inertias(tree: Sweeps) -> Field:
    """For each eliminated speed, what resists it: M_22 with everything outboard free, and with it locked."""
    composites, _ = tree.inward(inward_composites, zero=RigidInertia.zero())
    return tree.inward(inward_hinges, composites, zero=ArticulatedInertia.zero())[0]


def inward_hinges(link: Link, upper: ArticulatedInertia, composite: RigidInertia
                  ) -> tuple[ArticulatedInertia, tuple[tuple[Number, Number], ...]]:
    mass = upper + link.inertia.articulated()
    kept = []
    for column, prescribed in zip(link.columns, link.mask, strict=True):
        if not prescribed:
            kept.append((column.dot(mass @ column), column.dot(composite @ column)))
            mass, _, _ = eliminate(mass, Force.zero(), column, 0.0)
    for t in reversed(link.transforms):
        mass = t.articulated(mass)
    return mass, tuple(kept)
