"""Legs of two rods in a plane, pinned together at one point, solved without any of the library's mechanics.

Every rod has its own place (x, y, angle) of its middle; pins are constraints between them; accelerations and pin forces
come from one dense system, and a general integrator follows the motion. It stands in for the independent program that
Anderson & Critchley compare with (section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellcrank.arrays import Floats

__all__ = ["PlanarLegs"]


@dataclass(frozen=True)
class PlanarLegs:
    """Legs on the ground, each of two slender rods, with torsion springs at their bases; all tips are one point."""

    bases: Floats  #: (legs, 2) [m]
    lengths: Floats  #: (legs, 2)
    masses: Floats  #: (legs, 2)
    stiffness: float  #: of the springs [N m/rad]
    rest: Floats  #: angles of the inner rods where the springs are at rest
    gravity: float = 9.81  #: along -y

    def _pins(self) -> list[tuple[int, float, int, float]]:
        """(rod, arm, other rod, its arm): arms from the middle along the rod; rods are numbered leg by leg."""
        half = 0.5 * self.lengths
        pins = []
        for leg in range(len(self.bases)):
            inner, outer = 2 * leg, 2 * leg + 1
            pins += [(inner, -half[leg, 0], -1, 0.0), (inner, half[leg, 0], outer, -half[leg, 1])]
            if leg:
                pins.append((1, half[0, 1], outer, half[leg, 1]))
        return pins

    def accelerations(self, angles: Floats, rates: Floats) -> Floats:
        """Angular accelerations of all rods, from their absolute angles and rates."""
        rods = len(angles)
        mass = self.masses.ravel()
        inertia = mass * self.lengths.ravel() ** 2 / 12.0
        pins = self._pins()
        size = 3 * rods
        matrix = np.zeros((size + 2 * len(pins), size + 2 * len(pins)))
        right = np.zeros(len(matrix))
        matrix[range(size), range(size)] = np.stack([mass, mass, inertia], axis=1).ravel()
        right[1:size:3] = -mass * self.gravity
        right[2:size:6] = -self.stiffness * (angles[::2] - self.rest)
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        for k, (a, arm_a, b, arm_b) in enumerate(pins):
            row = size + 2 * k
            for rod, arm, sign in ((a, arm_a, 1.0), (b, arm_b, -1.0)):
                if rod < 0:
                    continue
                place = sign * np.array([[1.0, 0.0, -arm * along[rod, 1]], [0.0, 1.0, arm * along[rod, 0]]])
                matrix[row:row + 2, 3 * rod:3 * rod + 3] += place
                matrix[3 * rod:3 * rod + 3, row:row + 2] += place.T
                right[row:row + 2] += sign * arm * along[rod] * rates[rod] ** 2
        return np.asarray(np.linalg.solve(matrix, right)[2:size:3])

    def motion(self, angles: Floats, times: Floats) -> Floats:
        """Absolute angles of all rods at the times, from rest."""
        from scipy.integrate import solve_ivp

        n = len(angles)
        found = solve_ivp(lambda t, y: np.concatenate([y[n:], self.accelerations(y[:n], y[n:])]),
                          (float(times[0]), float(times[-1])), np.concatenate([angles, np.zeros(n)]), method="DOP853",
                          t_eval=times, rtol=1e-11, atol=1e-13)
        return np.asarray(found.y[:n].T)
