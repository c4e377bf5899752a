"""Loop closures on arrays: errors, rates, Jacobians and right hand sides, from compiled kinematics.

The constraints are the texts of `mechanism.constraint_rows`, evaluated on NumPy arrays with one entry per state and
closure, so that ten thousand loops cost as much Python as one. Jacobians are kept by their non-zero entries: a
closure's rows reach only the joints around its own loop.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, half_turn
from bellcrank.loops.constraint_sizes import row_sizes
from bellcrank.loops.loop_paths import jacobian_pattern
from bellcrank.loops.row_labels import row_labels
from bellcrank.mechanism.constraint_rows import Row, Side, Timed, at_time
from bellcrank.mechanism.forces.element import with_numbers
from bellcrank.mechanism.motion import coupled
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector
from bellcrank.topology.tree import Closure, LoopJoint, Tree

__all__ = ["ClosureArrays", "LoopKinematics"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: evaluates a function of the tree: name, inputs, time
Run = Callable[[str, Mapping[str, npt.ArrayLike], npt.ArrayLike], Floats]


class ClosureArrays(NamedTuple):
    """All rows of all closures, (..., m) and (..., m, 6): on the links' motions at their origins, world axes; the
    slopes of couplers by each of their coordinates, (..., terms of all couplers); and the partial rates by time."""

    value: Floats
    first: Floats
    second: Floats
    gamma: Floats
    slopes: Floats
    partial: Floats


class _Family(NamedTuple):
    """Closures of one kind, evaluated together."""

    kind: Any
    members: Ints
    first: Ints
    second: Ints
    rows: Ints  #: (members, rows): their places among all rows


class LoopKinematics:
    """Errors and derivatives of all loops of a tree."""

    def __init__(self, tree: Tree, run: Run, values: Callable[[Sequence[Number]], Floats],
                 compiled: Callable[[str], bool], doors: Mapping[str, Callable[..., Floats | None]]) -> None:
        self._in_use: Callable[[], Mask | None] = lambda: None
        self.tree, self.run, self.values, self._doors = tree, run, values, doors
        self._compiled, self._has = compiled, {}  # type: Callable[[str], bool], dict[str, bool]
        self._frames: dict[tuple[int, int], Any] = {}
        self._still = np.zeros(tree.nu)
        counts = [c.rows for c in tree.closures]
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.m_closures = int(self.starts[-1])
        self.m = self.m_closures + len(tree.relations)
        self.families = self._families(tree.closures)
        #: constraints on positions; the others bind speeds alone
        self.on_positions = np.array(tree.on_positions(), dtype=bool)
        self._every = bool(self.on_positions.all())
        self.closure_of_row = [k for k, c in enumerate(tree.closures) for _ in range(c.rows)]
        self._pattern()

    # -- constraints that are dropped -----------------------------------------------------------
    def restricted(self, in_use: Callable[[], Mask | None]) -> LoopKinematics:
        """The same with some constraints alone, asked for when they first matter: the others have the value zero, and
        bind nothing. None: all of them."""
        other = copy.copy(self)
        other._in_use = in_use
        return other

    @property
    def in_use(self) -> Mask | None:
        """The constraints that count, (m,); None if all do."""
        return self._in_use()

    def uses(self, row: int) -> bool:
        """Whether a constraint counts."""
        mask = self._in_use()
        return mask is None or bool(mask[row])

    def _used(self, values: Floats, rows: Ints | None = None) -> Floats:
        """Numbers of all constraints (..., m), or of `rows`, zero where these do not count."""
        mask = self._in_use()
        return values if mask is None else np.where(mask if rows is None else mask[rows], values, 0.0)

    @cached_property
    def clusters(self) -> list[tuple[Mask, Mask]]:
        """Constraints that share speeds, directly or by others, and these speeds: masks (m,) and (nu,) of every
        cluster."""
        root = list(range(self.m))

        def find(i: int) -> int:
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            return i

        first: dict[int, int] = {}
        for start, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            root[start:end] = [start] * (end - start)
        for r, v in zip(self.all_rows.tolist(), self.all_vars.tolist(), strict=True):
            root[find(r)] = find(first.setdefault(v, r))
        of = np.array([find(i) for i in range(self.m)])
        speeds = [np.isin(np.arange(self.tree.nu), self.all_vars[of[self.all_rows] == k]) for k in np.unique(of)]
        return [(of == k, own) for k, own in zip(np.unique(of), speeds, strict=True)]

    @cached_property
    def row_sizes(self) -> Floats:
        """What every constraint is measured by, see `loops.constraint_sizes`."""
        return row_sizes(self.tree)

    def shares(self, values: Floats) -> Floats:
        """Values of constraints, or their rates, (..., m), as shares of the machine's size."""
        return np.asarray(values / self.row_sizes)

    def step_length(self, change: Floats) -> Any:
        """The largest change of a coordinate (..., nu), in radians and lengths of the machine."""
        return np.abs(change / self.tree.speed_sizes).max(axis=-1, initial=0.0)

    @cached_property
    def row_names(self) -> list[str]:
        """What every constraint is called."""
        return [f"{c.name}: {label}" for c in self.tree.closures for label in row_labels(c)] \
            + [r.name for r in self.tree.relations]

    def _families(self, closures: Sequence[Closure]) -> list[_Family]:
        groups: dict[Any, list[int]] = {}
        for i, c in enumerate(closures):
            key = (*c.kind.kind(),) if c.is_joint else (type(c.kind).__name__,)
            groups.setdefault(key, []).append(i)
        out = []
        for members in groups.values():
            some = np.array(members, dtype=np.int64)
            rows = self.starts[some][:, None] + np.arange(closures[members[0]].rows)
            out.append(_Family(closures[members[0]].kind, some, np.array([closures[i].first for i in members]),
                               np.array([closures[i].second for i in members]), rows))
        return out

    def _pattern(self) -> None:
        """Where the Jacobian's entries are: row, speed, the link the row acts on, the link the speed moves."""
        found = np.array(jacobian_pattern(self.tree), dtype=np.int64).reshape(-1, 5)
        self.entry_row, self.entry_var, self.entry_side, self.entry_end, self.entry_mover = found.T
        self.relation_row = np.array([self.m_closures + k for k, relation in enumerate(self.tree.relations)
                                      for _ in relation.terms], dtype=np.int64)
        self.relation_var = np.array([int(self.tree.u_start[link]) + coordinate for relation in self.tree.relations
                                      for link, coordinate, _ in relation.terms], dtype=np.int64)
        rows = np.concatenate([self.entry_row, self.relation_row])
        speeds = np.concatenate([self.entry_var, self.relation_var])
        prescribed = self.tree.prescribed_speeds()[speeds]
        self._every_row = rows
        self._free_entries, self._driven_entries = np.flatnonzero(~prescribed), np.flatnonzero(prescribed)
        self.all_rows, self.all_vars = rows[self._free_entries], speeds[self._free_entries]
        self.driven_rows, self.driven_vars = rows[self._driven_entries], speeds[self._driven_entries]
        self._places = self.all_rows * self.tree.nu + self.all_vars
        #: whether laws of time are part of the constraints' rates
        self.driven = bool(len(self.driven_vars)) or self.tree.driven_closures
        self._once = len(np.unique(self._places)) == len(self._places)  # couplers may name a coordinate twice

    # -- what closing needs, by compiled code where a machine is small enough for it -------------
    def _kernel(self, name: str) -> bool:
        if name not in self._has:
            self._has[name] = self._compiled(name)
        return self._has[name]

    def _computed(self, name: str, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats:
        """A function by the least costly call that there is."""
        found = self._doors[name](*given.values())
        return self.run(name, given, t) if found is None else found

    def error(self, q: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> Floats:
        """Values of all constraints, (..., m)."""
        if self._kernel("loop_matrix"):  # the function that closing needs anyway
            return self._used(self._computed("loop_matrix", {"q": q}, t)[..., :self.m])
        if self._kernel("loop_state"):
            return self._used(self._computed("loop_state", {"q": q, "u": self._still}, t)[..., :self.m])
        return self.rows(q, None, t).value

    def rate(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> Floats:
        """d/dt of the values, (..., m)."""
        if self._kernel("loop_state"):
            return self._used(self._computed("loop_state", {"q": q, "u": u}, t)[..., self.m:])
        rows = self.rows(q, None, t)
        out = self.through(rows, self.motions("velocities", {"q": q, "u": u}, t)) + rows.partial
        return self.add_couplers(out, rows, self.run("driven_speeds", {"q": q, "u": u}, t))

    def linearized(self, q: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """Values of all constraints (..., m) and the Jacobian's entries of free speeds, at `all_rows`, `all_vars`."""
        if self._kernel("loop_matrix"):
            both = self._computed("loop_matrix", {"q": q}, t)
            entries = both[..., self.m:][..., self._free_entries]
            return self._used(both[..., :self.m]), self._used(entries, self.all_rows)
        poses = self.poses(q, t)
        rows = self.rows(q, None, t, poses)
        return rows.value, self._entries(q, rows, t, poses[1])[..., self._free_entries]

    def position_entries(self, q: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> Floats:
        """The entries of `linearized`, zero in rows of constraints on speeds alone: what closing positions looks at."""
        entries = self.linearized(q, t)[1]
        return entries if self._every else entries * self.on_positions[self.all_rows]

    def dense(self, entries: Floats) -> Floats:
        """The Jacobian (..., m, nu) of its entries."""
        out = np.zeros((*entries.shape[:-1], self.m * self.tree.nu))
        if self._once:
            out[..., self._places] = entries
        else:
            for k, place in enumerate(self._places.tolist()):
                out[..., place] += entries[..., k]
        return out.reshape(*entries.shape[:-1], self.m, self.tree.nu)

    def through_entries(self, entries: Floats, change: Floats) -> Floats:
        """The Jacobian of these entries times changes of speeds (..., nu)."""
        terms = entries * change[..., self.all_vars]
        out = np.zeros((*terms.shape[:-1], self.m))
        for index in np.ndindex(terms.shape[:-1]):
            out[index] = np.bincount(self.all_rows, terms[index], minlength=self.m)
        return out

    # -- loop joints ----------------------------------------------------------------------------
    def measured(self, q: Floats, t: npt.ArrayLike = 0.0) -> Floats:
        """Positions (..., nq) with the coordinates of loop joints as the poses of their links have them, angles by as
        many whole turns as bring them nearest to those given."""
        if not self.tree.loop_joints or not q.size:
            return q
        turn, origin = self.poses(q, t)
        out = np.array(np.broadcast_to(q, (*origin.shape[:-2], self.tree.nq)))
        for kind, places, sides in self._joints:
            (a, start), (b, end) = ((turn[..., links, :, :] @ axes, origin[..., links, :] + np.einsum(
                "...ij,...j->...i", turn[..., links, :, :], shift)) for links, axes, shift in sides)
            back = np.swapaxes(a, -1, -2)
            now = np.array(kind.measure(back @ b, np.einsum("...ij,...j->...i", back, end - start)))
            near = out[..., places]
            if kind.nq == kind.nu:
                for k in range(kind.nq):
                    if kind.within_a_turn(k):
                        now[..., k] = near[..., k] + half_turn(now[..., k] - near[..., k])
            else:
                opposite = (now[..., :4] * near[..., :4]).sum(-1, keepdims=True) < 0.0
                now[..., :4] = np.where(opposite, -now[..., :4], now[..., :4])
            out[..., places] = now
        return out

    @cached_property
    def _joints(self) -> list[tuple[Any, Ints, list[tuple[Ints, Floats, Floats]]]]:
        """Loop joints alike: their kind, places in q (joints, nq), and links, axes and origins of both sides."""
        alike: dict[str, list[LoopJoint]] = {}
        for own in self.tree.loop_joints:
            alike.setdefault(repr(own.closure.kind), []).append(own)
        out = []
        for several in alike.values():
            kind = several[0].closure.kind
            sides = []
            for which in (0, 1):
                links = np.array([(own.closure.second if which else own.closure.first) for own in several])
                axes = np.stack(np.broadcast_arrays(*(self.axes(own.closure, which) for own in several)), axis=-3)
                shifts = np.stack(np.broadcast_arrays(*(self.values(
                    own.closure.second_shift if which else own.closure.first_shift) for own in several)), axis=-2)
                sides.append((links, axes, shifts))
            places = np.array([own.q_start for own in several])[:, None] + np.arange(kind.nq)
            out.append((kind, places, sides))
        return out

    # -- evaluation -----------------------------------------------------------------------------
    def poses(self, q: npt.ArrayLike, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Rotations (..., n+1, 3, 3) and origins (..., n+1, 3) of all links, ground first."""
        raw = self.run("poses", {"q": q}, t)
        lead = raw.shape[:-1]
        raw = raw.reshape(*lead, self.tree.n, 12)
        turn = np.concatenate([np.broadcast_to(self.tree.ground_turn, (*lead, 1, 3, 3)),
                               raw[..., :9].reshape(*lead, self.tree.n, 3, 3)], axis=-3)
        origin = np.concatenate([np.broadcast_to(self.tree.ground_shift, (*lead, 1, 3)), raw[..., 9:]], axis=-2)
        return turn, origin

    def motions(self, name: str, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats:
        """The "velocities" or "accelerations" of all links, ground first, (..., n+1, 6)."""
        raw = self.run(name, given, t)
        lead = raw.shape[:-1]
        return np.concatenate([np.zeros((*lead, 1, 6)), raw.reshape(*lead, self.tree.n, 6)], axis=-2)

    def frames(self, family: _Family, turn: Floats, origin: Floats, which: int) -> tuple[Floats, Floats, Floats]:
        """Points, arms and axes of one side of a family of closures."""
        links = family.second if which else family.first
        local, shift = self._placed(family, which)
        axes = turn[..., links, :, :]
        arm = (axes @ shift[..., None])[..., 0]
        return origin[..., links, :] + arm, arm, axes @ local

    def _placed(self, family: _Family, which: int) -> tuple[Floats, Floats]:
        """Axes and origins of a family's joint frames on one side, in link frames; kept, as they do not change."""
        key = (int(family.members[0]), which)
        if key not in self._frames:
            closures = [self.tree.closures[i] for i in family.members]
            shifts = [c.second_shift if which else c.first_shift for c in closures]
            plain = all(type(x) is float for s in shifts for x in s)
            turns = [self.axes(c, which) for c in closures]
            self._frames[key] = (np.stack(np.broadcast_arrays(*turns), axis=-3), np.array(shifts) if plain else
                                 np.stack(np.broadcast_arrays(*(self.values(s) for s in shifts)), axis=-2))
        turn, shift = self._frames[key]
        return turn, shift

    def axes(self, c: Closure, which: int) -> Floats:
        """Axes of a closure's frame on its first or second link, in that of the link, (..., 3, 3)."""
        if not (c.second_axes if which else c.first_axes):
            return c.second_turn if which else c.first_turn
        rows = self.values(c.turns[which])
        return rows.reshape(*rows.shape[:-1], 3, 3)

    def _constants(self, family: _Family, t: npt.ArrayLike) -> list[Number]:
        """The own numbers of a family's closures, (..., members) each; kept unless they follow laws of time."""
        key = (int(family.members[0]), 2)
        if key not in self._frames:
            rows = [[self._bound(x) if callable(x) else self.values([x])[..., 0] if type(x) is not float else x
                     for x in self.tree.closures[i].kind.constants()] for i in family.members]
            columns = list(zip(*rows, strict=True))
            driven = any(callable(x) for column in columns for x in column)
            self._frames[key] = (columns if driven else [_side_by_side(column) for column in columns], driven)
        found, driven = self._frames[key]
        if not driven:
            return list(found)
        now = [at_time(column, np.asarray(t, dtype=float)) for column in found]
        return [_side_by_side(column) if not any(isinstance(x, Timed) for x in column) else Timed(*(
            _side_by_side([x[k] if isinstance(x, Timed) else 0.0 if k else x for x in column]) for k in range(3)))
            for column in now]

    def _sides(self, family: _Family, turn: Floats, origin: Floats, velocity: Floats | None,
               turned: Mapping[int, Floats]) -> list[Side]:
        sides = []
        for which, links in enumerate((family.first, family.second)):
            point, arm, axes = self.frames(family, turn, origin, which)
            if turned and which:
                axes = np.stack([turned.get(int(k), np.eye(3)) for k in family.members]) @ axes
            if velocity is None:
                omega = rate = Vector.zero()
            else:
                w, v = velocity[..., links, :3], velocity[..., links, 3:]
                omega, rate = _vector(w), _vector(v + np.cross(w, arm))
            x, y, z = (_vector(axes[..., i]) for i in range(3))
            sides.append(Side(_vector(point), _vector(arm), x, y, z, omega, rate))
        return sides

    @np.errstate(over="ignore", invalid="ignore")  # speeds that overflow: the kernels say so
    def rows(self, q: npt.ArrayLike, u: npt.ArrayLike | None = None, t: npt.ArrayLike = 0.0,
             poses: tuple[Floats, Floats] | None = None, turned: Mapping[int, Floats] = MappingProxyType({})
             ) -> ClosureArrays:
        """All rows; without u those that need no velocities. `poses`, if they are known, are those of the links;
        `turned` are rotations (3, 3) by which second sides of closures differ from these, about their points."""
        turn, origin = self.poses(q, t) if poses is None else poses
        velocity = None if u is None else self.motions("velocities", {"q": q, "u": u}, t)
        lead = origin.shape[:-2] if velocity is None else np.broadcast_shapes(origin.shape[:-2], velocity.shape[:-2])
        value, gamma, partial = (np.zeros((*lead, self.m)) for _ in range(3))
        first, second = np.zeros((*lead, self.m, 6)), np.zeros((*lead, self.m, 6))
        for family in self.families:
            made = family.kind.closure_rows(*self._sides(family, turn, origin, velocity, turned),
                                            self._constants(family, t))
            for j, row in enumerate(made):
                assert isinstance(row, Row)
                at = family.rows[:, j]
                value[..., at], gamma[..., at], partial[..., at] = row.value, row.gamma, row.partial
                for target, force in ((first, row.first), (second, row.second)):
                    for i, entry in enumerate((*force.moment, *force.force)):
                        target[..., at, i] = entry
        slopes = self._add_relations(value, gamma, partial, q, u, t)
        mask = self._in_use()
        if mask is not None:
            for array in (value, gamma, partial):
                array[..., ~mask] = 0.0
            first[..., ~mask, :] = second[..., ~mask, :] = 0.0
        return ClosureArrays(value, first, second, gamma, self._used(slopes, self.relation_row), partial)

    def _add_relations(self, value: Floats, gamma: Floats, partial: Floats, q: npt.ArrayLike, u: npt.ArrayLike | None,
                       t: npt.ArrayLike) -> Floats:
        """Couplers: their values, what is known of their second rates, their partial rates; their slopes, returned."""
        slopes = np.zeros((*value.shape[:-1], len(self.relation_row)))
        at = 0
        for k, relation in enumerate(self.tree.relations, self.m_closures):
            relation = self._bound(relation)
            now = [self.coordinate(link, i, q, u, t) for link, i, _ in relation.terms]
            made = coupled([part for _, _, part in relation.terms], [x for x, _ in now], [v for _, v in now],
                           *at_time((relation.offset,), np.asarray(t, dtype=float)))
            value[..., k], gamma[..., k], partial[..., k] = made.value, made.gamma, made.partial
            for slope in made.slopes:
                slopes[..., at] = slope
                at += 1
        return slopes

    def _bound(self, value: Any) -> Any:
        """A law, or a coupler, with the values of parameters."""
        return with_numbers(value, lambda number: self.values([number])[..., 0])

    def coordinate(self, link: int, coordinate: int, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike
                   ) -> tuple[Floats, Floats]:
        """A joint coordinate and its rate (0 without u), as its law has it where it has one."""
        places, rates = self.read(link, q, u, t)
        return np.asarray(places[coordinate], dtype=float), np.asarray(rates[coordinate], dtype=float)

    def read(self, link: int, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike
             ) -> tuple[list[Floats], list[Floats]]:
        """All coordinates and speeds of a joint."""
        whole = self.tree.extended
        joint, law = whole.joints[link], whole.prescribed[link]
        assert joint is not None
        first, begin = int(whole.q_start[link]), int(whole.u_start[link])
        places = [np.asarray(q, dtype=float)[..., first + k] for k in range(joint.nq)]
        rates = [np.zeros(()) if u is None else np.asarray(u, dtype=float)[..., begin + k] for k in range(joint.nu)]
        if law is not None:
            places, rates, _ = self._bound(law).values(np.asarray(t, dtype=float), places, rates, [0.0] * joint.nu)
        return places, rates

    def through(self, rows: ClosureArrays, motion: Floats) -> Floats:
        """What the rows make of the motions of all links."""
        firsts = np.array([c.first for c in self.tree.closures], dtype=np.int64)
        seconds = np.array([c.second for c in self.tree.closures], dtype=np.int64)
        which = np.array(self.closure_of_row, dtype=np.int64)
        out = np.zeros((*np.broadcast_shapes(rows.value.shape[:-1], motion.shape[:-2]), self.m))
        if self.m_closures:
            n = self.m_closures
            out[..., :n] = (rows.first[..., :n, :] * motion[..., firsts[which], :]).sum(-1) \
                + (rows.second[..., :n, :] * motion[..., seconds[which], :]).sum(-1)
        return out

    def add_couplers(self, out: Floats, rows: ClosureArrays, speeds: Floats) -> Floats:
        """Add what couplers make of joint speeds (or accelerations) to `out`, in place."""
        for k, (r, v) in enumerate(zip(self.relation_row, self.relation_var, strict=True)):
            out[..., r] += rows.slopes[..., k] * speeds[..., v]
        return out

    def gamma(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike = 0.0, rows: ClosureArrays | None = None
              ) -> Floats:
        """Right hand side of ``J udot = gamma`` for the free accelerations."""
        rows = self.rows(q, u, t) if rows is None else rows
        still = np.zeros(self.tree.nu)
        drift = self.motions("accelerations", {"q": q, "u": u, "udot": still}, t)
        out = rows.gamma - self.through(rows, drift)
        if self.tree.relations:
            out = out - self.add_couplers(np.zeros_like(out), rows, self.run("prescribed", {"q": q, "u": u}, t))
        return out

    def entries(self, q: npt.ArrayLike, rows: ClosureArrays, t: npt.ArrayLike = 0.0) -> Floats:
        """The Jacobian's non-zero entries for free speeds, at ``all_rows`` and ``all_vars``."""
        return self._entries(q, rows, t, self.poses(q, t)[1])[..., self._free_entries]

    def driven_loads(self, q: npt.ArrayLike, loads: Floats, t: npt.ArrayLike = 0.0) -> Floats:
        """J^T lambda for the prescribed speeds, zero elsewhere, shape (..., nu)."""
        poses = self.poses(q, t)
        entries = self._entries(q, self.rows(q, None, t, poses), t, poses[1])
        values = entries[..., self._driven_entries] * loads[..., self.driven_rows]
        out = np.zeros((*values.shape[:-1], self.tree.nu))
        for k, v in enumerate(self.driven_vars.tolist()):
            out[..., v] += values[..., k]
        return out

    def _entries(self, q: npt.ArrayLike, rows: ClosureArrays, t: npt.ArrayLike, origin: Floats) -> Floats:
        """Entries for all speeds, those of closures and then those of couplers; `origin` are those of the links."""
        if self.tree.flexible:  # a mode moves several nodes
            return self._used(self.run("loop_matrix", {"q": q}, t)[..., self.m:], self._every_row)
        screws = self.run("world_columns", {"q": q}, t)
        lead = np.broadcast_shapes(screws.shape[:-1], rows.value.shape[:-1])
        screws = screws.reshape(*screws.shape[:-1], self.tree.nu, 6)
        s = screws[..., self.entry_var, :]
        arm = origin[..., self.entry_end, :] - origin[..., self.entry_mover, :]
        w = np.where(self.entry_side[:, None] == 0, rows.first[..., self.entry_row, :],
                     rows.second[..., self.entry_row, :])
        linear = s[..., 3:] + np.cross(s[..., :3], arm)
        values = (w[..., :3] * s[..., :3]).sum(-1) + (w[..., 3:] * linear).sum(-1)
        slopes = np.broadcast_to(rows.slopes, (*lead, rows.slopes.shape[-1]))
        return np.concatenate([np.broadcast_to(values, (*lead, values.shape[-1])), slopes], axis=-1)

    def jacobian(self, q: npt.ArrayLike, rows: ClosureArrays, t: npt.ArrayLike = 0.0) -> Floats:
        """The Jacobian with respect to the free speeds, shape (..., m, nu). Cost: O(m nu)."""
        return self.dense(self.entries(q, rows, t))


def _side_by_side(numbers: Sequence[Number]) -> Floats:
    """Numbers of several closures, each with any leading axes, as (..., closures)."""
    return np.stack(np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in numbers)), axis=-1)


def _vector(a: Floats) -> Vector:
    return Vector(a[..., 0], a[..., 1], a[..., 2])
