"""Force elements of a `System` on arrays: what they store, what they lose, what they exert on bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, check_time, flat
from bellcrank.errors import SingularError, StateError
from bellcrank.lowering.element_loads import closing_load, closing_motion, element_loads
from bellcrank.lowering.link import bound
from bellcrank.mechanism.forces.element import Moving
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Vector
from bellcrank.system.evaluator import NumpyEvaluator
from bellcrank.system.looped import Looped
from bellcrank.topology.pairs import LoopForce, PointPair, SumForce, Surroundings

__all__ = ["Elements"]


class Elements(Looped):
    """Energies and forces of the elements of a `System`."""

    # -- energy ---------------------------------------------------------------------------------
    def stored_energy(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Energy stored in springs, bushings and stops [J], shape (...). Laws given as functions count as none: their
        energy is not known. Cost: O(n + elements).

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_joint_spring("spring", "hinge", stiffness=3.0, rest=0.5)
        >>> round(float(bc.compile(m).stored_energy([1.5])), 12)
        1.5
        """
        check_time(t)
        total: Number = 0.0
        place = self._coordinates(q)
        for x, _, along in self._along_joints(place, np.zeros(self.nu), t):
            total = total + along.energy(x)
        pairs = [pair for pair in self.tree.pairs if not isinstance(pair, SumForce)]
        if pairs:
            moving = self._moving(place, None, t)
            for pair in pairs:
                own = self._with_values(pair)
                if isinstance(pair, LoopForce):
                    across = closing_motion(self.tree.closures[pair.closure], moving, self._with_values)
                    total = total + own.along.energy(across.coordinates[pair.coordinate])
                else:
                    total = total + own.energy(moving(pair.first), moving(pair.second))
        return self._sized(total, place.shape[:-1])

    def spring_energy(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """The same as `stored_energy`."""
        return self.stored_energy(q, t=t)

    def energy(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Kinetic energy, potential energy of gravity (of moving bodies) and energy stored in force elements [J], shape
        (...).

        Along a motion it changes by the work of tau (within the limits of actuators), of wrenches and of prescribed
        motions, less `dissipated_power`.
        """
        totals = self._run("totals", {"q": q, "u": u}, None, t)
        return np.asarray(totals[..., 10] + totals[..., 11] + self.stored_energy(q, t=t))

    def dissipated_power(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Power [W] that force elements take from the machine and do not store, shape (...): dampers, friction, drag.

        Laws given as functions count with all their power, since what they store is not known. Drag in wind can be
        negative: the wind does work.
        """
        check_time(t)
        total: Number = 0.0
        place, speeds = self._coordinates(q), flat("u", u, self.nu, "one for every speed")
        for x, rate, along in self._along_joints(place, speeds, t):
            total = total + along.loss(x, rate)
        pairs = [pair for pair in self.tree.pairs if not isinstance(pair, SumForce)]
        if pairs:
            moving, around = self._moving(place, speeds, t), Surroundings(_times(t))
            for pair in pairs:
                own = self._with_values(pair)
                if isinstance(pair, LoopForce):
                    across = closing_motion(self.tree.closures[pair.closure], moving, self._with_values)
                    total = total + own.along.at(_times(t)).loss(across.coordinates[pair.coordinate],
                                                                 across.speeds[pair.coordinate])
                else:
                    with np.errstate(all="ignore"):
                        total = total + own.loss(moving(pair.first), moving(pair.second), around)
            self._refuse_meeting(total, place, t)
        return self._sized(total, np.broadcast_shapes(place.shape[:-1], speeds.shape[:-1]))

    def actuator_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, *, t: npt.ArrayLike = 0.0
                        ) -> Floats:
        """The joint forces tau within the limits of actuators, shape (..., nu): what acts when tau is asked for."""
        check_time(t)
        given = flat("tau", self._tau(tau), self.nu, "one for every speed")
        if not self.tree.actuators:
            return given.copy()
        return self._run("drives", {"q": q, "u": u, "tau": given}, None, t)

    # -- wrenches -------------------------------------------------------------------------------
    def spring_wrenches(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """What elements between bodies (springs, bushings, drag), and forces on closing joints, exert on all bodies:
        (..., bodies, 6), [moment; force] in world axes about each body's origin."""
        tree = self.tree
        turn, origin = self._loops.poses(q, t)
        moving, around = self._moving(q, u, t), Surroundings(_times(t))
        found: list[tuple[int, Floats]] = []  # about the links' origins
        with np.errstate(all="ignore"):
            for pair in tree.pairs:
                if not isinstance(pair, SumForce):
                    found += [(link, _stacked(wrench)) for link, wrench in element_loads(
                        tree, pair, moving, self._with_values, around)]
        total = self._on_bodies(found, turn, np.broadcast_shapes(origin.shape[:-2], np.shape(u)[:-1]))
        self._refuse_meeting(total, q, t)
        return total + self._sum_wrenches(q, u, t)

    def _refuse_meeting(self, result: Number, q: npt.ArrayLike, t: npt.ArrayLike, where: str = "") -> None:
        """Say which spring has no direction, if that is why a result is not finite."""
        if np.isfinite(result).all() or not all(np.isfinite(np.asarray(x, dtype=float)).all() for x in (q, t)):
            return
        moving = self._moving(q, None, t)
        for pair in self.tree.pairs:
            if not isinstance(pair, PointPair):
                continue
            own = self._with_values(pair)
            pulls = np.asarray(own.along.pull_at_zero(), dtype=float) != 0.0
            with np.errstate(all="ignore"):
                length = np.asarray(own.length(moving(pair.first), moving(pair.second)))
            if (pulls & (length == 0.0)).any():
                raise SingularError(f"{pair.meeting()}{where}")

    def _explain_springs(self, given: Mapping[str, Floats], where: str) -> None:
        """The same of one state that gave no finite result, with the inputs it had."""
        if "q" not in given or not any(isinstance(pair, PointPair) for pair in self.tree.pairs):
            return
        values = dict(zip(self._values, given.get("parameters", ()), strict=False))
        machine: Any = self.with_parameters(**values) if values else self  # type: ignore[attr-defined]
        machine._refuse_meeting(np.nan, given["q"], float(given["t"][0]) if "t" in given else 0.0, where)

    def _sum_wrenches(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
        """What forces along sums of joint coordinates exert on bodies, by the formulations' own text."""
        sums = tuple(pair for pair in self.tree.pairs if isinstance(pair, SumForce))
        bodies = len(self.tree.body_names) - 1
        if not sums:
            return np.zeros((bodies, 6))
        from bellcrank.system.system import wrench_order  # which builds on this module

        run = NumpyEvaluator(replace(self.tree, pairs=sums))
        found = self._run("pair_wrenches", {"q": q, "u": u}, None, t, run)
        out = np.empty((*found.shape[:-1], bodies, 6))
        out[..., wrench_order(self.tree), :] = found.reshape(out.shape)
        return out

    def _on_bodies(self, found: list[tuple[int, Floats]], turn: Floats, lead: tuple[int, ...]) -> Floats:
        """Wrenches about links' origins as wrenches about their first bodies' origins."""
        lead = np.broadcast_shapes(lead, *(w.shape[:-1] for _, w in found))
        out = np.zeros((*lead, len(self.tree.body_names) - 1, 6))
        for link, wrench in found:
            if link:
                body = self.tree.members[link][0]
                shift = (turn[..., link, :, :] @ self._shift(body)[..., None])[..., 0]  # body's origin from the link's
                out[..., body - 1, :3] += wrench[..., :3] - np.cross(shift, wrench[..., 3:])
                out[..., body - 1, 3:] += wrench[..., 3:]
        return out

    def _law_wrench(self, closure: int, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
        """What forces on a closing joint's coordinates exert on its child, about the joint's point there."""
        total = np.zeros(6)
        for force in self.tree.pairs:
            if isinstance(force, LoopForce) and force.closure == closure:
                load, _ = closing_load(self.tree, force, self._moving(q, u, t), self._with_values, _times(t))
                total = total + _stacked(load)
        return total

    # -- what elements look at ------------------------------------------------------------------
    def _coordinates(self, q: npt.ArrayLike) -> Floats:
        place = flat("q", q, self.nq, "the coordinates")
        if not np.isfinite(place).all():
            entry = int(np.argwhere(~np.isfinite(place))[0, -1])
            raise StateError(f"q[{entry}] is {place[~np.isfinite(place)][0]}; inputs must be finite")
        return place

    def _with_values(self, value: Any) -> Any:
        """An element with the current values of its parameters."""
        return bound(value, lambda name: np.asarray(self._values[name], dtype=float))

    def _along_joints(self, q: Floats, u: Floats, t: npt.ArrayLike) -> list[tuple[Number, Number, Any]]:
        """Coordinate, rate and element for every force on a tree joint or a sum of some, as it is at the time."""
        out: list[tuple[Number, Number, Any]] = []
        for link, forces in self.tree.joint_forces.items():
            for i, along in forces:
                out.append((*self._loops.coordinate(link, i, q, u, t), self._with_values(along).at(_times(t))))
        for pair in self.tree.pairs:
            if isinstance(pair, SumForce):
                x: Number = 0.0
                rate: Number = 0.0
                for link, i, factor in pair.terms:
                    own = self._loops.coordinate(link, i, q, u, t)
                    x, rate = x + own[0] * factor, rate + own[1] * factor
                out.append((x, rate, self._with_values(pair.along).at(_times(t))))
        return out

    def _moving(self, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike) -> Any:
        """Motion of links in the world, by link; at rest without speeds."""
        turn, origin = self._loops.poses(q, t)
        velocity = None if u is None else self._loops._motions("velocities", {"q": q, "u": u}, t)

        def vector(array: Floats) -> Vector:
            return Vector(*(array[..., i] for i in range(3)))

        def moving(link: int) -> Moving:
            axes = General(Matrix3(*(vector(turn[..., link, i, :]) for i in range(3))))
            rates = (Vector.zero(), Vector.zero()) if velocity is None else (
                vector(velocity[..., link, :3]), vector(velocity[..., link, 3:]))
            return Moving(axes, vector(origin[..., link, :]), *rates)

        return moving

    def _sized(self, total: Number, lead: tuple[int, ...]) -> Floats:
        """A result with all batch axes, also where nothing depends on the state."""
        return np.array(np.broadcast_to(total, np.broadcast_shapes(np.shape(total), lead)), dtype=float)


def _times(t: npt.ArrayLike) -> Floats:
    return np.asarray(t, dtype=float)


def _stacked(wrench: Force) -> Floats:
    return np.stack(np.broadcast_arrays(*wrench.moment, *wrench.force), axis=-1).astype(float)
