"""The methods of integration by name, and their compiled form for one block of states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.integrate import tableaux
from bellcrank.integrate.adaptive import ADAPTIVE, embedded_pair
from bellcrank.integrate.contact_slots import CONTACT
from bellcrank.integrate.contact_step import contact_steps
from bellcrank.integrate.fixed_step import STEPPING, explicit, semi_implicit
from bellcrank.integrate.implicit import IMPLICIT, collocation
from bellcrank.integrate.stiff import STIFF, stiff_pair
from bellcrank.integrate.tableaux import Collocation, Explicit, StiffRadau
from bellcrank.simulate.machine import Code, fill, packed, unpacked
from bellcrank.target.backend import Backend, Driver, DriverBuffers
from bellcrank.target.program import Program

__all__ = ["STEPPERS", "AdaptiveStepper", "FixedStepper", "Integrator", "StepsTaken", "Stretch", "Taken",
           "adaptive_parts", "driver_of"]

Ints = npt.NDArray[np.int64]

#: corrections are repeated while they move a joint by more than NEAR, and have failed beyond FAR [rad or m]
NEAR, FAR, ROUNDS = 1e-12, 1e-6, 8
#: the same by the kind of numbers: in floats they end, and have failed, earlier
NEAR_AND_FAR = {"double": (NEAR, FAR), "float": (2e-6, 1e-3)}
#: states up to this many numbers get a driver of their own
SMALL = 32
#: implicit methods factor matrices up to this many stage unknowns; beyond, only problems that are not stiff converge
FACTORED = 600


@dataclass(frozen=True)
class Integrator:
    """A method of integration."""

    name: str
    order: int
    about: str
    program: Program  #: the driver
    tableau: Callable[[], Explicit | Collocation | StiffRadau] | None
    lanes: bool = True  #: whether several states advance side by side
    adaptive: bool = False
    tolerance: float = 1e-14  #: of the iteration of implicit methods

    @property
    def explicit(self) -> bool:
        """Whether it has fixed steps that solve no equations."""
        return not self.adaptive and (self.tableau is None or isinstance(self.tableau(), Explicit))


STEPPERS: dict[str, Integrator] = {k.name: k for k in (
    Integrator("rk4", 4, "classical Runge-Kutta, fixed step", explicit(tableaux.rk4), tableaux.rk4),
    Integrator("rk8", 8, "Dormand-Prince order 8, fixed step", explicit(tableaux.rk8), tableaux.rk8),
    Integrator("semi_implicit", 1, "semi-implicit Euler, fixed step: cheap, keeps energy roughly",
         semi_implicit, None),
    Integrator("gauss", 6, "Gauss collocation, fixed step: symmetric, keeps energy over long runs", collocation,
         tableaux.gauss, lanes=False),
    Integrator("radau", 5, "Radau IIA, fixed step: for stiff springs and dampers", collocation, tableaux.radau,
         lanes=False, tolerance=1e-13),
    Integrator("dopri5", 5, "Dormand-Prince 5(4), adaptive, dense output", embedded_pair(tableaux.dopri5),
         tableaux.dopri5, lanes=False, adaptive=True),
    Integrator("radau5", 5, "Radau IIA 5(3), adaptive, dense output: for stiff machines", stiff_pair,
         tableaux.stiff_radau, lanes=False, adaptive=True),
    Integrator("dop853", 8, "Dormand-Prince 8(5,3), adaptive, dense output", embedded_pair(tableaux.dop853),
         tableaux.dop853, lanes=False, adaptive=True),
    Integrator("moreau", 2, "Moreau-Jean time stepping: rigid contacts with friction, fixed step", contact_steps, None),
)}


def driver_of(kind: Integrator, backend: Backend, width: int, nq: int, nu: int, shift: int) -> Driver:
    """The compiled driver of a method for states of this size; `shift` entries tell how far a correction moved."""
    if kind.program is contact_steps:
        return backend.driver(kind.program, CONTACT, width, loops=False)
    if kind.program is stiff_pair:
        return backend.driver(kind.program, STIFF, width, loops=True)
    if kind.adaptive:
        return backend.driver(kind.program, ADAPTIVE, width)
    if kind.tableau is not None and isinstance(kind.tableau(), Collocation):
        return backend.driver(kind.program, IMPLICIT, width, loops=True)
    known: dict[str, int] = {}
    if nq + nu <= SMALL:  # loops over a small state unroll
        known = {"size": nq + nu, "split": nq, "n_shift": shift}
    return backend.driver(kind.program, STEPPING, width, tuple(known.items()), loops=bool(known))


def point_all(memory: DriverBuffers, **tables: Floats) -> None:
    """Let a driver's pointers refer to tables."""
    for name, table in tables.items():
        memory.point(name, np.ascontiguousarray(table, dtype=float))


class FixedStepper:
    """Runs a fixed-step driver on one block of states."""

    def __init__(self, code: Code, kind: Integrator) -> None:
        self.code, self.kind = code, kind
        tableau = kind.tableau() if kind.tableau else None
        stages = tableau.stages if tableau else 1
        extra = {"slopes": stages * code.size, "lost": code.size if code.real == "float" else 0}
        layout = STEPPING
        if isinstance(tableau, Collocation):
            layout = IMPLICIT
            order = stages * code.size
            extra |= {"z": order, "change": order}
            if order <= FACTORED:
                extra |= {"jacobian": code.size * code.size, "matrix": order * order}
        self._implicit = isinstance(tableau, Collocation)
        self._run = driver_of(kind, code.backend, code.width, code.nq, code.nu, code.shift)
        self.memory = m = code.memory(layout, extra)
        m.set(size=code.size, split=code.nq, n_shift=code.shift, rounds=ROUNDS if code.shift else 1)
        near, far = NEAR_AND_FAR["double" if self._implicit else code.real]
        m.set_real(near=near, far=far)
        if isinstance(tableau, Collocation):
            point_all(m, a=tableau.a, c=tableau.c, d=tableau.d, ahead=tableau.ahead)
            m.point("pivots", np.zeros(order, dtype=np.int64))
            m.set(stages=stages, newton=int(order <= FACTORED))
            m.set_real(tolerance=kind.tolerance)
        self._owner: object = None

    @property
    def real(self) -> str:
        """The kind of numbers of its states: what iterates needs all digits."""
        return "double" if self._implicit else self.code.real

    def whole_inputs(self, inputs: Mapping[str, Floats], count: int) -> Floats:
        """Inputs (states or 1, entries) side by side, (states, all entries)."""
        whole = np.zeros((count, self.code.sizes["inputs"]))
        for name, rows in inputs.items():
            whole[:, self.code.inputs[name]:self.code.inputs[name] + rows.shape[1]] = rows
        return whole

    def run(self, y: Floats, inputs: Mapping[str, Floats], start: float, step: float, first: int, steps: int,
            every: int, hold: int = 1, owner: object = None) -> Taken:
        """Take steps from states y (states, size) with their inputs (states or 1, entries).

        `first` counts the steps done since `start`; every `every`-th step is a sample. An implicit method keeps its
        Jacobian between calls for the same `owner`.
        """
        code, n = self.code, len(y)
        samples = (first + steps) // every - first // every
        states, given = packed(y, code.width), packed(self.whole_inputs(inputs, n), code.width)
        blocks = len(states)
        out = np.empty((blocks, samples, code.size, code.width)) if samples else np.empty((blocks, 1, 1, 1))
        done = np.empty((blocks, 1, code.width))
        self.advance(states, given, done, out, start, step, first, steps, every, hold, owner)
        rows = out.transpose(1, 0, 3, 2).reshape(samples, -1, code.size) if samples else np.empty((0, n, code.size))
        return Taken(rows[:, :n], unpacked(states, n), unpacked(done, n)[:, 0].astype(np.int64), unpacked(given, n))

    def advance(self, states: Any, given: Any, done: Any, out: Any, start: float, step: float, first: int, steps: int,
                every: int, hold: int = 1, owner: object = None) -> None:
        """The same on blocks of states, (blocks, entries, lanes), which change: of NumPy, or where the code runs."""
        m, code = self.memory, self.code
        for name, array in (("all_y", states), ("all_inputs", given), ("all_done", done), ("out", out)):
            m.address(name, array)
        samples = (first + steps) // every - first // every
        m.set(blocks=len(states), samples=samples, steps=steps, first=first, every=every, hold=hold)
        if self._implicit:
            m.set(anew=int(owner is None or (owner, step) != self._owner))
            for name in m.layout.returned if code.width > 1 else ():  # counts of each state, which nobody reads
                m.address(name, np.zeros(len(states) * code.width, dtype=np.int32))
        m.set_real(start=start, step=step)
        self._run(m)
        self._owner = (owner, step) if owner is not None else None

    def recorded_forces(self) -> Any:
        """Forces of rigid contacts at the samples of the last call, in blocks, where the code runs; None if there are
        none."""
        return None


class Taken(NamedTuple):
    """What a fixed stepper has done in one call."""

    samples: Floats  #: (samples, states, size)
    y: Floats  #: last good states
    done: Ints  #: steps done by each state
    inputs: Floats  #: (states, entries), as held controllers left them
    forces: Floats | None = None  #: (samples, states, 3 places), of rigid contacts


class StepsTaken(NamedTuple):
    """What a run needs of `Taken`."""

    samples: Floats
    done: Ints
    forces: Floats | None = None


class Stretch(NamedTuple):
    """What an adaptive stepper has done in one call."""

    samples: Floats  #: (samples, size)
    open: npt.NDArray[np.bool_]  #: samples that are interpolated only: their correction was out of proportion
    times: Floats  #: of the accepted steps
    states: Floats  #: after the accepted steps, (steps, size)
    status: int  #: 0: all well, 1: not finite, 2: steps became too short
    rejected: int


def _pair_memory(code: Code, tableau: Explicit) -> DriverBuffers:
    """Memory of an embedded pair."""
    assert tableau.e is not None and tableau.dense is not None
    slopes = tableau.stages + 1 + (0 if tableau.more is None else len(tableau.more))
    return code.memory(ADAPTIVE, {"slopes": slopes * code.size, "next": code.size})


def _stiff_memory(code: Code, rtol: float) -> DriverBuffers:
    """Memory of an implicit method: stages, the Jacobian and two sets of factors."""
    n = code.size
    m = code.memory(STIFF, {"slopes": 5 * n, "next": n, "z": 3 * n, "w": 3 * n, "change": 3 * n, "last": 3 * n,
                            "jacobian": n * n, "first": n * n, "second": 4 * n * n})
    m.point("pivots", np.zeros(n, dtype=np.int64))
    m.point("pivots2", np.zeros(2 * n, dtype=np.int64))
    m.set(differentiated=0, factored=0, iterations=0)
    m.set_real(newton=max(10.0 * float(np.finfo(float).eps) / rtol, min(0.03, rtol**0.5)), before=1.0)
    return m


def adaptive_parts(code: Code, kind: Integrator, rtol: float, atol: float, reach: Floats
                   ) -> tuple[Driver, DriverBuffers]:
    """The driver of an adaptive method, and its memory, for the tolerances; `reach`: rows by which steps are bounded,
    see `contact_checks.contact_strides`."""
    assert kind.tableau is not None
    tableau = kind.tableau()
    assert not isinstance(tableau, Collocation)
    m = _stiff_memory(code, rtol) if isinstance(tableau, StiffRadau) else _pair_memory(code, tableau)
    m.set(size=code.size, n_shift=code.shift, rounds=ROUNDS if code.shift else 1, watched=len(reach))
    m.point("reach", np.append(reach.ravel(), 0.0))
    m.set_real(near=NEAR, far=FAR, rtol=rtol, atol=atol,
               exponent=-0.25 if isinstance(tableau, StiffRadau) else -1.0 / tableau.order)
    return driver_of(kind, code.backend, code.width, code.nq, code.nu, code.shift), m


class AdaptiveStepper:
    """Runs an adaptive method on one state."""

    def __init__(self, code: Code, kind: Integrator, rtol: float, atol: float, reach: Floats) -> None:
        self.code, self._stiff = code, kind.program is stiff_pair
        self._run, self.memory = adaptive_parts(code, kind, rtol, atol, reach)
        self.memory.set(traced=1)

    def load(self, y: Floats, time: float, step: float) -> None:
        """Start from a state."""
        fill(self.memory, self.code, "y", y[None])
        self.memory.set(known=0)
        if self._stiff:  # nothing is known of the state
            self.memory.set(guessed=0, stale=1, here=0)
            self.memory.set_real(of=0.0)
        self.memory.set_real(time=time, step=step)

    def feed(self, inputs: Mapping[str, Floats]) -> None:
        """Set forces and parameters, which may have changed: the first slope is made anew."""
        for name, rows in inputs.items():
            fill(self.memory, self.code, name, rows)
        self.memory.set(known=0)

    @property
    def time(self) -> float:
        return self.memory.get_real("time")

    @property
    def step(self) -> float:
        return self.memory.get_real("step")

    @property
    def state(self) -> Floats:
        return self.memory.buffers["y"][:self.code.size].copy()

    def run(self, end: float, times: Floats, limit: int, shrink: bool) -> Stretch:
        """Go on to `end` (at most `limit` steps), sampling at those of the `times` that are passed."""
        m, size = self.memory, self.code.size
        out, left_open, trace = np.empty((len(times), size)), np.empty(len(times)), np.empty((limit, size + 1))
        times = np.ascontiguousarray(times)
        for name, array in (("out", out), ("open", left_open), ("trace", trace), ("times", times)):
            m.address(name, array)
        m.set(limit=limit, steps=0, rejected=0, worse=0, sampled=0, samples=len(times), shrink=int(shrink))
        m.set_real(end=end, smallest=1e-14 * max(abs(self.time), abs(end), 1e-3))
        self._run(m)
        done, sampled = m.get("steps"), m.get("sampled")
        return Stretch(out[:sampled], left_open[:sampled] != 0.0, trace[:done, 0].copy(), trace[:done, 1:].copy(),
                       m.get("status"), m.get("rejected"))
