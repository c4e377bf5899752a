"""Rigid stops of joints: they throw a joint back, hold it while it is pressed against them, and let it go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bellcrank.errors import ModelError
from bellcrank.simulate.control import Named, joint_places
from bellcrank.simulate.events import Change, Event
from bellcrank.simulate.impulse import impulse
from bellcrank.system.assembly import State

if TYPE_CHECKING:
    from bellcrank.system.system import System

__all__ = ["Leaving", "Stop", "joint_limit"]


@dataclass(frozen=True)
class Stop(Event):
    """An end of a joint's range; `sign` +1: the joint may be above the `bound`, -1: below."""

    joint: str = ""
    coordinate: int = 0
    bound: float = 0.0
    sign: float = 1.0
    restitution: float = 0.0

    def entry(self, system: System) -> int:
        """Its place in u."""
        return joint_places(system, True)[self.joint][self.coordinate]

    def key(self, system: System) -> str:
        """The coordinate's name, as `System.lock` takes it."""
        names = system.mechanism.joint(self.joint).joint.coordinate_names()
        return self.joint if len(names) == 1 else f"{self.joint}.{names[self.coordinate]}"

    def act(self, state: State, system: System) -> Change:
        """The joint is thrown back."""
        entry = self.entry(system)
        if state.u[entry] * self.sign >= 0.0:  # on its way back
            return Change(state=state)
        speeds = {entry: -self.restitution * float(state.u[entry])}
        return Change(state=State(state.q, impulse(system, state.q, state.u, t=state.t, speeds=speeds).u, state.t))

    def holds(self, state: State, system: System, push: float, step: float) -> bool:
        """Whether a joint that the stop has just thrown back is to be held: pressed against the stop by the
        acceleration `push` that it would have without, it would be back before the next step."""
        away = float(state.u[self.entry(system)]) * self.sign
        return push * self.sign < 0.0 and 2.0 * away <= -push * self.sign * step

    def touched(self, state: State, system: System) -> bool:
        """Whether a state is at the stop, and not on its way away from it."""
        start = joint_places(system, False)[self.joint][self.coordinate]
        gap, rate = (float(state.q[start]) - self.bound) * self.sign, float(state.u[self.entry(system)]) * self.sign
        return abs(gap) <= 1e-12 * max(1.0, abs(self.bound)) and rate <= 0.0


@dataclass(frozen=True)
class Leaving(Event):
    """A joint that is held by a stop is no longer pressed against it: the stop can only push."""

    active: Callable[[], bool] = bool

    @property
    def awake(self) -> bool:
        return self.active()


def joint_limit(joint: str, lower: float | None = None, upper: float | None = None, *, restitution: float = 0.5,
                coordinate: int = 0) -> list[Event]:
    """Rigid stops of a joint: where it reaches one, an impulse at the joint reverses its speed.

    The speed after is `restitution` times the speed before, the other way. When bounces have become shorter than a step
    the joint comes to rest against its stop, which holds it as long as it is pressed against it. Compliant stops are a
    force element (`Mechanism.add_limit`). Bounds in m or rad.

    >>> [e.name for e in joint_limit("hinge", upper=1.2)]
    ['hinge at 1.2']
    """
    if lower is None and upper is None:
        raise ModelError(f"joint_limit {joint!r}: give lower, upper or both")
    for bound in (lower, upper):
        if bound is not None and not -float("inf") < bound < float("inf"):
            raise ModelError(f"joint_limit {joint!r}: {bound!r} is not a finite number")
    if lower is not None and upper is not None and lower >= upper:
        raise ModelError(f"joint_limit {joint!r}: lower {lower:g} is not below upper {upper:g}")
    if not 0.0 <= restitution <= 1.0:
        raise ModelError(f"joint_limit {joint!r}: restitution must be between 0 and 1, got {restitution!r}")

    def gap(bound: float, sign: float) -> Callable[[Any, Named, Named], Any]:
        def function(t: Any, q: Named, u: Named) -> Any:
            value = q[joint]
            return ((value[coordinate] if isinstance(value, list) else value) - bound) * sign

        return function

    return [Stop(gap(b, s), f"{joint} at {b:g}", -1, "record", joint, coordinate, b, s, restitution)
            for b, s in ((lower, 1.0), (upper, -1.0)) if b is not None]
