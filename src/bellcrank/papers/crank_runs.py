"""Saha & Schiehlen, forced and feedback simulation: Figs 8, 13, eq. (37).

Forced: the torques of the inverse dynamics, sampled every 0.02 s, act on the machine, and nothing pulls it back. Where
the motion is unstable, errors grow; when it leaves the desired motion depends on the machine, on the integrator, and on
how torques are held between samples.
"""

from __future__ import annotations

import numpy as np

from bellcrank.analyze.driven import drive
from bellcrank.arrays import Floats
from bellcrank.papers.crank_motions import DURATION, MACHINES, SAMPLE, PaperMachine
from bellcrank.papers.item import Agreement, ItemResult, PaperPlot, PlotLine, table_of
from bellcrank.papers.reference_data import state_of
from bellcrank.simulate.control import Sampled

__all__ = ["feedback", "fig_8", "fig_13"]

#: what counts as having left the desired motion [rad]
LEFT = np.radians(1.0)


def _forced(machine: PaperMachine, branch: str, duration: float) -> tuple[Floats, Floats, Floats]:
    """Times, desired and simulated crank angles."""
    times = np.asarray(SAMPLE * np.arange(round(min(duration, DURATION) / SAMPLE) + 1), dtype=float)
    start = state_of(machine.system, machine.reference(branch)["driven"]["theta"][0])
    wanted = drive(machine.system, machine.laws(), times, guess=start)
    torque = wanted["tau"].values[:, machine.driven]

    def held(t: float, q: Floats, u: Floats) -> dict[str, float]:
        now = torque[min(round(t / SAMPLE), len(times) - 1)]
        return dict(zip(machine.cranks, now.tolist(), strict=True))

    run = machine.system.simulate(start, duration, step=5e-3, control=Sampled(held, SAMPLE),
                                  output=SAMPLE)
    n = run.sizes["time"]
    return times[:n], wanted["q"].values[:n, machine.driven], run["q"].values[:, machine.driven]


def _forced_item(name: str, durations: tuple[float, float], printed: float, why: str, short: bool) -> ItemResult:
    machine = MACHINES[name]
    duration = durations[0] if short else durations[1]
    labels = [machine.labels("θ")[i] for i in machine.driven]
    names, columns, lines, agreements = ["time [s]"], [], [], []
    for branch in machine.branches[:1] if short else machine.branches:
        times, wanted, found = _forced(machine, branch, duration)
        off = np.abs(found - wanted).max(axis=1)
        early = round(1.0 / SAMPLE)
        agreements.append(Agreement(f"{branch}: largest error in the first second [rad]", float(off[:early].max()), 0.0,
                                    "printed", 2e-4, "torques are held for 0.02 s between samples"))
        if off.max() > LEFT:
            left = float(times[int(np.argmax(off > LEFT))])
            agreements.append(Agreement(f"{branch}: leaves the desired motion by a degree at [s]", left, printed,
                                        "printed", float("inf"), why))
        padded = [np.concatenate([x, np.full((len(times) - len(x), x.shape[1]), np.nan)]) for x in (wanted, found)]
        for k, label in enumerate(labels):
            names += [f"{label} desired, {branch} [rad]", f"{label} simulated, {branch} [rad]"]
            columns += [padded[0][:, k], padded[1][:, k]]
            lines += [PlotLine(f"{label} simulated, {branch}", times, found[:, k])]
            if branch == machine.branches[0]:
                lines.append(PlotLine(f"{label} desired", times, wanted[:, k], ":"))
    length = min(len(c) for c in columns)
    grid = SAMPLE * np.arange(length)
    return ItemResult(table_of(names, grid, *(c[:length] for c in columns)), PaperPlot("time [s]", "θ of the cranks "
                                                                                       "[rad]",
                                                                                       tuple(lines)), tuple(agreements))


def fig_8(short: bool) -> ItemResult:
    """Four-bar under the torques of Fig 6."""
    return _forced_item("four_bar", (8.0, 12.0), 2.25, "not explained by the integrator: on this machine errors do not "
                        "grow in the first seconds, and a start that is wrong by 0.01 rad is off by no more than that "
                        "at 2.25 s. The machine of the paper differs in something that is not printed: the direction "
                        "of gravity, the masses or the branch", short)


def fig_13(short: bool) -> ItemResult:
    """Five-bar under the torques of Fig 11."""
    return _forced_item("five_bar", (4.5, 5.0), 3.2, "the paper's program stopped there, \"as it apparently hits a "
                        "singular configuration\". elbow_up fits that: it has left the desired motion by then; "
                        "elbow_down still follows it. Fig 12 fits elbow_down: the two figures point to different "
                        "branches. Here the motion goes on through singular positions of the cranks", short)


# -- feedback ---------------------------------------------------------------------------------------------------------
def _tracked(machine: PaperMachine, branch: str, duration: float, offset: float = 0.0, period: float = SAMPLE
             ) -> tuple[Floats, Floats]:
    """Times and errors of the cranks under (37) with λ = 1, started `offset` off."""
    system = machine.minimal
    start = state_of(system, machine.reference(branch)["driven"]["theta"][0])
    first = dict(zip(machine.cranks, (np.array(machine.start) + offset).tolist(), strict=True))
    state = system.assemble(q=first, guess=start)

    def law(t: float, q: Floats, u: Floats) -> Floats:
        wanted, rate, second = machine.desired(t)
        model = system.reduced(q, u)
        order = [list(model.entries).index(i) for i in machine.driven]
        pull = second - 2.0 * (u[list(machine.driven)] - rate) - (q[list(machine.driven)] - wanted)
        torque = np.zeros(system.nu)  # (37): I tau_e + C theta'; the bias holds the weights as well
        torque[list(machine.driven)] = model.mass_matrix[np.ix_(order, order)] @ pull + model.bias[order]
        return torque

    run = system.simulate(state, duration, step=5e-3, control=Sampled(law, period), output=SAMPLE)
    time = run["time"].values
    wanted = np.array([machine.desired(float(t))[0] for t in time])
    return time, run["q"].values[:, machine.driven] - wanted


def _over_time(what: str, error: Floats, origin: str, allowed: float) -> list[Agreement]:
    """The error in the first second, which is judged, and in the whole run, which is shown."""
    first = round(1.0 / SAMPLE) + 1
    found = [Agreement(f"{what} in the first second [rad]", float(error[:first].max()), 0.0, origin, allowed)]
    if len(error) > first:
        found.append(Agreement(f"{what} [rad]", float(error.max()), 0.0, origin, float("inf"), _HELD))
    return found


def feedback(short: bool) -> ItemResult:
    """Four-bar and five-bar under (37) with λ = 1, on the desired motion and off it."""
    duration = 1.0 if short else DURATION
    names, columns, lines, agreements = ["time [s]"], [], [], []
    for name, machine in MACHINES.items():
        for branch in machine.branches[:1] if short else machine.branches:
            time, error = _tracked(machine, branch, duration)
            agreements += _over_time(f"{name}, {branch}: largest error", np.abs(error).max(axis=1), "printed", 1e-4)
            names.append(f"{name}, {branch}, error [rad]")
            columns.append(np.abs(error).max(axis=1))
            lines.append(PlotLine(f"{name}, {branch}", time, np.maximum(columns[-1], 1e-9)))
    machine = MACHINES["four_bar"]
    branch = machine.branches[0]
    fine = float(np.abs(_tracked(machine, branch, duration, period=SAMPLE / 4)[1]).max())
    agreements.append(Agreement("four_bar: error with torques held 0.02 s over that with 0.005 s",
                                float(columns[0].max()) / fine, 4.0, "formula", 0.5, "it goes to zero with the period"))
    off = 0.1
    time, error = _tracked(machine, branch, duration, off)
    law = off * (1.0 + time) * np.exp(-time)  # e'' + 2 e' + e = 0
    names += ["four_bar, started 0.1 rad off [rad]", "0.1 (1 + t) exp(-t) [rad]"]
    columns += [error[:, 0], law]
    lines += [PlotLine("four_bar, started 0.1 rad off", time, np.maximum(np.abs(error[:, 0]), 1e-9), "--"),
              PlotLine("0.1 (1 + t) exp(-t)", time, np.maximum(law, 1e-9), ":")]
    agreements += _over_time("four_bar, started off: largest difference to the law of the error",
                             np.abs(error[:, 0] - law), "formula", 2e-3)
    return ItemResult(table_of(names, time, *columns), PaperPlot("time [s]", "error of the cranks [rad]", tuple(lines),
                                                                 log_y=True), tuple(agreements), (
        "The law is written with `System.reduced`: τ = I (θd'' - 2λ(θ' - θd') - λ²(θ - θd)) + bias, λ = 1, evaluated "
        "every 0.02 s and held.",))


_HELD = ("\"followed exactly\": torques are held for 0.02 s here, in which those of the weights change, and λ = 1 "
         "corrects slowly")
