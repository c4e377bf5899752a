"""The loops of a `System`: how well they are closed, and the joints that close them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, batch, by_name, check_time, check_unmasked, flat
from bellcrank.errors import ModelError, StateError, hint
from bellcrank.loops.closer import Closer
from bellcrank.loops.constraint_kinematics import LoopKinematics, paths_between
from bellcrank.loops.near_closer import NearCloser
from bellcrank.lowering.function import Function
from bellcrank.system.evaluator import Evaluator, LlvmEvaluator
from bellcrank.system.kinematics import Kinematics, Wrenches
from bellcrank.topology.tree import Tree

__all__ = ["LoopErrors"]


class LoopErrors(Kinematics):
    """Loops of a `System`. Everything here is empty or trivial for a tree."""

    _evaluator: Evaluator
    _functions: Mapping[str, Function]
    _doors: dict[str, Any]

    @abstractmethod
    def _make_door(self, name: str) -> Callable[..., Any]:
        """A native function of one state."""

    @abstractmethod
    def _input(self, name: str, size: int, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
               t: npt.ArrayLike, tree: Tree) -> Floats:
        """One input of a function as an array."""

    @property
    @abstractmethod
    def dof(self) -> int:
        """Degrees of freedom."""

    @property
    def loops(self) -> tuple[str, ...]:
        """Names of what closes loops: cut joints, then other constraints and couplers."""
        return tuple(c.name for c in self.tree.closures) + tuple(r.name for r in self.tree.relations)

    @cached_property
    def _loops(self) -> LoopKinematics:
        return LoopKinematics(self.tree, lambda name, given, t: self._run(name, given, None, t), self._values_of,
                              self._one_kernel)

    def _one_kernel(self, name: str) -> bool:
        """Whether a function that looks at all loops at once is compiled, which it is for small machines."""
        run = self._evaluator
        return isinstance(run, LlvmEvaluator) and run.compiles_whole(self._functions[name])

    @cached_property
    def _assembler(self) -> Closer:
        near = NearCloser(self._attempt, lambda q, du: self._moved(q, du, q.shape[:-1]), self.normalize,
                          self.difference, self.nu) if self._closes_compiled() else None
        return Closer(self._loops, self.integrate, self.normalize, self.difference, near)

    def _closes_compiled(self) -> bool:
        """Whether steps to closed positions are compiled: not if some closing joint has no coordinates to look at."""
        try:
            return self.tree.looped and self._one_kernel("nearest_step")
        except ModelError:
            return False

    @cached_property
    def _state_alone(self) -> bool:
        """Whether functions depend on the state alone, not on time or parameters."""
        return not (self.tree.timed or self.tree.parameters)

    def _single_row(self, name: str, *arrays: Floats) -> Floats | None:
        """A function of one state, arrays of doubles, through its native door; None if that did not work."""
        try:
            door, size = self._doors[name]
        except KeyError:
            door, size = self._doors[name] = self._make_door(name), self._functions[name].size(self.tree)
        out = np.empty(size)
        return out if door(*arrays, out) is out else None

    def _attempt(self, name: str, given: Mapping[str, Floats], t: npt.ArrayLike) -> Floats:
        """A function at states (n, ...), results not finite where there are none."""
        function, run = self._functions[name], self._evaluator
        n = len(given["q"])
        if n == 1 and self._state_alone:
            row = self._single_row(name, *(a if a.ndim == 1 else a[0] for a in given.values()))
            if row is not None:
                return row[None]
        names = run.inputs(function, False)
        ready = [self._input(each, size, given, None, t, run.tree) for each, size in names.items()]
        arrays, _, _ = batch(ready)
        return run.run(function, False, arrays, n)[0]

    def _need_loops(self, what: str) -> None:
        if not self.tree.looped:
            raise ModelError(f"{what}: {self.tree.name!r} is a tree: it has no loops")

    # -- errors ---------------------------------------------------------------------------------
    def loop_error(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """How far every condition of every loop is from being met, shape (..., conditions): distances [m] and
        cosines of angles that should be right. Cost: O(n)."""
        check_time(t)
        if not self.tree.looped:
            return np.zeros((*flat("q", q, self.nq, "the coordinates").shape[:-1], 0))
        return self._loops.error(q, t)

    def _loop_state(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats | None:
        """Values and rates of all conditions by compiled code, which small machines have."""
        return self._run("loop_state", {"q": q, "u": u}, None, t) if self._one_kernel("loop_state") else None

    def loop_rate_error(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Rates of `loop_error`, shape (..., conditions). Cost: O(n)."""
        check_time(t)
        if not self.tree.looped:
            return np.zeros((*flat("q", q, self.nq, "the coordinates").shape[:-1], 0))
        return self._loops.rate(q, u, t)

    def loop_acceleration_error(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                                t: npt.ArrayLike = 0.0) -> Floats:
        """Second derivatives of `loop_error`, shape (..., conditions). Cost: O(n)."""
        check_time(t)
        if not self.tree.looped:
            return np.zeros((*flat("q", q, self.nq, "the coordinates").shape[:-1], 0))
        loops = self._loops
        rows = loops.rows(q, u, t)
        motion = loops._motions("accelerations", {"q": q, "u": u, "udot": udot}, t)
        out = loops._through(rows, motion) - rows.gamma
        if not self.tree.relations:
            return out
        laws = self._run("prescribed", {"q": q, "u": u}, None, t)
        return loops.add_couplers(out, rows, np.where(self._prescribed_mask(), laws, np.asarray(udot, dtype=float)))

    def loop_jacobian(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """d(loop_rate_error)/du for the free speeds, shape (..., conditions, nu)."""
        return self._loops.dense(self._loops.linearized(q, t)[1])

    def loop_coordinates(self, q: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Coordinates of a joint that closes a loop, shape (..., nq of the joint)."""
        check_time(t)
        return self._assembler.coordinates(flat("q", q, self.nq, "the coordinates"), self._closure_index(joint), t)

    def loop_speeds(self, q: npt.ArrayLike, u: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Speeds of a joint that closes a loop, shape (..., nu of the joint)."""
        check_time(t)
        index = self._closure_index(joint)
        kind = self.tree.closures[index].kind
        coordinates = self.loop_coordinates(q, joint, t=t)
        relative = self._relative_velocity(q, u, index, t)
        columns = kind.subspace([coordinates[..., i] for i in range(kind.nq)],
                                [np.asarray(self._values_of([k])[..., 0]) for k in kind.constants()])
        lead = relative.shape[:-1]
        basis = np.stack([np.stack([np.broadcast_to(x, lead) for x in (*c.angular, *c.linear)], axis=-1)
                          for c in columns], axis=-1) if columns else np.zeros((*lead, 6, 0))
        return np.asarray((np.linalg.pinv(basis) @ relative[..., None])[..., 0])

    def loop_drive(self, q: npt.ArrayLike, forces: Mapping[str, npt.ArrayLike], *, t: npt.ArrayLike = 0.0) -> Floats:
        """Joint forces tau of the spanning tree that do the same as forces {joint: (..., nu of the joint)} of joints
        that close loops: equal power for every motion."""
        check_time(t)
        place = flat("q", q, self.nq, "the coordinates")
        total = np.zeros(self.nu)
        for joint, value in forces.items():
            c = self.tree.closures[self._closure_index(joint)]
            check_unmasked(f"force of {joint!r}", value)
            amount = flat(f"force of {joint!r}", np.atleast_1d(np.asarray(value, dtype=float)), c.kind.nu,
                          "one for every speed of the joint")
            links = [k for path in paths_between(self.tree, c.first, c.second) for k in path]
            entries = [v for k in links for v in self._speed_entries(self.tree.joint_names[k])]
            units = np.zeros((len(entries), self.nu))
            units[np.arange(len(entries)), entries] = 1.0
            rates = self.loop_speeds(place[..., None, :], units, joint, t=t) \
                - self.loop_speeds(place[..., None, :], np.zeros(self.nu), joint, t=t)
            share = (rates * amount[..., None, :]).sum(axis=-1)
            out = np.zeros((*share.shape[:-1], self.nu))
            out[..., entries] = share
            total = total + out
        return total

    def _relative_velocity(self, q: npt.ArrayLike, u: npt.ArrayLike, index: int, t: npt.ArrayLike) -> Floats:
        """Velocity of a closing joint's child side relative to its parent side, in child axes."""
        c, loops = self.tree.closures[index], self._loops
        turn, origin = loops.poses(q, t)
        velocity = loops._motions("velocities", {"q": q, "u": u}, t)
        arm = (turn[..., c.second, :, :] @ self._values_of(c.second_shift)[..., None])[..., 0]
        point = origin[..., c.second, :] + arm
        w = [velocity[..., k, :3] for k in (c.first, c.second)]
        v = [velocity[..., k, 3:] + np.cross(velocity[..., k, :3], point - origin[..., k, :])
             for k in (c.first, c.second)]
        back = np.swapaxes(turn[..., c.second, :, :] @ c.second_turn, -1, -2)
        parts = [(back @ (b - a)[..., None])[..., 0] for a, b in (w, v)]
        return np.concatenate(parts, axis=-1)

    def _closure_index(self, joint: str) -> int:
        for i, c in enumerate(self.tree.closures):
            if c.name == joint and c.is_joint:
                return i
        known = [c.name for c in self.tree.closures if c.is_joint]
        raise ModelError(f"no joint {joint!r} closes a loop of {self.tree.name!r}; those that do: "
                         f"{', '.join(map(repr, known)) or 'none'}{hint(joint, known)}")

    def _prescribed_mask(self) -> npt.NDArray[np.bool_]:
        return self._prescribed.copy()

    @cached_property
    def _prescribed(self) -> npt.NDArray[np.bool_]:
        return self.tree.prescribed_speeds()

    # -- names ---------------------------------------------------------------------------------
    def _split(self, key: str) -> tuple[str, str | None]:
        """A joint and perhaps one of its coordinates or speeds."""
        names = {r.name for r in self.mechanism.joints}
        if key in names:
            return key, None
        joint, _, coordinate = str(key).rpartition(".")
        if joint in names:
            kind = self.mechanism.joint(joint).joint
            if coordinate in (*kind.coordinate_names(), *kind.speed_names):
                return joint, coordinate
        every = [f"{r.name}.{c}" for r in self.mechanism.joints
                 for c in dict.fromkeys((*r.joint.coordinate_names(), *r.joint.speed_names))]
        near = hint(key, every if "." in str(key) else names) or hint(joint or key, names)
        raise ModelError(f"no joint called {key!r} in mechanism {self.mechanism.name!r}{near}")

    def _speed_entries(self, key: str) -> list[int]:
        joint, coordinate = self._split(key)
        if joint in self.tree.cut_names:
            raise StateError(f"joint {joint!r} was cut to close a loop and has no place in u and tau: name joints of "
                             "the spanning tree (forces on it: loop_tau), or compile with cut= another joint")
        kind = self.mechanism.joint(joint).joint
        start = self._starts[joint][1]
        if coordinate is None:
            return list(range(start, start + kind.nu))
        if coordinate not in kind.speed_names:
            raise StateError(f"{key!r} is a coordinate without a speed of its own; there are "
                             f"{', '.join(kind.speed_names)}")
        return [start + kind.speed_names.index(coordinate)]

    def _coordinate_entries(self, key: str) -> list[int]:
        """The places in q of a joint, or of one of its coordinates."""
        self._speed_entries(key)  # says so if it has none
        joint, coordinate = self._split(key)
        kind = self.mechanism.joint(joint).joint
        start = self._starts[joint][0]
        if coordinate is None:
            return list(range(start, start + kind.nq))
        return [start + kind.coordinate_names().index(coordinate)]

    def _tau(self, tau: Forces) -> npt.ArrayLike:
        """Joint forces as an array, also where they are given by name."""
        return by_name("tau", tau, self._speed_entries, self.nu) if isinstance(tau, Mapping) else tau

    @cached_property
    def _starts(self) -> dict[str, tuple[int, int]]:
        out, q, u = {}, 0, 0
        for r in self._records:
            out[r.name] = (q, u)
            q, u = q + r.joint.nq, u + r.joint.nu
        return out
