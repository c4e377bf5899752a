"""Rotor inertia reflected to a joint."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.scalar.graph import Number

__all__ = ["EVERY", "Armature"]

#: the coordinate of an armature that is the same in all directions of a ball joint
EVERY = -1


@dataclass(frozen=True, slots=True)
class Armature:
    """The inertia of a rotor that turns with one coordinate of a joint, as felt at the joint.

    A rotor with the inertia J behind a gear of ratio r has ``inertia = r * r * J`` [kg m^2] at a turning coordinate
    (at a sliding one [kg]). It adds 1/2 inertia rate^2 to the kinetic energy and so the inertia to the diagonal of the
    joint-space mass matrix, no more: that the rotor is also carried along and turned with its housing belongs to the
    inertia of the body it sits in, and gyroscopic effects of its spin are neglected, which is right for high ratios. At
    a ball joint it is the same for all three components of the angular velocity (`coordinate` EVERY).

    >>> Armature("rotor", "elbow", 0, inertia=100.0**2 * 3e-5).energy(2.0)
    0.6
    """

    name: str
    joint: str
    coordinate: int
    inertia: Number

    def energy(self, rate: Number) -> Number:
        """Kinetic energy [J] at the rate [rad/s or m/s] of the coordinate."""
        return self.inertia * (rate * rate) * 0.5
