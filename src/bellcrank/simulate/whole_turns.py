"""Whole turns of joints that close loops: poses tell their angles within half a turn, coordinates around the loop more.

Where all axes around a loop are parallel, the angle of the joint that closes it is a sum of coordinates of the others,
each plus, minus or not at all, and a constant: exactly, in every position, and on beyond half a turn. Other loops know
of no such sum; angles of theirs stay within half a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats, half_turn
from bellcrank.loops.loop_paths import paths_between
from bellcrank.scalar.functions import atan2, cos, sin
from bellcrank.scalar.graph import Number
from bellcrank.simulate.closing import CutJoint, cut_joint, numbers

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Beginning", "LostTurns"]

#: how far coordinates are moved to see what they do to an angle [rad], and what rounding may do
_MOVE, _ROUNDING = 0.5, 1e-9


@dataclass(frozen=True)
class _Sum:
    """An angle, but for whole turns: a constant and coordinates of the tree, each with a factor."""

    constant: float
    factors: tuple[tuple[int, float], ...]

    def value(self, leaf: Callable[[Any], Number]) -> Number:
        out: Number = self.constant
        for entry, factor in self.factors:
            out = out + factor * leaf(("q", entry))
        return out


@dataclass(frozen=True)
class Beginning:
    """Where a run begins, states (..., nq): angles are within half a turn there, and go on from that."""

    q: Floats
    t: float
    #: whole turns that sums are off by at the beginning, of all states, by joint and coordinate, as far as asked for
    turns: dict[tuple[str, int], Floats] = field(default_factory=dict)
    within: set[tuple[str, int]] = field(default_factory=set)  #: angles asked for that stay within half a turn

    @property
    def alike(self) -> bool:
        """Whether that is the same for all states."""
        return all(bool((x == x.flat[0]).all()) for x in self.turns.values())

    def coordinates(self, system: Machine, joint: CutJoint) -> list[Number]:
        """Coordinates of a joint that closes a loop, expressions of the same leaves as those that are measured."""
        out = list(joint.coordinates)
        for k, measured in enumerate(out):
            total = _sum_of(system, joint, k) if joint.kind.within_a_turn(k) else None
            if total is None or isinstance(measured, float):
                if joint.kind.within_a_turn(k):
                    self.within.add((joint.name, k))
                continue
            near = total.value(measured.graph.leaf) + 2.0 * np.pi * float(self._turns(system, joint, k, total).flat[0])
            out[k] = near + atan2(sin(measured - near), cos(measured - near))
        return out

    def continued(self, system: Machine, name: str, k: int, measured: Any, q: Floats) -> Floats | None:
        """An angle of a joint that closes a loop at states q (..., nq) of the run, from what is measured there; None if
        coordinates do not tell its turns."""
        joint = cut_joint(system, name)
        total = _sum_of(system, joint, k) if joint is not None and joint.kind.within_a_turn(k) else None
        if joint is None or total is None:
            return None
        near = total.value(lambda key: q[..., key[1]]) + 2.0 * np.pi * self._turns(system, joint, k, total)
        return np.asarray(near + half_turn(measured - near), dtype=float)

    def _turns(self, system: Machine, joint: CutJoint, k: int, total: _Sum) -> Floats:
        if (joint.name, k) not in self.turns:
            leaf = numbers(system, self.t, self.q, np.zeros((*self.q.shape[:-1], system.nu)))
            measured = np.asarray(joint.value("coordinates", k, leaf), dtype=float)
            turns = np.round((measured - np.asarray(total.value(leaf), dtype=float)) / (2.0 * np.pi))
            self.turns[joint.name, k] = np.broadcast_to(turns, self.q.shape[:-1])
        return self.turns[joint.name, k]


class LostTurns:
    """Looks along a run for turns of angles that stay within half a turn: who reads them sees them jump."""

    def __init__(self, start: Beginning | None) -> None:
        self._start, self._last = start, dict[tuple[str, int], Floats]()
        self._jumped: set[str] = set()

    def look(self, system: Machine, times: Floats, q: Floats, u: Floats) -> None:
        """At states (times, ..., nq)."""
        for name, k in () if self._start is None else self._start.within:
            joint = cut_joint(system, name)
            if joint is not None:
                leaf = numbers(system, times.reshape(-1, *(1,) * (q.ndim - 2)), q, u)
                angles = np.broadcast_to(np.asarray(joint.value("coordinates", k, leaf), dtype=float), q.shape[:-1])
                jumps = np.diff(angles, axis=0, prepend=self._last.get((name, k), angles[:1]))
                self._last[name, k] = angles[-1:]
                if (np.abs(jumps) > np.pi).any():
                    self._jumped.add(name)

    @property
    def told(self) -> str:
        """What to say of it; nothing if there was none."""
        names = sorted(self._jumped)
        if not names:
            return ""
        return (f"a controller or event reads the angle of joint {', '.join(map(repr, names))}, at which a loop was "
                f"cut and whose turns are not known then: it jumped by a turn; take compile(actuated={names})")


def _sum_of(system: Machine, joint: CutJoint, k: int) -> _Sum | None:
    """The sum that an angle is; None if it is none."""
    return system.kernels.kept(("angle as a sum", joint.name, k), lambda: _found_sum(system, joint, k))


def _found_sum(system: Machine, joint: CutJoint, k: int) -> _Sum | None:
    """Looked for by what each coordinate around the loop does to the angle, from a few positions of the tree."""
    tree = system.model.whole or system.model.tree
    entries: list[int] = []
    closure = next(c for c in tree.closures if c.name == joint.name)
    for link in (x for path in paths_between(tree, closure.first, closure.second) for x in path):
        own = tree.joints[link]
        assert own is not None
        entries += range(int(tree.q_start[link]), int(tree.q_start[link]) + own.nq)
    place: Floats = system.neutral() + np.random.default_rng(0).normal(size=(3, system.nq))
    moved = np.repeat(place[:, None], 1 + len(entries), axis=1)
    moved[:, np.arange(len(entries)) + 1, entries] += _MOVE

    def leaf(key: Any) -> Number:
        if key[0] == "parameters":
            return float(np.ravel(list(system.model.values.values())[key[1]])[0])
        return moved[..., key[1]] if key[0] == "q" else 0.0

    with np.errstate(all="ignore"):
        angles = np.asarray(joint.value("coordinates", k, leaf), dtype=float)
    factors = half_turn(angles[:, 1:] - angles[:, :1]) / _MOVE
    whole = np.round(factors[0])
    if not np.abs(factors - whole).max(initial=0.0) < _ROUNDING:  # NaN is none, either
        return None
    constant = float(angles[0, 0] - place[0][entries] @ whole)
    return _Sum(constant, tuple((i, float(x)) for i, x in zip(entries, whole, strict=True) if x))
