"""Groups by kind, for the rolled schedule: the elimination's steps are traced once per kind of group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.lowering.base_shapes import shapes_for
from bellcrank.lowering.element_loads import second_frame
from bellcrank.lowering.function import Function, binder, part_starts, view, world_of
from bellcrank.lowering.group import (
    ClosureNumbers,
    GroupView,
    GroupWorld,
    closure_numbers,
    closure_starts,
    group_couplers,
    message_widths,
)
from bellcrank.lowering.group_shape import Local, Ports
from bellcrank.lowering.link import World
from bellcrank.lowering.link_kinds import (
    LITERAL,
    MAX_KINDS,
    SIDE_BY_SIDE,
    RolledProgram,
    carried,
    edge_buffers,
    link_codes,
    link_values,
    number_pattern,
    partly,
    runs_of,
    used_numbers,
    with_ahead,
)
from bellcrank.lowering.loop_joints import LoopJointView, with_loop_joints
from bellcrank.lowering.product_columns import differentiated, local_inputs, name_of_part, part_columns, product_columns
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.schedule.rolled import Kind, Rolled
from bellcrank.schedule.rolled_plan import KindCode, Plan
from bellcrank.schedule.rolled_products import as_traced
from bellcrank.schedule.sweeps import Field, flatten, rebuild
from bellcrank.spatial import General, Matrix3, Transform, Vector
from bellcrank.topology.tree import Closure, Tree, unpack_link

__all__ = ["few_kinds", "roll_groups"]

Ints = npt.NDArray[np.int64]

_GENERIC = 3
#: the column of `number_pattern` that tells whether a link has mass
_MASS = 15
#: kinds of groups up to which code for all of them is made for questions that are seldom asked
_FEW = 12


def few_kinds(tree: Tree, function: Function) -> bool:
    """Whether the groups of a machine are of few kinds: code for loops over them is small, whatever their number."""
    return len(_Rolling(tree, shapes_for(function)(tree), False, function).representatives) <= _FEW


def roll_groups(tree: Tree, function: Function, wrenches: bool) -> RolledProgram:
    """Trace a function once per kind of group."""
    product, base = function.product, function if function.product is None else function.product.function
    shapes = shapes_for(base)(tree)
    rolling = _Rolling(tree, shapes, wrenches, function)
    root_graph = Graph()

    def shared(name: str, index: int) -> Number:
        return root_graph.leaf(("global", name, index))

    world = world_of(tree, shared, wrenches, binder(tree, shared))
    local = local_inputs(function, wrenches)
    kinds = [rolling.kind(i, g, world, local) for i, g in enumerate(rolling.representatives)]
    sweeps = Rolled(kinds, GroupWorld(world, rolling.widths), root_graph)
    def swept(made: Function) -> Field:
        field = made.text(sweeps)
        return with_loop_joints(made.loop_joints, sweeps, field) if made.loop_joints and tree.loop_joints \
            and not made.bases else field

    traced = as_traced(sweeps, swept(base), False, base.bases or partly(tree, base))
    closing = swept(product.closing) if product is not None and product.closing is not None else None
    if product is not None:
        traced = differentiated(tree, product, traced, lambda kind: [
            (f"@{m}", link) for m, link in enumerate((
                *kind.view.links, *kind.view.witnesses, *(own.joint for own in kind.view.joints)))], True, closing)
    counts = np.bincount(rolling.of_group[1:], minlength=len(kinds)).tolist()
    parent = np.array([0, *(group.parent + 1 for group in tree.plan.groups)], dtype=np.int64)
    buffers, n_buffers = edge_buffers(parent)
    runs = runs_of(rolling.of_group)

    def program(made: Plan) -> RolledProgram:
        numbers, starts = rolling.numbers(made.codes)
        columns, table = rolling.table(parent, starts, buffers, local)
        work = made.record * (len(shapes) + 1) + made.buffer * n_buffers
        return RolledProgram(made, columns, numbers, table, runs, work, counts)

    return with_ahead(program, traced.planned, counts)


def _symbolic(c: Closure) -> bool:
    """Whether its numbers are read at run time: parameters, or laws of time."""
    return c.timed or any(type(x) is Scalar for x in (
        *c.first_axes, *c.second_axes, *c.first_shift, *c.second_shift, *c.kind.constants()))


class _GroupKey(NamedTuple):
    """What tells groups apart: their shapes, and which of their numbers are 0, 1, -1 or others."""

    shape: tuple[Any, ...]
    codes: tuple[int, ...]

    def covers(self, other: _GroupKey) -> bool:
        """Whether the other's numbers are a special case of these."""
        codes = zip(self.codes, other.codes, strict=True)
        return self.shape == other.shape and all(a in (b, _GENERIC) for a, b in codes)


def _without_special_cases(keys: list[_GroupKey]) -> list[_GroupKey]:
    """The keys, with that of a kind that covers them for kinds of few groups: what these would save, code that is made
    for few costs."""
    counts = Counter(keys)
    many = [key for key, n in counts.items() if n >= SIDE_BY_SIDE]
    instead = {key: next((m for m in many if m.covers(key)), key) for key, n in counts.items() if n < SIDE_BY_SIDE}
    return [instead.get(key, key) for key in keys]


class _Rolling:
    def __init__(self, tree: Tree, shapes: list[Local], wrenches: bool, function: Function) -> None:
        self.tree, self.shapes, self.wrenches = tree, shapes, wrenches
        #: columns that tell where results of members go; none if they are the groups' own
        self.function, base = function, function if function.product is None else function.product.function
        self.base = base
        self.closing = base.layout in ("rows", "closures")
        self.results = {"twice": ("result", "second"), "groups": (), "rows": (), "closures": ()}.get(
            base.layout, ("result",))
        self.width = base.width
        self.widths = message_widths(shapes)
        self.members = max(len(s.links) + len(s.witnesses) + len(s.joints) for s in shapes)
        self.whole = tree.extended
        parents = [group.parent for group in tree.plan.groups]
        self.last = {p: g for g, p in enumerate(parents)}  # the child that sends first
        self.has_child = set(parents)
        self.joint, self.special = link_codes(tree)
        for exploit in (True, False):
            self.pattern = number_pattern(self.whole, exploit)
            self.exploit = exploit
            keys = [self._key(g) for g in range(len(shapes))]
            if len(set(keys)) <= 4 * MAX_KINDS:
                break
        first = {key: g for g, key in reversed(list(enumerate(keys)))}
        keys = _without_special_cases(keys)
        index = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        self.representatives = [first[key] for key in index]
        of = [0, *(index[key] for key in keys)]
        self.of_group = np.array(of, dtype=np.int64)
        #: pivots are watched against the smallest of their kind
        self.sizes = [tuple(min(column) for column in zip(*(shapes[g].shape.sizes for g in np.flatnonzero(
            self.of_group[1:] == k).tolist()), strict=True)) for k in range(len(index))]

    def _key(self, g: int) -> _GroupKey:
        """Groups with the same key follow the same code."""
        tree, s = self.tree, self.shapes[g]
        links = list(s.links)
        per_link = (self.joint[links].tobytes(), tree.placement_kind[links].tobytes(), self.special[links].tobytes(),
                    self.pattern[links, _MASS].tobytes(),
                    tuple(len(tree.members[k]) for k in links) if self.wrenches else ())
        symbolic = (*(k if _symbolic(tree.closures[k]) else -1 for k in s.closures),
                    *(j if _symbolic(tree.loop_joints[j].closure) else -1 for j in s.joints))
        above = Ports(tuple(min(b, 0) for b in s.shape.above.bodies), (0,) * len(s.shape.above.speeds))
        parent = tree.plan.groups[g].parent
        shape = (replace(s.shape, sizes=(), above=above), per_link, symbolic, s.witnesses, parent < 0,
                 g in self.has_child, self.last[parent] == g)
        return _GroupKey(shape, (*self.pattern[[*links, *self._joint_links(s)]].ravel().tolist(),
                                 *(x for k in s.closures for x in self._codes(tree.closures[k])),
                                 *(x for j in s.joints for x in self._codes(tree.loop_joints[j].closure)[12:24])))

    def _joint_links(self, s: Local) -> list[int]:
        """A group's loop joints as links of the extended tree."""
        return [self.tree.n + 1 + j for j in s.joints]

    def _closure_values(self, c: Closure) -> list[float]:
        """A closure's numbers; zero where they depend on parameters or time, which are read at run time."""
        first, second = ([x for i in range(3) for x in rows[i::3]] for rows in c.turns)
        numbers = [*first, *c.first_shift, *second, *c.second_shift, *c.kind.constants()]
        return [0.0 if type(x) is Scalar or callable(x) else float(x) for x in numbers]

    def _codes(self, c: Closure) -> list[int]:
        if not self.exploit:
            return [_GENERIC] * (24 + len(c.kind.constants()))
        return [0 if x == 0.0 else 1 if x == 1.0 else 2 if x == -1.0 else _GENERIC for x in self._closure_values(c)]

    # -- kinds ----------------------------------------------------------------------------------
    def kind(self, index: int, g: int, world: World, local: list[str]) -> Kind:
        tree, s = self.tree, self.shapes[g]
        graph = Graph()
        own_world = rebuild(world, iter(evaluate(list(flatten(world)), graph.leaf)))
        bind = binder(tree, lambda name, j: graph.leaf(("global", name, j)))
        at = 0
        links = []
        for m, link in enumerate(s.links):
            numbers, width = self._link_numbers(graph, link, at, bind)
            at += width
            read = self._reader(graph, m, local)
            links.append(carried(tree, link, view(tree, link, numbers, read, own_world, self.wrenches, bind), read,
                                 own_world, bind))
        closures = []
        for k in s.closures:
            closures.append(closure_numbers(tree, k, bind, own_world.time) if _symbolic(tree.closures[k]) else
                            self._closure_numbers(graph, tree.closures[k], at))
            at += 24 + len(tree.closures[k].kind.constants())
        witnesses = [view(tree, link, tree.numbers(link), self._reader(graph, len(s.links) + m, local), own_world,
                          False, bind) for m, link in enumerate(s.witnesses)]
        joints = []
        own = zip(s.joints, self._joint_links(s), strict=True)
        for m, (j, link) in enumerate(own, len(s.links) + len(s.witnesses)):
            numbers, width = self._link_numbers(graph, link, at, bind)
            joint = view(self.whole, link, numbers, self._reader(graph, m, local), own_world, False, bind)
            loop_joint = tree.loop_joints[j]
            joints.append(LoopJointView(joint, self._frame(graph, loop_joint.closure, at + width, bind),
                                        loop_joint.open, bool(tree.forced)))
            at += width + 12
        group = GroupView(replace(s.shape, sizes=self.sizes[index]).bound(bind), links, closures,
                          [tree.closures[k].kind for k in s.closures], own_world, tree.plan.baumgarte, self.widths,
                          witnesses, joints)
        parent = tree.plan.groups[g].parent
        return Kind(index, graph, group, is_base=parent < 0, is_tip=g not in self.has_child,
                    is_first=self.last[parent] == g, places=self._places(g))

    def _places(self, g: int) -> list[tuple[str, int]] | None:
        """Where the entries of a group's result go: columns of the table and offsets; None: all in a row."""
        tree, s = self.tree, self.shapes[g]
        if self.closing:
            starts = closure_starts(self.function, tree)
            couplers = len(s.shape.relations) if self.function.layout == "rows" else 0
            return [*((f"closure@{i}", r) for i, k in enumerate(s.closures) for r in range(starts[k + 1] - starts[k])),
                    *((f"coupler@{i}", 0) for i in range(couplers))]
        own = [(m, link) for m, link in enumerate(s.links) if s.shape.own[m]]
        if self.base.tells_loop_joints:
            own += enumerate(self._joint_links(s), len(s.links) + len(s.witnesses))
        places = [(f"{result}@{m}", i) for result in self.results for m, link in own
                  for i in range(self.whole.joints[link].nu)]  # type: ignore[union-attr]
        return places if self.results else None

    def _reader(self, graph: Graph, member: int, local: list[str]) -> Callable[[str, int], Number]:
        def read(name: str, j: int) -> Number:
            return graph.leaf(("in", f"{name}@{member}", j)) if name in local else 0.0

        return read

    def _frame(self, graph: Graph, c: Closure, at: int, bind: Callable[[Any], Any]) -> Transform:
        """A loop joint's frame on its second link."""
        if _symbolic(c):
            return second_frame(c, bind)
        v = [LITERAL[code] if code in LITERAL else graph.leaf(("const", at + i))
             for i, code in enumerate(self._codes(c)[12:24])]
        rows = [Vector(*v[i:9:3]) for i in range(3)]
        return Transform(General(Matrix3(*rows)), Vector(*v[9:12]))

    def _link_numbers(self, graph: Graph, link: int, at: int, bind: Callable[[Any], Any]) -> tuple[Any, int]:
        tree = self.whole
        joint = tree.joints[link]
        assert joint is not None
        kind, constants = int(tree.placement_kind[link]), len(joint.constants())
        bodies = len(tree.members[link]) if self.wrenches else 0
        used = used_numbers(self.pattern[link].tolist(), kind, constants, bodies)
        if link in tree.symbolic:
            return bind(tree.symbolic[link]), len(used)
        values = [LITERAL[c] if c in LITERAL else graph.leaf(("const", at + i)) for i, c in enumerate(used)]
        return unpack_link(kind, constants, bodies, values), len(used)

    def _closure_numbers(self, graph: Graph, c: Closure, at: int) -> ClosureNumbers:
        v = [LITERAL[code] if code in LITERAL else graph.leaf(("const", at + i))
             for i, code in enumerate(self._codes(c))]
        turns = [(Vector(*v[i:i + 3]), Vector(*v[i + 3:i + 6]), Vector(*v[i + 6:i + 9])) for i in (0, 12)]
        return ClosureNumbers(turns[0], Vector(*v[9:12]), turns[1], Vector(*v[21:24]), tuple(v[24:]))

    # -- data -----------------------------------------------------------------------------------
    def numbers(self, codes: list[KindCode]) -> tuple[Floats, Ints]:
        """The hoisted expressions of every group's numbers, kind by kind, and where each group's start."""
        starts = np.zeros(len(self.of_group), dtype=np.int64)
        blocks: list[Floats] = []
        at = 0
        for index, code in enumerate(codes):
            some = np.flatnonzero(self.of_group[1:] == index)
            width = len(code.statics)
            if not width:
                continue
            values = self._values(some)
            columns: list[Any] = evaluate(code.statics, {("const", i): values[:, i] for i in range(values.shape[1])})
            block = np.stack([np.broadcast_to(c, len(some)) for c in columns], axis=-1)
            blocks.append(np.ascontiguousarray(block).ravel())
            starts[some + 1] = at + width * np.arange(len(some))
            at += width * len(some)
        return np.concatenate(blocks) if blocks else np.zeros(1), starts

    def _values(self, some: Ints) -> Floats:
        """The numbers of groups of one kind: of their links, then of their closures."""
        tree = self.tree
        parts: list[Floats] = []
        for m in range(len(self.shapes[int(some[0])].links)):
            parts.append(link_values(tree, np.array([self.shapes[g].links[m] for g in some.tolist()]), self.wrenches))
        for k in range(len(self.shapes[int(some[0])].closures)):
            parts.append(np.array([self._closure_values(tree.closures[self.shapes[g].closures[k]])
                                   for g in some.tolist()]))
        for m in range(len(self.shapes[int(some[0])].joints)):
            own = [self.shapes[g].joints[m] for g in some.tolist()]
            parts.append(link_values(self.whole, np.array(own) + tree.n + 1, False))
            parts.append(np.array([self._closure_values(tree.loop_joints[j].closure)[12:24] for j in own]))
        return np.concatenate(parts, axis=1)

    def table(self, parent: Ints, numbers: Ints, buffers: Ints, local: list[str]) -> tuple[list[str], Ints]:
        """Names of the columns for members' parts of inputs and result, and the whole table."""
        tree, n = self.tree, len(self.shapes)
        link = np.zeros((n + 1, self.members), dtype=np.int64)
        for g, s in enumerate(self.shapes):
            some = [*s.links, *s.witnesses, *self._joint_links(s)]
            link[g + 1, :len(some)] = some
        parts = {name: part_starts(self.whole, name_of_part(self.function, name)) for name in local}
        results = {name: self.whole.u_start + (tree.nu if name == "second" else 0) for name in self.results}
        parts |= results
        if self.function.product is not None:
            parts |= part_columns(self.whole, product_columns(tree, self.function.product), results)
        columns = [parent, self.of_group, numbers, self.width * np.arange(-1, n), *buffers.T]
        columns += [start[link[:, m]] for m in range(self.members) for start in parts.values()]
        names = [f"{name}@{m}" for m in range(self.members) for name in parts]
        if self.closing:
            starts = closure_starts(self.function, tree)
            for label, lists in (("closure", [[starts[k] for k in s.closures] for s in self.shapes]),
                                 ("coupler", [group_couplers(tree, group) for group in tree.plan.groups])):
                for i in range(max(map(len, lists))):
                    names.append(f"{label}@{i}")
                    columns.append(np.array([0, *(some[i] if i < len(some) else 0 for some in lists)]))
        return names, np.ascontiguousarray(np.stack(columns, axis=-1).astype(np.int64))
