"""Joints that keep their coordinates although a loop is cut there.

Drives, rotors, sums of coordinates, couplers and prescribed motions need a joint that moves a link. Where such
a joint is cut it stays in the tree and moves a *carrier*: a body of its own that stands for the one beyond the joint
and is welded to it. That weld closes the loop. The carrier has no mass of its own; as links, a body of the inertia I
and its k carriers have I / (k + 1) each, so that every joint of the tree has something to move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bellcrank.mechanism.carried_joints import carried
from bellcrank.mechanism.flexible.deformation import HeldNode, Modal, NodeMotion
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.graph import Scalar
from bellcrank.topology.spanning_tree import spanning_tree

__all__ = ["bound_joints", "link_inertias", "with_carriers"]


def bound_joints(mechanism: Mechanism) -> set[str]:
    """Joints that must move a link: those with actuators, rotors, or terms of sums."""
    return {*(d.joint for d in mechanism.drives), *(a.joint for a in mechanism.armatures),
            *(joint for s in mechanism.joint_sums for joint, _, _ in s.terms)}


def with_carriers(mechanism: Mechanism, cut: Sequence[str] = (), keep: Sequence[str] = (),
                  needed: Iterable[str] = ()) -> tuple[Mechanism, tuple[str, ...]]:
    """The mechanism with a carrier at every joint that is cut although something needs its coordinates (or it is among
    the `needed`), and what is cut then. `keep` names joints that shall not be cut if possible. Cost: O(joints)."""
    cut = tuple(cut)
    if len(mechanism.joints) <= len(mechanism.bodies) and not cut:
        return mechanism, cut
    bound = bound_joints(mechanism)
    wanted = bound.union(needed, (r.name for r in mechanism.joints if r.prescribed is not None),
                         (joint for c in mechanism.couplers for joint, _, _ in c.terms),
                         (r.name for r in mechanism.joints if any(type(x) is Scalar for x in r.joint.constants())))
    wanted -= set(mechanism.open_at_start)
    mechanism, cut = _carried(mechanism, cut, [name for name in cut if name in wanted])
    while wanted:
        closing = spanning_tree(mechanism, cut, (*keep, *sorted(bound.difference(cut)))).closing
        more = [mechanism.joints[i].name for i in closing if mechanism.joints[i].name in wanted]
        if not more:
            break
        mechanism, cut = _carried(mechanism, (*cut, *more), more)
    return mechanism, cut


def _carried(mechanism: Mechanism, cut: Sequence[str], names: Sequence[str]) -> tuple[Mechanism, tuple[str, ...]]:
    """A copy with carriers at some joints, and what is cut in their place."""
    instead = {}
    for name in dict.fromkeys(names):
        record = mechanism.joint(name)
        sides = [_divisible(mechanism, body) for body in (record.child, record.parent)]
        mechanism, carrier = carried(mechanism, name, sides[0] or not sides[1], any(sides))
        instead[name] = carrier.weld
    return mechanism, tuple(instead.get(name, name) for name in cut)


def _divisible(mechanism: Mechanism, body: int) -> bool:
    """Whether a body is rigid and has mass that a carrier can share."""
    if not body:
        return False
    mass = mechanism.bodies[body - 1].inertia.mass
    return (isinstance(mass, Scalar) or mass > 0.0) and not any(
        isinstance(r.joint, (Modal, NodeMotion, HeldNode)) for r in mechanism.joints if body in (r.parent, r.child))


def link_inertias(mechanism: Mechanism) -> list[Inertia]:
    """What bodies, the ground first, contribute to their links: carriers share with the bodies that they stand for."""
    bodies = (mechanism.ground, *mechanism.bodies)
    if not mechanism.carriers:
        return [b.inertia for b in bodies]
    source = {c.name: c.real for c in mechanism.carriers if c.shares}
    count = Counter(source.values())
    out = []
    for b in bodies:
        real = source.get(b.name, b.name)
        own = mechanism.body(real).inertia
        out.append(_part(own, 1.0 / (count[real] + 1)) if count[real] else own)
    return out


def _part(own: Inertia, share: float) -> Inertia:
    xx, xy, xz, yy, yz, zz = (x * share for x in own.inertia)
    return Inertia(own.mass * share, own.com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], checked=False)
