"""The fully recursive formulation, with the reference point of your choice.

S.-G. Kang and Y.-S. Yoon, "On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis
of Multibody Systems", KSME International Journal 17(3), 2003. Equation numbers are the paper's.

| paper | here |
|---|---|
| A_i C_j R_j, r_ij, B_j1 (9), (13), (25), (33) | ``place.transforms``: rotation and translation factors |
| B_j2 (25), (33) | ``place.columns``, the columns of the joint's motion subspace |
| omega_ij, v_ij (17), (18) | ``place.rate`` |
| D_j (27), (35) | ``velocity.bias`` |
| M_j, Q_j (3), (8), (36) | ``mass`` (articulated as the sweep proceeds), ``force`` (with the opposite sign) |
| M_22^-1 M_21, M_22^-1 Q_2 (28) | ``Pivot.gain``, ``Pivot.free`` |
| Y_j, dY_j/dt (23), (26), (32), (34) | ``acceleration``: angular acceleration, acceleration of the point |
| Phi_Zj (37), (38), (44), (46), accumulated (40) | ``UnitLoad.load`` at the point, ``jacobian`` as the sweep proceeds |
| Phi_Zj,2, M_22^-1 (39), (41) | ``LoadShare.rests``, ``LoadShare.inverse`` |
| Phi_lambda, gammabar (41) | ``Loops.matrix``, ``right`` with `gamma_with_gravity` |
| lambda (42) | ``multipliers`` |

The steps below are written once; `points` supplies the three points (``centroid``: method 1; ``origin``: method 2;
``joint``) in the paper's global axes, and the joint point in body axes (``body``), which is the default.

Declared deviations
- Spatial vectors are [angular; linear]; the paper orders them the other way.
- The default resolves all vectors in body axes, so that B_j1 holds a rotation.
- Gravity enters as an upward acceleration of the ground instead of as a force on every body.
- `force` is the paper's -Q: what must be applied, not what is applied.
- M_22 is not inverted: its columns are eliminated one after another (see `pivot`); prescribed speeds are not
  eliminated but enter D_j with their known accelerations.
- The paper derives the centroid and the global origin; the joint point, which it only reports on, follows
  from (4)-(8) with s^P = -rho.
- (41) is gammabar = gamma - sum(...) with the accumulated Phi_Zj, as in the errata. With gravity as an acceleration of
  the ground, the ground's own Phi_Z times that acceleration is part of the sum.
- Tables 3 and 4 are not coded a second time: constraints come at the link's origin and are shifted by (45).
- In body axes (39)-(41) are reduced before they are shifted, like (28): D_j meets the reduced Phi_Zj.
- Couplers between joints, which the paper does not have, are added to Phi_Zj,2.
- Flexible bodies, which the paper does not have, add two kinds of links: see `flexible_links`, `flexible_loops`.

Cost: O(n); about 410 additions and multiplications per pin joint in body axes and chosen frames. The command
``python benchmarks/operations.py`` prints exact counts for every point. With m independent constraints of loops
O(n + n m^2 + m^3), where only links between the loops and the ground count in n m^2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from bellcrank.formulations.common.flexible_links import accelerations_with_modes
from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.multipliers import (
    LoadShare,
    Triangle,
    UnitLoad,
    added_products,
    eliminate_loaded,
    gamma_with_gravity,
    idle,
    unit_loads,
)
from bellcrank.formulations.common.pivot import Pivot, eliminate, solve
from bellcrank.formulations.common.points import POINTS, LinkAtPoint, Velocity
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.formulations.recursive.flexible_loops import constrained_with_modes
from bellcrank.formulations.recursive.loop_messages import Kept, Loops
from bellcrank.formulations.recursive.newton_euler import inverse_dynamics, joint_wrenches
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import Moving, require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["BIBTEX", "FLEXIBLE", "VARIANTS", "constrained_dynamics", "forward_dynamics", "inverse_dynamics",
           "joint_wrenches"]

#: functions that cover bodies that deform
FLEXIBLE = ("constrained_dynamics", "forward_dynamics", "inverse_dynamics", "joint_wrenches")

BIBTEX = """@article{kang2003recursive,
  author  = {Kang, Sheen-Gil and Yoon, Yong-San},
  title   = {On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis of Multibody Systems},
  journal = {KSME International Journal},
  volume  = {17},
  number  = {3},
  year    = {2003}
}"""


def forward_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations for given joint forces, at the joint point in body axes."""
    if tree.world.flexible:
        return accelerations_with_modes(tree, inward_reduced, outward_reduced)
    chosen = POINTS["body"]
    axes = outward_axes(tree)
    place = chosen.places(tree)
    velocity = tree.outward(chosen.outward_velocities, place, root=chosen.still)
    pivots, _ = tree.inward(inward_reduced, place, velocity, axes, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_reduced, place, velocity, pivots, root=Motion(Vector.zero(), -tree.world.gravity))


def forward_dynamics_at(tree: Sweeps, point: str) -> Field:
    """Joint accelerations for given joint forces, at a point of choice in global axes, as in the paper."""
    chosen = POINTS[point]
    axes = outward_axes(tree)
    place = chosen.places(tree)
    velocity = tree.outward(chosen.outward_velocities, place, root=chosen.still)
    rows, _ = tree.inward(inward_inertias, place, velocity, axes, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_accelerations, place, velocity, rows,
                        root=Motion(Vector.zero(), -tree.world.gravity))


def constrained_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations of a machine with loops, at the joint point in body axes."""
    if tree.world.flexible:
        return constrained_with_modes(tree, inward_reduced_loops, outward_reduced, outward_multipliers)
    return _constrained(tree, "body", inward_reduced_loops, outward_reduced)


def constrained_dynamics_at(tree: Sweeps, point: str) -> Field:
    """Joint accelerations of a machine with loops, at a point of choice in global axes, as in the paper."""
    return _constrained(tree, point, inward_loops, outward_accelerations)


def _constrained(tree: Sweeps, point: str, inward: Callable[..., tuple[Loops, Kept]],
                 outward: Callable[..., tuple[Motion, tuple[Number, ...]]]) -> Field:
    whole, chosen = require_direct(tree), POINTS[point]
    rows = whole.loop_rows()  # (37), tables 1 and 2
    axes = outward_axes(tree)
    place = chosen.places(tree)
    velocity = tree.outward(chosen.outward_velocities, place, root=chosen.still)
    shift: tuple[Callable[..., Any], Any] = (outward_units, ())
    if point == "origin":
        shift = outward_units_at_origin, chosen.still
    units = tree.outward(shift[0], unit_loads(whole, rows), place, whole.moving, root=shift[1])  # (38), (46)
    kept, total = tree.inward(inward, place, velocity, axes, units, zero=Loops.zero(len(rows)))
    ground = Motion(Vector.zero(), -tree.world.gravity)
    right = [gamma_with_gravity(whole, row) - gamma_shift - ground.dot(phi)
             for row, gamma_shift, phi in zip(rows, total.gamma_shift, total.jacobian, strict=True)]  # (41): gammabar
    multipliers = solve_multipliers(total.matrix, right, whole.floors)  # (42)
    return tree.outward(outward, place, velocity, tree.outward(outward_multipliers, kept, root=tuple(multipliers)),
                        root=ground)


#: the same steps, three points
VARIANTS = {point: {"forward_dynamics": partial(forward_dynamics_at, point=point),
                    "constrained_dynamics": partial(constrained_dynamics_at, point=point)}
            for point in ("centroid", "joint", "origin")}


class EliminatedRow(NamedTuple):
    """One row of (30): udot_k = free - gain . dY_i - couplings . udot_l, for the columns l that follow k."""

    gain: Force  #: M_21 / M_22, in the lower body's frame
    free: Number  #: Q_2 / M_22
    couplings: tuple[Number, ...]
    inverse: Number  #: 1 / M_22

    def with_free(self, free: Number) -> EliminatedRow:
        return self._replace(free=free)


def inward_inertias(link: Link, upper: tuple[ArticulatedInertia, Force], place: LinkAtPoint, velocity: Velocity,
                    axes: General | None) -> tuple[tuple[ArticulatedInertia, Force], tuple[EliminatedRow, ...]]:
    mass = upper[0] + place.inertia.articulated()  # (3), (36), (29)
    force = upper[1] + velocity.force  # (3), (36), (29)
    if axes is not None:
        force = force - place.own.force(link.external(axes))
    force = force + mass @ velocity.bias  # (28): -(Q - M D)
    solved = _solve_rows(mass, force, place, link)
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (28): M_11, Q_1
    rows = []
    for m21, inverse, rest, couplings in solved:
        for t in reversed(place.transforms):
            m21 = t.force(m21)  # (28): M_21 = B2^T M B1
        gain = m21 * inverse
        mass, force = mass.minus(m21, gain), force + gain * rest  # (29)
        rows.append(EliminatedRow(gain, inverse * rest, couplings, inverse))
    return (mass, force), tuple(rows)


def _solve_rows(mass: ArticulatedInertia, force: Force, place: LinkAtPoint, link: Link
                ) -> list[tuple[Force, Number, Number, tuple[Number, ...]]]:
    """(28) column by column: M_21 before the shift, 1 / M_22, Q_2, and how later columns enter the row."""
    free = [(column, tau, armature) for column, tau, armature, prescribed in
            zip(place.columns, link.tau, link.armature, link.mask, strict=True) if not prescribed]
    done: list[tuple[Force, Number, Number, tuple[Number, ...]]] = []
    for k, (column, tau, armature) in enumerate(free):
        m21, rest = mass @ column, tau - column.dot(force)
        for before, inverse, earlier, _ in done:
            share = column.dot(before) * inverse
            m21, rest = m21 - before * share, rest - share * earlier
        inverse = 1.0 / (column.dot(m21) + armature)
        done.append((m21, inverse, rest, tuple(later.dot(m21) * inverse for later, _, _ in free[k + 1:])))
    return done


def outward_accelerations(link: Link, lower: Motion, place: LinkAtPoint, velocity: Velocity,
                          rows: tuple[EliminatedRow, ...]) -> tuple[Motion, tuple[Number, ...]]:
    udot = link.prescribed_udot
    free = [i for i, prescribed in enumerate(link.mask) if not prescribed]
    for k in reversed(range(len(free))):
        value = rows[k].free - lower.dot(rows[k].gain)  # (30)
        for coupling, later in zip(rows[k].couplings, free[k + 1:], strict=True):
            value = value - coupling * udot[later]
        udot[free[k]] = value
    acceleration = lower
    for t in place.transforms:
        acceleration = t.acceleration(acceleration)
    acceleration = acceleration + velocity.bias  # (30); D holds what prescribed accelerations contribute
    for i in free:
        acceleration = acceleration + place.columns[i] * udot[i]  # (30)
    return acceleration, tuple(udot)


# -- the same in body axes: reduced before it is shifted, so that rows of zeros need not be turned --------------------
def inward_reduced(link: Link, upper: tuple[ArticulatedInertia, Force], place: LinkAtPoint, velocity: Velocity,
                   axes: General | None) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass = upper[0] + place.inertia.articulated()  # (3), (29)
    force = upper[1] + velocity.force  # (3), (29)
    if axes is not None:
        force = force - place.own.force(link.external(axes))
    pivots = []
    for column, tau, armature, prescribed in zip(place.columns, link.tau, link.armature, link.mask, strict=True):
        if not prescribed:
            mass, force, pivot = eliminate(mass, force, column, tau, armature)  # (28), (29)
            pivots.append(pivot)
    force = force + mass @ velocity.bias  # (28): Q - M D
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (28): B1^T M B1, B1^T Q
    return (mass, force), tuple(pivots)


def outward_reduced(link: Link, acceleration: Motion, place: LinkAtPoint, velocity: Velocity, pivots: tuple[Pivot, ...]
                    ) -> tuple[Motion, tuple[Number, ...]]:
    for t in place.transforms:
        acceleration = t.acceleration(acceleration)  # (26): B1 dY
    acceleration = acceleration + velocity.bias  # (26)
    acceleration, udot = solve(acceleration, place.columns, link.mask, pivots, link.prescribed_udot)  # (30)
    return acceleration, tuple(udot)


# -- loops: their Jacobian inward beside the inertias, multipliers, then outward as before -----------------------------
def outward_units(link: Link, nothing: tuple[()], units: tuple[UnitLoad, ...], place: LinkAtPoint, moving: Moving
                  ) -> tuple[tuple[()], tuple[UnitLoad, ...]]:
    """Constraints at points fixed in their bodies."""
    return (), _shifted(units, place, moving.omega.centripetal(place.own.translation))  # (6): dT/dt Y


def outward_units_at_origin(link: Link, velocity: Motion, units: tuple[UnitLoad, ...], place: LinkAtPoint,
                            moving: Moving) -> tuple[Motion, tuple[UnitLoad, ...]]:
    """Constraints at the instant global origin, which other points of the body pass. The velocity of the link's own
    origin comes from that of the body, not by (21) from joint to joint, unless it is zero anyway."""
    velocity = velocity + place.rate  # (31), (32)
    omega, linear = velocity
    passing = moving.velocity if idle(moving.velocity) else linear + omega.cross(place.own.translation)
    return velocity, _shifted(units, place, omega.cross(passing))  # (6): dT/dt Y


def _shifted(units: tuple[UnitLoad, ...], place: LinkAtPoint, convective: Vector) -> tuple[UnitLoad, ...]:
    return tuple(unit if idle(unit.load) else unit.at(place.own.force(unit.load), convective)  # (45)
                 for unit in units)


def inward_loops(link: Link, upper: Loops, place: LinkAtPoint, velocity: Velocity, axes: General | None,
                 units: tuple[UnitLoad, ...]) -> tuple[Loops, Kept]:
    (mass, force), rows = inward_inertias(link, (upper.mass, upper.force), place, velocity, axes)
    phi = [a + unit.load for a, unit in zip(upper.jacobian, units, strict=True)]  # (38), (46), (40)
    shares = _share_rows(phi, rows, place, link, units)  # (39): Phi B2
    lower = phi
    for t in reversed(place.transforms):
        lower = [p if idle(p) else t.force(p) for p in lower]  # (39): Phi B1
    for row, share in zip(rows, shares, strict=True):
        lower = [p if idle(rest) else p - row.gain * rest for p, rest in zip(lower, share.rests, strict=True)]  # (40)
    matrix, gamma_shift = _summed(upper, rows, shares, units, phi, velocity.bias)
    return Loops(mass, force, tuple(lower), matrix, gamma_shift), (rows, shares)


def _share_rows(phi: list[Force], rows: tuple[EliminatedRow, ...], place: LinkAtPoint, link: Link,
                units: tuple[UnitLoad, ...]) -> tuple[LoadShare, ...]:
    """(39): Phi_2 column by column, each less what earlier columns of the joint take."""
    free = [i for i, prescribed in enumerate(link.mask) if not prescribed]
    done: list[LoadShare] = []
    for k, i in enumerate(free):
        rests = [unit.joint[i] if idle(p) else place.columns[i].dot(p) + unit.joint[i]
                 for p, unit in zip(phi, units, strict=True)]
        for b, before in enumerate(done):
            coupling = rows[b].couplings[k - b - 1]
            rests = [rest if idle(r) else rest - coupling * r for rest, r in zip(rests, before.rests, strict=True)]
        done.append(LoadShare(rows[k].inverse, tuple(rests)))
    return tuple(done)


def _summed(upper: Loops, rows: tuple[Pivot | EliminatedRow, ...], shares: tuple[LoadShare, ...],
            units: tuple[UnitLoad, ...], phi: list[Force], bias: Motion) -> tuple[Triangle, tuple[Number, ...]]:
    """A body's part of Phi_lambda and of gamma - gammabar."""
    matrix = upper.matrix
    gamma_shift = [x + unit.bias + (0.0 if idle(p) else bias.dot(p))
           for x, unit, p in zip(upper.gamma_shift, units, phi, strict=True)]  # (45); (41): Phi D
    for row, share in zip(rows, shares, strict=True):
        matrix = added_products(matrix, share)  # (41): Phi_2 M_22^-1 Phi_2^T
        gamma_shift = [x if idle(rest) else x + rest * row.free
               for x, rest in zip(gamma_shift, share.rests, strict=True)]  # (41): Phi_2 M_22^-1 Q_2
    return matrix, tuple(gamma_shift)


def inward_reduced_loops(link: Link, upper: Loops, place: LinkAtPoint, velocity: Velocity, axes: General | None,
                         units: tuple[UnitLoad, ...]) -> tuple[Loops, Kept]:
    mass = upper.mass + place.inertia.articulated()  # (3), (29)
    force = upper.force + velocity.force  # (3), (29)
    if axes is not None:
        force = force - place.own.force(link.external(axes))
    phi = tuple(a + unit.load for a, unit in zip(upper.jacobian, units, strict=True))  # (38), (40)
    rows, shares = [], []
    for i, (column, tau, prescribed) in enumerate(zip(place.columns, link.tau, link.mask, strict=True)):
        if not prescribed:
            mass, force, phi, pivot, share = eliminate_loaded(
                mass, force, phi, column, tau, [u.joint[i] for u in units], link.armature[i])  # (28), (29), (39), (40)
            rows.append(pivot)
            shares.append(share)
    matrix, gamma_shift = _summed(upper, tuple(rows), tuple(shares), units, list(phi), velocity.bias)
    force = force + mass @ velocity.bias  # (28): Q - M D
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (28): B1^T M B1, B1^T Q
        phi = tuple(p if idle(p) else t.force(p) for p in phi)  # (39): Phi B1
    return Loops(mass, force, phi, matrix, gamma_shift), (tuple(rows), tuple(shares))


def outward_multipliers(link: Link, multipliers: tuple[Number, ...], kept: Kept
                        ) -> tuple[tuple[Number, ...], tuple[Pivot | EliminatedRow, ...]]:
    return multipliers, tuple(row.with_free(row.free + share.under(multipliers))
                              for row, share in zip(*kept, strict=True))  # (43)
