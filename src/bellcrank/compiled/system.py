"""The compiled machine as users see it: a `Machine` at a state, and closed states, runs, bound calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked
from bellcrank.arrays import START, Floats, Forces, one_time, random_source
from bellcrank.errors import StateError
from bellcrank.inverse_kinematics.inverse import InverseKinematics, inverse_kinematics
from bellcrank.inverse_kinematics.targets import KinematicTarget
from bellcrank.lazy_names import elsewhere, from_above
from bellcrank.scalar.count import OperationCount
from bellcrank.system import assembly, binding, counts, forward_dynamics, inverse_dynamics, random_states, reduced
from bellcrank.system.force_terms import TERMS, chosen_terms
from bellcrank.system.held_values import Values
from bellcrank.system.kernels import Wrenches
from bellcrank.system.machine_functions import Machine
from bellcrank.system.reduced import ReducedModel
from bellcrank.system.state import State
from bellcrank.system.state_methods import of_motion

if TYPE_CHECKING:
    from os import PathLike

    from bellcrank.simulate.events import Event
    from bellcrank.simulate.result import Result

__all__ = ["System"]


class System(Machine):
    """An immutable machine to compute with; made by `bellcrank.compile`.

    Every method takes arrays whose last axis is the joint coordinates `q` (nq), speeds `u`, forces `tau` or
    accelerations `udot` (nu each) of all joints, in the order of `coordinate_names` and `speed_names`; leading axes
    are a batch and broadcast. Results are new arrays. NaN and infinity in the input raise `StateError`, except in
    states of a batch all of whose coordinates are NaN, as `assemble` returns those out of reach: results are NaN there.
    Forces tau may also be a mapping {joint or "joint.coordinate": values}, zero where nothing is said.

    A `State` may stand in the place of q, or of q and u, in every method: ``forward_dynamics(state, tau)``,
    ``pose(state, body)``. Its time is used, unless `t` is given.

    `wrenches` are external: an array (..., bodies, 6) in the order of `body_names` or a mapping
    {body: (..., 6)}, each [moment; force] in world axes about the body frame's origin. `t` is the time for
    prescribed motions and time-dependent wrenches.

    What is computed at a state is in its base `Machine`; here are states that close, runs, calls and their costs. What
    is asked about many states is in `bellcrank.analyze`.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5})
    >>> bool((linkage.forward_dynamics(state) == linkage.forward_dynamics(state.q, state.u)).all())
    True
    """

    def __repr__(self) -> str:
        interpreted = forward_dynamics.interpreted(self.plans)
        return (f"<System {self.model.name!r}: {len(self.body_names)} bodies, nq={self.nq}, nu={self.nu}, "
                f"method={self.model.method!r}, backend={self.kernels.backend!r}"
                f"{f' ({interpreted})' if interpreted else ''}>")

    if not TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> Any:
            """What is not here may be a function: say so."""
            raise AttributeError(f"'System' object has no attribute {name!r}{elsewhere(name, 'system')}", name=name,
                                 obj=self)

    def _repr_html_(self) -> str:
        """A still and a table, for notebooks."""
        made: str = from_above("view.notebook", "html_of")(self)
        return made

    # -- closed machines ------------------------------------------------------------------------
    @checked
    def assemble(self, q: State | Values = None, u: Values = None, *, guess: State | Values = None,
                 weights: Mapping[str, float] | None = None, t: float = START) -> State:
        """A state in which all loops are closed, at position and velocity level.

        `q` and `u` as mappings {joint or "joint.coordinate": value} are **held**. First the guess is closed, if it is
        open: to the nearest closed position, measured by the norm of the changes of all coordinates (angles in
        rad, lengths by a length typical of the machine), each times its weight in `weights` {joint: weight}. From
        there the coordinates held are walked to their values, as `drive` does, so that the machine stays on the branch
        of the guess wherever that exists; what is left free
        ends as near to the guess as it can. If the branch ends on the way, the nearest closed position with these
        values is taken, the state says so by `branch_changed`, and a `BranchWarning` names the joint and the value at
        which it ended. Angles are walked as numbers: from 0 to 3 through 1 and 2. A joint with a quaternion is held as
        a whole; where one of its positions is given, ``{"floating.z": 0.4}``, the rest is where the guess has it.

        As arrays, or a `State` for both and the time, nothing of `q` and `u` is held: `q` is the guess and `u` the
        speeds to be made consistent. Joints that close loops may be held too. Prescribed joints are where their laws
        have them at time `t`.

        Leading axes are batch dimensions, and so are those of arrays of parameters (`with_parameters`): each state is
        that of its own values. Arrays (..., values) in mappings have them, too; their last axis may be left out for a
        single value: ``assemble(q={"A": np.linspace(0, 1, 50)})`` are 50 states. States of a batch that cannot be
        reached are NaN in q and u, an `AssemblyWarning` names the first, and `State.failures` has index, joint and
        reason of each; of a single state that is an `AssemblyError`. Functions of such a batch are NaN in these states.

        `guess` is an array, a mapping (joints that are not named at zero; those that close loops count where they, or
        their weights, are named) or a `State`, of which the coordinates count. Guesses by name and values that are held
        mean the same whatever `compile` was told to cut: "nearest" is in the coordinates of the joints that carry links
        by default. Positions and speeds that are both only near a closed
        state, such as keyframes of files, are made one by `project`. Cost: some closings of O(nu m^2) for m
        constraints, more the longer the way; in batches, of small mechanisms, by compiled steps in lanes, some 10 to
        100 µs a state, and for one that cannot be reached some 100 ms.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> bool(abs(linkage.loop_error(state)).max() < 1e-12), state.branch_changed
        (True, False)
        >>> other = linkage.assemble(q={"A": 0.5}, guess={"A": 0.5, "B": -1.4, "C": 2.3})  # put together another way
        >>> bool(state.q[2] < -1.0 and other.q[2] > 1.0)
        True
        >>> import numpy as np
        >>> many = linkage.assemble(q={"A": np.array([0.5, 0.6])}, guess=state)
        >>> many.shape, many.failures
        ((2,), ())
        """
        return assembly.assemble(self.plans, q, u, guess=guess, weights=weights, t=t)

    @checked
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

    @checked
    def random_state(self, rng: np.random.Generator | None = None, size: tuple[int, ...] | int = (), *,
                     seed: int | None = None, t: float = START) -> State:
        """A random state whose loops are closed, or a batch of the given size, at time `t`.

        Angles are within a turn, lengths and speeds of order one, orientations uniform. Joints stay within the ranges
        of `Mechanism.set_range` and of compliant stops (`Mechanism.add_limit`), prescribed ones are where their laws
        have them. Joints of loops move at random from where the machine is assembled, on the branches that motion can
        reach. The random numbers are those of `rng`, or follow from `seed`. Cost: with loops some ten closings.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> states = linkage.random_state(size=20, seed=1)
        >>> bool(abs(linkage.loop_error(states)).max() < 1e-9), states["A"].shape
        (True, (20,))
        """
        if rng is not None and seed is not None:
            raise StateError("random_state: give rng or seed, not both")
        source = rng if rng is not None else np.random.default_rng() if seed is None else random_source(seed)
        return random_states.random_state(self.plans, source, size, one_time(t))

    @checked
    def inverse_kinematics(self, targets: KinematicTarget | Sequence[KinematicTarget], *, guess: State | Values = None,
                           posture: State | Values = None, ranges: bool = True, starts: int | None = None,
                           every: bool = False, tolerance: float = 1e-10, iterations: int = 100, seed: int = 0,
                           t: float = START) -> InverseKinematics:
        """Positions, loops closed, that meet targets: a body at a place, a direction, a distance, the centre of mass, a
        joint's value, an output; see `bellcrank.targets`.

        Targets of priority 0 come first; those of higher numbers have what these leave free, and a `posture` (a
        position, in the forms of `guess`) what all targets leave. Joints stay within their ranges (those of
        `Mechanism.set_range` and of compliant stops) unless `ranges` is false. Leading axes of what targets ask for,
        and of the guess, are a batch: each state is searched by itself, all at once.

        The search begins at the `guess` (as in `assemble`), and, where it does not end in a solution, at so many random
        positions (`starts`; if there is no guess 30). What cannot be met is met as nearly as the search can; `solved`
        of the result says where all is within the `tolerance`, in lengths of the machine and rad. `every`: all
        solutions that are found from the random positions, each once, as a batch, the nearest to the guess first.

        Cost: some 5 to 15 steps, each of which takes the Jacobians of the bodies and a closing of the loops.

        >>> import bellcrank as bc
        >>> stewart = bc.compile(bc.load("stewart"))
        >>> up = bc.targets.BodyPose("platform", bc.Pose((0.05, 0.0, 0.75), (0.995, 0.0, 0.0998749218, 0.0)))
        >>> found = stewart.inverse_kinematics(up)
        >>> bool(found.solved), round(found.state["leg1.slide"], 6)
        (True, 0.616279)
        """
        return inverse_kinematics(self.plans, targets, guess=guess, posture=posture, ranges=ranges, starts=starts,
                                  every=every, tolerance=tolerance, iterations=iterations, seed=seed, t=one_time(t))

    @of_motion()
    def consistent_acceleration(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: Mapping[str, Any] | npt.ArrayLike, *,
                                t: float = START) -> Floats:
        """Accelerations that keep the loops closed, shape (..., nu): those in the mapping {joint: (..., values)} are
        held, or the nearest ones to an array (..., nu). Cost: O(nu dof^2) a state, by compiled kinematics.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> linkage.consistent_acceleration(state.q, state.u, {"A": [1.0, 2.0]}).shape
        (2, 4)
        """
        return inverse_dynamics.consistent_acceleration(self.plans, q, u, udot, t=t)

    @of_motion()
    def reduced(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = START,
                terms: Sequence[str] | str = TERMS) -> ReducedModel:
        """Mass matrix, bias and motions in independent speeds, with Jacobians of bodies and operational-space inertias;
        see `ReducedModel`. For controllers and optimizers of machines with loops. Cost: O(nu m^2) for m constraints.
        `terms`: those of the bias, see `bias`.

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
        return reduced.reduced(self.plans, q, u, wrenches=wrenches, t=t, terms=chosen_terms("reduced", terms))

    # -- motion ---------------------------------------------------------------------------------
    @checked
    def simulate(self, state: Any, duration: float, *, step: float | None = None, stepper: str = "rk4",
                 output: float | Sequence[float] | None = None, tau: Forces | None = None,
                 wrenches: Any = None, control: Any = None, events: Sequence[Event] = (), rtol: float = 1e-9,
                 atol: float = 1e-12, file: str | PathLike[str] | None = None,
                 progress: Callable[[float, float], object] | None = None, threads: int | None = None,
                 closing: str = "position", sensitivities: Sequence[str] = (),
                 outputs: Mapping[str, Callable[[Any], Any]] | None = None) -> Result:
        """The motion from a state over `duration` seconds, as an `xarray.Dataset` with names and units.

        `state` is what `assemble` returns, or (q, u); leading axes are a batch, run side by side in lanes and threads.
        Or it is the result of another run, which goes on where it ended.

        `stepper` with a fixed `step` [s] (default 1 ms): "rk4", "rk8", "semi_implicit", "radau" (implicit, for stiff
        springs), "gauss" (keeps energy over long runs), "moreau" (rigid contacts); with tolerances `rtol` and `atol`
        (absolute, in rad, m, rad/s and m/s; choose a smaller one for machines far below a metre): "dopri5", "dop853",
        "radau5" (for stiff machines), or other libraries' "scipy/DOP853", "sundials/BDF", ... A duration that is no
        multiple of the step shortens the step a little. No Python runs between steps.

        Loops are closed in position and velocity after every step. ``closing="velocity"`` leaves positions alone:
        dependent speeds are computed from independent ones in every evaluation, and positions drift as the method
        integrates them. ``closing="none"`` holds accelerations alone, as `compile`'s `baumgarte` asks; then speeds
        drift, too (momenta, with "momenta": impulses of the loops gather in them).

        `output` is the interval of the samples [s], or with tolerances their times. `tau` are constant joint forces,
        `wrenches` constant external ones; `control` (and `wrenches`) may be functions of (t, q, u): see `Sampled`,
        `Traced`. `events` are `Event` objects. `file` streams the samples to a NetCDF file. `progress(done, duration)`
        is called now and then. `sensitivities` names "q0", "u0" (the beginning), "tau" or parameters, by which the
        samples are differentiated, exactly for the steps that are made: ``d_q_<name>``, ``d_u_<name>`` (one state,
        fixed steps); through controllers that are `Traced` and through events that keep the topology, whose times
        change, too: ``d_time_<name>``. `outputs` are functions of the machine by name, computed of every sample beside
        those of `Mechanism.add_output`: see `Result.outputs`.

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
        from bellcrank.simulate.fields import check_outputs
        from bellcrank.simulate.run import simulate  # a quarter of what importing all takes, and not all simulate

        if outputs is not None:
            check_outputs(self, outputs)  # not after a long run
        made = simulate(self, state, duration, step=step, stepper=stepper, output=output, tau=tau, wrenches=wrenches,
                        control=control, events=events, rtol=rtol, atol=atol, file=file, progress=progress,
                        threads=threads, closing=closing, sensitivities=sensitivities,
                        streamed=outputs if file is not None else None)
        return made.with_outputs(outputs) if outputs and file is None else made

    # -- calls and costs ------------------------------------------------------------------------
    @checked
    def bind(self, name: str, *arrays: State | Floats, out: Floats | None = None, body: str | None = None,
             by: Sequence[str] | None = None) -> Callable[[], Floats]:
        """A call bound to preallocated arrays: ``call()`` reads them, writes and returns `out`.

        `name` is "forward_dynamics" (q, u, tau), "inverse_dynamics" (q, u, udot), "bias" (q, u), "mass_matrix" (q),
        "momenta" (q, u) or "hamilton" (q, p, tau), whose speeds and rates of momenta lie side by side, (nu, 2);
        "center_of_mass" (q), "momentum" (q, u), "kinetic_energy" (q, u), "potential_energy" (q); or of a `body` "pose"
        (q), nine entries of the rotation and three of the position (without a body of all), "velocity" (q, u),
        "acceleration" (q, u, udot), "jacobian" (q), "jacobian_rate" (q, u), after which may come a point of the body.
        A `State` may stand for q, q and u, or q and p; it never changes. The arrays are one state each, C-contiguous
        doubles. `out` is what the method returns, or an array of yours
        with as many entries; of machines with loops `mass_matrix`, `bias`, `momenta` and `jacobian` are those of
        ``speeds="tree"``. The cheapest way to call. With `by`: the value and then its `derivatives` by these
        variables, in one array, matrices row by row; with loops, where pivots of the first plan vanish, an error.

        >>> import bellcrank as bc, numpy as np
        >>> arm, q = bc.compile(bc.load("double_pendulum")), np.zeros(2)
        >>> call = arm.bind("mass_matrix", q)
        >>> call().shape
        (2, 2)
        >>> arm.bind("jacobian", q, body=arm.body_names[-1])().shape
        (6, 2)
        """
        return binding.bind(self.plans, name, arrays, out, body, None if by is None else tuple(by))

    @checked
    def operation_count(self, function: str = "forward_dynamics") -> OperationCount:
        """Exact number of scalar operations of one evaluation, by kind, as the compiled code executes them.

        `function` is one of the methods "forward_dynamics", "inverse_dynamics", "bias", "mass_matrix", "momenta" and
        "hamilton", without external wrenches. With loops, `forward_dynamics`, `inverse_dynamics` and `hamilton` are
        those of the closed machine; `bias`, `mass_matrix` and `momenta` are those of its spanning tree
        (``speeds="tree"``). What LAPACK or NumPy has a part in, such as method "dense" with loops, is refused with
        the reason.

        >>> import bellcrank as bc
        >>> bc.compile(bc.load("pendulum")).operation_count().divs
        0
        """
        return counts.count_operations(self.plans, function)
