"""Forces along loop joints in a run: as forces at the joints around their loops, by equal power for every motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.loop_paths import paths_between
from bellcrank.lowering.function import binder, direct
from bellcrank.mechanism.forces import Actuator
from bellcrank.scalar.graph import Graph, Number
from bellcrank.system.force_elements import with_values
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_errors import loop_drive

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["closing_joints", "limited", "spread", "tree_forces", "unit_speeds", "unlimited"]


def closing_joints(system: Machine) -> tuple[str, ...]:
    """Joints with speeds of their own that close loops of a machine, or would if `release` had not opened them."""
    return tuple(own.name for own in system.model.tree.loop_joints)


def spread(system: Machine, cuts: Sequence[str]) -> list[Number]:
    """Joint forces for the input "tau" that do the same as those given, the forces of the loop joints `cuts` among
    them: those of others within the limits of actuators. Forces along a joint whose loop is open do nothing."""
    graph, tree = Graph(), system.model.tree

    def read(name: str, i: int) -> Number:
        return graph.leaf((name, i))

    out = [read("tau", i) for i in range(system.nu)]
    if limited(system, cuts):
        bind = binder(tree, read)
        for entry, actuator in _actuators(system):
            out[entry] = bind(actuator).output(out[entry], graph.leaf(("u", entry)))
    closed = {c.name for c in tree.closures}
    for own in tree.loop_joints:
        forces, out[own.u] = out[own.u], [0.0] * own.closure.kind.nu
        for entry, rates in unit_speeds(system, own.name, graph) if own.name in cuts and own.name in closed else ():
            for force, rate in zip(forces, rates, strict=True):
                out[entry] = out[entry] + force * rate
    return out


def unit_speeds(system: Machine, joint: str, graph: Graph) -> list[tuple[int, tuple[Number, ...]]]:
    """For every speed around the loop of a loop joint, its place and what speeds of the joint a unit of it makes."""
    tree = system.model.tree
    machine = direct(replace(tree, pairs=()), ("q",), lambda name, i: graph.leaf((name, i)), False)
    view, own = next(pair for pair in zip(machine.loop_joints, tree.loop_joints, strict=True) if pair[1].name == joint)
    paths = [path[::-1] for path in paths_between(tree, own.closure.first, own.closure.second)]
    return [(entry, view.speeds(*([(machine.views[k], [float(v == entry) for v in tree.movers(k)]) for k in path]
                                  for path in paths)))
            for entry in (v for path in paths for k in path for v in tree.movers(k))]


def limited(system: Machine, cuts: Sequence[str]) -> bool:
    """Whether actuators limit some of the forces given, and those of the loop joints `cuts` act beside them."""
    return bool(cuts and system.model.mechanism.drives)


def unlimited(system: Machine) -> Machine:
    """The same machine with actuators that give what they are asked for."""
    if not system.model.tree.actuators:
        return system
    free = replace(system.model, tree=replace(system.model.tree, actuators={}))
    kernels = system.kernels.kept("unlimited", lambda: Kernels(free, system.kernels.maker))
    return type(system)(kernels.for_model(free))


def _actuators(system: Machine) -> list[tuple[int, Actuator]]:
    """Actuators, each with the place among the speeds that it drives."""
    starts = system.model.configuration.starts
    return [(starts[d.joint][1] + d.coordinate, d.actuator) for d in system.model.mechanism.drives]


def tree_forces(system: Machine, cuts: Sequence[str], rows: Floats, q: Floats, u: Floats, t: npt.ArrayLike) -> Floats:
    """The same on arrays: rows (..., nu) at q (..., nq) and u (..., nu)."""
    if not cuts:
        return rows
    rows, tree = np.array(rows), system.model.tree
    if limited(system, cuts):
        for entry, actuator in _actuators(system):
            rows[..., entry] = with_values(system.plans, actuator).output(rows[..., entry], u[..., entry])
    closed = {c.name for c in tree.closures if c.is_joint and c.kind.nu}  # none that is held
    forces = {own.name: rows[..., own.u] for own in tree.loop_joints if own.name in cuts and own.name in closed}
    return np.asarray(np.where(tree.loop_speeds(), 0.0, rows) + loop_drive(system.plans, q, forces, t=t))
