"""Links by kind, for the rolled schedule. Cost: O(links), vectorised but for structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.lowering.flexible_link import ModalLink, NodeLink
from bellcrank.lowering.function import Function, binder, part_starts, view, world_of
from bellcrank.lowering.link import Link, World
from bellcrank.lowering.product_columns import differentiated, local_inputs, name_of_part, part_columns, product_columns
from bellcrank.mechanism.flexible.deformation import NodeMotion
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, Graph, Number, reachable
from bellcrank.schedule.rolled import Kind, Rolled
from bellcrank.schedule.rolled_plan import KindCode, Plan
from bellcrank.schedule.rolled_products import as_traced
from bellcrank.schedule.sweeps import flatten, rebuild
from bellcrank.topology.tree import TURN_ENTRIES, Tree, unpack_link

__all__ = ["RolledProgram", "carried", "edge_buffers", "link_codes", "link_values", "number_pattern", "roll", "runs_of",
           "same_entry", "used_numbers", "with_ahead"]

Ints = npt.NDArray[np.int64]

#: more kinds than this and zeros among the numbers are no longer exploited
MAX_KINDS = 10
_GENERIC = 3
#: the column of the table that tells where an item's result begins
_RESULT = 3
#: items of a kind from which on they are worth computing side by side
SIDE_BY_SIDE = 6


@dataclass(frozen=True)
class RolledProgram:
    """A planned kernel with the data it runs on."""

    plan: Plan
    local: list[str]
    numbers: Floats
    table: Ints
    runs: Ints
    work: int  #: scalars of workspace, records and buffers
    counts: list[int]  #: links of each kind
    #: the same with what depends on one item alone computed ahead of the sweeps, if that is worth it
    ahead: Callable[[], RolledProgram | None] = lambda: None


def roll(tree: Tree, function: Function, wrenches: bool) -> RolledProgram:
    """Trace a function once per kind of link."""
    of_link, representatives, codes = _kinds(tree, wrenches)
    root_graph = Graph()

    def shared(name: str, index: int) -> Number:
        return root_graph.leaf(("global", name, index))

    world = world_of(tree, shared, wrenches, binder(tree, shared))
    product, base = function.product, function if function.product is None else function.product.function
    local = local_inputs(function, wrenches)
    kinds = [_kind(tree, i, link, codes[link], world, local, wrenches) for i, link in enumerate(representatives)]
    sweeps = Rolled(kinds, world, root_graph)
    traced = as_traced(sweeps, base.text(sweeps), base.layout == "totals", partly(tree, base))
    if product is not None:
        traced = differentiated(tree, product, traced, lambda kind: [("", kind.view)], bool(tree.flexible))
    counts = np.bincount(of_link[1:], minlength=len(kinds)).tolist()
    runs = runs_of(of_link)
    buffers, n_buffers = edge_buffers(tree.parent)

    def program(made: Plan) -> RolledProgram:
        numbers, starts = _numbers(tree, of_link, made.codes)
        columns, table = _table(tree, function, of_link, starts, buffers, local)
        work = made.record * (tree.n + 1) + made.buffer * n_buffers
        return RolledProgram(made, columns, numbers, table, runs, work, counts)

    return with_ahead(program, traced.planned, counts)


def partly(tree: Tree, function: Function) -> bool:
    """Whether entries of loop joints are written by nobody."""
    return bool(tree.loop_joints) and not function.tells_loop_joints and function.layout in (
        "speeds", "twice", "screws", "matrix", "columns")


def with_ahead(program: Callable[[Plan], RolledProgram], planned: Callable[[Sequence[int], Plan | None], Plan],
               counts: list[int]) -> RolledProgram:
    """A program, and when it is asked for, the same with kinds of many items computed ahead where they can be."""
    plain = planned((), None)

    @cache
    def ahead() -> RolledProgram | None:
        many = [k for k, n in enumerate(counts) if n >= SIDE_BY_SIDE]
        made = planned(many, plain) if many else None
        return program(made) if made is not None and any(code.ahead for code in made.codes) else None

    return replace(program(plain), ahead=ahead)


def runs_of(kinds: Ints) -> Ints:
    """Stretches of items of one kind: (kind, first item, end)."""
    cuts = np.flatnonzero(np.diff(kinds[1:])) + 1
    first = np.concatenate([[0], cuts]) + 1
    end = np.concatenate([cuts, [len(kinds) - 1]]) + 1
    return np.stack([kinds[first], first, end], axis=-1).astype(np.int64)


def same_entry(program: RolledProgram, size: int) -> Number | None:
    """The expression, with leaves (input,), that every entry of the result is of the same entries of the inputs; None
    if that is not so."""
    graph, found, entries = Graph(), set(), 0
    first, starts = program.table.shape[1] - len(program.local), program.table[1:]
    used = set()
    for code, count in zip(program.plan.codes, program.counts, strict=True):
        for sweep in code.sweeps:
            entries += count * len(sweep.outputs)
            for j, value in sweep.outputs:
                keys = {node.args[0] for node in reachable([value]) if node.op is LEAF}
                if any(key[0] != "in" or key[2] != j for key in keys):
                    return None
                used |= {key[1] for key in keys}
                found.add(evaluate([value], lambda key: graph.leaf((key[1],)))[0])
    if len(found) != 1 or entries != size or size == 1 or program.plan.epilogue:
        return None
    columns = [first + program.local.index(name) for name in used]
    if any((starts[:, c] != starts[:, _RESULT]).any() for c in columns):
        return None
    return found.pop()


def link_values(tree: Tree, links: Ints, wrenches: bool) -> Floats:
    """The flat numbers of many links of one structure, as `unpack_link` takes them."""
    link = int(links[0])
    joint = tree.joints[link]
    assert joint is not None
    parts = [tree.placement_turn[links, :TURN_ENTRIES[int(tree.placement_kind[link])]], tree.placement_shift[links],
             tree.joint_constants[links, :len(joint.constants())], tree.inertia[links]]
    if wrenches:
        bodies = np.array([tree.members[i] for i in links.tolist()], dtype=np.int64)
        parts.append(tree.body_shift[bodies].reshape(len(links), -1))
    return np.concatenate(parts, axis=1)


def _kinds(tree: Tree, wrenches: bool) -> tuple[Ints, list[int], dict[int, tuple[int, ...]]]:
    """Kind of every link, one link of each kind, and for that link which numbers are 0, 1, -1 or generic."""
    n = tree.n
    structure = _structure(tree, wrenches)
    for exploit in (True, False):
        pattern = number_pattern(tree, exploit)
        keys = np.concatenate([structure, pattern], axis=1)[1:]
        packed = np.ascontiguousarray(keys.astype(np.int32)).view(f"V{4 * keys.shape[1]}").ravel()
        _, index, inverse = np.unique(packed, return_index=True, return_inverse=True)
        if len(index) <= MAX_KINDS:
            break
    order = np.argsort(index)  # number kinds by first appearance
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    of_link = np.zeros(n + 1, dtype=np.int64)
    of_link[1:] = rank[inverse.ravel()]
    representatives = [int(i) + 1 for i in index[order]]
    used = {link: tuple(pattern[link].tolist()) for link in representatives}
    return of_link, representatives, used


def _structure(tree: Tree, wrenches: bool) -> Ints:
    """Everything but the numbers that makes links differ."""
    n = tree.n
    joint, special = link_codes(tree)
    has_child = np.zeros(n + 1, dtype=np.int64)
    has_child[tree.parent[1:]] = 1
    first = np.zeros(n + 1, dtype=np.int64)
    first[1:] = 1
    last_child = np.zeros(n + 1, dtype=np.int64)
    last_child[tree.parent[1:]] = np.arange(1, n + 1)  # later assignments win: the highest child
    first[1:] = last_child[tree.parent[1:]] == np.arange(1, n + 1)
    members = np.array([len(m) for m in tree.members]) if wrenches else np.zeros(n + 1, dtype=np.int64)
    return np.stack([joint, tree.placement_kind, special, tree.parent == 0, has_child, first, members],
                    axis=-1).astype(np.int64)


def link_codes(tree: Tree) -> tuple[Ints, Ints]:
    """For every link a code of its joint type, and its own number if anything about it is unlike all others."""
    names: dict[tuple[object, ...], int] = {}
    known: dict[type, int] = {}
    codes = [0]
    for j in tree.joints[1:]:
        assert j is not None
        code = known.get(type(j))
        if code is None:
            code = names.setdefault(j.kind(), len(names))
            if len(j.kind()) == 1:  # reversed joints differ by what they reverse
                known[type(j)] = code
        codes.append(code)
    special = np.zeros(tree.n + 1, dtype=np.int64)  # laws, wrenches and parameters make a kind of its own
    driven = [link for link, law in enumerate(tree.prescribed) if law is not None]
    for link in (*driven, *tree.applied, *tree.symbolic, *_with_laws(tree), *tree.actuators,
                 *tree.armatures):
        special[link] = link
    for link in np.flatnonzero(special[tree.parent]).tolist() if tree.flexible else ():
        if isinstance(tree.joints[link], NodeMotion):  # moved by modes with laws of their own
            special[link] = link
    return np.array(codes), special


def _with_laws(tree: Tree) -> list[int]:
    """Links whose joints have forces of their own; the elasticity of a flexible body is that of its kind."""
    found = set(tree.joint_forces)
    for link in tree.flexible:
        joint = tree.joints[link]
        if joint is not None and len(tree.joint_forces[link]) == joint.nu:
            found.discard(link)
    return sorted(found)


def number_pattern(tree: Tree, exploit: bool) -> Ints:
    """Codes 0, 1, 2 for the numbers 0, 1, -1, and 3 for others; columns as in `unpack_link`, padded."""
    turn = tree.placement_turn.copy()
    sizes = np.array(TURN_ENTRIES)[tree.placement_kind]
    columns = np.arange(9)
    turn[columns[None, :] >= sizes[:, None]] = 0.0
    values = np.concatenate([turn, tree.placement_shift, tree.joint_constants, tree.inertia], axis=1)
    codes = np.full(values.shape, _GENERIC, dtype=np.int64)
    if exploit:
        for code, number in enumerate((0.0, 1.0, -1.0)):
            codes[values == number] = code
    massless = values[:, 15] == 0.0  # no centre of mass to divide by: never generic
    codes[massless, 15] = 0
    return codes


#: numbers that a pattern's codes stand for
LITERAL: dict[int, float] = {0: 0.0, 1: 1.0, 2: -1.0}


def used_numbers(codes: Sequence[int], kind: int, constants: int, members: int) -> list[int]:
    """The codes of a link's numbers in the order `unpack_link` takes them."""
    return [*codes[:TURN_ENTRIES[kind]], *codes[9:12], *codes[12:12 + constants], *codes[15:25],
            *[_GENERIC] * 3 * members]


def _kind(tree: Tree, index: int, link: int, codes: tuple[int, ...], world: World, local: list[str],
          wrenches: bool) -> Kind:
    graph = Graph()
    joint = tree.joints[link]
    assert joint is not None
    own_world = rebuild(world, iter(evaluate(list(flatten(world)), graph.leaf)))

    def shared(name: str, j: int) -> Number:
        return graph.leaf(("global", name, j))

    def read(name: str, j: int) -> Number:
        return graph.leaf(("in", name, j)) if name in local else 0.0

    bind = binder(tree, shared)
    if link in tree.symbolic:
        numbers = bind(tree.symbolic[link])
    else:
        kind, constants = int(tree.placement_kind[link]), len(joint.constants())
        members = len(tree.members[link]) if wrenches else 0
        used = used_numbers(codes, kind, constants, members)
        numbers = unpack_link(kind, constants, members,
                              [LITERAL[c] if c in LITERAL else graph.leaf(("const", i)) for i, c in enumerate(used)])
    children = tree.parent[1:] == link
    siblings = np.flatnonzero(tree.parent == tree.parent[link])
    made = carried(tree, link, view(tree, link, numbers, read, own_world, wrenches, bind), read, own_world, bind)
    return Kind(index, graph, made,
                is_base=bool(tree.parent[link] == 0), is_tip=not bool(children.any()),
                is_first=bool(siblings.max() == link))


def carried(tree: Tree, link: int, made: Link, read: Callable[[str, int], Number], world: World,
            bind: Callable[[Any], Any]) -> Link:
    """A link, if it is a node of a flexible body with the frame that carries it: its part of the inputs is the node's
    as well."""
    if isinstance(made, NodeLink):
        above = int(tree.parent[link])
        frame = view(tree, above, tree.numbers(above), read, world, False, bind)
        assert isinstance(frame, ModalLink)
        made.carrier = frame
    return made


def _numbers(tree: Tree, of_link: Ints, kinds: list[KindCode]) -> tuple[Floats, Ints]:
    """The hoisted expressions of every link's numbers, kind by kind, and where each link's start."""
    starts = np.zeros(tree.n + 1, dtype=np.int64)
    blocks: list[Floats] = []
    at = 0
    for index, code in enumerate(kinds):
        links = np.flatnonzero(of_link[1:] == index) + 1
        width = len(code.statics)
        if width:
            wrenches = bool(code.kind.view.with_wrenches)
            values = link_values(tree, links, wrenches)
            columns: list[Any] = evaluate(code.statics, {("const", i): values[:, i] for i in range(values.shape[1])})
            block = np.stack([np.broadcast_to(c, len(links)) for c in columns], axis=-1)
            blocks.append(np.ascontiguousarray(block).ravel())
            starts[links] = at + width * np.arange(len(links))
            at += width * len(links)
    return np.concatenate(blocks) if blocks else np.zeros(1), starts


def edge_buffers(parent: Ints) -> tuple[Ints, int]:
    """Columns own_out, parent_out, own_sum, parent_sum of the table, and how many buffers there are.

    A buffer is taken when the first value is put into it and free again when the last one has been taken out.
    In a chain two are enough; in a tree, as many as there are branches open at a time.
    """
    n = len(parent) - 1
    if bool((parent[1:] == np.arange(n)).all()):  # a chain
        mine = np.arange(n + 1) % 2
        other = np.concatenate([[0], mine[:-1]])
        return np.stack([mine, other, mine, other], axis=-1), 2
    parents = parent.tolist()
    last = [0] * (n + 1)
    for link in range(1, n + 1):
        last[parents[link]] = link
    out, total = [0] * (n + 1), [0] * (n + 1)
    free: list[int] = []
    top = 1  # buffer 0 is a dummy: nothing travels in buffers to the root's children
    for link in range(1, n + 1):
        if last[link]:
            out[link] = free.pop() if free else (top := top + 1) - 1
        if link == last[parents[link]] and parents[link]:
            free.append(out[parents[link]])
    free_in: list[int] = []
    top_in = 1
    taken = [False] * (n + 1)
    for link in range(n, 0, -1):
        p = parents[link]
        if not taken[p]:
            taken[p] = True
            total[p] = free_in.pop() if free_in else (top_in := top_in + 1) - 1
        if taken[link]:
            free_in.append(total[link])
    own_out, own_sum = np.array(out), np.array(total)
    return np.stack([own_out, own_out[parent], own_sum, own_sum[parent]], axis=-1), max(top, top_in)


def _table(tree: Tree, function: Function, of_link: Ints, numbers: Ints, buffers: Ints, inputs: list[str]
           ) -> tuple[list[str], Ints]:
    """Names of the columns for links' parts of inputs and results, and the whole table."""
    n, base = tree.n, function if function.product is None else function.product.function
    result = {"screws": base.width * tree.u_start, "links": base.width * np.arange(-1, n),
              "coordinates": tree.q_start, "totals": np.zeros(n + 1, dtype=np.int64)}.get(base.layout, tree.u_start)
    parts = {name: part_starts(tree, name_of_part(function, name)) for name in inputs}
    if function.product is not None:
        parts |= part_columns(tree, product_columns(tree, function.product), {"result": result})
    columns = [tree.parent, of_link, numbers, result, *buffers.T, *parts.values()]
    return list(parts), np.ascontiguousarray(np.stack(columns, axis=-1).astype(np.int64))
