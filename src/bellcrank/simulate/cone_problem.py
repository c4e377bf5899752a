"""Impulses of rigid contacts with Coulomb friction: unilateral conditions and friction cones, solved for a batch.

Find impulses p (normal, two along the surface) with v = G p + c such that at every place

    0 <= p_n, 0 <= v_n - w, p_n (v_n - w) = 0           (Signorini; w is the least speed at which the bodies part)
    |p_t| <= mu p_n, and against the slip where it is that                                            (Coulomb)

They hold where p = P(p - R v), P the projection on the half line and then on the disc of radius mu p_n, for any
positive R: P. Alart and A. Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution
methods", Comput. Methods Appl. Mech. Eng. 92 (1991). Newton's method for that equation, its derivative taken on the
side where the numbers are, ends after a few iterations; where it does not, sweeps over places (M. Jean, "The non-smooth
contact dynamics method", same journal, 177 (1999)) come nearer and it begins again.

| paper | here |
|---|---|
| reaction, relative velocity | ``p``, ``v`` |
| G (Delassus operator) | ``g``, J M^-1 J^T |
| R (augmentation) | ``r``, the inverse of the diagonal blocks' size |

Deviations: places that are redundant (a box on four corners) make G singular; its diagonal is a little larger in
Newton's matrix, not in the residual, so that the solution is not changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Impulses", "solve_contacts"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: iterations of Newton's method, how often it begins again, and sweeps before that
NEWTON, ROUNDS, SWEEPS = 20, 4, 10
#: what is added to the diagonal of G in Newton's matrix, relative
SHIFT = 1e-10


class Impulses(NamedTuple):
    """What acts at all places of a batch, and what it leaves."""

    p: Floats  #: (states, places, 3) [N s]
    v: Floats  #: (states, places, 3), velocities afterwards [m/s]
    residual: Floats  #: (states,), by how much the conditions are missed [m/s]


def solve_contacts(g: Floats, c: Floats, friction: Floats, p: Floats, tolerance: float) -> Impulses:
    """The impulses p (states, places, 3) from G (states, 3 places, 3 places), velocities without impulses c (states,
    places, 3) with w taken off the normal ones, coefficients of friction (states or 1, places) and a first guess p.

    Iterates to a residual of `tolerance` times one plus the largest velocity, or as near as it comes. Cost:
    O(places^3) for each of a few iterations.
    """
    n, k = c.shape[:2]
    size = np.einsum("bii->bi", g).reshape(n, k, 3)
    size = np.where(size.max(axis=-1) > 0.0, size.max(axis=-1), 1.0)  # (states, places)
    goal = tolerance * (1.0 + np.abs(c).max(axis=(1, 2), initial=0.0))
    best = _tried(g, c, friction, size, p)
    todo = np.flatnonzero(best.residual > goal)
    for turn in range(ROUNDS):
        if not len(todo):
            break
        part = (g[todo], c[todo], friction[todo if len(friction) > 1 else slice(None)], size[todo])
        start = best.p[todo] if turn == 0 else _swept(*part, best.p[todo], SWEEPS * 2**turn)
        found = _newton(*part, start, goal[todo])
        better = found.residual < best.residual[todo]
        for mine, theirs in zip(best, found, strict=True):
            mine[todo[better]] = theirs[better]
        todo = todo[best.residual[todo] > goal[todo]]
    return best


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


def _newton(g: Floats, c: Floats, friction: Floats, size: Floats, p: Floats, goal: Floats) -> Impulses:
    """Newton's method on p - P(p - R v) = 0."""
    n, k = c.shape[:2]
    best = _tried(g, c, friction, size, p)
    p, eye = best.p.copy(), np.eye(3 * k)
    raised = g + SHIFT * np.einsum("bi,ij->bij", np.repeat(size, 3, axis=1), eye)
    scaled = raised / np.repeat(size, 3, axis=1)[:, :, None]
    for _ in range(NEWTON):
        x = p - _velocity(g, c, p) / size[..., None]
        wanted, closed, slides, length = _projected(x, friction)
        slope = _slope(x, closed, slides, length, friction)
        rest = np.einsum("bkij,bkjm->bkim", slope, (eye - scaled).reshape(n, k, 3, 3 * k)).reshape(n, 3 * k, 3 * k)
        try:
            step = np.linalg.solve(eye - rest, (wanted - p).reshape(n, 3 * k, 1))
        except np.linalg.LinAlgError:
            break
        p = p + step.reshape(n, k, 3)
        found = _tried(g, c, friction, size, p)
        better = found.residual < best.residual
        for mine, theirs in zip(best, found, strict=True):
            mine[better] = theirs[better]
        if (best.residual <= goal).all():
            break
    return best


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


def _swept(g: Floats, c: Floats, friction: Floats, size: Floats, p: Floats, sweeps: int) -> Floats:
    """Place after place, each as if the others were known: nonlinear Gauss-Seidel."""
    n, k = c.shape[:2]
    p, v = p.copy(), _velocity(g, c, p)
    for _ in range(sweeps):
        for i in range(k):
            own = slice(3 * i, 3 * i + 3)
            new = _projected(p[:, i] - v[:, i] / size[:, i, None], friction[:, i])[0]
            v += (g[:, :, own] @ (new - p[:, i])[:, :, None]).reshape(n, k, 3)
            p[:, i] = new
    return p
