"""Along what functions are differentiated: the entries of their inputs, and how they change.

Coordinates change in the tangent space: one direction for every speed, along which dq = Q(q) u (quaternions stay unit
quaternions, and nq - nu directions that mean nothing are not asked about). Everything else changes entry by entry.

With loops there are two readings. *All*: every coordinate and speed by itself, as if the others stood still; what the
function gives for states that are not closed. *Closed*: one direction for every independent speed of the plan, along
which the machine stays closed,

    dq = Q P dθ,    u = N v + d,    u̇ = N v̇ + c    (1)

with N and d from the method's own `dependent_speeds`: all of u changes with q and with the independent speeds v, and
all of u̇ with those and v̇. P is N where all constraints bind positions. Those on speeds alone (rolling, knife edges)
restrict no displacement: P is then found without them, and has a direction more for every one of them, that of the
speed it is solved for. Time and parameters move the constraints, and dependent coordinates follow:

    dq = Q δ(p),    δ: the step that closes the loops, zero at a closed position    (2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bellcrank.formulations import SHARED
from bellcrank.loops.plan import LoopPlan
from bellcrank.lowering.function import Function, Tracer
from bellcrank.scalar.derivative import combined, jacobian, tangents
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.topology.tree import Tree

__all__ = ["MOTION", "Seeds", "Solved", "Variable", "chart", "directions", "ways", "width"]

#: {leaf: {direction: rate}}
Seeds = dict[Scalar, dict[Any, Number]]
#: inputs that move with the machine
MOTION = ("q", "u", "udot")


class Solved(NamedTuple):
    """Derivatives by equations that are the same for every direction."""

    values: list[Number]
    rows: list[dict[Any, Number]]  #: right hand sides, by direction
    solve: Callable[[Sequence[Number]], list[Number]]  #: one direction


class Variable(NamedTuple):
    """What is differentiated by: an input of a kernel, or some of its entries."""

    label: str  #: what users call it
    input: str
    entries: tuple[int, ...]  #: of the input, in the order of the columns; for motions, of the speeds


def width(tree: Tree, x: Variable, closed: bool) -> int:
    """The number of directions."""
    return len(ways(tree.plan, x.input)) if closed and x.input in MOTION else len(x.entries)


def ways(plan: LoopPlan, name: str) -> tuple[int, ...]:
    """The speeds that the directions of a closed machine's motion belong to: of its position, or of u and u̇."""
    return plan.placed if name == "q" else plan.independent


def directions(tracer: Tracer, by: Sequence[Variable], functions: Mapping[str, Function], closed: bool,
               levels: Sequence[str], rates: Mapping[str, Sequence[Number]] | None = None) -> Seeds:
    """How inputs change along the directions (label, column); or along the one direction () in which each variable's
    columns change at given `rates`, which takes less than all of them. `levels`: what matters, of `MOTION`."""
    def column(x: Variable, j: int) -> tuple[Any, Number]:
        return ((x.label, j), 1.0) if rates is None else ((), rates[x.label][j])

    space = _Closed(tracer, functions, column, levels) if closed else _Open(tracer, functions, column)
    return space.seeds(by)


class _Open:
    """Every coordinate and speed by itself."""

    def __init__(self, tracer: Tracer, functions: Mapping[str, Function], column: Any) -> None:
        self.tracer, self.functions, self.column = tracer, functions, column
        self.tree, self.graph = tracer.tree, tracer.graph

    def seeds(self, by: Sequence[Variable]) -> Seeds:
        """The rates of all leaves that change."""
        out: Seeds = {}
        for x in by:
            for j, entry in enumerate(x.entries):
                if x.input != "q":
                    self.add(out, (x.input, entry), dict([self.column(x, j)]))
        self.move(out, {v: dict([self.column(x, j)]) for x in by if x.input == "q" for j, v in enumerate(x.entries)})
        return out

    def add(self, seeds: Seeds, key: tuple[str, int], rates: Mapping[Any, Number]) -> None:
        """Let a leaf change, also."""
        _add(seeds.setdefault(self.graph.leaf(key), {}), rates)

    def move(self, seeds: Seeds, motions: Mapping[int, Mapping[Any, Number]]) -> None:
        """Let coordinates move by dq = Q u, for rates of the speeds by direction."""
        if not motions:
            return
        at = {self.graph.leaf(("u", v)): {v: 1.0} for v in motions}
        for i, row in enumerate(tangents(self.tracer(SHARED["coordinate_rates"]), at)):
            if row:
                self.add(seeds, ("q", i), combined(row, motions))


class _Closed(_Open):
    """Along the closed machine."""

    def __init__(self, tracer: Tracer, functions: Mapping[str, Function], column: Any, levels: Sequence[str]) -> None:
        super().__init__(tracer, functions, column)
        self.levels = levels

    def seeds(self, by: Sequence[Variable]) -> Seeds:
        return {leaf: changes for leaf, changes in self.motion(by)[1].items() if changes}

    def motion(self, by: Sequence[Variable]) -> tuple[dict[int, dict[Any, Number]], Seeds]:
        """How the machine moves, by speed, and with it the rates of all leaves that change."""
        speeds, motions = self._speeds(self.tracer)  # N of (1)
        places = self.tracer.planned(self.tree.plan.of_positions)
        out: Seeds = {}
        for x in by:
            if x.input not in MOTION:
                for j, entry in enumerate(x.entries):
                    self.add(out, (x.input, entry), dict([self.column(x, j)]))
        rates = {x.input: {k: dict([self.column(x, k)]) for k in range(len(ways(self.tree.plan, x.input)))}
                 for x in by if x.input in MOTION}
        moved = self._following(places, [x for x in by if x.input in ("t", "parameters")])
        for v, row in enumerate(motions if places is self.tracer else self._speeds(places)[1]):  # P of (1)
            _add(moved.setdefault(v, {}), combined(row, rates.get("q", {})))
        self.move(out, {v: row for v, row in moved.items() if row})
        if "u" not in self.levels:
            return moved, out
        for v, changes in enumerate(jacobian(speeds, out)):
            self.add(out, ("u", v), changes)
            self.add(out, ("u", v), combined(motions[v], rates.get("u", {})))
        if "udot" in self.levels:
            self._accelerate(out, motions, rates.get("udot", {}))
        return moved, out

    def _speeds(self, tracer: Tracer) -> tuple[list[Number], list[dict[Any, Number]]]:
        """All speeds from the independent ones of a plan, and their rates with these."""
        speeds = tracer(self.functions["dependent_speeds"])
        at = {self.graph.leaf(("u", v)): {k: 1.0} for k, v in enumerate(tracer.tree.plan.independent)}
        return speeds, tangents(speeds, at)

    def _following(self, places: Tracer, by: Sequence[Variable]) -> dict[int, dict[Any, Number]]:
        """(2)"""
        if not by:
            return {}
        moved: Seeds = {}
        for x in by:
            for j, entry in enumerate(x.entries):
                self.add(moved, (x.input, entry), dict([self.column(x, j)]))
        return dict(enumerate(tangents(places(self.functions["displacements"]), moved)))

    def _accelerate(self, seeds: Seeds, motions: Sequence[Mapping[Any, Number]],
                    rates: Mapping[int, Mapping[Any, Number]]) -> None:
        """The accelerations of a motion that keeps the loops closed."""
        dof = len(self.tree.plan.independent)
        entries = self.tracer(self.functions["allowed_motions"])
        free = [self.graph.leaf(("udot", v)) for v in self.tree.plan.independent]
        whole = []
        for v in range(self.tree.nu):
            total = entries[self.tree.nu * dof + v]
            for k, x in enumerate(free):
                total = total + entries[v * dof + k] * x
            whole.append(total)
        for v, changes in enumerate(jacobian(whole, seeds)):
            self.add(seeds, ("udot", v), changes)
            self.add(seeds, ("udot", v), combined(motions[v], rates))


def _add(changes: dict[Any, Number], rates: Mapping[Any, Number]) -> None:
    """Add rates to changes, direction by direction."""
    for d, rate in rates.items():
        changes[d] = changes[d] + rate if d in changes else rate


def chart(tracer: Tracer, by: Sequence[Variable], functions: Mapping[str, Function], levels: Sequence[str]
          ) -> list[dict[Any, Number]]:
    """How a closed machine moves along the directions of its plan: rates of position, u and u̇ (as `levels` has them),
    one row for every speed. Directions of another plan are found from these."""
    moved, seeds = _Closed(tracer, functions, lambda x, j: ((x.label, j), 1.0), levels).motion(by)
    rows = [moved.get(v, {}) for v in range(tracer.tree.nu)]
    for name in levels[1:]:
        rows += [seeds.get(tracer.graph.leaf((name, v)), {}) for v in range(tracer.tree.nu)]
    return rows
