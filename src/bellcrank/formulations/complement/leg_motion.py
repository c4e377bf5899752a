"""A parallel platform at an instant: screws, projections, the unactuated rates (section IV.A of the source of
`platforms`, where the notation is explained)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from bellcrank.errors import ModelError
from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.small_systems import guarded_inverse
from bellcrank.formulations.complement.legs import Leg, Legs, platform_of
from bellcrank.formulations.complement.twists import Twist, outward_twists
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.mechanism.constraint_rows import Row
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, Motion, RigidInertia, Transform, Vector
from bellcrank.topology.tree import Tree

__all__ = ["LegMotion", "LegScrew", "Matrix", "Platform", "Six"]

#: a square length this much smaller than before its projection means that nothing is left
_NOTHING = 1e-10
#: a pivot of Phi, which is a sum of projections: below, the independent speeds do not determine the platform's motion
_UNDETERMINED = 1e-7

#: [angular; linear] or [moment; force], about E in the ground's axes, lengths in units of the machine's size
Six = list[Number]
Matrix = list[list[Number]]


def legs_of(tree: Tree) -> Legs:
    """The legs, or an error that says why there are none."""
    found = platform_of(tree)
    if isinstance(found, str):
        raise ModelError(f"method 'complement' needs a parallel platform: serial legs from the ground to one link. In "
                         f"{tree.name!r} {found}; use method='elimination'")
    return found


# -- six numbers ---------------------------------------------------------------------------------------------------
def dot(a: Six, b: Six) -> Number:
    """a . b."""
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def less(a: Six, b: Six, factor: Number = 1.0) -> Six:
    """a - b factor."""
    return [x - y * factor for x, y in zip(a, b, strict=True)]


def plus(a: Six, b: Six, factor: Number = 1.0) -> Six:
    """a + b factor."""
    return [x + y * factor for x, y in zip(a, b, strict=True)]


def scaled(a: Six, factor: Number) -> Six:
    """a factor."""
    return [x * factor for x in a]


def nothing() -> Six:
    """The zero vector."""
    return [0.0] * 6


def times(matrix: Matrix, a: Six) -> Six:
    """The matrix times a."""
    return [dot(row, a) for row in matrix]


def symmetric(entry: Matrix) -> Matrix:
    """A matrix from its lower half."""
    return [[entry[max(i, j)][min(i, j)] for j in range(len(entry))] for i in range(len(entry))]


def with_product(matrix: Matrix, a: Six, b: Six, sign: float) -> Matrix:
    """The matrix plus (or less) a b^T, for parallel a and b."""
    return symmetric([[matrix[i][j] + a[i] * b[j] * sign for j in range(i + 1)] for i in range(6)])


def solve_watched(matrix: Matrix, rights: Sequence[Six]) -> list[Six]:
    """Solve Phi x = b for several b by L D L^T; not a number where a pivot is too small."""
    lower: Matrix = []
    inverse: list[Number] = []
    for i, entries in enumerate(matrix):
        whole: list[Number] = []  # row i of L D
        for j in range(i):
            whole.append(entries[j] - added(x * y for x, y in zip(whole, lower[j], strict=True)))
        lower.append([x * y for x, y in zip(whole, inverse, strict=True)])
        pivot = entries[i] - added(x * y for x, y in zip(whole, lower[i], strict=True))
        inverse.append(guarded_inverse(pivot, _UNDETERMINED))
    out = []
    for b in rights:
        x: Six = []
        for i, row in enumerate(lower):
            x.append(b[i] - added(y * z for y, z in zip(row, x, strict=True)))
        x = [y * z for y, z in zip(x, inverse, strict=True)]
        for i in reversed(range(len(x))):
            x[i] = x[i] - added(lower[k][i] * x[k] for k in range(i + 1, len(x)))
        out.append(x)
    return out


def size_of(tree: Tree) -> float:
    """A length typical of the machine, as a power of two: the distance between joints of a link."""
    shifts = [tree.placement_shift[k].tolist() for k in range(1, tree.n + 1) if tree.parent[k]]
    shifts += [x for c in tree.closures for link, x in ((c.first, c.first_shift), (c.second, c.second_shift)) if link]
    sizes = [math.dist((0.0, 0.0, 0.0), x) for x in shifts if all(isinstance(y, (int, float)) for y in x)]
    largest = max(sizes, default=0.0)
    return 2.0 ** round(math.log2(largest)) if largest > 0.0 else 1.0


def momentum(body: RigidInertia, twist: Six) -> Six:
    """The rigid inertia times a twist."""
    felt = body @ Motion(Vector(*twist[:3]), Vector(*twist[3:]))
    return [*felt.moment, *felt.force]


def rigid_matrix(body: RigidInertia) -> Matrix:
    """The 6 x 6 matrix of a rigid inertia."""
    return [momentum(body, [1.0 if i == j else 0.0 for j in range(6)]) for i in range(6)]


def added(values: Iterable[Number]) -> Number:
    """The sum of numbers."""
    total: Number = 0.0
    for value in values:
        total = total + value
    return total


# -- section IV.A: kinematics --------------------------------------------------------------------------------------
class LegScrew(NamedTuple):
    """One speed of a leg."""

    screw: Six  #: A_ei p_i
    place: int  #: among all speeds
    gain: Six | None  #: ptilde_i / delta_i of a dependent speed
    body: int  #: the link of the leg whose last speed it is, else 0


class LegMotion(NamedTuple):
    """A leg at an instant."""

    axes: list[LegScrew]
    phi: Matrix
    offset: Six  #: acceleration across the cut at zero free accelerations, as far as its constraints determine it


class Platform:
    """A parallel platform at an instant."""

    def __init__(self, direct: LoopedDirect) -> None:
        self.direct, self.tree = direct, direct.tree
        self.shape = legs_of(direct.tree)
        self.ground = Motion(Vector.zero(), -direct.world.gravity)
        self.twists = direct.outward(outward_twists, root=Twist(Vector.zero(), self.ground))
        #: what the independent speeds are numbered as; the other speeds a leg has are dependent or prescribed
        self.column = {v: k for k, v in enumerate(self.tree.plan.independent)}
        self.n = len(self.column)
        self.point: Vector = direct.moving[self.shape.platform].origin if self.shape.platform else \
            direct.sides(self.tree.closures[self.shape.legs[0].closure])[0].point
        self.size = size_of(self.tree)
        self.legs = [self._leg(leg) for leg in self.shape.legs]
        near = {k for leg in self.shape.legs for k in leg.links}
        self.far = [k for k in range(1, self.tree.n + 1) if k not in near]

    def here(self, link: int) -> Transform:
        """Pose of a link, seen from E."""
        axes, origin, _, _ = self.direct.moving[link]
        return Transform(axes, origin - self.point)

    def screw(self, link: int, index: int) -> Six:
        """A_ei p_i."""
        angular, linear = self.here(link).column_to_parent(self.direct.views[link].columns[index])
        return [*angular, *(linear * (1.0 / self.size))]

    def wrench(self, w: Force) -> Six:
        """A wrench about E, with its force in our unit of length."""
        return [*w.moment, *(w.force * self.size)]

    def _leg(self, leg: Leg) -> LegMotion:
        phi, offset = self._cut(leg)
        axes: list[LegScrew] = []
        below = 0  # the link of the speed further out
        for s in reversed(leg.speeds):
            view, place = self.direct.views[s.link], int(self.tree.u_start[s.link]) + s.number
            screw = scaled(self.screw(s.link, s.number), s.sign)
            gain = None
            if place not in self.column and not view.mask[s.number]:
                tilde = times(phi, screw)  # (9b), (11c), (12c)
                delta = dot(tilde, tilde)
                gain = scaled(tilde, guarded_inverse(delta, dot(screw, screw) * _NOTHING))
                phi = with_product(phi, tilde, gain, -1.0)  # (10a), (11d), (12d)
            body = s.link if s.link != below and s.link in leg.links else 0
            axes.append(LegScrew(screw, place, gain, body))
            below = s.link
        return LegMotion(axes[::-1], phi, offset)

    def _cut(self, leg: Leg) -> tuple[Matrix, Six]:
        """Phi_{m+1}, and the acceleration across the cut."""
        phi: Matrix = [[0.0] * 6 for _ in range(6)]
        offset = nothing()
        if leg.closure < 0:
            return [[1.0 if i == j else 0.0 for j in range(6)] for i in range(6)], offset
        c = self.tree.closures[leg.closure]
        rows: list[tuple[Six, Six, Number]] = []
        for row in self.direct.rows_of(c):
            gamma = self._right_side(row, c.first, c.second)
            link, w = (c.second, row.second) if leg.forward else (c.first, row.first)
            arm = self.direct.moving[link].origin - self.point
            whole = left = self.wrench(Force(w.moment + arm.cross(w.force), w.force))
            for other, unit, value in rows:
                share = dot(unit, whole)
                left, gamma = less(left, other, share), gamma - value * share
            unit = scaled(left, guarded_inverse(dot(left, left), dot(whole, whole) * _NOTHING))
            rows.append((left, unit, gamma))
            phi = with_product(phi, left, unit, 1.0)
            offset = plus(offset, unit, gamma)
        return phi, offset

    def _right_side(self, row: Row, first: int, second: int) -> Number:
        """What the relative acceleration of a cut must be beyond that at zero free accelerations."""
        known: list[Motion] = []
        for link in (first, second):
            axes, rate = self.direct.moving[link].axes, self.twists[link].rate if link else self.ground
            known.append(Motion(axes.apply(rate.angular), axes.apply(rate.linear)))
        twists = self.direct.moving[first].twist, self.direct.moving[second].twist
        return row.right_side(*twists, *self.tree.plan.baumgarte) - row.of(*known)

    @cached_property
    def total(self) -> Matrix:
        """Phi, the sum of all legs' Phi_2 (14a)."""
        return symmetric([[added(leg.phi[i][j] for leg in self.legs) for j in range(i + 1)] for i in range(6)])

    @cached_property
    def jacobian(self) -> list[Six]:
        """The columns of J (14b)."""
        rights = [nothing() for _ in range(self.n)]
        if not self.shape.platform:
            return rights
        for leg in self.legs:
            for axis in leg.axes:
                if axis.place in self.column:
                    rights[self.column[axis.place]] = times(leg.phi, axis.screw)
        return solve_watched(self.total, rights)

    @cached_property
    def offset(self) -> Six:
        """Acceleration of the platform when the independent speeds have none, beyond that at zero accelerations."""
        if not self.shape.platform:
            return nothing()
        right = nothing()
        for leg in self.legs:
            right = plus(right, times(leg.phi, leg.offset))
        return solve_watched(self.total, [right])[0]

    def leg_rates(self, leg: LegMotion, end: Six, given: Sequence[Number]) -> list[Number]:
        """All rates of a leg from the end effector's twist and the independent rates."""
        rest = end
        for axis in leg.axes:
            if axis.place in self.column:
                rest = less(rest, axis.screw, given[self.column[axis.place]])  # (12a)
        out: list[Number] = []
        for axis in leg.axes:
            if axis.gain is None:
                out.append(given[self.column[axis.place]] if axis.place in self.column else 0.0)
                continue
            out.append(dot(axis.gain, rest))  # (11b), (12b)
            rest = less(rest, axis.screw, out[-1])  # (7a)
        return out

    def accelerations(self, thetaddot: Sequence[Number]) -> list[Number]:
        """Accelerations of all speeds, zero for prescribed ones."""
        out: list[Number] = [0.0] * self.tree.nu
        for place, k in self.column.items():
            out[place] = thetaddot[k]
        end = self.offset
        for column, value in zip(self.jacobian, thetaddot, strict=True):
            end = plus(end, column, value)
        for leg in self.legs:
            for axis, value in zip(leg.axes, self.leg_rates(leg, less(end, leg.offset), thetaddot), strict=True):
                out[axis.place] = value
        return out

    # -- the complement of single bodies ------------------------------------------------------------------------
    @cached_property
    def rate_rows(self) -> dict[int, list[Number]]:
        """All rates per unit of each independent one."""
        out: dict[int, list[Number]] = {v: [1.0 if i == k else 0.0 for i in range(self.n)]
                                        for v, k in self.column.items()}
        for leg in self.legs:
            columns = [self.leg_rates(leg, self.jacobian[k], [1.0 if i == k else 0.0 for i in range(self.n)])
                       for k in range(self.n)]
            for i, axis in enumerate(leg.axes):
                out[axis.place] = [column[i] for column in columns]
        return out

    @cached_property
    def complement(self) -> dict[int, list[Six]]:
        """The columns of N at links (17a): those of `far` and what they hang from."""
        wanted = {self.shape.platform, 0}
        for link in self.far:
            while link not in wanted:
                wanted.add(link)
                link = int(self.tree.parent[link])
        out = {0: [nothing() for _ in range(self.n)], self.shape.platform: self.jacobian}
        for link in sorted(wanted - set(out)):
            columns = out[int(self.tree.parent[link])]
            for index in range(self.direct.widths[link]):
                row = self.rate_rows.get(int(self.tree.u_start[link]) + index)
                if row is not None:  # not prescribed
                    screw = self.screw(link, index)
                    columns = [plus(c, screw, value) for c, value in zip(columns, row, strict=True)]  # (7a)
            out[link] = columns
        return out

    # -- forces -------------------------------------------------------------------------------------------------
    @cached_property
    def inertias(self) -> list[RigidInertia]:
        """M_i (2) about E, in our unit of length; of the ground, none."""
        out = [RigidInertia.zero()]
        for k in range(1, self.tree.n + 1):
            mass, first, second = self.here(k).rigid(self.direct.views[k].inertia)
            out.append(RigidInertia(mass * (self.size * self.size), first * self.size, second))
        return out

    @property
    def tau(self) -> list[Number]:
        """The given forces at all speeds."""
        return self.direct.joint_vector([None, *(view.tau for view in self.direct.views[1:])])

    @cached_property
    def armature(self) -> list[Number]:
        """Inertias of the rotors at all speeds."""
        return self.direct.joint_vector([None, *(view.armature for view in self.direct.views[1:])])

    def rotor_forces(self, udot: Sequence[Number]) -> list[Number]:
        """What the rotors take at these accelerations."""
        return [a * x for a, x in zip(self.armature, udot, strict=True)]

    def wrenches(self, further: Sequence[Number] | None = None) -> list[Six]:
        """w = M dt/dt + W M E t (18a) less external wrenches; `further` accelerations come on top of those given."""
        world = outward_axes(self.direct)
        out, moved = [nothing()], [nothing()]
        for link in range(1, self.tree.n + 1):
            view, twist = self.direct.views[link], self.twists[link]
            own = view.inertia @ twist.rate + view.inertia.gyroscopic(twist.omega)
            if world[link] is not None:
                own = own - view.external(world[link])
            out.append(self.wrench(self.here(link).force(own)))
            if further is not None:
                more = moved[int(self.tree.parent[link])]
                for i in range(self.direct.widths[link]):
                    more = plus(more, self.screw(link, i), further[int(self.tree.u_start[link]) + i])
                moved.append(more)
                out[link] = plus(out[link], momentum(self.inertias[link], more))
        return out
