"""The compiled machine and its public methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, batch, check_time, flat, wrench_array
from bellcrank.errors import AssemblyError, ModelError, NotYetError, SingularError, StateError
from bellcrank.formulations import cite
from bellcrank.lowering.function import Function
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.count import OperationCount
from bellcrank.system.bound import FORCED
from bellcrank.system.evaluator import (
    UNROLL_LINKS,
    CompiledEvaluator,
    Evaluator,
)
from bellcrank.system.kinematics import BodyPose, Wrenches
from bellcrank.system.variants import Variants
from bellcrank.topology.builder import build_tree
from bellcrank.topology.release import lock, release
from bellcrank.topology.tree import Tree

if TYPE_CHECKING:
    from os import PathLike

    from bellcrank.simulate.events import Event
    from bellcrank.simulate.result import Result

__all__ = ["BodyPose", "System"]


class System(Variants):
    """An immutable machine to compute with; made by `bellcrank.compile`.

    Every method takes arrays whose last axis is the joint coordinates `q` (nq), speeds `u`, forces `tau` or
    accelerations `udot` (nu each), in the order of `coordinate_names` and `speed_names`; leading axes are a
    batch and broadcast. Results are new arrays. NaN and infinity in the input raise `StateError`. Forces tau may
    also be a mapping {joint or "joint.coordinate": values}, zero where nothing is said.

    `wrenches` are external: an array (..., bodies, 6) in the order of `body_names` or a mapping
    {body: (..., 6)}, each [moment; force] in world axes about the body frame's origin. `t` is the time for
    prescribed motions and time-dependent wrenches.
    """

    def __init__(self, mechanism: Mechanism, tree: Tree, method: str, backend: str,
                 functions: Mapping[str, Function], make: Callable[[Tree], Evaluator],
                 parameters: Mapping[str, npt.ArrayLike] | None = None, *, actuated: Sequence[str] = (),
                 independent: Sequence[str] = (), baumgarte: tuple[float, float] = (0.0, 0.0)) -> None:
        super().__init__(mechanism, tree.cut_names)
        self.mechanism, self.tree, self.method, self.backend = mechanism, tree, method, backend
        self._functions, self._make = functions, make
        #: springs between links of large machines act as external wrenches, computed outside the compiled code
        self._sprung = False
        self._evaluator = make(tree)
        if tree.pairs and isinstance(self._evaluator, CompiledEvaluator) and (
                tree.n > UNROLL_LINKS or self._evaluator.schedule == "rolled"):
            self._sprung = True
            self._evaluator = make(replace(tree, pairs=()))
        self._values = {**tree.parameters, **(parameters or {})}
        self._doors: dict[str, Any] = {}
        self._zeros = np.zeros(tree.nu)
        #: what is known of the loops; shared by copies with other parameters only if geometry does not depend on them
        self.actuated: tuple[str, ...] = tuple(actuated)  #: joints with drives, as given to `compile`
        self._plan_state = {"independent": tuple(independent), "baumgarte": baumgarte}
        self._planned: dict[Any, Evaluator] = {}
        self._programs: dict[Any, Any] = {}  #: compiled equations of motion; see `simulate`

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and "_programs" in self.__dict__:  # what `__init__` sets last
            raise AttributeError(f"a System is immutable: {name!r} cannot be set; compile another one, or see "
                                 "with_parameters, release and lock")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a System is immutable: {name!r} cannot be removed")

    # -- names and sizes ------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.tree.name

    @property
    def dof(self) -> int:
        """Degrees of freedom: speeds that are not prescribed, less the conditions of the loops that count."""
        free = len(self.tree.free_speeds())
        return free - len(self._reference_plan().kept) if self.tree.looped else free

    @property
    def body_names(self) -> tuple[str, ...]:
        """All bodies but the ground, in the order they were added."""
        return self.tree.body_names[1:]

    @property
    def parameters(self) -> dict[str, Any]:
        """Current values of the parameters."""
        return dict(self._values)

    @cached_property
    def _has_door(self) -> bool:
        """Whether one state may go straight to compiled forward dynamics."""
        if self._by_kkt or self._sprung:
            return False
        if not self.tree.looped:
            return True
        try:
            self._reference()
        except AssemblyError:  # plans are made where the states are
            return False
        return True

    @cached_property
    def _has_inverse_door(self) -> bool:
        """Whether one state may go straight to compiled inverse dynamics."""
        return not (self.tree.looped or self.tree.joint_forces or self._sprung)

    @cached_property
    def mass(self) -> float:
        """Mass of all moving bodies [kg], parameters at their defaults. What is welded to the ground is part of the
        ground: here, in `center_of_mass`, `momentum` and `potential_energy`."""
        return float(self.tree.inertia[1:, 0].sum())

    def cite(self) -> str:
        """BibTeX of the formulation in use."""
        return cite(self.method)

    # -- evaluation -----------------------------------------------------------------------------
    def _run(self, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches = None, t: npt.ArrayLike = 0.0,
             evaluator: Evaluator | None = None) -> Floats:
        """Evaluate a function on a batch; shape (*batch axes, size)."""
        function = self._functions[name]
        run = evaluator or self._evaluator
        check_time(t)
        if self._sprung and name in FORCED and not run.tree.pairs:
            wrenches = self._with_springs(given, wrenches, t)
        names = run.inputs(function, wrenches is not None)
        arrays = [self._input(n, size, given, wrenches, t, run.tree) for n, size in names.items()]
        ready, lead, n = batch(arrays)
        out, finite = run.run(function, wrenches is not None, ready, n)
        if not finite:
            self._explain(name, list(names), ready, lead, out)
        return out.reshape(*lead, out.shape[-1])

    def _input(self, name: str, size: int, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
               t: npt.ArrayLike, tree: Tree) -> Floats:
        if name == "t":
            return np.asarray(t, dtype=np.float64)[..., None]
        if name == "parameters":
            values = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in self._values.values()))
            return np.stack(values, axis=-1)
        if name == "wrench":
            assert wrenches is not None
            ordered = wrench_array(wrenches, self.body_names)[..., wrench_order(tree), :]
            return ordered.reshape(*ordered.shape[:-2], size)
        value = given[name]
        what = "the coordinates" if name == "q" else "one for every speed"
        return flat(name, value, size, what)

    def _explain(self, name: str, names: list[str], arrays: list[Floats], lead: tuple[int, ...], out: Floats) -> None:
        """Say which input is not finite, or which joint is singular."""
        for label, array in zip(names, arrays, strict=True):
            bad = np.argwhere(~np.isfinite(array))
            if len(bad):
                state, entry = (int(x) for x in bad[0])
                where = f", batch index {tuple(int(i) for i in np.unravel_index(state, lead))}" if lead else ""
                raise StateError(f"{name}: {label}[{entry}]{self._entry_name(label, entry)} is "
                                 f"{array[state, entry]}{where}; inputs must be finite")
        state = int(np.argwhere(~np.isfinite(out))[0, 0])
        where = f" at batch index {tuple(int(i) for i in np.unravel_index(state, lead))}" if lead else ""
        self._explain_springs({label: a[min(state, len(a) - 1)] for label, a in zip(names, arrays, strict=True)}, where)
        raise SingularError(f"{name} of {self.name!r} has no finite result{where}: the state or the machine is "
                            "singular (an inertia vanishes, a quaternion is zero, or numbers overflow)")

    def _entry_name(self, label: str, entry: int) -> str:
        if label == "q":
            return f" ({self.coordinate_names[entry]})"
        if label == "parameters":
            return f" ({list(self._values)[entry]})"
        if label == "wrench":
            return f" (on body {self.body_names[wrench_order(self.tree)[entry // 6]]!r})"
        return f" ({self.speed_names[entry]})" if label in ("u", "p", "tau", "udot") else ""

    # -- dynamics -------------------------------------------------------------------------------
    def forward_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START,
                         loop_tau: Mapping[str, npt.ArrayLike] | None = None) -> Floats:
        """Accelerations udot of the joints for joint forces tau (zero if not given). Cost: O(n) ("recursive").

        `loop_tau` {joint: forces} drives joints that close loops.

        >>> import bellcrank as bc
        >>> pendulum = bc.compile(bc.load("pendulum"))
        >>> pendulum.forward_dynamics([0.5], [0.0]).round(6)
        array([-4.703165])
        """
        if tau is None:
            tau = self._zeros
        if t is not START:
            check_time(t)
        if loop_tau:
            if self.tree.actuators:
                raise NotYetError("forward_dynamics: loop_tau does not go together with actuators, whose limits would "
                                  "act on it; cut other joints with cut= and use tau")
            tau = np.asarray(self._tau(tau), dtype=float) + self.loop_drive(q, loop_tau, t=t)
        if wrenches is None and self._has_door:
            out = self._single("forward_dynamics", q, u, tau)
            if out is not None:
                return out
        tau = self._tau(tau)
        if self.tree.looped:
            return self._run_looped({"q": q, "u": u, "tau": tau}, wrenches, t)
        return self._run("forward_dynamics", {"q": q, "u": u, "tau": tau}, wrenches, t)

    def inverse_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START, actuated: Sequence[str] | None = None,
                         weights: Mapping[str, float] | None = None) -> Floats:
        """Joint forces tau for accelerations udot. Cost: O(n).

        With loops: the forces of the `actuated` joints (those given to `compile`, else the independent ones), zero at
        the others. More drives than degrees of freedom: the smallest forces, in the measure of `weights` {joint: w}
        (the sum of w tau^2 is least); too few: an error. Cost with loops: O(n m^2).
        """
        if t is not START:
            check_time(t)
        if wrenches is None and actuated is None and self._has_inverse_door:
            out = self._single("inverse_dynamics", q, u, udot)
            if out is not None:
                return out
        if self.tree.looped:
            return self._looped_inverse(q, u, udot, actuated, weights, wrenches, t)
        if actuated is not None:
            return self._actuated_tree(self.inverse_dynamics(q, u, udot, wrenches=wrenches, t=t), actuated)
        return self._without_laws(self._run("inverse_dynamics", {"q": q, "u": u, "udot": udot}, wrenches, t), q, u, t)

    def _actuated_tree(self, forces: Floats, actuated: Sequence[str]) -> Floats:
        """Forces of a tree, all of which must be those of actuated joints: nothing else can make the motion."""
        driven = np.array([v for name in actuated for v in self._speed_entries(name)], dtype=np.int64)
        others = np.setdiff1d(self.tree.free_speeds(), driven)
        size = float(np.abs(forces).max(initial=0.0))
        for v in others.tolist():
            if np.abs(forces[..., v]).max(initial=0.0) > 1e-9 * (1.0 + size):
                raise ModelError(f"inverse_dynamics: the motion needs a force at {self.speed_names[v]}, which is not "
                                 f"among the actuated joints ({', '.join(actuated) or 'none'})")
        forces[..., others] = 0.0
        return forces

    def _tree_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, wrenches: Wrenches,
                     t: npt.ArrayLike) -> Floats:
        out = self._single("inverse_dynamics", q, u, udot) if wrenches is None and not self._sprung else None
        if out is None:
            out = self._run("inverse_dynamics", {"q": q, "u": u, "udot": udot}, wrenches, t)
        return self._without_laws(out, q, u, t)

    def _without_laws(self, forces: Floats, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
        """Joint forces less what springs and other laws on the joints contribute."""
        if not self.tree.joint_forces:
            return forces
        return forces - self._run("joint_laws", {"q": q, "u": u}, None, t)

    def drive_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                     wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
        """All joint forces: tau where the motion is free, the enforcing force where it is prescribed. O(n)."""
        udot = self.forward_dynamics(q, u, tau, wrenches=wrenches, t=t)
        if self.tree.looped:
            return self._looped_drives(q, u, tau, udot, wrenches, t)
        return self.inverse_dynamics(q, u, udot, wrenches=wrenches, t=t)

    def mass_matrix(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Joint-space mass matrix, shape (..., nu, nu); with loops that of the spanning tree. Cost: O(n * depth)."""
        flat_matrix = self._run("mass_matrix", {"q": q}, None, t)
        return flat_matrix.reshape(*flat_matrix.shape[:-1], self.nu, self.nu)

    def mass_factors(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """U (..., nu, nu) and D (..., nu) with ``mass_matrix = U diag(D) U^T``, U unit triangular in the order of
        the tree (columns of outboard joints reach inboard rows). Cost: O(n * depth)."""
        columns = self._run("factor_columns", {"q": q}, None, t)
        diagonal = self._run("factor_diagonal", {"q": q}, None, t)
        return columns.reshape(*columns.shape[:-1], self.nu, self.nu), diagonal

    def momenta(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Canonical momenta p conjugate to the speeds u, p = M u plus prescribed parts. Cost: O(n)."""
        return self._run("momenta", {"q": q, "u": u}, None, t)

    def hamilton(self, q: npt.ArrayLike, p: npt.ArrayLike, tau: Forces | None = None, *,
                 wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """Hamilton's equations: speeds u and rates dp/dt of the state (q, p). Cost: O(n).

        What p says about prescribed speeds is ignored, and their dp/dt lacks the drive force. With loops, p is M u
        plus the loops' impulses, which need not be known: start with `momenta` of consistent speeds.
        """
        check_time(t)
        given = {"q": q, "p": p, "tau": self._zeros if tau is None else self._tau(tau)}
        pairs = self._run_looped(given, wrenches, t, "constrained_hamilton") if self.tree.looped else \
            self._run("hamilton", given, wrenches, t)
        pairs = pairs.reshape(*pairs.shape[:-1], self.nu, 2)
        return pairs[..., 0], pairs[..., 1]

    def bias(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
        """Joint forces at zero acceleration: velocity, gravity and external terms. Cost: O(n)."""
        return self._without_laws(self._run("bias", {"q": q, "u": u}, wrenches, t), q, u, t)

    def reactions(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                  udot: npt.ArrayLike | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = 0.0
                  ) -> dict[str, Floats]:
        """Wrench [moment; force] that each joint exerts on its outboard body, drive included, shape (..., 6).

        About the joint's own origin on that body, in that body's axes; joints that close loops act on their child.
        It is what moves the body: along a coordinate with an armature, the drive less what the rotor takes.
        Accelerations are those of `forward_dynamics` unless given. If conditions are redundant (see
        `bellcrank.analyze.explain`), the reactions are not determined by mechanics alone: these are the ones whose
        closing loads are smallest. Cost: O(n), with loops O(n m^2).
        """
        if tau is None and udot is not None and self.tree.looped:
            tau = self.inverse_dynamics(q, u, udot, wrenches=wrenches, t=t)
        elif tau is not None:
            tau = self.actuator_forces(q, u, tau, t=t)
        if udot is None:
            udot = self.forward_dynamics(q, u, tau, wrenches=wrenches, t=t)
        loops: dict[str, Floats] = {}
        if self.tree.looped:
            loops, loads = self._loop_reactions(q, u, self._zeros if tau is None else tau, udot, wrenches, t)
            wrenches = loads if wrenches is None else wrench_array(wrenches, self.body_names) + loads
        run, tree = self._reaction_evaluator, self._reaction_evaluator.tree
        raw = self._run("joint_wrenches", {"q": q, "u": u, "udot": udot}, wrenches, t, run)
        raw = raw.reshape(*raw.shape[:-1], tree.n, 2, 3)
        turn = tree.body_turn[[members[0] for members in tree.members[1:]]]  # body axes in link axes
        local = np.einsum("...nkj,nji->...nki", raw, turn)
        return {name: local[..., i, :, :].reshape(*local.shape[:-3], 6)
                for i, name in enumerate(tree.joint_names[1:])} | loops

    @cached_property
    def _reaction_evaluator(self) -> Evaluator:
        """Every body a link of its own, frames at the joints, so that welds have reactions too."""
        tree = build_tree(self.mechanism, merge_welds=False, free_frames=False, cut=self.tree.cut_names)
        tree = lock(release(tree, self._released), self._locked)
        return self._make(replace(tree, pairs=()) if self._sprung else tree)

    # -- motion ---------------------------------------------------------------------------------
    def simulate(self, state: Any, duration: float, *, step: float | None = None, stepper: str = "rk4",
                 output: float | Sequence[float] | None = None, tau: Forces | None = None,
                 wrenches: Any = None, control: Any = None, events: Sequence[Event] = (), rtol: float = 1e-9,
                 atol: float = 1e-12, file: str | PathLike[str] | None = None,
                 progress: Callable[[float, float], object] | None = None, threads: int | None = None) -> Result:
        """The motion from a state over `duration` seconds, as an `xarray.Dataset` with names and units.

        `state` is what `assemble` returns, or (q, u); leading axes are a batch, run side by side in lanes and threads.

        `stepper` with a fixed `step` [s] (default 1 ms): "rk4", "rk8", "semi_implicit", "radau" (implicit, for stiff
        springs), "gauss" (keeps energy over long runs); with tolerances `rtol` and `atol`: "dopri5", "dop853", or
        other libraries' "scipy/DOP853", "sundials/BDF", ... A duration that is no multiple of the step shortens the
        step a little. Loops are closed in position and velocity after every step. No Python runs between steps.

        `output` is the interval of the samples [s], or with tolerances their times. `tau` are constant joint forces,
        `wrenches` constant external ones; `control` (and `wrenches`) may be functions of (t, q, u): see `Sampled`,
        `Traced`. `events` are `Event` objects. `file` streams the samples to a NetCDF file. `progress(done, duration)`
        is called now and then.

        An interrupt, a failing callback, a singular position or numbers that grow beyond all bounds end the run with a
        `SimulationWarning`; what was computed is returned, with ``status`` and ``reason`` among its attributes. So does
        energy that changes although nothing works (``warnings``). Cost: O(n) per step.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> result = linkage.simulate(linkage.assemble(q={"A": 0.5}), duration=0.5)
        >>> result.attrs["status"], result.q.dims
        ('finished', ('time', 'coordinate'))
        >>> float(result.loop_error.max()) < 1e-12
        True
        """
        from bellcrank.simulate.run import simulate

        return simulate(self, state, duration, step=step, stepper=stepper, output=output, tau=tau, wrenches=wrenches,
                        control=control, events=events, rtol=rtol, atol=atol, file=file, progress=progress,
                        threads=threads)

    # -- energy and momentum --------------------------------------------------------------------
    def _totals(self, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike) -> Floats:
        return self._run("totals", {"q": q, "u": self._zeros if u is None else u}, None, t)

    def kinetic_energy(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Kinetic energy [J]. Cost: O(n)."""
        return self._totals(q, u, t)[..., 10]

    def potential_energy(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Potential energy of gravity [J] of all moving bodies: -mass * gravity . center_of_mass. What is welded to the
        ground is part of the ground; it would add a constant. Cost: O(n).

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> bare = bc.compile(m).potential_energy([0.5])
        >>> bolts = m.add_joint("bolts", bc.Weld(), m.ground, m.add_body("frame", bc.Inertia(80.0)))
        >>> bool(bc.compile(m).potential_energy([0.5]) == bare)
        True
        """
        return self._totals(q, None, t)[..., 11]

    def momentum(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """[angular momentum about the world's origin; linear momentum], world axes, shape (..., 6)."""
        totals = self._totals(q, u, t)
        return np.concatenate([totals[..., 7:10], totals[..., 4:7]], axis=-1)

    def center_of_mass(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Centre of mass [m] of all moving bodies (what is welded to the ground is part of it) in the world, shape
        (..., 3)."""
        totals = self._totals(q, None, t)
        return totals[..., 1:4] / totals[..., 0:1]

    # -- cost -----------------------------------------------------------------------------------
    def operation_count(self, function: str = "forward_dynamics") -> OperationCount:
        """Exact number of scalar operations of one evaluation, by kind, as the compiled code executes them.

        `function` is one of the methods "forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "momenta" and
        "hamilton", without external wrenches. With loops, `forward_dynamics` and `hamilton` are those of the closed
        machine; `bias`, `mass_matrix` and `momenta` are those of its spanning tree, as the methods are. What LAPACK
        or NumPy has a part in, such as `inverse_dynamics` with loops, is refused with the reason.

        >>> import bellcrank as bc
        >>> bc.compile(bc.load("pendulum")).operation_count().divs
        0
        """
        from bellcrank.system.counts import count_operations

        return count_operations(self, function)

    def __repr__(self) -> str:
        how = f" ({self._interpreted})" if self._interpreted else ""
        return (f"<System {self.name!r}: {len(self.body_names)} bodies, nq={self.nq}, nu={self.nu}, "
                f"method={self.method!r}, backend={self.backend!r}{how}>")


def wrench_order(tree: Tree) -> list[int]:
    """Bodies link by link, as kernels read their wrenches; those that cannot move last."""
    return [b - 1 for members in tree.members[1:] for b in members] + [b - 1 for b in tree.members[0] if b]
