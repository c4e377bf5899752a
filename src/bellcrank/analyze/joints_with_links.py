"""The same machine with links at joints that close loops, for questions that hold, load or drive these.

It is the same machine with the same cuts, but for a carrier at each of these joints (`topology.carriers`). Its states
are those of the other one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.analyze.minimal import one_machine
from bellcrank.compiled.compile import compile as compiled
from bellcrank.system.arrangements import arrangement_of
from bellcrank.system.held_values import near
from bellcrank.system.kernels import Kernels
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["guess_with_links", "with_links"]


def with_links(system: System, *given: Any) -> System | None:
    """The machine in which joints or coordinates that are given by name, as mappings or sequences, those along which
    forces (..., nu) act, and those that are locked have links; None if they have, or if loops of the machine were
    opened or bodies taken out of it since it was compiled. Cost: that of `compile`, once for each set of joints."""
    model = system.model
    keys = [key for names in given if isinstance(names, (Mapping, Sequence, Set)) and not isinstance(names, str)
            for key in names if isinstance(key, str)]
    keys += [own.name for own in model.tree.loop_joints for rows in given
             if np.shape(rows)[-1:] == (system.nu,) and np.asarray(rows).dtype.kind in "fiub"
             and np.asarray(rows)[..., own.u].any()]
    if model.released or model.absent or not (keys or model.locked):
        return None
    closing = [c.name for c in model.tree.closures if c.is_joint]
    named = {*(model.configuration.split(key)[0] for key in keys), *(joint for joint, _ in model.locked)}
    joints = tuple(name for name in closing if name in named)
    if not joints:
        return None
    wide: System = system.kernels.kept(("with links", joints), lambda: _made(system, closing, joints))
    return wide.with_parameters(**model.values)


def guess_with_links(system: System, guess: Any, t: float, what: str) -> State:
    """A guess for that machine: joints at which loops are cut are where they are when the guess is closed, unless it
    names them."""
    one_machine(system)
    found = system.assemble(guess=guess, t=t)
    q, named = near(system.plans, "guess", guess, what, many=True), set[str]()
    if isinstance(guess, Mapping):
        named = {system.model.configuration.split(key)[0] for key in guess}
    for own in system.model.tree.loop_joints:
        if own.name not in named:
            q[..., own.q] = found.q[..., own.q]
    return found.replace(q, guess.u if isinstance(guess, State) else None)


def _made(system: System, closing: Sequence[str], joints: Sequence[str]) -> System:
    """The machine with carriers at some of its joints; what `compile` was asked for stays as it is."""
    model, maker = system.model, system.kernels.maker
    made = compiled(model.mechanism, model.method, maker.backend, schedule=maker.schedule, threads=maker.threads,
                    precision=maker.precision, cut=closing, actuated=joints, baumgarte=model.options.baumgarte)
    made = type(made)(Kernels(replace(made.model, options=model.options), maker))
    return made.lock(*arrangement_of(system).locked) if model.locked else made
