"""Which run executes the steps of a course: a compiled one, one in NumPy, or that of another library."""

from __future__ import annotations

import time as clock
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, SlowWarning, outside
from bellcrank.simulate.contact_checks import contact_strides
from bellcrank.simulate.early import width_of
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.external import ExternalRun
from bellcrank.simulate.fixed import FixedRun
from bellcrank.simulate.moreau import MoreauRun, stiffened
from bellcrank.simulate.reference import ReferenceRun, Rhs
from bellcrank.simulate.rigid_equations import ContactEquations
from bellcrank.simulate.rigid_run import RigidRun
from bellcrank.simulate.steppers import STEPPERS
from bellcrank.simulate.varying import VaryingRun
from bellcrank.simulate.varying_lanes import VaryingLanes
from bellcrank.system.force_terms import forced_machine

if TYPE_CHECKING:
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["fixed_run", "varying_run"]

#: seconds of a run by interpreted steps that are worth a warning
LONG = 10.0


def fixed_run(setup: Setup, system: Machine, y: Floats, t: float, tau: Floats, wrenches: Floats | None
              ) -> FixedRun | ReferenceRun:
    """Steps on a grid of time, from states (q, u) at time t: compiled if they can be."""
    kind = STEPPERS[setup.stepper]
    assert setup.step is not None
    system = forced_machine(system, setup.forced)
    if setup.stepper == "moreau":
        return _moreau_run(setup, system, y, t, tau, wrenches)
    if _prepared(system, y, t):
        equations = Equations(system, setup.batch, tau, wrenches, setup.drives, separate=kind.tableau is None,
                              closing=setup.closing, settles=kind.explicit)
        nq = system.nq
        return FixedRun(equations, kind, equations.pack(y[:, :nq], y[:, nq:], t), t, setup.step, setup.holds(),
                        setup.threads)
    rhs = Rhs(system, tau, wrenches, setup.drives, setup.closing)
    _warn_if_slow(rhs, y, t, getattr(kind.tableau() if kind.tableau else None, "stages", 1) * setup.steps)
    return ReferenceRun(rhs, kind, y, t, setup.step, setup.holds())


def _moreau_run(setup: Setup, system: Machine, y: Floats, t: float, tau: Floats, wrenches: Floats | None
                ) -> RigidRun | MoreauRun:
    """Compiled, or in NumPy where the equations of motion are not compiled in this form."""
    assert setup.step is not None
    kind, holds = STEPPERS[setup.stepper], setup.holds()
    if not Equations.compiled(system, y[0, :system.nq], t, speeds=True):
        return MoreauRun(Rhs(system, tau, wrenches, setup.drives, setup.closing), kind, y, t, setup.step, holds)
    stiff, added = stiffened(system, setup.step)
    equations = ContactEquations(added, stiff, setup.batch, tau, wrenches, setup.drives, separate=True,
                                 closing=setup.closing)
    return RigidRun(equations, kind, y, t, setup.step, holds, setup.threads)


def varying_run(setup: Setup, system: Machine, y: Floats, t: float, tau: Floats, wrenches: Floats | None
                ) -> VaryingRun | ExternalRun:
    """Steps of any length, from states (q, u) at time t: compiled if they can be, or SciPy's or SUNDIALS'."""
    library, _, name = setup.stepper.partition("/")
    system = forced_machine(system, setup.forced)
    if not name and _prepared(system, y, t):
        free = [d for d in setup.drives if d.period is None]  # the others are asked between stretches
        equations = Equations(system, setup.batch, tau, wrenches, free, plain=True, closing=setup.closing)
        nq = system.nq
        kind = STEPPERS[setup.stepper]
        lanes = not equations.momenta and width_of(kind, equations.backend, len(y)) > 1
        return (VaryingLanes if lanes else VaryingRun)(
            equations, kind, equations.pack(y[:, :nq], y[:, nq:], t), t, setup.step, setup.rtol, setup.atol,
            setup.threads, contact_strides(system, y[:, :nq], t))
    if not name:
        library, name = "scipy", {"dopri5": "RK45", "dop853": "DOP853", "radau5": "Radau"}[setup.stepper]
    rhs = Rhs(system, tau, wrenches, [d for d in setup.drives if d.period is None], setup.closing)
    if library != setup.stepper.partition("/")[0]:  # nobody asked for SciPy
        _warn_if_slow(rhs, y, t, len(setup.times))
    return ExternalRun(rhs, library, name, y, t, setup.rtol, setup.atol, contact_strides(system, y[:, :system.nq], t))


def _warn_if_slow(rhs: Rhs, y: Floats, t: float, calls: int) -> None:
    """Say so if compiled steps were asked for, cannot be had, and will be missed."""
    if rhs.system.kernels.backend == "numpy":
        return
    with suppress(BellcrankError, ArithmeticError):
        rhs(t, y)  # compiles what can be
    begun = clock.thread_time()
    with suppress(BellcrankError, ArithmeticError):
        rhs(t, y)
    seconds = clock.thread_time() - begun
    if seconds * calls > LONG:
        warnings.warn(f"simulate {rhs.system.model.name!r}: the steps of method {rhs.system.model.method!r} are "
                      f"not compiled here; one evaluation takes {seconds:.2g} s, the run at least "
                      f"{seconds * calls:.2g} s. method='elimination' is compiled for any machine", SlowWarning,
                      stacklevel=outside())


def _prepared(system: Machine, y: Floats, t: float) -> bool:
    """Whether the compiled way is open."""
    return Equations.compiled(system, y[0, :system.nq], t)
