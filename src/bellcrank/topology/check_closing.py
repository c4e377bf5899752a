"""Whether a joint type from outside of the library can close a loop: what `compile` asks before it believes it.

The number of constraints decides how many degrees of freedom a machine has, so too few of them make one that falls
apart without a word. `bellcrank.check_joint` looks at everything else, too, and takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.joints.derived_joints import Place, place_of, side_at, six, turned
from bellcrank.mechanism.joints.joint import Joint, Reversed
from bellcrank.scalar.graph import Graph
from bellcrank.spatial import Vector

__all__ = ["check_closing"]

#: what plain arithmetic may be off by, and singular values that count as none
_EXACT, _NONE = 1e-9, 1e-9
#: how far from their neutral values coordinates are tried [rad, m]
_SPREADS = (0.4, 0.1, 0.02)


def check_closing(name: str, joint: Joint, known: set[object]) -> None:
    """Refuse a joint whose `closure_rows` cannot hold a loop closed; types of the library are taken at their word.

    `known` collects what has been looked at. Cost: a few calls of the joint's methods on numbers, under a millisecond.
    """
    own = joint.joint if isinstance(joint, Reversed) else joint
    if type(own).__module__.startswith("bellcrank."):
        return
    same = (type(own), joint.kind(), joint.constants())
    if same in known:
        return
    known.add(same)
    wrong = _fault(joint)
    if wrong:
        raise ModelError(f"joint {name!r}, a {type(own).__name__}, closes a loop, but {wrong}; bellcrank.check_joint "
                         "looks at all of its methods. Or cut another joint of the loop with cut=")


def _fault(joint: Joint) -> str:
    """What is wrong with it, or nothing."""
    rng = np.random.default_rng(0)
    k = [float(x) for x in joint.constants()]
    independence = []
    for spread in _SPREADS:
        q, sides = _connected(joint, spread, rng, k)
        if not sides:
            continue  # a joint need not go that far
        rows, wrong = _rows(joint, sides, k)
        wrong = wrong or _against(joint, rows, sides, q, k)
        if wrong:
            return wrong
        independence.append(_independence(rows))
    if max(independence, default=1.0) < _NONE:
        return "the constraints that closure_rows gives depend on each other"
    graph = Graph()
    traced = [Side(*(Vector(*(graph.leaf((side, i, axis)) for axis in "xyz")) for i in range(7))) for side in range(2)]
    wrong = _rows(joint, traced, k)[1]
    names, wanted = joint.condition_names, 6 - joint.nu
    if not wrong and names and len(names) != wanted:
        return f"condition_names has {len(names)} entries for {wanted} constraints (6 - nu)"
    return wrong


def _connected(joint: Joint, spread: float, rng: np.random.Generator, k: Sequence[float]
               ) -> tuple[Floats, tuple[Side, ...]]:
    """Coordinates about the neutral ones, and both sides of the joint there; no sides where it cannot be."""
    q = np.asarray(joint.neutral(), dtype=float) + rng.uniform(-spread, spread, joint.nq)
    first, arms = Place(turned(rng.normal(size=3)), rng.normal(size=3)), rng.normal(size=(2, 3))
    try:
        q = np.asarray(joint.normalize(q), dtype=float)
        second = first @ place_of(joint, q, k)
    except (ArithmeticError, ValueError):
        return q, ()
    if not all(np.isfinite(part).all() for part in second):
        return q, ()
    return q, tuple(side_at(place, arm, np.zeros(3), np.zeros(3)) for place, arm in zip((first, second), arms,
                                                                                      strict=True))


def _rows(joint: Joint, sides: Sequence[Side], k: Sequence[float]) -> tuple[tuple[Row, ...], str]:
    """The constraints, and what is wrong with their number."""
    try:
        rows = tuple(joint.closure_rows(sides[0], sides[1], k))
    except Exception as error:  # whatever a method from outside may raise
        return (), f"closure_rows raises {type(error).__name__}: {error}"
    wanted = 6 - joint.nu
    if len(rows) != wanted:
        return (), f"closure_rows gives {len(rows)} constraints where {wanted} are needed (6 - nu)"
    if not all(isinstance(row, Row) for row in rows):
        return (), "closure_rows gives something else than Rows (see bellcrank.mechanism.constraint_rows)"
    return rows, ""


def _against(joint: Joint, rows: Sequence[Row], sides: Sequence[Side], q: Floats, k: Sequence[float]) -> str:
    """Constraints that poses or motions of the joint itself do not meet."""
    moves = _motions(joint, sides, q, k)
    for i, row in enumerate(rows):
        label = repr(joint.condition_names[i]) if i < len(joint.condition_names) else f"number {i}"
        first, second = six(row.first), six(row.second)
        size = 1.0 + np.abs(first).max() + np.abs(second).max()
        if not abs(float(row.value)) <= _EXACT * size:
            return f"its constraint {label} is off by {float(row.value):.3g} in a pose that `transforms` allows"
        for what, motions in moves.items():
            rate = motions[0] @ first + motions[1] @ second
            if not np.abs(rate).max(initial=0.0) <= _EXACT * size:
                return f"its constraint {label} forbids {what}"
    return ""


def _motions(joint: Joint, sides: Sequence[Side], q: Floats, k: Sequence[float]) -> dict[str, tuple[Floats, Floats]]:
    """Motions [angular; linear] of the two bodies' origins that no constraint may forbid, (how many, 6) each."""
    points = [np.array(side.point) - np.array(side.arm) for side in sides]
    spin = np.concatenate([np.eye(3), np.zeros((3, 3))])
    slide = np.concatenate([np.zeros((3, 3)), np.eye(3)])
    whole = [np.concatenate([spin, slide + np.cross(spin, at)], axis=1) for at in points]
    turn = np.array([sides[1].x, sides[1].y, sides[1].z]).T
    columns = np.array([six(c) for c in joint.subspace([float(x) for x in q], k)]).reshape(-1, 6)
    angular, linear = columns[:, :3] @ turn.T, columns[:, 3:] @ turn.T
    own = np.concatenate([angular, linear - np.cross(angular, np.array(sides[1].arm))], axis=1)
    return {"motions of both bodies together": (whole[0], whole[1]),
            "motions of `subspace`": (np.zeros_like(own), own)}


def _independence(rows: Sequence[Any]) -> float:
    """The smallest singular value of the constraints, beside the largest."""
    if not rows:
        return 1.0
    second = np.array([six(row.second) for row in rows])
    size = np.sqrt((second * second).sum(axis=1))
    if not size.min() > 0.0:
        return 0.0
    return float(np.linalg.svd(second / size[:, None], compute_uv=False)[-1])
