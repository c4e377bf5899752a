"""How far loops open in 10 s: what `simulate` closes, times methods, times integrators, on three machines."""

from __future__ import annotations

import warnings

import numpy as np

from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.examples import load
from bellcrank.papers.drift_runs import four_bar_start
from bellcrank.papers.item import Agreement, ItemResult, PaperPlot, PlotLine, table_of
from bellcrank.papers.ladder_figures import ladder_state
from bellcrank.simulate.run import SimulationWarning

__all__ = ["drift_table"]

CLOSINGS = ("none", "velocity", "position")
METHODS = ("kane", "elimination", "reduction", "momenta")
STEPPERS = ("rk4", "gauss", "dop853")
STEP = 5e-3  #: of the fixed-step integrators [s]


def _start(name: str, system: System) -> tuple[np.ndarray, np.ndarray]:
    """Where a machine begins to move."""
    if name == "four_bar":
        return four_bar_start(), np.zeros(4)
    if name == "ladder":
        return ladder_state(system, (0.6, 0.4)), ladder_state(system, (-0.5, 1.0))
    state = system.assemble(q={"arm": -0.12930036652171667})  # the quarter car, its wheel 5 cm up
    return state.q, state.u


def _row(name: str, method: str, stepper: str, duration: float) -> tuple[str | float, ...] | None:
    """The largest loop error for each of what can be closed; nothing if the method does not cover the machine."""
    try:
        system = compile(load(name), method)
    except ModelError:
        return None
    found: list[float] = []
    for closing in CLOSINGS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)
            run = system.simulate(_start(name, system), duration, step=None if stepper == "dop853" else STEP,
                                  stepper=stepper, rtol=1e-9, atol=1e-12, output=0.1, closing=closing)
        found.append(float(run.attrs["largest_loop_error"]) if run.attrs["status"] == "finished" else float("nan"))
    return (name, method, stepper, *found)


def drift_table(short: bool) -> ItemResult:
    """Largest loop errors."""
    machines = ("four_bar",) if short else ("four_bar", "quarter_car", "ladder")
    duration = 1.0 if short else 10.0
    cases = [(name, method, stepper) for name in machines for method in (METHODS[:1] if short else METHODS)
             for stepper in (STEPPERS[:1] if short else STEPPERS)]
    rows = [row for case in cases if (row := _row(*case, duration)) is not None]
    table = table_of(["machine", "method", "integrator", *(f"closing {c} [m]" for c in CLOSINGS)],
                     *zip(*rows, strict=True))
    errors = {c: np.array(table.column(f"closing {c}"), dtype=float) for c in CLOSINGS}
    agreements = (
        Agreement("closing position: largest error of all [m]", float(errors["position"].max()), 0.0, "ours", 1e-13),
        Agreement("closing velocity: no error is larger than with none (1: yes)",
                  float((errors["velocity"] <= 1.01 * errors["none"] + 1e-13).all()), 1.0, "printed"))
    x = np.arange(float(len(rows)))
    plot = PaperPlot("row of the table", f"largest loop error in {duration:g} s [m]", tuple(
        PlotLine(f"closing {c}", x, np.maximum(e, 1e-17), style) for (c, e), style in zip(errors.items(), "os^",
                                                                                          strict=True)), log_y=True)
    return ItemResult(table, plot, agreements, (
        f"{duration:g} s of motion; fixed steps of {STEP:g} s, dop853 with a relative tolerance of 1e-9. `momenta` "
        "with closing none carries σ along, and so it does with closing velocity where steps are not fixed. The ladder "
        "does not drift: its loops are closed by linear relations between coordinates, which every integrator keeps. A "
        "method that does not cover a machine has no row.",))
