"""Steps with rigid contacts of machines that are not compiled as a whole: the method is the compiled one,
`integrate.contact_step`, and calls the functions of the machine as they are, in Python. And the inertia that it adds
for stiff springs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.integrate.contact_slots import kept_numbers
from bellcrank.scalar.functions import maximum
from bellcrank.scalar.graph import Number, Scalar, digest, is_zero
from bellcrank.simulate.early import width_of
from bellcrank.simulate.failure import Failure
from bellcrank.simulate.machine import Code, state_sizes
from bellcrank.simulate.reference import ReferenceRun, Rhs
from bellcrank.simulate.rigid_equations import step_sizes
from bellcrank.simulate.rigid_run import PIECES, SLOTS, ContactStepper, contact_cautions
from bellcrank.system.force_elements import actuator_forces, with_values
from bellcrank.system.kernels import Kernels
from bellcrank.target.backend import BACKENDS, Call, PythonBlock, backend_named

if TYPE_CHECKING:
    from bellcrank.simulate.steppers import Integrator
    from bellcrank.system.machine_functions import Machine

__all__ = ["MoreauRun", "stiffened"]

Ints = npt.NDArray[np.int64]


def stiffened(system: Machine, h: float) -> tuple[Machine, list[Number] | None]:
    """The machine with inertia for its springs and dampers on joints, and that inertia, an expression of parameters for
    every speed; None if it has none."""
    tree = system.model.tree
    tree.refuse_flexible("stepper 'moreau'")
    added: list[Number] = [0.0] * tree.nu
    armatures = dict(tree.armatures)
    for link, forces in tree.joint_forces.items():
        for i, along in forces:
            stiffness, *dampings = (_number(getattr(along, name, 0.0)) for name in ("stiffness", "damping", "viscous"))
            inertia = 0.5 * h * sum(dampings) + 0.25 * h * h * stiffness
            inertia = inertia if type(inertia) is not Scalar else maximum(inertia, 0.0)
            if type(inertia) is Scalar or inertia > 0.0:
                armatures[link] = (*armatures.get(link, ()), (i, inertia))
                place = int(tree.u_start[link]) + i
                added[place] = added[place] + inertia
    if all(is_zero(x) for x in added):
        return system, None
    model, maker = replace(system.model, tree=replace(tree, armatures=armatures)), system.kernels.maker
    shared = system.kernels.kept(("stiffened", digest(added)), lambda: Kernels(model, maker).shared)
    kernels = Kernels(model, maker, shared)
    return type(system)(kernels, system.plans.alike(kernels)), added


def _number(value: Any) -> Number:
    """A number or an expression of parameters; zero for what is none, such as a law."""
    return value if type(value) is Scalar else float(value) if isinstance(value, (int, float, np.floating)) else 0.0


def _unlimited(system: Machine) -> Machine:
    """The same machine with actuators that give what they are asked for."""
    if not system.model.tree.actuators:
        return system
    free = replace(system.model, tree=replace(system.model.tree, actuators={}))
    kernels = system.kernels.kept("unlimited", lambda: Kernels(free, system.kernels.maker))
    return type(system)(kernels.for_model(free))


class PushedRhs(Rhs):
    """The equations of motion of some states, with joint forces that a method adds for itself and that limits of
    actuators do not know."""

    def __init__(self, system: Machine, added: Sequence[Number] | None, *given: Any) -> None:
        super().__init__(system, *given)
        self._limited, self.system = self.system, _unlimited(self.system)
        self.extra: Floats | None = None  #: (states, nu)
        self._added, self._inverse = added, np.zeros(0)

    def forces(self, t: npt.ArrayLike, q: Floats, u: Floats) -> tuple[Floats, Floats | None]:
        tau, wrenches = super().forces(t, q, u)
        tau = actuator_forces(self._limited.plans, q, u, tau, t=t)
        return tau if self.extra is None else tau + self.extra, wrenches

    def accelerated(self, t: float, q: Floats, u: Floats, extra: Floats) -> Floats:
        """Accelerations with forces that are added."""
        self.extra = extra if extra.any() else None
        try:
            return self.accelerations(t, np.concatenate([q, u], axis=-1))[2]
        finally:
            self.extra = None

    def factor(self, t: float, q: Floats, u: Floats) -> None:
        """How accelerations answer to unit forces along all speeds: accelerations are linear in them."""
        tau, wrenches = self.forces(t, q, u)
        system, nu = self.system, u.shape[-1]
        given = tau[:, None] + np.concatenate([np.zeros((1, nu)), np.eye(nu)])
        if system.model.batched:
            system = system.with_parameters(**{name: np.reshape(v, (-1, 1)) for name, v in system.model.values.items()
                                               if np.ndim(v)})
        found = system.forward_dynamics(q[:, None], u[:, None], given, t=t,
                                        wrenches=None if wrenches is None else wrenches[:, None])
        self._inverse = np.swapaxes(found[:, 1:] - found[:, :1], 1, 2)

    def apply(self, column: Floats) -> Floats:
        """The answer to a column of forces, (states, nu)."""
        return np.asarray((self._inverse @ column[..., None])[..., 0])

    def energies(self, t: float, q: Floats, u: Floats) -> Floats:
        """The energy of the machine, with the inertia that is added, (states, 3)."""
        kinetic = self.system.kernels.run("kinetic_energy", {"q": q, "u": u}, None, t)[..., 0]
        return np.stack([kinetic, self.system.energy(q, u, t=t) - kinetic, 0.0 * kinetic], axis=-1)

    def added(self, nu: int) -> Floats:
        """Inertia that the machine has in addition, (states or 1, nu)."""
        if self._added is None:
            return np.zeros((1, nu))
        values = with_values(self.system.plans, tuple(self._added))
        return np.stack(np.broadcast_arrays(*(np.asarray(x, dtype=float).reshape(-1) for x in values)), axis=-1)


class MoreauRun(ReferenceRun):
    """Fixed steps of a batch of states with rigid contacts."""

    def __init__(self, rhs: Rhs, kind: Integrator, y: Floats, start: float, step: float, hold: int = 1) -> None:
        super().__init__(rhs, kind, y, start, step, hold)
        self.tree = rhs.system.model.tree
        self.places = sum(pair.places for pair in self.tree.contacts)
        self._system, self._added = stiffened(rhs.system, step)
        #: accelerations by contacts (nu), impulses (3 places), the largest residual, slots needed
        self._handed_on = np.zeros((len(y), kept_numbers(self.tree.nu, self.places)))
        self._most, self._every = max(min(self.places, SLOTS), 1), 1
        self._parts: dict[bytes, PushedRhs] = {}
        self._now: PushedRhs | None = None  #: the states that are computed, and how many they are
        self._count = 0
        self._backend = backend_named(BACKENDS[0])  # what compiles the method
        self._steppers: dict[tuple[int, int], ContactStepper] = {}
        self._trouble: list[BaseException] = []
        self._acting = np.zeros((len(y), 3 * self.places))
        self.recorded = True  #: whether forces at the samples are wanted
        self._noted: list[Floats] = []

    @property
    def residual(self) -> float:
        """The largest of all steps [m/s]."""
        return float(self._handed_on[:, -2].max(initial=0.0))

    def cautions(self) -> list[str]:
        return contact_cautions(self.tree, self.step, self.residual, self._handed_on)

    @property
    def forces(self) -> Floats:
        """Forces at all places, in the axes of the ground link [N], at the samples of the last call."""
        return np.stack(self._noted) if self._noted else np.zeros((0, *self._acting.shape))

    # -- steps ----------------------------------------------------------------------------------
    def advance(self, steps: int, every: int) -> Floats:
        self._every, self._noted = every, []
        return super().advance(steps, every)

    def _all(self, t: float) -> None:
        failed = {f.state for f in self.failures}
        states = np.array([i for i in range(len(self.y)) if i not in failed], dtype=np.int64)
        width = width_of(self.kind, self._backend, len(self.y))
        for k in range(0, len(states), width):
            self._some(states[k:k + width], t)
        if (self.done + 1) % self._every == 0 and self.recorded:
            self._noted.append(self._acting.copy())

    def _some(self, states: Ints, t: float) -> None:
        """One step of some states; if that fails, one after another."""
        try:
            self.y[states], self._handed_on[states], self._acting[states] = self._taken(self.y[states], t, self.step,
                                                                                         states)
        except (BellcrankError, ArithmeticError) as error:
            if len(states) > 1:
                for i in range(len(states)):
                    self._some(states[i:i + 1], t)
            elif not any(self._in_pieces(states, t, n) for n in PIECES):
                self._acting[states] = np.nan
                self.failures.append(Failure(int(states[0]), t, str(error)))

    def _in_pieces(self, states: Ints, t: float, n: int) -> bool:
        """A step of one state in n pieces; false, and nothing is changed, if one of them fails."""
        y, known, h, forces = self.y[states], self._handed_on[states], self.step / n, []
        try:
            for k in range(n):
                y, self._handed_on[states], acting = self._taken(y, t + k * h, h, states)
                forces.append(acting)
        except (BellcrankError, ArithmeticError):
            self._handed_on[states] = known
            return False
        self.y[states], self._acting[states] = y, np.mean(forces, axis=0)
        return True

    def partial(self, y: Floats, t: float, step: float, state: int = 0) -> Floats:
        new, _, acting = self._taken(y[None], t, step, np.array([state]))
        forces = np.full_like(self._acting, np.nan)
        forces[state] = acting[0]
        self._noted = [forces] if self.recorded else []
        return np.asarray(new[0])

    def _taken(self, y: Floats, t: float, step: float, states: Ints) -> tuple[Floats, Floats, Floats]:
        """Some states after a step, what it hands on, and forces at places."""
        self._now, self._count = self._part(states), len(states)
        while True:
            stepper = self._stepper(width_of(self.kind, self._backend, len(self.y)))
            got = stepper.run(y, {"contact": self._handed_on[states]}, t, step, 0, 1, 1)
            if self._trouble:
                error, self._trouble[:] = self._trouble[0], []
                raise error
            need = int(got.inputs[:, -1].max())
            if need <= self._most:
                break
            self._most = min(max(need, 2 * self._most), self.places)
        if not got.done.all():
            raise BellcrankError(f"the step from t = {t:.6g} s gives numbers that are not finite: the motion is too "
                                 "fast for the step, or the machine cannot move on; take smaller steps")
        acting = np.zeros((len(y), 0)) if got.forces is None else got.forces[0]
        return got.y, got.inputs, acting

    def _part(self, states: Ints) -> PushedRhs:
        """The equations of some states, with the forces of now."""
        whole, system, count = self.rhs, self._system, len(self.y)

        def of(rows: Floats) -> Floats:
            return rows[states] if len(rows) > 1 else rows

        key = states.tobytes()
        if key not in self._parts:
            if system.model.batched:
                system = system.with_parameters(**{
                    name: np.reshape(v, -1)[states] for name, v in system.model.values.items() if np.size(v) == count})
            self._parts[key] = PushedRhs(system, self._added, of(whole.tau), None, whole.drives, whole.closing)
        part = self._parts[key]
        part.tau, part.wrenches = of(whole.tau), None if whole.wrenches is None else of(whole.wrenches)
        return part

    # -- functions of the machine, for the driver -----------------------------------------------
    def _stepper(self, width: int) -> ContactStepper:
        """The method for so many states side by side, kept for the next step."""
        found = self._steppers.get((width, self._most))
        if found is None:
            found = ContactStepper(self._code(width), self.kind, self.tree, self._most)
            self._steppers[width, self._most] = found
        found.recorded = self.places > 0
        return found

    def _code(self, width: int) -> Code:
        tree, functions = self.tree, self.rhs.system.kernels.functions
        nq, nu = tree.nq, tree.nu
        sizes = {**state_sizes(tree), **step_sizes(tree, functions["contact_places"]), "shared": 0,
                 "inputs": self._handed_on.shape[1]}

        def calls(buffer: str, start: int, text: Callable[[PushedRhs, float, Mapping[str, Floats]], Floats]
                  ) -> tuple[Call, ...]:
            return (Call(PythonBlock(lambda b: self._computed(text, b, sizes[buffer] - start)), buffer, start),)

        def run(name: str, *reads: str) -> Callable[[PushedRhs, float, Mapping[str, Floats]], Floats]:
            return lambda rhs, t, b: rhs.system.kernels.run(name, {x: b[x] for x in reads}, None, t)

        def factored(rhs: PushedRhs, t: float, b: Mapping[str, Floats]) -> Floats:
            rhs.factor(t, b["q"], b["u"])
            return np.zeros((1, nu))

        return Code(
            self._backend, nq, nu, width, sizes, {}, calls("rate", 0, run("coordinate_rates", "q", "u")),
            calls("rate", nq, lambda rhs, t, b: rhs.accelerated(t, b["q"], b["u"], b["extra"])),
            calls("stage", 0, lambda rhs, t, b: rhs.correct(np.concatenate([b["q"], b["u"]], axis=-1), t)), 0, (),
            lambda: (),
            {"contact": 0}, {
                "placing": calls("stage", 0, run("displaced", "q", "dq")),
                "touching": calls("touch", 0, run("contact_places", "q", "u")) if self.places else (),
                "factor": calls("base", 0, factored),
                "apply": calls("answer", 0, lambda rhs, t, b: rhs.apply(b["column"])),
                "adding": calls("added", 0, lambda rhs, t, b: rhs.added(nu)),
                "energies": calls("energy", 0, lambda rhs, t, b: rhs.energies(t, b["q"], b["u"]))})

    def _computed(self, text: Callable[[PushedRhs, float, Mapping[str, Floats]], Floats], buffers: Mapping[str, Floats],
                  size: int) -> Floats:
        """What a function gives for the states in buffers, (entries, lanes); NaN where it fails."""
        rhs, nq = self._now, self.tree.nq
        assert rhs is not None
        n, lanes = self._count, buffers["stage"].shape[1]
        stage, dq, extra, column = (buffers[name].T[:n] for name in ("stage", "none", "extra", "column"))
        try:
            if self._trouble:
                return np.full((size, lanes), np.nan)
            found = text(rhs, float(buffers["clock"][0, 0]), {"q": stage[:, :nq], "u": stage[:, nq:], "dq": dq,
                                                              "extra": extra, "column": column})
        except BaseException as error:  # goes on behind the compiled code
            self._trouble.append(error)
            return np.full((size, lanes), np.nan)
        out = np.broadcast_to(found, (n, found.shape[-1])).T
        return np.concatenate([out, np.repeat(out[:, -1:], lanes - n, axis=1)], axis=1)
