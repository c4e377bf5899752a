"""Forces in machines with loops: drives for a given motion, multipliers, reactions at every joint."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, by_name, flat, one_time
from bellcrank.errors import ModelError, SingularError, StateError
from bellcrank.formulations.operator.partition import Partition
from bellcrank.loops.closer import State, factors, sparse_least, times
from bellcrank.loops.groups import LoopPlan
from bellcrank.loops.null_space import null_space
from bellcrank.loops.tolerances import RANK
from bellcrank.system.assembled import Values
from bellcrank.system.elements import Elements
from bellcrank.system.evaluator import Evaluator
from bellcrank.system.kinematics import Wrenches

__all__ = ["LoopForces"]

#: machines with more speeds than this are solved by sparse factors, state by state
_LARGE = 300
#: and those with more degrees of freedom not by virtual motions
_MANY = 60


class LoopForces(Elements):
    """Forces of a `System` with loops."""

    actuated: tuple[str, ...]

    @abstractmethod
    def _tree_forces(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, wrenches: Wrenches,
                     t: npt.ArrayLike) -> Floats:
        """Joint forces of the spanning tree for given accelerations, as if its loops were open."""

    @property
    @abstractmethod
    def _by_kkt(self) -> bool:
        """Whether loops are solved by the full equations."""

    @abstractmethod
    def _planned_evaluator(self, plan: LoopPlan) -> Evaluator:
        """What runs functions by a plan."""

    @abstractmethod
    def forward_dynamics(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
        """Accelerations."""

    @abstractmethod
    def _own_inverse(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, wrenches: Wrenches,
                     t: npt.ArrayLike) -> Floats:
        """Forces of the independent joints by the formulation's own text."""

    # -- drives ---------------------------------------------------------------------------------
    def _drive_entries(self, actuated: Sequence[str] | None) -> list[int]:
        names = self.actuated if actuated is None else tuple(actuated)
        if not names:
            return list(self._reference_plan().independent)
        entries = [v for name in names for v in self._speed_entries(name)]
        return sorted(dict.fromkeys(entries))

    def _looped_inverse(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, actuated: Sequence[str] | None,
                        weights: Mapping[str, float] | None, wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        """Forces of the actuated joints, zero elsewhere: B tau = what the motion needs, modulo the loops."""
        drives = self._drive_entries(actuated)
        driven = self._prescribed_mask()
        drives = [v for v in drives if not driven[v]]
        needed = self._tree_forces(q, u, udot, wrenches, t)
        own = "constrained_inverse" in self._functions and tuple(drives) == self._reference_plan().independent \
            and not driven.any() and not self.tree.joint_forces
        quick = None if own or driven.any() else self._quick_drives(q, needed, drives, weights, t)
        if own:
            with contextlib.suppress(SingularError):  # of its pivots; the general method has none
                quick = self._own_inverse(q, u, udot, wrenches, t)  # the method's own recursion
        if quick is not None and self._makes(q, u, udot, quick, wrenches, t):
            return quick
        self._check_motion(q, u, udot, t)
        if own and quick is not None:
            return quick
        scale = 1.0 / np.sqrt(self._weights(weights))[drives]
        out = np.zeros(needed.shape)
        free = np.flatnonzero(~driven)
        if self.nu > _LARGE:
            self._sparse_drives(q, t, needed, drives, scale, out)
        else:
            self._dense_drives(q, t, needed, drives, scale, free, out)
        if driven.any():
            loads = self.loop_loads(q, u, out, udot, wrenches, t)
            out[..., driven] = (needed - self._loops.driven_loads(q, loads, t))[..., driven]
        return out

    def _makes(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, tau: Floats, wrenches: Wrenches,
               t: npt.ArrayLike) -> bool:
        """Whether the machine is closed, and moves with these accelerations under these forces: by compiled code,
        much sooner than to look at what is wrong."""
        closed = self._loop_state(q, u, t)
        if self._by_kkt or closed is None or np.abs(closed).max(initial=0.0) > 1e-9:
            return False
        there = self.forward_dynamics(q, u, tau, wrenches=wrenches, t=t)
        size = 1.0 + np.abs(there).max(initial=0.0) + np.abs(np.asarray(u, dtype=float)).max(initial=0.0)**2
        return bool(np.abs(there - np.asarray(udot, dtype=float)).max(initial=0.0) < 1e-9 * size)

    def _quick_drives(self, q: npt.ArrayLike, needed: Floats, drives: list[int], weights: Mapping[str, float] | None,
                      t: npt.ArrayLike) -> Floats | None:
        """The forces by virtual motions: all motions N that the loops allow need as much power from the drives as
        from `needed`."""
        motions = self._virtual_motions(q, t)
        if motions is None:
            return None
        out, rows = np.zeros(needed.shape), motions[..., drives]
        wanted = (motions @ needed[..., None])[..., 0]
        if drives == list(self._reference_plan().independent):
            out[..., drives] = wanted
        else:
            scale = 1.0 / np.sqrt(self._weights(weights))[drives]
            left, s, right = np.linalg.svd(rows * scale, full_matrices=False)
            if s.shape[-1] < rows.shape[-2] or s.min(initial=1.0) <= RANK * s.max(initial=1.0):
                return None  # too few: the general method says so
            solved = (np.swapaxes(left, -1, -2) @ wanted[..., None]) / s[..., None]
            out[..., drives] = (np.swapaxes(right, -1, -2) @ solved)[..., 0] * scale
        return out

    def _virtual_motions(self, q: npt.ArrayLike, t: npt.ArrayLike) -> Floats | None:
        """Speeds that the loops allow, (..., dof, nu): each independent one in turn 1, the others 0. None if it takes
        another plan, or a method without plans."""
        if self._by_kkt or self._batched_parameters():
            return None
        plan = self._reference_plan()
        if len(plan.independent) > _MANY:
            return None
        if not len(plan.independent):
            return np.zeros((*np.shape(q)[:-1], 0, self.nu))
        units = np.zeros((len(plan.independent) + 1, self.nu))  # the last: what prescribed motions make of it
        units[np.arange(len(plan.independent)), list(plan.independent)] = 1.0
        place, when = np.asarray(q, dtype=float)[..., None, :], np.asarray(t, dtype=float)[..., None]
        try:
            change = units + self._run("speed_changes", {"q": place, "u": units}, None, when,
                                       self._planned_evaluator(plan))
        except SingularError:
            return None
        return np.asarray(change[..., :-1, :] - change[..., -1:, :])

    def _looped_drives(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None, udot: npt.ArrayLike,
                       wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        """All joint forces: tau where the motion is free, the enforcing force where it is prescribed."""
        needed = self._tree_forces(q, u, udot, wrenches, t)
        driven = self._prescribed_mask()
        given = np.zeros(self.nu) if tau is None else self.actuator_forces(q, u, tau, t=t)
        out = np.broadcast_to(given, needed.shape).copy()
        if driven.any():
            loads = self.loop_loads(q, u, out, udot, wrenches, t)
            out[..., driven] = (needed - self._loops.driven_loads(q, loads, t))[..., driven]
        return out

    def _dense_drives(self, q: npt.ArrayLike, t: npt.ArrayLike, needed: Floats, drives: list[int], scale: Floats,
                      free: npt.NDArray[np.int64], out: Floats) -> None:
        jacobian = self.loop_jacobian(q, t=t)[..., free]
        _, basis, kept = null_space(jacobian)
        place = {v: i for i, v in enumerate(free.tolist())}
        rows = np.swapaxes(basis, -1, -2)  # N^T, zero rows where it is padded
        drive = rows[..., [place[v] for v in drives]] * scale
        u, s, vt = np.linalg.svd(drive, full_matrices=False)
        good = s > RANK * np.maximum(s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
        freedom = (~kept).sum(axis=-1)
        if np.any(good.sum(axis=-1) < freedom):
            raise self._underactuated(drives, int(np.min(good.sum(axis=-1))), int(np.max(freedom)))
        wanted = rows @ needed[..., free, None]
        inverse = np.where(good, 1.0 / np.where(good, s, 1.0), 0.0)
        solved = np.swapaxes(vt, -1, -2) @ (inverse[..., None] * (np.swapaxes(u, -1, -2) @ wanted))
        out[..., drives] = solved[..., 0] * scale

    def _sparse_drives(self, q: npt.ArrayLike, t: npt.ArrayLike, needed: Floats, drives: list[int], scale: Floats,
                       out: Floats) -> None:
        """J^T lambda + B tau = needed, the smallest solution, by sparse factors."""
        loops = self._loops
        lead = needed.shape[:-1]
        where = np.broadcast_to(np.asarray(q, dtype=float), (*lead, self.nq))
        times = np.broadcast_to(np.asarray(t, dtype=float), lead)
        for index in np.ndindex(*lead):
            entries = loops.linearized(where[index], times[index])[1]
            rows = np.concatenate([loops.all_vars, drives])
            columns = np.concatenate([loops.all_rows, loops.m + np.arange(len(drives))])
            values = np.concatenate([entries, scale])
            every = np.arange(loops.m + len(drives))
            x = np.zeros(len(every))
            rest = needed[index].copy()
            for _ in range(4):  # each pass removes what the damping left over
                step = sparse_least(rows, columns, values, self.nu, every, np.ones(len(every)), rest, 1e-10)
                x += step
                rest = needed[index] - np.bincount(rows, values * x[columns], minlength=self.nu)
            if np.abs(rest).max() > 1e-7 * max(1.0, float(np.abs(needed[index]).max())):
                raise self._underactuated(drives, len(drives), self.dof)
            out[(*index, drives)] = x[loops.m:] * scale

    def _underactuated(self, drives: list[int], rank: int, freedom: int) -> ModelError:
        names = ", ".join(self.speed_names[v] for v in drives[:8]) or "none"
        return ModelError(f"inverse_dynamics of {self.tree.name!r}: the machine has {freedom} degrees of freedom, but "
                          f"the actuated joints ({names}) control only {rank}; name more of them in actuated=")

    def _check_motion(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, t: npt.ArrayLike) -> None:
        """A motion that opens the loops has no drives."""
        size = 1.0 + float(np.abs(np.asarray(udot)).max(initial=0.0)) + float(np.abs(np.asarray(u)).max(initial=0.0))**2
        for what, error, scale in (
                ("positions", self.loop_error(q, t=t), 1.0), ("speeds", self.loop_rate_error(q, u, t=t), size),
                ("accelerations", self.loop_acceleration_error(q, u, udot, t=t), size)):
            worst = float(np.abs(error).max(initial=0.0))
            if worst > 1e-6 * scale:
                row = int(np.unravel_index(int(np.argmax(np.abs(error))), error.shape)[-1])
                raise StateError(f"inverse_dynamics: these {what} open the loop closed by {self._loops.row_names[row]} "
                                 f"(by {worst:.3g}); use assemble() and consistent_acceleration()")

    def consistent_acceleration(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: Mapping[str, Any] | npt.ArrayLike, *,
                                t: npt.ArrayLike = 0.0) -> Floats:
        """Accelerations that keep the loops closed, shape (..., nu): those in the mapping {joint: (..., values)} are
        held, or the nearest ones to an array (..., nu). Cost: O(nu dof^2) a state, by compiled kinematics.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> udot = linkage.consistent_acceleration(state.q, state.u, {"A": [1.0, 2.0]})
        >>> udot.shape, bool(abs(linkage.loop_acceleration_error(state.q, state.u, udot)).max() < 1e-12)
        ((2, 3), True)
        """
        place, speeds = flat("q", q, self.nq, "the coordinates"), flat("u", u, self.nu, "one for every speed")
        driven = self._prescribed_mask()
        held, wanted = driven.copy(), self._run("prescribed", {"q": place, "u": speeds}, None, t)
        if isinstance(udot, Mapping):
            given = by_name("udot", udot, self._speed_entries, self.nu)
            for key in udot:
                held[self._speed_entries(key)] = True
        else:
            given = flat("udot", udot, self.nu, "one for every speed")
        wanted = np.where(held & ~driven if isinstance(udot, Mapping) else ~driven, given, wanted)
        if not self.tree.looped:
            return wanted
        motions = self._virtual_motions(place, t)
        if motions is not None:
            return self._quick_acceleration(place, speeds, wanted, held & ~driven, motions, t)
        return self._careful_acceleration(place, speeds, wanted, np.flatnonzero(~held), t)

    def _careful_acceleration(self, q: Floats, u: Floats, wanted: Floats, free: npt.NDArray[np.int64],
                              t: npt.ArrayLike) -> Floats:
        """By singular values of the loop Jacobian."""
        solved = factors(self.loop_jacobian(q, t=t)[..., free])
        for _ in range(2):  # the second removes rounding
            error = self.loop_acceleration_error(q, u, wanted, t=t)
            wanted = np.array(np.broadcast_to(wanted, (*error.shape[:-1], self.nu)))
            wanted[..., free] -= solved.solve(error, 0.0, RANK)[0]
        self._refuse_contradiction(np.abs(self.loop_acceleration_error(q, u, wanted, t=t)), wanted)
        return wanted

    def _quick_acceleration(self, q: Floats, u: Floats, wanted: Floats, held: npt.NDArray[np.bool_], motions: Floats,
                            t: npt.ArrayLike) -> Floats:
        """A possible acceleration plus the combination of virtual motions that brings it to what is held, and nearest
        to what is wanted otherwise."""
        some = self.forward_dynamics(q, u, t=t)
        basis, lack = np.swapaxes(motions, -1, -2), wanted - some
        free = ~(held | self._prescribed_mask())
        pinned = factors(np.broadcast_to(basis[..., held, :], (*lack.shape[:-1], int(held.sum()), motions.shape[-2])))
        weights = pinned.solve(lack[..., held], 0.0, RANK)[0]
        self._refuse_contradiction(np.abs(times(basis[..., held, :], weights) - lack[..., held]), wanted)
        kept = pinned.s > RANK * np.maximum(pinned.s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
        rows = pinned.vt * kept[..., None]
        loose = np.eye(motions.shape[-2]) - np.swapaxes(rows, -1, -2) @ rows  # combinations that leave what is held
        rest = lack[..., free] - times(basis[..., free, :], weights)
        more = factors(basis[..., free, :] @ loose).solve(rest, 0.0, RANK)[0]
        return np.asarray(some + times(basis, weights + times(loose, more)))

    def _refuse_contradiction(self, left: Floats, wanted: Floats) -> None:
        size = left.max(axis=-1, initial=0.0)
        if (size > 1e-7 * (1.0 + np.abs(wanted).max(axis=-1, initial=0.0))).any():
            raise StateError(f"consistent_acceleration: the accelerations held contradict the loops (by "
                             f"{float(size.max()):.3g})")

    def partition(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                  secondary: Collection[str] = (), t: float = 0.0) -> Partition:
        """The closed chain in one state as a primary and a secondary system with the closures between them, step by
        step as in the spatial operator algebra; `Partition.with_constraints` detaches and attaches closures.

        `secondary` names bodies: everything that hangs from the ground with them is the secondary system.
        """
        t = one_time(t)
        self._need_loops("partition")
        loops = self._loops
        rows = loops.rows(q, u, t)
        given = np.zeros(self.nu) if tau is None else self.actuator_forces(q, u, tau, t=t)
        force = given - self._tree_forces(q, u, np.zeros(self.nu), None, t)
        return Partition(self.tree, self.operators(q, t=t), force, rows, loops.poses(q, t)[0],
                         loops.gamma(q, u, t, rows), secondary=secondary)

    def project(self, q: State | Values, u: Values = None, *, t: float | None = None) -> State:
        """The nearest state whose loops are closed: removes the drift of methods that hold them by accelerations, and
        makes states from elsewhere consistent.

        `q` and `u` are arrays or mappings {joint or "joint.coordinate": value}, zero where nothing is said; or `q` is a
        `State`. Nothing is held: `assemble` does that. Keyframes of files go in as they are:
        ``system.project(key["q"], key["u"])``.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.project({"A": 0.5, "B": 0.4}, {"A": 1.0})
        >>> bool(abs(linkage.loop_rate_error(state.q, state.u)).max() < 1e-12)
        True
        """
        if q.__class__ is np.ndarray and u.__class__ is np.ndarray and t is None and self._projects_quickly:
            quick = self._projected(q, u)
            if quick is not None:
                return quick
        if isinstance(q, State):
            u, t = q.u if u is None else u, q.t if t is None else t
        t = 0.0 if t is None else one_time(t)
        speeds = self._speeds_near(u) if isinstance(u, Mapping) else u
        return self.assemble(q=self._near("q", q, "project"), u=speeds, t=t)

    def _projected(self, q: Floats, u: Floats) -> State | None:
        """A state that is nearly closed by compiled code; None if it is not, or that did not suffice."""
        for _ in range(3):
            out = self._single_row("projected", q, u)
            if out is None or out[-1] > 1.0:
                return None
            q, u = out[:self.nq], out[self.nq:-2]
            if out[-2] <= 1.0:
                if "closed" not in self._plan_state:
                    self._plan_state["closed"] = (q.copy(), 0.0)
                return State(q, u, 0.0)
        return None

    @cached_property
    def _projects_quickly(self) -> bool:
        """Whether states that are nearly closed may go straight to compiled code."""
        return self.tree.looped and self._assembler.near is not None and self._state_alone

    # -- multipliers and reactions --------------------------------------------------------------
    def loop_loads(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, udot: npt.ArrayLike,
                   wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
        """Multipliers of all conditions, shape (..., conditions): J^T lambda = what the tree lacks. Where conditions
        are redundant they are the smallest of all possible (minimum norm)."""
        lack = self._tree_forces(q, u, udot, wrenches, t) - np.asarray(self._tau(tau), dtype=float)
        lack = np.where(self._prescribed_mask(), 0.0, lack)
        if self.nu > _LARGE:
            return self._sparse_loads(q, t, lack)
        jacobian = self.loop_jacobian(q, t=t)
        pseudo, _, _ = null_space(jacobian)
        return np.asarray((np.swapaxes(pseudo, -1, -2) @ lack[..., None])[..., 0])

    def _sparse_loads(self, q: npt.ArrayLike, t: npt.ArrayLike, lack: Floats) -> Floats:
        loops = self._loops
        lead = lack.shape[:-1]
        where = np.broadcast_to(np.asarray(q, dtype=float), (*lead, self.nq))
        out = np.zeros((*lead, loops.m))
        every = np.arange(loops.m)
        times = np.broadcast_to(np.asarray(t, dtype=float), lead)
        for index in np.ndindex(*lead):
            entries = loops.linearized(where[index], times[index])[1]
            rest = lack[index].copy()
            for _ in range(4):
                out[index] += sparse_least(loops.all_vars, loops.all_rows, entries, self.nu, every, np.ones(loops.m),
                                           rest, 1e-10)
                rest = lack[index] - np.bincount(loops.all_vars, entries * out[index][loops.all_rows],
                                                 minlength=self.nu)
            if np.abs(rest).max() > 1e-6 * max(1.0, float(np.abs(lack[index]).max())):
                raise SingularError(f"reactions of {self.tree.name!r}: the loops cannot supply the forces needed")
        return out

    def _closure_wrenches(self, q: npt.ArrayLike, u: npt.ArrayLike, loads: Floats, t: npt.ArrayLike
                          ) -> dict[str, tuple[Floats, Floats, Floats]]:
        """For every closure: the wrenches of its conditions on the first and on the second link, world axes, about
        the joint's point on the second, and that point."""
        loops, tree = self._loops, self.tree
        rows = loops.rows(q, u, t)
        turn, origin = loops.poses(q, t)
        out = {}
        for i, c in enumerate(tree.closures):
            some = slice(int(loops.starts[i]), int(loops.starts[i + 1]))
            point = origin[..., c.second, :] + (turn[..., c.second, :, :] @ self._values_of(c.second_shift)[..., None]
                                                )[..., 0]
            pair = []
            for link, w in ((c.first, rows.first), (c.second, rows.second)):
                total = (w[..., some, :] * loads[..., some, None]).sum(axis=-2)
                arm = origin[..., link, :] - point
                pair.append(np.concatenate([total[..., :3] + np.cross(arm, total[..., 3:]), total[..., 3:]], axis=-1))
            out[c.name] = (pair[0], pair[1], point)
        return out

    def _loop_reactions(self, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, udot: npt.ArrayLike,
                        wrenches: Wrenches, t: npt.ArrayLike) -> tuple[dict[str, Floats], Floats]:
        """Wrenches of closing joints on their children (body axes, about the joint), drive included; and what the
        closures do to all bodies, as external wrenches (..., bodies, 6)."""
        loads = self.loop_loads(q, u, tau, udot, wrenches, t)
        lead = loads.shape[:-1]
        bodies = np.zeros((*lead, len(self.tree.body_names) - 1, 6))
        parts: dict[str, Any] = {r.name: r for r in self.mechanism.joints}
        parts |= {r.name: r for r in self.mechanism.constraints}
        out = {}
        for i, (name, (first, second, point)) in enumerate(self._closure_wrenches(q, u, loads, t).items()):
            part = parts[name]
            for index, wrench in ((part.parent, first), (part.child, second)):
                if index:
                    arm = point - self.pose(q, self.tree.body_names[index], t=t).position
                    bodies[..., index - 1, :3] += wrench[..., :3] + np.cross(arm, wrench[..., 3:])
                    bodies[..., index - 1, 3:] += wrench[..., 3:]
            total = second + self._law_wrench(i, q, u, t)
            back = np.swapaxes(self.pose(q, self.tree.body_names[part.child], t=t).rotation, -1, -2)
            out[name] = np.concatenate([(back @ total[..., :3, None])[..., 0], (back @ total[..., 3:, None])[..., 0]],
                                       axis=-1)
        return out, bodies
