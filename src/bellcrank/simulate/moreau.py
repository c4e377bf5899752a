"""Time stepping with rigid contacts: J. J. Moreau, "Unilateral contact and dry friction in finite freedom dynamics"
(1988), and M. Jean, "The non-smooth contact dynamics method", Comput. Methods Appl. Mech. Eng. 177 (1999).

One step of length h from (q, u), with v the velocities at places that may touch:

    q_m = q + h/2 H(q) u                             (1)  where bodies would be after half a step; H u are rates of q
    u_f = u + h M^-1 f(q_m, (u + u+)/2)              (2)  free motion: the compiled forward dynamics, loops included
    G = J M^-1 J_m^T, c = J u_f                      (3)  the same with unit forces along J at q_m, J itself at q_e
    u+ = u_f + M^-1 J_m^T p                          (4)  p by Signorini's and Coulomb's laws: `cone_problem`
    q+ = q_m + h/2 H(q_e) u+                         (5)

q_e is where bodies would be after the step with the contact forces of the last one: what sticks or rolls does so at
the end of each step, whatever frame speeds are measured in. After that loops are closed as after any step.

Bodies must part at w at least. For (5) that is w = -2 (gap - floor) / h, with the gap half way (that at q_e less
h/2 J u there) and the floor zero, or what the gap was at the start where bodies overlap: no overlap grows but by what
is nonlinear. The speeds with which the step ends follow from w = 0 at places that are closed then. Those that meet
faster than they gain in a step by their own weight bounce by Newton's law, with -e times the speed at which they meet,
and are at the end of the step where they then would be.

(2) to (4) are repeated until u+ does not change: with f at the middle of the step, q_m + h/4 H (u+ - u). So that this
converges with stiff springs and dampers on joints, too, h/2 damping + h^2/4 stiffness is added to the inertia of their
coordinates, and its share of the change of speeds to the forces.

Deviation: where contacts would make energy (Newton's law can, with friction, at several places at once), the step is
taken without restitution. Nothing pushes overlaps apart, which would make energy, too.

| paper | here |
|---|---|
| Delassus operator | ``g`` |
| free velocity | ``free`` |
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.errors import NotYetError
from bellcrank.integrate.cone_program import FINE, TOLERANCE
from bellcrank.integrate.contact_slots import CLOSED, JUMP, REACH
from bellcrank.integrate.contact_step import AGAIN, ENDS, STEADY
from bellcrank.scalar.functions import maximum
from bellcrank.scalar.graph import Number, Scalar, digest, is_zero
from bellcrank.simulate.cone_problem import Impulses, solve_contacts
from bellcrank.simulate.reference import ReferenceRun, Rhs
from bellcrank.system.force_elements import actuator_forces, with_values
from bellcrank.system.kernels import Kernels

if TYPE_CHECKING:
    from bellcrank.simulate.steppers import Integrator
    from bellcrank.system.machine_functions import Machine

__all__ = ["MoreauRun", "refuse_flexible", "stiffened"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def refuse_flexible(system: Machine) -> None:
    """Say that the method does not know bodies that deform."""
    if system.model.tree.flexible:
        raise NotYetError("stepper 'moreau': bodies that deform are not covered")


def stiffened(system: Machine, h: float) -> tuple[Machine, list[Number] | None]:
    """The machine with inertia for its springs and dampers on joints, and that inertia, an expression of parameters for
    every speed; None if it has none."""
    tree = system.model.tree
    added: list[Number] = [0.0] * tree.nu
    armatures = dict(tree.armatures)
    for link, forces in tree.joint_forces.items():
        for i, along in forces:
            stiffness, *dampings = (_number(getattr(along, name, 0.0)) for name in ("stiffness", "damping", "viscous"))
            inertia = 0.5 * h * sum(dampings) + 0.25 * h * h * stiffness
            inertia = inertia if type(inertia) is not Scalar else maximum(inertia, 0.0)
            if type(inertia) is Scalar or inertia > 0.0:
                armatures[link] = (*armatures.get(link, ()), (i, inertia))
                place = int(tree.u_start[link]) + i
                added[place] = added[place] + inertia
    if all(is_zero(x) for x in added):
        return system, None
    model, maker = replace(system.model, tree=replace(tree, armatures=armatures)), system.kernels.maker
    shared = system.kernels.kept(("stiffened", digest(added)), lambda: Kernels(model, maker).shared)
    kernels = Kernels(model, maker, shared)
    return type(system)(kernels, system.plans.for_inertia(kernels)), added


def _number(value: Any) -> Number:
    """A number or an expression of parameters; zero for what is none, such as a law."""
    return value if type(value) is Scalar else float(value) if isinstance(value, (int, float, np.floating)) else 0.0


class Places(NamedTuple):
    """Places that may touch in this step, as many for every state; those that fill up have no friction and are open."""

    number: Ints  #: (states, k), their numbers
    real: npt.NDArray[np.bool_]
    gap: Floats  #: (states, k) [m], half way
    floor: Floats  #: (states, k) [m], how deep bodies overlap at the start of the step, or zero
    fastest: Floats  #: (states, 1), the largest speed at a place [m/s]
    before: Floats  #: (states, k), normal velocities at the start of the step [m/s]
    rows: Floats  #: J, (states, 3 k, nu)
    response: Floats  #: M^-1 J_m^T, (states, nu, 3 k)
    g: Floats  #: (states, 3 k, 3 k)


class MoreauRun(ReferenceRun):
    """Fixed steps of a batch of states with rigid contacts."""

    def __init__(self, rhs: Rhs, kind: Integrator, y: Floats, start: float, step: float, hold: int = 1) -> None:
        system, added = (rhs.system, None) if rhs.system.model.tree.actuators else stiffened(rhs.system, step)
        #: (states or 1, nu); none with actuators, whose limits would act on what is added to forces
        self._added = None if added is None else np.stack(np.broadcast_arrays(*(
            np.asarray(x, dtype=float).reshape(-1) for x in with_values(system.plans, tuple(added)))), axis=-1)
        rhs.system = system
        super().__init__(rhs, kind, y, start, step, hold)
        pairs = [with_values(system.plans, p) for p in system.model.tree.contacts]
        counts = [p.places for p in pairs]

        def spread(values: list[Floats]) -> Floats:
            rows = np.broadcast_arrays(*(np.asarray(v, dtype=float).reshape(-1) for v in values)) if values else []
            out = [np.repeat(r[:, None], n, axis=1) for r, n in zip(rows, counts, strict=True)]
            return np.concatenate(out, axis=1) if out else np.zeros((1, 0))

        self.friction = spread([p.material.friction for p in pairs])  #: (states or 1, places)
        self.restitution = spread([p.material.restitution for p in pairs])
        self._last: Floats = np.zeros((len(y), self.friction.shape[1], 3))  #: impulses of the last step, a first guess
        self._push: Floats = np.zeros_like(y[:, system.nq:])  #: accelerations by contacts in the last step, likewise
        self._rate: Floats = np.zeros_like(self._push)  #: all accelerations in the last step, likewise
        self.residual = 0.0  #: the largest of all steps [m/s]

    def _one(self, y: Floats, t: float, h: float) -> Floats:
        nq = self.rhs.system.nq
        q, u = y[..., :nq], y[..., nq:]
        half = t + 0.5 * h
        middle = self._moved_on(q, q, u, half, h)  # (1)
        known = len(self._push) == len(u)
        change = h * self._rate if known else np.zeros_like(u)
        rate = self._acceleration(half, middle, u, change, h)
        ahead = u + h * (rate + self._push) if known else u + h * rate
        end = middle
        for _ in range(ENDS):
            end = self._moved_on(middle, end, ahead, t + h, h)
        places = self._places(np.stack([end, middle, q]), u, ahead, half, h)
        if places is None:
            along = after = self._unhindered(middle, u, rate, change, half, h)
            if known:
                self._push, self._rate = np.zeros_like(u), (along - u) / h
                self._last[:] = 0.0
        else:
            along, after = self._with_contacts(places, middle, u, rate, change, half, h)
        return np.concatenate([self._moved_on(middle, end, along, t + h, h), after], axis=-1)  # (5)

    def _moved_on(self, q: Floats, at: Floats, u: Floats, t: float, h: float) -> Floats:
        """q after half a step that ends at t, with rates of coordinates as they are at another place."""
        run = self.rhs.system.kernels.run
        there = q + 0.5 * h * run("coordinate_rates", {"q": at, "u": u}, None, t)
        return run("displaced", {"q": there, "dq": np.zeros_like(u)}, None, t)

    def _acceleration(self, t: float, q: Floats, u: Floats, change: Floats, h: float) -> Floats:
        """(2) for speeds that change by so much in the step: f in the middle of it. What the machine has in addition to
        its inertia is taken off again, so that the result does not depend on it once the change is right."""
        at = self._moved_on(q, q, 0.5 * change, t, h) if change.any() else q
        self.rhs.extra = None if self._added is None else self._added * change / h
        try:
            return self.rhs.accelerations(t, np.concatenate([at, u + 0.5 * change], axis=-1))[2]
        finally:
            self.rhs.extra = None

    def _unhindered(self, q: Floats, u: Floats, rate: Floats, change: Floats, t: float, h: float) -> Floats:
        """(2) where nothing touches, as often as with contacts: a state must not depend on what others touch."""
        along = u + h * rate
        going = _changed(along, u + change)
        for _ in range(AGAIN):
            if not going.any():
                break
            last, along = along, np.where(
                going, u + h * self._acceleration(t, q, u, along - u, h), along)
            going &= _changed(along, last)
        return along

    # -- places ---------------------------------------------------------------------------------
    def _places(self, q: Floats, u: Floats, ahead: Floats, t: float, h: float) -> Places | None:
        """What may touch in a step, from coordinates at its end, half way and at its start; None if nothing may."""
        system, n = self.rhs.system, len(u)
        if not self.friction.shape[1]:
            return None
        times = np.array([[t + 0.5 * h], [t], [t - 0.5 * h]])  # prescribed motions are seen where they are then
        table = system.kernels.run("contact_rows", {"q": q}, None, times)
        table = table.reshape(3, n, -1, 7 + 3 * system.nu)
        gap, (rows, pushing, begun) = table[0, ..., 0], table[..., 7:].reshape(3, n, -1, 3, system.nu)
        pushing = _turned(pushing, *table[:2, ..., 1:7].reshape(2, n, -1, 2, 3))
        fastest = (np.abs(rows[:, :, 0]) @ np.maximum(np.abs(u), np.abs(ahead))[..., None])[..., 0].max(axis=1)
        near = gap < (REACH * h * fastest + CLOSED)[:, None]
        k = int(near.sum(axis=1).max(initial=0))
        if not k:
            return None
        index = np.argsort(~near, axis=1, kind="stable")[:, :k]
        real = np.take_along_axis(near, index, axis=1)
        chosen, pushing = (np.take_along_axis(x, index[:, :, None, None], axis=1).reshape(n, 3 * k, system.nu)
                           for x in (rows, pushing))
        gap = np.take_along_axis(gap - 0.5 * h * (rows[:, :, 0] @ ahead[..., None])[..., 0], index, axis=1)
        floor = np.take_along_axis(np.minimum(table[2, ..., 0], 0.0), index, axis=1)
        before = np.take_along_axis((begun[:, :, 0] @ u[..., None])[..., 0], index, axis=1)
        response = self._responses(q[1], u, pushing, t)
        own, other = (np.einsum("brj,bjr->br", x, response).reshape(n, k, 3) for x in (pushing, chosen))
        jumped = (np.abs(other - own) > JUMP * own).any(axis=2)  # see `integrate.contact_slots`
        chosen = np.where(np.repeat(jumped, 3, axis=1)[..., None], pushing, chosen)
        gap = np.where(jumped, np.take_along_axis(table[1, ..., 0], index, axis=1), gap)
        return Places(index, real, gap, floor, fastest[:, None], before, chosen, response, chosen @ response)

    def _responses(self, q: Floats, u: Floats, rows: Floats, t: float) -> Floats:
        """(3): how accelerations answer to unit forces along rows, (states, nu, rows)."""
        system = self.rhs.system
        tau, wrenches = self.rhs.forces(t, q, u)
        if system.model.tree.actuators:  # their limits are no matter of contacts
            tau = actuator_forces(system.plans, q, u, tau, t=t)
            system = self._unlimited
        if system.model.batched:  # each state has a machine of its own
            rate = system.forward_dynamics(q, u, tau, wrenches=wrenches, t=t)
            return np.stack([system.forward_dynamics(q, u, tau + rows[:, j], wrenches=wrenches, t=t) - rate
                             for j in range(rows.shape[1])], axis=-1)
        more = None if wrenches is None else wrenches[..., None, :, :]
        given = tau[:, None] + np.concatenate([np.zeros_like(rows[:, :1]), rows], axis=1)
        found = system.forward_dynamics(q[:, None], u[:, None], given, wrenches=more, t=t)
        return np.swapaxes(found[:, 1:] - found[:, :1], 1, 2)

    @cached_property
    def _unlimited(self) -> Machine:
        """The same machine with actuators that give what they are asked for."""
        system = self.rhs.system
        free = replace(system.model, tree=replace(system.model.tree, actuators={}))
        return type(system)(Kernels(free, system.kernels.maker))

    # -- impulses -------------------------------------------------------------------------------
    def _with_contacts(self, places: Places, q: Floats, u: Floats, rate: Floats, change: Floats, t: float, h: float
                       ) -> tuple[Floats, Floats]:
        """(2) to (4): the speeds by which bodies move on, and those with which the step ends."""
        before, gap, live = places.before, places.gap, places.real
        reached = _at(places, u + h * rate)[..., 0]
        kept = _taken(self.restitution, places.number)
        struck = (before < -2.0 * np.abs(reached - before)) & live
        bounce = struck & (kept > 0.0)
        least = np.minimum(-2.0 * (gap - places.floor) / h, places.fastest)
        arrives = bounce & (reached < least)
        speed, height = _after_bounce(gap - places.floor, before, reached, kept, h)
        speed = np.where(arrives, speed, -kept * before)
        least = np.where(arrives, least + 2.0 * height / h, least)
        known = len(self._last) == len(u)
        guess = np.zeros((*before.shape, 3))
        if known:
            guess = np.take_along_axis(self._last, places.number[..., None], axis=1)
        free = u + h * rate
        p = self._solved(places, free, least, live, guess).p
        along = free + _moved(places, p)
        going = _changed(along, u + change)  # each state by itself: others must make no difference to it
        for _ in range(AGAIN):
            if not going.any():
                break
            free = np.where(going, u + h * self._acceleration(t, q, u, along - u, h), free)
            again = self._solved(places, free, least, live, p)
            p = np.where(going[..., None], again.p, p)
            last, along = along, np.where(going, free + _moved(places, p), along)
            going &= _changed(along, last)
        v = _at(places, along)[..., 0]
        closed = live & ((bounce & (p[..., 0] > 0.0)) | (gap - places.floor + 0.5 * h * v <= CLOSED))
        bounce = bounce & closed
        after, p = self._parted(places, free, along, p, closed, bounce, np.where(bounce, speed, 0.0))
        if known:
            smooth: Flags = np.asarray(~(struck & closed).any(axis=1))
            self._push = np.where(smooth[:, None], _moved(places, p) / h, 0.0)
            self._rate = np.where(smooth[:, None], (along - u) / h, 0.0)
            self._last[:] = 0.0
            np.put_along_axis(self._last, places.number[..., None], p, axis=1)
        return along, after

    def _parted(self, places: Places, free: Floats, along: Floats, p: Floats, closed: Flags, bounce: Flags,
                least: Floats) -> tuple[Floats, Floats]:
        """Speeds with which the step ends, and the impulses they are due to: often those by which bodies move on."""
        v = np.abs(_at(places, along)[..., 0])
        other: Flags = np.asarray(((closed & (v > FINE * TOLERANCE * (1.0 + v))) | bounce).any(axis=1))
        if not other.any():
            return along, p
        found = self._solved(places, free, least, closed, np.where(closed[..., None], p, 0.0)).p
        p = np.where(other[:, None, None], found, p)
        work = (p * (_at(places, free) + 0.5 * _local(places, p))).sum(axis=(1, 2))
        made: Flags = np.asarray((work > 1e-12 * (1.0 + np.abs(work))) & bounce.any(axis=1))
        if made.any():
            again = self._solved(places, free, np.where(made[:, None], 0.0, least), closed, p).p
            p = np.where(made[:, None, None], again, p)
        return np.where(other[:, None], free + _moved(places, p), along), p

    def _solved(self, places: Places, free: Floats, least: Floats, live: npt.NDArray[np.bool_], guess: Floats
                ) -> Impulses:
        """Impulses at the places that are `live`, none at the others."""
        k = live.shape[1]
        on = np.repeat(live, 3, axis=1)
        g = np.where(on[:, :, None] & on[:, None, :], places.g, np.eye(3 * k))
        c = _at(places, free)
        c[..., 0] -= least
        c = np.where(live[..., None], c, [1.0, 0.0, 0.0])
        friction = np.where(live, _taken(self.friction, places.number), 0.0)
        found = solve_contacts(g, c, friction, np.where(live[..., None], guess, 0.0), TOLERANCE)
        self.residual = max(self.residual, float(found.residual.max(initial=0.0)))
        return found


def _after_bounce(gap: Floats, before: Floats, free: Floats, share: Floats, h: float) -> tuple[Floats, Floats]:
    """The speed and the height with which a step ends in which a place bounces, at a constant acceleration a: it meets
    after t = gap / -before at the speed v = before + a t, and leaves with -share v."""
    a = (free - before) / h
    t = np.clip((gap - 0.5 * h * before) / np.maximum(-before, 1e-300), 0.0, h)
    leaving, rest = -share * (before + a * t), h - t
    return np.maximum(leaving + a * rest, 0.0), np.maximum(rest * (leaving + 0.5 * a * rest), 0.0)


def _turned(rows: Floats, frames: Floats, other: Floats) -> Floats:
    """Rows (..., 3, nu) at places with directions `other` (..., 2, 3), along those that are as near as can be to the
    directions of `frames`."""
    normal = np.cross(other[..., 0, :], other[..., 1, :])
    first = frames[..., 0, :] - normal * (normal * frames[..., 0, :]).sum(axis=-1, keepdims=True)
    length = np.linalg.norm(first, axis=-1, keepdims=True)
    first = np.where(length < 0.1, other[..., 0, :], first / np.where(length < 0.1, 1.0, length))
    turn = (other @ first[..., None])[..., 0]  # its components
    cos, sin = turn[..., :1], turn[..., 1:]
    one, two = rows[..., 1, :], rows[..., 2, :]
    return np.stack([rows[..., 0, :], cos * one + sin * two, cos * two - sin * one], axis=-2)


def _changed(now: Floats, before: Floats) -> npt.NDArray[np.bool_]:
    """Which states' speeds still change, (states, 1)."""
    largest = np.abs(now).max(axis=1, keepdims=True)
    return np.asarray(np.abs(now - before).max(axis=1, keepdims=True) > np.maximum(STEADY * largest, TOLERANCE))


def _at(places: Places, u: Floats) -> Floats:
    """Velocities at places, (states, k, 3)."""
    n, k = places.gap.shape
    return np.asarray((places.rows @ u[..., None]).reshape(n, k, 3))


def _moved(places: Places, p: Floats) -> Floats:
    """What impulses do to speeds."""
    return np.asarray((places.response @ p.reshape(len(p), -1, 1))[..., 0])


def _local(places: Places, p: Floats) -> Floats:
    """What impulses do to the velocities at places."""
    return np.asarray((places.g @ p.reshape(len(p), -1, 1)).reshape(p.shape))


def _taken(values: Floats, number: Ints) -> Floats:
    """Entries of places (states or 1, places) by number."""
    return np.take_along_axis(np.broadcast_to(values, (len(number), values.shape[1])), number, axis=1)
