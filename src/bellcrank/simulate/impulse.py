"""Sudden changes of speed: the impulses of loops that close and of joints that hit a stop.

With the constraints J u+ = w the speeds after are those nearest to the speeds before in the measure of kinetic energy
(Gauss's principle for impulses): M (u+ - u-) = J^T lambda. The operator view of Rodriguez, Jain & Kreutz attaches a
closing constraint in the same way: its end velocities jump to consistency, by the same multipliers as its forces.

Cost: O(nu^3), once per event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import SingularError
from bellcrank.loops.null_space import null_space, solve_kkt
from bellcrank.mechanism.machine_sizes import power_of_two
from bellcrank.system.loop_errors import loop_jacobian
from bellcrank.system.reactions import closure_wrenches

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Impulse", "impulse"]


class Impulse(NamedTuple):
    """What a sudden change takes."""

    u: Floats  #: speeds after
    impulse: Floats  #: M (u+ - u-), one for every speed [N s or N m s]
    loss: float  #: kinetic energy lost [J]
    #: what every closure exerts on its child: [moment; force] impulse, world axes, about the joint's origin there
    closures: Mapping[str, Floats]


def impulse(system: Machine, q: Floats, u: Floats, *, t: float = 0.0, speeds: Mapping[int, float] | None = None,
            sums: Sequence[tuple[Floats, float]] = ()) -> Impulse:
    """Speeds that the loops allow after a shock, the given entries of u among them.

    `sums` are changes of sums of speeds: (factors of all speeds, by how much their sum changes).

    >>> import bellcrank as bc
    >>> pendulum = bc.compile(bc.load("double_pendulum"))
    >>> after = impulse(pendulum, pendulum.neutral(), np.array([1.0, 0.0]), speeds={1: 0.5})
    >>> float(after.u[1])
    0.5
    """
    given = dict(speeds or {})
    matrix = system.mass_matrix(q, t=t, speeds="tree")
    # changes of speed: those of prescribed joints are none, the loops' rates must vanish afterwards
    tree = system.model.tree
    rows = [loop_jacobian(system.plans, q, t=t)] if tree.looped else []
    sizes = system.plans.loops.row_sizes.tolist() if tree.looped else []
    wanted = [-system.loop_rate_error(q, u, t=t)] if tree.looped else []
    for index, value in given.items():
        rows.append(np.eye(system.nu)[index:index + 1])
        wanted.append(np.array([value - u[index]]))
        sizes.append(float(tree.speed_sizes[index]))
    for factors, change in sums:
        rows.append(factors[None])
        wanted.append(np.array([change]))
        sizes.append(power_of_two(float(np.abs(factors * tree.speed_sizes).max())))
    if not rows:
        return Impulse(np.where(tree.loop_speeds(), 0.0, u), np.zeros(system.nu), 0.0, {})  # loop joints are all open
    jacobian, gamma, free, size = np.concatenate(rows), np.concatenate(wanted), tree.free_speeds(), np.array(sizes)
    try:
        space = null_space(jacobian[:, free], size, tree.speed_sizes[free])
        jump, loads = solve_kkt(matrix, jacobian, gamma, np.zeros(system.nu), np.zeros(system.nu), free, space)
    except np.linalg.LinAlgError:
        raise SingularError(f"{system.model.name!r}: the impulse at t = {t:.6g} s is not determined") from None
    missed = np.abs(jacobian[:, free] @ jump[free] - gamma)
    if (missed / size).max(initial=0.0) > 1e-6 * (1.0 + float(np.abs(gamma / size).max(initial=0.0))):
        raise SingularError(f"{system.model.name!r}: no speeds satisfy the constraints at t = {t:.6g} s; the closest "
                            f"miss them by {float(missed[np.argmax(missed / size)]):.3g}")
    after = u + jump
    if tree.loop_joints:
        after = system.kernels.run("joint_speeds", {"q": q, "u": after}, None, t)
    loss = float(system.kinetic_energy(q, u, t=t) - system.kinetic_energy(q, after, t=t))
    return Impulse(after, matrix @ (after - u), loss, _on_children(system, q, loads, t))


def _on_children(system: Machine, q: Floats, loads: Floats, t: float) -> dict[str, Floats]:
    if not system.model.tree.looped:
        return {}
    found = closure_wrenches(system.plans, q, None, loads[:system.plans.loops.m], t)
    return {name: wrench for name, (_, wrench, _) in found.items()}
