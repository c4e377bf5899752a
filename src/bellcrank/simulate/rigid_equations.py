"""The program of a machine with rigid contacts: see `integrate.contact_step`, which says what its driver calls.

The inertia that contacts feel, J M^-1 J^T, comes from the operator recursion: of trees M^-1 is the product of factors
[I - H psi K]* D^-1 [I - H psi K] of `formulations.operator.tree_recursion`, (3.7), whatever method computes the motion;
what of that does not depend on the column it is applied to (P, D, G, transforms) is computed once a step by *factor*,
and *apply* is one sweep inward and one outward.

With loops it is M^-1 with what the loops enforce taken off. That comes from the text of the machine's own forward
dynamics (accelerations are linear in joint forces that are added, `extra`; their derivative along a column, by
`tangents`, is the answer), and is split in the same way: for the four loops of a Cassie by `elimination` 5300 and 1100
operations where the operator's partition into primary and secondary systems has 20 600 and 3900. Of trees the two ways
have the same factors: 1223 operations for a Go2, and 710 or 718 for a column. Machines too large for one graph with
loops take the difference of two accelerations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.integrate.contact_slots import kept_numbers
from bellcrank.integrate.contact_views import VIEWS
from bellcrank.lowering.choose import read_inputs, trace
from bellcrank.lowering.contact_rows import path_speeds
from bellcrank.lowering.function import Function
from bellcrank.mechanism.contact.narrow_phase import bounds_of, smallest_extent
from bellcrank.mechanism.forces.coordinate_forces import Friction, LinearSpring
from bellcrank.mechanism.forces.element import Along
from bellcrank.mechanism.forces.motors import Servo
from bellcrank.mechanism.geometry.solids import HeightField, Plane
from bellcrank.mechanism.machine_sizes import turns
from bellcrank.scalar.derivative import tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar, reachable
from bellcrank.simulate.arms import ArmBlocks
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.machine import Code, Compiler
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.target.backend import Call
from bellcrank.target.column_code import split
from bellcrank.target.kernel_source import GraphKernel, ManyKernel
from bellcrank.topology.tree import Tree

__all__ = ["ContactEquations", "length_of", "may_be_stiff", "paths", "scaled", "spans", "step_sizes",
           "thinnest"]

Ints = npt.NDArray[np.int64]


#: so many lengths of a machine count as a radian
LONG = 10.0
#: operations of the largest function of places that is computed for several states at once: one piece of code
MANY = 12_000
#: what the energy of a machine is the sum of
ENERGIES = ("kinetic_energy", "potential_energy", "stored_energy")


class ColumnAnswers(NamedTuple):
    """What computes how speeds answer to joint forces: numbers that all columns share, what computes them, what
    computes columns, and how many at once."""

    shared: int = 0
    factor: tuple[Call, ...] = ()
    apply: tuple[Call, ...] = ()
    together: int = 1


def paths(tree: Tree) -> Floats:
    """For every place and speed: 1 if it moves the second body against the first, -1 the first against the second, else
    0; (places, nu)."""
    rows = []
    for pair in tree.contacts:
        row = np.zeros(tree.nu)
        for speed, sign in path_speeds(tree, pair.first, pair.second):
            row[speed] = sign
        rows += [row] * pair.places
    return np.array(rows).reshape(-1, tree.nu)


def scaled(tree: Tree) -> Floats:
    """For every speed: 1 if it is that of a motion which forces may change, 0 if it is prescribed or a state, (nu,)."""
    return np.where(tree.prescribed_speeds() | tree.state_speeds(), 0.0, 1.0)


def length_of(tree: Tree) -> float:
    """A length typical of a machine with rigid contacts [m], of which tolerances are shares: the largest extent of its
    shapes plus the largest distance between two joints of a link."""
    extents = [float(np.max(np.ptp(bounds_of(shape), axis=0))) for pair in tree.contacts
               for shape in (pair.first_shape, pair.second_shape) if not isinstance(shape, (HeightField, Plane))]
    shifts = [tree.placement_shift[k].tolist() for k in range(1, tree.n + 1) if tree.parent[k]]
    links = [math.hypot(*shift) for shift in shifts if not any(type(x) is Scalar for x in shift)]
    return max(extents, default=0.0) + max(links, default=0.0) or 1.0


def spans(tree: Tree) -> Floats:
    """For every speed: the angle that one of it counts as, where speeds of a machine are compared, (nu,); of distances
    one radian is `LONG` lengths of the machine."""
    out = np.ones(tree.nu)
    for joint, start in zip(tree.joints, tree.u_start, strict=True):
        if joint is not None and joint.counts_energy:
            out[start:start + joint.nu] = [1.0 if turn else 1.0 / (LONG * length_of(tree)) for turn in turns(joint)]
    return out


def thinnest(tree: Tree) -> Floats:
    """For every place: the smallest extent of the smaller shape [m], (places,)."""
    return np.array([min(smallest_extent(pair.first_shape), smallest_extent(pair.second_shape))
                     for pair in tree.contacts for _ in range(pair.places)])


def may_be_stiff(tree: Tree) -> bool:
    """Whether there are forces that the inertia of `moreau.stiffened` does not cover: all but linear springs, dampers
    and servos on joints of the tree."""
    between = (getattr(pair, "along", None) for pair in tree.pairs)
    return any(along is None or along.placed or along.damped for along in between) or any(
        not _linear(along) for several in tree.joint_forces.values() for _, along in several)


def _linear(along: Along) -> bool:
    if isinstance(along, Servo):
        return along.lower is None and along.upper is None
    return isinstance(along, LinearSpring) or (
        isinstance(along, Friction) and along.coulomb == 0.0 and along.static is None)


def step_sizes(tree: Tree, places: Function, together: int = 1, views: int = 1) -> dict[str, int]:
    """Entries of the buffers that a step with rigid contacts needs besides those of others, with so many columns, and
    views of places, at once."""
    return {"touch": places.size(tree) * views, "shown": (tree.nq + tree.nu + 1) * views,
            **dict.fromkeys(("column", "answer"), tree.nu * together),
            **dict.fromkeys(("extra", "none", "base", "added"), tree.nu), "energy": len(ENERGIES)}


class ContactEquations(Equations):
    """The equations of motion, with what rigid contacts need, and what their steps hand on for every state."""

    programs = "programs with rigid contacts"

    def __init__(self, added: Sequence[Number] | None, *given: Any, **options: Any) -> None:
        """`added` is inertia of the machine for every speed, an expression of parameters, to be taken off again."""
        super().__init__(*given, **options)
        self.momenta = False  # impulses change speeds, whatever the method that knows their rates
        self.added = added
        tree = self.system.model.tree
        self.places = sum(pair.places for pair in tree.contacts)
        #: see `integrate.contact_step`
        self.handed_on: Floats = np.zeros((self.count, kept_numbers(tree.nu, self.places)))

    def inputs(self, states: Ints) -> dict[str, Floats]:
        return {**super().inputs(states), "contact": self.handed_on[states]}

    def carried(self, code: Code) -> int | None:
        return code.inputs["contact"]

    def remember(self, states: Ints, code: Code, inputs: Floats) -> None:
        super().remember(states, code, inputs)
        self.handed_on[states] = inputs[:, code.inputs["contact"]:]

    def make(self, run: CompiledEvaluator, functions: Mapping[str, Function], width: int, arms: ArmBlocks | None
             ) -> Code:
        forward = functions["forward_dynamics"]
        pushed = replace(forward, name="pushed_dynamics", inputs=(*forward.inputs, "extra"))
        code = super().make(run, {**functions, "forward_dynamics": pushed}, width, None)
        tree, nu = run.tree, run.tree.nu
        c = Compiler(run, {**functions, "pushed_dynamics": pushed}, width, self.external)
        response = self._response(c, pushed)
        places, at = functions["contact_places"], code.sizes["inputs"]
        placed = run.tree.nq != nu or any(p is not None for p in tree.prescribed)
        touching, views = self._touching(c, places)
        sizes = {**code.sizes, **step_sizes(tree, places, response.together, views), "shared": response.shared,
                 "inputs": at + self.handed_on.shape[1]}
        return replace(
            code, sizes=sizes, inputs={**code.inputs, "contact": at},
            places={**code.places, "extra": ("extra", 0), "shared": ("shared", 0), "column": ("column", 0)},
            more={"placing": tuple(c.calls(["displaced"], "stage", 0, inputs={"dq": ("none", 0)}) if placed else ()),
                  "touching": touching, "factor": response.factor, "apply": response.apply,
                  "adding": self._adding(c), "energies": self._energies(c)})

    def _adding(self, c: Compiler) -> tuple[Call, ...]:
        """Inertia that is added, of every speed; zeros if there is none."""
        if self.added is None:
            return ()
        names = list(c.run.tree.parameters)
        inner = Graph()
        entries = evaluate(list(self.added), lambda key: inner.leaf(("parameters", names.index(key[1]))))
        return (Call(c.run.backend.block(_graph(entries, {"parameters": len(names)} if names else {}), ("added",),
                                         c.width), "added", 0),)

    def _energies(self, c: Compiler) -> tuple[Call, ...]:
        """The energy of the machine, with the inertia that is added."""
        kernels = self.system.kernels
        if not kernels.springs_outside:
            return tuple(c.calls(ENERGIES, "energy", 0))
        whole = kernels.with_springs
        assert isinstance(whole, CompiledEvaluator)
        stored = Compiler(whole, c.functions, c.width, False)
        return *c.calls(ENERGIES[:2], "energy", 0), *stored.calls(ENERGIES[2:], "energy", 2)

    def _touching(self, c: Compiler, places: Function) -> tuple[tuple[Call, ...], int]:
        """Gaps, points, normals and axes of speeds; of how many states at once (see `contact_views`)."""
        if not self.places:
            return (), 1
        tree = c.run.tree
        entries = trace(tree, places, False, "unrolled")
        assert isinstance(entries, list)
        graph, block = _graph(entries, read_inputs(tree, places, False)), c.run.backend.block
        size = len(reachable(graph.outputs))
        if c.width > 1 or c.run.backend.beside() < VIEWS or size > MANY:
            return (Call(block(graph, (places.name,), c.width), "touch", 0),), 1
        starts = {"q": 0, "u": tree.nq, "t": tree.nq + tree.nu}
        several = ManyKernel(graph.outputs, graph.inputs, tuple(starts), VIEWS)
        where = {name: ("shown", start * VIEWS) for name, start in starts.items()}
        return (Call(block(several, (places.name,), c.width), "touch", 0, where),), VIEWS

    def _response(self, c: Compiler, pushed: Function) -> ColumnAnswers:
        """How speeds answer to columns."""
        tree = c.run.tree
        if not self.places:
            return ColumnAnswers()
        if not tree.looped and not tree.flexible:
            function = self.system.kernels.functions["joint_responses"]
            traced = c.run.trace(function, False)
            if isinstance(traced, list):
                return self._split(c, traced, c.run.inputs(function, False))
            return ColumnAnswers(apply=tuple(c.calls([function.name], "answer", 0)))
        traced = c.run.trace(pushed, self.external)
        if isinstance(traced, list):
            graph = next((x.graph for x in traced if type(x) is Scalar), None)
            if graph is None:  # nothing can be moved: all of it is prescribed, or has left
                return ColumnAnswers()
            seeds = {graph.leaf(("extra", i)): {0: graph.leaf(("column", i))} for i in range(tree.nu)}
            rows = [row.get(0, 0.0) for row in tangents(traced, seeds)]
            return self._split(c, rows, c.run.inputs(pushed, self.external))
        where = {"wrench": ("springs", 0)} if self.system.kernels.springs_outside else {}
        wrenches = self.external or self.system.kernels.springs_outside
        base, answer = (tuple(c.calls([pushed.name], buffer, 0, wrenches, {**where, "extra": (added, 0)}))
                        for buffer, added in (("base", "none"), ("answer", "column")))
        return ColumnAnswers(factor=base, apply=answer)

    def _split(self, c: Compiler, entries: list[Number], inputs: Mapping[str, int]) -> ColumnAnswers:
        """The same, from a column traced as a whole."""
        nu, block = c.run.tree.nu, c.run.backend.block
        if not any(type(x) is Scalar for x in entries):  # as above
            return ColumnAnswers()
        graphs = split((), (), nu, entries)
        first = _graph(list(graphs.shared), {name: size for name, size in inputs.items() if name != "column"})
        second = _graph(list(graphs.step), {"shared": len(graphs.shared), "column": nu})
        lanes = c.run.backend.beside() if c.width == 1 and second.pieces is None else 1
        several = ManyKernel(second.outputs, second.inputs, ("column",), lanes) if lanes > 1 else second
        return ColumnAnswers(len(graphs.shared), (Call(block(first, ("factor",), c.width), "shared", 0),),
                        (Call(block(several, ("apply",), c.width), "answer", 0),), lanes)


def _graph(entries: list[Number], inputs: Mapping[str, int]) -> GraphKernel:
    return GraphKernel([x if type(x) is Scalar else float(x) for x in entries], inputs)
