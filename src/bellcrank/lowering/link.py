"""What a step of a formulation sees of one link, and of the world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from bellcrank.mechanism.forces import Actuator
from bellcrank.mechanism.forces.element import Along
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.motion import Prescribed
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.schedule.sweeps import flatten, rebuild
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, RigidInertia, Symmetric3, Transform, Vector
from bellcrank.topology.tree import Applied, LinkNumbers

__all__ = ["Link", "World", "known_motion"]

#: reads input `name`, entry j of this link; floats, arrays or traced scalars
Reader = Callable[[str, int], Number]


class World(NamedTuple):
    """What all links share."""

    time: Number
    gravity: Vector  #: in the axes of the ground link's frame
    ground: Transform  #: pose of the ground link's frame in the world
    external: bool  #: whether external wrenches act anywhere
    rotors: bool = False  #: whether any joint has an armature
    point: Vector = Vector.zero()  #: of a body, in its own frame, that a function asks about
    modes: int = 0  #: the most modes that a body has
    length: float = 1.0  #: typical of the machine [m]
    effort: float = 1.0  #: what accelerates the machine by its own size in a second [J], see `Tree.effort`

    @property
    def flexible(self) -> bool:
        """Whether any body deforms."""
        return self.modes > 0

    @property
    def gravity_in_world(self) -> Vector:
        """Gravity in world axes."""
        return self.ground.rotation.apply(self.gravity)


class ModalRow(NamedTuple):
    """force = column . a + sum of matrix * accelerations of the modes up to this one, and of later ones by their rows,
    + right."""

    column: Force
    matrix: tuple[Number, ...]
    right: Number


class Link:
    """One link with its state; inputs are read when they are first asked for."""

    def __init__(self, joint: Joint, numbers: LinkNumbers, read: Reader, world: World,
                 prescribed: Prescribed | None, applied: tuple[Applied, ...],
                 with_wrenches: bool, laws: tuple[tuple[int, Along], ...] = (),
                 actuators: tuple[tuple[int, Actuator], ...] = (),
                 armatures: tuple[tuple[int, Number], ...] = ()) -> None:
        self.joint, self.numbers, self._read, self.world = joint, numbers, read, world
        self.prescribed, self.applied, self.with_wrenches = prescribed, applied, with_wrenches
        self.laws, self.actuators, self.armatures = laws, actuators, armatures
        self._felt: Force | None = None
        self._late: Callable[[], None] | None = None
        #: the whole machine, where laws look at it
        self.machine: Any = None

    @property
    def pair_wrench(self) -> Force | None:
        """What springs and other elements between distant links exert on this one, link axes about its origin."""
        if self._late is not None:
            self._late()
        return self._felt

    @pair_wrench.setter
    def pair_wrench(self, wrench: Force | None) -> None:
        self._felt, self._late = wrench, None

    def wait_for(self, late: Callable[[], None] | None) -> None:
        """Some of these elements are asked when somebody wants to know."""
        self._late = late

    @property
    def inertia(self) -> RigidInertia:
        """Rigid inertia about the link frame's origin, constant in link axes."""
        return self.numbers.inertia

    def with_speeds(self, u: Sequence[Number]) -> Link:
        """The same link at other speeds; elements between distant links do not act on it."""
        def read(name: str, j: int) -> Number:
            return u[j] if name == "u" else self._read(name, j)

        return type(self)(self.joint, self.numbers, read, self.world, self.prescribed, self.applied,
                          self.with_wrenches, self.laws, self.actuators, self.armatures)

    @cached_property
    def com(self) -> Vector:
        """Centre of mass in link axes; the origin for a link without mass."""
        mass = self.numbers.inertia.mass
        if is_zero(mass):
            return Vector.zero()
        com: Vector = self.numbers.inertia.first * (1.0 / mass)
        return com

    @cached_property
    def central(self) -> Symmetric3:
        """Rotational inertia about the centre of mass, link axes."""
        return self.numbers.inertia.shifted(-self.com).second

    @cached_property
    def _driven(self) -> tuple[list[Number], list[Number], list[Number]]:
        joint = self.joint
        q = [self._read("q", j) for j in range(joint.nq)]
        u = [self._read("u", j) for j in range(joint.nu)]
        if self.prescribed is None:
            return q, u, []
        return self.prescribed.values(self.world.time, q, u, [0.0] * joint.nu)

    @property
    def q(self) -> list[Number]:
        """Joint coordinates."""
        return self._driven[0]

    @property
    def u(self) -> list[Number]:
        """Joint speeds."""
        return self._driven[1]

    @cached_property
    def udot(self) -> list[Number]:
        """Joint accelerations that are given: inputs of inverse dynamics, or prescribed."""
        return [self._driven[2][j] if driven else self._read("udot", j) for j, driven in enumerate(self.mask)]

    @property
    def prescribed_udot(self) -> list[Number]:
        """Accelerations that are prescribed, zero for free speeds; a new list."""
        return [self._driven[2][j] if driven else 0.0 for j, driven in enumerate(self.mask)]

    @cached_property
    def p(self) -> list[Number]:
        """Canonical momenta conjugate to u."""
        return [self._read("p", j) for j in range(self.joint.nu)]

    def change(self, name: str) -> list[Number]:
        """A given change, one number per speed."""
        return [self._read(name, j) for j in range(self.joint.nu)]

    @property
    def load(self) -> Force:
        """A wrench that is given for this link: in its axes, about its origin."""
        six = [self._read("load", j) for j in range(6)]
        return Force(Vector(*six[:3]), Vector(*six[3:]))

    @cached_property
    def law_forces(self) -> list[Number]:
        """Joint forces of springs, dampers and other laws."""
        return self._laws_at(self.u)

    def _laws_at(self, u: Sequence[Number]) -> list[Number]:
        forces: list[Number] = [0.0] * self.joint.nu
        for i, law in self.laws:
            forces[i] = forces[i] + law.at(self.world.time).seen(self.machine and self.machine.sight).force(
                self.q[i], u[i])
        return forces

    def drives_at(self, u: Sequence[Number]) -> list[Number]:
        """The joint forces given, within the limits of actuators at speeds u."""
        forces = [self._read("tau", j) for j in range(self.joint.nu)]
        for i, actuator in self.actuators:
            forces[i] = actuator.output(forces[i], u[i])
        return forces

    @cached_property
    def armature(self) -> tuple[Number, ...]:
        """Rotor inertia felt at each speed; the literal 0.0 where there is none."""
        out: list[Number] = [0.0] * self.joint.nu
        for i, inertia in self.armatures:
            out[i] = out[i] + inertia
        return tuple(out)

    def with_rotors(self, forces: Iterable[Number]) -> tuple[Number, ...]:
        """Joint forces that move the bodies, and what the rotors take at the accelerations given."""
        if not self.armatures:
            return tuple(forces)
        return tuple(force + a * udot for force, a, udot in zip(forces, self.armature, self.udot, strict=True))

    @cached_property
    def tau(self) -> list[Number]:
        """Joint forces conjugate to u, laws included."""
        return self._with_extra(self.drives_at(self.u), self.law_forces)

    def tau_at(self, u: Sequence[Number]) -> list[Number]:
        """Joint forces at speeds that are not inputs but results: laws see those."""
        return self._with_extra(self.drives_at(u), self._laws_at(u))

    def _with_extra(self, drives: Sequence[Number], laws: Sequence[Number]) -> list[Number]:
        """Joint forces in all, with those that a method of integration adds for itself: no actuator limits them."""
        extra = self.change("extra")
        return [0.0 if driven else drive + law if is_zero(more) else drive + law + more
                for driven, drive, law, more in zip(self.mask, drives, laws, extra, strict=True)]

    @cached_property
    def mask(self) -> tuple[bool, ...]:
        """For each speed, whether it is prescribed."""
        return (False,) * self.joint.nu if self.prescribed is None else self.prescribed.mask(self.joint.nu)

    @cached_property
    def transforms(self) -> tuple[Transform, ...]:
        """Pose of this link in its parent, as a product of simple factors."""
        return (self.numbers.placement, *self.joint.transforms(self.q, self.numbers.joint))

    @cached_property
    def columns(self) -> tuple[Motion, ...]:
        """Columns of the joint's motion subspace, in link axes."""
        return self.joint.subspace(self.q, self.numbers.joint)

    @cached_property
    def rate(self) -> Motion:
        """Velocity relative to the parent: the columns times the speeds."""
        total = Motion.zero()
        for column, speed in zip(self.columns, self.u, strict=True):
            total = total + column * speed
        return total

    @cached_property
    def drift(self) -> Motion:
        """Acceleration relative to the parent at constant speeds, plus what is prescribed."""
        total = self.joint.drift(self.q, self.u, self.numbers.joint)
        if self.prescribed is not None:
            for column, rate, driven in zip(self.columns, self._driven[2], self.mask, strict=True):
                if driven:
                    total = total + column * rate
        return total

    @property
    def given_drift(self) -> Motion:
        """Acceleration relative to the parent at the accelerations that are given."""
        total = self.joint.drift(self.q, self.u, self.numbers.joint)
        for column, udot in zip(self.columns, self.udot, strict=True):
            total = total + column * udot
        return total

    @property
    def moving_columns(self) -> tuple[Motion, ...]:
        """The columns of all speeds that move it relative to its parent, from the first of its own on."""
        return self.columns

    @property
    def moving_speeds(self) -> Sequence[Number]:
        """Those speeds."""
        return self.u

    def kinetics(self, omega: Vector) -> tuple[ArticulatedInertia, Force]:
        """What it resists, and the force that its angular velocity needs, in link axes about its origin."""
        return self.inertia.articulated(), self.inertia.gyroscopic(omega)

    def modal_rows(self, omega: Vector) -> Sequence[ModalRow]:
        """Rows of the modes of a body that deforms; none of a rigid one."""
        return ()

    def moving_rates(self, u: Sequence[Number]) -> tuple[Motion, ...]:
        """Rates of their entries."""
        return self.column_rates(u)

    def column_rates(self, u: Sequence[Number]) -> tuple[Motion, ...]:
        """Rates of the columns' entries in link axes at speeds u."""
        rates = self.joint.rates(self.q, u)
        jets = [Jet(value, rate, 0.0) for value, rate in zip(self.q, rates, strict=True)]
        columns = self.joint.subspace(jets, self.numbers.joint)
        return tuple(rebuild(c, (as_jet(x).rate for x in flatten(c, Jet)), Jet) for c in columns)

    def external(self, axes: General) -> Force:
        """External wrenches in link axes about the link's origin; `axes` are the link's in the world."""
        total = Force.zero() if self.pair_wrench is None else self.pair_wrench
        if self.with_wrenches:
            for m, origin in enumerate(self.numbers.origins):
                entry = [self._read("wrench", 6 * m + j) for j in range(6)]
                total = total + _about_origin(axes, Vector(*entry[:3]), Vector(*entry[3:]), origin)
        for w in self.applied:
            moment, force = (Vector(*(self._at_time(x) for x in part)) for part in (w.moment, w.force))
            if w.axes is None:
                total = total + _about_origin(axes, moment, force, w.at)
            else:
                force = w.axes.rotation.apply(force)
                total = total + Force(w.axes.rotation.apply(moment) + w.at.cross(force), force)
        return total

    def _at_time(self, entry: Number) -> Number:
        value = entry(self.world.time) if callable(entry) else entry
        return value


def _about_origin(axes: General, moment: Vector, force: Vector, at: Vector) -> Force:
    local = axes.inverse(force)
    return Force(axes.inverse(moment) + at.cross(local), local)


def known_motion(link: Link, omega: Vector, turned: Vector | None = None) -> tuple[Vector, Motion]:
    """A link's angular velocity, and the part of its acceleration that follows from speeds alone if its parent turns
    at `omega` (in the parent's axes) and does not accelerate. `turned` is `omega` in the link's axes, if known."""
    bias = Motion.zero()
    for t in link.transforms:
        moved = t.acceleration(bias)
        bias = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega = t.rotation.inverse(omega)
    rate, omega = link.rate, omega if turned is None else turned
    bias = bias + link.drift + Motion(omega.cross(rate.angular), omega.cross(rate.linear) * 2.0)
    return omega + rate.angular, bias
