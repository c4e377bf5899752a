"""The energy that force elements store and lose, as texts: of those between links on the direct schedule alone."""

from __future__ import annotations

from bellcrank.lowering.flexible_link import ModalLink
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.topology.pairs import SumForce

__all__ = ["dissipated_power", "joint_energy", "stored_energy"]


def stored_energy(tree: Sweeps) -> tuple[Number, ...]:
    """Energy stored in springs, bushings, stops and flexible bodies [J]: one number."""
    machine = require_direct(tree)
    return (joint_energy(tree)[0] + _between(machine),)


def dissipated_power(tree: Sweeps) -> tuple[Number, ...]:
    """Power that force elements take from the machine and do not store [W]: one number."""
    machine = require_direct(tree)
    total: Number = 0.0
    for view in machine.views[1:]:
        for i, law in view.laws:
            total = total + law.at(machine.world.time).seen(machine.sight).loss(view.q[i], view.u[i])
    moving = machine.moving.__getitem__
    around = machine.around
    for pair in machine.tree.pairs:
        if isinstance(pair, SumForce):
            total = total + machine.bind(pair.along).at(machine.world.time).seen(machine.sight).loss(
                *machine.sight.total(pair))
        else:
            total = total + machine.bind(pair).loss(moving(pair.first), moving(pair.second), around)
    return (total,)


def joint_energy(tree: Sweeps) -> tuple[Number, ...]:
    """Energy stored in laws on joints alone [J]: one number, on any schedule."""
    return (tree.inward(inward_energy, zero=0.0)[1],)


def inward_energy(link: Link, upper: Number) -> tuple[Number, tuple[()]]:
    for i, law in link.laws:
        upper = upper + law.at(link.world.time).energy(link.q[i])
    if isinstance(link, ModalLink):
        upper = upper + link.deformation.coupling_energy(link.q)
    return upper, ()


def _between(machine: LoopedDirect) -> Number:
    """What elements between links store, and forces along sums of coordinates and along loop joints."""
    total: Number = 0.0
    moving = machine.moving.__getitem__
    for pair in machine.tree.pairs:
        if isinstance(pair, SumForce):
            total = total + machine.bind(pair.along).at(machine.world.time).energy(machine.sight.total(pair)[0])
        else:
            total = total + machine.bind(pair).energy(moving(pair.first), moving(pair.second))
    return total
