"""Force elements in one state: what they exert, where, how long they are, what they store. One text over any scalar.

Each kind computes its parts when they are asked for, so that a law may read the length of an element without its force.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from bellcrank.errors import ModelError, hint
from bellcrank.lowering.contact_view import ContactView
from bellcrank.lowering.element_loads import UnitForce, unit_force
from bellcrank.lowering.element_view import REPORT, ElementView, InSight
from bellcrank.mechanism.forces.machine_force import stored_by
from bellcrank.mechanism.parts import StateRate
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.spatial import Force, Vector
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.pairs import (
    BushingPair,
    DragPair,
    PointPair,
    SumForce,
    WrenchPair,
)
from bellcrank.topology.tree import Tree

__all__ = ["REPORT", "ElementView", "element_parts", "element_reports", "element_view", "kind_of_view"]


class PointView(ElementView):
    """A force along the line between two points."""

    @cached_property
    def _line(self) -> Any:
        part = self._at.bind(self._part)
        return part.line(self._at.moving(self._part.first), self._at.moving(self._part.second))

    @cached_property
    def force(self) -> Number:
        along = self._at.bind(self._part).along.at(self._at.t).seen(self._at)
        return along.force(self.length, self.rate)

    @property
    def length(self) -> Number:
        return self._line[3]

    @property
    def rate(self) -> Number:
        return self._line[4]

    @property
    def energy(self) -> Number:
        return self._at.bind(self._part).along.stored(self._at, self.length)

    @property
    def vector(self) -> Vector:
        turned: Vector = self._at.in_world(self._line[2]) * self.force
        return turned

    @property
    def torque(self) -> Vector:
        return Vector.zero()

    @property
    def first_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part.first).origin + self._line[0], True)

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part.second).origin + self._line[1], True)


class SumView(ElementView):
    """A force along a joint coordinate, or a sum of some: its vector, torque and second point are those on the child of
    the first joint of the sum, at that joint's own origin there; its first point is that of the last joint on its
    parent."""

    @cached_property
    def _along(self) -> Any:
        return self._at.bind(self._part.along).at(self._at.t)

    @cached_property
    def _total(self) -> tuple[Number, Number]:
        return self._at.total(self._part)

    @cached_property
    def force(self) -> Number:
        return self._along.seen(self._at).force(*self._total)

    @property
    def length(self) -> Number:
        return self._total[0]

    @property
    def rate(self) -> Number:
        return self._total[1]

    @property
    def energy(self) -> Number:
        return self._along.stored(self._at, self.length)

    def _unit(self, term: int) -> UnitForce:
        link, i, _ = self._part.terms[term]
        return unit_force(self._tree, link, i, self._at.moving, self._at.around)

    @cached_property
    def _wrench(self) -> Force:
        """About the joint's own origin on its child."""
        link, _, factor = self._at.bind(self._part.terms)[0]
        own = self._unit(0)
        load: Force = own.wrench * (self.force * (-factor if link in self._tree.backwards else factor))
        arm = self._at.moving(own.link).origin + own.arm - self._end(0, 1)
        return Force(load.moment + arm.cross(load.force), load.force)

    @property
    def vector(self) -> Vector:
        return self._at.in_world(self._wrench.force)

    @property
    def torque(self) -> Vector:
        return self._at.in_world(self._wrench.moment)

    @property
    def first_point(self) -> Vector:
        return self._at.in_world(self._end(-1, 0), True)

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._end(0, 1), True)

    def _end(self, term: int, side: int) -> Vector:
        """The origin of a joint's frame on its parent or its child, in the axes of motions."""
        link = self._part.terms[term][0]
        if link not in self._tree.joint_ends:  # those of the library itself
            own = self._unit(term)
            return self._at.moving(own.link).origin + own.arm
        place, shift = self._tree.joint_ends[link][side]
        moving = self._at.moving(place)
        return moving.origin + moving.axes.apply(Vector(*self._at.bind(tuple(shift))))


class SpeedView(SumView):
    """A force along a speed of a joint with quaternions, to which no coordinate belongs."""

    has = tuple(name for name in SumView.has if name != "length")


class BodyView(ElementView):
    """A wrench on the second body at a point of it: bushings, drag, laws."""

    has: tuple[str, ...] = ("power", "energy", "vector", "torque", "second_point")

    @property
    def _arm(self) -> Vector:
        """From the origin of the second link to the point, in the axes of motions."""
        point = getattr(self._part, "second_shift", None) or self._part.point
        return self._at.moving(self._part.second).axes.apply(Vector(*self._at.bind(tuple(point))))

    @cached_property
    def _wrench(self) -> Force:
        return self._loads()[1][1]

    @property
    def power(self) -> Number:
        return self._power_of_loads()

    @property
    def vector(self) -> Vector:
        return self._at.in_world(self._wrench.force)

    @property
    def torque(self) -> Vector:
        return self._at.in_world(self._wrench.moment - self._arm.cross(self._wrench.force))

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part.second).origin + self._arm, True)

    @property
    def energy(self) -> Number:
        part = self._at.bind(self._part)
        if isinstance(part, WrenchPair):
            return stored_by(part.law, self._at)
        return part.energy(self._at.moving(self._part.first), self._at.moving(self._part.second))


class BushingView(BodyView):
    """A bushing: what it exerts on both bodies acts where the frame on the second one is."""

    has = (*BodyView.has, "first_point")

    @property
    def first_point(self) -> Vector:
        return self.second_point


class GroundedView(BodyView):
    """A law that knows where it acts on the ground: tyres."""

    has = (*BodyView.has, "first_point")

    @property
    def first_point(self) -> Vector:
        where: Vector = self._at.bind(self._part).law.ground_point(self._at)
        return where


class AppliedView(ElementView):
    """A given wrench on a body, constant or a function of time."""

    has = BodyView.has

    @cached_property
    def _parts(self) -> tuple[Vector, Vector, Vector]:
        """Force and moment in world axes, and the arm in the axes of motions."""
        link, w = self._part
        time, axes = self._at.t, self._at.moving(link).axes
        force, moment = (Vector(*(x(time) if callable(x) else x for x in self._at.bind(part)))
                         for part in (w.force, w.moment))
        if w.axes is not None:
            force, moment = (self._at.in_world(axes.apply(w.axes.rotation.apply(v))) for v in (force, moment))
        return force, moment, axes.apply(Vector(*self._at.bind(tuple(w.at))))

    @property
    def vector(self) -> Vector:
        return self._parts[0]

    @property
    def torque(self) -> Vector:
        return self._parts[1]

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part[0]).origin + self._parts[2], True)

    @property
    def power(self) -> Number:
        moving = self._at.moving(self._part[0])
        rate = self._at.in_world(moving.velocity + moving.omega.cross(self._parts[2]))
        return self.vector.dot(rate) + self.torque.dot(self._at.in_world(moving.omega))


_KINDS: dict[type, type[ElementView]] = {PointPair: PointView, BushingPair: BushingView, DragPair: BodyView,
                                         WrenchPair: BodyView, ContactPair: ContactView}


def element_parts(tree: Tree) -> list[tuple[str, type[ElementView], Any]]:
    """All elements of a tree: name, kind of view, and what it is made with."""
    pairs = [pair for pair in (*tree.pairs, *tree.readable) if not isinstance(getattr(pair, "along", None), StateRate)
             and not (isinstance(pair, SumForce) and pair.name in tree.named_forces)]  # see `laws_between_links`
    return [*((pair.name, kind_of_view(tree, pair), pair) for pair in (*tree.named_forces.values(), *pairs)),
            *((w.name, AppliedView, (link, w)) for link, several in tree.applied.items() for w in several)]


def kind_of_view(tree: Tree, pair: Any) -> type[ElementView]:
    """How an element between links, or along coordinates, is seen."""
    if isinstance(pair, SumForce):
        kinds: list[Any] = [tree.extended.joints[link] for link, _, _ in pair.terms]
        return SumView if all(kind.nq == kind.nu for kind in kinds) else SpeedView
    if isinstance(pair, WrenchPair) and hasattr(pair.law, "ground_point"):
        return GroundedView
    return _KINDS[type(pair)]


def element_view(at: InSight, tree: Tree, name: str) -> ElementView:
    """One element by its name."""
    parts = element_parts(tree)
    found = [(kind, part) for label, kind, part in parts if label == name]
    known = [label for label, _, _ in parts]
    if not found:
        raise ModelError(f"no force element called {name!r}; there are {', '.join(known) or 'none'}{hint(name, known)}")
    if len(found) > 1:
        raise ModelError(f"{len(found)} elements are called {name!r}; give them names of their own")
    kind, part = found[0]
    return kind(at, tree, part)


def element_reports(tree: Sweeps) -> tuple[Number, ...]:
    """What all elements report, one after another: see `element_view.FIELDS`."""
    machine: Any = tree  # the direct schedule, which knows it as a whole
    out: list[Number] = []
    for _, kind, part in element_parts(machine.tree):
        out += kind(machine.sight, machine.tree, part).report()
    return tuple(out)
