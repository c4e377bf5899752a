"""States of a run that stay where they are computed: on a device, between the calls that take steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.machine import Code, packed
from bellcrank.simulate.steppers import FixedStepper, StepsTaken
from bellcrank.target.backend import ForeignArrays

__all__ = ["ResidentStates"]

Ints = npt.NDArray[np.int64]


@dataclass
class _Group:
    """Some states, in blocks of lanes; `known`: whether the process has the same numbers."""

    members: Ints
    y: Any
    given: Any
    code: Code
    token: tuple[Any, ...]  #: the inputs that were given
    known: bool = True


@dataclass
class ResidentStates:
    """Groups of states on a device, and the numbers `y` of all states in this process, which lag behind."""

    equations: Equations
    device: ForeignArrays
    y: Floats
    groups: dict[bytes, _Group] = field(default_factory=dict)
    uploads: int = 0  #: of states

    def numbers(self) -> Floats:
        """The states as they are."""
        for group in self.groups.values():
            self._read(group)
        return self.y

    def forget(self, members: Ints | None = None) -> None:
        """Bring states back into this process, to be changed here: those that share groups with some, or all."""
        for key, group in list(self.groups.items()):
            if members is None or np.isin(group.members, members).any():
                self._read(group)
                if self.equations.held or self.equations.carried(group.code) is not None:
                    self.equations.remember(group.members, group.code, self._rows(group.given, group))
                del self.groups[key]

    def largest_input(self, entry: int) -> float:
        """The largest of all states there, of one entry of their inputs; 0 if none is there."""
        return max((float(self.device.to_numpy(group.given[:, entry]).max()) for group in self.groups.values()),
                   default=0.0)

    def _read(self, group: _Group) -> None:
        if not group.known:
            self.y[group.members] = self._rows(group.y, group)
            group.known = True

    def _rows(self, blocks: Any, group: _Group) -> Floats:
        count = len(group.members)
        return self.device.to_numpy(blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:count]).astype(float)

    def advance(self, stepper: FixedStepper, members: Ints, start: float, step: float, first: int, steps: int,
                every: int, hold: int) -> StepsTaken:
        """Take steps with some states."""
        group = self._group(stepper, members)
        code, blocks, kind = stepper.code, len(group.y), group.y.dtype.type
        samples = (first + steps) // every - first // every
        shape = (blocks, samples, code.size, code.width) if samples else (blocks, 1, 1, 1)
        out, done = self.device.empty(shape, kind), self.device.empty((blocks, 1, code.width), kind)
        stepper.advance(group.y, group.given, done, out, start, step, first, steps, every, hold)
        group.known = False
        taken = self.device.to_numpy(done).reshape(-1)[:len(members)].astype(np.int64)
        if not samples:
            return StepsTaken(np.empty((0, len(members), code.size)), taken)
        forces = stepper.recorded_forces()
        return StepsTaken(self._samples(out, len(members)), taken,
                          None if forces is None else self._samples(forces, len(members)))

    def _samples(self, blocks: Any, count: int) -> Floats:
        """What was written (blocks, samples, entries, lanes) of so many states, (samples, states, entries)."""
        rows = blocks.transpose(1, 0, 3, 2).reshape(blocks.shape[1], -1, blocks.shape[2])[:, :count]
        return self.device.to_numpy(rows)

    def _group(self, stepper: FixedStepper, members: Ints) -> _Group:
        """The states there: as they are if they are, with their inputs made anew if these have changed."""
        equations, key = self.equations, members.tobytes()
        token = (equations.tau, equations.wrenches, stepper.code)
        group = self.groups.get(key)
        if group is None or group.code is not stepper.code:
            self.forget(members)
            token = (equations.tau, equations.wrenches, stepper.code)  # held controllers may have said something
            group = _Group(members, self._blocks(self.y[members], stepper), self._inputs(stepper, members),
                           stepper.code, token)
            self.groups[key], self.uploads = group, self.uploads + 1
        elif any(a is not b for a, b in zip(token, group.token, strict=True)):
            fresh, carried = self._inputs(stepper, members), equations.carried(group.code)
            if carried is not None:
                fresh[:, carried:] = group.given[:, carried:]
            group.given, group.token = fresh, token
        return group

    def _inputs(self, stepper: FixedStepper, members: Ints) -> Any:
        return self._blocks(stepper.whole_inputs(self.equations.inputs(members), len(members)), stepper)

    def _blocks(self, rows: Floats, stepper: FixedStepper) -> Any:
        kind = np.float64 if stepper.real == "double" else np.float32
        return self.device.upload(packed(rows, stepper.code.width).astype(kind))
