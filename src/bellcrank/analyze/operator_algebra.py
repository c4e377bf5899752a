"""The spatial operator algebra of a machine in one state: operators, factors of the mass matrix, partition."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, flat, one_time
from bellcrank.errors import StateError
from bellcrank.formulations.operator.operators import SpatialOperators
from bellcrank.formulations.operator.partition import Partition
from bellcrank.lowering.function import direct
from bellcrank.system.body_kinematics import link_rows
from bellcrank.system.body_places import body_place
from bellcrank.system.force_elements import actuator_forces
from bellcrank.system.state_methods import of_motion, of_position
from bellcrank.system.tree_dynamics import tree_forces

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["mass_factors", "operators", "partition"]


@of_position()
def operators(system: System, q: npt.ArrayLike, *, t: float = START) -> SpatialOperators:
    """The spatial operators of one configuration, as objects with O(n) products.

    >>> import bellcrank as bc, numpy as np
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> o = bc.analyze.operators(arm, [0.1, 0.2])
    >>> bool(np.allclose(o.mass_inverse @ (o.mass @ [1.0, 2.0]), [1.0, 2.0]))
    True
    """
    kernels = system.kernels
    given = {"q": flat("q", q, kernels.tree.nq, "the coordinates"), "t": np.array([one_time(t)]),
             "parameters": np.array([float(np.asarray(v)) for v in kernels.model.values.values()])}
    if given["q"].ndim != 1 or not np.isfinite(given["q"]).all():
        raise StateError("operators: needs one finite configuration q, without batch axes")
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
    """U (..., nu, nu) and D (..., nu) with ``mass_matrix = U diag(D) U^T``, U unit triangular in the order of
    the tree (columns of outboard joints reach inboard rows). Cost: O(n * depth).

    >>> import bellcrank as bc, numpy as np
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> u, d = bc.analyze.mass_factors(arm, [0.1, 0.2])
    >>> bool(np.allclose(u * d @ u.T, arm.mass_matrix([0.1, 0.2])))
    True
    """
    columns = system.kernels.run("factor_columns", {"q": q}, None, t)
    diagonal = system.kernels.run("factor_diagonal", {"q": q}, None, t)
    return columns.reshape(*columns.shape[:-1], system.nu, system.nu), diagonal


@of_motion()
def partition(system: System, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
              secondary: Collection[str] = (), t: float = START) -> Partition:
    """The closed chain in one state as a primary and a secondary system with the closures between them, step by
    step as in the spatial operator algebra; `Partition.with_constraints` detaches and attaches closures.

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
    loops = plans.loops
    rows = loops.rows(q, u, t)
    given = np.zeros(plans.tree.nu) if tau is None else actuator_forces(plans, q, u, tau, t=t)
    force = given - tree_forces(plans, q, u, np.zeros(plans.tree.nu), None, t)
    return Partition(plans.tree, operators(system, q, t=t), force, rows, loops.poses(q, t)[0],
                     loops.gamma(q, u, t, rows), secondary=secondary)
