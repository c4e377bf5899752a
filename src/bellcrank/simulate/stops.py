"""Rigid stops of joints: they throw a joint back, hold it while it is pressed against them, and let it go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, StateError
from bellcrank.mechanism.joints.joint import unit_vector
from bellcrank.mechanism.machine_sizes import speed_sizes
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.simulate.control import Named, joint_places, number_now
from bellcrank.simulate.events import Change, Event
from bellcrank.simulate.impulse import impulse
from bellcrank.system.loop_errors import loop_rows
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Leaving", "LiftOff", "Stop", "joint_limit", "lift_off"]

#: a state this near to a stop is at it [m or rad, or of the bound]
_AT = 1e-12


@dataclass(frozen=True)
class Stop(Event):
    """An end of a joint's range; `sign` +1: the joint may be above the `bound`, -1: below."""

    joint: str = ""
    coordinate: int = 0
    bound: Number = 0.0
    sign: float = 1.0
    restitution: Number = 0.0

    def at(self, system: Machine) -> float:
        """Where it is, by the parameters of the machine."""
        return number_now(system, self.bound, f"joint_limit {self.joint!r}")

    def kept(self, system: Machine) -> float:
        """Its restitution, by the parameters of the machine."""
        found = number_now(system, self.restitution, f"joint_limit {self.joint!r}")
        if not 0.0 <= found <= 1.0:
            raise ModelError(f"joint_limit {self.joint!r}: restitution must be between 0 and 1, got {found:g} by the "
                             "values of parameters")
        return found

    def entry(self, system: Machine) -> int:
        """Its place in u."""
        joint = system.model.mechanism.joint(self.joint).joint
        if joint.nq != joint.nu and self.closes(system):
            raise ModelError(f"joint_limit: joint {self.joint!r} turns in all directions and has no single angles that "
                             "could be stopped; put joints of one angle in its place")
        return joint_places(system, True)[self.joint][self.coordinate]

    def closes(self, system: Machine) -> bool:
        """Whether the joint closes a loop."""
        return self.joint in system.model.tree.loop_joint_names

    def key(self, system: Machine) -> str:
        """The coordinate's name, as `System.lock` takes it."""
        names = system.model.mechanism.joint(self.joint).joint.coordinate_names()
        return self.joint if len(names) == 1 else f"{self.joint}.{names[self.coordinate]}"

    def value(self, state: State, system: Machine) -> float:
        """The coordinate."""
        return float(state.q[joint_places(system, False)[self.joint][self.coordinate]])

    def rate(self, state: State, system: Machine) -> float:
        """The coordinate's speed."""
        return float(state.u[self.entry(system)])

    def acceleration(self, system: Machine, udot: Floats) -> float:
        """The rate of that, for given accelerations."""
        return float(udot[self.entry(system)])

    def act(self, state: State, system: Machine) -> Change:
        """The joint is thrown back."""
        rate, entry = self.rate(state, system), self.entry(system)
        if rate * self.sign >= 0.0:  # on its way back
            return Change(state=state)
        if self.closes(system):
            row = loop_rows(system.plans, state.q, state.t)[entry]
            after = impulse(system, state.q, state.u, t=state.t, sums=[(row, -(1.0 + self.kept(system)) * rate)])
        else:
            after = impulse(system, state.q, state.u, t=state.t, speeds={entry: -self.kept(system) * rate})
        return Change(state=state.replace(u=after.u))

    def impulse(self, before: State, after: State, system: Machine) -> float:
        """The impulse of the stop along the coordinate [N s or N m s], from the states before and after: one that
        brings the coordinate to rest takes half of its speed times itself out of the kinetic energy, and speeds change
        in proportion to it."""
        rate = self.rate(before, system)
        share = (rate - self.rate(after, system)) / rate if rate else 0.0  # of what would bring it to rest
        if not share:
            return 0.0
        least = before.u + (after.u - before.u) / share
        now, then = (float(system.kinetic_energy(before.q, u, t=before.t)) for u in (least, before.u))
        return share * 2.0 * (now - then) / rate

    def holds(self, state: State, system: Machine, push: float, step: float) -> bool:
        """Whether a joint that the stop has just thrown back is to be held: pressed against the stop by the
        acceleration `push` that it would have without, it would be back before the next step."""
        away = self.rate(state, system) * self.sign
        return push * self.sign < 0.0 and 2.0 * away <= -push * self.sign * step

    def gap(self, state: State, system: Machine) -> float:
        """How far a state is from the stop, negative beyond it; zero within rounding."""
        bound = self.at(system)
        gap = (self.value(state, system) - bound) * self.sign
        joint = system.model.mechanism.joint(self.joint).joint
        size = float(speed_sizes(joint, system.model.tree.length)[self.coordinate])
        return gap if abs(gap) > _AT * max(size, abs(bound)) else 0.0

    def touched(self, state: State, system: Machine) -> bool:
        """Whether a state is at the stop, and not on its way away from it."""
        return self.gap(state, system) == 0.0 and self.rate(state, system) * self.sign <= 0.0

    def check(self, state: State, system: Machine) -> None:
        """Refuse a state beyond the stop."""
        self.kept(system)
        if self.gap(state, system) < 0.0:
            side = "lower" if self.sign > 0.0 else "upper"
            raise StateError(f"simulate: joint {self.key(system)!r} begins at {self.value(state, system):.9g}, beyond "
                             f"its {side} stop at {self.at(system):.9g} (joint_limit); begin within its range or move "
                             "the stop")


@dataclass(frozen=True)
class Leaving(Event):
    """A joint that is held by a stop is no longer pressed against it: the stop can only push."""

    active: Callable[[], bool] = bool

    @property
    def awake(self) -> bool:
        return self.active()


@dataclass(frozen=True)
class LiftOff(Event):
    """A closure that can only push along a direction would have to pull: it opens."""

    closure: str = ""
    normal: tuple[Number, Number, Number] = (0.0, 0.0, 1.0)
    active: Callable[[], bool] = bool

    @property
    def awake(self) -> bool:
        return self.active()


def lift_off(closure: str, normal: Sequence[Number] = (0.0, 0.0, 1.0)) -> Event:
    """Let go of a joint or constraint where the force that it exerts on its child along `normal` (world axes) falls to
    zero: a floor can push a foot, and not hold it. Costs the reactions of one state for every step.

    >>> lift_off("foot").name
    'foot lifts off'
    """
    direction = unit_vector(normal, f"lift_off {closure!r}: normal")

    def unknown(t: Any, q: Named, u: Named) -> float:  # the run knows
        return 1.0

    return LiftOff(unknown, f"{closure} lifts off", -1, Change(detach=(closure,)), closure, direction)


def joint_limit(joint: str, lower: Number | None = None, upper: Number | None = None, *, restitution: Number = 0.5,
                coordinate: int = 0) -> list[Event]:
    """Rigid stops of a joint: where it reaches one, an impulse at the joint reverses its speed.

    The speed after is `restitution` times the speed before, the other way. When bounces have become shorter than a step
    the joint comes to rest against its stop, which holds it as long as it is pressed against it. Compliant stops are a
    force element (`Mechanism.add_limit`). Bounds in m or rad; they and the restitution may be parameters. A state
    beyond a stop is refused.

    >>> [e.name for e in joint_limit("hinge", upper=1.2)]
    ['hinge at 1.2']
    """
    if lower is None and upper is None:
        raise ModelError(f"joint_limit {joint!r}: give lower, upper or both")
    for bound in (lower, upper):
        if isinstance(bound, (int, float)) and not -float("inf") < bound < float("inf"):
            raise ModelError(f"joint_limit {joint!r}: {bound!r} is not a finite number")
    lower, upper = (bound if bound is None or isinstance(bound, Scalar) else float(bound) for bound in (lower, upper))
    if isinstance(lower, float) and isinstance(upper, float) and lower >= upper:
        raise ModelError(f"joint_limit {joint!r}: lower {lower:g} is not below upper {upper:g}")
    if not isinstance(restitution, Scalar) and not 0.0 <= restitution <= 1.0:
        raise ModelError(f"joint_limit {joint!r}: restitution must be between 0 and 1, got {restitution!r}")

    def gap(bound: Number, sign: float) -> Callable[[Any, Named, Named], Any]:
        def function(t: Any, q: Named, u: Named) -> Any:
            value = q[joint]
            return ((value[coordinate] if isinstance(value, list) else value) - bound) * sign

        return function

    def name(bound: Number, side: str) -> str:
        return f"{joint} at its {side} stop" if isinstance(bound, Scalar) else f"{joint} at {bound:g}"

    return [Stop(gap(b, s), name(b, side), -1, "record", joint, coordinate, b, s, restitution)
            for b, s, side in ((lower, 1.0, "lower"), (upper, -1.0, "upper")) if b is not None]
