"""The regressor of a machine on arrays: columns for inertial parameters of its bodies; with loops, at its drives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_time
from bellcrank.derivatives.inertial import PER_LINK
from bellcrank.derivatives.inertial import regressor as regressor_of_links
from bellcrank.errors import ModelError, NotYetError, SingularError
from bellcrank.system.drive_programs import allowed_motions, drive_entries
from bellcrank.system.evaluator import UNROLL_LINKS

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["INERTIAL", "inertial_names", "inertial_values", "regressor"]

#: names of a body's inertial parameters: mass, first and second moment about its origin, in its axes
INERTIAL = ("mass", "mx", "my", "mz", "xx", "xy", "xz", "yy", "yz", "zz")
#: rows and columns of the second moment's entries
_PAIRS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def inertial_names(plans: LoopPlans) -> tuple[str, ...]:
    """Names of the columns: ``body.mass`` and so on."""
    return tuple(f"{body}.{name}" for body in plans.model.body_names for name in INERTIAL)


def inertial_values(plans: LoopPlans) -> Floats:
    """What the parameters are in the model, (..., 10 bodies)."""
    rows = []
    for body in plans.model.described.bodies:
        mass, first, second = body.inertia.rigid()
        rows += [plans.model.values_of([x])[..., 0] for x in (mass, *first, *second)]
    return np.stack(np.broadcast_arrays(*rows), axis=-1)


def regressor(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *, t: npt.ArrayLike = START
              ) -> Floats:
    """See `System.regressor`."""
    check_time(t)
    tree, kernels = plans.tree, plans.kernels
    tree.refuse_flexible("regressor")
    if tree.n > UNROLL_LINKS or kernels.maker.schedule == "rolled":
        raise NotYetError(f"regressor: {tree.name!r} is rolled into loops ({tree.n} links); up to {UNROLL_LINKS} can "
                          "be asked about")
    function = kernels.kept("regressor", lambda: regressor_of_links(tree))
    kernels.functions["regressor"] = function
    rows = kernels.run("regressor", {"q": q, "u": u, "udot": udot}, None, t)
    links = rows.reshape(*rows.shape[:-1], tree.nu, PER_LINK * tree.n)
    bodies = links @ _of_bodies(plans)
    return _at_drives(plans, bodies, q, u, t) if tree.looped else bodies


def _of_bodies(plans: LoopPlans) -> Floats:
    """How the parameters of bodies make up those of links, (..., 10 links, 10 bodies)."""
    tree, parts = plans.tree, []
    sharing = {name: [c.name for c in plans.model.mechanism.carriers if c.shares and c.real == name]
               for name in plans.model.body_names}
    for name, carriers in sharing.items():
        block = np.zeros((PER_LINK * tree.n, PER_LINK))
        for index in map(tree.body_names.index, (name, *carriers)):
            link, shift = int(tree.body_link[index]), plans.model.body_shift(index)
            own = np.zeros((*shift.shape[:-1], PER_LINK * tree.n, PER_LINK))
            if link:
                own[..., PER_LINK * (link - 1):PER_LINK * link, :] = _moved(tree.body_turn[index], shift)
            block = block + own / (1 + len(carriers))
        parts.append(block)
    if not parts:
        raise ModelError(f"regressor: {tree.name!r} has no bodies")
    lead = np.broadcast_shapes(*(p.shape[:-2] for p in parts))
    return np.concatenate([np.broadcast_to(p, (*lead, *p.shape[-2:])) for p in parts], axis=-1)


def _moved(turn: Floats, shift: Floats) -> Floats:
    """Parameters in a frame in which the body's own lies turned and shifted, as a matrix (..., 10, 10)."""
    out = np.zeros((*shift.shape[:-1], PER_LINK, PER_LINK))
    out[..., 0, 0] = 1.0
    out[..., 1:4, 0] = shift
    out[..., 1:4, 1:4] = turn
    one = np.eye(3)

    def spread(a: Floats, b: Floats) -> Floats:
        """2 (a . b) 1 - a bᵀ - b aᵀ, half of it twice for a = b."""
        dot = np.sum(a * b, axis=-1)[..., None, None]
        product = a[..., :, None] * b[..., None, :]
        return np.asarray(2.0 * dot * one - product - np.swapaxes(product, -1, -2))

    columns = [0.5 * spread(shift, shift), *(spread(shift, np.broadcast_to(turn[:, i], shift.shape)) for i in range(3))]
    for i, j in _PAIRS:
        unit = np.zeros((3, 3))
        unit[i, j] = unit[j, i] = 1.0
        columns.append(np.broadcast_to(turn @ unit @ turn.T, (*shift.shape[:-1], 3, 3)))
    for p, matrix in enumerate(columns):
        out[..., 4:, p] = np.stack([matrix[..., i, j] for i, j in _PAIRS], axis=-1)
    return out


def _at_drives(plans: LoopPlans, bodies: Floats, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
    """Forces at the drives that do the same as those at all joints of the spanning tree, zero at the others."""
    motions = allowed_motions(plans, q, u, t)
    drives = list(drive_entries(plans, q, t, None))
    if motions is None or len(drives) != motions[0].shape[-1]:
        raise NotYetError(f"regressor: {plans.tree.name!r} needs as many drives as degrees of freedom, and a position "
                          "in which its first plan has pivots")
    shapes = motions[0]
    at = np.swapaxes(shapes[..., drives, :], -1, -2)
    try:
        forces = np.linalg.solve(at, np.swapaxes(shapes, -1, -2) @ bodies)
    except np.linalg.LinAlgError:
        raise SingularError(f"regressor: the drives of {plans.tree.name!r} do not determine its motion here") from None
    out = np.zeros((*forces.shape[:-2], plans.tree.nu, forces.shape[-1]))
    out[..., drives, :] = forces
    return out
