"""Rotations, masses and ranges as model files give them.

Rotations and directions from the decimals of files, with quarter turns made exact.

A right angle in a file is text such as 1.57079632679. Its cosine, 5e-12 instead of 0, would be a term in
every equation of motion; so angles that can only be meant as multiples of pi/2 are taken as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bellcrank.io.common.xml import XmlElement, blame
from bellcrank.io.report import Kind, Limits, ReadReport
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["MOMENTS", "Turns", "cosine_sine", "given_inertia", "rotation", "unit", "with_ranges"]


# -- rotations and directions from the decimals of files, with quarter turns made exact -------------
#: decimals of pi/2 that people write are this close to it
ANGLE_TOLERANCE = 1e-10
_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


def cosine_sine(angle: float) -> tuple[tuple[float, float], bool]:
    """Cosine and sine, exact for multiples of pi/2, and whether the angle was only nearly one."""
    quarters = round(angle / (0.5 * math.pi))
    exact = quarters * 0.5 * math.pi
    # far away the spacing of floats hides whether a multiple was meant
    if abs(quarters) > 1000 or abs(angle - exact) >= ANGLE_TOLERANCE:
        return (math.cos(angle), math.sin(angle)), False
    return _QUARTERS[quarters % 4], angle != exact


def rotation(turns: Sequence[tuple[float, float]]) -> npt.NDArray[np.float64] | None:
    """The rotation matrix of fixed-axis turns about x, y and z, given by their cosines and sines.

    None for no turn at all.
    """
    if all(turn == _QUARTERS[0] for turn in turns):
        return None
    (cx, sx), (cy, sy), (cz, sz) = turns
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    about_y = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    about_z = np.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(about_z @ about_y @ about_x)


class Turns:
    """Makes poses from angles [rad] about the fixed axes x, y and z, and counts those that were made exact."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.restored = 0

    def pose(self, at: Sequence[float], angles: Sequence[float]) -> Pose:
        """The pose at a place [m] with these angles."""
        if not self.exact:
            return Pose.rpy(at, *angles)
        turns = []
        for angle in angles:
            pair, restored = cosine_sine(angle)
            turns.append(pair)
            self.restored += restored
        return Pose(at, rotation(turns))

    def remark(self) -> str:
        """What was done to the angles, in words; "" for nothing."""
        if not self.restored:
            return ""
        return (f"{self.restored} angles were within {ANGLE_TOLERANCE:g} of a multiple of pi/2 and are now exactly "
                "that; exact_angles=False keeps them")


def unit(vector: Sequence[float]) -> tuple[float, ...]:
    """The vector at length 1; huge and tiny entries are scaled first, so that squares stay finite."""
    largest = max(map(abs, vector))
    scaled = [v / largest for v in vector]
    length = math.hypot(*scaled)
    return tuple(v / length for v in scaled)


# -- masses of links as files give them, physical or not --------------------------------------------
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


# -- ranges of joints in files, kept with the machine -----------------------------------------------
#: ends so far away stand for none, in formats that want numbers
_ENDLESS = 1e9


def with_ranges(machine: Mechanism, report: ReadReport) -> tuple[Mechanism, ReadReport]:
    """A machine that was read, with the ranges of its joints, and the report. Ranges that no joint with one coordinate
    has, and those turned round, are in the report alone."""
    limits: Mapping[str, Limits] = report.limits
    joints = {record.name: record.joint for record in machine.joints}
    for name, ends in limits.items():
        lower = -math.inf if ends.lower <= -_ENDLESS else ends.lower
        upper = math.inf if ends.upper >= _ENDLESS else ends.upper
        if (name in joints and joints[name].nq == 1 and lower <= upper
                and not (math.isinf(lower) and math.isinf(upper))):
            machine.set_range(name, lower, upper)
    return machine, report
