"""Force elements in one state: what they exert, where, how long they are, what they store. One text over any scalar.

Each kind computes its parts when they are asked for, so that a law may read the length of an element without its force.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from bellcrank.errors import ModelError, hint
from bellcrank.lowering.contact_view import ContactView
from bellcrank.lowering.element_loads import closing_load, unit_wrench
from bellcrank.lowering.element_view import REPORT, ElementView, InSight
from bellcrank.mechanism.first_order import StateRate
from bellcrank.mechanism.forces.machine_force import stored_by
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.spatial import Force, Vector
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.pairs import (
    BushingPair,
    DragPair,
    LoopForce,
    PointPair,
    SumForce,
    WrenchPair,
)
from bellcrank.topology.tree import Tree

__all__ = ["REPORT", "ElementView", "JointView", "element_parts", "element_reports", "element_view",
           "joint_view"]


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


class JointView(ElementView):
    """A force along a coordinate of a joint of the tree; the points are one on the axis of the joint."""

    @property
    def _place(self) -> tuple[int, int, Any]:
        link, i, along, _ = self._part
        return link, i, self._at.bind(along).at(self._at.t)

    @cached_property
    def force(self) -> Number:
        return self._place[2].seen(self._at).force(self.length, self.rate)

    @property
    def length(self) -> Number:
        return self._at.coordinate(*self._place[:2])[0]

    @property
    def rate(self) -> Number:
        return self._at.coordinate(*self._place[:2])[1]

    @property
    def energy(self) -> Number:
        return self._place[2].stored(self._at, self.length)

    @cached_property
    def _wrench(self) -> Force:
        return _on_child(self._at, self._tree, *self._part[:2])

    @property
    def vector(self) -> Vector:
        turned: Vector = self._wrench.force * self.force
        return turned

    @property
    def torque(self) -> Vector:
        turned: Vector = self._wrench.moment * self.force
        return turned

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part[0]).origin, True)

    first_point = second_point


class SpeedView(JointView):
    """A force along a speed of a joint with quaternions, to which no coordinate belongs."""

    has = tuple(name for name in JointView.has if name != "length")


def _on_child(at: InSight, tree: Tree, link: int, i: int) -> Force:
    """What a unit of force along a coordinate of a joint of the tree exerts on the joint's child, in world axes about
    the origin of the outboard link."""
    joint = tree.joints[link]
    assert joint is not None
    q = at.coordinates(link)
    numbers = tree.numbers(link)
    own = unit_wrench(joint.subspace(q, at.bind(numbers.joint) if link in tree.symbolic else numbers.joint), i)
    moment, force = (at.in_world(at.moving(link).axes.apply(v)) for v in (own.moment, own.force))
    return Force(-moment, -force) if link in tree.backwards else Force(moment, force)


class SumView(ElementView):
    """A force along a sum of joint coordinates: its vector, torque and second point are those on the child of the first
    joint of the sum, its first point is at the last joint."""

    @property
    def _terms(self) -> tuple[tuple[int, int, Number], ...]:
        terms: tuple[tuple[int, int, Number], ...] = self._at.bind(self._part.terms)
        return terms

    @cached_property
    def _wrench(self) -> Force:
        link, i, factor = self._terms[0]
        turned: Force = _on_child(self._at, self._tree, link, i) * (self.force * factor)
        return turned

    @property
    def vector(self) -> Vector:
        return self._wrench.force

    @property
    def torque(self) -> Vector:
        return self._wrench.moment

    @property
    def first_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part.terms[-1][0]).origin, True)

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._at.moving(self._part.terms[0][0]).origin, True)

    @cached_property
    def force(self) -> Number:
        return self._at.bind(self._part.along).at(self._at.t).seen(self._at).force(self.length, self.rate)

    def _sum(self, which: int) -> Number:
        total: Number = 0.0
        for link, i, factor in self._terms:
            total = total + self._at.coordinate(link, i)[which] * factor
        return total

    @cached_property
    def length(self) -> Number:
        return self._sum(0)

    @cached_property
    def rate(self) -> Number:
        return self._sum(1)

    @property
    def energy(self) -> Number:
        return self._at.bind(self._part.along).at(self._at.t).stored(self._at, self.length)


class ClosingView(ElementView):
    """A force along a coordinate of a joint that closes a loop."""

    @cached_property
    def force(self) -> Number:
        return self._at.bind(self._part.along).at(self._at.t).seen(self._at).force(self.length, self.rate)

    @property
    def length(self) -> Number:
        return self._at.along(self._part)[0]

    @property
    def rate(self) -> Number:
        return self._at.along(self._part)[1]

    @property
    def energy(self) -> Number:
        return self._at.bind(self._part.along).at(self._at.t).stored(self._at, self.length)

    @cached_property
    def _load(self) -> tuple[Force, Vector]:
        return closing_load(self._tree, self._part, self._at.moving, self._at.bind, self._at.around)

    @property
    def vector(self) -> Vector:
        return self._at.in_world(self._load[0].force)

    @property
    def torque(self) -> Vector:
        return self._at.in_world(self._load[0].moment)

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._load[1], True)

    first_point = second_point


class ClosingSpeedView(ClosingView):
    """The same along a speed of a joint with quaternions."""

    has = SpeedView.has


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


_KINDS: dict[type, type[ElementView]] = {PointPair: PointView, SumForce: SumView, LoopForce: ClosingView,
                                         BushingPair: BushingView, DragPair: BodyView, WrenchPair: BodyView,
                                         ContactPair: ContactView}


def element_parts(tree: Tree) -> list[tuple[str, type[ElementView], Any]]:
    """All elements of a tree: name, kind of view, and what it is made with."""
    pairs = [pair for pair in (*tree.pairs, *tree.readable) if not isinstance(getattr(pair, "along", None), StateRate)
             and not (isinstance(pair, SumForce) and pair.name in tree.named_forces)]  # see `laws_between_links`
    return [*((name, joint_view(tree, part[0]), part) for name, part in tree.named_forces.items()),
            *((pair.name, _kind(tree, pair), pair) for pair in pairs),
            *((w.name, AppliedView, (link, w)) for link, several in tree.applied.items() for w in several)]


def joint_view(tree: Tree, link: int) -> type[JointView]:
    """How forces on a joint of the tree are seen."""
    joint = tree.joints[link]
    return SpeedView if joint is not None and joint.nq != joint.nu else JointView


def _kind(tree: Tree, pair: Any) -> type[ElementView]:
    if isinstance(pair, LoopForce):
        closure = tree.closures[pair.closure]
        kind = (closure.free or closure).kind
        return ClosingSpeedView if kind.nq != kind.nu else ClosingView
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
