"""The spatial operator algebra of a machine at states: operators, factors of the mass matrix, partition."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import StateBatch
from bellcrank.arrays import START, Floats, Forces, check_finite, flat, one_time
from bellcrank.compiled.system import System
from bellcrank.formulations.operator.operators import SpatialOperators
from bellcrank.formulations.operator.partition import Partition
from bellcrank.loops.constraint_kinematics import ClosureArrays
from bellcrank.lowering.function import direct
from bellcrank.system.body_kinematics import link_rows
from bellcrank.system.body_places import body_place
from bellcrank.system.force_elements import actuator_forces
from bellcrank.system.force_terms import acting
from bellcrank.system.state_methods import of_motion, of_position
from bellcrank.system.tree_dynamics import tree_forces

__all__ = ["mass_factors", "operators", "partition"]


@of_position()
def operators(system: System, q: npt.ArrayLike, *, t: float = START) -> SpatialOperators | StateBatch:
    """The spatial operators of a configuration, as objects with O(n) products; of a batch q (..., nq) those of each
    (see `StateBatch`).

    >>> import bellcrank as bc, numpy as np
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> o = bc.analyze.operators(arm, [0.1, 0.2])
    >>> bool(np.allclose(o.mass_inverse @ (o.mass @ [1.0, 2.0]), [1.0, 2.0]))
    True
    """
    system.model.tree.refuse_flexible("operators")
    place = flat("q", q, system.nq, "the coordinates")
    check_finite("operators", "q", place, system.coordinate_names)
    if place.ndim == 1:
        return _operators_at(system, place, t)
    return StateBatch.of(place.shape[:-1], lambda index: _operators_at(system, place[index], t))


def _operators_at(system: System, q: Floats, t: float) -> SpatialOperators:
    kernels = system.kernels
    given = {"q": q, "t": np.array([one_time(t)]),
             "parameters": np.array([float(np.asarray(v)) for v in kernels.model.values.values()])}
    sweeps = direct(kernels.tree, ("q",), lambda name, i: float(given[name][i]), False)

    def origin(body: str, point: Any) -> tuple[int, Floats]:
        """Link of a point, and the map from link velocities to the point's in world axes."""
        link, turn, shift = body_place(kernels.model, body)
        arm = shift + turn @ flat("point", point, 3, "x, y, z in the body's frame")
        rotation = link_rows(kernels, "poses", link, {"q": q}, t)[:9].reshape(3, 3) if link else np.eye(3)
        cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        return link, np.block([[rotation, np.zeros((3, 3))], [-rotation @ cross, rotation]])

    return SpatialOperators(sweeps, origin)


@of_position()
def mass_factors(system: System, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> tuple[Floats, Floats]:
    """U (..., nu, nu) and D (..., nu) with ``mass_matrix(..., speeds="tree") = U diag(D) U^T``, U unit triangular in
    the order of the tree (columns of outboard joints reach inboard rows), zero at loop joints. Cost: O(n * depth).

    >>> import bellcrank as bc, numpy as np
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> u, d = bc.analyze.mass_factors(arm, [0.1, 0.2])
    >>> bool(np.allclose(u * d @ u.T, arm.mass_matrix([0.1, 0.2])))
    True
    """
    system.model.tree.refuse_flexible("mass_factors")
    columns = system.kernels.run("factor_columns", {"q": q}, None, t)
    diagonal = system.kernels.run("factor_diagonal", {"q": q}, None, t)
    return columns.reshape(*columns.shape[:-1], system.nu, system.nu), diagonal


@of_motion()
def partition(system: System, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
              secondary: Collection[str] = (), t: float = START) -> Partition | StateBatch:
    """The closed chain in a state as a primary and a secondary system with the closures between them, step by
    step as in the spatial operator algebra; `Partition.with_constraints` detaches and attaches closures. Leading axes
    are a batch, each state with a partition of its own (see `StateBatch`).

    `secondary` names bodies: everything that hangs from the ground with them is the secondary system. Cost: O(n m^2).

    >>> import bellcrank as bc, numpy as np
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    >>> found = bc.analyze.partition(linkage, state)
    >>> bool(np.allclose(found.step_f(), linkage.forward_dynamics(state)))
    True
    """
    plans, t = system.plans, one_time(t)
    plans.need_loops("partition")
    plans.tree.refuse_flexible("partition")
    loops = plans.loops
    place = flat("q", q, plans.tree.nq, "the coordinates")
    given = np.zeros(plans.tree.nu) if tau is None else actuator_forces(plans, q, u, tau, t=t)
    bias = tree_forces(acting(plans, given), q, u, np.zeros(plans.tree.nu), None, t, given)
    force = np.where(plans.tree.loop_speeds(), 0.0, given) - bias
    speeds = flat("u", u, plans.tree.nu, "one for every speed")
    lead, rows = force.shape[:-1], loops.rows(q, u, t)
    right, axes = loops.gamma(q, u, t, rows), loops.poses(q, t)[0]

    def at(index: tuple[int, ...]) -> Partition:
        """The partition at one state; what is the same in all of them has fewer axes."""
        def own(array: Floats, axes: int) -> Floats:
            return np.asarray(np.broadcast_to(array, (*lead, *array.shape[array.ndim - axes:]))[index])

        mine = ClosureArrays(*(own(part, size) for part, size in zip(rows, (1, 2, 2, 1, 1, 1), strict=True)))
        state = {"q": own(place, 1), "u": own(speeds, 1)}
        return Partition(plans.tree, _operators_at(system, state["q"], t), own(force, 1), mine, own(axes, 3),
                         own(right, 1), secondary=secondary, complete=lambda udot: plans.kernels.run(
                             "joint_accelerations", {**state, "udot": udot}, None, t))

    return StateBatch.of(lead, at) if lead else at(())
