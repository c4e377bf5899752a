"""Given forces of joints that were cut, as part of a machine: elements along their coordinates whose amounts are
parameters. For what depends on where these forces act, such as derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.lowering.choose import GraphTracer
from bellcrank.lowering.function import Tracer
from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number
from bellcrank.system.kernels import Kernels
from bellcrank.system.named_forces import loop_forces
from bellcrank.topology.pairs import SumForce

if TYPE_CHECKING:
    from bellcrank.system.derivative_results import Derivatives
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["GivenForce", "by_loop_forces", "forced_dynamics", "forced_tree", "reading_tau", "with_given_forces"]


@dataclass(frozen=True)
class GivenForce(Along):
    """A force that depends on nothing."""

    amount: Number

    @property
    def damped(self) -> bool:
        return False

    def force(self, x: Number, rate: Number) -> Number:
        return self.amount

    def energy(self, x: Number) -> Number:
        return 0.0


def with_given_forces(tree: Tree, joints: Sequence[str]) -> Tree:
    """The tree with forces along all coordinates of joints that were cut."""
    pairs, parameters = list(tree.pairs), dict(tree.parameters)
    for c in tree.closures:
        if c.name in joints and c.is_joint:
            for k, label in enumerate(c.kind.speed_names):
                name = _label(c.name, label)
                parameters[name] = 0.0
                pairs.append(SumForce(name, ((tree.joint_links[c.name], k, 1.0),),
                                      GivenForce(Graph().leaf(("parameter", name)))))
    return replace(tree, pairs=tuple(pairs), parameters=parameters, forced=tuple(joints), plan=None) if joints else tree


def _label(joint: str, speed: str) -> str:
    """The parameter that has the amount of a force."""
    return f"force along {joint}.{speed}"


def by_loop_forces(plans: LoopPlans, function: str, arguments: Sequence[Any], answer: Callable[..., Derivatives], *,
                   by: Sequence[str] | str, along: Mapping[str, npt.ArrayLike] | None, then: str | None, **rest: Any
                   ) -> Derivatives:
    """Derivatives of a function that may depend on forces along loop joints: these are parameters of the machine, and
    their columns those of tau."""
    names = tuple(along) if along is not None else (by,) if isinstance(by, str) else tuple(by)
    tau = arguments[2] if len(arguments) > 2 else None
    asked = "tau" in names or then == "tau"
    if function not in ("forward_dynamics", "reactions") or not plans.tree.loop_joints or (tau is None and not asked):
        return answer(plans, function, arguments, by=by, along=along, then=then, **rest)
    rows = np.zeros(plans.tree.nu) if tau is None else np.asarray(plans.configuration.forces(tau), dtype=float)
    if not asked and not loop_forces(plans, rows):
        return answer(plans, function, arguments, by=by, along=along, then=then, **rest)
    wide, labels = _with_forces(plans, rows)
    own = (*arguments[:2], np.where(plans.tree.loop_speeds(), 0.0, rows))
    if along is not None:
        ways = along
        if "tau" in names:
            way = np.asarray(plans.configuration.forces(along["tau"]), dtype=float)
            ways = {**along, **{label: way[..., v] for label, v in labels.items()}}
        found = answer(wide, function, own, by=by, along=ways, then=then, **rest)
        return found if "tau" not in found else _merged(found, names, "tau", {
            labels[x]: found[x] for x in labels}, found["tau"].ndim - 1)
    every = (*names, *labels) if "tau" in names else names
    found = answer(wide, function, own, by=every, along=None, then=then, **rest)
    if then == "tau":  # one after the other
        more = {v: answer(wide, function, own, by=every, along=None, then=label, **rest) for label, v in labels.items()}
        whole = {x: _filled(found[x], {v: one[x] for v, one in more.items()}, found[x].ndim - 1) for x in every}
        found = found.with_parts(whole)
    if "tau" not in names:
        return found
    at = found["tau"].ndim - 1 if then is None else found["tau"].ndim - 1 - _axes_of(found, then)
    return _merged(found, names, "tau", {v: found[label] for label, v in labels.items()}, at)


def _merged(found: Derivatives, names: Sequence[str], x: str, columns: Mapping[int, Floats], at: int) -> Derivatives:
    """The parts asked for, one of them with other columns at an axis."""
    own = {name: found[name] for name in (*names, *(("along",) if "along" in found else ()))}
    return found.with_parts({**own, x: _filled(found[x], columns, at)})


def _filled(array: Floats, columns: Mapping[int, Floats], at: int) -> Floats:
    out = np.array(array)
    for v, column in columns.items():
        out[(slice(None),) * at + (v,)] = column
    return out


def _axes_of(found: Derivatives, then: str) -> int:
    """How many axes the second variable has."""
    return 1 if then in found.columns else 0


def forced_tree(tree: Tree) -> Tree:
    """The tree, by the same plan, in which forces along loop joints act as elements."""
    closed = {c.name for c in tree.closures}
    joints = [own.name for own in tree.loop_joints if own.name in closed]
    return replace(with_given_forces(tree, joints), plan=tree.plan)


def reading_tau(tree: Tree, entries: Sequence[Number]) -> list[Number]:
    """Entries traced of a `forced_tree`, with the input "tau" in the place of its parameters for forces."""
    labels = {_label(own.name, label): own.u_start + k for own in tree.loop_joints
              for k, label in enumerate(own.closure.kind.speed_names)}
    names, graph = list(tree.parameters), Graph()

    def leaf(key: Any) -> Number:
        own = labels.get(names[key[1]]) if key[0] == "parameters" else None
        return graph.leaf(key if own is None else ("tau", own))

    return evaluate(entries, leaf)


def forced_dynamics(kernels: Kernels) -> str:
    """The name of forward dynamics with forces along loop joints."""
    name, plain = "forced_dynamics", kernels.functions["forward_dynamics"]

    def made(tracer: Tracer) -> list[Number]:
        wide = forced_tree(tracer.tree)
        return evaluate(reading_tau(wide, GraphTracer(wide, tracer.wrenches)(plain)), tracer.graph.leaf)

    if name not in kernels.functions:
        kernels.functions[name] = replace(plain, name=name, made=made, whole=True, groups=False, loop_joints="",
                                          keeps_loop_joints=True)
    return name


def _with_forces(plans: LoopPlans, rows: Floats) -> tuple[LoopPlans, dict[str, int]]:
    """The machine in which forces along loop joints act as elements, and the places of their parameters in tau."""
    model, closed = plans.model, {c.name for c in plans.tree.closures}
    joints = tuple(own.name for own in plans.tree.loop_joints if own.name in closed)
    tree = with_given_forces(plans.tree, joints)
    labels = {_label(own.name, label): own.u_start + k for own in plans.tree.loop_joints if own.name in closed
              for k, label in enumerate(own.closure.kind.speed_names)}
    values = {name: rows[..., labels[name]] if name in labels else model.values[name] for name in tree.parameters}
    made = replace(model, tree=tree, along=joints, values=values)
    kernels = plans.kernels.kept(("forces along", joints), lambda: Kernels(made, plans.kernels.maker))
    return type(plans)(kernels.for_model(made)), labels
