"""Inverse dynamics of a closed machine: the forces of its drives for a motion that its loops allow.

Section 8 of docs/explain/elimination.md: the forces that the spanning tree would need, (27), are carried to the
drives by virtual power, which constraints have no part in.

| docs/explain/elimination.md | here |
|---|---|
| f (27) | ``needed``, from the recursion for trees |
| f_E (29) | ``Projected.force`` |
| X, tau_x, tau_E (32) | ``columns``, ``more``, ``tau`` |

Deviations: none. Cost: that of the tree, and O(m w) for m constraints of w speeds each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.formulations.common.link_kinematics import joint_laws
from bellcrank.formulations.common.shares import largest_share
from bellcrank.formulations.common.small_systems import solve_general, solve_positive
from bellcrank.formulations.elimination.constraint_loads import (
    LoadSolver,
    Projected,
    Statement,
    every_constraint,
    factored,
    one_if_balanced,
    smallest_loads,
    unload,
)
from bellcrank.formulations.elimination.group_loads import group_forces, sent_forces
from bellcrank.formulations.elimination.group_rows import (
    ConstraintEquation,
    group_constraints,
    local_sizes,
    redundant_constraints,
)
from bellcrank.formulations.recursive import inverse_dynamics
from bellcrank.loops.tolerances import OPEN
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.functions import maximum, select_less
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps

__all__ = ["closed_inverse", "constraint_multipliers", "enforced_forces", "independent_forces", "needed_forces",
           "where_loops_hold", "with_drives_at", "with_more_drives"]

_NOT_A_NUMBER = float("nan")


def closed_inverse(tree: Sweeps) -> Field:
    """Forces at the independent speeds, zero at dependent ones, and what enforces prescribed motions. Not a number
    where the motion opens the loops."""
    return with_more_drives(tree, ())


def with_more_drives(tree: Sweeps, extra: Sequence[int], watched: bool = True) -> Field:
    """The same with more drives than degrees of freedom, at dependent speeds: the smallest forces of all, (32). If it
    is not `watched`, motions that open the loops have forces, too: those of what the independent speeds do."""
    machine = require_direct(tree)
    constraints = every_constraint(machine)
    solver, needed = LoadSolver(machine, constraints), needed_forces(machine)
    found, more = solver.projected(needed), {}
    if extra:
        more = _shared(solver, found, extra)
        found = solver.projected({v: x - more.get(v, 0.0) for v, x in needed.items()})
    tau: list[Number] = [0.0] * machine.tree.nu
    for v, x in (*found.force.items(), *more.items()):
        tau[v] = x
    _enforced(machine, solver, found, needed, tau)
    return _only_closed(machine, constraints, tau) if watched else machine.joint_field(tau)


def with_drives_at(tree: Sweeps, drives: Sequence[int]) -> list[Number]:
    """Forces at any speeds whose joints determine the motion, those of loop joints as well; the smallest of all if
    there are more than degrees of freedom. With B the forces at the tree's speeds that a unit of each drive amounts to,
    N^T B tau = N^T f."""
    machine = require_direct(tree)
    constraints = every_constraint(machine)
    solver, needed = LoadSolver(machine, constraints), needed_forces(machine)
    parts = [machine.speed_row(v) for v in drives]  # columns of B
    columns = [solver.projected(part).force for part in parts]
    wanted = solver.projected(needed).force
    every = solver.independent
    if len(drives) == len(every):
        matrix = [[column[v] for column in columns] for v in every]
        forces = [x for x, in solve_general(matrix, [[wanted[v]] for v in every])]
    else:
        square = [[sum((a[v] * a[w] for a in columns), 0.0) for w in every[:i + 1]] for i, v in enumerate(every)]
        shares = dict(zip(every, solve_positive(square, [wanted[v] for v in every]), strict=True))
        forces = [sum((column[v] * x for v, x in shares.items()), 0.0) for column in columns]
    left = dict(needed)
    for part, force in zip(parts, forces, strict=True):
        for v, x in part.items():
            left[v] = left[v] - x * force
    tau: list[Number] = [0.0] * machine.tree.nu
    _enforced(machine, solver, solver.projected(left), left, tau)
    for v, x in zip(drives, forces, strict=True):
        tau[v] = x
    return _where_closed(machine, constraints, tau)


def needed_forces(machine: LoopedDirect) -> dict[int, Number]:
    """(27): the forces at all speeds that the spanning tree needs, less those of laws on joints."""
    forces = machine.joint_vector(inverse_dynamics(machine))
    laws = machine.joint_vector(joint_laws(machine))
    return {v: x - law for v, (x, law) in enumerate(zip(forces, laws, strict=True))}


def _shared(solver: LoadSolver, found: Projected, extra: Sequence[int]) -> dict[int, Number]:
    """(32): the forces of additional drives."""
    columns = [solver.projected({v: 1.0}).force for v in extra]  # X
    every = solver.independent
    matrix = [[sum((a[v] * b[v] for v in every), 1.0 if i == j else 0.0) for j, b in enumerate(columns[:i + 1])]
              for i, a in enumerate(columns)]
    right = [sum((a[v] * found.force[v] for v in every), 0.0) for a in columns]
    return dict(zip(extra, solve_positive(matrix, right), strict=True))


def _enforced(machine: LoopedDirect, solver: LoadSolver, found: Projected, needed: dict[int, Number],
              tau: list[Number]) -> None:
    """Forces of prescribed motions, into `tau`: what the tree needs there, less what the loops supply."""
    driven = [v for v, fixed in enumerate(machine.tree.prescribed_speeds()) if fixed]
    if not driven:
        return
    for v in driven:
        tau[v] = needed[v]
    for statement, load in zip(solver.constraints, smallest_loads(machine, solver, found.loads), strict=True):
        for v, x in statement.driven.items():
            tau[v] = tau[v] - x * load


def constraint_multipliers(tree: Sweeps) -> tuple[Number, ...]:
    """(27) for given joint forces ``tau``: the multipliers of all constraints. Not a number where the accelerations are
    not those that the forces cause, as no multipliers make up for that."""
    machine = require_direct(tree)
    solver = LoadSolver(machine, every_constraint(machine))
    lack = lacking_forces(machine)
    found = solver.projected(lack)  # (28), (29)
    sizes, effort = machine.tree.speed_sizes, machine.tree.effort
    left, whole = ([(x, float(sizes[v])) for v, x in forces.items()] for forces in (found.force, lack))
    one = one_if_balanced(left, whole, effort)
    return tuple(x * one for x in smallest_loads(machine, solver, found.loads))  # (30), (31)


def enforced_forces(tree: Sweeps) -> Field:
    """The joint forces ``tau`` where the motion is free, what enforces it where it is prescribed."""
    machine = require_direct(tree)
    solver = LoadSolver(machine, every_constraint(machine))
    tau = list(machine.given("tau"))
    _enforced(machine, solver, solver.projected(lacking_forces(machine)), needed_forces(machine), tau)
    return machine.joint_field(tau)


def lacking_forces(machine: LoopedDirect) -> dict[int, Number]:
    """The right hand side of (27), by free speed: what the constraints must supply. Forces along loop joints are
    elements if they act."""
    tau, fixed = machine.given("tau"), machine.tree.prescribed_speeds()
    fixed = fixed | machine.tree.loop_speeds() if machine.tree.forced else fixed
    return {v: x - tau[v] for v, x in needed_forces(machine).items() if not fixed[v]}


def where_loops_hold(tree: Sweeps, forces: Field) -> Field:
    """Joint forces by whatever method, not a number where the motion opens the loops."""
    machine = require_direct(tree)
    return _only_closed(machine, every_constraint(machine), tree.joint_vector(forces))


def _only_closed(machine: LoopedDirect, constraints: Sequence[Statement], tau: Sequence[Number]) -> Field:
    return machine.joint_field(_where_closed(machine, constraints, tau))


def _where_closed(machine: LoopedDirect, constraints: Sequence[Statement], tau: Sequence[Number]) -> list[Number]:
    """Forces of a motion that keeps the loops closed."""
    udot = machine.joint_vector([None, *(view.udot for view in machine.views[1:])])
    sizes = machine.tree.speed_sizes.tolist()
    closed = one_if_closed([(c.free, c.equation) for c in constraints], machine.speeds(), udot, sizes)
    return [x * closed for x in tau]


def one_if_closed(constraints: Sequence[tuple[Mapping[int, Number], ConstraintEquation]], u: Sequence[Number],
                  udot: Sequence[Number], sizes: Sequence[float]) -> Number:
    """1 if a motion keeps the loops closed to `OPEN`, in position, in speed and in acceleration; else not a number.
    `sizes` are those of the speeds' coordinates."""
    units = [equation.size for _, equation in constraints]
    pulls = [sum((x * udot[v] for v, x in free.items()), 0.0) - equation.gamma for free, equation in constraints]
    position = largest_share([equation.value for _, equation in constraints], units)
    motion = maximum(largest_share([equation.rate for _, equation in constraints], units), largest_share(pulls, units))
    fastest = largest_share(u, sizes)
    size = fastest * fastest + largest_share(udot, sizes) + 1.0
    return select_less(maximum(position * size, motion), size * OPEN, 1.0, _NOT_A_NUMBER)


# -- group by group, for machines that are too large to be looked at as a whole -------------------------------------
def independent_forces(groups: Sweeps) -> Field:
    """Forces at the independent speeds that do the same as forces ``tau`` at all, (28), (29); zero at dependent ones.
    Not a number where a motion (q, u, udot) opens loops. Nothing may be prescribed."""
    return groups.inward(inward_forces, zero=(0.0,) * groups.world.widths[1])[0]


def inward_forces(group: GroupView, received: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    shape = group.shape
    force = group_forces(group, received)
    udot: list[Number] = [0.0] * len(shape.speeds)
    speeds: list[Number] = [0.0] * len(shape.speeds)
    for v, (k, c) in enumerate(shape.speeds):
        if k >= 0:
            udot[v], speeds[v] = group.links[k].udot[c], group.links[k].u[c]
    for relation in shape.relations:  # couplers reach speeds by which no member moves
        for v, place in relation.terms:
            witness, c, _ = relation.every[place]
            udot[v] = group.witnesses[witness].udot[c]
    constraints = group_constraints(group)
    rows = [dict(c.factors) for c in constraints]
    unload(factored(shape.dependent, shape.sizes, rows), rows, force)  # (28), (29)
    every = [*constraints, *redundant_constraints(group)]
    closed = one_if_closed([(dict(c.factors), c) for c in every], speeds, udot, local_sizes(group)) if every else 1.0
    number = {pair: v for v, pair in enumerate(shape.speeds)}
    kept = [closed - 1.0 if number[k, c] in shape.dependent else force[number[k, c]] * closed
            for k, link in enumerate(group.links) if shape.own[k] for c in range(link.joint.nu)]
    return tuple(x * closed for x in sent_forces(group, force, len(received))), tuple(kept)
