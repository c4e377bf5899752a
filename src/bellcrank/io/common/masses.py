"""Masses of links as files give them, physical or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.io.common.xml import XmlElement, blame
from bellcrank.io.report import Kind
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.pose import Pose

__all__ = ["MOMENTS", "given_inertia"]

#: the order in which files name the moments of inertia
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def given_inertia(element: XmlElement, mass: float, moments: Sequence[float], pose: Pose,
                  note: Callable[[Kind, XmlElement, str], None]) -> Inertia:
    """The inertia of a link: the mass [kg] lies at the origin of `pose`, the `MOMENTS` [kg m^2] are along its axes."""
    xx, xy, xz, yy, yz, zz = moments
    if not any((mass, *moments)):
        return Inertia.zero()
    with blame(element):
        # files in use are often not physical; the user decides, so the numbers stay
        inertia = Inertia(mass, (0.0, 0.0, 0.0), [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], checked=False)
        problem = inertia.problem()
        inertia = inertia.transformed(pose)
    if problem:
        note("warned", element, f"kept as given, though no real body has it: {problem}")
    return inertia
