"""Kane's equations in generalized speeds, triangularised as they are formed.

K. S. Anderson and J. H. Critchley, "Improved 'Order-N' Performance Algorithm for the Simulation of Constrained
Multi-Rigid-Body Dynamic Systems", Multibody System Dynamics 9, 2003, section 2. Equation numbers are the paper's.

| paper | here |
|---|---|
| Pr[k], Dist[k] | parent and children of a link |
| S^k (10) | ``place.transforms``, between mass centres |
| P_k^k, u_k (4) | ``place.columns``, ``link.u`` |
| omega^k (2) | ``omega`` |
| A_t^k (7) | ``remainder``: the part of the acceleration known from the state |
| I^k, F^k (11), (12) | ``place.inertia``, ``force`` (with the opposite sign) |
| Ihat^k, Fhat^k, M_k (14), (15), (19) | ``mass``, ``force`` as the sweep proceeds, inside `eliminate` |
| eta_k, etabar^k (22)-(27) | ``udot``, ``explicit``: the part of the acceleration linear in udot |
| E_i, That_i^k E_i (16), (17), (20) | ``UnitLoad.load`` at the mass centre, ``loads`` as they pass inward |
| M_k^-1, P_k^T That_i^k E_i (25), (29) | ``LoadShare.inverse``, ``LoadShare.rests`` |
| zeta_k, zetabar^k (23), (25), (28), (29) | ``UnitResponse.zeta``, ``UnitResponse.zetabar``, one for each constraint |
| Phi,q, psi (31) | ``UnitLoad`` (the transpose of the loads), `gamma_with_gravity` less ``UnitLoad.bias`` |
| lambda (13), (32) | ``multipliers`` |

Declared deviations
- `force` is the paper's -F: what must be applied, not what is applied; hinge torques enter as the given row sums.
- Gravity enters as an upward acceleration of the ground.
- M_k is factored column by column (see `pivot`); prescribed speeds are part of the remainder terms, as in (5).
- The paper defines the remainder A_t by (7) and refers to others for its recursion: here it is the time derivative of
  (8) at du/dt = 0, marked d/dt (8): the parent's remainder carried by S^k, the centripetal acceleration of the arm,
  the change of the columns and the Coriolis terms.
- Only the angular velocity is propagated: (12) needs no more of (8).
- Constraint loads (17), (20), (23), (28), (29) belong to closed loops and are not used in trees.
- Phi,q is not formed: its product with zeta or eta is the constraints' covectors times zetabar or etabar, and E_i is
  its transpose, body by body. Of (32), which is symmetric, the lower half is computed.
- A load on a joint (a coupler's) is added to P_k^T That_i^k E_i in (25) and (29) and subtracted in (17).

Cost: O(n) for trees, see ``python benchmarks/operations.py``; O(n + n m + m^2 + m^3) with m independent constraints of
loops, where only links between the loops and the ground count in n m.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.multipliers import (
    LoadShare,
    Triangle,
    UnitLoad,
    eliminate_loaded,
    gamma_with_gravity,
    idle,
    triangle,
    unit_loads,
)
from bellcrank.formulations.common.pivot import Pivot, eliminate, solve
from bellcrank.formulations.common.points import LinkAtPoint, body_centroid
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["BIBTEX", "constrained_dynamics", "forward_dynamics", "inverse_dynamics"]

BIBTEX = """@article{anderson2003improved,
  author  = {Anderson, K. S. and Critchley, J. H.},
  title   = {Improved `Order-N' Performance Algorithm for the Simulation of Constrained Multi-Rigid-Body Dynamic
             Systems},
  journal = {Multibody System Dynamics},
  volume  = {9},
  pages   = {185--212},
  year    = {2003}
}"""


class Known(NamedTuple):
    """What is known of a body from the state alone."""

    omega: Vector
    remainder: Motion


def forward_dynamics(tree: Sweeps) -> Field:
    """Derivatives of the generalized speeds."""
    axes = outward_axes(tree)
    place = body_centroid(tree)
    known = tree.outward(outward_remainders, place, root=_base(tree))
    pivots, _ = tree.inward(inward_triangularization, place, known, axes,
                            zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_substitution, place, pivots, root=Motion.zero())


def constrained_dynamics(tree: Sweeps) -> Field:
    """Derivatives of the generalized speeds of a machine with loops."""
    whole = require_direct(tree)
    rows = whole.loop_rows()
    m = len(rows)
    axes = outward_axes(tree)
    place = body_centroid(tree)
    known = tree.outward(outward_remainders, place, root=_base(tree))
    units = tree.outward(outward_units, unit_loads(whole, rows), place, known, root=())
    loaded, _ = tree.inward(inward_loaded, place, known, axes, units,
                            zero=(ArticulatedInertia.zero(), Force.zero(), (Force.zero(),) * m))
    responses = tree.outward(outward_responses, place, loaded, root=(Motion.zero(), (Motion.zero(),) * m))
    _, (matrix, unloaded) = tree.inward(inward_constraints, known, units, responses, zero=(triangle(m), (0.0,) * m))
    right = [gamma_with_gravity(whole, row) - done for row, done in zip(rows, unloaded, strict=True)]  # (32)
    multipliers = solve_multipliers(matrix, right, whole.floors)  # (32)
    return tree.outward(outward_superposed, responses, root=tuple(multipliers))


def inverse_dynamics(tree: Sweeps) -> Field:
    """Generalized active forces for given derivatives of the speeds."""
    axes = outward_axes(tree)
    place = body_centroid(tree)
    known = tree.outward(outward_accelerations, place, root=_base(tree))
    return tree.inward(inward_forces, place, known, axes, zero=Force.zero())[0]


def _base(tree: Sweeps) -> Known:
    return Known(Vector.zero(), Motion(Vector.zero(), -tree.world.gravity))


def outward_remainders(link: Link, parent: Known, place: LinkAtPoint) -> tuple[Known, Known]:
    return _propagated(parent, place, place.drift)


def outward_accelerations(link: Link, parent: Known, place: LinkAtPoint) -> tuple[Known, Known]:
    drift = place.drift
    for column, udot, prescribed in zip(place.columns, link.udot, link.mask, strict=True):
        if not prescribed:  # what is prescribed is in the drift already
            drift = drift + column * udot  # (9): P_k udot_k
    return _propagated(parent, place, drift)


def _propagated(parent: Known, place: LinkAtPoint, drift: Motion) -> tuple[Known, Known]:
    omega, remainder = parent
    for t in place.transforms:
        moved = t.acceleration(remainder)  # d/dt (8): (S^k)^T A_t
        remainder = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega = t.rotation.inverse(omega)
    rate = place.rate
    remainder = remainder + drift + Motion(omega.cross(rate.angular), omega.cross(rate.linear) * 2.0)  # d/dt (8)
    own = Known(omega + rate.angular, remainder)  # (2)
    return own, own


def _needed(link: Link, place: LinkAtPoint, known: Known, axes: General | None) -> Force:
    """-F^k, (12)."""
    omega, (alpha, a) = known
    force = Force(place.central @ alpha + omega.cross(place.central @ omega), a * place.inertia.mass)
    return force if axes is None else force - place.own.force(link.external(axes))


def inward_triangularization(link: Link, upper: tuple[ArticulatedInertia, Force], place: LinkAtPoint, known: Known,
                             axes: General | None) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass = upper[0] + place.inertia.articulated()  # (14)
    force = upper[1] + _needed(link, place, known, axes)  # (15)
    pivots = []
    for column, tau, armature, prescribed in zip(place.columns, link.tau, link.armature, link.mask, strict=True):
        if not prescribed:
            mass, force, pivot = eliminate(mass, force, column, tau, armature)  # (18), (19)
            pivots.append(pivot)
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (14), (15): S^k
    return (mass, force), tuple(pivots)


def outward_substitution(link: Link, explicit: Motion, place: LinkAtPoint, pivots: tuple[Pivot, ...]
                         ) -> tuple[Motion, tuple[Number, ...]]:
    for t in place.transforms:
        explicit = t.acceleration(explicit)  # (26)
    explicit, udot = solve(explicit, place.columns, link.mask, pivots, link.prescribed_udot)  # (24), (26), (27)
    return explicit, tuple(udot)


def inward_forces(link: Link, upper: Force, place: LinkAtPoint, known: Known, axes: General | None
                  ) -> tuple[Force, tuple[Number, ...]]:
    total = upper + _needed(link, place, known, axes)  # (12), (15) without triangularisation
    lower = total
    for t in reversed(place.transforms):
        lower = t.force(lower)
    return lower, link.with_rotors(column.dot(total) for column in place.columns)


# -- loops: unit loads inward, responses to them outward, multipliers, superposition -----------------------------------
class UnitResponse(NamedTuple):
    """Accelerations without multipliers and per unit of each: of the joint, and of the body."""

    eta: tuple[Number, ...]
    etabar: Motion
    zeta: tuple[tuple[Number, ...], ...]
    zetabar: tuple[Motion, ...]


Loaded = tuple[tuple[Pivot, ...], tuple[LoadShare, ...]]


def outward_units(link: Link, nothing: tuple[()], units: tuple[UnitLoad, ...], place: LinkAtPoint, known: Known
                  ) -> tuple[tuple[()], tuple[UnitLoad, ...]]:
    swing = known.omega.centripetal(place.own.translation)  # a of the link's origin less that of the mass centre
    return (), tuple(unit if idle(unit.load) else unit.at(place.own.force(unit.load), swing) for unit in units)  # (20)


def inward_loaded(link: Link, upper: tuple[ArticulatedInertia, Force, tuple[Force, ...]], place: LinkAtPoint,
                  known: Known, axes: General | None, units: tuple[UnitLoad, ...]
                  ) -> tuple[tuple[ArticulatedInertia, Force, tuple[Force, ...]], Loaded]:
    mass = upper[0] + place.inertia.articulated()  # (14)
    force = upper[1] + _needed(link, place, known, axes)  # (15)
    loads = tuple(load + unit.load for load, unit in zip(upper[2], units, strict=True))  # (16), (17)
    pivots, shares = [], []
    for i, (column, tau, prescribed) in enumerate(zip(place.columns, link.tau, link.mask, strict=True)):
        if not prescribed:
            mass, force, loads, pivot, share = eliminate_loaded(
                mass, force, loads, column, tau, [u.joint[i] for u in units], link.armature[i])  # (18), (19), (17)
            pivots.append(pivot)
            shares.append(share)
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (14), (15): S^k
        loads = tuple(load if idle(load) else t.force(load) for load in loads)  # (16), (17): S^k
    return (mass, force, loads), (tuple(pivots), tuple(shares))


def outward_responses(link: Link, lower: tuple[Motion, tuple[Motion, ...]], place: LinkAtPoint, loaded: Loaded
                      ) -> tuple[tuple[Motion, tuple[Motion, ...]], UnitResponse]:
    pivots, shares = loaded
    explicit, bars = lower
    for t in place.transforms:
        explicit = t.acceleration(explicit)  # (26)
        bars = tuple(bar if idle(bar) else t.acceleration(bar) for bar in bars)  # (28)
    explicit, eta = solve(explicit, place.columns, link.mask, pivots, link.prescribed_udot)  # (24), (26), (27)
    zetas, zetabars = [], []
    for i, bar in enumerate(bars):
        zeta: list[Number] = [0.0] * len(link.mask)
        if not idle((bar, tuple(share.rests[i] for share in shares))):
            unit = tuple(Pivot(pivot.gain, share.inverse * share.rests[i])
                         for pivot, share in zip(pivots, shares, strict=True))
            bar, zeta = solve(bar, place.columns, link.mask, unit, zeta)  # (25), (28), (29)
        zetas.append(tuple(zeta))
        zetabars.append(bar)
    return (explicit, tuple(zetabars)), UnitResponse(tuple(eta), explicit, tuple(zetas), tuple(zetabars))


def inward_constraints(link: Link, upper: tuple[Triangle, tuple[Number, ...]], known: Known,
                       units: tuple[UnitLoad, ...], response: UnitResponse
                       ) -> tuple[tuple[Triangle, tuple[Number, ...]], tuple[()]]:
    eta, etabar, zeta, zetabar = response
    matrix, unloaded = [list(row) for row in upper[0]], list(upper[1])
    for i, unit in enumerate(units):
        if idle(unit):
            continue
        unloaded[i] = unloaded[i] + unit.bias + (known.remainder + etabar).dot(unit.load)  # (32): Phi,q eta - psi
        for factor, value in zip(unit.joint, eta, strict=True):
            unloaded[i] = unloaded[i] + factor * value  # (32)
        for j in range(i + 1):
            matrix[i][j] = matrix[i][j] + zetabar[j].dot(unit.load)  # (32): Phi,q zeta
            for factor, value in zip(unit.joint, zeta[j], strict=True):
                matrix[i][j] = matrix[i][j] + factor * value  # (32)
    return (tuple(tuple(row) for row in matrix), tuple(unloaded)), ()


def outward_superposed(link: Link, multipliers: tuple[Number, ...], response: UnitResponse
                       ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    udot = list(response.eta)
    for multiplier, zeta in zip(multipliers, response.zeta, strict=True):
        for k, value in enumerate(zeta):
            if not idle(value):
                udot[k] = udot[k] + value * multiplier  # (13)
    return multipliers, tuple(udot)
