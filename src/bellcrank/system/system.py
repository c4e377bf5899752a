"""The compiled machine as users see it: a face over `Model`, `Kernels` and `LoopPlans`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, check_time
from bellcrank.loops.closer import State
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.count import OperationCount
from bellcrank.system import (
    assembly,
    binding,
    body_kinematics,
    counts,
    force_elements,
    forward_dynamics,
    inverse_dynamics,
    loop_errors,
    reactions,
    reduced,
    tree_dynamics,
    variants,
)
from bellcrank.system.at_once import at_body, energy_once, matrix, number, pose_once, reactions_once, tree_bias, vector
from bellcrank.system.at_state import of_motion, of_position, u_twice
from bellcrank.system.held_values import Values
from bellcrank.system.kernels import Door, Kernels, LateDoor, Wrenches
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.model import Model
from bellcrank.system.reduced import ReducedModel

if TYPE_CHECKING:
    from os import PathLike

    from bellcrank.simulate.events import Event
    from bellcrank.simulate.result import Result

__all__ = ["System"]

_ORIGIN = (0.0, 0.0, 0.0)


class System:
    """An immutable machine to compute with; made by `bellcrank.compile`.

    Every method takes arrays whose last axis is the joint coordinates `q` (nq), speeds `u`, forces `tau` or
    accelerations `udot` (nu each), in the order of `coordinate_names` and `speed_names`; leading axes are a
    batch and broadcast. Results are new arrays. NaN and infinity in the input raise `StateError`. Forces tau may
    also be a mapping {joint or "joint.coordinate": values}, zero where nothing is said.

    A `State` may stand in the place of q, or of q and u, in every method: ``forward_dynamics(state, tau)``,
    ``pose(state, body)``. Its time is used, unless `t` is given.

    `wrenches` are external: an array (..., bodies, 6) in the order of `body_names` or a mapping
    {body: (..., 6)}, each [moment; force] in world axes about the body frame's origin. `t` is the time for
    prescribed motions and time-dependent wrenches.

    It is made of three parts: `model` is what was compiled (mechanism, tree, method, options), `kernels` are its
    functions as compiled code, `plans` know how its loops are taken apart. What is asked about many states is in
    `bellcrank.analyze`.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5})
    >>> bool((linkage.forward_dynamics(state) == linkage.forward_dynamics(state.q, state.u)).all())
    True
    """

    model: Model  #: what was compiled
    kernels: Kernels  #: its functions as callables
    plans: LoopPlans  #: its loops
    nq: int  #: number of coordinates
    nu: int  #: number of speeds
    _zeros: Floats

    def __init__(self, kernels: Kernels, plans: LoopPlans | None = None) -> None:
        model = kernels.model
        self.__dict__.update(model=model, kernels=kernels, plans=plans or LoopPlans(kernels), nq=model.tree.nq,
                             nu=model.tree.nu, _zeros=np.zeros(model.tree.nu))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a System is immutable: {name!r} cannot be set; compile another one, or see "
                             "with_parameters, release and lock")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a System is immutable: {name!r} cannot be removed")

    def __copy__(self) -> Self:
        return self.with_parameters()

    def __reduce__(self) -> Any:
        """The model and how it was compiled, not the code, which is made again (from the cache on disk) when it is
        first needed. Results of the copy are the same to the last bit on the same computer."""
        return type(self), (self.kernels, self.plans)

    def __repr__(self) -> str:
        interpreted = forward_dynamics.interpreted(self.plans)
        return (f"<System {self.model.name!r}: {len(self.body_names)} bodies, nq={self.nq}, nu={self.nu}, "
                f"method={self.model.method!r}, backend={self.kernels.backend!r}"
                f"{f' ({interpreted})' if interpreted else ''}>")

    # -- names and sizes ------------------------------------------------------------------------
    @property
    def dof(self) -> int:
        """Degrees of freedom: speeds that are not prescribed, less the conditions of the loops that count."""
        free = len(self.model.tree.free_speeds())
        return free - len(self.plans.general().kept) if self.model.tree.looped else free

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that have coordinates, in the order they were added; those that were cut have none."""
        return self.model.configuration.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """All bodies but the ground, in the order they were added."""
        return self.model.body_names

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the entries of q, such as ``hip.angle``."""
        return self.model.configuration.coordinate_names

    @property
    def speed_names(self) -> tuple[str, ...]:
        """Names of the entries of u, udot and tau."""
        return self.model.configuration.speed_names

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of what closes loops: cut joints, then other constraints and couplers."""
        return loop_errors.loop_names(self.plans)

    @property
    def parameters(self) -> dict[str, Any]:
        """Current values of the parameters."""
        return dict(self.model.values)

    # -- configuration space --------------------------------------------------------------------
    def neutral(self) -> Floats:
        """q with every joint at its zero position."""
        return self.model.configuration.neutral()

    def random_state(self, rng: np.random.Generator | None = None, size: tuple[int, ...] | int = ()
                     ) -> tuple[Floats, Floats]:
        """Random q (angles within a turn, lengths of order one, uniform orientations) and u of order one."""
        return self.model.configuration.random_state(rng, size)

    def integrate(self, q: npt.ArrayLike, du: npt.ArrayLike) -> Floats:
        """q after moving with the constant speeds `du` for unit time (``u * dt`` for a step)."""
        return self.model.configuration.integrate(q, du)

    def difference(self, q0: npt.ArrayLike, q1: npt.ArrayLike) -> Floats:
        """The constant speeds that lead from q0 to q1 in unit time, shape (..., nu)."""
        return self.model.configuration.difference(q0, q1)

    def normalize(self, q: npt.ArrayLike) -> Floats:
        """q with unit quaternions."""
        return self.model.configuration.normalize(q)

    # -- dynamics -------------------------------------------------------------------------------
    @cached_property
    def _forward_door(self) -> Door | None:
        return forward_dynamics.forward_door(self.plans)

    @cached_property
    def _forward_batch(self) -> LateDoor:
        return LateDoor(lambda: forward_dynamics.forward_batch_door(self.plans))

    @cached_property
    def _inverse_batch(self) -> LateDoor:
        return LateDoor(lambda: inverse_dynamics.inverse_batch_door(self.plans))

    @cached_property
    def _reaction_doors(self) -> reactions.ReactionDoors:
        return reactions.reaction_doors(self.plans)

    @cached_property
    def _inverse_door(self) -> Door | None:
        return inverse_dynamics.inverse_door(self.plans)

    @overload
    def forward_dynamics(self, q: State, u: Forces | None = None, /, *, wrenches: Wrenches = None,
                         t: npt.ArrayLike = START, loop_tau: Mapping[str, npt.ArrayLike] | None = None) -> Floats: ...
    @overload
    def forward_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START,
                         loop_tau: Mapping[str, npt.ArrayLike] | None = None) -> Floats: ...
    def forward_dynamics(self, q: Any, u: Any = ..., tau: Forces | None = None, *, wrenches: Wrenches = None,
                         t: npt.ArrayLike = START, loop_tau: Mapping[str, npt.ArrayLike] | None = None) -> Floats:
        """Accelerations udot of the joints for joint forces tau (zero if not given). Cost: O(n) ("recursive").

        `loop_tau` {joint: forces} drives joints that close loops. Also ``forward_dynamics(state, tau)``.

        >>> import bellcrank as bc
        >>> pendulum = bc.compile(bc.load("pendulum"))
        >>> pendulum.forward_dynamics([0.5], [0.0]).round(6)
        array([-4.703165])
        """
        if q.__class__ is State:
            if u is not ... and tau is not None:
                raise u_twice("forward_dynamics")
            q, u, tau, t = q.q, q.u, tau if u is ... else u, q.t if t is START else t
        if t is not START:
            check_time(t)
        if wrenches is None and not loop_tau:
            door = self._forward_door
            if door is not None:
                out = np.empty(self.nu)
                force = self._zeros if tau is None else tau
                if door(q, u, force, out) is out:
                    return out
                many = self._forward_batch(q, u, force)
                if many is not None:
                    return many
        if u is ...:
            raise TypeError("forward_dynamics: needs q and u, or a State")
        return forward_dynamics.forward_dynamics(self.plans, q, u, tau, wrenches=wrenches, t=t, loop_tau=loop_tau)

    @overload
    def inverse_dynamics(self, q: State, u: npt.ArrayLike, /, *, wrenches: Wrenches = None, t: npt.ArrayLike = START,
                         actuated: Sequence[str] | None = None, weights: Mapping[str, float] | None = None
                         ) -> Floats: ...
    @overload
    def inverse_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START, actuated: Sequence[str] | None = None,
                         weights: Mapping[str, float] | None = None) -> Floats: ...
    def inverse_dynamics(self, q: Any, u: Any = ..., udot: Any = ..., *, wrenches: Wrenches = None,
                         t: npt.ArrayLike = START, actuated: Sequence[str] | None = None,
                         weights: Mapping[str, float] | None = None) -> Floats:
        """Joint forces tau for accelerations udot. Cost: O(n). Also ``inverse_dynamics(state, udot)``.

        With loops: the forces of the `actuated` joints (those given to `compile`, else the independent ones), zero at
        the others. More drives than degrees of freedom: the smallest forces, in the measure of `weights` {joint: w}
        (the sum of w tau^2 is least); too few: an error. Cost with loops: O(n + m), by compiled code for machines of
        up to 48 links.
        """
        if q.__class__ is State:
            if u is not ... and udot is not ...:
                raise u_twice("inverse_dynamics")
            q, u, udot, t = q.q, q.u, udot if u is ... else u, q.t if t is START else t
        if t is not START:
            check_time(t)
        if wrenches is None and actuated is None and weights is None:
            door = self._inverse_door
            if door is not None:
                out = np.empty(self.nu)
                if door(q, u, udot, out) is out:
                    return out
                many = self._inverse_batch(q, u, udot)
                if many is not None:
                    return many
        if u is ... or udot is ...:
            raise TypeError("inverse_dynamics: needs q, u and udot, or a State and udot")
        return inverse_dynamics.inverse_dynamics(self.plans, q, u, udot, wrenches=wrenches, t=t, actuated=actuated,
                                                 weights=weights)

    @of_motion()
    def drive_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                     wrenches: Wrenches = None, t: npt.ArrayLike = START) -> Floats:
        """All joint forces: tau where the motion is free, the enforcing force where it is prescribed. O(n)."""
        return inverse_dynamics.drive_forces(self.plans, q, u, tau, wrenches=wrenches, t=t)

    @of_position(matrix("mass_matrix"))
    def mass_matrix(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Joint-space mass matrix, shape (..., nu, nu); with loops that of the spanning tree. Cost: O(n * depth)."""
        return tree_dynamics.mass_matrix(self.kernels, q, t)

    @of_motion(tree_bias)
    def bias(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = START
             ) -> Floats:
        """Joint forces at zero acceleration: velocity, gravity and external terms. Cost: O(n)."""
        return tree_dynamics.bias(self.plans, q, u, wrenches=wrenches, t=t)

    @of_motion(vector("momenta"))
    def momenta(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Canonical momenta p conjugate to the speeds u, p = M u plus prescribed parts. Cost: O(n)."""
        return self.kernels.run("momenta", {"q": q, "u": u}, None, t)

    def hamilton(self, q: npt.ArrayLike, p: npt.ArrayLike, tau: Forces | None = None, *,
                 wrenches: Wrenches = None, t: npt.ArrayLike = START) -> tuple[Floats, Floats]:
        """Hamilton's equations: speeds u and rates dp/dt of the state (q, p). Cost: O(n).

        What p says about prescribed speeds is ignored, and their dp/dt lacks the drive force. With loops, p is M u
        plus the loops' impulses, which need not be known: start with `momenta` of consistent speeds.
        """
        return forward_dynamics.hamilton(self.plans, q, p, tau, wrenches=wrenches, t=t)

    @of_motion(reactions_once)
    def reactions(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                  udot: npt.ArrayLike | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START
                  ) -> dict[str, Floats]:
        """Wrench [moment; force] that each joint exerts on its outboard body, drive included, shape (..., 6).

        About the joint's own origin on that body, in that body's axes; joints that close loops act on their child.
        It is what moves the body: along a coordinate with an armature, the drive less what the rotor takes.
        Accelerations are those of `forward_dynamics` unless given. If conditions are redundant (see
        `bellcrank.analyze.explain`), the reactions are not determined by mechanics alone: these are the ones whose
        closing loads are smallest. Cost: O(n), with loops O(n + m) and O(r m) for r redundant conditions.
        """
        return reactions.reactions(self.plans, q, u, tau, udot=udot, wrenches=wrenches, t=t)

    @of_motion()
    def reduced(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = START
                ) -> ReducedModel:
        """Mass matrix, bias and motions in independent speeds, with Jacobians of bodies and operational-space inertias;
        see `ReducedModel`. For controllers and optimizers of machines with loops. Cost: O(nu m^2) for m constraints.

        The states must close the loops. `speeds` names the independent ones, all of a batch the same.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> model = linkage.reduced(state)
        >>> model.speeds, model.mass_matrix.shape
        (('A.angle',), (1, 1))
        >>> udot = linkage.forward_dynamics(state)
        >>> bool(abs(model.mass_matrix @ udot[:1] + model.bias)[0] < 1e-12)
        True
        """
        return reduced.reduced(self.plans, q, u, wrenches=wrenches, t=t)

    # -- kinematics -----------------------------------------------------------------------------
    @of_position(pose_once)
    def pose(self, q: npt.ArrayLike, body: str | None = None, *, t: npt.ArrayLike = START) -> Pose:
        """Pose of a body or frame in the world: `position` (..., 3) [m] and `rotation` (..., 3, 3). Cost: O(n).

        Without a body those of all of them, in the order of `body_names`: (..., bodies, 3) and (..., bodies, 3, 3).
        """
        if body is None:
            return body_kinematics.poses(self.kernels, q, t=t)
        return body_kinematics.pose(self.kernels, q, body, t=t)

    @of_motion(at_body("velocity", 2))
    def velocity(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike = _ORIGIN, *,
                 t: npt.ArrayLike = START) -> Floats:
        """[angular velocity; velocity of a point of the body], world axes, shape (..., 6). Cost: O(n)."""
        return body_kinematics.velocity(self.kernels, q, u, body, point, t=t)

    @of_motion(at_body("acceleration", 3))
    def acceleration(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, body: str,
                     point: npt.ArrayLike = _ORIGIN, *, t: npt.ArrayLike = START) -> Floats:
        """[angular acceleration; acceleration of a point of the body], world axes, shape (..., 6). O(n)."""
        return body_kinematics.acceleration(self.kernels, q, u, udot, body, point, t=t)

    @of_position(at_body("jacobian", 1, matrix=True))
    def jacobian(self, q: npt.ArrayLike, body: str, point: npt.ArrayLike = _ORIGIN, *,
                 t: npt.ArrayLike = START) -> Floats:
        """J with ``velocity = J u`` (free speeds), shape (..., 6, nu). Cost: O(n)."""
        return body_kinematics.jacobian(self.kernels, q, body, point, t)

    @of_motion(at_body("jacobian_rate", 2, matrix=True))
    def jacobian_rate(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike = _ORIGIN, *,
                      t: npt.ArrayLike = START) -> Floats:
        """dJ/dt with ``acceleration = J udot + dJ/dt u``, shape (..., 6, nu). Cost: O(n)."""
        return body_kinematics.jacobian_rate(self.kernels, q, u, body, point, t)

    @of_position(vector("center_of_mass"))
    def center_of_mass(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Centre of mass [m] of all moving bodies (what is welded to the ground is part of it) in the world, shape
        (..., 3)."""
        return self.kernels.run("center_of_mass", {"q": q}, None, t)

    @of_motion(vector("momentum"))
    def momentum(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """[angular momentum about the world's origin; linear momentum], world axes, shape (..., 6)."""
        return self.kernels.run("momentum", {"q": q, "u": u}, None, t)

    # -- energy ---------------------------------------------------------------------------------
    @of_motion(number("kinetic_energy"))
    def kinetic_energy(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Kinetic energy [J]. Cost: O(n)."""
        return self.kernels.run("kinetic_energy", {"q": q, "u": u}, None, t)[..., 0]

    @of_position(number("potential_energy"))
    def potential_energy(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Potential energy of gravity [J] of all moving bodies: -mass * gravity . center_of_mass. What is welded to the
        ground is part of the ground; it would add a constant. Cost: O(n).

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> bare = bc.compile(m).potential_energy([0.5])
        >>> bolts = m.add_joint("bolts", bc.Weld(), m.ground, m.add_body("frame", bc.Inertia(80.0)))
        >>> bool(bc.compile(m).potential_energy([0.5]) == bare)
        True
        """
        return self.kernels.run("potential_energy", {"q": q}, None, t)[..., 0]

    @of_motion(energy_once)
    def energy(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Kinetic energy, potential energy of gravity (of moving bodies) and energy stored in force elements [J], shape
        (...).

        Along a motion it changes by the work of tau (within the limits of actuators), of wrenches and of prescribed
        motions, less `bellcrank.analyze.dissipated_power`.
        """
        totals = body_kinematics.totals(self.kernels, q, u, t)
        return np.asarray(totals[..., 10] + totals[..., 11] + force_elements.stored_energy(self.plans, q, t=t))

    # -- loops ----------------------------------------------------------------------------------
    @of_position()
    def loop_error(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """How far every condition of every loop is from being met, shape (..., conditions): distances [m] and
        cosines of angles that should be right. Cost: O(n)."""
        return loop_errors.loop_error(self.plans, q, t=t)

    @of_motion()
    def loop_rate_error(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Rates of `loop_error`, shape (..., conditions). Cost: O(n)."""
        return loop_errors.loop_rate_error(self.plans, q, u, t=t)

    def assemble(self, q: State | Values = None, u: Values = None, *, guess: State | Values = None,
                 weights: Mapping[str, float] | None = None, t: float = START) -> State:
        """A state in which all loops are closed, at position and velocity level.

        `q` and `u` as mappings {joint or "joint.coordinate": value} are **held**. First the guess is closed, if it is
        open: to the nearest closed position, measured by the norm of the changes of all coordinates [rad, m], each
        times its weight in `weights` {joint: weight}. From there the coordinates held are walked to their values, as
        `drive` does, so that the machine stays on the branch of the guess wherever that exists; what is left free
        ends as near to the guess as it can. If the branch ends on the way, the nearest closed position with these
        values is taken, the state says so by `branch_changed`, and a `BranchWarning` names the joint and the value at
        which it ended. Angles are walked as numbers: from 0 to 3 through 1 and 2.

        As arrays nothing of `q` and `u` is held: `q` is the guess and `u` the speeds to be made consistent. Leading
        axes are a batch: the state has them, too; so have arrays (..., values) in mappings, whose last axis may be left
        out for a single value: ``assemble(q={"A": np.linspace(0, 1, 50)})`` are 50 states. Joints that close loops may
        be held too. Prescribed joints are where their laws have them at time `t`.

        `guess` is an array, a mapping (joints that are not named at zero, those that close loops left aside) or a
        `State`, of which the coordinates count. Positions and speeds that are both only near a closed state, such as
        keyframes of files, are made one by `project`. Cost: some closings of O(nu m^2) for m conditions, more the
        longer the way.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> bool(abs(linkage.loop_error(state)).max() < 1e-12), state.branch_changed
        (True, False)
        >>> other = linkage.assemble(q={"A": 0.5}, guess={"A": 0.5, "B": -1.4, "C": 2.3})  # put together another way
        >>> bool(state.q[2] < -1.0 and other.q[2] > 1.0)
        True
        """
        return assembly.assemble(self.plans, q, u, guess=guess, weights=weights, t=t)

    def project(self, q: State | Values, u: Values = None, *, t: float | None = None) -> State:
        """The nearest state whose loops are closed: removes the drift of methods that hold them by accelerations, and
        makes states from elsewhere consistent.

        `q` and `u` are arrays or mappings {joint or "joint.coordinate": value}, zero where nothing is said; or `q` is a
        `State`; leading axes are a batch. Nothing is held: `assemble` does that. Keyframes of files go in as they are:
        ``system.project(key["q"], key["u"])``.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.project({"A": 0.5, "B": 0.4}, {"A": 1.0})
        >>> bool(abs(linkage.loop_rate_error(state)).max() < 1e-12)
        True
        """
        return assembly.project(self.plans, q, u, t=t)

    @of_motion()
    def consistent_acceleration(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: Mapping[str, Any] | npt.ArrayLike, *,
                                t: float = START) -> Floats:
        """Accelerations that keep the loops closed, shape (..., nu): those in the mapping {joint: (..., values)} are
        held, or the nearest ones to an array (..., nu). Cost: O(nu dof^2) a state, by compiled kinematics.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> linkage.consistent_acceleration(state.q, state.u, {"A": [1.0, 2.0]}).shape
        (2, 3)
        """
        return inverse_dynamics.consistent_acceleration(self.plans, q, u, udot, t=t)

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

    # -- calls and costs ------------------------------------------------------------------------
    def bind(self, name: str, *arrays: Floats, out: Floats | None = None, body: str | None = None
             ) -> Callable[[], Floats]:
        """A call bound to preallocated arrays: ``call()`` reads them, writes and returns `out`.

        `name` is "forward_dynamics" (q, u, tau), "inverse_dynamics" (q, u, udot), "bias" (q, u), "mass_matrix" (q),
        "momenta" (q, u) or "hamilton" (q, p, tau), whose speeds and rates of momenta lie side by side, (nu, 2);
        "center_of_mass" (q), "momentum" (q, u), "kinetic_energy" (q, u), "potential_energy" (q); or of a `body` "pose"
        (q), nine entries of the rotation and three of the position (without a body of all), "velocity" (q, u),
        "acceleration" (q, u, udot), "jacobian" (q), "jacobian_rate" (q, u), after which may come a point of the body.
        The arrays are one state each, C-contiguous doubles. `out` is what the method returns, or an array of yours
        with as many entries. The cheapest way to call.

        >>> import bellcrank as bc, numpy as np
        >>> arm, q = bc.compile(bc.load("double_pendulum")), np.zeros(2)
        >>> call = arm.bind("mass_matrix", q)
        >>> call().shape
        (2, 2)
        >>> arm.bind("jacobian", q, body=arm.body_names[-1])().shape
        (6, 2)
        """
        return binding.bind(self.plans, name, arrays, out, body)

    def operation_count(self, function: str = "forward_dynamics") -> OperationCount:
        """Exact number of scalar operations of one evaluation, by kind, as the compiled code executes them.

        `function` is one of the methods "forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "momenta" and
        "hamilton", without external wrenches. With loops, `forward_dynamics`, `inverse_dynamics` and `hamilton` are
        those of the closed machine; `bias`, `mass_matrix` and `momenta` are those of its spanning tree, as the methods
        are. What LAPACK or NumPy has a part in, such as method "dense" with loops, is refused with the reason.

        >>> import bellcrank as bc
        >>> bc.compile(bc.load("pendulum")).operation_count().divs
        0
        """
        return counts.count_operations(self.plans, function)

    # -- other machines -------------------------------------------------------------------------
    def with_parameters(self, **values: npt.ArrayLike) -> Self:
        """The same compiled machine with other parameter values; arrays add batch axes. Nothing is recompiled."""
        return type(self)(self.kernels.for_model(self.model.with_values(values)))

    def release(self, *names: str) -> Self:
        """The same machine with some of its loops open: joints that were cut (see `loops`, `compile(cut=...)`) or
        constraints, by name. q and u keep their meaning, so that states can be handed over. What was let go is
        remembered: in a simulation the event action `attach` closes it again.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> linkage.release(*linkage.loops).dof
        3
        """
        return type(self)(Kernels(variants.released(self.model, names), self.kernels.maker)) if names else self

    def lock(self, *names: str) -> Self:
        """The same machine with joints, or single coordinates (``joint.coordinate``), that stay where they are: their
        speeds are zero, their coordinates what q says. q and u keep their meaning, so that states can be handed over;
        `drive_forces` are what holds them.

        >>> import bellcrank as bc
        >>> arm = bc.compile(bc.load("double_pendulum"))
        >>> float(arm.lock("elbow").forward_dynamics([0.3, 0.5], [0.0, 0.0])[1])
        0.0
        """
        return type(self)(Kernels(variants.locked(self.plans, names), self.kernels.maker)) if names else self
