"""States that stay where they are computed: forces in, coordinates and speeds out, step after step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods, must_be
from bellcrank.arrays import START, Floats, by_name, flat, one_time
from bellcrank.errors import ModelError, NotYetError, SingularError, StateError, hint
from bellcrank.mechanism.forces import Servo
from bellcrank.scalar.graph import LEAF, Scalar
from bellcrank.simulate.contact_checks import check_overlaps
from bellcrank.simulate.early import width_of
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.fields import output_values
from bellcrank.simulate.fixed import Failure, FixedRun
from bellcrank.simulate.machine import Code, packed
from bellcrank.simulate.moreau import stiffened
from bellcrank.simulate.rigid_equations import ContactEquations
from bellcrank.simulate.rigid_run import SLOTS, ContactStepper, RigidRun
from bellcrank.simulate.setup import Setup, along_loops
from bellcrank.simulate.steppers import STEPPERS, FixedStepper
from bellcrank.system.evaluator import CompiledEvaluator, worker_threads
from bellcrank.system.force_terms import forced_machine
from bellcrank.system.foreign_arrays import foreign_to, to_numpy
from bellcrank.system.state import State, parts_of
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.mechanism.parts import JointForce, JointSum
    from bellcrank.system.machine_functions import Machine

__all__ = ["Rollout", "rollout"]

Ints = npt.NDArray[np.int64]

#: steps between samples that are never taken
_NEVER = 1 << 30


def rollout(system: Machine, state: Any, step: float, stepper: str = "rk4", *, threads: int | None = None) -> Rollout:
    """Begin a `Rollout` of a batch of states, all of them at the same time, with fixed steps of `step` seconds, on so
    many `threads` (None: all cores; numbers do not depend on it)."""
    if step is None:
        raise ModelError("rollout: give the step [s]")
    foreign = foreign_to(system.kernels)
    given = state if foreign is None else to_numpy(foreign, state, [])
    setup = Setup.of(system, given, step, step, stepper, None, None, None, None, (), 1e-9, 1e-12, threads)
    if not setup.fixed or not STEPPERS[stepper].lanes:
        raise ModelError(f"rollout: {stepper!r} does not take steps of many states side by side; take 'rk4', 'rk8', "
                         "'semi_implicit' or 'moreau'")
    if system.model.method == "momenta":
        raise NotYetError("rollout: not with the method 'momenta', whose states are (q, p)")
    if not Equations.compiled(system, setup.y0[0, :system.nq], setup.start):
        raise NotYetError(f"rollout: the steps of {system.model.name!r} are not one compiled program")
    return Rollout(setup)


@checked_methods
class Rollout:
    """Many motions side by side, a few steps at a time, for learning and control: the states stay where they are
    computed, in the memory of the GPU with ``backend="cuda"``, and are read as arrays of that (CuPy's).

    Loops are closed after every step. A state whose plan fails is brought through the call by the CPU with plans of its
    own, and the others do not notice; one that cannot go on stays where it was, `alive` is false there, and `failures`
    say why. With the stepper "moreau" rigid contacts act. Cost: that of the steps, and one number read from the device
    for each call.

    >>> import bellcrank as bc, numpy as np
    >>> pendulums = bc.compile(bc.load("pendulum"))
    >>> motion = bc.rollout(pendulums, (np.linspace(0.1, 1.0, 100)[:, None], np.zeros((100, 1))), step=1e-3)
    >>> for _ in range(5):
    ...     motion.step(-0.1 * motion.u, steps=10)          # a policy's forces in
    >>> motion.q.shape, round(motion.t, 6)                  # what it sees, (100, 1)
    ((100, 1), 0.05)
    >>> motion.reset([3, 7], ([0.5], [0.0]))                # some begin anew
    """

    def __init__(self, setup: Setup) -> None:
        self.system, self._setup, self.count = setup.system, setup, setup.count
        self.failures: list[Failure] = []  #: of states that could not go on
        self._kind = STEPPERS[setup.stepper]
        assert setup.step is not None
        self._h, self._steps = setup.step, 0
        self._forced: tuple[str, ...] = ()  #: loop joints along which forces have acted
        self._pushed = False  #: whether external wrenches act
        self._varied = False  #: whether parameters are others than those of the machine
        self._equations = self._made(self.system, setup.count, setup.tau)
        backend = self._equations.backend
        self._device = backend.foreign()
        self._width = width_of(self._kind, backend, setup.count) if self._device is None else backend.lanes()
        self._plan = self._equations.first_plan(setup.y0[0, :self.system.nq], setup.start)
        places = self._equations.places if isinstance(self._equations, ContactEquations) else 0
        self._slots = max(min(places, SLOTS), 1)  #: places that may be near at the same time
        self._begin()
        self._float = np.float64 if self._code.real == "double" else np.float32
        self._y, self._given = (self._place(packed(x, self._width)) for x in (setup.y0, self._inputs()))
        self._done = self._place(np.zeros((len(self._y), 1, self._width)))
        self._nowhere = self._place(np.zeros((len(self._y), 1, 1, 1)))
        self._alive = self._place(np.ones(self.count), bool)

    def __repr__(self) -> str:
        return f"<Rollout of {self.system.model.name!r}: {self.count} states, t = {self.t:.6g} s>"

    def _begin(self) -> None:
        """Compile the steps, for the plan that there is."""
        self._stepper = self._made_stepper(self._equations.code(self._plan, self._width))
        self._code = self._stepper.code
        self._others: dict[Any, FixedStepper] = {}  #: of other plans, by their keys
        self._beside: list[FixedStepper] = []  #: of other threads

    def _inputs(self) -> Floats:
        """Forces, parameters and the like of all states, (states, inputs)."""
        whole = np.zeros((self.count, self._code.sizes["inputs"]))
        for name, rows in self._equations.inputs(np.arange(self.count)).items():
            whole[:, self._code.inputs[name]:self._code.inputs[name] + rows.shape[1]] = rows
        return whole

    def _made(self, system: Machine, count: int, tau: Any, wrenches: Any = None) -> Equations:
        system = forced_machine(system, self._forced)
        if self._kind.name == "moreau":
            stiff, added = stiffened(system, self._h)
            return ContactEquations(added, stiff, (count,), tau, wrenches, separate=True)
        return Equations(system, (count,), tau, wrenches, separate=self._kind.tableau is None,
                         settles=self._kind.explicit)

    def _made_stepper(self, code: Code) -> FixedStepper:
        if not isinstance(self._equations, ContactEquations):
            return FixedStepper(code, self._kind)
        stepper = ContactStepper(code, self._kind, self._equations.system.model.tree, self._slots)
        stepper.recorded = False
        return stepper

    def _place(self, array: npt.NDArray[Any], kind: Any = None) -> Any:
        array = array.astype(self._float if kind is None else kind)
        return array if self._device is None else self._device.upload(array)

    # -- what is there ------------------------------------------------------------------------------
    @property
    def t(self) -> float:
        """The time [s]."""
        return self._setup.start + self._steps * self._h

    @property
    def q(self) -> Any:
        """Coordinates, (states, nq)."""
        return self._rows(self._y, 0, self.system.nq)

    @property
    def u(self) -> Any:
        """Speeds, (states, nu)."""
        return self._rows(self._y, self.system.nq, self._code.size)

    @property
    def state(self) -> State:
        """All of them at present, with what contacts remember, in the memory of the processor."""
        q, u, memory = (self._numbers(x).astype(float) for x in (self.q, self.u, self.contact_memory))
        made = self.system.model.configuration.state(q, u, self.t)
        return made if self._carried is None else made.replace(contacts=memory)

    @property
    def alive(self) -> Any:
        """Which states go on, (states,)."""
        return self._alive.copy()

    @property
    def contact_residual(self) -> float:
        """By how much the conditions of rigid contacts were missed at most in all steps since the beginning or `reset`
        [m/s]; 0 without such contacts."""
        last = self._given.shape[1] - 1
        return 0.0 if self._carried is None else float(self._numbers(self._rows(self._given, last - 1, last)).max())

    @property
    def contact_memory(self) -> Any:
        """What rigid contacts remember from step to step, (states, numbers), for `reset`; no numbers without them."""
        if self._carried is None:
            return self.q[:, :0]
        return self._rows(self._given, self._carried, self._given.shape[1])

    @property
    def contact_forces(self) -> dict[str, Any]:
        """Of every rigid contact the normal force and friction [N] in the last step, each the sum of its places',
        (states, 2), by name.

        >>> import bellcrank as bc, numpy as np
        >>> m = bc.Mechanism("ball")
        >>> _ = m.add_joint("free", bc.Free(), m.ground, m.add_body("ball", bc.Inertia.sphere(2.0, 0.1)))
        >>> _ = m.add_shape("ball", bc.Sphere(0.1), role="collision")
        >>> _ = m.add_shape(m.ground, bc.Plane(), role="collision")
        >>> _ = m.add_contact("floor", m.ground, "ball", friction=0.5)
        >>> q = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1]])
        >>> motion = bc.rollout(bc.compile(m), (q, np.zeros((1, 6))), step=1e-3, stepper="moreau")
        >>> motion.step(steps=5)
        >>> motion.contact_forces["floor"].round(6), motion.contact_residual < 1e-9
        (array([[19.62,  0.  ]]), True)
        """
        found: dict[str, Any] = {}
        start = 0 if self._carried is None else self._carried + 2 * self.system.nu
        for pair in self.system.model.tree.contacts:
            p = self._rows(self._given, start, start + 3 * pair.places).reshape(self.count, pair.places, 3) / self._h
            total = p.sum(axis=1)[:, :2]
            total[:, 1] = ((p[..., 1:] ** 2).sum(axis=-1) ** 0.5).sum(axis=-1)
            found[pair.name] = total
            start += 3 * pair.places
        return found

    def outputs(self, laws: Mapping[str, Callable[[Any], Any]] | None = None) -> dict[str, npt.NDArray[np.float64]]:
        """Outputs of all states at present, (states,) each, by name: functions of the machine ``law(at)``, those of
        `Mechanism.add_output` unless some are given. Angles count turns. Cost: O(n) a state, on the CPU.

        >>> import bellcrank as bc, numpy as np
        >>> motion = bc.rollout(bc.compile(bc.load("pendulum")), (np.ones((3, 1)), np.zeros((3, 1))), step=1e-3)
        >>> motion.outputs({"twice": lambda at: 2.0 * at.q("hinge")})["twice"]
        array([2., 2., 2.])
        """
        q, u = (self._numbers(x).astype(float) for x in (self.q, self.u))
        return output_values(self._single(np.arange(self.count)), np.full(self.count, self.t), q, u, laws)

    def _rows(self, blocks: Any, first: int, end: int) -> Any:
        return blocks[:, first:end].transpose(0, 2, 1).reshape(-1, end - first)[:self.count]

    # -- what can be done ---------------------------------------------------------------------------
    def step(self, tau: Any = None, steps: int = 1, *, parameters: Mapping[str, Any] | None = None,
             wrenches: Any = None, targets: Mapping[str, Any] | None = None) -> None:
        """Take steps with joint forces tau (states, nu) or (nu,), held meanwhile; without, with those of before. A
        mapping {joint or "joint.coordinate": values} is zero where nothing is said; it may name joints at which loops
        are cut, each of which costs a compilation the first time that it is named.

        What else is given stays, too, until it is given again: `parameters` {name: value or (states,)},
        external `wrenches` on bodies, (states, bodies, 6), (bodies, 6) or {body: wrenches} ([moment; force], world
        axes; a compilation the first time), and `targets` {servo: value or (states,)}, parameters that the targets of
        servos are.

        >>> import bellcrank as bc, numpy as np
        >>> m = bc.load("pendulum")
        >>> _ = m.add_servo("servo", "hinge", target=m.parameter("aim", 0.0), stiffness=400.0, damping=40.0)
        >>> motion = bc.rollout(bc.compile(m), (np.zeros((3, 1)), np.zeros((3, 1))), step=1e-3)
        >>> motion.step(steps=2000, targets={"servo": [0.0, 0.3, 0.6]})
        >>> np.round(motion.q[:, 0], 2)
        array([0.  , 0.29, 0.59])
        """
        self._let_act(tau, wrenches, {**(parameters or {}), **self._aims(targets or {})})
        self._advance(steps)
        short = (self._done.reshape(-1)[:self.count] < steps) & self._alive
        if bool(short.any()):
            self._rescue(np.flatnonzero(self._numbers(short)), steps)
        self._steps += steps

    def _advance(self, steps: int) -> None:
        """Steps of all states by the plan that serves most, the blocks shared between threads where they are many."""
        parts = self._shares(steps)
        while len(self._beside) < len(parts) - 1:
            self._beside.append(self._made_stepper(self._code))

        def go(stepper: FixedStepper, part: slice) -> None:
            stepper.advance(self._y[part], self._given[part], self._done[part], self._nowhere[part], self._setup.start,
                            self._h, self._steps, steps, _NEVER)

        others = [worker_threads(os.getpid(), len(parts)).submit(go, stepper, part)
                  for stepper, part in zip(self._beside, parts[1:], strict=False)]
        go(self._stepper, parts[0])
        for other in others:
            other.result()

    def _shares(self, steps: int) -> list[slice]:
        """Blocks of states, one stretch for each thread."""
        run, blocks = self.system.kernels.evaluator, len(self._y)
        threads = 1
        if self._device is None and isinstance(run, CompiledEvaluator):
            alone = run.most_for_one_thread(self.system.kernels.functions["forward_dynamics"])
            threads = min(self._setup.threads or run.threads, blocks) if self.count * steps > alone else 1
        cuts = [blocks * i // threads for i in range(threads + 1)]
        return [slice(a, b) for a, b in pairwise(cuts)]

    # -- what acts ------------------------------------------------------------------------------------
    def _let_act(self, tau: Any, wrenches: Any, parameters: Mapping[str, Any]) -> None:
        """Take over all that is given, or nothing if some of it is wrong."""
        new: list[tuple[str, int, Any]] = [self._parameter(name, value) for name, value in parameters.items()]
        more: tuple[str, ...] = ()
        if wrenches is not None:
            new.append(("wrench", 0, self._wrench_rows(wrenches)))
        if tau is not None:
            rows = self._forces(tau)
            new.append(("tau", 0, rows))
            if self.system.model.tree.loop_joints:
                more = tuple(name for name in along_loops(self.system, self._numbers(rows)) if name not in self._forced)
        pushed = self._pushed or wrenches is not None
        if more or pushed != self._pushed:  # acts for the first time
            self._forced, self._pushed = (*self._forced, *more), pushed
            self._compile_again()
        self._varied = self._varied or bool(parameters)
        for name, first, rows in new:
            self._put(name, first, rows)

    def _forces(self, tau: Any) -> Any:
        nu = self.system.nu
        if isinstance(tau, Mapping):
            named = {name: self._numbers(value) for name, value in tau.items()}
            tau = by_name("rollout: tau", named, self.system.model.configuration.speed_entries, nu)
        if self._device is None or not self._device.holds(tau):
            tau = self._place(flat("rollout: tau", tau, nu, "one for every speed"))
        return self._fitting("tau", tau, nu)

    def _wrench_rows(self, wrenches: Any) -> Any:
        given = {name: self._numbers(x) for name, x in wrenches.items()} if isinstance(wrenches, Mapping) else \
            self._numbers(wrenches)
        rows = self.system.model.wrench_rows(given)[..., wrench_order(self.system.model.tree), :]
        rows = rows.reshape(*rows.shape[:-2], -1)
        return self._place(self._fitting("wrenches", rows, rows.shape[-1]))

    def _parameter(self, name: str, given: Any) -> tuple[str, int, Any]:
        names = list(self.system.model.tree.parameters)
        if name not in names:
            raise ModelError(f"rollout: {self.system.model.name!r} has no parameter {name!r}; there are "
                             f"{', '.join(map(repr, names)) or 'none'}{hint(name, names)}")
        values = np.asarray(self._numbers(given), dtype=float)
        if not np.isfinite(values).all():
            raise StateError(f"rollout: values of parameter {name!r} are not finite")
        if values.shape not in ((), (self.count,)):
            raise StateError(f"rollout: parameter {name!r} must be a number or have the shape {(self.count,)}, got "
                             f"{values.shape}")
        return "parameters", names.index(name), self._place(values[..., None])

    def _fitting(self, what: str, rows: Any, size: int) -> Any:
        """Rows, (entries,) or (states, entries)."""
        if rows.shape not in ((size,), (self.count, size)):
            raise StateError(f"rollout: {what} must have the shape {(self.count, size)} or {(size,)}, got {rows.shape}")
        return rows

    def _aims(self, targets: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the parameters that the targets of servos are."""
        mechanism, out = self.system.model.mechanism, dict[str, Any]()
        elements: list[JointForce | JointSum] = [*mechanism.joint_forces, *mechanism.joint_sums]
        servos = {e.name: e.along.target for e in elements if isinstance(e.along, Servo)}
        for name, given in targets.items():
            if name not in servos:
                raise ModelError(f"rollout: {self.system.model.name!r} has no servo {name!r}; there are "
                                 f"{', '.join(map(repr, servos)) or 'none'}{hint(name, servos)}")
            aim = servos[name]
            key = aim.args[0] if type(aim) is Scalar and aim.op is LEAF else None
            if key is None:
                raise ModelError(f"rollout: the target of servo {name!r} is {aim!r}; let it be a parameter: "
                                 "add_servo(..., target=m.parameter(...))")
            out[key[1]] = given
        return out

    def _put(self, name: str, first: int, rows: Any) -> None:
        """Let rows, (entries,) or (states, entries), be inputs of all states, from one entry of a kind on."""
        size, place = rows.shape[-1], self._code.inputs[name] + first
        into = self._given[:, place:place + size].transpose(0, 2, 1)  # (blocks, lanes, entries)
        if rows.ndim == 1:
            into[...] = rows
            return
        whole = self.count // self._width
        into[:whole] = rows[:whole * self._width].reshape(whole, self._width, size)
        if whole * self._width < self.count:
            into[whole, :self.count - whole * self._width] = rows[whole * self._width:]

    def _compile_again(self) -> None:
        """Compile the steps for more that acts; what states carry stays."""
        before, given = self._inputs_by_kind(), self._given
        nu, bodies = self.system.nu, len(self.system.model.tree.body_names) - 1
        self._equations = self._made(self.system, self.count, np.zeros((1, nu)),
                                     np.zeros((1, 6 * bodies)) if self._pushed else None)
        self._begin()
        self._given = self._place(packed(self._inputs(), self._width))
        for name, place in self._inputs_by_kind().items():
            if before[name].stop - before[name].start == place.stop - place.start:
                self._given[:, place] = given[:, before[name]]

    def _inputs_by_kind(self) -> dict[str, slice]:
        """Where forces, wrenches, parameters and what contacts remember lie among the inputs of a state."""
        starts = sorted(self._code.inputs.items(), key=lambda pair: pair[1])
        ends = [start for _, start in starts[1:]] + [self._given.shape[1]]
        return {name: slice(start, end) for (name, start), end in zip(starts, ends, strict=True)}

    def restore(self, state: Any) -> None:
        """Let all states be those of a `State` that was `state` before, exact to the bit, with its time and what
        contacts remember: steps from there give the same numbers again. Forces, wrenches and parameters stay as they
        are now.

        >>> import bellcrank as bc, numpy as np
        >>> motion = bc.rollout(bc.compile(bc.load("four_bar")), bc.compile(bc.load("four_bar")).assemble(), step=1e-3)
        >>> saved = motion.state
        >>> motion.step(steps=20)
        >>> there = motion.q
        >>> motion.restore(saved)
        >>> motion.step(steps=20)
        >>> bool((motion.q == there).all()), round(motion.t, 6)
        (True, 0.02)
        """
        must_be("rollout.restore: state", "State", state)
        q, u, memory = self._states(state, self.count)
        t = one_time(state.t)
        steps = round((t - self._setup.start) / self._h)
        if abs(self._setup.start + steps * self._h - t) > 1e-9 * max(1.0, abs(t)):
            raise StateError(f"rollout.restore: t = {t!r} s is not one of the times of this rollout, which began at "
                             f"{self._setup.start!r} s with steps of {self._h!r} s")
        every = np.arange(self.count)
        self._write(self._y, every, self._place(np.concatenate([q, u], axis=-1)))
        if self._carried is not None:
            self._remember(every, memory, "rollout.restore")
        self._steps, self.failures = steps, []
        self._alive[:] = True

    def reset(self, which: Any, state: Any) -> None:
        """Let some states (numbers or a mask) begin again from a `State` or (q, u), given for each or the same for all;
        loops must be closed there, and shapes of contacts apart. With rigid contacts q and u are not the whole state:
        one with `State.contacts`, such as `state` after a step, or (q, u, `contact_memory`), goes on exactly from
        there. The time goes on.

        >>> import bellcrank as bc, numpy as np
        >>> motion = bc.rollout(bc.compile(bc.load("pendulum")), (np.ones((3, 1)), np.zeros((3, 1))), step=1e-3)
        >>> saved = motion.state
        >>> motion.step(steps=20)
        >>> motion.reset([0, 1, 2], saved)
        >>> motion.q[:, 0]
        array([1., 1., 1.])
        """
        chosen = self._chosen(which)
        if not len(chosen):
            return
        q, u, memory = self._states(state, len(chosen))
        system = self._single(chosen)
        rows = replace(self._setup, system=system, y0=np.concatenate([q, u], axis=-1), start=self.t).closed()
        if memory is None:
            check_overlaps(system, rows[:, :self.system.nq], self.t, "rollout.reset",
                           "give (q, u, contact_memory) to go on from a state that was reached", chosen)
        self._write(self._y, chosen, self._place(rows))
        if self._carried is not None:
            self._remember(chosen, memory, "rollout.reset")
        self._alive[self._place(chosen, np.int64)] = True
        self.failures = [f for f in self.failures if f.state not in set(chosen.tolist())]

    def _remember(self, chosen: Ints, memory: Any, what: str) -> None:
        """What contacts remember of some states; nothing if it is not given."""
        assert self._carried is not None
        size = self._given.shape[1] - self._carried
        memory = np.zeros(size) if memory is None else self._numbers(memory)
        if memory.shape not in ((size,), (len(chosen), size)):
            raise StateError(f"{what}: contact_memory must have the shape {(len(chosen), size)}, got {memory.shape}")
        self._write(self._given[:, self._carried:], chosen, self._place(memory))

    def _chosen(self, which: Any) -> Ints:
        try:
            return np.atleast_1d(np.arange(self.count)[self._numbers(which)])
        except (IndexError, OverflowError) as error:
            raise StateError(f"rollout.reset: which must be numbers of states, 0 to {self.count - 1}, or a mask of "
                             f"{self.count} ({error})") from None

    def _states(self, state: Any, count: int) -> tuple[Floats, Floats, Any]:
        """q (count, nq) and u (count, nu) to begin with, and what contacts remember."""
        given_q, given_u, memory = parts_of(state, self.system.model.configuration.state_names, "rollout.reset",
                                            "a State, (q, u) or (q, u, contact_memory)")
        memory = state.contacts if isinstance(state, State) else None if memory is START else memory
        q = flat("rollout.reset: q", self._numbers(given_q), self.system.nq, "the coordinates")
        u = flat("rollout.reset: u", self._numbers(given_u), self.system.nu, "one for every speed")
        try:
            return np.broadcast_to(q, (count, q.shape[-1])), np.broadcast_to(u, (count, u.shape[-1])), memory
        except ValueError:
            raise StateError(f"rollout.reset: {count} states are chosen, got q of shape {q.shape} and u of shape "
                             f"{u.shape}") from None

    def _numbers(self, value: Any) -> npt.NDArray[Any]:
        foreign = self._device is not None and self._device.holds(value)
        return self._device.to_numpy(value) if self._device is not None and foreign else np.asarray(value)

    def _single(self, chosen: Ints) -> Machine:
        """The machine of some states, with their own parameters."""
        if self._varied:
            rows = self._numbers(self._rows(self._given, *self._ends("parameters")))[chosen].astype(float)
            return self.system.with_parameters(**dict(zip(self.system.model.tree.parameters, rows.T, strict=True)))
        if not self.system.model.batched:
            return self.system
        return self.system.with_parameters(**{
            name: np.broadcast_to(v, (self.count,))[chosen] for name, v in self.system.model.values.items()})

    def _ends(self, name: str) -> tuple[int, int]:
        place = self._inputs_by_kind()[name]
        return place.start, place.stop

    # -- states whose plan fails --------------------------------------------------------------------
    @property
    def _carried(self) -> int | None:
        """Where in the inputs of a state that lies which goes from step to step."""
        return self._equations.carried(self._code)

    def _rescue(self, left: Ints, steps: int) -> None:
        """Bring states through the steps that are left with plans made where they are: what serves one is tried for
        all, where they are; the last few are the CPU's."""
        done = self._numbers(self._done).reshape(-1)[:self.count].astype(np.int64)
        few = self._width // 2 if self._device is not None else 0
        while len(left) and self._crowded():
            self._go_on(self._stepper, left, done, steps)
            left = left[done[left] < steps]
        while len(left) > few:
            first = int(left[0])
            at, q = self.t + int(done[first]) * self._h, self._lanes(self._y, left[:1], 1)[0, :self.system.nq, 0]
            try:
                plan = self._equations.plan_at(self._numbers(q).astype(float), at)
            except SingularError:
                plan = None
            before = int(done[first])
            if plan is not None:
                self._through(plan, left, done, steps)
            if done[first] == before:  # a plan that was made here does not last a step
                self._alone(left[:1], done, steps)
                left = left[1:]
            left = left[done[left] < steps]
        if len(left):
            self._alone(left, done, steps)

    def _crowded(self) -> bool:
        """Whether more places were near than there was memory for: there is more then."""
        if not isinstance(self._equations, ContactEquations):
            return False
        need = int(self._given[:, -1].max())
        if need <= self._slots:
            return False
        self._slots = min(max(need, 2 * self._slots), self._equations.places)
        self._stepper, self._others, self._beside = self._made_stepper(self._stepper.code), {}, []
        return True

    def _through(self, plan: Any, chosen: Ints, done: Ints, steps: int) -> None:
        """Go on with another plan, as far as it serves; `done` are the steps of all states."""
        if plan.key not in self._others:
            self._others[plan.key] = self._made_stepper(self._equations.code(plan, self._width))
        self._go_on(self._others[plan.key], chosen, done, steps)
        if 2 * len(chosen) > self.count:
            self._plan, self._stepper = plan, self._others[plan.key]  # most states are where it serves
            self._code, self._beside = self._stepper.code, []

    def _go_on(self, stepper: FixedStepper, chosen: Ints, done: Ints, steps: int) -> None:
        """Go on with some states by this stepper, as far as it serves."""
        width = self._width
        for already in np.unique(done[chosen]).tolist():
            some = chosen[done[chosen] == already]
            y, given = (self._lanes(x, some, width) for x in (self._y, self._given))
            taken, nowhere = self._place(np.zeros((len(y), 1, width))), self._place(np.zeros((len(y), 1, 1, 1)))
            stepper.advance(y, given, taken, nowhere, self._setup.start, self._h, self._steps + already,
                            steps - already, _NEVER)
            for target, rows in ((self._y, y), (self._given, given)):
                self._write(target, some, rows.transpose(0, 2, 1).reshape(-1, rows.shape[1])[:len(some)])
            done[some] += self._numbers(taken).reshape(-1)[:len(some)].astype(np.int64)

    def _alone(self, chosen: Ints, done: Ints, steps: int) -> None:
        """Let the CPU do it, through singular positions if need be; who cannot go on is told of."""
        y, given = (self._numbers(self._lanes(x, chosen, 1))[:, :, 0].astype(float) for x in (self._y, self._given))
        tau, wrenches = (given[:, slice(*self._ends(name))] for name in ("tau", "wrench"))
        for already in np.unique(done[chosen]).tolist():
            some = np.flatnonzero(done[chosen] == already)
            equations = self._made(self._single(chosen[some]), len(some), tau[some],
                                   wrenches[some] if self._pushed else None)
            begun = self.t + already * self._h
            if isinstance(equations, ContactEquations):
                equations.handed_on[:] = given[some, self._carried:]
                run: FixedRun = RigidRun(equations, self._kind, y[some], begun, self._h)
            else:
                run = FixedRun(equations, self._kind, y[some], begun, self._h)
            run.advance(steps - already, _NEVER)
            run.bring_back()
            y[some] = run.y
            if isinstance(equations, ContactEquations):
                given[some, self._carried:] = equations.handed_on
            for failure in run.failures:
                lane = int(chosen[some[failure.state]])
                self.failures.append(Failure(lane, failure.time, failure.reason, failure.diverged))
                self._alive[lane] = False
        done[chosen] = steps
        self._write(self._y, chosen, self._place(y))
        if self._carried is not None:
            self._write(self._given, chosen, self._place(given))

    def _lanes(self, blocks: Any, chosen: Ints, width: int) -> Any:
        """Some states as blocks of their own; the last is filled up."""
        padded = chosen[np.minimum(np.arange(-(-len(chosen) // width) * width), len(chosen) - 1)]
        at = [self._place(x, np.int64) for x in (padded // self._width, padded % self._width)]
        return blocks[at[0], :, at[1]].reshape(-1, width, blocks.shape[1]).transpose(0, 2, 1).copy()

    def _write(self, blocks: Any, chosen: Ints, rows: Any) -> None:
        lanes = [self._place(x, np.int64) for x in (chosen // self._width, chosen % self._width)]
        blocks[lanes[0], :, lanes[1]] = rows
