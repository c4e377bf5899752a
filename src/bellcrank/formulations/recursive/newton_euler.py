"""Inverse dynamics by recursive Newton-Euler: (26) outward, (7) inward.

S.-G. Kang and Y.-S. Yoon; see `recursive` for the citation, the notation and what deviates.
"""

from __future__ import annotations

from bellcrank.formulations.common.flexible_links import forces_with_modes
from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Motion, Vector

__all__ = ["arm_acceleration", "inverse_dynamics", "inward_forces", "inward_wrenches", "joint_wrenches",
           "outward_motions"]


def inverse_dynamics(tree: Sweeps) -> Field:
    """Joint forces for given joint accelerations."""
    if tree.world.flexible:
        return forces_with_modes(tree, *_newton_euler(tree), inward_wrenches, inward_forces)
    return tree.inward(inward_forces, *_newton_euler(tree), zero=Force.zero())[0]


def joint_wrenches(tree: Sweeps) -> Field:
    """Wrench on each body through its inboard joint, link axes, for given joint accelerations."""
    if tree.world.flexible:
        return forces_with_modes(tree, *_newton_euler(tree), inward_wrenches, None)
    return tree.inward(inward_wrenches, *_newton_euler(tree), zero=Force.zero())[0]


def _newton_euler(tree: Sweeps) -> tuple[Field, Field]:
    axes = outward_axes(tree)
    root = (Vector.zero(), Motion(Vector.zero(), -tree.world.gravity))
    return tree.outward(outward_motions, root=root), axes


# -- inverse dynamics: (26) outward, (7) inward ---------------------------------------------------------------------
def outward_motions(link: Link, parent: tuple[Vector, Motion]
                    ) -> tuple[tuple[Vector, Motion], tuple[Vector, Motion]]:
    omega, a = parent
    alpha, linear = a
    for t in link.transforms:
        linear = t.rotation.inverse(linear + arm_acceleration(alpha, omega, t.translation))  # (26), d/dt (20)
        alpha, omega = t.rotation.inverse(alpha), t.rotation.inverse(omega)
    rate = link.rate
    drift = link.given_drift
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
    return lower, link.with_rotors(column.dot(total) for column in link.columns)  # (7), (24): B2^T (M dY - Q)
