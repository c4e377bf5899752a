"""Speeds that are asked of joints that were cut: the others are chosen so that these have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, by_name
from bellcrank.errors import AssemblyError, StateError
from bellcrank.loops.closer import Target
from bellcrank.loops.tolerances import DRIFTED
from bellcrank.mechanism.machine_sizes import speed_sizes
from bellcrank.system.loop_errors import loop_speeds

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["ClosingSpeeds", "closing_speeds", "with_closing_speeds"]

#: directions in which speeds of cut joints change by less than this part of the most are left alone
_FLAT = 1e-10


class ClosingSpeeds(NamedTuple):
    """Speeds (states, some) that a joint which was cut shall have, and which of its speeds these are."""

    joint: str
    which: list[int]
    values: Floats

    def of_states(self, some: npt.NDArray[np.int64]) -> ClosingSpeeds:
        """The same for some of the states."""
        return ClosingSpeeds(self.joint, self.which, self.values[some])


def closing_speeds(plans: LoopPlans, u: Mapping[str, Any], lead: tuple[int, ...]
                   ) -> tuple[list[ClosingSpeeds], dict[str, Any]]:
    """Speeds {joint or joint.speed: values} of joints that were cut, and the others."""
    out: list[ClosingSpeeds] = []
    rest: dict[str, Any] = {}
    for key, value in u.items():
        joint, label = plans.configuration.split(key)
        if joint not in plans.tree.cut_names:
            rest[key] = value
            continue
        names = plans.model.mechanism.joint(joint).joint.speed_names
        if label is not None and label not in names:
            raise StateError(f"{key!r} is a coordinate without a speed of its own; there are {', '.join(names)}")
        which = list(range(len(names))) if label is None else [names.index(label)]
        places = {key: list(range(len(which)))}
        array = by_name("u", {key: value}, places.__getitem__, len(which))
        if not np.isfinite(array).all():
            raise StateError(f"assemble: u of {key!r} is not finite")
        out.append(ClosingSpeeds(joint, which, np.broadcast_to(array, (*lead, len(which))).reshape(-1, len(which))))
    return out, rest


def with_closing_speeds(plans: LoopPlans, q: Floats, u: Floats, asked: Sequence[ClosingSpeeds], target: Target,
                        t: float) -> Floats:
    """Speeds (nu,) nearest to u that keep the loops closed at q, what is held, and have what is asked for, (1, some)
    each."""
    units, free, scale = np.eye(plans.tree.nu), target.free, target.weights[target.free]
    kinds = {joint: speed_sizes(plans.model.mechanism.joint(joint).joint, plans.tree.length) for joint, _, _ in asked}
    sizes = np.concatenate([plans.loops.row_sizes, *(kinds[joint][which] for joint, which, _ in asked)])
    rows, lacks, out = [plans.loops.dense(plans.loops.linearized(q, t)[1])], [], u.copy()
    for joint, which, values in asked:
        still = loop_speeds(plans, q, np.zeros(plans.tree.nu), joint, t=t)
        rows.append((loop_speeds(plans, q, units, joint, t=t) - still).T[which])
        lacks.append(values[0] - loop_speeds(plans, q, u, joint, t=t)[which])
    matrix = np.vstack(rows)[:, free] / scale / sizes[:, None]
    wanted = np.concatenate([np.zeros(len(rows[0])), *lacks]) / sizes
    change = np.linalg.lstsq(matrix, wanted, rcond=_FLAT)[0]
    lacking = np.abs(matrix @ change - wanted)
    if lacking.max(initial=0.0) > DRIFTED * (1.0 + float(np.abs(wanted).max(initial=0.0))):
        raise AssemblyError(f"assemble {plans.tree.name!r}: joint {asked[0].joint!r} cannot have the speed that is "
                            f"asked for: what else is held, or the position, allows no such motion (it lacks "
                            f"{(lacking * sizes)[np.argmax(lacking)]:.3g})", asked[0].joint)
    out[free] += change / scale
    return out
