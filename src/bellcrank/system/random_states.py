"""Random states of a machine: loops closed, joints within their ranges, prescribed joints where their laws have them.

Joints that no loop binds are drawn freely. The others walk from an assembled position: every step is a random
displacement along which the loops stay closed to first order, towards the ranges of joints that are out of theirs; then
the loops are closed. It is taken if they can be and no joint gets farther out of its range. So the states are on the
assembly branches that motion can reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, leading
from bellcrank.errors import AssemblyError
from bellcrank.loops.closer import Target, project
from bellcrank.loops.loop_paths import joints_of_loops
from bellcrank.loops.tolerances import CLOSED
from bellcrank.mechanism.forces.coordinate_forces import Limit
from bellcrank.system.assembly import assemble, with_laws
from bellcrank.system.force_elements import with_values
from bellcrank.system.state import State
from bellcrank.system.usual_cut import usual_plans

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["CoordinateRanges", "random_state"]

#: steps of a walk, how many more to come within the ranges, and their length [rad, or typical lengths]
_STEPS, _MORE, _STRIDE = 8, 200, 0.4
#: by how much rounding may take a joint out of its range [rad, or typical lengths]
_ROUNDING = 1e-9


def random_state(plans: LoopPlans, rng: np.random.Generator, size: tuple[int, ...] | int, t: float) -> State:
    """A state, or a batch of this size. See `System.random_state`."""
    usual = usual_plans(plans)
    if usual is not None:  # what is near a closed position depends on the cut
        found = random_state(usual, rng, size, t)
        return found if plans.drawing is None else assemble(plans, *found, t=t)
    space, ranges = plans.configuration, CoordinateRanges.of(plans)
    if plans.tree.looped and plans.model.batched:
        size = leading([np.empty((*axes, 0)) for axes in (
            np.atleast_1d(np.asarray(size, dtype=int)), plans.model.parameter_axes)])
    q, u = space.random_state(rng, size)
    q = ranges.drawn(rng, q)
    if not plans.tree.looped or not q.size:
        return space.state(*with_laws(plans, q, u, t), t)
    rows = _walked(plans.samples(q.shape[:-1]), rng, q.reshape(-1, space.nq), ranges, t)
    return assemble(plans, rows.reshape(q.shape), u, t=t)


class CoordinateRanges(NamedTuple):
    """Coordinates that have ranges: their places in q and in u, and their ends, infinite where there is none."""

    places: npt.NDArray[np.int64]
    speeds: npt.NDArray[np.int64]
    low: Floats
    high: Floats

    @classmethod
    def of(cls, plans: LoopPlans) -> CoordinateRanges:
        """Those of `Mechanism.set_range` and of compliant stops; laws say where prescribed joints are."""
        space, mechanism = plans.configuration, plans.model.mechanism
        records = {r.name: r for r in space.records if r.prescribed is None and r.joint.nq == r.joint.nu}
        ends = [(name, 0, *each) for name, each in mechanism.ranges.items()]
        for stop in mechanism.joint_forces:
            if isinstance(stop.along, Limit):
                limit = with_values(plans, stop.along)
                ends.append((stop.joint, stop.coordinate, -np.inf if limit.lower is None else np.max(limit.lower),
                             np.inf if limit.upper is None else np.min(limit.upper)))
        found: dict[tuple[int, int], tuple[float, float]] = {}
        for joint, coordinate, low, high in ends:
            if joint in records:
                place = space.starts[joint][0] + coordinate, space.starts[joint][1] + coordinate
                before = found.get(place, (-np.inf, np.inf))
                found[place] = max(before[0], float(low)), min(before[1], float(high))
        places, speeds = np.array(list(found), dtype=np.int64).reshape(-1, 2).T
        lower, upper = np.array(list(found.values()), dtype=float).reshape(-1, 2).T
        return cls(places, speeds, lower, np.maximum(lower, upper))

    @classmethod
    def none(cls) -> CoordinateRanges:
        """No coordinate has a range."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))

    def drawn(self, rng: np.random.Generator, q: Floats) -> Floats:
        """Positions with these coordinates uniform between two ends, or as far from a single end as from zero."""
        if not len(self.places):
            return q
        q, both = q.copy(), np.isfinite(self.low) & np.isfinite(self.high)
        far = np.abs(q[..., self.places])
        one_end = np.where(np.isfinite(self.low), self.low + far, self.high - far)
        uniform = rng.uniform(np.where(both, self.low, 0.0), np.where(both, self.high, 1.0), far.shape)
        q[..., self.places] = np.where(both, uniform, one_end)
        return q

    def beyond(self, q: Floats) -> Floats:
        """By how much every coordinate is out of its range, (..., coordinates); zero for rounding."""
        x = q[..., self.places]
        far = np.maximum(self.low - x, x - self.high)
        return np.where(far > _ROUNDING, far, 0.0)


def _walked(plans: LoopPlans, rng: np.random.Generator, drawn: Floats, ranges: CoordinateRanges, t: float) -> Floats:
    """Closed positions (n, nq), from those that were drawn for joints outside of all loops."""
    space, loops = plans.configuration, joints_of_loops(plans.tree)
    begun = assemble(plans, t=t)
    for failure in begun.failures:
        raise AssemblyError(f"random_state: {failure.reason}; this is batch index {failure.index}", failure.joint)
    stride, q, start = np.zeros(space.nu), drawn.copy(), np.broadcast_to(begun.q, drawn.shape)
    for record in space.records:
        i, j = space.starts[record.name]
        if record.name in loops:
            q[:, i:i + record.joint.nq] = start[:, i:i + record.joint.nq]
            stride[j:j + record.joint.nu] = _STRIDE * space.usual[j:j + record.joint.nu]
    stride[plans.model.bound_mask()] = 0.0
    q = np.array(with_laws(plans, q, np.zeros((len(q), space.nu)), t)[0])
    outside = ranges.beyond(q).sum(axis=-1)
    for k in range(_STEPS + _MORE):
        some = np.arange(len(q)) if k < _STEPS else np.flatnonzero(outside > 0.0)
        if not len(some):
            return q
        way = rng.normal(size=(len(some), space.nu)) * stride
        found, good = _stepped(plans.of_samples(some), q[some], way, stride, ranges, t)
        far = ranges.beyond(found).sum(axis=-1)
        better = good & (far <= outside[some])
        q[some[better]], outside[some[better]] = found[better], far[better]
    excess = ranges.beyond(q).max(axis=0)
    worst = int(np.argmax(excess))
    name = space.coordinate_names[ranges.places[worst]]
    raise AssemblyError(f"random_state: no closed position of {plans.tree.name!r} was found in which {name!r} is "
                        f"between {ranges.low[worst]:.6g} and {ranges.high[worst]:.6g}; it stays {excess[worst]:.3g} "
                        "beyond. Check set_range and add_limit of this joint, and the position in which it is zero")


def _stepped(plans: LoopPlans, q: Floats, way: Floats, stride: Floats, ranges: CoordinateRanges, t: float
             ) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The closed positions one step from others (n, nq), and which of them were found."""
    target = Target(plans.model.bound_mask(), 1.0 / plans.configuration.usual)
    now, most = q[:, ranges.places], stride[ranges.speeds]
    inside = np.clip(now + way[:, ranges.speeds], ranges.low, ranges.high)
    way[:, ranges.speeds] = np.clip(inside - now, -most, most)
    tangent = project(plans.loops, q, way, target, t)[0]
    if plans.tree.rheonomic:  # without what laws of time move
        tangent = tangent - project(plans.loops, q, np.zeros_like(way), target, t)[0]
    goal = plans.configuration.integrate(q, tangent)
    if plans.closer.near is not None:
        found, good = plans.closer.near.nearest(goal, target.held, target.weights, t)
    else:
        found, left = plans.closer.close(goal, target, t)
        good = np.asarray(left) < CLOSED
    return plans.loops.measured(found, t), good
