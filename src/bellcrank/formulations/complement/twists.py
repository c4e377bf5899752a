"""Twists of the links of a tree and their rates, (7a) of the source of `complement`, which explains the notation."""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.lowering.link import Link
from bellcrank.spatial import Motion, Vector

__all__ = ["Twist", "outward_twists"]


class Twist(NamedTuple):
    """Angular velocity and rate of the twist."""

    omega: Vector
    rate: Motion


def outward_twists(link: Link, parent: Twist) -> tuple[Twist, Twist]:
    omega, rate = parent
    for t in link.transforms:
        moved = t.acceleration(rate)  # d/dt (7a)
        rate = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega = t.rotation.inverse(omega)
    relative = link.rate
    rate = rate + Motion(omega.cross(relative.angular), omega.cross(relative.linear) * 2.0)
    rate = rate + link.joint.drift(link.q, link.u, link.numbers.joint)
    for column, udot in zip(link.columns, link.udot, strict=True):
        rate = rate + column * udot  # d/dt (7a): p_i thetaddot_i
    own = Twist(omega + relative.angular, rate)  # (7a)
    return own, own
