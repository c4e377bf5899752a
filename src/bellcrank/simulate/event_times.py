"""When events happen: where within a step their functions change sides, and on which side they are afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.simulate.courses import Course, Piece
from bellcrank.simulate.events import Watch
from bellcrank.simulate.pieces_read import between_points, time_within
from bellcrank.system.state import State

__all__ = ["beyond", "looks", "root", "side_after", "state_within"]

#: times that a step to a jump is made a hundredth of its length
_SHORTER = 3


def looks(course: Course, watch: Watch, piece: Piece, n: int
          ) -> Iterator[tuple[int, tuple[float, float], tuple[Floats, Floats]]]:
    """For every step (or part of a long one): its number, the part, the functions at both ends of that."""
    parts = course.glances
    times, y = between_points(course, piece, n, parts)
    q, u = course.unpack(y, times)
    values = watch.values(times, q, u)
    for s in range(n - 1):
        for f in range(len(parts)):
            row = s * len(parts) + f
            before = parts[f - 1] if f else 0.0
            yield s, (before, parts[f]), (values[row], values[row + 1])


def state_within(course: Course, piece: Piece, s: int, part: float) -> Floats:
    """The state at a part of a step."""
    if part in (0.0, 1.0):
        return np.asarray(piece.points[s + int(part)])
    t, h = piece.point_times[s], piece.point_times[s + 1] - piece.point_times[s]
    return course.partial(piece.points[s], float(t), float(part * h))


def root(course: Course, watch: Watch, piece: Piece, s: int, part: tuple[float, float], k: int
         ) -> float | None:
    """Where in a part of a step an event's function vanishes; None if it does not really change sides."""
    def value(x: float) -> float:
        t = np.array([time_within(piece, s, x)])
        return float(watch.values(t, *course.unpack(state_within(course, piece, s, x)[None], t))[0, k])

    first, last = value(part[0]), value(part[1])
    if np.sign(last) * watch.side[k] >= 0.0:  # what was seen between steps was not exact
        return None
    begin = part[0]
    if np.sign(first) * watch.side[k] <= 0.0:  # at zero, where the last event was: it may leave and come back
        inside = (part[0] + (part[1] - part[0]) * 0.5**i for i in range(1, 40))
        begin = next((x for x in inside if value(x) * watch.side[k] > 0.0), part[1])
        if begin == part[1]:
            return part[0]  # at rest
    return _zero(value, begin, part[1])


def _zero(value: Callable[[float], float], low: float, high: float, near: float = 1e-15) -> float:
    from scipy.optimize import brentq

    return float(brentq(value, low, high, xtol=near, rtol=1e-14))


def beyond(course: Course, watch: Watch, piece: Piece, s: int, part: float, k: int) -> State:
    """The state right behind the zero of a function at which forces jump. Steps to it become shorter and shorter: what
    their last stages see of the other side loses its weight."""
    t, y, h = float(piece.point_times[s]), piece.points[s], float(piece.point_times[s + 1] - piece.point_times[s])
    goal = time_within(piece, s, part)

    def value(at: float) -> float:
        when = np.array([at])
        return float(watch.values(when, *course.unpack(course.partial(y, t, at - t)[None], when))[0, k])

    for _ in range(_SHORTER):
        y, t = course.partial(y, t, 0.99 * (goal - t)), t + 0.99 * (goal - t)
        low, high = t + 1e-3 * (goal - t), t + 2.0 * (goal - t)
        if value(low) * watch.side[k] > 0.0 > value(high) * watch.side[k]:
            goal = _zero(value, low, high, 1e-9 * (high - low))
    last = next((x for x in (goal + 10.0**-i * h for i in range(12, 5, -1)) if value(x) * watch.side[k] < 0.0), goal)
    q, u = course.unpack(course.partial(y, t, last - t)[None], np.array([last]))
    return State(q[0], u[0], last)


def side_after(course: Course, watch: Watch, k: int, state: State, before: float, step: float) -> float:
    """On which side of zero a function at zero will be next: as its rate says, else (at rest) where it was."""
    y = course.pack(state.q[None], state.u[None], state.t)[0]
    h = 1e-3 * step
    values = [0.0]
    for part in (0.5, 1.0):
        t = np.array([state.t + part * h])
        got = course.unpack(course.partial(y, state.t, part * h)[None], t)
        values.append(float(watch.values(t, *got)[0, k]))
    rate = (4.0 * values[1] - values[2]) / h  # without the acceleration's part
    return float(np.sign(rate)) if abs(rate) * 1e3 * h > 1e-9 else before
