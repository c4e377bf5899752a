"""The energy stored in force elements, as a text: of those between links on the direct schedule alone."""

from __future__ import annotations

from bellcrank.lowering.element_loads import closing_motion
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.topology.pairs import LoopForce, SumForce

__all__ = ["joint_energy", "stored_energy"]


def stored_energy(tree: Sweeps) -> tuple[Number, ...]:
    """Energy stored in springs, bushings and stops [J]: one number."""
    machine = require_direct(tree)
    return (joint_energy(tree)[0] + _between(machine),)


def joint_energy(tree: Sweeps) -> tuple[Number, ...]:
    """Energy stored in laws on joints alone [J]: one number, on any schedule."""
    return (tree.inward(inward_energy, zero=0.0)[1],)


def inward_energy(link: Link, upper: Number) -> tuple[Number, tuple[()]]:
    for i, law in link.laws:
        upper = upper + law.at(link.world.time).energy(link.q[i])
    return upper, ()


def _between(machine: LoopedDirect) -> Number:
    """What elements between links store, and forces on sums of joints and on closing joints."""
    total: Number = 0.0
    moving = machine.moving.__getitem__
    for pair in machine.tree.pairs:
        if isinstance(pair, SumForce):
            length = sum((machine.views[link].q[i] * factor for link, i, factor in pair.terms), 0.0)
            total = total + machine.bind(pair.along).at(machine.world.time).energy(length)
        elif isinstance(pair, LoopForce):
            across = closing_motion(machine.tree.closures[pair.closure], moving, machine.bind)
            total = total + machine.bind(pair.along).energy(across.coordinates[pair.coordinate])
        else:
            total = total + machine.bind(pair).energy(moving(pair.first), moving(pair.second))
    return total
