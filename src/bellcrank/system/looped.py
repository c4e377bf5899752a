"""The methods of a `System` that are about loops: errors, assembly, mobility, and what the loops amount to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import AssemblyError, ModelError, SingularError, StateError
from bellcrank.formulations.groups import LoopPlan
from bellcrank.formulations.program import Function
from bellcrank.system.arrays import Floats, flat
from bellcrank.system.assembly import Assembler, Extra, State, project
from bellcrank.system.closure import LoopKinematics, loop_joints, paths_between
from bellcrank.system.evaluator import Evaluator, LlvmEvaluator, free_speeds
from bellcrank.system.kinematics import Kinematics
from bellcrank.system.kkt import null_space
from bellcrank.system.plan import make_plan

__all__ = ["Looped"]

Values = Mapping[str, float | Sequence[float]] | npt.ArrayLike | None

#: closures are tight when no residual is larger
CLOSED = 1e-9


class Looped(Kinematics):
    """Loops of a `System`. Everything here is empty or trivial for a tree."""

    _plan_state: dict[str, Any]
    _functions: Mapping[str, Function]
    _evaluator: Evaluator

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
        return LoopKinematics(self.tree, lambda name, given, t: self._run(name, given, None, t), self._values_of)

    @cached_property
    def _assembler(self) -> Assembler:
        return Assembler(self._loops, self.integrate, self.normalise)

    def _need_loops(self, what: str) -> None:
        if not self.tree.looped:
            raise ModelError(f"{what}: {self.tree.name!r} is a tree: it has no loops")

    # -- errors ---------------------------------------------------------------------------------
    def loop_error(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """How far every condition of every loop is from being met, shape (..., conditions): distances [m] and
        cosines of angles that should be right. Cost: O(n)."""
        if not self.tree.looped:
            return np.zeros((*np.shape(q)[:-1], 0))
        both = self._loop_state(q, np.zeros(self.nu), t)
        return self._loops.rows(q, None, t).value if both is None else both[..., :both.shape[-1] // 2]

    def _loop_state(self, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats | None:
        """Values and rates of all conditions by compiled code, which small machines have."""
        function = self._functions["loop_state"]
        run = self._evaluator
        if not isinstance(run, LlvmEvaluator) or not run.compiles_whole(function):
            return None
        return self._run("loop_state", {"q": q, "u": u}, None, t)

    def loop_rate_error(self, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Rates of `loop_error`, shape (..., conditions). Cost: O(n)."""
        if not self.tree.looped:
            return np.zeros((*np.shape(q)[:-1], 0))
        both = self._loop_state(q, u, t)
        return self._loops.rate(q, u, t) if both is None else both[..., both.shape[-1] // 2:]

    def loop_acceleration_error(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                                t: npt.ArrayLike = 0.0) -> Floats:
        """Second derivatives of `loop_error`, shape (..., conditions). Cost: O(n)."""
        if not self.tree.looped:
            return np.zeros((*np.shape(q)[:-1], 0))
        loops = self._loops
        rows = loops.rows(q, u, t)
        motion = loops._motions("accelerations", {"q": q, "u": u, "udot": udot}, t)
        out = loops._through(rows, motion) - rows.gamma
        if not self.tree.relations:
            return out
        laws = self._run("prescribed", {"q": q, "u": u}, None, t)
        return loops._relation_sums(out, np.where(self._prescribed_mask(), laws, np.asarray(udot, dtype=float)))

    def loop_jacobian(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """d(loop_rate_error)/du for the free speeds, shape (..., conditions, nu)."""
        return self._loops.jacobian(q, self._loops.rows(q, None, t), t)

    def loop_coordinates(self, q: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Coordinates of a joint that closes a loop, shape (..., nq of the joint)."""
        return self._assembler.coordinates(flat("q", q, self.nq, "the coordinates"), self._closure_index(joint), t)

    def loop_speeds(self, q: npt.ArrayLike, u: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Speeds of a joint that closes a loop, shape (..., nu of the joint)."""
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
        place = flat("q", q, self.nq, "the coordinates")
        total = np.zeros(self.nu)
        for joint, value in forces.items():
            c = self.tree.closures[self._closure_index(joint)]
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
        known = ", ".join(repr(c.name) for c in self.tree.closures if c.is_joint) or "none"
        raise ModelError(f"no joint {joint!r} closes a loop of {self.tree.name!r}; those that do: {known}")

    # -- assembly -------------------------------------------------------------------------------
    def assemble(self, q: Values = None, u: Values = None, *, guess: npt.ArrayLike | None = None,
                 weights: Mapping[str, float] | None = None, t: float = 0.0) -> State:
        """A state in which all loops are closed, at position and velocity level.

        `q` and `u` as mappings {joint or "joint.coordinate": value} are **held**; everything else moves as little as
        it can from `guess` (all joints at zero if not given), in the measure of `weights` {joint: weight}. As arrays,
        `q` is the guess and `u` the speeds to be made consistent. Joints that close loops may be held too.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> bool(abs(linkage.loop_error(state.q)).max() < 1e-12)
        True
        """
        start = self.neutral() if guess is None else _one("guess", flat("guess", guess, self.nq, "the coordinates"))
        held = self._prescribed_mask()
        scale = self._weights(weights)
        if np.ndim(t):
            raise StateError("assemble: one state at a time; t must be a number")
        extra: list[Extra] = []
        if isinstance(q, Mapping):
            for key, value in q.items():
                self._hold(key, value, start, held, extra)
        elif q is not None:
            start = _one("q", flat("q", q, self.nq, "the coordinates"))
        if not np.isfinite(start).all():
            raise StateError("assemble: the guess must be finite")
        position = self._closed(start, held, scale, t, tuple(extra))
        self._plan_state.setdefault("closed", (position, t))
        return State(position, self._consistent(position, u, scale, t), float(t))

    def _closed(self, start: Floats, held: npt.NDArray[np.bool_], scale: Floats, t: float, extra: tuple[Extra, ...]
                ) -> Floats:
        if not self.tree.looped:
            return self.normalise(start)
        first = None
        rng = np.random.default_rng(1)
        for attempt in range(12 if self.nu > 300 else 24):  # small steps away from the guess first, then any
            shake = np.zeros(self.nu) if attempt == 0 else rng.normal(size=self.nu) * min(0.05 * 2.0**attempt, 2.5)
            shake[held] = 0.0
            guess = self.integrate(start, shake)
            found, size = self._assembler.close(guess, held, scale, t, extra=extra)
            if first is None:
                first = found
            if size < CLOSED and not self._assembler.flipped(found, t):
                return found
        assert first is not None
        raise self._assembler.failure(first, t, f"assemble {self.tree.name!r}", extra)

    def branches(self, q: Values = None, *, tries: int = 60, guess: npt.ArrayLike | None = None, t: float = 0.0,
                 seed: int = 0) -> list[State]:
        """Different closed positions found from random starts with the coordinates in `q` held (as an array, `q` is
        the guess), nearest to the guess first. Only meaningful if what is held leaves no freedom: then it lists the
        assembly branches."""
        start = self.neutral() if guess is None else flat("guess", guess, self.nq, "the coordinates").copy()
        held = self._prescribed_mask()
        extra: list[Extra] = []
        if isinstance(q, Mapping):
            for key, value in q.items():
                self._hold(key, value, start, held, extra)
        elif q is not None:
            start = _one("q", flat("q", q, self.nq, "the coordinates"))
        rng = np.random.default_rng(seed)
        found: list[Floats] = []
        for attempt in range(tries):
            shake = np.where(held, 0.0, rng.normal(size=self.nu) * (0.0 if attempt == 0 else 1.5))
            position, size = self._assembler.close(self.integrate(start, shake), held, np.ones(self.nu), t,
                                                   extra=tuple(extra))
            if size < CLOSED and not self._assembler.flipped(position, t) \
                    and not any(self._same(position, other) for other in found):
                found.append(position)
        found.sort(key=lambda x: float(np.linalg.norm(_wrapped(self.difference(start, x)))))
        return [State(x, np.zeros(self.nu), float(t)) for x in found]

    def _same(self, a: Floats, b: Floats) -> bool:
        return bool(np.abs(_wrapped(self.difference(a, b))).max(initial=0.0) < 1e-6)

    def _consistent(self, q: Floats, u: Values, scale: Floats, t: float) -> Floats:
        held = self._prescribed_mask()
        wanted = np.zeros(self.nu)
        if isinstance(u, Mapping):
            for key, value in u.items():
                entries = self._speed_entries(key)
                try:
                    wanted[entries] = np.asarray(value, dtype=float)
                except (TypeError, ValueError):
                    raise StateError(f"assemble: {value!r} for the speeds of {key!r} is not {len(entries)} numbers"
                                     ) from None
                held[entries] = True
        elif u is not None:
            wanted = _one("u", flat("u", u, self.nu, "one for every speed"))
        if not np.isfinite(wanted).all():
            raise StateError("assemble: speeds must be finite")
        if not self.tree.looped:
            return wanted
        speeds, left = project(self._loops, q, wanted, held, scale, t)
        size = 1.0 + float(np.abs(wanted).max(initial=0.0))
        if left > 1e-8 * size:
            rate = np.abs(self.loop_rate_error(q, speeds, t=t))
            worst = int(np.argmax(rate))
            raise AssemblyError(f"assemble {self.tree.name!r}: the speeds held contradict each other; the condition "
                                f"{self._loops.row_names[worst]} changes at {rate[worst]:.3g}. Hold fewer of them")
        return speeds

    def _weights(self, weights: Mapping[str, float] | None) -> Floats:
        out = np.ones(self.nu)
        for key, value in (weights or {}).items():
            try:
                good = 0.0 < float(value) < float("inf")
            except (TypeError, ValueError):
                good = False
            if not good:
                raise StateError(f"weights: {key!r} needs a positive number, got {value!r}")
            out[self._speed_entries(key)] = float(value)
        return out

    def _prescribed_mask(self) -> npt.NDArray[np.bool_]:
        mask = np.ones(self.nu, dtype=bool)
        mask[free_speeds(self.tree)] = False
        return mask

    def _hold(self, key: str, value: Any, q: Floats, held: npt.NDArray[np.bool_], extra: list[Extra]) -> None:
        try:
            numbers = np.atleast_1d(np.asarray(value, dtype=float))
        except (TypeError, ValueError):
            raise StateError(f"assemble: {value!r} for {key!r} is not a number") from None
        if not np.isfinite(numbers).all():
            raise StateError(f"assemble: {value!r} for {key!r} is not finite")
        joint, coordinate = self._split(key)
        if joint in self.tree.cut_names:
            index = self._closure_index(joint)
            names = self.tree.closures[index].kind.coordinate_names()
            if coordinate is not None and coordinate not in names:
                raise StateError(f"assemble: {key!r} is a speed; hold one of {', '.join(names)}")
            which = range(len(names)) if coordinate is None else [names.index(coordinate)]
            self._check_count(key, numbers, len(which))
            extra += [Extra(index, i, float(x)) for i, x in zip(which, numbers, strict=True)]
            return
        record = self.mechanism.joint(joint)
        if record.prescribed is not None and (coordinate is None or held[self._speed_entries(key)].all()):
            raise StateError(f"assemble: joint {joint!r} follows a prescribed motion; give the time t instead")
        names = record.joint.coordinate_names()
        start_q, start_u = self._starts[joint]
        if coordinate is None:
            self._check_count(key, numbers, record.joint.nq)
            q[start_q:start_q + record.joint.nq] = numbers
            held[start_u:start_u + record.joint.nu] = True
        else:
            self._check_count(key, numbers, 1)
            if record.joint.nq != record.joint.nu:
                raise StateError(f"assemble: joint {joint!r} is held as a whole, by all {record.joint.nq} coordinates")
            i = names.index(coordinate)
            q[start_q + i] = numbers[0]
            held[start_u + i] = True

    def _check_count(self, key: str, numbers: Floats, n: int) -> None:
        if numbers.shape != (n,):
            raise StateError(f"assemble: {key!r} needs {n} value{'s' * (n != 1)}, got {numbers.size}")

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
        self.mechanism.joint(key)  # says what there is
        raise ModelError(f"no joint or coordinate {key!r}")

    def _speed_entries(self, key: str) -> list[int]:
        joint, coordinate = self._split(key)
        if joint in self.tree.cut_names:
            raise StateError(f"joint {joint!r} was cut to close a loop: give the rates of joints of the spanning tree")
        kind = self.mechanism.joint(joint).joint
        start = self._starts[joint][1]
        if coordinate is None:
            return list(range(start, start + kind.nu))
        if coordinate not in kind.speed_names:
            raise StateError(f"{key!r} is a coordinate without a speed of its own; there are "
                             f"{', '.join(kind.speed_names)}")
        return [start + kind.speed_names.index(coordinate)]

    @cached_property
    def _starts(self) -> dict[str, tuple[int, int]]:
        out, q, u = {}, 0, 0
        for r in self._records:
            out[r.name] = (q, u)
            q, u = q + r.joint.nq, u + r.joint.nu
        return out

    # -- plans ----------------------------------------------------------------------------------
    def _reference_plan(self) -> LoopPlan:
        """The plan at a general closed position, made once."""
        state = self._plan_state
        if "plan" not in state and self._batched_parameters():
            state.update(self._plain()._planned_state())
        if "plan" not in state:
            try:
                start = self._closed(self.neutral(), self._prescribed_mask(), np.ones(self.nu), 0.0, ())
                self._make_reference(start, 0.0)
            except AssemblyError:  # some other position that is known to close will do
                if "closed" not in state:
                    raise
                self._make_reference(*state["closed"])
        plan: LoopPlan = state["plan"]
        return plan

    def _planned_state(self) -> dict[str, Any]:
        self._reference_plan()
        return self._plan_state

    def _current_plan(self) -> LoopPlan:
        """The plan in use: the reference one, or one that took over in a state where that failed."""
        plan: LoopPlan = self._plan_state.get("current") or self._reference_plan()
        return plan

    def _batched_parameters(self) -> bool:
        return any(np.ndim(v) for v in self._values.values())

    def _plain(self) -> Looped:
        """The same machine with the first value of every batch of parameters: plans are made for that."""
        values = {k: float(np.ravel(np.asarray(v, dtype=float))[0]) for k, v in self._values.items()}
        plain: Looped = self.with_parameters(**values)  # type: ignore[attr-defined]
        return plain

    def _make_reference(self, q: Floats, t: float) -> None:
        """Plan near a closed position, away from what is special about it."""
        state = self._plan_state
        held = self._prescribed_mask()
        rng = np.random.default_rng(0)
        general = q
        wish, _ = project(self._loops, q, np.where(held, 0.0, rng.normal(size=self.nu)), held, np.ones(self.nu), t)
        if held.any():  # what the prescribed joints cause is no freedom
            wish = wish - project(self._loops, q, np.zeros(self.nu), held, np.ones(self.nu), t)[0]
        largest = float(np.abs(wish).max(initial=0.0))
        for step in (0.3, 0.1) if largest > 1e-9 else ():
            found, size = self._assembler.close(self.integrate(q, wish * (step / largest)), held, np.ones(self.nu), t)
            if size < CLOSED:
                general = found
                break
        best = make_plan(self._loops, general, t, self._plan_prefer)
        state["q"] = general
        self._check_resistance(general, t)
        state["rank"] = len(best.kept)
        state["plan"] = replace(best, baumgarte=self._plan_state["baumgarte"])

    def _check_resistance(self, q: Floats, t: float) -> None:
        """Refuse motions that nothing resists: their acceleration would be infinite."""
        if self.nu > 300:
            return
        free = np.flatnonzero(~self._prescribed_mask())
        matrix = self._run("mass_matrix", {"q": q}, None, t).reshape(self.nu, self.nu)[np.ix_(free, free)]
        _, basis, kept = null_space(self.loop_jacobian(q, t=t)[:, free])
        basis = basis[:, ~kept]
        if not basis.shape[1]:
            return
        scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))  # angles and lengths alike
        values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        size = (basis / np.maximum(scale[:, None], 1e-300)).T @ (basis / np.maximum(scale[:, None], 1e-300))
        if values[0] <= 1e-12 * max(float(np.linalg.eigvalsh(size)[-1]), 1e-300):
            motion = np.abs(basis @ vectors[:, 0])
            joint = self.speed_names[int(free[int(np.argmax(motion))])]
            raise ModelError(f"{self.tree.name!r}: nothing resists a motion of {joint} that its loops allow (a body "
                             "without inertia about that axis); give the bodies it moves an inertia")

    @cached_property
    def _plan_prefer(self) -> npt.NDArray[np.bool_]:
        out = np.zeros(self.nu, dtype=bool)
        for joint in self._plan_state["independent"]:
            if self._split(joint)[0] not in self.tree.cut_names:
                out[self._speed_entries(joint)] = True
        return out

    def _plan_at(self, q: Floats, t: float, wishes: bool = True) -> LoopPlan:
        """A plan for one position; raises if the machine is singular there. Without `wishes` the speeds asked to be
        independent count like all others."""
        if self._batched_parameters():
            self._reference_plan()
            return self._plain()._plan_at(q, t, wishes)
        plan = replace(make_plan(self._loops, q, t, self._plan_prefer if wishes else None),
                       baumgarte=self._plan_state["baumgarte"])
        rank = self._plan_state.setdefault("rank", len(plan.kept))
        if len(plan.kept) < rank:
            lost = set(self._reference_plan().kept) - set(plan.kept)
            names = sorted({self._loops.closure_of_row[r] for r in lost if r < self._loops.m_closures})
            joints = sorted({j for k in names for j in loop_joints(self.tree, k)})
            raise SingularError(
                f"{self.tree.name!r} is in a singular position: {rank - len(plan.kept)} of its {rank} independent "
                f"conditions depend on the others there, so that it may move in more than {self.dof} ways; the loops "
                f"involved are those of {', '.join(joints[:12])}")
        return plan


def _one(name: str, array: Floats) -> Floats:
    if array.ndim != 1:
        raise StateError(f"assemble: one state at a time; {name} has shape {array.shape}")
    return array.copy()


def _wrapped(x: Floats) -> Floats:
    """Angles modulo whole turns. Lengths of several metres are rare enough not to matter here."""
    return np.asarray((x + np.pi) % (2.0 * np.pi) - np.pi)
