"""The plans of a `System` with loops: which speeds depend on which, made where the machine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import AssemblyError, ModelError, SingularError
from bellcrank.loops.closer import Target, project
from bellcrank.loops.constraint_kinematics import loop_joints
from bellcrank.loops.groups import LoopPlan
from bellcrank.loops.null_space import null_space
from bellcrank.loops.plan import make_plan
from bellcrank.loops.tolerances import CLOSED, OPEN
from bellcrank.lowering.function import Function
from bellcrank.system.assembled import Assembled

__all__ = ["Looped", "Reference"]

#: machines with more speeds are not looked at as a whole
_FEW = 300
#: a compliance that has shrunk to this part of what it is in general, or less, is no condition: rounding of its row is
#: the root of that
_VANISHED = 1e-15
#: compliances are known to this many decades
_DECADES = 6


class Reference(NamedTuple):
    """What is known of the loops in general."""

    plan: LoopPlan
    q: Floats  #: the general closed position it comes from
    floors: Floats  #: for every condition, see `LoopPlan.floors`


class Looped(Assembled):
    """How the loops of a `System` are solved. Nothing of this is used for a tree."""

    _functions: Mapping[str, Function]

    def _reference(self) -> Reference:
        """What is known of the loops from a general closed position near the neutral one, made once; AssemblyError if
        they do not close there. It depends on the machine alone, never on the states seen so far."""
        state = self._plan_state
        if "reference" not in state:
            try:
                state["reference"] = self._plain()._reference() if self._batched_parameters() else \
                    self._make_reference(self._neutral_position(), 0.0)
            except AssemblyError as error:
                state["reference"] = str(error)
        found: Reference | str = state["reference"]
        if isinstance(found, str):
            raise AssemblyError(found)
        return found

    def _reference_near(self, q: Floats, t: float) -> Reference:
        """The reference, or where the machine does not close near its neutral position, one made from the closed
        position q. Cost: some 30 ms for the latter, unless it is the last one asked for."""
        try:
            return self._reference()
        except AssemblyError:
            if float(np.abs(self.loop_error(q, t=t)).max(initial=0.0)) > OPEN:
                raise
        if self._batched_parameters():
            return self._plain()._reference_near(q, t)
        key = q.tobytes(), t
        near: tuple[Any, Reference] | None = self._plan_state.get("near")
        if near is None or near[0] != key:
            near = key, self._make_reference(q, t)
            self._plan_state["near"] = near  # at once: other threads may be here
        return near[1]

    def _any_reference(self) -> Reference:
        """The reference. Where there is none, that of a position which is known to close: good for questions about the
        machine, not for computing at a state (see `_reference_near`)."""
        try:
            return self._reference()
        except AssemblyError:
            if "closed" not in self._plan_state:
                raise
            return self._reference_near(*self._plan_state["closed"])

    def _reference_plan(self) -> LoopPlan:
        """Which conditions count and which speeds depend on which, in general."""
        return self._any_reference().plan

    def _neutral_position(self) -> Floats:
        near = self._plan_state.get("start", self.neutral())
        return self._closed(near, 0.0)

    def _batched_parameters(self) -> bool:
        return any(np.ndim(v) for v in self._values.values())

    def _plain(self) -> Looped:
        """The same machine with the first value of every batch of parameters: plans are made for that."""
        values = {k: float(np.ravel(np.asarray(v, dtype=float))[0]) for k, v in self._values.items()}
        plain: Looped = self.with_parameters(**values)  # type: ignore[attr-defined]
        return plain

    def _make_reference(self, q: Floats, t: float) -> Reference:
        """Plan near a closed position, away from what is special about it."""
        held = self._prescribed_mask()
        rng = np.random.default_rng(0)
        general, target = q, Target(held, np.ones(self.nu))
        wish, _ = project(self._loops, q, np.where(held, 0.0, rng.normal(size=self.nu)), target, t)
        if held.any():  # what the prescribed joints cause is no freedom
            wish = wish - project(self._loops, q, np.zeros(self.nu), target, t)[0]
        largest = float(np.abs(wish).max(initial=0.0))
        for step in (0.3, 0.1) if largest > 1e-9 else ():
            found, size = self._assembler.close(self.integrate(q, wish * (step / largest)), target, t)
            if size < CLOSED:
                general = found
                break
        best = make_plan(self._loops, general, t, self._plan_prefer)
        floors = np.zeros(self._loops.m)
        if self.nu <= _FEW:
            free = np.flatnonzero(~self._prescribed_mask())
            matrix = self._run("mass_matrix", {"q": general}, None, t).reshape(self.nu, self.nu)[np.ix_(free, free)]
            jacobian = self.loop_jacobian(general, t=t)[:, free]
            self._check_resistance(matrix, jacobian, free)
            floors = _floors(matrix, jacobian)
        return Reference(self._finished(best, floors), general, floors)

    def _finished(self, plan: LoopPlan, floors: Floats) -> LoopPlan:
        """A plan with what does not depend on where it was made."""
        return replace(plan, baumgarte=self._plan_state["baumgarte"], floors=tuple(floors[list(plan.kept)].tolist()))

    def _check_resistance(self, matrix: Floats, jacobian: Floats, free: npt.NDArray[np.int64]) -> None:
        """Refuse motions that nothing resists, by M and J of the free speeds: their acceleration would be infinite."""
        _, basis, kept = null_space(jacobian)
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
            return self._plain()._plan_at(q, t, wishes)
        reference = self._reference_near(q, t)
        plan = make_plan(self._loops, q, t, self._plan_prefer if wishes else None)
        if len(plan.kept) < len(reference.plan.kept):
            raise self._singular(reference.plan, plan)
        return self._finished(plan, reference.floors)

    def _singular(self, general: LoopPlan, plan: LoopPlan) -> SingularError:
        """An error for a position at which fewer conditions count than in general."""
        lost, rank = set(general.kept) - set(plan.kept), len(general.kept)
        names = sorted({self._loops.closure_of_row[r] for r in lost if r < self._loops.m_closures})
        joints = sorted({j for k in names for j in loop_joints(self.tree, k)})
        ways = self.nu - int(self._prescribed_mask().sum()) - rank
        return SingularError(
            f"{self.tree.name!r} is in a singular position: {rank - len(plan.kept)} of its {rank} independent "
            f"conditions depend on the others there, so that it may move in more than {ways} ways; the loops "
            f"involved are those of {', '.join(joints[:12])}")


def _floors(matrix: Floats, jacobian: Floats) -> Floats:
    """Below which compliances of conditions (the diagonal of J M^-1 J^T) there is nothing left of them but rounding, by
    their sizes at a general position. Coarse, so that other parameters seldom need other code."""
    try:
        sizes = np.einsum("ij,ji->i", jacobian, np.linalg.solve(matrix, jacobian.T))
    except np.linalg.LinAlgError:  # links without mass, which the multiplier methods refuse
        return np.zeros(len(jacobian))
    with np.errstate(divide="ignore"):
        decades = np.floor(np.log10(np.maximum(sizes, 0.0)) / _DECADES) * _DECADES
    return np.where(sizes > 0.0, _VANISHED * 10.0**np.maximum(decades, -300.0), 0.0)
