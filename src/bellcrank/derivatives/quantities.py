"""What can be differentiated, by name: entries made of the functions that compute it, force elements included."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.derivatives.derived import Quantity, Slopes
from bellcrank.derivatives.directions import Seeds
from bellcrank.derivatives.through_constraints import closed_slopes, closed_solved
from bellcrank.derivatives.through_inverse import forward_slopes, forward_solved
from bellcrank.lowering.function import Function, Tracer
from bellcrank.lowering.looped import row_count, row_speeds
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number
from bellcrank.topology.tree import Tree

__all__ = ["AT_STATE", "INDEPENDENT", "in_independent_speeds", "plain", "quantity", "unbalanced"]

Functions = Mapping[str, Function]


def plain(function: Function, tree: Tree) -> Quantity:
    """A function as it is."""
    return Quantity(function.inputs, function.size(tree), lambda tracer: tracer(function))


def _forward(functions: Functions, tree: Tree) -> Quantity:
    function = functions["forward_dynamics"]
    return Quantity(function.inputs, tree.nu, lambda tracer: tracer(function),
                    closed_slopes if tree.looped else forward_slopes, closed_solved if tree.looped else forward_solved)


def _inverse(functions: Functions, tree: Tree) -> Quantity:
    if tree.looped:
        return plain(functions["closed_inverse"], tree)
    return _less_laws(functions, tree, "inverse_dynamics")


def _less_laws(functions: Functions, tree: Tree, name: str) -> Quantity:
    """Joint forces, less what laws on the joints contribute."""
    function = functions[name]

    def entries(tracer: Tracer) -> list[Number]:
        forces = tracer(function)
        if not tree.joint_forces:
            return forces
        return [x - law for x, law in zip(forces, tracer(functions["joint_laws"]), strict=True)]

    return Quantity(function.inputs, tree.nu, entries)


def _reactions(functions: Functions, tree: Tree) -> Quantity:
    """Wrenches of all joints and closures at the accelerations of forward dynamics."""
    function, forward = functions["joint_reactions"], _forward(functions, tree)

    def put(tracer: Tracer, entries: list[Number], values: Mapping[Any, Number]) -> list[Number]:
        return evaluate(entries, lambda key: values[key] if key in values else tracer.graph.leaf(key))

    def places(tracer: Tracer, udot: list[Number]) -> dict[Any, Number]:
        tau = _drives(functions, tracer)
        return {("udot", v): x for v, x in enumerate(udot)} | {("tau", v): x for v, x in enumerate(tau)}

    def entries(tracer: Tracer) -> list[Number]:
        # through the equations: plans of the method count links of the machine as it moves, not all of them
        return put(tracer, tracer(function), places(tracer, forward.slopes(tracer, {})[0]))

    def slopes(tracer: Tracer, seeds: Seeds) -> Slopes:
        udot, rates = forward.slopes(tracer, seeds)
        own = tracer(function)
        forces = jacobian(_drives(functions, tracer), seeds)
        inner = {leaf: d for leaf, d in seeds.items() if leaf.args[0][0] != "tau"}
        inner |= {tracer.graph.leaf(("udot", v)): row for v, row in enumerate(rates) if row}
        inner |= {tracer.graph.leaf(("tau", v)): row for v, row in enumerate(forces) if row}
        at, rows = places(tracer, udot), jacobian(own, inner)
        flat = iter(put(tracer, [x for row in rows for x in row.values()], at))
        return put(tracer, own, at), [{d: next(flat) for d in row} for row in rows]

    return Quantity(("q", "u", "tau"), function.size(tree), entries, slopes)


def _energy(functions: Functions, tree: Tree) -> Quantity:
    parts = [functions["motion_and_gravity"]]
    if tree.joint_forces or tree.pairs:
        parts.append(functions["stored_energy"])

    def entries(tracer: Tracer) -> list[Number]:
        return [sum((tracer(part)[0] for part in parts[1:]), tracer(parts[0])[0])]

    return Quantity(("q", "u"), 1, entries)


def _of_joints(name: str, inputs: tuple[str, ...]) -> Callable[[Functions, Tree], Quantity]:
    """Coordinates, speeds or accelerations of all joints: what they are, and how they follow from what moves them.
    Those of prescribed joints are what their laws say."""
    def entries(tracer: Tracer) -> list[Number]:
        tree = tracer.tree
        out = [tracer.graph.leaf((name, i)) for i in range(tree.nq if name == "q" else tree.nu)]
        if any(tree.prescribed):
            starts = tree.q_start if name == "q" else tree.u_start
            for k, link in enumerate(tracer.machine(inputs).views):
                if k and link.prescribed is not None:
                    own: list[Number] = getattr(link, name)
                    out[int(starts[k]):int(starts[k]) + len(own)] = own
        return out

    return lambda functions, tree: Quantity(inputs, tree.nq if name == "q" else tree.nu, entries)


def unbalanced(functions: Functions, tree: Tree) -> Quantity:
    """What joint forces and given multipliers of all constraints leave to be done at every speed: f - tau - J^T lambda
    of docs/explain/elimination.md (27), at zero accelerations."""
    bias = _less_laws(functions, tree, "bias")

    def entries(tracer: Tracer) -> list[Number]:
        left = [x - force for x, force in zip(bias.entries(tracer), _drives(functions, tracer), strict=True)]
        if tree.looped:
            for (row, v), x in zip(row_speeds(tree), tracer(functions["loop_matrix"])[row_count(tree):], strict=True):
                left[v] = left[v] - x * tracer.graph.leaf(("multipliers", row))
        return left

    return Quantity(("q", "u", "tau", "multipliers") if tree.looped else ("q", "u", "tau"), tree.nu, entries)


def _drives(functions: Functions, tracer: Tracer) -> list[Number]:
    """Joint forces within the limits of actuators."""
    tree = tracer.tree
    return tracer(functions["drives"]) if tree.actuators else [tracer.graph.leaf(("tau", i)) for i in range(tree.nu)]


def in_independent_speeds(name: str, whole: Quantity, functions: Functions, tree: Tree,
                          speeds: tuple[Sequence[int], Mapping[int, int]]) -> Quantity:
    """A function of the spanning tree in the independent speeds v of a closed machine, with u = N v and u̇ = N v̇ + d:
    N^T p, N^T (h + M d), N^T M N or J N. `speeds` are these, and the columns of the plan's own motions that are divided
    by their entries, in this order."""
    (own, pivots), nu, dof = speeds, tree.nu, len(speeds[0])
    size = {"mass_matrix": dof * dof, "jacobian": 6 * dof}.get(name, dof)

    def entries(tracer: Tracer) -> list[Number]:
        found, values = tracer(functions["allowed_motions"]), whole.entries(tracer)
        motions = _of_speeds([found[v * dof:(v + 1) * dof] for v in range(nu)], pivots)
        columns = [[row[pivots[v]] for row in motions] for v in own]
        if name in ("mass_matrix", "jacobian"):
            rows = [[_dot(values[i:i + nu], column) for column in columns] for i in range(0, len(values), nu)]
            if name == "mass_matrix":
                rows = [[_dot(column, [row[k] for row in rows]) for k in range(dof)] for column in columns]
            return [x for row in rows for x in row]
        if name == "bias":
            drift, held = found[nu * dof:], tree.prescribed_speeds()
            free = [0.0 if held[v] else drift[v] - _dot([column[v] for column in columns], [drift[i] for i in own])
                    for v in range(nu)]
            inertia = tracer(functions["mass_matrix"])
            values = [h + _dot(inertia[v * nu:(v + 1) * nu], free) for v, h in enumerate(values)]
        return [_dot(column, values) for column in columns]

    return replace(whole, size=size, entries=entries)


def _of_speeds(motions: list[list[Number]], pivots: Mapping[int, int]) -> list[list[Number]]:
    """The same motions, in columns that belong to other speeds: Gauss-Jordan elimination."""
    for v, k in pivots.items():
        row = motions[v]
        if all(type(x) is float and x == float(i == k) for i, x in enumerate(row)):
            continue
        shares = [each[k] / row[k] for each in motions]
        motions = [[share if i == k else x - share * row[i] for i, x in enumerate(each)]
                   for each, share in zip(motions, shares, strict=True)]
    return motions


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


#: functions of a state that refer to the independent speeds of closed machines
INDEPENDENT = ("bias", "mass_matrix", "momenta", "jacobian")

#: functions of a state that are not one kernel as they stand
_OWN: dict[str, Callable[[Functions, Tree], Quantity]] = {
    "forward_dynamics": _forward, "inverse_dynamics": _inverse, "reactions": _reactions, "energy": _energy,
    "bias": lambda functions, tree: _less_laws(functions, tree, "bias"),
    "joint_coordinates": _of_joints("q", ("q",)), "joint_speeds": _of_joints("u", ("q", "u")),
    "joint_accelerations": _of_joints("udot", ("q", "u", "udot"))}

#: all functions of a state, and the shape of their results: names of axes, or numbers
AT_STATE: dict[str, tuple[Any, ...]] = {
    "forward_dynamics": ("speeds",), "inverse_dynamics": ("speeds",), "bias": ("speeds",), "momenta": ("speeds",),
    "mass_matrix": ("speeds", "speeds"), "reactions": ("joints", 6), "kinetic_energy": (), "potential_energy": (),
    "energy": (), "center_of_mass": (3,), "momentum": (6,), "joint_laws": ("speeds",), "pair_wrenches": ("bodies", 6),
    "stored_energy": (), "outputs": ("output",), "joint_coordinates": ("coordinates",), "joint_speeds": ("speeds",),
    "joint_accelerations": ("speeds",)}


def quantity(name: str, functions: Functions, tree: Tree) -> Quantity:
    """A function of a state by its name."""
    own = _OWN.get(name)
    return plain(functions[name], tree) if own is None else own(functions, tree)
