"""The energy stored in force elements, as a text: for the whole machine, on the direct schedule."""

from __future__ import annotations

from bellcrank.lowering.element_loads import closing_motion
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps
from bellcrank.topology.pairs import LoopForce, SumForce

__all__ = ["stored_energy"]


def stored_energy(tree: Sweeps) -> tuple[Number, ...]:
    """Energy stored in springs, bushings and stops [J]: one number."""
    machine = require_direct(tree)
    time, total = machine.world.time, 0.0
    for view in machine.views[1:]:
        for i, law in view.laws:
            total = total + law.at(time).energy(view.q[i])
    return (total + _between(machine),)


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
