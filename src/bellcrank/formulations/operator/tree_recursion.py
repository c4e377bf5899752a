"""The spatial operator algebra for trees: factorisation and inversion of the mass operator.

G. Rodriguez, A. Jain and K. Kreutz, "Spatial Operator Algebra Framework for Multibody System Dynamics", Jet Propulsion
Laboratory, conference text of 1989, sections 2-3 and appendix A. Equation numbers are those of that text; the journal
version by the same authors (Journal of the Astronautical Sciences 40(1), 1992) was not compared. This module is the
recursion for forward and inverse dynamics.

| paper | here |
|---|---|
| phi(k+1, k) (2.1) | ``link.transforms``: its transpose takes velocities outward |
| H*(k), beta(k) (2.1) | ``link.columns``, ``link.u`` |
| V(k), alpha(k), a(k), b(k) (2.1) | ``velocity``, ``acceleration``, ``coriolis``, inside `inward_bias` |
| T(k), C, That (2.5), (2.12) | ``link.tau``, ``bias``, their difference |
| P, D, G, taubar (3.1), (3.2), (A.1) | ``mass``, ``d``, ``gain``, ``mass.minus(...)`` |
| z, epsilon, nu (A.2) | ``z``, ``rest``, ``Innovation.nu`` |
| alphahat, betadot (A.2) | ``acceleration``, ``udot`` |

Declared deviations
- Links are numbered from the base; the paper numbers from the tip.
- Gravity enters as an upward acceleration of the base.
- Prescribed speeds have no column in H; their accelerations are part of a(k).
- The inertias of rotors (armatures) are added to the diagonal of D.
- (A.2) is used with the corrections eps = That - H z and H* in alphahat.

Cost: O(n); D(k) is solved as a block, O(r_v(k)^3).
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.pivot import absent
from bellcrank.formulations.dense import solve_positive
from bellcrank.formulations.operator.flexible_recursion import accelerations_of_flexible_links
from bellcrank.formulations.recursive import inverse_dynamics as forces
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector, unit_index

__all__ = ["Articulation", "Innovation", "LinkState", "forward_dynamics", "inverse_dynamics", "inward_articulation",
           "joint_responses", "outward_states"]

class LinkState(NamedTuple):
    """Spatial velocity and acceleration of a link."""

    velocity: Motion
    acceleration: Motion


class Articulation(NamedTuple):
    """P(k), D(k) and G(k) of (3.2), for the free columns of H*."""

    p: ArticulatedInertia
    d: tuple[tuple[Number, ...], ...]
    gain: tuple[Force, ...]


class Innovation(NamedTuple):
    """nu(k) and G(k), all that the outward sweep of (A.2) needs."""

    nu: tuple[Number, ...]
    gain: tuple[Force, ...]


def inverse_dynamics(tree: Sweeps) -> Field:
    """T = H f, (2.1)."""
    if tree.world.flexible:
        return forces(tree)  # (2.1) for nodes and modes: section 4
    axes = outward_axes(tree)
    still = LinkState(Motion.zero(), Motion(Vector.zero(), -tree.world.gravity))
    return tree.inward(inward_bias, tree.outward(outward_states, root=still), axes, zero=Force.zero())[0]


def forward_dynamics(tree: Sweeps) -> Field:
    """betadot = [I - H psi K]* D^-1 [I - H psi K] That, (3.7)."""
    bias = inverse_dynamics(tree)  # C of (2.5): free accelerations read as zero here
    if tree.world.flexible:
        return accelerations_of_flexible_links(tree, bias, inward_innovations, outward_accelerations)  # section 4
    innovation, _ = tree.inward(inward_innovations, bias, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_accelerations, innovation, root=Motion.zero())


def joint_responses(tree: Sweeps) -> Field:
    """M^-1 T = [I - H psi K]* D^-1 [I - H psi K] T, (3.7), for joint forces T that are given alone: the machine is at
    rest and has no weight. Prescribed speeds do not answer, and nothing is read of T there."""
    innovation, _ = tree.inward(inward_impulses, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_responses, innovation, root=Motion.zero())


def outward_states(link: Link, parent: LinkState) -> tuple[LinkState, LinkState]:
    velocity, acceleration = parent
    for t in link.transforms:
        velocity, acceleration = t.velocity(velocity), t.velocity(acceleration)  # (2.1): phi*
    coriolis = velocity.cross(link.rate)  # a(k)
    for column, change, u, udot in zip(link.columns, link.column_rates(link.u), link.u, link.udot, strict=True):
        coriolis = coriolis + change * u + column * udot  # (2.1): H* betadot
    own = LinkState(velocity + link.rate, acceleration + coriolis)  # (2.1)
    return own, own


def inward_bias(link: Link, outboard: Force, state: LinkState, axes: General | None
                ) -> tuple[Force, tuple[Number, ...]]:
    gyroscopic = state.velocity.cross_force(link.inertia @ state.velocity)  # b(k)
    f = outboard + link.inertia @ state.acceleration + gyroscopic  # (2.1)
    if axes is not None:
        f = f - link.external(axes)
    inboard = f
    for t in reversed(link.transforms):
        inboard = t.force(inboard)  # (2.1): phi
    return inboard, link.with_rotors(column.dot(f) for column in link.columns)  # (2.1): T = H f


def articulate(link: Link, outboard: ArticulatedInertia) -> tuple[ArticulatedInertia, Articulation]:
    """One step of (A.1): P, D, G, and taubar P, which does not resist the joint's motion."""
    p = outboard + link.inertia.articulated()  # P = psi P psi* + M
    columns = [c for c, prescribed in zip(link.columns, link.mask, strict=True) if not prescribed]
    rotors = [a for a, prescribed in zip(link.armature, link.mask, strict=True) if not prescribed]
    ph = [p @ column for column in columns]  # P H*
    d = tuple(tuple(c.dot(f) + rotors[i] if i == j else c.dot(f) for j, f in enumerate(ph))
              for i, c in enumerate(columns))  # D = H P H*, with the rotors on its diagonal
    inverse = _inverse(d)
    gain: list[Force] = []
    for row in inverse:  # G = P H* D^-1
        total = Force.zero()
        for factor, f in zip(row, ph, strict=True):
            total = total + f * factor
        for j, column in enumerate(columns):  # H G = I, exactly where H* has a unit column and no rotor
            k = unit_index(column)
            if k is not None and absent(rotors[j]):
                total = total.with_entry(k, 1.0 if j == len(gain) else 0.0)
        gain.append(total)
    reduced = p
    for f, g in zip(ph, gain, strict=True):
        reduced = reduced.minus(f, g)  # taubar P = P - P H* D^-1 H P; the sum is symmetric
    for column, rotor in zip(columns, rotors, strict=True):
        if absent(rotor):
            reduced = reduced.unresisting(column)  # taubar P H* = 0
    return reduced, Articulation(p, d, tuple(gain))


def _inverse(d: tuple[tuple[Number, ...], ...]) -> list[list[Number]]:
    n = len(d)
    return [solve_positive(d, [1.0 if i == j else 0.0 for j in range(n)]) for i in range(n)]


def inward_articulation(link: Link, outboard: ArticulatedInertia) -> tuple[ArticulatedInertia, Articulation]:
    reduced, own = articulate(link, outboard)
    for t in reversed(link.transforms):
        reduced = t.articulated(reduced)  # psi P psi*
    return reduced, own


def inward_innovations(link: Link, outboard: tuple[ArticulatedInertia, Force], bias: tuple[Number, ...]
                       ) -> tuple[tuple[ArticulatedInertia, Force], Innovation]:
    given = [t - c for t, c, prescribed in zip(link.tau, bias, link.mask, strict=True) if not prescribed]  # That
    return innovate(link, outboard, given)


def inward_impulses(link: Link, outboard: tuple[ArticulatedInertia, Force]
                    ) -> tuple[tuple[ArticulatedInertia, Force], Innovation]:
    given = [t for t, prescribed in zip(link.change("column"), link.mask, strict=True) if not prescribed]  # T
    return innovate(link, outboard, given)


def innovate(link: Link, outboard: tuple[ArticulatedInertia, Force], given: list[Number]
             ) -> tuple[tuple[ArticulatedInertia, Force], Innovation]:
    """One step of (A.1) and (A.2), for joint forces That at the speeds that are free."""
    reduced, own = articulate(link, outboard[0])
    z = outboard[1]
    columns = [c for c, prescribed in zip(link.columns, link.mask, strict=True) if not prescribed]
    rest = [that - column.dot(z) for that, column in zip(given, columns, strict=True)]  # eps = That - H z
    nu = tuple(solve_positive(own.d, rest))  # nu = D^-1 eps
    for g, e in zip(own.gain, rest, strict=True):
        z = z + g * e  # psi z + K That = phi (z + G eps)
    for t in reversed(link.transforms):
        reduced, z = t.articulated(reduced), t.force(z)
    return (reduced, z), Innovation(nu, own.gain)


def outward_accelerations(link: Link, inboard: Motion, innovation: Innovation) -> tuple[Motion, tuple[Number, ...]]:
    return outward_answer(link, inboard, innovation, link.prescribed_udot)


def outward_responses(link: Link, inboard: Motion, innovation: Innovation) -> tuple[Motion, tuple[Number, ...]]:
    return outward_answer(link, inboard, innovation, [0.0] * len(link.mask))


def outward_answer(link: Link, inboard: Motion, innovation: Innovation, udot: list[Number]
                   ) -> tuple[Motion, tuple[Number, ...]]:
    """The other step of (A.2); `udot` holds what is prescribed."""
    acceleration = inboard
    for t in link.transforms:
        acceleration = t.velocity(acceleration)  # phi*
    free = [i for i, prescribed in enumerate(link.mask) if not prescribed]
    solved = [nu - acceleration.dot(g) for nu, g in zip(innovation.nu, innovation.gain, strict=True)]  # nu - K* alpha
    for i, value in zip(free, solved, strict=True):
        udot[i] = value
        acceleration = acceleration + link.columns[i] * value  # psi* alpha + H* nu
    return acceleration, tuple(udot)
