"""The plans of a `System` with loops: which speeds depend on which, made where the machine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import AssemblyError, ModelError, SingularError
from bellcrank.formulations.groups import LoopPlan
from bellcrank.formulations.program import Function
from bellcrank.system.arrays import Floats
from bellcrank.system.assembled import CLOSED, Assembled
from bellcrank.system.assembly import project
from bellcrank.system.closure import loop_joints
from bellcrank.system.kkt import null_space
from bellcrank.system.plan import make_plan

__all__ = ["Looped"]


class Looped(Assembled):
    """How the loops of a `System` are solved. Nothing of this is used for a tree."""

    _functions: Mapping[str, Function]

    def _reference_plan(self) -> LoopPlan:
        """The plan at a general closed position, made once."""
        state = self._plan_state
        if "plan" not in state and self._batched_parameters():
            state.update(self._plain()._planned_state())
        if "plan" not in state:
            try:
                near = state.get("start", self.neutral())
                start = self._closed(near, 0.0)
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
