"""Contacts on arrays: which are closed, where, and what acts there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.mechanism.contact.contact_material import Compliant
from bellcrank.mechanism.contact.narrow_phase import smallest_extent
from bellcrank.spatial import Vector
from bellcrank.system.force_elements import machine_view, with_values
from bellcrank.topology.contact_pairs import ActingPlace, ContactPair

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["ContactState", "contact_states"]

#: rigid shapes that are nearer than this share of the smaller one touch
TOUCHING = 1e-5


@dataclass(frozen=True)
class ContactState:
    """A contact in a state, or in a batch of them: arrays (..., places) and (..., places, 3), in world axes.

    Forces act on the second body, and their opposites on the first. Those of rigid contacts are impulses that only a
    run knows, not a state: here they are not numbers (NaN).
    """

    name: str
    closed: npt.NDArray[np.bool_]  #: whether the shapes touch at each place
    depth: Floats  #: how far they overlap [m]; negative: how far they are apart
    point: Floats  #: where forces act [m]
    normal: Floats  #: of length one, from the first body to the second
    slip: Floats  #: velocity of the second body against the first along the surface [m/s]
    normal_force: Floats  #: [N]
    friction: Floats  #: [N]
    rate: Floats  #: of the depth [m/s]

    @property
    def force(self) -> Floats:
        """The whole force on the second body [N], (..., 3)."""
        return np.asarray((self.normal * self.normal_force[..., None] + self.friction).sum(axis=-2))

    @property
    def slip_speed(self) -> Floats:
        """How fast the shapes slide at each place [m/s]."""
        return np.asarray(np.linalg.norm(self.slip, axis=-1))


def contact_states(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0,
                   only: Collection[str] | None = None) -> dict[str, ContactState]:
    """All contacts by name, compliant ones first; or only some of them."""
    check_time(t)
    tree = plans.tree
    pairs = [p for p in tree.pairs if isinstance(p, ContactPair)] + list(tree.contacts)
    pairs = [p for p in pairs if only is None or p.name in only]
    place, speeds = flat("q", q, tree.nq, "the coordinates"), flat("u", u, tree.nu, "one for every speed")
    lead = np.broadcast_shapes(place.shape[:-1], speeds.shape[:-1], np.shape(t))
    sight = machine_view(plans, place, speeds, t) if pairs else None
    return {p.name: _state(with_values(plans, p), sight, lead) for p in pairs}


def _state(pair: ContactPair, sight: Any, lead: tuple[int, ...]) -> ContactState:
    first, second = sight.moving(pair.first), sight.moving(pair.second)
    soft = isinstance(pair.material, Compliant)
    places = pair.acting(first, second, sight.around) if soft else [
        ActingPlace(*found, np.nan, Vector(np.nan, np.nan, np.nan)) for found in pair.motions(first, second)]
    rows = [[np.broadcast_to(np.asarray(x, dtype=float), lead) for x in (
        touch.depth, *touch.point, *touch.normal, *slip, force, *friction, rate / touch.gain)]
        for touch, rate, slip, force, friction in places]
    numbers = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    depth = numbers[..., 0]
    near = 0.0 if soft else TOUCHING * min(smallest_extent(pair.first_shape), smallest_extent(pair.second_shape))
    closed = depth > -near
    return ContactState(pair.name, closed, depth, numbers[..., 1:4], numbers[..., 4:7], numbers[..., 7:10],
                        numbers[..., 10], numbers[..., 11:14], numbers[..., 14])
