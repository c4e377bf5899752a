"""Hamilton's equations in canonical momenta, two sweeps.

J. Naudet, D. Lefeber and Z. Terze, "General Formulation of an Efficient Recursive Algorithm Based on Canonical
Momenta for Forward Dynamics of Open-Loop Multibody Systems", Multibody Dynamics 2003. Equation numbers are the
paper's. The state is (q, p); p is conjugate to the joint speeds u.

| paper | here |
|---|---|
| E_jK (13) | ``link.columns`` |
| Omega_K, Omega_t (13), (23) | ``velocity``; prescribed columns times their rates |
| T^V, T^F (22), (23) | ``link.transforms`` |
| M_K, M*_K, M'_K (11), (43), (47) | ``link.inertia``; ``mass`` before and after elimination |
| D_K, D'_K (44), (48) | ``remainder`` before and after elimination |
| M_j^-1, d_K (38), (46) | inside `eliminate` |
| P*_K (26), (42) | ``momentum`` |
| T*_K (27) | ``weight`` and ``applied`` |
| T_rK (28) | `joint_wrenches` |

Declared deviations
- Spatial vectors are [angular; linear].
- P*_K is evaluated by (39), from the velocity before the joint's own rate is added: M' has a zero row and column
  where (42)'s M* has none.
- The weight in T* is carried as the first moment of everything outboard, whose mass is a constant, instead of as
  a force; applied wrenches are accumulated as in (27).
- Joint forces tau enter (35) as E^T T_r: the paper lets T_r have no component along the joint.
- M_j is factored column by column (see `pivot`); prescribed speeds make Omega_t, and p is computed for them.
- Rotors (armatures) have momenta of their own, a u, in p but not in P*: they are constant in (35).
- `forward_dynamics` and `joint_wrenches` are derived (the paper leaves both for later): M udot = pdot - dM/dt u is
  solved by the same articulated recursion that solves M u = p.

Cost: O(n); for chains of pin joints see the command ``python benchmarks/operations.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.formulations.common.flexible_links import momenta_with_modes
from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.pivot import Pivot, eliminate, solve
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["Rates", "forward_dynamics", "inverse_dynamics", "joint_wrenches", "momenta", "needed_force",
           "outward_rates", "outward_solution", "outward_velocities", "resting_ground", "speeds_and_rates"]

class Reduced(NamedTuple):
    """What the inward sweep leaves at a body: M', D', the pivots, and what gravity pulls at."""

    mass: ArticulatedInertia
    remainder: Force
    pivots: tuple[Pivot, ...]
    outboard_mass: Number
    first_moment: Vector
    applied: Force


def speeds_and_rates(tree: Sweeps) -> Field:
    """For every joint speed the pair (u, dp/dt)."""
    axes = outward_axes(tree)
    zero = (ArticulatedInertia.zero(), Force.zero(), 0.0, Vector.zero(), Force.zero())
    reduced, _ = tree.inward(inward_momenta, axes, zero=zero)
    return tree.outward(outward_speeds, reduced, root=(Motion.zero(), tree.world.gravity))


def inward_momenta(link: Link, upper: tuple[ArticulatedInertia, Force, Number, Vector, Force], axes: General | None
                   ) -> tuple[tuple[ArticulatedInertia, Force, Number, Vector, Force], Reduced]:
    mass = upper[0] + link.inertia.articulated()  # (43)
    remainder = upper[1]  # (44)
    outboard, moment = upper[2] + link.inertia.mass, upper[3] + link.inertia.first
    applied = upper[4] if axes is None else upper[4] + link.external(axes)  # (27)
    pivots = []
    for column, p, armature, prescribed in zip(link.columns, link.p, link.armature, link.mask, strict=True):
        if not prescribed:
            mass, remainder, pivot = eliminate(mass, remainder, column, p, armature)  # (46)-(48)
            pivots.append(pivot)
    kept = Reduced(mass, remainder, tuple(pivots), outboard, moment, applied)
    if any(link.mask):
        remainder = remainder + mass @ link.rate  # (44): M' Omega_t; only prescribed speeds are known here
    for t in reversed(link.transforms):
        mass, remainder, applied = t.articulated(mass), t.force(remainder), t.force(applied)  # (43), (44), (27)
        moment = t.rotation.apply(moment) + t.translation * outboard
    return (mass, remainder, outboard, moment, applied), kept


def outward_speeds(link: Link, parent: tuple[Motion, Vector], reduced: Reduced
                   ) -> tuple[tuple[Motion, Vector], tuple[Number, ...]]:
    velocity, gravity = parent
    for t in link.transforms:
        velocity, gravity = t.velocity(velocity), t.rotation.inverse(gravity)  # (23)
    if any(link.mask):
        velocity = velocity + link.rate  # (23): Omega_t
    momentum = reduced.mass @ velocity + reduced.remainder  # (39)
    velocity, u = solve(velocity, link.columns, link.mask, reduced.pivots, list(link.u))  # (45)
    weight = Force(reduced.first_moment.cross(gravity), gravity * reduced.outboard_mass)
    force = weight + reduced.applied - velocity.cross_force(momentum)  # (35), (16)
    pdot = [tau + column.dot(force) + rate.dot(momentum)  # (35)
            for tau, column, rate in zip(link.tau_at(u), link.columns, link.column_rates(u), strict=True)]
    return (velocity, gravity), tuple(zip(u, pdot, strict=True))


def momenta(tree: Sweeps) -> Field:
    """Canonical momenta p of speeds u."""
    if tree.world.flexible:
        return momenta_with_modes(tree, inward_projections)
    velocity = tree.outward(outward_velocities, root=Motion.zero())
    return tree.inward(inward_projections, velocity, zero=Force.zero())[0]


def outward_velocities(link: Link, velocity: Motion) -> tuple[Motion, Motion]:
    for t in link.transforms:
        velocity = t.velocity(velocity)
    velocity = velocity + link.rate  # (23)
    return velocity, velocity


def inward_projections(link: Link, upper: Force, velocity: Motion) -> tuple[Force, tuple[Number, ...]]:
    momentum = upper + link.inertia @ velocity  # (11), (26)
    lower = momentum
    for t in reversed(link.transforms):
        lower = t.force(lower)
    return lower, tuple(column.dot(momentum) + a * u
                        for column, a, u in zip(link.columns, link.armature, link.u, strict=True))  # (34)


# -- derived: accelerations and reactions ---------------------------------------------------------------------------
def forward_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations: (36)-(48) hold for rates as they do for velocities, with tau in place of p."""
    axes = outward_axes(tree)
    rates = tree.outward(outward_rates, root=resting_ground(tree))
    pivots, _ = tree.inward(inward_rates, rates, axes, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_solution, pivots, root=Motion.zero())


def inverse_dynamics(tree: Sweeps) -> Field:
    """Joint forces: the components of the reactions along the joint."""
    return tree.inward(inward_joint_forces, *_all_rates(tree), zero=Force.zero())[0]


def joint_wrenches(tree: Sweeps) -> Field:
    """Reaction T_r of (28) at every joint, for given accelerations."""
    return tree.inward(inward_reactions, *_all_rates(tree), zero=Force.zero())[0]


def _all_rates(tree: Sweeps) -> tuple[Field, Field]:
    axes = outward_axes(tree)
    return tree.outward(outward_given_rates, root=resting_ground(tree)), axes


def resting_ground(tree: Sweeps) -> tuple[Motion, Motion]:
    """Velocity of the ground and its rate; accelerating it upwards replaces the weights in T."""
    return Motion.zero(), Motion(Vector.zero(), -tree.world.gravity)


class Rates(NamedTuple):
    """Velocity of a body and the rate of its components in body axes."""

    velocity: Motion
    rate: Motion


def outward_rates(link: Link, parent: tuple[Motion, Motion]) -> tuple[tuple[Motion, Motion], Rates]:
    """Rates of (23) with free accelerations zero."""
    return _rates(link, parent, link.prescribed_udot)


def outward_given_rates(link: Link, parent: tuple[Motion, Motion]) -> tuple[tuple[Motion, Motion], Rates]:
    """Rates of (23) with all accelerations given."""
    return _rates(link, parent, link.udot)


def _rates(link: Link, parent: tuple[Motion, Motion], udot: list[Number]) -> tuple[tuple[Motion, Motion], Rates]:
    velocity, rate = parent
    for t in link.transforms:
        velocity, rate = t.velocity(velocity), t.velocity(rate)
    rate = rate - link.rate.cross(velocity)  # d/dt of T^V, (14)
    for column, change, u, acceleration in zip(link.columns, link.column_rates(link.u), link.u, udot, strict=True):
        rate = rate + change * u + column * acceleration
    velocity = velocity + link.rate
    return (velocity, rate), Rates(velocity, rate)


def needed_force(link: Link, rates: Rates, axes: General | None) -> Force:
    """dP/dt + Omega x P - T of one body, (17)."""
    needed = link.inertia @ rates.rate + rates.velocity.cross_force(link.inertia @ rates.velocity)
    return needed if axes is None else needed - link.external(axes)


def inward_rates(link: Link, upper: tuple[ArticulatedInertia, Force], rates: Rates, axes: General | None
                 ) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass, remainder = upper[0] + link.inertia.articulated(), upper[1] + needed_force(link, rates, axes)  # (43), (17)
    pivots = []
    for column, tau, armature, prescribed in zip(link.columns, link.tau, link.armature, link.mask, strict=True):
        if not prescribed:
            mass, remainder, pivot = eliminate(mass, remainder, column, tau, armature)  # (46)-(48)
            pivots.append(pivot)
    for t in reversed(link.transforms):
        mass, remainder = t.articulated(mass), t.force(remainder)  # (43), (44)
    return (mass, remainder), tuple(pivots)


def outward_solution(link: Link, rate: Motion, pivots: tuple[Pivot, ...]) -> tuple[Motion, tuple[Number, ...]]:
    for t in link.transforms:
        rate = t.velocity(rate)
    rate, udot = solve(rate, link.columns, link.mask, pivots, link.prescribed_udot)  # (45)
    return rate, tuple(udot)


def inward_reactions(link: Link, upper: Force, rates: Rates, axes: General | None) -> tuple[Force, Force]:
    reaction = upper + needed_force(link, rates, axes)  # (28), summed as in (26), (27)
    lower = reaction
    for t in reversed(link.transforms):
        lower = t.force(lower)
    return lower, reaction


def inward_joint_forces(link: Link, upper: Force, rates: Rates, axes: General | None
                        ) -> tuple[Force, tuple[Number, ...]]:
    lower, reaction = inward_reactions(link, upper, rates, axes)
    return lower, link.with_rotors(column.dot(reaction) for column in link.columns)
