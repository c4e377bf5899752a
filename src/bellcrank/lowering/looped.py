"""Loops inside the formulations: conditions as rows on links, and forces between distant links.

Only the direct schedule knows the whole machine at once; what is here serves the multiplier methods, which look at
all loops together, and springs between points of links that no joint connects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from bellcrank.errors import ModelError, SingularError
from bellcrank.lowering.link import Link
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.coupling import share
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Field, Sweeps
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector
from bellcrank.topology.pairs import LoopForce, Pair, SumForce, Surroundings
from bellcrank.topology.tree import Closure, Tree

__all__ = ["LoopRow", "LoopedDirect", "Moving", "side_of"]

_PLAIN = General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))


class LoopRow(NamedTuple):
    """One condition: covectors on links' accelerations (link axes, about their origins), or factors of joint
    accelerations; their sum equals gamma."""

    ends: tuple[tuple[int, Force], ...]
    joints: tuple[tuple[int, int, Number], ...]
    gamma: Number


_STILL = Moving(_PLAIN, Vector.zero(), Vector.zero(), Vector.zero())


def outward_moving(link: Link, parent: Moving) -> tuple[Moving, Moving]:
    axes, origin, omega, velocity = parent
    for t in link.transforms:
        arm = axes.apply(t.translation)
        origin, velocity = origin + arm, velocity + omega.cross(arm)
        axes = t.turned(axes)
    rate = link.rate
    own = Moving(axes, origin, omega + axes.apply(rate.angular), velocity + axes.apply(rate.linear))
    return own, own


def unit_wrench(columns: Sequence[Motion], i: int) -> Force:
    """A wrench whose power on column i of a joint's motion subspace is one, and none on the others."""
    others: list[Force] = []
    wrench = Force.zero()
    for column in (*columns[:i], *columns[i + 1:], columns[i]):
        wrench = Force(column.angular, column.linear)
        for other in others:
            motion = Motion(other.moment, other.force)
            wrench = wrench - other * (motion.dot(wrench) / motion.dot(other))
        others.append(wrench)
    own: Force = wrench * (1.0 / columns[i].dot(wrench))
    return own


def side_of(moving: Moving, turn: Any, shift: Sequence[Number]) -> Side:
    """One side of a closure from the motion of its link."""
    axes, origin, omega, velocity = moving
    arm = axes.apply(Vector(*shift))
    x, y, z = (axes.apply(Vector(*column)) for column in turn.T.tolist())
    return Side(origin + arm, arm, x, y, z, omega, velocity + omega.cross(arm))


class LoopedDirect(Direct):
    """The direct schedule of a machine with loops and springs."""

    tree: Tree
    bind: Callable[[Any], Any]

    def attach(self, tree: Tree, bind: Callable[[Any], Any]) -> None:
        """Let the links feel the springs between them."""
        self.tree, self.bind = tree, bind
        if not tree.pairs:
            return
        for pair in tree.pairs:
            if isinstance(pair, LoopForce):
                self._drive(pair)
            elif isinstance(pair, SumForce):
                self._pull(pair)
            else:
                self._act(pair)

    @cached_property
    def moving(self) -> Field:
        """Motion of every link, the ground's included."""
        field = self.outward(outward_moving, root=_STILL)
        field[0] = _STILL
        return field

    def _feel(self, link: int, moment: Vector, force: Vector) -> None:
        """Add a wrench given in the ground link's axes about the link's origin."""
        if link == 0:
            return
        axes = self.moving[link].axes
        self._add(link, Force(axes.inverse(moment), axes.inverse(force)))

    def _add(self, link: int, wrench: Force) -> None:
        """Add a wrench given in the link's axes about its origin."""
        view = self.views[link]
        view.pair_wrench = wrench if view.pair_wrench is None else view.pair_wrench + wrench

    def _act(self, pair: Pair) -> None:
        """What an element exerts on the two links it lies between."""
        own = self.bind(pair)
        around = Surroundings(self.world.time, self.world.ground.rotation)
        try:
            wrenches = own.wrenches(self.moving[pair.first], self.moving[pair.second], around)
        except SingularError as error:  # on constants
            raise ModelError(f"{error}. They do so in every state") from None
        for link, wrench in zip((pair.first, pair.second), wrenches, strict=True):
            self._feel(link, wrench.moment, wrench.force)

    def _drive(self, force: LoopForce) -> None:
        """A force along the coordinate of a joint that closes a loop: equal and opposite wrenches on both sides."""
        c = self.tree.closures[force.closure]
        i, j = self.sides(c)
        constants = self.bind(tuple(c.kind.constants()))
        column = c.kind.loop_columns(i, j, constants)[force.coordinate]
        apart = j.point - i.point
        relative = Motion(j.omega - i.omega, j.rate - i.rate - i.omega.cross(apart))
        coordinate = c.kind.loop_coordinates(i, j, constants)[force.coordinate]
        amount = self.bind(force.along).at(self.world.time).force(coordinate, relative.dot(column))
        for link, sign in ((c.first, -1.0), (c.second, 1.0)):
            push = column.force * (amount * sign)
            # both wrenches act at the child's point: they must cancel as a whole
            arm = j.point - self.moving[link].origin
            self._feel(link, column.moment * (amount * sign) + arm.cross(push), push)

    def _pull(self, force: SumForce) -> None:
        """A force along a sum of joint coordinates: equal and opposite wrenches on both links of each joint."""
        places = [(self.views[link], i, factor) for link, i, factor in force.terms]
        length = sum((view.q[i] * factor for view, i, factor in places), 0.0)
        rate = sum((view.u[i] * factor for view, i, factor in places), 0.0)
        amount = self.bind(force.along).at(self.world.time).force(length, rate)
        for link, i, factor in force.terms:
            view = self.views[link]
            wrench = unit_wrench(view.columns, i) * (amount * factor)
            self._add(link, wrench)
            if self.parent[link]:
                for t in reversed(view.transforms):
                    wrench = t.force(wrench)
                self._add(self.parent[link], -wrench)

    def sides(self, c: Closure) -> tuple[Side, Side]:
        """Both sides of a closure, in the ground link's axes."""
        return (side_of(self.moving[c.first], c.first_turn, self.bind(tuple(c.first_shift))),
                side_of(self.moving[c.second], c.second_turn, self.bind(tuple(c.second_shift))))

    # -- conditions -----------------------------------------------------------------------------
    @property
    def floors(self) -> tuple[float, ...]:
        """What the compliance of each of the `loop_rows` must exceed: see `LoopPlan`."""
        plan = self.tree.plan
        return plan.floors or (0.0,) * len(plan.kept)

    def loop_rows(self) -> list[LoopRow]:
        """The conditions that count, with their right hand sides (stabilised if asked for)."""
        plan = self.tree.plan
        kept = set(plan.kept)
        alpha, beta = plan.baumgarte
        out: list[LoopRow] = []
        at = 0
        for c in self.tree.closures:
            if kept.isdisjoint(range(at, at + c.rows)):
                at += c.rows
                continue
            rows = c.kind.closure_rows(*self.sides(c), self.bind(tuple(c.kind.constants())))
            for row in rows:
                if at in kept:
                    out.append(self._row(c, row, alpha, beta))
                at += 1
        for relation in self.tree.relations:
            if at in kept:
                out.append(self._relation(relation, alpha, beta))
            at += 1
        return out

    def _row(self, c: Closure, row: Row, alpha: float, beta: float) -> LoopRow:
        ends = []
        gamma = row.gamma
        for link, w in ((c.first, row.first), (c.second, row.second)):
            axes, _, omega, velocity = self.moving[link]
            if alpha:
                gamma = gamma - (Motion(omega, velocity).dot(w)) * (2.0 * alpha)
            if link:
                ends.append((link, Force(axes.inverse(w.moment), axes.inverse(w.force))))
        if beta:
            gamma = gamma - row.value * (beta * beta)
        return LoopRow(tuple(ends), (), gamma)

    def _relation(self, relation: Any, alpha: float, beta: float) -> LoopRow:
        gamma: Number = 0.0
        value: Number = -relation.offset
        terms = []
        for link, i, part in relation.terms:
            view = self.views[link]
            mine = share(part, view.q[i])
            gamma = gamma - view.u[i] * (mine.slope * (2.0 * alpha)) - mine.curvature * (view.u[i] * view.u[i])
            value = value + mine.value
            if view.mask[i]:
                gamma = gamma - view.prescribed_udot[i] * mine.slope
            else:
                terms.append((link, i, mine.slope))
        return LoopRow((), tuple(terms), gamma - value * (beta * beta) if beta else gamma)


def loop_state(tree: Sweeps) -> tuple[Number, ...]:
    """Values of all conditions, then their rates."""
    machine = require_direct(tree)
    values: list[Number] = []
    rates: list[Number] = []
    for c in machine.tree.closures:
        for row in c.kind.closure_rows(*machine.sides(c), machine.bind(tuple(c.kind.constants()))):
            values.append(row.value)
            ends = [(machine.moving[link], w) for link, w in ((c.first, row.first), (c.second, row.second))]
            rates.append(sum((Motion(m.omega, m.velocity).dot(w) for m, w in ends), 0.0))
    for relation in machine.tree.relations:
        views = [(machine.views[link], i, part) for link, i, part in relation.terms]
        shares = [(share(part, view.q[i]), view.u[i]) for view, i, part in views]
        values.append(sum((mine.value for mine, _ in shares), -relation.offset))
        rates.append(sum((u * mine.slope for mine, u in shares), 0.0))
    return (*values, *rates)


def pair_wrenches(tree: Sweeps) -> tuple[Number, ...]:
    """What elements between links exert on bodies: [moment; force] in world axes about each body's origin, in the order
    in which links read external wrenches."""
    machine = require_direct(tree)
    ground = machine.world.ground.rotation
    out: list[Number] = []
    for link, members in enumerate(machine.tree.members[1:], 1):
        view = machine.views[link]
        felt, rest = view.pair_wrench, len(members)
        if felt is not None:  # by the first of the link's bodies
            axes = machine.moving[link].axes
            moment = felt.moment - view.numbers.origins[0].cross(felt.force)
            for part in (moment, felt.force):
                out += ground.apply(axes.apply(part))
            rest -= 1
        out += [0.0] * (6 * rest)
    return (*out, *[0.0] * (6 * (len(machine.tree.members[0]) - 1)))


def require_direct(tree: Sweeps) -> LoopedDirect:
    """The schedule, which must know all loops at once."""
    if not isinstance(tree, LoopedDirect):
        raise NotImplementedError("multiplier methods look at all loops at once: direct schedule only")
    return tree
