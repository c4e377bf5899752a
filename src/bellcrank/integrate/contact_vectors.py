"""Vectors of reals in programs, and what a place does that bounces."""

from __future__ import annotations

from bellcrank.integrate.contact_views import Seen
from bellcrank.target.program import Memory, Real

__all__ = ["Three", "across", "after_bounce", "aligned", "cross", "dot", "three_of"]

Three = tuple[Real, Real, Real]


def after_bounce(gap: Real, before: Real, free: Real, fall: Real, share: Real, h: Real) -> tuple[Real, Real, Real]:
    """The speed and the height with which a step ends in which a place bounces, at a constant acceleration a: it meets
    after t = gap / -before at the speed v = before + a t, and leaves with -share v. Of a, `fall` is due to forces that
    do work; the rest is that of a point of a body that turns, which the impact changes: speeds before and after have
    the mean with which impulses take (1 - share^2) v^2 / 2, and forces give what they do on the way. And how much
    longer it is on its way after the impact than before."""
    a = (free - before) / h
    start = gap - h * 0.5 * before
    t = (start / (-before).max(1e-300)).max(0.0).min(h)
    meeting, rest = before + a * t, h - t
    return ((1.0 - share) * meeting + fall * (rest - t) - before).max(0.0), \
        (rest * (a * 0.5 * rest - share * meeting)).max(0.0), rest - t


def three_of(m: Memory | Seen, at: int) -> Three:
    return m[at], m[at + 1], m[at + 2]


def dot(a: tuple[Real, ...], b: Three) -> Real:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: tuple[Real, ...], b: tuple[Real, ...]) -> Three:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def across(n: Three) -> tuple[Three, Three]:
    """Two directions that make a right-handed frame with a unit vector: T. Duff et al., "Building an orthonormal basis,
    revisited", J. Comput. Graph. Tech. 6 (2017)."""
    x, y, z = n
    sign = (z < 0.0).pick(-1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return (sign * x * x * a + 1.0, sign * b, -(sign * x)), (b, sign + y * y * a, -y)


def aligned(n: Three, first: Three) -> tuple[Three, Three]:
    """The same with the first direction as near as can be to another one; any, if that is nearly along n."""
    along = dot(n, first)
    x, y, z = (a - along * b for a, b in zip(first, n, strict=True))
    length = (x * x + y * y + z * z).sqrt()
    far = length < 0.1
    safe = far.pick(1.0, length)
    other = across(n)[0]
    one = far.pick(other[0], x / safe), far.pick(other[1], y / safe), far.pick(other[2], z / safe)
    return one, cross(n, one)
