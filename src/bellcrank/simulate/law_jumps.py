"""Laws that jump: where `select_less` of a force law, of the rate of a state or of a traced controller goes from one
branch to another, and the law with it.

A step across a jump is of first order, whatever the method. Runs with error control locate the jump like an event and
end a step there (`Branch`); runs with fixed steps say once that there was one (`JumpCheck`). Laws whose branches meet
(`abs`, `maximum`) do not jump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, ModelError
from bellcrank.lowering.element_views import element_parts
from bellcrank.lowering.machine_view import MachineView
from bellcrank.mechanism.forces import MachineForce
from bellcrank.mechanism.forces.element import Element, LawForce, TableLaw
from bellcrank.scalar.branches import noting_branches
from bellcrank.simulate.events import Event
from bellcrank.system.force_elements import machine_view

if TYPE_CHECKING:
    from bellcrank.simulate.control import Drive
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["NEAR", "Branch", "JumpCheck", "LawJumps"]

#: a law jumps if it changes by more than this share of itself, over this share of a step
_SHARE, NEAR = 1e-4, 1e-6
#: components of a force below this share of the largest are rounding
_ROUNDING = 1e-9
#: halvings of a step in search of a jump
_HALVINGS = 40
#: where the laws of ready-made elements are
_READY_MADE = ("bellcrank.mechanism.", "bellcrank.io.mjcf.")
#: states of a batch that are looked at
_STATES = 64


class _Law(NamedTuple):
    """Something that may jump: its name, and its values at states."""

    name: str
    values: Callable[[MachineView, Floats, Floats, Floats], Sequence[Any]]


class LawJumps:
    """The laws of a machine that have branches."""

    def __init__(self, system: Machine, drives: Sequence[Drive], q: Floats, u: Floats, t: float) -> None:
        self._system = system
        here = np.array([t]), q[None], u[None]
        found = [(law, len(self._conditions(law, *here)[1])) for law in _laws(system, drives)]
        self._laws = [law for law, n in found if n]
        #: the law of every branch, with its name
        self.branches = [(law.name, law) for law, n in found for _ in range(n)]
        self._known: tuple[Floats, Floats] | None = None

    def conditions(self, times: Floats, q: Floats, u: Floats) -> Floats:
        """What changes its sign where a branch does, (..., branches), at states with leading axes (times, ...)."""
        if self._known is not None and self._known[0] is times:
            return self._known[1]
        rows = [row for law in self._laws for row in self._conditions(law, times, q, u)[1]]
        self._known = times, np.stack(rows, axis=-1)
        return self._known[1]

    def jumps(self, number: int, states: tuple[Floats, Floats, Floats]) -> bool:
        """Whether the law of a branch jumps in a step, by its start, two states that are next to each other, and its
        end (four times, q, u)."""
        values = self._conditions(self.branches[number][1], *states)[0]
        size = np.abs(values).max(axis=1)
        return bool((np.abs(values[:, 2] - values[:, 1]) > _SHARE * np.maximum(size, _ROUNDING * size.max())).any())

    def _conditions(self, law: _Law, times: Floats, q: Floats, u: Floats) -> tuple[Floats, list[Floats]]:
        """The values of a law (values, ...), and a - b of all its branches."""
        lead = u.shape[:-1]
        t = times.reshape(-1, *(1,) * (len(lead) - 1))
        with noting_branches() as found, np.errstate(all="ignore"):
            numbers = law.values(machine_view(self._system.plans, q, u, t), times, q, u)
        return np.stack([_over(x, lead) for x in numbers]), [_over(np.subtract(a, b), lead) for a, b in found]


def _over(values: Any, lead: tuple[int, ...]) -> Floats:
    """Values that may depend on time alone, or have axes of length one more, for states with leading axes."""
    array = np.asarray(values, dtype=float)
    if array.ndim > len(lead):
        return array.reshape(lead)
    return np.broadcast_to(array.reshape(*array.shape, *(1,) * (len(lead) - array.ndim)) if array.ndim else array, lead)


def _laws(system: Machine, drives: Sequence[Drive]) -> Iterator[_Law]:
    """Laws that users have written."""
    for name, _, part in element_parts(system.model.tree):
        law = _written(part)
        if law is not None and _of_users(law):
            yield _Law(name, lambda at, t, q, u, name=name: _exerted(at, name))  # type: ignore[misc]
    for state in system.model.mechanism.states:
        if _of_users(state.rate):
            yield _Law(state.name, lambda at, t, q, u, s=state: [at.value_of(s.name, at.bind(s.rate))])  # type: ignore[misc]
    for d in drives:
        if d.traced and d.period is None:
            yield _Law("control", lambda at, t, q, u, d=d: list(  # type: ignore[misc]
                np.moveaxis(d.along(system, t, q if q.ndim > 2 else q[:, None], u if u.ndim > 2 else u[:, None]), -1, 0)
                .reshape(-1, *u.shape[:-1])))


def _of_users(law: Any) -> bool:
    """Whether a user has written a law: those of ready-made elements, and of actuators of files, have no jumps."""
    return not isinstance(law, (Element, TableLaw)) and not type(law).__module__.startswith(_READY_MADE)


def _written(part: Any) -> Any:
    """The law of an element, if it has one."""
    own = part if hasattr(part, "along") or not isinstance(part, tuple) else part[1]  # (link, what acts on it)
    along = getattr(own, "along", own)
    return along.law if isinstance(along, (LawForce, MachineForce)) else getattr(own, "law", None)


def _exerted(at: MachineView, name: str) -> list[Any]:
    """What an element exerts: a number along its coordinate or line, or force and moment."""
    element = at.element(name)
    with suppress(ModelError):
        return [element.force]
    return [*element.vector, *element.torque]


@dataclass(frozen=True)
class Branch(Event):
    """A branch of a law as an event: nothing happens there but the end of a step."""

    laws: LawJumps | None = None
    number: int = 0
    off: list[bool] = field(default_factory=list)  #: of all branches of a law; not empty: they are not looked for

    @staticmethod
    def of(setup: Setup) -> list[Event]:
        """Those of a single run with error control."""
        if setup.fixed or setup.count > 1:
            return []
        laws, off = _of_run(setup), dict[str, list[bool]]()
        return [] if laws is None else [Branch(_nothing, name, laws=laws, number=k, off=off.setdefault(name, []))
                                        for k, (name, _) in enumerate(laws.branches)]

    @property
    def awake(self) -> bool:
        return not self.off

    def along(self, times: Floats, q: Floats, u: Floats) -> Floats:
        assert self.laws is not None
        return self.laws.conditions(times, q, u)[..., self.number]


def _nothing(t: Any, q: Any, u: Any) -> float:
    return 0.0


def _of_run(setup: Setup) -> LawJumps | None:
    """The laws of a run with branches; None if there are none."""
    system, y = setup.system, setup.y0[0]
    with suppress(BellcrankError, ArithmeticError, ValueError, IndexError):
        found = LawJumps(system, setup.drives, y[:system.nq], y[system.nq:], setup.start)
        return found if found.branches else None
    return None


class JumpCheck:
    """Looks at the samples of a run with fixed steps."""

    def __init__(self, setup: Setup) -> None:
        self._laws = _of_run(setup)
        self._start, self._step, self._single = setup.start, setup.step or 1.0, setup.count == 1 and not setup.drives
        self._last: tuple[Floats, Floats, Floats, Floats] | None = None
        self.told = ""

    @property
    def every_step(self) -> bool:
        """Whether it wants to see all steps, and not just samples."""
        return self._single and self._laws is not None and not self.told

    def look(self, times: Floats, q: Floats, u: Floats) -> None:
        """States (times, states, ...), as they come; all steps of a piece begin with its start."""
        if self._laws is None or self.told or not len(times):
            return
        with suppress(BellcrankError, ArithmeticError, ValueError, IndexError):
            q, u = q[:, :_STATES], u[:, :_STATES]
            rows = times, q, u, self._laws.conditions(times, q, u)
            if self._last is not None and not self._single:
                rows = tuple(np.concatenate([a, b]) for a, b in zip(self._last, rows, strict=True))  # type: ignore[assignment]
            self._last = tuple(x[-1:] for x in rows)  # type: ignore[assignment]
            moved = np.diff(rows[0])[:, None, None] > 0.0  # events change states in no time
            for row, state, k in np.argwhere(moved & (rows[3][:-1] * rows[3][1:] < 0.0)).tolist():
                ends = rows[0][row:row + 2], rows[1][row:row + 2, state], rows[2][row:row + 2, state]
                found = self._jump(k, *ends)
                if found is not None:
                    self.told = self._text(self._laws.branches[k][0], found)
                    return

    def _jump(self, k: int, times: Floats, q: Floats, u: Floats) -> float | None:
        """When between two samples a law jumps, on the straight line between them; None if it does not, or where a step
        ends."""
        assert self._laws is not None
        low, high = 0.0, 1.0

        def states(x: Floats) -> tuple[Floats, Floats, Floats]:
            return times[0] + x * (times[1] - times[0]), q[0] + x[:, None] * (q[1] - q[0]), \
                u[0] + x[:, None] * (u[1] - u[0])

        first = self._laws.conditions(*states(np.array([0.0])))[0, k]
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            same = self._laws.conditions(*states(np.array([middle])))[0, k] * first > 0.0
            low, high = (middle, high) if same else (low, middle)
        near = states(np.array([0.0, max(low - NEAR, 0.0), min(high + NEAR, 1.0), 1.0]))
        steps = (float(near[0][2]) - self._start) / self._step
        inside = abs(steps - round(steps)) > 10.0 * NEAR * float(times[1] - times[0]) / self._step
        return float(near[0][2]) if inside and self._laws.jumps(k, near) else None

    def _text(self, name: str, t: float) -> str:
        what = "the traced controller" if name == "control" else f"the law of {name!r}"
        return (f"{what} jumps at t = {t:.6g} s, inside a step of {self._step:g} s: steps across a jump are of first "
                "order only; take stepper='dop853', which ends a step there, smaller steps, or a smooth law")
