"""Code that every run needs, begun while the rest of it is being looked at, on other cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellcrank.arrays import Floats
from bellcrank.integrate.contact_step import contact_steps
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.simulate.rigid_equations import may_be_stiff
from bellcrank.simulate.steppers import Integrator, driver_of
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.system.loop_errors import over_groups
from bellcrank.target.backend import Backend

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["begin_code", "begin_errors", "in_lanes", "width_of"]

#: samples from which on code for several states side by side is worth compiling, of small machines and of large ones,
#: whose code is short and whose evaluation takes long
_MANY, _MANY_LARGE = 2000, 200


def in_lanes(system: Machine, samples: int) -> bool:
    """Whether so many samples, of all states, are worth code for several states side by side."""
    return samples > (_MANY if system.model.tree.n <= UNROLL_LINKS else _MANY_LARGE)


def width_of(kind: Integrator, backend: Backend, count: int) -> int:
    """How many of the states of a batch a method takes side by side; all its jobs do, also those with few states:
    rounding may depend on it, and a state's numbers must not depend on which others share its job."""
    lanes = backend.lanes()
    return lanes if (kind.lanes or backend.own_ways) and 2 * count > lanes else 1


def begin_code(system: Machine, kind: Integrator | None, count: int, samples: int) -> None:
    """Begin with what does not depend on the state: the driver of the method, energies and loop errors of samples."""
    kernels = system.kernels
    run = kernels.evaluator
    if not isinstance(run, CompiledEvaluator):
        return
    lanes, looped = run.backend.lanes(), system.model.tree.looped
    if kind is not None and not (kind.program is contact_steps and may_be_stiff(system.model.tree)):
        driver_of(kind, run.backend, width_of(kind, run.backend, count), system.nq, system.nu,
                  system.nu if looped else 0)
    width = lanes if in_lanes(system, samples * count) else 1
    for name in ("totals", "loop_state") if looped else ("totals",):
        if kernels.compiled(name) is not None:
            run.kernel(kernels.functions[name], False, width)


def begin_errors(system: Machine, q: Floats, t: float, samples: int) -> None:
    """Begin with the loop errors of large machines, for which there must be a plan."""
    kernels = system.kernels
    if not system.model.tree.looped or kernels.compiled("loop_state") is not None:
        return
    run = over_groups(system.plans, q, t)
    if isinstance(run, CompiledEvaluator):
        run.kernel(kernels.functions["largest_errors"], False,
                   run.backend.lanes() if in_lanes(system, samples) else 1)
