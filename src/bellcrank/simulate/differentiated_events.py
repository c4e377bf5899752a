"""How a run goes on after an event whose moment depends on what came before.

Where a function g vanishes, a step from y ends after a length h that is not given but found:

    g(Φ(y, t, h), t + h) = 0,    δh = -(g_y (Φ_y δy + Φ_t δt) + g_t δt) / (g_y Φ_h + g_t)    (1)

and the state at the event changes by Φ_h δh beside what the step alone would give. Then what the event does to the
state is differentiated, and the rest of the step begins later by δt + δh, and is shorter by as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.derivatives.rates import thrown_with_jacobian
from bellcrank.errors import BellcrankError, ModelError, NotYetError, StateError
from bellcrank.scalar.derivative import adjoints
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.simulate.control import parameter_leaf
from bellcrank.simulate.differentiated_steps import DifferentiatedSteps, Leaf, Moved
from bellcrank.simulate.events import Break, Change, Event, traced_event
from bellcrank.simulate.stops import LiftOff, Stop
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Passed", "check_break", "check_event", "expressions_at", "through"]


class Passed(NamedTuple):
    """Derivatives of the states before and after an event, (size, columns), and of its time, (columns,)."""

    before: Floats
    after: Floats
    time: Floats


def check_event(system: Machine, event: Event) -> None:
    """Refuse what cannot be differentiated, by name."""
    _function(system, event)
    if isinstance(event, LiftOff) or (isinstance(event.action, Change) and _topological(event.action)):
        raise NotYetError(f"sensitivities: event {event.name!r} changes what the machine is made of")
    if callable(event.action) and not isinstance(event, Stop):
        _action(system, event)


def check_break(at: Break) -> None:
    """Refuse events that have changed the topology."""
    for event, done in zip(at.events, at.changes, strict=True):
        if _topological(done):
            raise NotYetError(f"sensitivities: event {event.name!r} at t = {at.t:.9g} s changes what the machine is "
                              "made of (a joint that comes to rest at its stop is locked, for example)")


def through(steps: DifferentiatedSteps, y: Floats, t: float, at: Break, moved: Moved) -> Passed:
    """From a state to what is behind an event in the step."""
    n, columns = steps.size, moved.state.shape[1]
    state, by, start = (np.concatenate([x, np.zeros((*x.shape[:-1], 1))], axis=-1)
                        for x in (moved.state, moved.by, moved.start))
    wider = Moved(state, by, start, np.append(np.zeros(columns), 1.0))  # and one for the length
    reached, change = steps.forward(y, t, at.t - t, wider)
    slope = _slope(steps, at.events[0], reached, at.t)
    rate = slope[:n] @ change[:, -1] + _time(steps, slope)
    if abs(rate) < 1e-12 * (1.0 + float(np.abs(slope[:n]).max(initial=0.0))):
        raise StateError(f"sensitivities: event {at.events[0].name!r} is only touched at t = {at.t:.9g} s, a time that "
                         "has no derivative")
    length = -(slope[:n] @ change[:, :-1] + slope[n:] @ steps.at(replace(moved, length=np.zeros(columns)), 0.0)) / rate
    before = change[:, :-1] + np.outer(change[:, -1], length)
    time = moved.start + length
    after, value = before, reached
    for event, done in zip(at.events, at.changes, strict=True):
        value, rows = _acted(steps, event, done, value, at.t)
        if rows is not None:
            after = rows[:, :n] @ after + rows[:, n:] @ steps.at(replace(moved, start=time, length=0.0 * time), 0.0)
    whole = np.concatenate([at.after.q, at.after.u])
    if np.abs(whole - value).max() > 1e-7 * (1.0 + float(np.abs(whole).max())):
        names = ", ".join(repr(e.name) for e in at.events)
        raise NotYetError(f"sensitivities: event {names} at t = {at.t:.9g} s gives speeds that the loops do not allow; "
                          "the impulse that makes them consistent cannot be differentiated")
    return Passed(before, after, time)


def _topological(change: Change) -> bool:
    return any((change.detach, change.attach, change.lock, change.unlock, change.enter, change.leave))


def _time(steps: DifferentiatedSteps, slope: Floats) -> float:
    """The derivative by time."""
    return float(slope[steps.size + steps.leaves.index(("t", 0))])


def _function(system: Machine, event: Event) -> Scalar:
    """The function whose zero it is, traced."""
    try:
        value = traced_event(system, event)
    except BellcrankError:
        raise
    except Exception as error:
        raise ModelError(f"sensitivities: the function of event {event.name!r} cannot be traced ({error}); write it "
                         "with bellcrank.math") from None
    if type(value) is not Scalar:
        raise ModelError(f"sensitivities: the function of event {event.name!r} does not depend on time or state")
    return value


def _slope(steps: DifferentiatedSteps, event: Event, y: Floats, t: float) -> Floats:
    """The derivatives of its function by q, u and the leaves."""
    return np.asarray(expressions_at(steps, [_function(steps.system, event)], y, t)[1][0])


def expressions_at(steps: DifferentiatedSteps, roots: Sequence[Number], y: Floats, t: float) -> tuple[Floats, Floats]:
    """Values of expressions, and their derivatives by q, u and the leaves."""
    system, nq = steps.system, steps.nq
    values = [float(v) for v in system.model.values.values()]
    keys: list[Leaf] = [*(("q", i) for i in range(nq)), *(("u", i) for i in range(system.nu)), *steps.leaves]
    entries = list(roots)
    for root in roots:
        if type(root) is not Scalar:
            entries += [0.0] * len(keys)
            continue
        variables = [root.graph.leaf(key) for key in keys]
        found = adjoints([root], [1.0], variables)
        entries += [found.get(x, 0.0) for x in variables]

    def leaf(key: Any) -> float:
        name, i = key
        return values[i] if name == "parameters" else t if name == "t" else float(y[i if name == "q" else nq + i])

    out = np.array([float(x) for x in evaluate(entries, leaf)])
    return out[:len(roots)], out[len(roots):].reshape(len(roots), len(keys))


def _acted(steps: DifferentiatedSteps, event: Event, done: Change, y: Floats, t: float) -> tuple[Floats, Floats | None]:
    """The state after what an event does, and its derivatives by q, u and the leaves; None: nothing changes."""
    if not done.alters:
        return y, None
    if isinstance(event, Stop):
        return _thrown(steps, event, y, t)
    if isinstance(event.action, Change):
        given = event.action.state
        assert given is not None
        return np.concatenate([given.q, given.u]), np.zeros((steps.size, steps.size + len(steps.leaves)))
    return expressions_at(steps, _action(steps.system, event), y, t)


class _WithLeaves:
    """A machine whose parameters are leaves, as functions that are differentiated by them see it."""

    def __init__(self, system: Machine, graph: Graph) -> None:
        self._system = system
        self.parameters = {name: graph.leaf(("parameters", i)) for i, name in enumerate(system.model.values)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)


def _action(system: Machine, event: Event) -> list[Number]:
    """The state after a function of the user has changed it, traced: q, then u."""
    graph = Graph()
    q, u = (np.array([graph.leaf((name, i)) for i in range(size)], dtype=object)
            for name, size in (("q", system.nq), ("u", system.nu)))
    try:
        answer = event.action(  # type: ignore[operator]
            State(q, u, graph.leaf(("t", 0))), _WithLeaves(system, graph))  # type: ignore[arg-type]
    except Exception as error:
        raise ModelError(f"sensitivities: what event {event.name!r} does cannot be traced ({error}); write it with "
                         "bellcrank.math on the entries of the state") from None
    if isinstance(answer, Change):
        if _topological(answer):
            raise NotYetError(f"sensitivities: event {event.name!r} changes what the machine is made of")
        answer = answer.state
    after = (q, u) if answer is None else (answer[0], answer[1])
    return [x if type(x) is Scalar else float(x) for part in after for x in part]


def _thrown(steps: DifferentiatedSteps, stop: Stop, y: Floats, t: float) -> tuple[Floats, Floats | None]:
    """A joint that is thrown back, with what all other speeds make of it."""
    system, entry, nq = steps.system, stop.entry(steps.system), steps.nq
    if float(y[nq + entry]) * stop.sign >= 0.0:
        return y, None  # on its way back
    restitution = evaluate([stop.restitution], parameter_leaf(system, Graph(), stop.name))[0]
    out = steps.call(f"thrown by {stop.name}", partial(
        thrown_with_jacobian, entry=entry, restitution=restitution, by=steps.leaves), y, t)
    after, rows = y.copy(), np.eye(steps.size, steps.size + len(steps.leaves))
    after[nq:], rows[nq:] = out[:system.nu], out[system.nu:].reshape(system.nu, -1)
    return after, rows
