"""A machine in which joints that were cut have coordinates of their own, for questions that need them there.

It is the same machine with the same cuts, but for a carrier at each of these joints (`topology.carriers`): what a user
holds, loads or drives there has a place in q, u and tau then. States go there and back by the names of their entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, flat, wrench_array
from bellcrank.compiled.compile import compile as compiled
from bellcrank.loops.closer import State
from bellcrank.system.arrangements import arrangement_of
from bellcrank.system.held_values import near
from bellcrank.system.kernels import Kernels
from bellcrank.system.loop_errors import loop_coordinates, loop_speeds

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.system.kernels import Wrenches

__all__ = ["KeptJoints"]


@dataclass(frozen=True)
class KeptJoints:
    """A machine, some of its joints that were cut, and the machine in which these have coordinates."""

    system: System
    joints: tuple[str, ...]
    wide: System

    @classmethod
    def of(cls, system: System, *given: Any) -> KeptJoints | None:
        """For joints or coordinates that are given by name, as mappings or sequences, and those that are locked; None
        if none of them was cut, or if loops of the machine were opened or bodies taken out of it since it was compiled.
        Cost: that of `compile`, once for each set of joints."""
        model = system.model
        keys = [key for names in given if isinstance(names, (Mapping, Sequence, Set)) and not isinstance(names, str)
                for key in names if isinstance(key, str)]
        if model.released or model.absent or not (keys or model.locked):
            return None
        closing = [c.name for c in model.tree.closures if c.is_joint]
        named = {*(model.configuration.split(key)[0] for key in keys), *(joint for joint, _ in model.locked)}
        joints = tuple(name for name in closing if name in named)
        if not joints:
            return None
        wide = system.kernels.kept(("kept joints", joints), lambda: _widened(system, closing, joints))
        return cls(system, joints, wide.with_parameters(**model.values))

    @cached_property
    def in_q(self) -> list[int]:
        """Where the wide machine has the coordinates of the other one."""
        return [self.wide.coordinate_names.index(name) for name in self.system.coordinate_names]

    @cached_property
    def in_u(self) -> list[int]:
        """The same for speeds."""
        return [self.wide.speed_names.index(name) for name in self.system.speed_names]

    def narrow(self, state: State) -> State:
        """A state of the wide machine as one of the other."""
        return State(state.q[..., self.in_q], state.u[..., self.in_u], state.t)

    def widened(self, state: State) -> State:
        """A state as one of the wide machine; angles of the joints as they are measured, within half a turn."""
        plans, starts = self.system.plans, self.wide.model.configuration.starts
        lead = np.broadcast_shapes(np.shape(state.q)[:-1], np.shape(state.u)[:-1])
        q, u = np.zeros((*lead, self.wide.nq)), np.zeros((*lead, self.wide.nu))
        q[..., self.in_q], u[..., self.in_u] = state.q, state.u
        for name in self.joints:
            i, j = starts[name]
            kind = self.system.model.mechanism.joint(name).joint
            q[..., i:i + kind.nq] = loop_coordinates(plans, state.q, name, t=state.t)
            u[..., j:j + kind.nu] = loop_speeds(plans, state.q, state.u, name, t=state.t)
        return State(q, u, state.t)

    def guess(self, guess: Any, t: float, what: str) -> State:
        """A guess for the wide machine: with the joints where it has them, or else where they are when it is closed."""
        found = self.widened(self.system.assemble(guess=guess, t=t))
        found.q[..., self.in_q] = near(self.system.plans, "guess", guess, what, many=True)
        if isinstance(guess, State):
            found.u[..., self.in_u] = guess.u
        configuration = self.wide.model.configuration
        for key, value in guess.items() if isinstance(guess, Mapping) else ():
            if configuration.split(key)[0] in self.joints:
                entries, array = configuration.coordinate_entries(key), np.asarray(value, dtype=float)
                found.q[..., entries] = array[..., None] if len(entries) == 1 and array.shape[-1:] != (1,) else array
        return found

    def forces(self, tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None
               ) -> Mapping[str, npt.ArrayLike] | Floats | None:
        """Joint forces for the wide machine."""
        if tau is None or isinstance(tau, Mapping):
            return tau
        rows = flat("tau", tau, self.system.nu, "one for every speed")
        out = np.zeros((*rows.shape[:-1], self.wide.nu))
        out[..., self.in_u] = rows
        return out

    def wrenches(self, wrenches: Wrenches) -> Wrenches:
        """External wrenches for the wide machine, which has more bodies."""
        if wrenches is None or isinstance(wrenches, Mapping):
            return wrenches
        names = self.system.body_names
        rows = wrench_array(wrenches, names)
        return {name: rows[..., i, :] for i, name in enumerate(names)}


def _widened(system: System, closing: Sequence[str], joints: Sequence[str]) -> System:
    """The machine with carriers at some of its joints; what `compile` was asked for stays as it is."""
    model, maker = system.model, system.kernels.maker
    made = compiled(model.mechanism, model.method, maker.backend, schedule=maker.schedule, threads=maker.threads,
                    precision=maker.precision, cut=closing, actuated=joints, baumgarte=model.options.baumgarte)
    made = type(made)(Kernels(replace(made.model, options=model.options), maker))
    return made.lock(*arrangement_of(system).locked) if model.locked else made
