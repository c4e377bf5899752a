"""Reference points and resolving axes for the recursions that leave the choice open.

A *place* holds everything a recursion needs of a link, expressed at its reference point. Points fixed in the
body (joint, centroid) follow the law of material points: accelerations are the classical ones and only the
angular velocity enters the forces. The instant global origin follows the law of spatial vectors: it is fixed in
space, other body points pass it, and the full velocity enters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Identity, Matrix3, Motion, RigidInertia, Symmetric3, Transform, Vector

__all__ = ["POINTS", "LinkAtPoint", "Point", "Velocity"]


class LinkAtPoint(NamedTuple):
    """A link at its reference point."""

    transforms: tuple[Transform, ...]  #: from the parent's reference frame to this one's
    own: Transform  #: pose of the link frame in this reference frame
    columns: tuple[Motion, ...]
    inertia: RigidInertia
    centroid: Vector  #: from the reference point
    central: Symmetric3  #: inertia about the centroid
    rate: Motion  #: velocity relative to the parent
    drift: Motion  #: its change at constant speeds, prescribed accelerations included


class Velocity(NamedTuple):
    """What the velocity sweep leaves: the bias of the acceleration and the force that velocity needs."""

    bias: Motion
    force: Force


class Point(NamedTuple):
    """A choice of point and axes."""

    places: Callable[[Sweeps], Field]
    outward_velocities: Callable[..., tuple[tuple[Number, ...], Velocity]]
    still: tuple[Number, ...]  #: what the ground's velocity looks like


# -- laws -----------------------------------------------------------------------------------------
def outward_material(link: Link, omega: Vector, place: LinkAtPoint) -> tuple[Vector, Velocity]:
    """Kang & Yoon (19), (27): reference points fixed in their bodies."""
    carried = Vector.zero()
    for t in place.transforms:
        carried = t.rotation.inverse(carried + omega.centripetal(t.translation))  # d/dt (20), with (13)
        omega = t.rotation.inverse(omega)
    rate = place.rate  # (17), (18)
    bias = Motion(omega.cross(rate.angular) + place.drift.angular,
                  carried + omega.cross(rate.linear) * 2.0 + place.drift.linear)  # (27)
    omega = omega + rate.angular  # (19)
    return omega, Velocity(bias, place.inertia.gyroscopic(omega))


def outward_spatial(link: Link, velocity: Motion, place: LinkAtPoint) -> tuple[Motion, Velocity]:
    """Kang & Yoon (31)-(36): the instant global origin."""
    rate = place.rate
    bias = place.drift + velocity.cross(rate)  # (35)
    velocity = velocity + rate  # (31), (32)
    w, v = velocity
    force = w.cross(v * place.inertia.mass - place.inertia.first.cross(w))  # (36): omega x m d/dt r^c
    moment = w.cross(place.central @ w) + place.centroid.cross(force)  # (36)
    return velocity, Velocity(bias, Force(moment, force))


def _material_drift(link: Link, own: Transform) -> Motion:
    """Relative acceleration of the reference point at constant speeds."""
    alpha, omega = own.rotation.apply(link.drift.angular), own.rotation.apply(link.rate.angular)
    arm = -own.translation  # from the joint point to the reference point
    return Motion(alpha, own.rotation.apply(link.drift.linear) + alpha.cross(arm) + omega.centripetal(arm))


def _spatial_drift(link: Link, own: Transform) -> Motion:
    total = Motion.zero()
    for column, change, u, udot in zip(link.columns, link.column_rates(link.u), link.u, link.prescribed_udot,
                                       strict=True):
        total = total + change * u + column * udot
    return own.column_to_parent(total)


def _place(link: Link, transforms: tuple[Transform, ...], own: Transform, inertia: RigidInertia, centroid: Vector,
           central: Symmetric3, drift: Motion) -> LinkAtPoint:
    rate = Motion.zero()
    columns = tuple(own.column_to_parent(column) for column in link.columns)
    for column, speed in zip(columns, link.u, strict=True):
        rate = rate + column * speed
    return LinkAtPoint(transforms, own, columns, inertia, centroid, central, rate, drift)


# -- body axes ------------------------------------------------------------------------------------
def body_joint(tree: Sweeps) -> Field:
    """The joint point, resolved in body axes: the cheapest."""
    return tree.outward(_at_body_joint, root=())


def _at_body_joint(link: Link, nothing: tuple[()]) -> tuple[tuple[()], LinkAtPoint]:
    return (), LinkAtPoint(link.transforms, Transform.identity(), link.columns, link.inertia, link.com, link.central,
                     link.rate, link.drift)


def body_centroid(tree: Sweeps) -> Field:
    """The centroid, resolved in body axes."""
    return tree.outward(_at_body_centroid, root=Vector.zero())


def _at_body_centroid(link: Link, parent: Vector) -> tuple[Vector, LinkAtPoint]:
    """`parent` is the parent's centroid in its link frame."""
    own = Transform(Identity(), -link.com)
    first, *rest = link.transforms
    transforms = [Transform(first.rotation, first.translation - parent), *rest]
    last = transforms[-1]
    transforms[-1] = Transform(last.rotation, last.point(link.com))
    inertia = RigidInertia(link.inertia.mass, Vector.zero(), link.central)
    return link.com, _place(link, tuple(transforms), own, inertia, Vector.zero(), link.central,
                            _material_drift(link, own))


# -- global axes ----------------------------------------------------------------------------------
_UNTURNED = General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))


class _Pose(NamedTuple):
    axes: General
    joint: Vector
    centroid: Vector


def _poses(tree: Sweeps, step: Callable[..., tuple[_Pose, LinkAtPoint]]) -> Field:
    return tree.outward(step, root=_Pose(_UNTURNED, Vector.zero(), Vector.zero()))


def _pose(link: Link, parent: _Pose) -> _Pose:
    axes, joint = parent.axes, parent.joint
    for t in link.transforms:
        joint = joint + axes.apply(t.translation)  # (11)-(14)
        axes = t.turned(axes)  # (9)
    return _Pose(axes, joint, joint + axes.apply(link.com))  # (14)


def _central(link: Link, axes: General) -> RigidInertia:
    """(3), with J = A J' A^T."""
    return RigidInertia(link.inertia.mass, Vector.zero(), axes.symmetric(link.central))


def _at_joint(link: Link, parent: _Pose) -> tuple[_Pose, LinkAtPoint]:
    pose = _pose(link, parent)
    own = Transform(pose.axes, Vector.zero())
    shift = (Transform(Identity(), pose.joint - parent.joint),)
    central, arm = _central(link, pose.axes), pose.centroid - pose.joint
    return pose, _place(link, shift, own, central.shifted(arm), arm, central.second,  # (8) with s^P = -rho
                        _material_drift(link, own))


def _at_centroid(link: Link, parent: _Pose) -> tuple[_Pose, LinkAtPoint]:
    pose = _pose(link, parent)
    own = Transform(pose.axes, pose.joint - pose.centroid)
    shift = (Transform(Identity(), pose.centroid - parent.centroid),)  # (25)
    central = _central(link, pose.axes)
    return pose, _place(link, shift, own, central, Vector.zero(), central.second, _material_drift(link, own))


def _at_origin(link: Link, parent: _Pose) -> tuple[_Pose, LinkAtPoint]:
    pose = _pose(link, parent)
    own = Transform(pose.axes, pose.joint)
    central = _central(link, pose.axes)
    return pose, _place(link, (), own, central.shifted(pose.centroid), pose.centroid, central.second,  # (36)
                        _spatial_drift(link, own))  # (33): B1 is the identity


def global_joint(tree: Sweeps) -> Field:
    """The joint point, resolved in global axes."""
    return _poses(tree, _at_joint)


def global_centroid(tree: Sweeps) -> Field:
    """The centroid, resolved in global axes: the traditional version (method 1)."""
    return _poses(tree, _at_centroid)


def global_origin(tree: Sweeps) -> Field:
    """The instant global origin (method 2)."""
    return _poses(tree, _at_origin)


#: the choices by name; "body" is the joint point in body axes, the library's default
POINTS = {
    "body": Point(body_joint, outward_material, Vector.zero()),
    "joint": Point(global_joint, outward_material, Vector.zero()),
    "centroid": Point(global_centroid, outward_material, Vector.zero()),
    "origin": Point(global_origin, outward_spatial, Motion.zero()),
}
