"""Other machines made from a compiled one: with other parameters, with loops open, with joints locked; copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy.typing as npt

from bellcrank.arrays import check_unmasked
from bellcrank.errors import ModelError
from bellcrank.formulations import functions_of
from bellcrank.system.bound import Bound
from bellcrank.system.evaluator import Evaluator
from bellcrank.topology.release import lock, release
from bellcrank.topology.tree import Tree

__all__ = ["Variants"]


class Variants(Bound):
    """The methods of a `System` that return another one, for the same q and u."""

    method: str
    backend: str
    actuated: tuple[str, ...]
    _make: Callable[[Tree], Evaluator]
    _released: tuple[str, ...] = ()
    _locked: tuple[tuple[str, int | None], ...] = ()
    _whole: Tree | None = None  #: the tree as it was before `release`

    def with_parameters(self, **values: npt.ArrayLike) -> Self:
        """The same compiled machine with other parameter values; arrays add batch axes. Nothing is recompiled."""
        for name in values:
            if name not in self._values:
                known = ", ".join(self._values) or "none"
                raise ModelError(f"no parameter {name!r} in {self.tree.name!r}; it has {known}")
            check_unmasked(f"parameter {name!r}: value", values[name])
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._values = {**self._values, **values}
        other._doors = {}
        other.__dict__.pop("_has_door", None)
        if self.tree.looped:
            for name in ("_loops", "_assembler"):
                other.__dict__.pop(name, None)
            wishes = ("independent", "baumgarte", "start")
            other._plan_state = {k: v for k, v in self._plan_state.items() if k in wishes}
            other._planned = {}
        return other

    def release(self, *names: str) -> Self:
        """The same machine with some of its loops open: joints that were cut (see `loops`, `compile(cut=...)`) or
        constraints, by name. q and u keep their meaning, so that states can be handed over. What was let go is
        remembered: in a simulation the event action `attach` closes it again.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> linkage.release(*linkage.loops).dof
        3
        """
        if not names:
            return self
        other = self._varied(release(self.tree, names))
        other._released, other._locked = (*self._released, *names), self._locked
        other._whole = self._whole or self.tree
        return other

    def _closed_again(self) -> Self:
        """The machine with everything closed that `release` has opened."""
        if self._whole is None:
            return self
        other = self._varied(self._whole)
        other._locked = self._locked
        return other

    def lock(self, *names: str) -> Self:
        """The same machine with joints, or single coordinates (``joint.coordinate``), that stay where they are: their
        speeds are zero, their coordinates what q says. q and u keep their meaning, so that states can be handed over;
        `drive_forces` are what holds them.

        >>> import bellcrank as bc
        >>> arm = bc.compile(bc.load("double_pendulum"))
        >>> float(arm.lock("elbow").forward_dynamics([0.3, 0.5], [0.0, 0.0])[1])
        0.0
        """
        if not names:
            return self
        places = []
        for key in names:
            joint, coordinate = self._split(key)
            kind = self.mechanism.joint(joint).joint
            if coordinate is not None and kind.nq != kind.nu:
                raise ModelError(f"lock: joint {joint!r} is locked as a whole")
            places.append((joint, None if coordinate is None else kind.coordinate_names().index(coordinate)))
        other = self._varied(lock(self.tree, places))
        other._released, other._locked = self._released, (*self._locked, *places)
        other._whole = None if self._whole is None else lock(self._whole, places)
        if self.tree.looped:  # plans are made near a closed position, which lies where it did
            other._plan_state["start"] = self._any_reference().q
        return other

    def _with_closures(self, change: Callable[[Tree], Tree]) -> Self:
        """The same machine with other closures."""
        other = self._varied(change(self.tree))
        other._released, other._locked, other._whole = self._released, self._locked, self._whole or self.tree
        return other

    def _varied(self, tree: Tree) -> Self:
        """The same machine with another tree."""
        from bellcrank.system.compile import check_inertia

        if not tree.looped:
            check_inertia(tree)
        kept = {k: self._plan_state[k] for k in ("independent", "baumgarte")}
        kind: Any = type(self)  # what it is made of is known to a System only
        made: Self = kind(self.mechanism, tree, self.method, self.backend, functions_of(self.method, tree.looped),
                          self._make, self._values, actuated=self.actuated, **kept)
        return made

    # -- copies and other processes -------------------------------------------------------------
    def __copy__(self) -> Self:
        return self.with_parameters()

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the description, not the compiled code, which is made again (from the cache on disk) when
        it is first needed. Results of the copy are the same to the last bit on the same computer."""
        known = {k: v for k, v in self._plan_state.items() if k in ("independent", "baumgarte", "start", "closed")}
        return {"mechanism": self.mechanism, "tree": self.tree, "method": self.method, "make": self._make,
                "parameters": self._values, "actuated": self.actuated, "plan": known, "released": self._released,
                "locked": self._locked, "whole": self._whole}

    def __setstate__(self, state: dict[str, Any]) -> None:
        tree, plan = state["tree"], state["plan"]
        kind: Any = type(self)  # what it is made of is known to a System only
        kind.__init__(self, state["mechanism"], tree, state["method"], state["make"].backend,
                      functions_of(state["method"], tree.looped), state["make"], state["parameters"],
                      actuated=state["actuated"], independent=plan["independent"], baumgarte=plan["baumgarte"])
        self._plan_state.update(plan)
        self._released, self._locked, self._whole = state["released"], state["locked"], state["whole"]
