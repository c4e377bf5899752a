"""Loops inside the formulations: constraints as rows on links, and forces between distant links.

Only the direct schedule knows the whole machine at once; what is here serves the multiplier methods, which look at
all loops together, and springs between points of links that no joint connects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from bellcrank.errors import ModelError, SingularError
from bellcrank.loops.loop_paths import jacobian_pattern, paths_between
from bellcrank.lowering.element_loads import element_loads, second_frame, sides_of, unit_wrench
from bellcrank.lowering.link import Link
from bellcrank.lowering.loop_joints import LoopJointView
from bellcrank.lowering.machine_view import MachineView
from bellcrank.mechanism.constraint_rows import Row, Side, at_time, stabilized
from bellcrank.mechanism.forces.element import Moving
from bellcrank.mechanism.motion import Coupled, coupled
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Field, Sweeps
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector
from bellcrank.topology.pairs import Pair, SumForce, Surroundings
from bellcrank.topology.tree import Closure, LoopJoint, Tree, sees_machine

__all__ = ["LoopRow", "LoopedDirect", "Moving"]

_PLAIN = General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))


class LoopRow(NamedTuple):
    """One constraint: covectors on links' accelerations (link axes, about their origins), or factors of joint
    accelerations; their sum equals gamma. Its rate is the same sum of velocities and the partial rate by time."""

    ends: tuple[tuple[int, Force], ...]
    joints: tuple[tuple[int, int, Number], ...]
    gamma: Number
    partial: Number = 0.0


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


class _Motions(Sequence[Moving]):
    """Motions of links, each evaluated when it is first asked for."""

    def __init__(self, views: Sequence[Link], parent: Sequence[int]) -> None:
        self._views, self._parent = views, parent
        self._known: dict[int, Moving] = {0: _STILL}

    def __len__(self) -> int:
        return len(self._parent)

    def __getitem__(self, link: Any) -> Any:
        path = []
        while link not in self._known:
            path.append(link)
            link = self._parent[link]
        for k in reversed(path):
            self._known[k] = outward_moving(self._views[k], self._known[self._parent[k]])[1]
        return self._known[path[0] if path else link]


class LoopedDirect(Direct):
    """The direct schedule of a machine with loops and springs."""

    tree: Tree
    bind: Callable[[Any], Any]
    #: the same machine with other numbers for some inputs, and without springs
    again: Callable[[Mapping[str, Sequence[Number]]], LoopedDirect]
    #: a link of the extended tree
    link: Callable[[int], Link]

    def attach(self, tree: Tree, bind: Callable[[Any], Any],
               again: Callable[[Mapping[str, Sequence[Number]]], LoopedDirect], link: Callable[[int], Link]) -> None:
        """Let the links feel the springs between them."""
        self.tree, self.bind, self.again, self.link = tree, bind, again, link
        self._own_motions = self.moving
        if tree.sees_machine:
            for view in self.views[1:]:
                view.machine = self
        if not tree.pairs:
            return
        lazily = [pair for pair in tree.pairs if sees_machine(pair)]
        for pair in tree.pairs:
            if not sees_machine(pair):
                self._load(pair)
        if lazily:  # laws of the machine may have no value at the speeds that some functions go without
            for view in self.views[1:]:
                view.wait_for(lambda: self._load_all(lazily))

    def _load_all(self, pairs: Sequence[Pair | SumForce]) -> None:
        for view in self.views[1:]:
            view.wait_for(None)
        for pair in pairs:
            self._load(pair)

    def _load(self, pair: Pair | SumForce) -> None:
        if isinstance(pair, SumForce):
            self._pull(pair)
        else:
            self._act(pair)

    @cached_property
    def sight(self) -> MachineView:
        """What laws of the machine see."""
        def own(link: int) -> Link:
            return self.views[link] if link < len(self.views) else self.loop_joints[link - len(self.views)].joint

        return MachineView(self.tree, lambda link, i: own(link).q[i], lambda link, i: own(link).u[i],
                           self._own_motions.__getitem__, self.bind, self.world.time, self.world.ground,
                           lambda link, i: own(link).change("tau")[i])

    @property
    def around(self) -> Surroundings:
        """Time, axes, and the machine as laws see it."""
        return Surroundings(self.world.time, self.world.ground.rotation, self.sight)

    @cached_property
    def moving(self) -> Field:
        """Motion of every link, the ground's included, in the ground link's axes."""
        return _Motions(self.views, self.parent)

    def know(self, motions: Mapping[int, Moving]) -> None:
        """Take the motions of some links, all that closures need, as given; the ground is at rest."""
        self.moving = {0: _STILL, **motions}

    def _feel(self, link: int, moment: Vector, force: Vector) -> None:
        """Add a wrench given in the ground link's axes about the link's origin."""
        if link == 0:
            return
        axes = self._own_motions[link].axes
        self._add(link, Force(axes.inverse(moment), axes.inverse(force)))

    def _add(self, link: int, wrench: Force) -> None:
        """Add a wrench given in the link's axes about its origin."""
        view = self.views[link]
        view.pair_wrench = wrench if view.pair_wrench is None else view.pair_wrench + wrench

    def _act(self, pair: Pair) -> None:
        """What an element exerts on the two links it lies between."""
        try:
            loads = element_loads(self.tree, pair, self._own_motions.__getitem__, self.bind, self.around)
        except SingularError as error:  # on constants
            raise ModelError(f"{error}. They do so in every state") from None
        for link, wrench in loads:
            self._feel(link, wrench.moment, wrench.force)

    def _pull(self, force: SumForce) -> None:
        """A force along a sum of joint coordinates: equal and opposite wrenches on both links of each joint."""
        reach = self.sight.total(force)
        force = self.bind(force)
        amount = force.along.at(self.world.time).seen(self.sight).force(*reach)
        for link, i, factor in force.terms:
            own = self.tree.loop_joint(link)
            if own is not None:
                loads = self.loop_joints[link - len(self.views)].loads(i, amount * factor)
                for end, wrench in zip((own.closure.first, own.closure.second), loads, strict=True):
                    if end:
                        self._add(end, wrench)
                continue
            view = self.views[link]
            wrench = unit_wrench(view.columns, i) * (amount * factor)
            self._add(link, wrench)
            if self.parent[link]:
                for t in reversed(view.transforms):
                    wrench = t.force(wrench)
                self._add(self.parent[link], -wrench)

    def sides(self, c: Closure) -> tuple[Side, Side]:
        """Both sides of a closure, in the ground link's axes."""
        return sides_of(c, self.moving.__getitem__, self.bind)

    def rows_of(self, c: Closure) -> Sequence[Row]:
        """What a closure states, in the ground link's axes."""
        rows: Sequence[Row] = c.kind.closure_rows(*self.sides(c), self.constants_of(c))
        return rows

    def constants_of(self, c: Closure) -> tuple[Number, ...]:
        """A closure's own numbers, now."""
        return at_time(self.bind(tuple(c.kind.constants())), self.world.time)

    # -- loop joints -----------------------------------------------------------------------------
    @cached_property
    def loop_joints(self) -> list[LoopJointView]:
        """The joints that carry no link."""
        return [LoopJointView(self.link(k), second_frame(own.closure, self.bind), own.open, bool(self.tree.forced))
                for k, own in enumerate(self.tree.loop_joints, self.tree.n + 1)]

    def with_loop_joints(self, what: str, entries: list[Number]) -> list[Number]:
        """Numbers for every speed (two of each for "corrections" and "pairs") with those of loop joints."""
        if not what or not self.tree.loop_joints:
            return entries
        nu = self.tree.nu
        if what == "corrections":
            return [*self.with_loop_joints("displacements", entries[:nu]),
                    *self.with_loop_joints("speed changes", entries[nu:])]
        if what == "pairs":  # speeds and rates of momenta
            entries[0::2] = self.with_loop_joints("speeds", entries[0::2])
            return entries
        driven = self.tree.prescribed_speeds()
        rates = [u + x for u, x in zip(self.speeds(), entries, strict=True)] if what == "speed changes" else entries
        if what in ("accelerations", "displacements"):
            rates = [0.0 if fixed else x for fixed, x in zip(driven, rates, strict=True)]
        method = {"accelerations": "accelerations", "speeds": "speeds", "displacements": "moves",
                  "speed changes": "speed_changes"}[what]
        for view, own in zip(self.loop_joints, self.tree.loop_joints, strict=True):
            entries[own.u] = getattr(view, method)(*self._ends(own, rates))
        return entries

    def speed_row(self, v: int) -> dict[int, Number]:
        """How a speed follows from those of the links: itself, or that of a loop joint."""
        own = next((own for own in self.tree.loop_joints if own.u.start <= v < own.u.stop), None)
        if own is None:
            return {v: 1.0}
        row = {}
        for path in paths_between(self.tree, own.closure.first, own.closure.second):
            for k in (w for link in path for w in self.tree.movers(link)):
                unit: list[Number] = [0.0] * self.tree.nu
                unit[k] = 1.0
                row[k] = self.with_loop_joints("speeds", unit)[v]
        return row

    def loop_joints_turned(self) -> list[Number]:
        """How far the coordinates of loop joints turn them away from where the links are: 4 sin(angle / 2)^2."""
        still = [0.0] * self.tree.nu
        return [view.turned(*self._ends(own, still)) for view, own in zip(self.loop_joints, self.tree.loop_joints,
                                                                          strict=True)]

    def _ends(self, own: LoopJoint, rates: Sequence[Number]) -> list[list[tuple[Link, list[Number]]]]:
        """The paths to both links of a loop joint, with what moves the links there."""
        return [[(self.views[k], [rates[v] for v in self.tree.movers(k)]) for k in reversed(path)]
                for path in paths_between(self.tree, own.closure.first, own.closure.second)]

    # -- coordinates and speeds of the whole machine ---------------------------------------------
    def given(self, name: str) -> list[Number]:
        """An input with one number per speed."""
        return self._by_speed(lambda view: view.change(name))

    def speeds(self) -> list[Number]:
        """All speeds, as laws say where they are prescribed."""
        return self._by_speed(lambda view: view.u)

    def movable(self) -> list[Number]:
        """One for each speed, zero where it is prescribed, or follows from those of links."""
        follows = self.tree.loop_speeds()
        return [0.0 if fixed else x for fixed, x in zip(follows, self._by_speed(
            lambda view: [0.0 if driven else 1.0 for driven in view.mask]), strict=True)]

    def normalized(self) -> list[Number]:
        """All coordinates, unit quaternions."""
        return self._by_coordinate(lambda link, view: view.joint.normalized(view.q))

    def displaced(self, change: Sequence[Number]) -> list[Number]:
        """All coordinates after a small change, one number per speed."""
        def moved(link: int, view: Link) -> list[Number]:
            start = int(self.tree.extended.u_start[link])
            rates = view.joint.rates(view.q, list(change[start:start + view.joint.nu]))
            return view.joint.normalized([a + b for a, b in zip(view.q, rates, strict=True)])

        return self._by_coordinate(moved)

    def _by_speed(self, part: Callable[[Link], Sequence[Number]]) -> list[Number]:
        out: list[Number] = [0.0] * self.tree.nu
        for link, view in self._every_view:
            own, start = part(view), int(self.tree.extended.u_start[link])
            out[start:start + len(own)] = own
        return out

    def _by_coordinate(self, part: Callable[[int, Link], Sequence[Number]]) -> list[Number]:
        out: list[Number] = [0.0] * self.tree.nq
        for link, view in self._every_view:
            own, start = part(link, view), int(self.tree.extended.q_start[link])
            out[start:start + len(own)] = own
        return out

    @property
    def _every_view(self) -> Iterator[tuple[int, Link]]:
        """All links, and then the loop joints as links of the extended tree."""
        yield from enumerate(self.views[1:], 1)
        yield from enumerate((own.joint for own in self.loop_joints), len(self.views))

    # -- constraints -----------------------------------------------------------------------------
    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Row and speed of the entries of `loop_matrix`."""
        return row_speeds(self.tree)

    def partial_rates(self) -> list[Number]:
        """The parts of all constraints' rates that laws of time of closures and couplers cause."""
        out: list[Number] = []
        for c in self.tree.closures:
            out += [row.partial for row in self.rows_of(c)] if c.timed else [0.0] * c.rows
        return out + [self.coupler(r).partial if callable(r.offset) else 0.0 for r in self.tree.relations]

    @property
    def floors(self) -> tuple[float, ...]:
        """What the compliance of each of the `loop_rows` must exceed: see `LoopPlan`."""
        plan = self.tree.plan
        return plan.floors or (0.0,) * len(plan.kept)

    def loop_rows(self) -> list[LoopRow]:
        """The independent constraints, with their right hand sides (stabilised if asked for)."""
        plan = self.tree.plan
        kept = set(plan.kept)
        alpha, beta = plan.baumgarte
        out: list[LoopRow] = []
        at = 0
        for c in self.tree.closures:
            if kept.isdisjoint(range(at, at + c.rows)):
                at += c.rows
                continue
            for row in self.rows_of(c):
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
        for link, w in ((c.first, row.first), (c.second, row.second)):
            axes = self.moving[link].axes
            if link:
                ends.append((link, Force(axes.inverse(w.moment), axes.inverse(w.force))))
        right = row.right_side(self.moving[c.first].twist, self.moving[c.second].twist, alpha, beta)
        return LoopRow(tuple(ends), (), right, row.partial)

    def _relation(self, relation: Any, alpha: float, beta: float) -> LoopRow:
        value, rate, slopes, gamma, partial = self.coupler(relation)
        terms = []
        for (link, i, _), slope in zip(relation.terms, slopes, strict=True):
            view = self.views[link]
            if view.mask[i]:
                gamma = gamma - view.prescribed_udot[i] * slope
            else:
                terms.append((link, i, slope))
        return LoopRow((), tuple(terms), stabilized(gamma, value, rate, alpha, beta), partial)

    def coupler(self, relation: Any) -> Coupled:
        """A coupler between joint coordinates."""
        relation = self.bind(relation)
        views = [(self.views[link], i) for link, i, _ in relation.terms]
        return coupled([part for _, _, part in relation.terms], [view.q[i] for view, i in views],
                       [view.u[i] for view, i in views], *at_time((relation.offset,), self.world.time))


def row_count(tree: Tree) -> int:
    """Number of constraints."""
    return sum(c.rows for c in tree.closures) + len(tree.relations)


def row_speeds(tree: Tree) -> list[tuple[int, int]]:
    """Row and speed of the entries of `loop_matrix`."""
    begin = sum(c.rows for c in tree.closures)
    return [(row, speed) for row, speed, *_ in jacobian_pattern(tree)] + [
        (begin + k, int(tree.u_start[link]) + i) for k, relation in enumerate(tree.relations)
        for link, i, _ in relation.terms]


def loop_state(tree: Sweeps) -> tuple[Number, ...]:
    """Values of all constraints, then their rates."""
    machine = require_direct(tree)
    values: list[Number] = []
    rates: list[Number] = []
    for c in machine.tree.closures:
        for row in machine.rows_of(c):
            values.append(row.value)
            rates.append(row.rate(machine.moving[c.first].twist, machine.moving[c.second].twist))
    for relation in machine.tree.relations:
        made = machine.coupler(relation)
        values.append(made.value)
        rates.append(made.rate)
    return (*values, *rates)


def loop_matrix(tree: Sweeps) -> tuple[Number, ...]:
    """Values of all constraints, then the entries of their Jacobian: those of closures in the order of
    `jacobian_pattern`, then the slopes of couplers."""
    machine = require_direct(tree)
    values: list[Number] = []
    entries: list[Number] = []
    for c in machine.tree.closures:
        rows = machine.rows_of(c)
        values += [row.value for row in rows]
        for path, end, side in zip(paths_between(machine.tree, c.first, c.second), (c.first, c.second),
                                   ("first", "second"), strict=True):
            for link in path:
                axes, origin, _, _ = machine.moving[link]
                arm = machine.moving[end].origin - origin
                for column in machine.views[link].moving_columns:  # as the end of the path sees it
                    turn = axes.apply(column.angular)
                    screw = Motion(turn, axes.apply(column.linear) + turn.cross(arm))
                    entries += [screw.dot(getattr(row, side)) for row in rows]
    for relation in machine.tree.relations:
        made = machine.coupler(relation)
        values.append(made.value)
        entries += made.slopes
    return (*values, *entries)


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
