"""Reading a piece of a run: times and states between its points, how far it is finite, how it ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.simulate.courses import Course, Piece
from bellcrank.simulate.fixed import Failure

__all__ = ["between_points", "finite_rows", "how_it_ended", "time_within", "told_failure"]


def time_within(piece: Piece, s: int, part: float) -> float:
    """Time at a part of a step."""
    return float(piece.point_times[s] + part * (piece.point_times[s + 1] - piece.point_times[s]))


def between_points(course: Course, piece: Piece, n: int, parts: Sequence[float]) -> tuple[Floats, Floats]:
    """Times and states at parts of the first n - 1 steps, the start first. Between the ends of steps they are
    interpolated: good enough to see that something happens."""
    t, y = piece.point_times[:n], piece.points[:n]
    if len(parts) == 1:
        return t, y
    nq = course.system.nq
    q, u = course.unpack(y, t)
    slope = course.system.model.configuration.qdot(q, u)
    x = np.array(parts)[None, :, None]
    h = np.diff(t)[:, None, None]
    a, b = y[:-1, None], y[1:, None]
    out = a + x * (b - a)
    cubic = (2 * x**3 - 3 * x**2 + 1) * a[..., :nq] + (x**3 - 2 * x**2 + x) * h * slope[:-1, None] \
        + (3 * x**2 - 2 * x**3) * b[..., :nq] + (x**3 - x**2) * h * slope[1:, None]
    out[..., :nq] = np.where(x == 1.0, b[..., :nq], cubic)
    times = t[:-1, None] + np.diff(t)[:, None] * np.array(parts)
    return (np.concatenate([t[:1], times.ravel()]),
            np.concatenate([y[:1], out.reshape(-1, y.shape[1])]))


def finite_rows(y: Floats) -> int:
    """How many rows come before the first that is not finite."""
    bad = np.flatnonzero(~np.isfinite(y.reshape(len(y), int(np.prod(y.shape[1:])))).all(axis=1))
    return int(bad[0]) if len(bad) else len(y)


def how_it_ended(failures: Sequence[Failure]) -> str:
    """How a run ends whose states could not go on."""
    return "diverged" if all(f.diverged for f in failures) else "failed"


def told_failure(failure: Failure) -> str:
    """The reason with the time, if that is not in it."""
    return failure.reason if "t = " in failure.reason else f"{failure.reason} (at t = {failure.time:.6g} s)"
