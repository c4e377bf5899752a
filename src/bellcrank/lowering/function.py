"""Functions of a tree: which text computes them, what they read, how their results lie in an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.integrate.contact_views import touch_size
from bellcrank.loops.loop_paths import jacobian_pattern
from bellcrank.lowering.element_views import element_parts
from bellcrank.lowering.flexible_link import ModalLink, NodeLink, link_class
from bellcrank.lowering.link import Link, World
from bellcrank.lowering.looped import LoopedDirect, row_count
from bellcrank.mechanism.forces.element import bound
from bellcrank.scalar.graph import Graph, Number
from bellcrank.schedule.sweeps import Direct, Field, Sweeps, flatten
from bellcrank.spatial import General, Identity, Matrix3, Transform, Vector
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.tree import Applied, LinkNumbers, Tree

__all__ = ["Columns", "Function", "Product", "Tracer", "direct", "input_sizes", "part_starts", "place", "view",
           "world_of"]

#: reads entry `index` of input array `name`
Read = Callable[[str, int], Number]


class Tracer(Protocol):
    """Traces functions of one tree into one graph, whose leaves are (input, entry)."""

    tree: Tree
    graph: Graph
    wrenches: bool  #: whether external wrenches act

    def __call__(self, function: Function) -> list[Number]:
        """The entries of a function."""

    def machine(self, inputs: tuple[str, ...]) -> Direct:
        """The machine as its texts see it, with these inputs traced."""

    def planned(self, plan: Any) -> Tracer:
        """Traces the same tree by another plan of its loops, into the same graph."""


class Columns(NamedTuple):
    """Entries, then matrices found column by column."""

    entries: list[Number]
    given: list[list[Number]]  #: the inputs of all columns of every matrix, row by row
    rows: int  #: inputs of one column
    step: list[Number]  #: a column from the leaves ("column", r)


@dataclass(frozen=True)
class Product:
    """A product of a function's derivatives with a vector, for loops over records (see `product_columns`)."""

    function: Function
    by: tuple[str, ...]  #: inputs, all entries of each; coordinates in the tangent space
    widths: tuple[int, ...]  #: directions of each
    backward: bool  #: from weights of the results to all variables; else along one direction
    #: backward along a closed machine: all speeds from the independent ones
    closing: Function | None = None


@dataclass(frozen=True)
class Function:
    """Something computed for a tree."""

    name: str
    #: the text: sweeps in, field (or tuple, for "totals") out
    text: Callable[[Sweeps], Field]
    #: names of the inputs it reads, besides time and parameters
    inputs: tuple[str, ...]
    #: layout of the result: "speeds", "vector" (the same as one list, loop joints included), "twice" (two a speed: all
    #: first ones, then all others), "coordinates", "links", "screws", "groups" (over groups of links),
    #: "matrix" (symmetric), "columns", "totals" or "conditions" (value and rate of all), "constraints" (values and
    #: Jacobian), "step" and "state" (see `formulations.common.closing_steps`), "wrenches" (of all bodies), "reactions"
    #: (of all joints and closures), "motions" (in independent speeds: N and the drift), "rows" (one for every
    #: constraint), "closures", "elements", "contacts" (see `contact_places`) or "depths" (one for every contact)
    layout: str
    #: numbers per link ("links"), per speed ("screws"), per group of links ("groups"), per closure ("closures"),
    #: per force element ("elements") or in all ("totals")
    width: int = 1
    _: KW_ONLY
    #: whether the text looks at the machine as a whole, which only small trees can be traced with
    whole: bool = False
    #: of those, whether it grows with links and elements alone, so that large machines can be traced with it, too
    linear: bool = False
    #: whether it solves for the joint-space matrix of a tree, which LAPACK does where there are many speeds
    by_matrix: bool = False
    #: whether the text sweeps over groups of links instead of links
    groups: bool = False
    #: whether it sees other groups as a base and a virtual body: see `base_shapes`
    bases: bool = False
    #: whether the text asks for a single link, which loops over kinds of links do not know
    single: bool = False
    #: whether the text covers bodies that deform
    flexible: bool = False
    #: instead of a text: how the entries are made from those of other functions, traced in one graph
    made: Callable[[Tracer], list[Number]] | None = None
    #: the same as matrices whose columns are found in the same way, where they are
    columns: Callable[[Tracer], Columns] | None = None
    #: whether the text looks at every joint by itself, loop joints as well
    every_joint: bool = False
    #: what loop joints add to a result with numbers for every speed: see `loop_joints.with_loop_joints`
    loop_joints: str = ""
    #: whether its groups keep these numbers themselves
    keeps_loop_joints: bool = False
    #: lengths of inputs that are this function's alone
    sizes: tuple[tuple[str, int], ...] = ()
    #: what it is a product of, which sweeps can be rolled for
    product: Product | None = None

    @property
    def tells_loop_joints(self) -> bool:
        """Whether its result has entries for loop joints."""
        return bool(self.loop_joints) or self.keeps_loop_joints

    def size(self, tree: Tree) -> int:
        """Number of entries of the result."""
        if self.layout == "constraints":
            return row_count(tree) + _entries(tree)
        if self.layout == "groups":
            return self.width * len(tree.plan.groups)
        if self.layout == "motions":
            return tree.nu * (len(tree.plan.independent) + 1)
        if self.layout == "contacts":
            return touch_size(sum(pair.places for pair in tree.contacts), tree.nu)
        if self.layout == "depths":
            return sum(isinstance(pair, ContactPair) for pair in (*tree.pairs, *tree.contacts))
        return {"speeds": tree.nu, "vector": tree.nu, "twice": 2 * tree.nu, "coordinates": tree.nq,
                "links": self.width * tree.n,
                "screws": self.width * tree.nu, "conditions": 2 * row_count(tree), "step": 2 * tree.nu + 5,
                "state": tree.nq + tree.nu + 2, "wrenches": 6 * (len(tree.body_names) - 1),
                "reactions": 6 * len(tree.loaded_names), "rows": row_count(tree),
                "closures": self.width * len(tree.closures), "elements": self.width * len(element_parts(tree)),
                "matrix": tree.nu * tree.nu, "columns": tree.nu * tree.nu, "totals": self.width}[self.layout]


def _entries(tree: Tree) -> int:
    """Number of entries of their Jacobian."""
    return len(jacobian_pattern(tree)) + sum(len(relation.terms) for relation in tree.relations)


def input_sizes(tree: Tree) -> dict[str, int]:
    """Lengths of all input arrays."""
    return {"q": tree.nq, "u": tree.nu, "tau": tree.nu, "udot": tree.nu, "p": tree.nu, "dq": tree.nu, "du": tree.nu,
            "extra": tree.nu, "column": tree.nu, "scale": tree.nu, "t": 1, "point": 3, "load": 6 * tree.n,
            "multipliers": row_count(tree),
            "wrench": 6 * (len(tree.body_names) - 1), "parameters": len(tree.parameters)}


def part_starts(tree: Tree, name: str) -> npt.NDArray[np.int64]:
    """Where each link's own part of an input begins."""
    starts = tree.q_start if name == "q" else wrench_starts(tree) if name == "wrench" else \
        6 * np.arange(-1, tree.n) if name == "load" else tree.u_start
    return np.asarray(starts, dtype=np.int64)


def wrench_starts(tree: Tree) -> list[int]:
    """Where each link's wrenches begin in the input, which lists bodies link by link."""
    starts, at = [], 0
    for link, members in enumerate(tree.members):
        starts.append(at)
        at += 6 * len(members) if link else 0
    return starts


def world_of(tree: Tree, read: Read, wrenches: bool, bind: Callable[[Any], Any], point: bool = False) -> World:
    """What all links share, read from the inputs; `point`: one of a body is among them."""
    turn = tree.ground_turn
    plain = bool((turn == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).all())
    rows = General(Matrix3(*(Vector(*row) for row in turn.tolist())))
    gravity = Vector(*(bind(g) for g in tree.gravity))
    return World(read("t", 0), gravity if plain else rows.inverse(gravity),
                 Transform(Identity() if plain else rows, Vector(*tree.ground_shift.tolist())),
                 wrenches or bool(tree.applied or tree.pairs) or tree.weighed, bool(tree.armatures),
                 Vector(*(read("point", i) for i in range(3))) if point else Vector.zero(), tree.modes,
                 tree.length, tree.effort)


def view(tree: Tree, link: int, numbers: LinkNumbers, read: Callable[[str, int], Number], world: World,
         wrenches: bool, bind: Callable[[Any], Any]) -> Link:
    """A link's view; `read` takes entries relative to the link's own part of each input."""
    joint = tree.joints[link]
    assert joint is not None
    applied = tuple(Applied(bind(w.moment), bind(w.force), bind(w.at), bind(w.axes), w.name)
                    for w in tree.applied.get(link, ()))
    return link_class(joint)(joint, numbers, read, world, bind(tree.prescribed[link]), applied, wrenches,
                             bind(tree.joint_forces.get(link, ())), bind(tree.actuators.get(link, ())),
                             bind(tree.armatures.get(link, ())))


def binder(tree: Tree, read: Read) -> Callable[[Any], Any]:
    """Replaces parameters in a nested tuple by their run-time values."""
    index = {name: i for i, name in enumerate(tree.parameters)}

    return lambda value: bound(value, lambda name: read("parameters", index[name]))


def direct(tree: Tree, inputs: tuple[str, ...], read: Read, wrenches: bool) -> LoopedDirect:
    """Sweeps that execute at once; inputs outside `inputs` read as zero."""
    bind = binder(tree, read)
    world = world_of(tree, read, wrenches, bind, "point" in inputs)
    wrench = wrench_starts(tree)
    known = {*inputs, "wrench"} if wrenches else set(inputs)

    known_frames: dict[int, ModalLink] = {}
    whole = tree.extended

    def make(link: int) -> Link:
        start = {"q": int(whole.q_start[link]), "wrench": wrench[link] if link <= tree.n else 0, "load": 6 * (link - 1)}
        u = int(whole.u_start[link])

        def local(name: str, j: int) -> Number:
            return read(name, start.get(name, u) + j) if name in known else 0.0

        numbers = whole.numbers(link)
        if link in whole.symbolic:
            numbers = bind(numbers)
        made = view(whole, link, numbers, local, world, wrenches, bind)
        if isinstance(made, ModalLink):
            known_frames[link] = made
        elif isinstance(made, NodeLink):
            made.carrier = known_frames[int(tree.parent[link])]
        return made

    widths = [0 if j is None else j.nu for j in tree.joints]
    sweeps = LoopedDirect(tree.parent.tolist(), make, world, tree.u_start.tolist(), widths, tree.nu)
    for link, frame in known_frames.items():
        frame.moving = partial(sweeps.moving.__getitem__, link)

    def again(values: Mapping[str, Sequence[Number]]) -> LoopedDirect:
        def other(name: str, i: int) -> Number:
            return values[name][i] if name in values else read(name, i)

        made = direct(replace(tree, pairs=()) if tree.pairs else tree, (*inputs, *values), other, False)
        return made

    sweeps.attach(tree, bind, again, make)
    return sweeps


def place(function: Function, tree: Tree, sweeps: Direct, field: Field) -> list[Number]:
    """The entries of the result array, in order."""
    if function.layout in ("totals", "conditions", "constraints", "step", "state", "wrenches", "reactions",
                           "motions", "rows", "elements", "contacts", "depths", "vector"):
        return list(field)
    if function.layout in ("matrix", "columns"):
        return [x for row in sweeps.joint_matrix(field, function.layout == "matrix") for x in row]
    if function.layout == "speeds":
        return sweeps.joint_vector(field)
    if function.layout == "coordinates":
        every: list[Number] = [0.0] * tree.nq
        for link in range(1, tree.n + 1):
            every[int(tree.q_start[link]):int(tree.q_start[link]) + len(field[link])] = field[link]
        return every
    out: list[Number] = [0.0] * function.size(tree)
    for link in range(1, tree.n + 1):
        start = link - 1 if function.layout == "links" else int(tree.u_start[link])
        for j, value in enumerate(flatten(field[link])):
            out[start * function.width + j] = value
    return out
