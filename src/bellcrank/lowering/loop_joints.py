"""How joints that close loops move, by the motions of the two links that they connect.

Such a joint carries no link. Its coordinates are inputs as all others are; by these its own frame on the child lies at
R_J, p_J in that on its parent, with the columns S, and a unit force along coordinate k exerts the wrench w_k, whose
power is one on column k and none on the others. With e the nearest common ancestor of both links, at rest,

    displacement_k = w_k . [turn; shift] from where the coordinates put the child's frame to where it is        (1)
    speed_k        = w_k . (X_B v_B - X_J v_A)                                                                   (2)
    acceleration_k = w_k . (X_B a_B + c_B - X_J a_A - c_J)                                                       (3)

where A and B are the links, X carries motions to the child's frame, and c_B, c_J are what angular velocities and speeds
add: no type of joint is asked for anything that it does not know as a joint of the tree. (1) is of first order: exact
in what remains after each correction; quaternions are right at once, by the tangents of half angles. Cost: linear in
the number of links around the loop. A joint that is released stands still: the motion of its links is not one of its
coordinates alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bellcrank.lowering.element_loads import unit_wrench
from bellcrank.lowering.link import Link, known_motion
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Matrix3, Motion, Transform, Vector

__all__ = ["LoopJointView", "with_loop_joints"]

#: links from the common ancestor outwards, with a number for each of the columns that move it
Path = Sequence[tuple[Link, Sequence[Number]]]

#: forces along loop joints are not part of the sweeps, which then have no result: see `system.force_terms`
_SOME, _NOT_A_NUMBER = 1e-30, float("nan")  # a number in single precision, too

#: a link's angular velocity and its acceleration, in its axes
Accelerated = tuple[Vector, Motion]

_PLAIN = General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))


@dataclass(frozen=True)
class LoopJointView:
    """A loop joint with its state: as a link of the extended tree, and the child's frame on its second link."""

    joint: Link
    frame: Transform
    open: bool  #: it is released and stands still
    forced: bool = False  #: whether forces given along loop joints are elements of the machine

    def displacements(self, first: Path, second: Path) -> tuple[Number, ...]:
        """(1), without what the changes of the links' coordinates on both paths add, which (2) tells."""
        if self.open:
            return self._still()
        turn, shift = self._misplaced(first, second)
        x, y, z = turn
        half = 0.5  # sines of the angle; a quaternion that dq changes is normalised: q (1 + dq / 2), twice the tangent
        if len(self.joint.q) > len(self.joint.columns):  # of half the angle
            half = 2.0 / (1.0 + (x.x + y.y + z.z))
        angles = Vector(half * (y.z - z.y), half * (z.x - x.z), half * (x.y - y.x))
        return self._shares(Motion(angles, shift))

    def turned(self, first: Path, second: Path) -> Number:
        """4 sin(angle / 2)^2 of the turn in (1), which is of first order no more where that is large."""
        if self.open:
            return 0.0
        x, y, z = self._misplaced(first, second)[0]
        return 3.0 - (x.x + y.y + z.z)

    def _misplaced(self, first: Path, second: Path) -> tuple[tuple[Vector, Vector, Vector], Vector]:
        """Where the child's frame is, seen from where the coordinates put it: columns of the rotation, the origin."""
        axes, origin = _place(first)
        for t in self.joint.transforms:
            axes, origin = t.turned(axes), origin + axes.apply(t.translation)
        there, end = _place(second)
        end = end + there.apply(self.frame.translation)
        there = self.frame.turned(there)
        x, y, z = (axes.inverse(there.apply(v)) for v in _PLAIN.rows)
        return (x, y, z), axes.inverse(end - origin)

    def moves(self, first: Path, second: Path) -> tuple[Number, ...]:
        """Changes of the coordinates, as speeds, that follow from changes of those of the links."""
        return _sum(self.displacements(first, second), self.speeds(first, second))

    def speed_changes(self, first: Path, second: Path) -> tuple[Number, ...]:
        """What the given speeds lack of (2)."""
        return _sum(self.speeds(first, second), [-u for u in self.joint.u])

    def speeds(self, first: Path, second: Path) -> tuple[Number, ...]:
        """(2); linear in the numbers along both paths."""
        if self.open:
            return self._still()
        own = _twist(first)
        for t in self.joint.transforms:
            own = t.velocity(own)
        return self._shares(self.frame.velocity(_twist(second)) - own)

    def accelerations(self, first: Path, second: Path) -> tuple[Number, ...]:
        """(3)."""
        return self.between(_accelerated(first), _accelerated(second))

    def between(self, first: Accelerated, second: Accelerated) -> tuple[Number, ...]:
        """(3) from angular velocities and accelerations of both links, as seen from whatever link."""
        if self.open:
            return self._still()
        (omega, own), (turning, other) = first, second
        for t in self.joint.transforms:
            own = t.acceleration(own)
        turned = self.frame.rotation.inverse(turning) - self.joint.rate.angular  # the parent's, by the speeds
        own = own + known_motion(self.joint, omega, turned)[1]
        other = self.frame.acceleration(other)
        pull = self.frame.rotation.inverse(turning.centripetal(self.frame.translation))
        found = self._shares(Motion(other.angular, other.linear + pull) - own)
        if self.forced:
            return found
        return tuple(select_less(abs(force), _SOME, x, _NOT_A_NUMBER)  # who is asked about such forces knows what to do
                     for x, force in zip(found, self.joint.change("tau"), strict=True))

    def loads(self, k: int, force: Number) -> tuple[Force, Force]:
        """What a force along a coordinate exerts on both links, about their origins: (2) transposed."""
        first = second = self._wrenches[k] * force
        for t in reversed(self.joint.transforms):
            first = t.force(first)
        return -first, self.frame.force(second)

    def _still(self) -> tuple[Number, ...]:
        return (0.0,) * len(self.joint.columns)

    @cached_property
    def _wrenches(self) -> list[Force]:
        columns = self.joint.columns
        return [unit_wrench(columns, k) for k in range(len(columns))]

    def _shares(self, motion: Motion) -> tuple[Number, ...]:
        return tuple(motion.dot(w) for w in self._wrenches)


def _sum(a: Sequence[Number], b: Sequence[Number]) -> tuple[Number, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _place(path: Path) -> tuple[General, Vector]:
    axes, origin = _PLAIN, Vector.zero()
    for link, _ in path:
        for t in link.transforms:
            axes, origin = t.turned(axes), origin + axes.apply(t.translation)
    return axes, origin


def _twist(path: Path) -> Motion:
    total = Motion.zero()
    for link, rates in path:
        for t in link.transforms:
            total = t.velocity(total)
        for column, rate in zip(link.moving_columns, rates, strict=True):
            total = total + column * rate
    return total


def _accelerated(path: Path) -> Accelerated:
    """Angular velocity and acceleration of the end of a path, in its axes."""
    omega, total = Vector.zero(), Motion.zero()
    for link, rates in path:
        for t in link.transforms:
            total = t.acceleration(total)
        omega, known = known_motion(link, omega)
        total = total + known
        for column, rate in zip(link.moving_columns, rates, strict=True):
            total = total + column * rate
    return omega, total


# -- over groups of links ------------------------------------------------------------------------------------------
def with_loop_joints(what: str, groups: Sweeps, field: Field) -> Field:
    """What groups keep for the speeds of their own links, followed by the same for their loop joints."""
    step, parts = _STEPS[what]
    width = groups.world.widths[1]
    return groups.outward(step, field, root=((0.0,) * width,) * parts)


def _rates(group: Any, flat: Sequence[Number], own: Sequence[Number]) -> tuple[tuple[Number, ...], dict[int, Number]]:
    """What goes on to other groups, and numbers for all local speeds, from those of the group's own links."""
    _, rates = group.from_parent(flat)
    number, feed = group.shape.numbers, iter(own)
    for k, (link, mine) in enumerate(zip(group.links, group.shape.own, strict=True)):
        for c, x in zip(range(link.joint.nu if mine else 0), feed, strict=False):
            if (k, c) in number:
                rates[number[k, c]] = x
    still = Motion.zero()
    return group.answer(still, [still] * len(group.links), rates), rates


def _paths(group: Any, rates: dict[int, Number], driven: bool) -> list[tuple[LoopJointView, Path, Path]]:
    """The group's loop joints with what moves their links; `driven`: as laws say where these prescribe speeds, else by
    nothing there."""
    number = group.shape.numbers

    def along(path: Sequence[int]) -> Path:
        return [(group.links[k], [rates[number[k, c]] if (k, c) in number else u if driven else 0.0
                                  for c, u in enumerate(group.links[k].moving_speeds)]
                 if group.links[k].moving_columns else ()) for k in path]  # modes do not move their frame

    return [(view, along(shape.first_path), along(shape.second_path))
            for view, shape in zip(group.joints, group.shape.joints, strict=True)]


def _accelerations(group: Any, flat: Any, own: Sequence[Number]) -> tuple[Any, tuple[Number, ...]]:
    sent, rates = _rates(group, flat[0], own)
    found = [x for view, *ends in _paths(group, rates, False) for x in view.accelerations(*ends)]
    return (sent,), (*own, *found)


def _speeds(group: Any, flat: Any, own: Sequence[Number]) -> tuple[Any, tuple[Number, ...]]:
    sent, rates = _rates(group, flat[0], own)
    return (sent,), (*own, *(x for view, *ends in _paths(group, rates, True) for x in view.speeds(*ends)))


def _speed_changes(group: Any, flat: Any, own: Sequence[Number]) -> tuple[Any, tuple[Number, ...]]:
    given = [x for link, mine in zip(group.links, group.shape.own, strict=True) if mine for x in link.u]
    sent, rates = _rates(group, flat[0], [u + du for u, du in zip(given, own, strict=True)])
    return (sent,), (*own, *(x for view, *ends in _paths(group, rates, True) for x in view.speed_changes(*ends)))


def _displacements(group: Any, flat: Any, own: Sequence[Number]) -> tuple[Any, tuple[Number, ...]]:
    sent, rates = _rates(group, flat[0], own)
    return (sent,), (*own, *(x for view, *ends in _paths(group, rates, False) for x in view.moves(*ends)))


def _corrections(group: Any, flat: Any, own: Sequence[Number]) -> tuple[Any, tuple[Number, ...]]:
    half = len(own) // 2
    (moved,), displaced = _displacements(group, flat[:1], own[:half])
    (sped,), changed = _speed_changes(group, flat[1:], own[half:])
    return (moved, sped), (*displaced, *changed)


#: steps, and how many answers travel
_STEPS = {"accelerations": (_accelerations, 1), "speeds": (_speeds, 1), "speed changes": (_speed_changes, 1),
          "displacements": (_displacements, 1), "corrections": (_corrections, 2)}
