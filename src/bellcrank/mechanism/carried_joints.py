"""Carriers: bodies at which a `Mechanism` can be cut beside a joint, see `topology.carriers`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bellcrank.errors import ModelError
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Weld
from bellcrank.mechanism.parts import Body, Connection

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["Carrier", "carried", "uncarried"]


@dataclass(frozen=True, slots=True)
class Carrier:
    """A body that a joint moves in place of a real one, to which it is welded."""

    name: str
    joint: str
    weld: str
    real: str
    shares: bool  #: whether links share the inertia of the real body


def carried(mechanism: Mechanism, joint: str, on_child: bool, shares: bool) -> tuple[Mechanism, Carrier]:
    """A copy in which a joint moves a carrier in place of its child, or of its parent."""
    made = mechanism.copy()
    record = made.joint(joint)
    body, pose = (record.child, record.child_pose) if on_child else (record.parent, record.parent_pose)
    index = len(made.bodies) + 1
    carrier = Carrier(f"{joint}.carrier", joint, f"{joint}.closing", (made.ground, *made.bodies)[body].name, shares)
    if carrier.name in {b.name for b in made.bodies} or carrier.weld in {r.name for r in made.joints}:
        raise ModelError(f"joint {joint!r} is cut: the names {carrier.name!r} and {carrier.weld!r} are needed for what "
                         "closes its loop; call your own parts otherwise")
    moved = replace(record, child=index) if on_child else replace(record, parent=index)
    made.replace_parts(
        bodies=(*made.bodies, Body(carrier.name, index, Inertia.zero())),
        joints=(*(moved if r.name == joint else r for r in made.joints),
                Connection(carrier.weld, Weld(), index, body, pose, pose)),
        carriers=(*made.carriers, carrier))
    return made, carrier


def uncarried(mechanism: Mechanism) -> Mechanism:
    """The mechanism as it was described, without carriers."""
    if not mechanism.carriers:
        return mechanism
    made = mechanism.copy()
    index = {b.name: b.index for b in (made.ground, *made.bodies)}
    instead = {index[c.name]: index[c.real] for c in made.carriers}
    gone = {c.name for c in made.carriers} | {c.weld for c in made.carriers}
    made.replace_parts(
        bodies=tuple(b for b in made.bodies if b.name not in gone),
        joints=tuple(replace(r, parent=instead.get(r.parent, r.parent), child=instead.get(r.child, r.child))
                     for r in made.joints if r.name not in gone), carriers=())
    return made
