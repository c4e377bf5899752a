"""Loops through bodies that deform: unit loads of constraints at nodes, beside the elimination of modes.

The equations are (38)-(43) of `recursive` with the two kinds of links of `flexible_links`: a unit load at a node acts
on the frame and, by the node's columns, on the modes (`LoopedLoad.modal`), which are eliminated as the columns of a
joint are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bellcrank.formulations.common.flexible_links import (
    ModalLoad,
    ModalVelocity,
    eliminate_modes,
    inward_node_load,
    modal_sweeps,
    with_body,
)
from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.multipliers import (
    LoadShare,
    Triangle,
    UnitLoad,
    added_products,
    gamma_with_gravity,
    idle,
    unit_loads,
)
from bellcrank.formulations.common.points import LinkAtPoint, Velocity
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.formulations.recursive.loop_messages import Kept, Loops
from bellcrank.lowering.flexible_link import ModalLink, NodeLink, by_role
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Motion, Vector

__all__ = ["constrained_with_modes"]

Units = tuple[UnitLoad, ...]


class LoopedLoad(NamedTuple):
    """What travels inward: the load of nodes on frame and modes, and what unit multipliers add to it."""

    load: ModalLoad
    jacobian: tuple[Force, ...]
    modal: tuple[tuple[Number, ...], ...]  #: for each constraint, along each mode of the frame that follows
    matrix: Triangle
    gamma_shift: tuple[Number, ...]

    @staticmethod
    def rigid(loops: Loops, k: int) -> LoopedLoad:
        """Without modal parts."""
        return LoopedLoad(ModalLoad.rigid(loops.mass, loops.force, k), loops.jacobian,
                          ((0.0,) * k,) * len(loops.jacobian), loops.matrix, loops.gamma_shift)

    def loops(self) -> Loops:
        """What a rigid link sees of it."""
        return Loops(self.load.mass, self.load.force, self.jacobian, self.matrix, self.gamma_shift)


def constrained_with_modes(tree: Sweeps, inward: Callable[..., tuple[Loops, Kept]], outward: Callable[..., Any],
                           multiplied: Callable[..., Any]) -> Field:
    """Accelerations of a machine with loops; `inward`, `outward` and `multiplied` are the steps of rigid links in body
    axes."""
    whole, k = require_direct(tree), tree.world.modes
    rows, axes = whole.loop_rows(), outward_axes(tree)
    place, velocity, out = modal_sweeps(tree, outward)
    units = unit_loads(whole, rows)

    def rigid(link: Link, upper: LoopedLoad, *own: Any) -> tuple[LoopedLoad, Kept]:
        loops, kept = inward(link, upper.loops(), *own)
        return LoopedLoad.rigid(loops, k), kept

    kept, total = tree.inward(by_role(rigid, inward_modes, inward_node), place, velocity, axes, units,
                              zero=LoopedLoad.rigid(Loops.zero(len(rows)), k))
    ground = Motion(Vector.zero(), -tree.world.gravity)
    right = [gamma_with_gravity(whole, row) - shift - ground.dot(phi)
             for row, shift, phi in zip(rows, total.gamma_shift, total.jacobian, strict=True)]  # (41)
    multipliers = solve_multipliers(total.matrix, right, whole.floors)  # (42)
    return out(tree.outward(multiplied, kept, root=tuple(multipliers)))  # (43)


def inward_node(link: NodeLink, upper: LoopedLoad, place: LinkAtPoint, velocity: Velocity, axes: General | None,
                units: Units) -> tuple[LoopedLoad, Kept]:
    mass, force = upper.load.mass + place.inertia.articulated(), upper.load.force + velocity.force
    if axes is not None:
        force = force - link.external(axes)
    load = inward_node_load(link, mass, force + mass @ velocity.bias).padded(link.world.modes)
    phi = [a + unit.load for a, unit in zip(upper.jacobian, units, strict=True)]  # (38), (40)
    empty = (0.0,) * (link.world.modes - len(link.moving_columns))
    modal = tuple((0.0,) * link.world.modes if idle(p) else (*(c.dot(p) for c in link.moving_columns), *empty)
                  for p in phi)  # (39): Phi B2, with the columns of the carrier's speeds
    shift = tuple(x if idle(p) else x + velocity.bias.dot(p)
                  for x, p in zip(upper.gamma_shift, phi, strict=True))  # (41): Phi D
    return LoopedLoad(load, _lowered(place, phi), modal, upper.matrix, shift), ((), ())


def inward_modes(link: ModalLink, upper: LoopedLoad, place: LinkAtPoint, velocity: ModalVelocity, axes: General | None,
                 units: Units) -> tuple[LoopedLoad, Kept]:
    mass, force, columns, matrix, right = with_body(link.with_prescribed(velocity.form), upper.load)
    if axes is not None:
        force = force - link.external(axes)
    mass, force, rows = eliminate_modes(mass, force, columns, matrix, right, link)
    phi = [a + unit.load for a, unit in zip(upper.jacobian, units, strict=True)]  # (38), (40)
    rests = [[a + b for a, b in zip(shares, unit.joint, strict=False)]
             for shares, unit in zip(upper.modal, units, strict=True)]  # (39): Phi B2
    products, shift, shares = upper.matrix, list(upper.gamma_shift), []
    free = [j for j, driven in enumerate(link.mask) if not driven]
    for k, (j, row) in enumerate(zip(free, rows, strict=True)):
        share = LoadShare(row.inverse, tuple(rest[j] for rest in rests))
        shares.append(share)
        products = added_products(products, share)  # (41): Phi_2 M_22^-1 Phi_2^T
        for c, rest in enumerate(rests):
            if not idle(rest[j]):
                shift[c] = shift[c] + rest[j] * row.free  # (41): Phi_2 M_22^-1 Q_2
                phi[c] = phi[c] - row.gain * rest[j]  # (40)
                for factor, later in zip(row.factors, free[k + 1:], strict=True):
                    rest[later] = rest[later] - rest[j] * factor
    shift = [x if idle(p) else x + velocity.bias.dot(p) for x, p in zip(shift, phi, strict=True)]  # (41): Phi D
    force = force + mass @ velocity.bias
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)
    loops = Loops(mass, force, _lowered(place, phi), products, tuple(shift))
    return LoopedLoad.rigid(loops, link.world.modes), (rows, tuple(shares))


def _lowered(place: LinkAtPoint, phi: Sequence[Force]) -> tuple[Force, ...]:
    for t in reversed(place.transforms):
        phi = [p if idle(p) else t.force(p) for p in phi]  # (39): Phi B1
    return tuple(phi)
