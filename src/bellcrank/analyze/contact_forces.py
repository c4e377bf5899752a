"""Contacts of a machine in a state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from bellcrank.arrays import START
from bellcrank.system.contact_states import ContactState, contact_states
from bellcrank.system.state_methods import of_motion

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["contacts"]


@of_motion()
def contacts(system: System, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START
             ) -> dict[str, ContactState]:
    """Every contact by name: which of its places are closed, how deep, where, how fast they slide, and the forces.
    Batches have their axes in front. Cost: O(n + places).

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("weight")
    >>> ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1)))
    >>> slide = m.add_joint("slide", bc.Prismatic("z"), m.ground, ball)
    >>> shape = m.add_shape(ball, bc.Sphere(0.1), role="collision")
    >>> floor = m.add_contacts("all", bc.Plane(), stiffness=1e4)
    >>> found = bc.analyze.contacts(bc.compile(m), [0.099], [0.0])["ball sphere, ground plane"]
    >>> bool(found.closed[0]), round(float(found.normal_force[0]), 9)
    (True, 10.0)
    """
    return contact_states(system.plans, q, u, t=t)
