"""Events: functions of time and state whose zeros matter, and what happens there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, StateError
from bellcrank.scalar.borrowed import traced_with_borrowed
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Scalar
from bellcrank.simulate.control import Named, named, number_now, numbers, parameter_leaf
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine

__all__ = ["Arrival", "Break", "Change", "Event", "RunLog", "Watch", "attach", "detach", "enter", "leave", "lock",
           "traced_event", "unlock"]



@dataclass(frozen=True)
class Arrival:
    """A body that enters a run; its coordinates and speeds {joint: values}, those of other joints are as they were."""

    body: str
    q: Mapping[str, Any]
    u: Mapping[str, Any]


@checked_methods
@dataclass(frozen=True)
class Change:
    """What an event does to the run: another state, loops that open or close, joints that are locked, bodies that come
    or go, or its end. Changes can be added: ``detach("grip") + leave("load")``.

    Speeds need not be consistent with the loops: the smallest impulse makes them so.
    """

    state: State | None = None
    detach: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    unlock: tuple[str, ...] = ()
    enter: tuple[Arrival, ...] = ()
    leave: tuple[str, ...] = ()
    stop: bool = False

    @property
    def alters(self) -> bool:
        """Whether the machine or its state is another one afterwards."""
        return self.state is not None or any((self.detach, self.attach, self.lock, self.unlock, self.enter, self.leave))

    def __add__(self, other: Change) -> Change:
        """Both at once."""
        if self.state is not None and other.state is not None:
            raise ModelError("two changes at once can give one state only")
        return Change(self.state or other.state, (*self.detach, *other.detach), (*self.attach, *other.attach),
                      (*self.lock, *other.lock), (*self.unlock, *other.unlock), (*self.enter, *other.enter),
                      (*self.leave, *other.leave), self.stop or other.stop)


@checked_methods
@dataclass(frozen=True)
class Event:
    """A zero of ``function(t, q, u)``, found to the accuracy of the integration.

    `direction` +1: only where it rises through zero, -1: where it falls, 0: both. `action` is "record", "stop", a
    `Change`, or a function ``(state, system) -> State | Change | None`` called at the zero. `q` and `u` can be indexed
    by number or by joint name; parameters of the mechanism may be used, with the values of the system that runs (an
    action has ``system.parameters``). A function written with `bellcrank.math` is traced and costs little, any other is
    called once for every step.

    >>> lowest = Event(lambda t, q, u: u["hinge"], "turning point", direction=1)
    >>> lowest.action
    'record'
    """

    function: Callable[[Any, Named, Named], Any]
    name: str = "event"
    direction: int = 0
    action: str | Change | Callable[[State, Any], State | Change | None] = "record"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ModelError(f"event {self.name!r}: needs a function of (t, q, u), got {self.function!r}")
        if self.direction not in (-1, 0, 1):
            raise ModelError(f"event {self.name!r}: direction must be -1, 0 or 1, got {self.direction!r}")
        if not (callable(self.action) or isinstance(self.action, Change) or self.action in ("record", "stop")):
            raise ModelError(f"event {self.name!r}: action must be 'record', 'stop', a Change or a function")

    @property
    def awake(self) -> bool:
        """Whether it can happen at present."""
        return True

    def along(self, times: Floats, q: Floats, u: Floats) -> Floats | None:
        """The function along states, if that is known without calling it."""
        return None

    def act(self, state: State, system: Machine) -> Change:
        """What is to happen in a state."""
        if isinstance(self.action, Change):
            return self.action
        if isinstance(self.action, str):
            return Change(stop=self.action == "stop")
        answer = self.action(state, system)
        if answer is None:
            return Change()
        if isinstance(answer, Change):
            return answer
        if isinstance(answer, State):
            return Change(state=answer)
        raise StateError(f"event {self.name!r}: its action must return a State, a Change or None, got "
                         f"{type(answer).__name__}")


class Break(NamedTuple):
    """Where a run did not simply go on: events at one time, what each did, and the state behind them."""

    t: float
    events: tuple[Event, ...]
    changes: tuple[Change, ...]
    after: State
    changed: bool  #: whether the state or the machine is another one
    stop: bool


class RunLog(NamedTuple):
    """How a run came about."""

    breaks: list[Break]  #: events that changed it
    plans: list[tuple[float, LoopPlan | None]]  #: of its loops, with the times from which on steps are made by them
    passages: list[float]  #: when it went through singular positions by long steps of another kind


def detach(*names: str) -> Change:
    """Let go of joints or constraints that close loops."""
    return Change(detach=names)


def attach(*names: str) -> Change:
    """Close loops that are open; an impulse makes the speeds agree. Loops with frames of their own must be closed in
    position; a frame ``"at closing"`` (see `Mechanism.add_joint`) is where the other one is at that moment."""
    return Change(attach=names)


def enter(body: str, q: Any = None, u: Any = None) -> Change:
    """Let a body into the run, with all that it carries. `q` and `u` are the coordinates and speeds of the joint that
    connects it to the ground, or {joint: values}; without them it starts where it stands, at rest.

    >>> enter("load", q={"free": [1, 0, 0, 0, 0, 0, 2]}).enter[0].body
    'load'
    """
    given = [{} if x is None else dict(x) if isinstance(x, Mapping) else {"": x} for x in (q, u)]
    return Change(enter=(Arrival(body, *given),))


def leave(*bodies: str) -> Change:
    """Let bodies out of the run, with all that they carry: what holds them opens, they stand still from then on and
    nothing acts on them."""
    return Change(leave=bodies)


def lock(*names: str) -> Change:
    """Lock joints, or single coordinates (``joint.coordinate``), where they are; an impulse brings them to rest."""
    return Change(lock=names)


def unlock(*names: str) -> Change:
    """Let joints go that were locked, whatever of them was, or single coordinates (``joint.coordinate``)."""
    return Change(unlock=names)


def traced_event(system: Machine, e: Event) -> Any:
    """The function of an event, traced; leaves are (input, index)."""
    graph, what = Graph(), f"event {e.name!r}"

    def trace(g: Graph) -> list[Any]:
        q, u = (named(system, name, [g.leaf((name, i)) for i in range(size)])
                for name, size in (("q", system.nq), ("u", system.nu)))
        return [e.function(g.leaf(("t", 0)), q, u)]

    return traced_with_borrowed(trace, graph, parameter_leaf(system, graph, what), f"{what}: its function")[0][0]


class Watch:
    """Looks for events along steps of one state."""

    def __init__(self, system: Machine, events: Sequence[Event]) -> None:
        self.system, self.events = system, tuple(events)
        self._graphs = [self._trace(e) for e in self.events]
        self.side = np.zeros(len(self.events))  #: of zero, on which every function was last; 0: not known
        self._scale = np.zeros(len(self.events))  #: largest values seen
        self._least = 1e-13 * min(1.0, system.model.tree.length)  #: rounding of angles, or of the machine's lengths

    def _trace(self, e: Event) -> Scalar | None:
        try:
            value = traced_event(self.system, e)
        except ModelError:
            raise
        except Exception:  # not written for traced scalars: called state by state
            return None
        return value if type(value) is Scalar else None

    def values(self, times: Floats, q: Floats, u: Floats) -> Floats:
        """All functions along states, shape (states, events)."""
        out = np.empty((len(times), len(self.events)))
        leaf = numbers(self.system, times, q, u)
        for k, (e, graph) in enumerate(zip(self.events, self._graphs, strict=True)):
            if not e.awake:
                out[:, k] = -1.0
                continue
            known = e.along(times, q, u)
            if known is not None:
                out[:, k] = known
                continue
            if graph is not None:
                with np.errstate(all="ignore"):
                    out[:, k] = evaluate([graph], leaf)[0]
                continue
            for i in range(len(times)):
                value = e.function(float(times[i]), named(self.system, "q", q[i].tolist()),
                                   named(self.system, "u", u[i].tolist()))
                out[i, k] = number_now(self.system, value, f"event {e.name!r}")
        if np.isnan(out).any():
            bad = int(np.argwhere(np.isnan(out))[0, 1])
            raise StateError(f"event {self.events[bad].name!r}: its function is not a number")
        return out

    def signs(self, values: Floats) -> Floats:
        """-1, 0 or 1 for every event; rounding of the values seen so far, or of angles and of the machine's lengths, is
        zero."""
        self._scale = np.maximum(self._scale, np.abs(values))
        return np.where(np.abs(values) > np.maximum(self._least, 1e-12 * self._scale), np.sign(values), 0.0)

    def begin(self, t: float, q: Floats, u: Floats, kept: Mapping[int, float] | None = None) -> None:
        """Note on which side of zero every function is. Where that cannot be seen because it is zero, as after a
        bounce, it is the side in `kept`, or what the next step shows."""
        values = self.values(np.array([t]), q[None], u[None])[0]
        self.side = self.signs(values)
        for k, side in (kept or {}).items():
            if self.side[k] == 0.0:
                self.side[k] = side

    def forget(self, names: Collection[str]) -> None:
        """Events of these names have just happened: their functions are at zero, whatever rounding says."""
        self.side[[k for k, e in enumerate(self.events) if e.name in names]] = 0.0

    def at_zero(self, t: float, q: Floats, u: Floats) -> list[int]:
        """Events whose functions come from a side of zero and are at zero."""
        sign = self.signs(self.values(np.array([t]), q[None], u[None])[0])
        return [k for k in range(len(self.events)) if self.side[k] != 0.0 and sign[k] == 0.0]

    def crossed(self, values: Floats) -> list[int]:
        """Events whose functions have changed sides; the sides of the others are followed."""
        sign = self.signs(values)
        out = [k for k in range(len(self.events)) if self.side[k] * sign[k] < 0.0]
        still = np.ones(len(self.events), dtype=bool)
        still[out] = False
        self.side = np.where(still & (sign != 0.0), sign, self.side)
        return out

    def wanted(self, k: int) -> bool:
        """Whether a crossing from the present side counts."""
        return self.events[k].direction in (0, -int(self.side[k]))

    def passed(self, k: int) -> None:
        """A function has gone to the other side."""
        self.side[k] = -self.side[k]
