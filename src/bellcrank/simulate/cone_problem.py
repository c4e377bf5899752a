"""Impulses of rigid contacts with Coulomb friction: unilateral conditions and friction cones, solved for a batch.

Find impulses p (normal, two along the surface) with v = G p + c such that at every place

    0 <= p_n, 0 <= v_n - w, p_n (v_n - w) = 0           (Signorini; w is the least speed at which the bodies part)
    |p_t| <= mu p_n, and against the slip where it is that                                            (Coulomb)

by the method of `integrate.cone_program`, which has the sources, the notation and the numbers of iterations, and is the
same in compiled code: Newton's method for Alart's and Curnier's equation p = P(p - R v), then proximal points.

| paper | here |
|---|---|
| reaction, relative velocity | ``p``, ``v`` |
| G (Delassus operator) | ``g``, J M^-1 J^T |
| R (augmentation) | the inverse of ``size``, that of the diagonal blocks |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.integrate.cone_program import FINE, LEAST, LESS, MORE, NEWTON, PROXIMAL, ROUNDS, SHIFT

__all__ = ["Impulses", "solve_contacts"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Impulses(NamedTuple):
    """What acts at all places of a batch, and what it leaves."""

    p: Floats  #: (states, places, 3) [N s]
    v: Floats  #: (states, places, 3), velocities afterwards [m/s]
    residual: Floats  #: (states,), by how much the conditions are missed [m/s]


def solve_contacts(g: Floats, c: Floats, friction: Floats, p: Floats, tolerance: float) -> Impulses:
    """The impulses p (states, places, 3) from G (states, 3 places, 3 places), velocities without impulses c (states,
    places, 3) with w taken off the normal ones, coefficients of friction (states or 1, places) and a first guess p.

    Iterates to a residual of `tolerance` times one plus the largest velocity at which bodies meet or slide, or as near
    as it comes. Cost: O(places^3) for each of a few iterations.
    """
    n, k = c.shape[:2]
    size = np.einsum("bii->bi", g).reshape(n, k, 3)
    size = np.where(size.max(axis=-1) > 0.0, size.max(axis=-1), 1.0)  # (states, places)
    meeting = np.maximum(-c[..., 0], np.abs(c[..., 1:]).max(axis=-1))  # bodies that part are no matter
    goal = tolerance * (1.0 + meeting.max(axis=1, initial=0.0))
    best = _tried(g, c, friction, size, p)
    todo = np.flatnonzero(best.residual > FINE * goal)
    center, e = p[todo], np.zeros(len(todo))
    for turn in range(ROUNDS):
        if not len(todo):
            break
        some = todo if len(friction) > 1 else slice(None)
        part = _SomeStates(g[todo], c[todo], friction[some], size[todo], goal[todo])
        found, reached, last = _newton(part, center, e)
        better = found.residual < best.residual[todo]
        for mine, theirs in zip(best, found, strict=True):
            mine[todo[better]] = theirs[better]
        if turn == 0:
            e[:] = PROXIMAL
        else:
            center = np.where(reached[:, None, None], last, center)
            e = np.where(reached, np.maximum(e * LESS, LEAST), e * MORE)
        left = best.residual[todo] > goal[todo]
        todo, center, e = todo[left], center[left], e[left]
    return best


class _SomeStates(NamedTuple):
    """Some of the states of a batch."""

    g: Floats
    c: Floats
    friction: Floats
    size: Floats
    goal: Floats


def _velocity(g: Floats, c: Floats, p: Floats) -> Floats:
    n, k = c.shape[:2]
    return np.asarray((g @ p.reshape(n, 3 * k, 1)).reshape(n, k, 3) + c)


def _projected(x: Floats, friction: Floats) -> tuple[Floats, Flags, Flags, Floats]:
    """P(x); which places are closed, which slide, and the length along the surface."""
    closed = x[..., 0] > 0.0
    normal = np.where(closed, x[..., 0], 0.0)
    length = np.sqrt(x[..., 1] * x[..., 1] + x[..., 2] * x[..., 2])
    most = friction * normal
    slides = length > most
    scale = np.where(slides, most / np.where(slides, length, 1.0), 1.0)
    out = x * scale[..., None]
    out[..., 0] = normal
    return out, closed, slides, length


def _tried(g: Floats, c: Floats, friction: Floats, size: Floats, p: Floats) -> Impulses:
    """Velocities and residual of impulses, projected so that no friction is larger than it can be."""
    p = _projected(p, friction)[0]
    v = _velocity(g, c, p)
    miss = (p - _projected(p - v / size[..., None], friction)[0]) * size[..., None]
    return Impulses(p, v, np.abs(miss).max(axis=(1, 2), initial=0.0))


def _newton(part: _SomeStates, center: Floats, e: Floats) -> tuple[Impulses, Flags, Floats]:
    """Newton's method for the problem with G + e/R, from its center on: the best impulses for the problem itself, which
    states have solved the other one, and its solution."""
    g, c, friction, size, goal = part
    n, k = c.shape[:2]
    best = _tried(g, c, friction, size, center)
    p, eye = center.copy(), np.eye(3 * k)
    scaled = (g / np.repeat(size, 3, axis=1)[:, :, None]) + (e + SHIFT)[:, None, None] * eye
    busy, once = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    for number in range(NEWTON + 1):
        x = p - _velocity(g, c, p) / size[..., None] - e[:, None, None] * (p - center)
        wanted, closed, slides, length = _projected(x, friction)
        miss = np.abs((p - wanted) * size[..., None]).max(axis=(1, 2), initial=0.0)
        found = _tried(g, c, friction, size, p)
        better = busy & (found.residual < best.residual)
        for mine, theirs in zip(best, found, strict=True):
            mine[better] = theirs[better]
        near = miss <= goal
        busy &= np.where(near, once & (miss > FINE * goal), best.residual > goal)
        once &= ~near
        if number == NEWTON or not busy.any():
            break
        slope = _slope(x, closed, slides, length, friction)
        rest = np.einsum("bkij,bkjm->bkim", slope, (eye - scaled).reshape(n, k, 3, 3 * k)).reshape(n, 3 * k, 3 * k)
        try:
            step = np.linalg.solve(eye - rest, (wanted - p).reshape(n, 3 * k, 1)).reshape(n, k, 3)
        except np.linalg.LinAlgError:
            break
        p = np.where(busy[:, None, None], p + step, p)
    return best, miss <= goal, p


def _slope(x: Floats, closed: Flags, slides: Flags, length: Floats, friction: Floats) -> Floats:
    """The derivative of P, (states, places, 3, 3)."""
    out = np.zeros((*x.shape, 3))
    out[..., 0, 0] = closed
    along = x[..., 1:] / np.where(length > 0.0, length, 1.0)[..., None]
    shrink = np.where(slides, friction * np.where(closed, x[..., 0], 0.0) / np.where(slides, length, 1.0), 1.0)
    slips = slides & closed
    out[..., 1:, 0] = np.where(slips[..., None], np.broadcast_to(friction, length.shape)[..., None] * along, 0.0)
    across = np.eye(2) - np.where(slides, 1.0, 0.0)[..., None, None] * along[..., :, None] * along[..., None, :]
    out[..., 1:, 1:] = np.where(closed[..., None, None], shrink[..., None, None] * across, 0.0)
    return out
