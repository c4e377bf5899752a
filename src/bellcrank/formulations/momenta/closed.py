"""Canonical momenta with loops: multipliers at velocity level, two linear systems solved by the same recursion.

J. Naudet, D. Lefeber and Z. Terze (see `momenta` for the citation), section 3, equations (1)-(8), of which the paper
uses nothing further: it goes on with open chains. Equation numbers are the paper's.

| paper | here |
|---|---|
| Phi_q | the rows of the loops: ``ends`` on links, ``joints`` along joint speeds |
| Phi_t | what prescribed motions make of the rows, inside `loop_rates`, and ``partial`` of closures driven by time |
| sigma (6) | ``sigma``, the multipliers at velocity level; lambda = d sigma/dt |
| p (7) | augmented: p = M u + Phi_q^T sigma |
| M^-1 (7) | `inward_columns`, `outward_speeds`: (43)-(48) for several right hand sides at once |
| dPhi_q/dt^T sigma (8) | ``push``, from `row_pushes`, and the covectors' part of ``momentum`` in (35) |

Declared deviations
- (7) is not solved as one matrix: u = M^-1 p - M^-1 Phi_q^T sigma, and sigma from the m constraints. M^-1 is the O(n)
  recursion of section 6; of the unit loads Phi_q^T e_r only its inward half is needed, since
  Phi_q M^-1 Phi_q^T = sum over joints of (reduced load)_r (1 / M_j) (reduced load)_s.
- u are joint speeds, not rates of coordinates: Phi_q means d(dPhi/dt)/du, and (8) holds with (35) in place of L_q.
- (8) by (35): the covectors times sigma are momenta of the links, so that P*_K of (35) becomes the augmented momentum,
  and their rates in space act like the forces T_K. Those rates come from the closures evaluated on jets.
- Forces that depend on speeds are evaluated at the u found.
- Accelerations (`constrained_dynamics`) are derived: (3), solved by the recursion of `momenta.forward_dynamics`.

Start with sigma = 0, that is p = M u. Afterwards sigma is found at every instant with u; it need not be integrated.
Cost: O(n) for the sweeps, O(m depth) for the loads, O(m^2 depth + m^3) for sigma or lambda (m constraints).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.pivot import Pivot, absent, solve
from bellcrank.formulations.common.row_loads import Load, classical, row_loads, row_values
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.formulations.momenta.tree_momenta import (
    Rates,
    needed_force,
    outward_rates,
    outward_solution,
    outward_velocities,
    resting_ground,
)
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopedDirect, LoopRow, Moving, require_direct
from bellcrank.mechanism.constraint_rows import Side, Timed
from bellcrank.mechanism.motion import share
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector, unit_index

__all__ = ["constrained_dynamics", "constrained_hamilton"]


# -- M^-1 for several right hand sides ------------------------------------------------------------------------------
class Elimination(NamedTuple):
    """One joint speed eliminated: M_j^-1 M_21, 1 / M_j, and the reduced right hand side of every column."""

    gain: Force
    inverse: Number
    rests: tuple[Number, ...]


def inward_columns(link: Link, upper: tuple[ArticulatedInertia, tuple[Force, ...]], loads: tuple[Load, ...]
                   ) -> tuple[tuple[ArticulatedInertia, tuple[Force, ...]], tuple[Elimination, ...]]:
    """(43)-(48) for many columns at once: joint rows read column . (M motion) = T + column . xhat."""
    mass = upper[0] + link.inertia.articulated()  # (43)
    forces = [d - load.wrench for d, load in zip(upper[1], loads, strict=True)]  # (44)
    done = []
    for i, (column, armature, prescribed) in enumerate(zip(link.columns, link.armature, link.mask, strict=True)):
        if prescribed:
            continue
        m21 = mass @ column
        inverse = 1.0 / (column.dot(m21) + armature)  # (38)
        gain, k = m21 * inverse, unit_index(column)
        bare = absent(armature)
        gain = gain.with_entry(k, 1.0) if bare and k is not None else gain
        rests = tuple(load.joint[i] - column.dot(d) for d, load in zip(forces, loads, strict=True))  # (46)
        forces = [d + gain * rest for d, rest in zip(forces, rests, strict=True)]  # (48)
        mass = mass.eliminated(column, m21, gain) if bare else mass.minus(m21, gain)  # (47)
        done.append(Elimination(gain, inverse, rests))
    for t in reversed(link.transforms):
        mass, forces = t.articulated(mass), [t.force(d) for d in forces]  # (43), (44)
    return (mass, tuple(forces)), tuple(done)


def eliminate_columns(tree: LoopedDirect, rows: Sequence[LoopRow], first: Field) -> Field:
    """The inward half of M^-1 for a right hand side of its own (column 0) and for the unit loads of all rows."""
    columns = [first, *(row_loads(tree, [row], [1.0]) for row in rows)]
    loads = [tuple(c[k] for c in columns) for k in range(len(tree.parent))]
    zero = (ArticulatedInertia.zero(), (Force.zero(),) * len(columns))
    return tree.inward(inward_columns, loads, zero=zero)[0]


def constraint_matrix(eliminated: Field, m: int) -> list[list[Number]]:
    """Phi_q M^-1 Phi_q^T from the reduced unit loads."""
    matrix: list[list[Number]] = [[0.0] * m for _ in range(m)]
    for joint in eliminated[1:]:
        for e in joint:
            reached = [r for r in range(m) if not is_zero(e.rests[r + 1])]
            for r in reached:
                scaled = e.rests[r + 1] * e.inverse
                for s in reached[:reached.index(r) + 1]:
                    matrix[r][s] = matrix[s][r] = matrix[r][s] + scaled * e.rests[s + 1]
    return matrix


def pivots_of(eliminated: Field, multipliers: Sequence[Number] = ()) -> Field:
    """Pivots of the right hand side of its own plus multipliers times the unit loads: reduced loads are linear."""
    out: list[Any] = [None]
    for joint in eliminated[1:]:
        own = []
        for e in joint:
            rest = e.rests[0]
            for factor, unit in zip(multipliers, e.rests[1:], strict=False):
                rest = rest + factor * unit
            own.append(Pivot(e.gain, e.inverse * rest))  # (46)
        out.append(tuple(own))
    return out


def outward_shares(link: Link, motion: Motion, values: tuple[Number, ...]) -> tuple[Motion, Motion]:
    """What the free joint speeds (or accelerations) contribute to the motion of a link, (23)."""
    for t in link.transforms:
        motion = t.velocity(motion)
    for column, value, prescribed in zip(link.columns, values, link.mask, strict=True):
        motion = motion if prescribed else motion + column * value
    return motion, motion


# -- accelerations --------------------------------------------------------------------------------------------------
def constrained_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations by (3): free ones, then lambda, then those of all loads together."""
    machine = require_direct(tree)
    rows = machine.loop_rows()
    rates = tree.outward(outward_rates, root=resting_ground(tree))
    eliminated = eliminate_columns(machine, rows, tree.outward(_missing_forces, rates, outward_axes(tree), root=()))
    free = tree.outward(outward_solution, pivots_of(eliminated), root=Motion.zero())
    share = tree.outward(outward_shares, free, root=Motion.zero())
    drift = [None, *(classical(*r) for r in tree.outward(outward_rates, root=(Motion.zero(), Motion.zero()))[1:])]
    still = [(0.0,) * width for width in machine.widths]  # rows on joints have prescribed accelerations in gamma
    missing = [row.gamma - a - b for row, a, b in zip(
        rows, row_values(rows, share, free), row_values(rows, drift, still), strict=True)]  # (2)
    matrix = constraint_matrix(eliminated, len(rows))
    load = solve_multipliers(matrix, missing, machine.floors)  # (3): minus the paper's lambda
    return tree.outward(outward_solution, pivots_of(eliminated, load), root=Motion.zero())


def _missing_forces(link: Link, nothing: tuple[()], rates: Rates, axes: General | None) -> tuple[tuple[()], Load]:
    return (), Load(-needed_force(link, rates, axes), tuple(link.tau))  # (17)


# -- Hamilton's equations -------------------------------------------------------------------------------------------
def constrained_hamilton(tree: Sweeps) -> Field:
    """(7), (8): for every joint speed the pair (u, dp/dt) of the state (q, p), p augmented."""
    machine = require_direct(tree)
    rows = machine.loop_rows()
    drive = tree.outward(outward_velocities, root=Motion.zero())  # (23): Omega_t, free speeds read as zero
    eliminated = eliminate_columns(machine, rows, tree.outward(_missing_momenta, drive, root=()))
    free = tree.outward(outward_speeds, pivots_of(eliminated), root=Motion.zero())
    rates = loop_rates(machine, rows, drive, free)
    sigma = solve_multipliers(constraint_matrix(eliminated, len(rows)), rates, machine.floors)  # (7)
    u = tree.outward(outward_speeds, pivots_of(eliminated, [-s for s in sigma]), root=Motion.zero())  # (7)
    return [None, *(tuple(zip(own, rate, strict=True)) for own, rate in
                    zip(u[1:], momentum_rates(at_speeds(machine, u), rows, sigma)[1:], strict=True))]


def _missing_momenta(link: Link, nothing: tuple[()], drive: Motion) -> tuple[tuple[()], Load]:
    return (), Load(-(link.inertia @ drive), tuple(link.p))  # (34)


def outward_speeds(link: Link, motion: Motion, pivots: tuple[Pivot, ...]) -> tuple[Motion, tuple[Number, ...]]:
    """(45); the motion is what free speeds alone make."""
    for t in link.transforms:
        motion = t.velocity(motion)
    known = [u if prescribed else 0.0 for u, prescribed in zip(link.u, link.mask, strict=True)]
    motion, u = solve(motion, link.columns, link.mask, pivots, known)
    return motion, tuple(u)


def loop_rates(machine: LoopedDirect, rows: Sequence[LoopRow], drive: Field, u: Field) -> list[Number]:
    """Phi_q u + Phi_t: rates of the constraints; prescribed speeds are in `drive`, and in u for couplers."""
    free = machine.outward(outward_shares, u, root=Motion.zero())
    motion = [None, *(a + b for a, b in zip(drive[1:], free[1:], strict=True))]
    out = [value + row.partial for value, row in zip(row_values(rows, motion, u), rows, strict=True)]
    first = sum(c.rows for c in machine.tree.closures)
    coupled = [r for k, r in enumerate(machine.tree.relations) if first + k in machine.tree.plan.kept]
    for at, relation in enumerate(coupled, len(rows) - len(coupled)):  # couplers come last, whole with their Phi_t
        total = machine.coupler(relation).partial
        for link, i, part in machine.bind(relation).terms:
            total = total + u[link][i] * share(part, machine.views[link].q[i]).slope
        out[at] = total
    return out


def at_speeds(machine: LoopedDirect, u: Field) -> LoopedDirect:
    """The same machine, its speeds no longer unknown: what depends on them can be evaluated."""
    def make(k: int) -> Link:
        link: Link = machine.views[k]
        return link.with_speeds(u[k])

    other = LoopedDirect(machine.parent, make, machine.world, machine.slots, machine.widths, machine.size)
    other.attach(machine.tree, machine.bind, machine.again, machine.link)
    return other


def momentum_rates(machine: LoopedDirect, rows: Sequence[LoopRow], sigma: Sequence[Number]) -> Field:
    """(8) by (35): dp/dt of the augmented momenta at known speeds."""
    motion = machine.outward(outward_motion, root=(Motion.zero(), machine.world.gravity))
    zero = (Force.zero(), Force.zero())
    return machine.inward(inward_momentum_rates, motion, outward_axes(machine), row_loads(machine, rows, sigma),
                          row_pushes(machine, sigma), zero=zero)[0]


def outward_motion(link: Link, parent: tuple[Motion, Vector]) -> tuple[tuple[Motion, Vector], tuple[Motion, Vector]]:
    """Velocity (23), and gravity in link axes."""
    velocity, gravity = parent
    for t in link.transforms:
        velocity, gravity = t.velocity(velocity), t.rotation.inverse(gravity)
    own = velocity + link.rate, gravity
    return own, own


def inward_momentum_rates(link: Link, upper: tuple[Force, Force], motion: tuple[Motion, Vector], axes: General | None,
                          load: Load, push: Load) -> tuple[tuple[Force, Force], tuple[Number, ...]]:
    velocity, gravity = motion
    momentum = upper[0] + link.inertia @ velocity + load.wrench  # (26), with (6): P* plus covectors times sigma
    weight = Force(link.inertia.first.cross(gravity), gravity * link.inertia.mass)
    force = upper[1] + weight + push.wrench  # (27), and dPhi_q/dt^T sigma
    if axes is not None:
        force = force + link.external(axes)
    turning = velocity.cross_force(momentum)
    pdot = tuple(tau + change + column.dot(force - turning) + rate.dot(momentum)  # (35), (8)
                 for tau, change, column, rate in zip(link.tau, push.joint, link.columns, link.column_rates(link.u),
                                                      strict=True))
    for t in reversed(link.transforms):
        momentum, force = t.force(momentum), t.force(force)
    return (momentum, force), pdot


# -- rates of the rows ----------------------------------------------------------------------------------------------
def row_pushes(machine: LoopedDirect, sigma: Sequence[Number]) -> Field:
    """How the rows times sigma change, sigma held: covectors in space, in link axes, and the slopes of couplers."""
    total = [Force.zero() for _ in machine.parent]
    slopes: list[list[Number]] = [[0.0] * width for width in machine.widths]
    kept, at, multiplier = set(machine.tree.plan.kept), 0, iter(sigma)
    for c in machine.tree.closures:
        if not kept.isdisjoint(range(at, at + c.rows)):
            i, j = machine.sides(c)
            rows = c.kind.closure_rows(_on_jets(i), _on_jets(j), _timed_jets(machine.constants_of(c)))
            for row in (r for k, r in enumerate(rows, at) if k in kept):
                factor = next(multiplier)
                for link, covector in ((c.first, row.first), (c.second, row.second)):
                    total[link] = total[link] + _rate_in_space(machine.moving[link], covector) * factor
        at += c.rows
    for relation in (r for k, r in enumerate(machine.tree.relations, at) if k in kept):
        factor = next(multiplier)
        for link, k, part in machine.bind(relation).terms:
            view = machine.views[link]
            if not view.mask[k]:
                slopes[link][k] = slopes[link][k] + share(part, view.q[k]).curvature * view.u[k] * factor
    return [Load(w, tuple(s)) for w, s in zip(total, slopes, strict=True)]


def _on_jets(side: Side) -> Side:
    """One side of a closure with its rates; those of omega and beyond are not needed for covectors."""
    arm, x, y, z = (_jets(v, side.omega.cross(v)) for v in (side.arm, side.x, side.y, side.z))
    return Side(_jets(side.point, side.rate), arm, x, y, z, Vector.zero(), Vector.zero())


def _timed_jets(constants: Sequence[Number]) -> tuple[Number, ...]:
    """A closure's own numbers with their rates, where they follow laws of time."""
    return tuple(Timed(Jet(*x), Jet(x.rate, x.acceleration, 0.0), x.acceleration) if isinstance(x, Timed) else x
                 for x in constants)


def _jets(value: Vector, rate: Vector) -> Vector:
    return Vector(*(Jet(a, b, 0.0) for a, b in zip(value, rate, strict=True)))


def _rate_in_space(moving: Moving, covector: Force) -> Force:
    """d/dt of a wrench as a line-bound vector: its moment is about the link's origin, which moves."""
    force = Vector(*(as_jet(x).value for x in covector.force))
    moment, change = (Vector(*(as_jet(x).rate for x in part)) for part in covector)
    axes = moving.axes
    return Force(axes.inverse(moment + moving.velocity.cross(force)), axes.inverse(change))
