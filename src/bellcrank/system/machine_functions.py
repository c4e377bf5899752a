"""A compiled machine at a state: what `System` computes, as a face over `Model`, `Kernels` and `LoopPlans`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked
from bellcrank.arrays import START, Floats, Forces
from bellcrank.mechanism.pose import Pose
from bellcrank.system import (
    body_kinematics,
    derivatives,
    element_states,
    force_elements,
    forward_dynamics,
    inverse_dynamics,
    loop_errors,
    reactions,
    reduced,
    regression,
    tree_dynamics,
    variants,
)
from bellcrank.system.arrangements import attached
from bellcrank.system.derivatives import Derivatives
from bellcrank.system.element_states import ElementForces
from bellcrank.system.force_terms import TERMS, chosen_terms
from bellcrank.system.kernels import Kernels, Wrenches
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.machine_coordinates import MachineCoordinates
from bellcrank.system.state import State
from bellcrank.system.state_methods import method_doors, of_motion, of_position
from bellcrank.system.usual_cut import cut_for

__all__ = ["Machine"]

_ORIGIN = (0.0, 0.0, 0.0)


class Machine(MachineCoordinates):
    """What a `System` computes at a state, and machines that differ a little. Runs need no more than this.

    It is immutable and made of three parts: `model` is what was compiled (mechanism, tree, method, options), `kernels`
    are its functions as compiled code, `plans` know how its loops are taken apart.
    """

    kernels: Kernels  #: its functions as callables
    plans: LoopPlans  #: its loops

    @checked
    def __init__(self, kernels: Kernels, plans: LoopPlans | None = None) -> None:
        model, plans = kernels.model, plans or LoopPlans(kernels)
        for name, value in (("model", model), ("kernels", kernels), ("plans", plans), ("nq", model.tree.nq),
                            ("nu", model.tree.nu), ("_doors", method_doors(plans)), ("_poses", {})):
            object.__setattr__(self, name, value)  # not into `__dict__`, from where methods are found less quickly

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a System is immutable: {name!r} cannot be set; compile another one, or see "
                             "with_parameters, release and lock")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a System is immutable: {name!r} cannot be removed")

    def __reduce__(self) -> Any:
        """The model and how it was compiled, not the code, which is made again (from the cache on disk) when it is
        first needed. Results of the copy are the same to the last bit on the same computer."""
        return type(self), (self.kernels, self.plans)

    def __copy__(self) -> Self:
        return self.with_parameters()

    # -- loops and freedoms ---------------------------------------------------------------------
    @property
    def dof(self) -> int:
        """Degrees of freedom: speeds that are not prescribed, less the independent constraints of the loops."""
        free = len(self.model.tree.free_speeds())
        return free - len(self.plans.general().kept) if self.model.tree.looped else free

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of what closes loops: joints, then other constraints and couplers."""
        return loop_errors.loop_names(self.plans)

    # -- dynamics -------------------------------------------------------------------------------
    @of_motion("forward_dynamics")
    def forward_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START,
                         loop_tau: Mapping[str, npt.ArrayLike] | None = None) -> Floats:
        """Accelerations udot of the joints for joint forces tau (zero if not given). Cost: O(n) ("recursive").

        `loop_tau` {joint: forces} is added to tau. Also ``forward_dynamics(state, tau)``.

        >>> import bellcrank as bc
        >>> pendulum = bc.compile(bc.load("pendulum"))
        >>> pendulum.forward_dynamics([0.5], [0.0]).round(6)
        array([-4.703165])
        """
        return forward_dynamics.forward_dynamics(self.plans, q, u, tau, wrenches=wrenches, t=t, loop_tau=loop_tau)

    @of_motion("inverse_dynamics")
    def inverse_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START, actuated: Sequence[str] | None = None,
                         weights: Mapping[str, float] | None = None, terms: Sequence[str] | str = TERMS) -> Floats:
        """Joint forces tau for accelerations udot. Cost: O(n). Also ``inverse_dynamics(state, udot)``.

        With loops: the forces of the `actuated` joints (those given to `compile`, else the independent ones), zero at
        the others. More drives than degrees of freedom: the smallest forces, in the measure of `weights` {joint: w}
        (the sum of w tau^2 is least); too few for the motion: an error. The joint of a floating base among them stands
        for an unknown wrench at the base; `bellcrank.analyze.inverse_dynamics_with_contacts` has unknown forces at
        contact points. Cost with loops: O(n + m), by compiled code.

        `terms`: the parts of tau that are wanted, all of them unless some are named; tau is their sum.

        - "gravity": what holds the weight, that of `Mechanism.gravity`.
        - "inertia": what accelerates bodies and rotors, with velocity terms (centrifugal and Coriolis) and what
          prescribed motions and loops need for that.
        - "friction": what overcomes `Mechanism.add_friction`, dry and viscous. Readers make that of ``frictionloss``
          (MJCF) and of damping and friction (URDF with ``dynamics=True``, SDF).
        - "elements": what works against all other force elements: springs and their dampers (``damping`` of MJCF is
          one), servos, stops, brakes, wrenches, laws, and the elasticity of flexible bodies.

        External `wrenches` count whatever the terms. Terms without "inertia" cost two evaluations.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_friction("bearing", "hinge", viscous=0.5)
        >>> pendulum = bc.compile(m)
        >>> float(pendulum.inverse_dynamics([0.3], [2.0], [0.0], terms="friction").round(12)[0])
        1.0
        """
        return inverse_dynamics.inverse_dynamics(self.plans, q, u, udot, wrenches=wrenches, t=t, actuated=actuated,
                                                 weights=weights, terms=chosen_terms("inverse_dynamics", terms))

    @of_motion()
    def drive_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                     wrenches: Wrenches = None, t: npt.ArrayLike = START) -> Floats:
        """All joint forces: tau where the motion is free, the enforcing force where it is prescribed. O(n)."""
        return inverse_dynamics.drive_forces(self.plans, q, u, tau, wrenches=wrenches, t=t)

    @property
    def independent_speeds(self) -> tuple[str, ...]:
        """Names of the speeds to which `mass_matrix`, `bias`, `momenta` and `jacobian` refer: of a tree all of them,
        with loops the independent ones, those of ``compile(independent=...)`` or chosen by the library."""
        if not self.model.tree.looped:
            return self.speed_names
        names = self.speed_names
        return tuple(names[v] for v in self.plans.shown(self.plans.any_reference().q, 0.0))

    @of_position("mass_matrix")
    def mass_matrix(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START, speeds: str = "independent") -> Floats:
        """Mass matrix, shape (..., d, d), of the d `independent_speeds`. Cost: O(n * depth).

        ``speeds="tree"``: of all joints that carry a link, shape (..., nu, nu), as if the loops were open; entries of
        joints at which the library cuts loops are zero.
        """
        whole = tree_dynamics.mass_matrix(self.kernels, q, t)
        motions = reduced.motions_for(self.plans, q, t, speeds)
        return whole if motions is None else np.asarray(np.swapaxes(motions, -1, -2) @ whole @ motions)

    @of_motion("bias")
    def bias(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = START,
             speeds: str = "independent", terms: Sequence[str] | str = TERMS) -> Floats:
        """Forces at the `independent_speeds` for accelerations of zero there, shape (..., d). Cost: O(n).

        `terms` as in `inverse_dynamics`: by default all of gravity, inertia (here velocity terms), elements and joint
        friction, less external wrenches. ``terms=("gravity", "inertia")`` is ``qfrc_bias`` of MuJoCo and
        ``nonLinearEffects`` of Pinocchio, ``terms="gravity"`` what compensates the weight.

        ``speeds="tree"``: of all joints that carry a link, (..., nu), at zero acceleration of all of them.
        """
        names, independent = chosen_terms("bias", terms), reduced.motions_for(self.plans, q, t, speeds) is not None
        if independent:
            return reduced.reduced(self.plans, q, u, wrenches=wrenches, t=t, terms=names).bias
        return tree_dynamics.bias(self.plans, q, u, wrenches=wrenches, t=t, terms=names)

    @of_motion("momenta")
    def momenta(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START, speeds: str = "independent"
                ) -> Floats:
        """Canonical momenta p conjugate to the `independent_speeds`, shape (..., d): p = M u plus prescribed parts.
        Cost: O(n). ``speeds="tree"``: of all joints that carry a link, (..., nu), which `hamilton` takes."""
        whole = self.kernels.run("momenta", {"q": q, "u": u}, None, t)
        motions = reduced.motions_for(self.plans, q, t, speeds)
        return whole if motions is None else np.asarray((np.swapaxes(motions, -1, -2) @ whole[..., None])[..., 0])

    @of_motion()
    def hamilton(self, q: npt.ArrayLike, p: npt.ArrayLike, tau: Forces | None = None, *,
                 wrenches: Wrenches = None, t: npt.ArrayLike = START) -> tuple[Floats, Floats]:
        """Hamilton's equations: speeds u and rates dp/dt of the state (q, p). Cost: O(n).

        What p says about prescribed speeds is ignored, and their dp/dt lacks the drive force. With loops, p is M u
        plus the loops' impulses, which need not be known: start with `momenta` of consistent speeds. Also
        ``hamilton(state, tau)``, with the momenta of a `State`.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> speeds, rates = linkage.hamilton(state)
        >>> bool(abs(speeds - state.u).max() < 1e-12)
        True
        """
        return forward_dynamics.hamilton(self.plans, q, p, tau, wrenches=wrenches, t=t)

    @of_motion("reactions")
    def reactions(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                  udot: npt.ArrayLike | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START
                  ) -> dict[str, Floats]:
        """Wrench [moment; force] that each joint exerts on its child, drive included, shape (..., 6): joints in the
        order in which they were added, then constraints.

        About the joint's own origin on that body, in that body's axes; the child is the body that `add_joint` was
        given as such, wherever loops are cut (the ground, if that is it).
        It is what moves the body: along a coordinate with an armature, the drive less what the rotor takes.
        Accelerations are those of `forward_dynamics` unless given. If constraints are redundant (see
        `bellcrank.analyze.explain`), the reactions are not determined by mechanics alone: these are the ones with the
        least sum of squares of the moments, and of the forces times a length typical of the mechanism, at the joints
        that the library cuts by itself, which depend on the order in which joints were added. Cost: O(n), with loops
        O(n + m) and O(r m) for r redundant conditions.
        """
        return reactions.reactions(self.plans, q, u, tau, udot=udot, wrenches=wrenches, t=t)

    @checked
    def derivatives(self, function: str, *arguments: Any, by: Sequence[str] | str = ("q", "u"),
                    then: str | None = None, body: str | None = None, wrenches: Wrenches = None,
                    t: npt.ArrayLike = START, along: Mapping[str, npt.ArrayLike] | None = None,
                    weights: npt.ArrayLike | None = None, closed: bool | None = None,
                    independent: Sequence[str] | None = None) -> Derivatives:
        """Exact derivatives of another method, by name, at the arguments that it takes (a `State` for q and u, too).

        Also of "outputs" (those of `Mechanism.add_output`), "joint_coordinates", "joint_speeds", "joint_accelerations".

        `by`: "q" (one column for every speed: along dq = Q(q) u, so that quaternions stay unit quaternions), "u",
        "tau", "udot", "point", "t", "wrenches" (six columns for every body), "parameters" or one of them by name.
        ``d["q"]`` has the shape ``(*batch, *value, columns)``, `d.value` is the value, ``d.dataset()`` names
        everything. `then`: differentiate once more, by another variable; ``d["q"]`` gets one more axis, of its columns.

        Without a matrix: `along` {variable: rates} gives how the value changes in that direction, ``d["along"]``;
        `weights`, shaped like the value, the derivatives of their sum with the value, ``(*batch, columns)``. Either
        costs a few times the function itself; both together give ``d["along"]`` and the derivatives of its sum with
        weights, by the variables of `along`: products of second derivatives.

        With loops, columns of q, u and udot belong to the independent speeds (`d.columns` names them): those of
        ``compile(independent=...)``, or of this call. Everything moves along so that the loops stay closed; by
        parameters and time the independent coordinates, speeds and accelerations are held, the others follow.
        ``closed=False``: every entry by itself, the others at rest, and
        `mass_matrix`, `bias`, `momenta` and `jacobian` those of ``speeds="tree"``. Rolling
        and knife edges restrict no displacement: q has one more column for each of their conditions, along which the
        independent speeds keep their values and the others follow without slip.

        >>> import bellcrank as bc
        >>> pendulum = bc.compile(bc.load("pendulum"))
        >>> pendulum.derivatives("forward_dynamics", [0.0], [0.0], by="q")["q"].round(3)
        array([[-9.81]])
        """
        return derivatives.derivatives(self.plans, function, arguments, by=by, then=then, body=body, wrenches=wrenches,
                                       t=t, along=along, weights=weights, closed=closed, independent=independent)

    @of_motion()
    def regressor(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Y (..., nu, 10 bodies) with which inverse dynamics is linear in the inertial parameters of the bodies.

        ``inverse_dynamics = Y p + rest``, where the rest is what rotors, springs, wrenches and the like need. Columns
        are body by body mass, first moment (mx, my, mz) and second moment (xx, xy, xz, yy, yz, zz) about the body's
        origin and in its axes; `bellcrank.analyze.inertial_parameters` has names and values. With loops: the forces at
        the drives. Cost: O(n depth), compiled.

        >>> import bellcrank as bc
        >>> arm = bc.compile(bc.load("double_pendulum"))
        >>> p = list(bc.analyze.inertial_parameters(arm).values())
        >>> q, u, udot = [0.3, -0.5], [1.0, 2.0], [3.0, 4.0]
        >>> bool(abs(arm.regressor(q, u, udot) @ p - arm.inverse_dynamics(q, u, udot)).max() < 1e-12)
        True
        """
        return regression.regressor(self.plans, q, u, udot, t=t)

    # -- kinematics -----------------------------------------------------------------------------
    @of_position("pose")
    def pose(self, q: npt.ArrayLike, body: str | None = None, *, t: npt.ArrayLike = START) -> Pose:
        """Pose of a body or frame in the world: `position` (..., 3) [m] and `rotation` (..., 3, 3). Cost: O(n).

        Without a body those of all of them, in the order of `body_names`: (..., bodies, 3) and (..., bodies, 3, 3).
        """
        if body is None:
            return body_kinematics.poses(self.kernels, q, t=t)
        return body_kinematics.pose(self.kernels, q, body, t=t)

    @of_motion("velocity", body=True)
    def velocity(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike = _ORIGIN, *,
                 t: npt.ArrayLike = START) -> Floats:
        """[angular velocity; velocity of a point of the body], world axes, shape (..., 6). Cost: O(n)."""
        return body_kinematics.velocity(self.kernels, q, u, body, point, t=t)

    @of_motion("acceleration", body=True)
    def acceleration(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, body: str,
                     point: npt.ArrayLike = _ORIGIN, *, t: npt.ArrayLike = START) -> Floats:
        """[angular acceleration; acceleration of a point of the body], world axes, shape (..., 6). O(n)."""
        return body_kinematics.acceleration(self.kernels, q, u, udot, body, point, t=t)

    @of_position("jacobian", body=True)
    def jacobian(self, q: npt.ArrayLike, body: str, point: npt.ArrayLike = _ORIGIN, *,
                 t: npt.ArrayLike = START, speeds: str = "independent") -> Floats:
        """J with ``velocity = J v`` for the `independent_speeds` v, shape (..., 6, d). Cost: O(n).

        ``speeds="tree"``: for the speeds of all joints that carry a link, (..., 6, nu), as if the loops were open.
        """
        whole = body_kinematics.jacobian(self.kernels, q, body, point, t)
        motions = reduced.motions_for(self.plans, q, t, speeds)
        return whole if motions is None else np.asarray(whole @ motions)

    @of_motion("jacobian_rate", body=True)
    def jacobian_rate(self, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike = _ORIGIN, *,
                      t: npt.ArrayLike = START) -> Floats:
        """dJ/dt with ``acceleration = J udot + dJ/dt u`` for the J of ``jacobian(..., speeds="tree")``, shape
        (..., 6, nu). Cost: O(n)."""
        return body_kinematics.jacobian_rate(self.kernels, q, u, body, point, t)

    @of_position("center_of_mass")
    def center_of_mass(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Centre of mass [m] of all moving bodies in the world, shape (..., 3). What is welded to the ground is part of
        it, unless that weld closes a loop."""
        return self.kernels.run("center_of_mass", {"q": q}, None, t)

    @of_motion("momentum")
    def momentum(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """[angular momentum about the world's origin; linear momentum], world axes, shape (..., 6)."""
        return self.kernels.run("momentum", {"q": q, "u": u}, None, t)

    # -- energy ---------------------------------------------------------------------------------
    @of_motion("kinetic_energy")
    def kinetic_energy(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Kinetic energy [J]. Cost: O(n)."""
        return self.kernels.run("kinetic_energy", {"q": q, "u": u}, None, t)[..., 0]

    @of_position("potential_energy")
    def potential_energy(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Potential energy of gravity [J] of all moving bodies: -mass * gravity . center_of_mass. What is welded to the
        ground is part of the ground, unless that weld closes a loop; it would add a constant. Cost: O(n).

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> bare = bc.compile(m).potential_energy([0.5])
        >>> bolts = m.add_joint("bolts", bc.Weld(), m.ground, m.add_body("frame", bc.Inertia(80.0)))
        >>> bool(bc.compile(m).potential_energy([0.5]) == bare)
        True
        """
        return self.kernels.run("potential_energy", {"q": q}, None, t)[..., 0]

    @of_motion("energy")
    def energy(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Kinetic energy, potential energy of gravity (of moving bodies) and energy stored in force elements [J], shape
        (...).

        Along a motion it changes by the work of tau (within the limits of actuators), of wrenches and of prescribed
        motions, less `bellcrank.analyze.dissipated_power`.
        """
        totals = body_kinematics.totals(self.kernels, q, u, t)
        return np.asarray(totals[..., 10] + totals[..., 11] + force_elements.stored_energy(self.plans, q, t=t))

    @of_motion()
    def element_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                       t: npt.ArrayLike = START) -> dict[str, ElementForces]:
        """What every force element does, by name: its force (along its line, and as a vector), the points at which it
        acts, its length and rate, torque, power, stored energy and states: see `ElementForces`. Actuators are among
        them if the joint forces `tau` are given. Cost: O(n + elements), compiled.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_joint_spring("spring", "hinge", stiffness=3.0, rest=0.5)
        >>> spring = bc.compile(m).element_forces([1.5], [2.0])["spring"]
        >>> float(spring.force), float(spring.power), float(spring.energy)
        (-3.0, -6.0, 1.5)
        """
        return element_states.element_forces(self.plans, q, u, tau, t=t)

    # -- loops ----------------------------------------------------------------------------------
    @of_position()
    def loop_error(self, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """How far every constraint of every loop is from being met, shape (..., constraints): distances [m] and
        cosines of angles that should be right. Cost: O(n)."""
        return loop_errors.loop_error(self.plans, q, t=t)

    @of_motion()
    def loop_rate_error(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
        """Rates of `loop_error`, shape (..., constraints). Cost: O(n)."""
        return loop_errors.loop_rate_error(self.plans, q, u, t=t)

    # -- other machines -------------------------------------------------------------------------
    @checked
    def with_parameters(self, **values: npt.ArrayLike) -> Self:
        """The same compiled machine with other parameter values; arrays add batch axes. Nothing is recompiled."""
        return type(self)(self.kernels.for_model(self.model.with_values(values)))

    @checked
    def release(self, *names: str) -> Self:
        """The same machine with some of its loops open: at joints or constraints, by name. q and u keep their meaning,
        so that states can be handed over. What was let go is remembered: in a simulation the event action `attach`
        closes it again.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> linkage.release(*linkage.loops).dof
        3
        """
        made = cut_for(self.plans, names).model
        return type(self)(Kernels(variants.released(made, names), self.kernels.maker)) if names else self

    @checked
    def attach(self, *names: str, at: State | npt.ArrayLike, t: float | None = None) -> Self:
        """The same machine with joints or constraints closed that are open, and frames that are defined at closing
        where they lie in the position `at` (a `State`, or q). q and u keep their meaning. Nothing is compiled for a set
        of closures that this machine has had before.

        >>> import bellcrank as bc
        >>> m = bc.load("double_pendulum")
        >>> nail = m.add_joint("nail", bc.Spherical(), m.bodies[1], m.ground, child_pose="at closing", closed=False)
        >>> arm = bc.compile(m)
        >>> arm.dof, arm.attach("nail", at=arm.assemble({"shoulder": 0.3, "elbow": 0.5})).dof
        (2, 1)
        """
        return attached(self, names, at, t)

    @checked
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
