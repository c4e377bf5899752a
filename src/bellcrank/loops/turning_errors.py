"""Orientation errors of loop joints as rotation vectors: steps from orientations far from where joints allow them.

Constraints on axes are cosines. From more than a quarter turn away Newton's method leads them to their other root, an
axis that points the wrong way. Here the second side of a joint is compared with where the joint's coordinates would put
it. The rotation vector e between the two has one root; to first order the constraints' values are their rows, taken
where the joint allows, times e. Steps by these values ignore how e bends and do not end at rounding: `Closer.close`
goes on from there.
"""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.loops.closer import Closer, Target, factors
from bellcrank.loops.tolerances import RANK_DAMPED, STRIDE
from bellcrank.mechanism.joints import quaternion

__all__ = ["turned_towards"]

#: steps at most
_STEPS = 40
#: nothing is left to turn if steps are shorter [rad, lengths of the machine]
_ENOUGH = 1e-3
#: axes that are off by less need not be turned [rad]
_FAR = 0.7
#: damping, relative to the largest singular value squared
_DAMPING = 1e-6
#: nothing is gained where a constraint changes by more for an ordinary change of a coordinate
_HUGE = 1e100


def turned_towards(close: Closer, q: Floats, target: Target, t: float) -> Floats | None:
    """A position from which loops may close though q was too far off, one position (nq,); None if all axes at q point
    almost where they should."""
    free, scale = target.free, 1.0 / target.weights[target.free]
    for iteration in range(_STEPS):
        value, jacobian, angle = _errors(close, q, t)
        if not iteration and angle < _FAR:
            return None
        if not (np.isfinite(value).all() and np.abs(jacobian).max(initial=0.0) < _HUGE) or not len(free):
            return None
        solved = factors(jacobian[:, free] * scale)
        step = np.zeros(len(target.held))
        step[free] = -scale * solved.solve(value, _DAMPING * float(solved.s.max(initial=0.0)) ** 2, RANK_DAMPED)[0]
        longest = float(close.loops.step_length(step))
        q = close.normalize(close.integrate(q, step * min(1.0, STRIDE / max(longest, 1e-300))))
        if longest < _ENOUGH:
            break
    return q


def _errors(close: Closer, q: Floats, t: float) -> tuple[Floats, Floats, float]:
    """Values of all constraints (m,) and their Jacobian (m, nu), with rotation vectors in place of cosines; and the
    largest angle of these vectors."""
    loops = close.loops
    turn, origin = loops.poses(q, t)
    allowed = {k: first @ close.allowed(k, first.T @ second) @ second.T for k, first, second in close.joint_axes(q, t)}
    rows = loops.rows(q, None, t, (turn, origin), allowed)
    vectors = np.zeros((loops.m, 3))
    for k, back in allowed.items():  # the rotation that leads from where the joint allows to where it is
        vectors[loops.starts[k]:loops.starts[k + 1]] = quaternion.logarithm(quaternion.from_matrix(back.T))
    angles = ~((rows.first[:, 3:] != 0.0).any(axis=-1) | (rows.second[:, 3:] != 0.0).any(axis=-1))
    value = rows.value + np.where(angles, (rows.second[:, :3] * vectors).sum(axis=-1), 0.0)
    angle = float(np.linalg.norm(vectors, axis=-1).max(initial=0.0))
    part = loops.on_positions / loops.row_sizes
    return value * part, loops.jacobian(q, rows, t) * part[:, None], angle
